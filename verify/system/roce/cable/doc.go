// Package cable connects the Ethernet of guests in QEMU with the Ethernet ports of a card, and loses
// packets of RoCEv2 on the way.
//
// A Cable is between two Unix datagram sockets: QEMU's (-netdev dgram, frames without FCS) and a
// card's frame port (package frameport, frames with FCS). Losses decides which packets are lost; it
// needs no socket, so tests of other parts can use it. A Recorder writes what passes.
package cable
