// Package serial registers the scheme serial, for cards behind a UART and a serial port
// of the host (SPEC.md, section 10.5). Programs import it for its effect:
//
//	import _ "tributary/driver/transport/serial"
//
// Names are serial:PORT and serial:PORT@BAUD. The scheme works on Linux only.
package serial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"tributary/driver/transport"
	"tributary/driver/transport/bridge"
)

// DefaultBaud is the rate of a name without one, and of the repository's boards.
const DefaultBaud = 3_000_000

func init() {
	transport.Register("serial", func(ctx context.Context, r transport.Request) (transport.Conn, error) {
		return Open(ctx, r.Address, r.Patience)
	})
}

// name is the part of a card's name after the scheme.
type name struct {
	path string
	baud uint32
}

// parse parses PORT or PORT@BAUD.
func parse(address string) (name, error) {
	n := name{path: address, baud: DefaultBaud}
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		baud, err := strconv.ParseUint(address[at+1:], 10, 32)
		if err != nil || baud == 0 {
			return n, fmt.Errorf("serial:%s: %q is not a rate in baud, as in serial:%s@1000000", address, address[at+1:], address[:at])
		}
		n.path, n.baud = address[:at], uint32(baud)
	}
	if n.path == "" {
		return n, fmt.Errorf("serial:%s lacks a port; use serial:PORT or serial:PORT@BAUD, as in serial:/dev/ttyUSB1@1000000; %s", address, known("/dev"))
	}
	return n, nil
}

// String returns the path with its rate, for messages.
func (n name) String() string { return fmt.Sprintf("%s at %s baud", n.path, thousands(n.baud)) }

// thousands formats a number with commas.
func thousands(n uint32) string {
	if n < 1000 {
		return strconv.FormatUint(uint64(n), 10)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// mute returns the error for a card that does not reply.
func (n name) mute() error {
	return fmt.Errorf("no card replies at %s baud on %s; check that its FPGA is configured, that this is its port, and that its link has this rate (serial:%s@BAUD sets another)",
		thousands(n.baud), n.path, n.path)
}

// Open opens a port and begins a link to the card behind it. address is PORT or PORT@BAUD. Open
// returns when ctx ends, or when the card does not reply for patience; 0 means
// bridge.AnswerTime.
func Open(ctx context.Context, address string, patience time.Duration) (transport.Conn, error) {
	n, err := parse(address)
	if err != nil {
		return nil, err
	}
	file, err := openPort(n)
	if err != nil {
		return nil, err
	}
	c := &conn{file: file}
	if c.left, err = bridge.BeginIn(ctx, cmp.Or(patience, bridge.AnswerTime), timed{file}, n.mute()); err == nil {
		err = file.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(words(err), c.Close())
	}
	return c, nil
}

// errUnplugged has a text that fits after "the card disconnected:".
var errUnplugged = errors.New("its serial port was unplugged")

// words returns the error that explains an error of a port.
func words(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrClosed):
		return net.ErrClosed
	// Before and after the kernel removes an unplugged port, reads return different errors, or
	// nothing.
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO), errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENXIO):
		return errUnplugged
	}
	return err
}

// conn is the byte stream to a card.
type conn struct {
	file *os.File
	left []byte // read while the link began

	closing sync.Once
	closed  error
}

func (c *conn) Read(p []byte) (int, error) {
	if len(c.left) > 0 {
		n := copy(p, c.left)
		c.left = c.left[n:]
		return n, nil
	}
	n, err := c.file.Read(p)
	return n, words(err)
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.file.Write(p)
	return n, words(err)
}

// Close drops unsent bytes first, because the kernel would wait to send them.
func (c *conn) Close() error {
	c.closing.Do(func() {
		dropOutput(c.file)
		c.closed = c.file.Close()
	})
	return c.closed
}

// timed is a port whose reads and writes end with a context. Only one may be in progress.
type timed struct{ *os.File }

func (t timed) Read(ctx context.Context, p []byte) (int, error) {
	defer t.until(ctx)()
	n, err := t.File.Read(p)
	return n, words(err)
}

func (t timed) Write(ctx context.Context, p []byte) (int, error) {
	defer t.until(ctx)()
	n, err := t.File.Write(p)
	return n, words(err)
}

// until ends reads and writes when ctx ends, until the caller calls stop.
func (t timed) until(ctx context.Context) (stop func()) {
	set := make(chan struct{})
	undo := context.AfterFunc(ctx, func() {
		defer close(set)
		_ = t.SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !undo() {
			<-set
		}
	}
}

// Port is a serial port of this machine that may lead to a card.
type Port struct {
	Name  string // for driver.Open
	Title string // the port's own description; may be empty
}

// List returns this machine's serial ports on USB. It does not open them.
func List() []Port { return list("/dev") }

func list(dev string) []Port {
	titles := map[string]string{}
	links, _ := filepath.Glob(filepath.Join(dev, "serial", "by-id", "*"))
	for _, link := range links {
		if to, err := filepath.EvalSymlinks(link); err == nil {
			titles[filepath.Base(to)] = filepath.Base(link)
		}
	}
	var ports []Port
	for _, pattern := range []string{"ttyUSB*", "ttyACM*"} {
		paths, _ := filepath.Glob(filepath.Join(dev, pattern))
		slices.SortFunc(paths, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) // by number
		})
		for _, path := range paths {
			ports = append(ports, Port{Name: "serial:" + path, Title: titles[filepath.Base(path)]})
		}
	}
	return ports
}

// known returns the list of ports as text.
func known(dev string) string {
	var names []string
	for _, p := range list(dev) {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return "no serial port is plugged in by USB"
	}
	return "there is " + strings.Join(names, ", ")
}
