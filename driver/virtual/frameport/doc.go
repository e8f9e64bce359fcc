// Package frameport has frame ports: devices and sockets that stand for the cable at an Ethernet port of
// a virtual card. Open makes one by its name.
//
// "unix:PATH" is a Unix datagram socket at PATH. Each datagram is a frame with its FCS, in both
// directions. A peer binds a socket of its own and sends to PATH. The port sends to the peer that it
// heard last; what leaves before it has heard one is lost. An empty datagram is no frame: it only makes
// the peer known.
//
// "tap:NAME" is a Linux TAP device, a network interface of this machine. Frames have no FCS there, so
// the port adds it, and padding to 60 bytes as a network card does, and cuts it off. The device goes
// when the port is closed, unless somebody else has made it.
//
// As on a cable, a frame that its receiver does not take in time is lost: up to 1,024 wait at a port. No
// counter shows that. A peer that does not read blocks its port until it ends, and no other port.
package frameport
