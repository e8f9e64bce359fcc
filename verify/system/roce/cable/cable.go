package cable

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"tributary/driver/frame"
	"tributary/driver/virtual/ethernet"
)

// Pass is called for each frame that enters a cable, with its FCS. It reports whether the frame
// arrives. It is called from one goroutine for each direction.
type Pass func(d frame.Direction, bytes []byte) bool

// Cable is an Ethernet cable between a guest and a card.
type Cable struct {
	host, card *end
	pass       Pass
	running    sync.WaitGroup

	mu     sync.Mutex
	failed error // the first
}

// frameBytes is more than the longest frame has.
const frameBytes = 1 << 16

// Open connects the frame port unix:cardPort, where a card listens, with a running guest that has
// the flag of Netdev. Close removes the sockets that it makes: hostSocket and hostSocket + ".card".
func Open(hostSocket, cardPort string, pass Pass) (*Cable, error) {
	host, err := dial(hostSocket, qemuSocket(hostSocket))
	if err != nil {
		return nil, err
	}
	card, err := dial(hostSocket+".card", cardPort)
	if err != nil {
		return nil, errors.Join(err, host.Close())
	}
	c := &Cable{host: host, card: card, pass: pass}
	if _, err := card.Write(nil); err != nil { // makes the cable known to the card
		return nil, errors.Join(err, c.Close())
	}
	c.running.Go(c.toCard)
	c.running.Go(c.toHost)
	return c, nil
}

// Netdev returns QEMU's -netdev for the guest at a cable.
func Netdev(id, hostSocket string) string {
	return fmt.Sprintf("dgram,id=%s,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s", id, qemuSocket(hostSocket), hostSocket)
}

func qemuSocket(hostSocket string) string { return hostSocket + ".qemu" }

// end is a connected socket with a path.
type end struct {
	*net.UnixConn
	path string
}

func dial(path, peer string) (*end, error) {
	conn, err := net.DialUnix("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}, &net.UnixAddr{Name: peer, Net: "unixgram"})
	if err != nil {
		if !errors.Is(err, syscall.EADDRINUSE) {
			_ = os.Remove(path) // bound before the attempt to connect
		}
		return nil, err
	}
	return &end{conn, path}, nil
}

// Close removes the socket.
func (e *end) Close() error { return errors.Join(e.UnixConn.Close(), os.Remove(e.path)) }

// Close ends the cable. It returns the error that ended it before, if there was one.
func (c *Cable) Close() error {
	closing := errors.Join(c.host.Close(), c.card.Close())
	c.running.Wait()
	if c.failed != nil {
		return c.failed
	}
	return closing
}

// fail keeps the first error, unless the cable is being closed.
func (c *Cable) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil && !errors.Is(err, net.ErrClosed) {
		c.failed = err
	}
}

// toCard forwards the guest's frames. A network card pads them and adds the FCS; QEMU's does not.
func (c *Cable) toCard() {
	buffer := make([]byte, frameBytes)
	for {
		n, err := c.host.Read(buffer[:frameBytes-ethernet.Shortest-ethernet.FCSBytes])
		if err != nil {
			c.fail(err)
			return
		}
		whole := ethernet.AppendFCS(ethernet.Pad(buffer[:n]))
		if !c.pass(frame.ToCard, whole) {
			continue
		}
		if _, err := c.card.Write(whole); err != nil {
			c.fail(fmt.Errorf("the card's port: %w", err))
			return
		}
	}
}

// toHost forwards the card's frames. A network card drops one with a wrong FCS.
func (c *Cable) toHost() {
	buffer := make([]byte, frameBytes)
	for {
		n, err := c.card.Read(buffer)
		if err != nil {
			c.fail(fmt.Errorf("the card's port: %w", err))
			return
		}
		if !c.pass(frame.FromCard, buffer[:n]) {
			continue
		}
		body, ok := ethernet.CutFCS(buffer[:n])
		if !ok {
			c.fail(fmt.Errorf("a frame of %d bytes from the card has a wrong FCS", n))
			return
		}
		if _, err := c.host.Write(body); err != nil {
			c.fail(err)
			return
		}
	}
}
