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

// DefaultBaud is the rate of a name that has none. The boards of ours have it.
const DefaultBaud = 3_000_000

func init() {
	transport.Register("serial", func(ctx context.Context, r transport.Request) (transport.Conn, error) {
		return Open(ctx, r.Address, r.Patience)
	})
}

// name is what stands behind the scheme.
type name struct {
	path string
	baud uint32
}

// parse reads PORT or PORT@BAUD.
func parse(address string) (name, error) {
	n := name{path: address, baud: DefaultBaud}
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		baud, err := strconv.ParseUint(address[at+1:], 10, 32)
		if err != nil || baud == 0 {
			return n, fmt.Errorf("serial:%s: %q is no rate in baud, as in serial:%s@1000000", address, address[at+1:], address[:at])
		}
		n.path, n.baud = address[:at], uint32(baud)
	}
	if n.path == "" {
		return n, fmt.Errorf("serial:%s lacks a port; it is serial:PORT or serial:PORT@BAUD, as in serial:/dev/ttyUSB1@1000000; %s", address, known("/dev"))
	}
	return n, nil
}

// String is the name with its rate, for people.
func (n name) String() string { return fmt.Sprintf("%s at %s baud", n.path, thousands(n.baud)) }

// thousands writes a number with commas.
func thousands(n uint32) string {
	if n < 1000 {
		return strconv.FormatUint(uint64(n), 10)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// mute is the error when nothing answers.
func (n name) mute() error {
	return fmt.Errorf("no card answers at %s baud at %s: see that its FPGA is loaded with one, that this is its port, and that its link has this rate (serial:%s@BAUD says another)",
		thousands(n.baud), n.path, n.path)
}

// Open opens a port and begins a link with the card behind it. address is PORT or
// PORT@BAUD. It gives up when ctx is done, or when the card does not answer for patience,
// where 0 stands for bridge.AnswerTime.
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

// errUnplugged reads well behind "the card is gone:".
var errUnplugged = errors.New("its serial port was unplugged")

// words returns the error that says what one of a port means.
func words(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrClosed):
		return net.ErrClosed
	// Of a port that is gone nothing comes, or an error, as the kernel is about to forget it or has.
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO), errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENXIO):
		return errUnplugged
	}
	return err
}

// conn is the byte stream to a card.
type conn struct {
	file *os.File
	left []byte // that was read when the link began

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

// Close drops what has not left yet: the kernel would wait for it.
func (c *conn) Close() error {
	c.closing.Do(func() {
		dropOutput(c.file)
		c.closed = c.file.Close()
	})
	return c.closed
}

// timed is a port whose reads and writes end with a context, of which there is one at a
// time.
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

// until ends what is under way with ctx, up to the call of what it returns.
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
	Name  string // as driver.Open takes it
	Title string // what the port says of itself; may be empty
}

// List returns the ports of this machine that are plugged in by USB. It opens none.
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

// known says which ports there are.
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
