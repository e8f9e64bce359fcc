package main

// The virtual card of tributary sim as a USB device, with -usbip.

import (
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"path/filepath"

	"tributary/driver/shell"
	"tributary/driver/transport/scratch"
	"tributary/driver/virtual/usbip"
)

// usbCard provides a virtual card over USB/IP. The card listens for it on a private socket.
type usbCard struct {
	folder   *scratch.Folder // that holds the socket
	socket   string
	serial   string
	listener net.Listener
	server   *usbip.Server
}

// newUSBCard prepares the card built in a folder at an address, HOST:PORT. It is behind a bridge
// unless bridge is empty.
func newUSBCard(card cardFolder, address, serial, bridge string) (*usbCard, error) {
	folder, err := scratch.New()
	if err != nil {
		return nil, err
	}
	u := &usbCard{folder: folder, socket: folder.Path("card"), serial: serial}
	if u.serial == "" {
		u.serial = defaultSerial(card.dir)
	}
	u.server, err = usbip.NewServer(usbip.Card{
		Ident:  usbip.Ident(card.Constant),
		Serial: u.serial,
		Bridge: bridge,
		Link:   func() (net.Conn, error) { return net.Dial("unix", u.socket) },
	})
	if err == nil {
		u.listener, err = net.Listen("tcp", address)
	}
	if err != nil {
		folder.Remove()
		return nil, err
	}
	return u, nil
}

// defaultSerial returns a serial number that depends only on the card's folder.
func defaultSerial(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	h := fnv.New32a()
	io.WriteString(h, dir)
	return fmt.Sprintf("SIM-%08X", h.Sum32())
}

// serve returns the function that serves hosts once the card listens.
func (u *usbCard) serve(out, errs io.Writer) listener {
	return func(string) (stop func()) {
		fmt.Fprintf(out, "usbip %s, serial number %s; attach it: %s\n", u.listener.Addr(), u.serial, u.attachCommand())
		go func() {
			if err := u.server.Serve(u.listener); err != nil {
				fmt.Fprintf(errs, "tributary sim: no further host can attach the card: %v\n", err)
			}
		}()
		return func() {}
	}
}

// attachCommand returns the command that attaches the card to a machine.
func (u *usbCard) attachCommand() string {
	at := u.listener.Addr().(*net.TCPAddr)
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		host = "HOST" // the other machine's name for this one
	}
	return fmt.Sprintf("usbip --tcp-port %d attach -r %s -b %s", at.Port, shell.Quote(host), usbip.BusID)
}

// close unplugs the device.
func (u *usbCard) close() {
	u.listener.Close()
	u.server.Close()
	u.folder.Remove()
}
