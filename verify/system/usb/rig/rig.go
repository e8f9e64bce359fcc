// Package rig provides the parts of tests over USB: virtual cards over USB/IP, events after a
// number of bytes, and arrays to sum.
package rig

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"tributary/driver/frame"
	"tributary/driver/npy"
	"tributary/driver/transport"
	"tributary/driver/virtual/usbip"
	"tributary/driver/wire"
)

// Card is a card on a USB/IP server.
type Card struct {
	Addr string // HOST:PORT of its USB/IP server

	t      testing.TB
	server *usbip.Server
	bridge string    // in front of the card; empty: none
	cmd    *exec.Cmd // the Verilated card; nil for a fake

	passed atomic.Int64 // bytes to the card
	mu     sync.Mutex   // guards the following
	at     int64        // call do after this many bytes
	do     func()
}

// NewCard starts the virtual card built in a folder, and serves it.
func NewCard(t testing.TB, folder, serial string) *Card {
	t.Helper()
	return newCard(t, folder, serial, "")
}

// NewBridged does so behind a FIFO bridge, one of usbip.Bridges.
func NewBridged(t testing.TB, folder, bridge, serial string) *Card {
	t.Helper()
	return newCard(t, folder, serial, bridge)
}

func newCard(t testing.TB, folder, serial, bridge string) *Card {
	t.Helper()
	manifest, err := transport.ReadManifest(folder)
	must(t, err)
	c := &Card{t: t, bridge: bridge}
	socket := filepath.Join(t.TempDir(), "card")
	c.start(filepath.Join(folder, "sim", "build", "card"), socket)
	c.offer(usbip.Ident(manifest.Constant), serial, func() (net.Conn, error) { return net.Dial("unix", socket) })
	return c
}

// NewFake serves a card that is a function of the card's end of its link. Its identification
// block has only MAGIC.
func NewFake(t testing.TB, serial string, serve func(net.Conn)) *Card {
	t.Helper()
	return newFake(t, serial, "", serve)
}

// NewBridgedFake serves such a card behind a FIFO bridge.
func NewBridgedFake(t testing.TB, bridge, serial string, serve func(net.Conn)) *Card {
	t.Helper()
	return newFake(t, serial, bridge, serve)
}

func newFake(t testing.TB, serial, bridge string, serve func(net.Conn)) *Card {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	ident := usbip.Ident(func(addr uint32) uint64 { return map[uint32]uint64{wire.RegMagic: wire.Magic}[addr] })
	c := &Card{t: t, bridge: bridge}
	c.offer(ident, serial, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	return c
}

// NewStranger serves a device that has a card's vendor and product, but is no card.
func NewStranger(t testing.TB) *Card {
	t.Helper()
	c := &Card{t: t}
	c.offer(make([]byte, wire.USBIdentBytes), "STRANGER", func() (net.Conn, error) { return nil, net.ErrClosed })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a Verilated card.
func (c *Card) start(program, socket string) {
	c.t.Helper()
	c.cmd = exec.Command(program, "--listen", "unix:"+socket)
	c.cmd.Stderr = os.Stderr
	said, err := c.cmd.StdoutPipe()
	must(c.t, err)
	must(c.t, c.cmd.Start())
	c.t.Cleanup(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	})
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil {
		c.t.Fatalf("the card said %q: %v", line, err)
	}
}

// offer serves the card over USB/IP.
func (c *Card) offer(ident []byte, serial string, link func() (net.Conn, error)) {
	c.t.Helper()
	var err error
	c.server, err = usbip.NewServer(usbip.Card{Ident: ident, Serial: serial, Bridge: c.bridge, Link: func() (net.Conn, error) {
		conn, err := link()
		if err != nil {
			return nil, err
		}
		return &counted{conn, c}, nil
	}})
	must(c.t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(c.t, err)
	c.Addr = l.Addr().String()
	go c.server.Serve(l)
	c.t.Cleanup(func() {
		l.Close()
		c.server.Close()
	})
}

// counted is a link that counts the bytes to the card.
type counted struct {
	net.Conn
	card *Card
}

func (l *counted) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	c := l.card
	if do := c.due(c.passed.Add(int64(n))); do != nil {
		do()
	}
	return n, err
}

// due returns what is to be done when so many bytes have passed, once.
func (c *Card) due(passed int64) (do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if passed >= c.at {
		do, c.do = c.do, nil
	}
	return do
}

// CloseWrite passes the half close of sockets through.
func (l *counted) CloseWrite() error { return l.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// After calls do after this many more bytes to the card. The card gets no further bytes before do
// returns, so do must not wait for the card.
func (c *Card) After(bytes int64, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.do = c.passed.Load()+bytes, do
}

// Passed returns the number of bytes sent to the card.
func (c *Card) Passed() int64 { return c.passed.Load() }

// Halt halts an endpoint.
func (c *Card) Halt(endpoint uint8) { c.server.Halt(endpoint) }

// Unplug unplugs the card from its machine, which may plug it in again.
func (c *Card) Unplug() { c.server.Unplug() }

// Stop stops the card's clock, and Continue restarts it.
func (c *Card) Stop()     { c.cmd.Process.Signal(syscall.SIGSTOP) }
func (c *Card) Continue() { c.cmd.Process.Signal(syscall.SIGCONT) }

// Echo returns all bytes, in pieces of at most n.
func Echo(n int) func(net.Conn) {
	return func(conn net.Conn) {
		defer conn.Close()
		buf := make([]byte, n)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			if _, err := conn.Write(buf[:n]); err != nil {
				return
			}
		}
	}
}

// Answering adds to a fake card the start of a link behind a bridge: it answers a register write.
func Answering(serve func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		write := make([]byte, wire.SyncBytes+wire.BaseHeaderBytes+8+wire.CRCBytes)
		if _, err := io.ReadFull(conn, write); err != nil || !bytes.HasPrefix(write, wire.Sync[:]) {
			io.Copy(io.Discard, conn) // the link before the break; the bridge ends it
			conn.Close()
			return
		}
		h := write[wire.SyncBytes:]
		reply := frame.Append(nil, &frame.Header{
			Kind:   wire.KindReply,
			VID:    binary.LittleEndian.Uint32(h[8:]),
			Length: binary.LittleEndian.Uint16(h[12:]),
			Mask:   binary.LittleEndian.Uint64(h[14:]),
		}, nil)
		if _, err := conn.Write(reply); err != nil {
			conn.Close()
			return
		}
		serve(conn)
	}
}

// Arrays writes a file of random numbers for each worker, and returns the paths.
func Arrays(t testing.TB, dir string, workers, elements int) (files []string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(elements)))
	for w := range workers {
		data := make([]byte, 0, 4*elements)
		for range elements {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(random.NormFloat64())))
		}
		file := filepath.Join(dir, fmt.Sprintf("w%d.npy", w))
		f, err := os.Create(file)
		must(t, err)
		must(t, npy.Write(f, npy.Array{Type: npy.Float32, Shape: []int{elements}, Data: data}))
		must(t, f.Close())
		files = append(files, file)
	}
	return files
}
