// Package rig provides what tests over USB need on any machine: virtual cards over
// USB/IP, events after a number of bytes, and arrays to sum.
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

// Card is a card that is offered to machines.
type Card struct {
	Addr string // HOST:PORT of its USB/IP server

	t      testing.TB
	server *usbip.Server
	bridge string    // that it is behind; empty: none
	cmd    *exec.Cmd // the Verilated card; nil for a fake

	passed atomic.Int64 // bytes to the card
	mu     sync.Mutex   // of what follows
	at     int64        // when so many have passed,
	do     func()
}

// NewCard starts the virtual card that is built in a folder and offers it.
func NewCard(t testing.TB, folder, serial string) *Card {
	t.Helper()
	return newCard(t, folder, serial, "")
}

// NewBridged starts it and offers a FIFO bridge, one of usbip.Bridges, with it behind.
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

// NewFake offers a card that is a function of the card's end of its link. Its identification
// block has MAGIC alone.
func NewFake(t testing.TB, serial string, serve func(net.Conn)) *Card {
	t.Helper()
	return newFake(t, serial, "", serve)
}

// NewBridgedFake offers a FIFO bridge with such a card behind it.
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

// NewStranger offers a device with a card's numbers that is none.
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

// counted is a link that counts what goes to the card.
type counted struct {
	net.Conn
	card *Card
}

func (l *counted) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	c := l.card
	passed := c.passed.Add(int64(n))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.do != nil && passed >= c.at {
		go c.do()
		c.do = nil
	}
	return n, err
}

// CloseWrite is what sockets have beside Close.
func (l *counted) CloseWrite() error { return l.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// After has something done when so many more bytes have gone to the card.
func (c *Card) After(bytes int64, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.do = c.passed.Load()+bytes, do
}

// Passed returns how many bytes have gone to the card.
func (c *Card) Passed() int64 { return c.passed.Load() }

// Halt halts an endpoint.
func (c *Card) Halt(endpoint uint8) { c.server.Halt(endpoint) }

// Unplug takes the card away from the machine that has it, which may plug it in again.
func (c *Card) Unplug() { c.server.Unplug() }

// Stop has the card's clock stand still, Continue lets it go on.
func (c *Card) Stop()     { c.cmd.Process.Signal(syscall.SIGSTOP) }
func (c *Card) Continue() { c.cmd.Process.Signal(syscall.SIGCONT) }

// Echo sends back what it gets, in pieces of n bytes and less.
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

// Answering puts before a card that is a function what a host behind a bridge begins a
// link with: a register write, which is answered.
func Answering(serve func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		write := make([]byte, wire.SyncBytes+wire.BaseHeaderBytes+8+wire.CRCBytes)
		if _, err := io.ReadFull(conn, write); err != nil || !bytes.HasPrefix(write, wire.Sync[:]) {
			io.Copy(io.Discard, conn) // the link before the break, which the bridge ends
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

// Arrays writes a file of random numbers for each worker, and returns their paths.
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
