package main

// The virtual card of tributary sim on a serial port, with -pty.

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"tributary/driver/shell"
	"tributary/driver/transport/scratch"
	"tributary/driver/transport/serial"
	"tributary/driver/virtual/pty"
)

// portCard provides a virtual card on a pseudo-terminal. The card listens for it on a private
// socket.
type portCard struct {
	folder *scratch.Folder // that holds the socket
	socket string
	name   string // as accepted by -card
	port   *pty.Port
}

// newPortCard prepares a card at a path, at a rate.
func newPortCard(path string, baud uint32) (*portCard, error) {
	folder, err := scratch.New()
	if err != nil {
		return nil, err
	}
	p := &portCard{folder: folder, socket: folder.Path("card"), name: "serial:" + path}
	if baud != serial.DefaultBaud {
		p.name += fmt.Sprintf("@%d", baud)
	}
	if p.port, err = pty.New(path, baud); err != nil {
		return nil, errors.Join(fmt.Errorf("-pty %s: %w", path, err), folder.Remove())
	}
	return p, nil
}

// serve returns the function that serves hosts once the card listens.
func (p *portCard) serve(out, errs io.Writer) listener {
	return func(string) (stop func()) {
		p.announce(out)
		go func() {
			err := p.port.Serve(func() (net.Conn, error) { return net.Dial("unix", p.socket) })
			if err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, net.ErrClosed) {
				fmt.Fprintf(errs, "tributary sim: the serial port leads to no card any more: %v\n", err)
			}
		}()
		return func() {}
	}
}

// announce prints how to reach the card.
func (p *portCard) announce(out io.Writer) {
	fmt.Fprintf(out, "serial port; try it: tributary info -card %s\n", shell.Quote(p.name))
}

// close unplugs the port.
func (p *portCard) close() {
	p.port.Close()
	p.folder.Remove()
}
