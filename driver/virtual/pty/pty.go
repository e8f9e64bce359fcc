// Package pty serves a card's byte stream on a pseudo-terminal, behind a model of a UART
// bridge (SPEC.md, section 10.5). Programs open it like any serial port. It works on
// Linux only.
package pty

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tributary/driver/virtual/pins"
)

// Port is a serial port with a card behind it.
type Port struct {
	master *os.File
	path   string // symbolic link to the terminal
	baud   uint32
	used   atomic.Bool  // a host has it open, as far as is known
	lost   atomic.Int64 // bytes dropped: no host, or another rate
}

// New makes a port at path for a card with the rate baud. path must not be an existing file.
func New(path string, baud uint32) (*Port, error) {
	master, terminal, err := open()
	if err != nil {
		return nil, err
	}
	if err := link(terminal, path); err != nil {
		return nil, errors.Join(err, master.Close())
	}
	return &Port{master: master, path: path, baud: baud}, nil
}

// link makes path a link to the terminal. It replaces a link that an earlier port has left.
func link(terminal, path string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return os.Symlink(terminal, path)
}

// Close unplugs the port.
func (p *Port) Close() error { return errors.Join(os.Remove(p.path), p.master.Close()) }

// Serve passes bytes between the port and a card, whose byte stream dial opens, until either is
// gone. It drops what the card sends while no host has the port open. It also drops everything
// at another rate than the card's.
func (p *Port) Serve(dial func() (net.Conn, error)) error {
	at := pins.New(dial)
	defer at.Close()
	session, err := at.Session()
	if err != nil {
		return fmt.Errorf("the card does not accept a host: %w", err)
	}
	var ended atomic.Bool
	var carrying sync.WaitGroup
	carrying.Go(func() { p.toHost(session, &ended) })
	err = p.toCard(session)
	ended.Store(true)
	err = errors.Join(err, session.Close())
	carrying.Wait()
	return err
}

// vacant is the pause between checks for a host while none has the port open.
const vacant = 10 * time.Millisecond

// pieceBytes is the size of a read.
const pieceBytes = 4096

// toCard passes on what hosts send.
func (p *Port) toCard(card net.Conn) error {
	for buf := make([]byte, pieceBytes); ; {
		n, err := p.master.Read(buf)
		if errors.Is(err, syscall.EIO) {
			p.used.Store(false)
			time.Sleep(vacant)
			continue
		}
		if err != nil {
			return err
		}
		p.used.Store(true)
		if !p.inStep() {
			p.lost.Add(int64(n))
			continue
		}
		if _, err := card.Write(buf[:n]); err != nil {
			return err
		}
	}
}

// inStep reports whether the host's rate is within 3 percent of the card's.
func (p *Port) inStep() bool {
	const percent = 3
	baud, err := rate(p.master)
	off := int64(baud) - int64(p.baud)
	return err == nil && max(off, -off)*100 <= int64(p.baud)*percent
}

// toHost passes on what the card sends. A break or the end of the session ends a read early.
func (p *Port) toHost(card net.Conn, ended *atomic.Bool) {
	for buf := make([]byte, pieceBytes); !ended.Load(); {
		n, err := card.Read(buf)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if n == 0 || !p.used.Load() || !p.inStep() {
			p.lost.Add(int64(n))
			continue
		}
		_, _ = p.master.Write(buf[:n]) // a host that has left reads nothing
	}
}
