package udp

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"

	"golang.org/x/net/ipv4"

	"tributary/driver/transport"
)

// headerBytes is the size of the headers of IP and UDP.
const headerBytes = 20 + 8

// conn is a socket to a card.
type conn struct {
	socket *net.UDPConn
	batch  *ipv4.PacketConn
	to     netip.AddrPort
	heard  atomic.Bool // the card has sent something
	limits transport.PacketLimits

	// The messages of a batch, which each call uses again. in is the reader's, out the writer's.
	in, out           []ipv4.Message
	inParts, outParts [][1][]byte
	inMarks, outMarks []byte // ancillary data

	whole bool // messages are single packets, because segmentation has failed
}

func newConn(socket *net.UDPConn, to netip.AddrPort) (*conn, error) {
	limits, err := limitsOf(socket)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return &conn{socket: socket, batch: ipv4.NewPacketConn(socket), to: to, limits: limits}, nil
}

func (c *conn) Limits() transport.PacketLimits { return c.limits }

// Network returns the card's name for other processes.
func (c *conn) Network() string { return "udp:" + c.to.String() }

func (c *conn) Close() error { return c.socket.Close() }

// ReadPackets reads all packets that are there, with one system call.
func (c *conn) ReadPackets(batch []transport.Packet) (int, error) {
	c.makeIn(len(batch))
	for i := range batch {
		c.inParts[i][0] = batch[i].Bytes[:cap(batch[i].Bytes)]
	}
	for {
		n, err := c.batch.ReadBatch(c.in[:len(batch)], 0)
		if err != nil {
			if c.passes(err) {
				continue
			}
			return 0, explain(err, c.to)
		}
		c.heard.Store(true)
		for i := range n {
			batch[i].Bytes = c.inParts[i][0][:c.in[i].N]
			batch[i].ECN = ecnOf(c.in[i].OOB[:c.in[i].NN])
		}
		return n, nil
	}
}

// makeIn makes the messages for n packets.
func (c *conn) makeIn(n int) {
	if n <= len(c.in) {
		return
	}
	c.in, c.inParts, c.inMarks = make([]ipv4.Message, n), make([][1][]byte, n), make([]byte, n*markBytes)
	for i := range c.in {
		c.in[i].Buffers = c.inParts[i][:]
		c.in[i].OOB = c.inMarks[i*markBytes : (i+1)*markBytes]
	}
}

// passes reports whether an error may pass: that no way leads to a card that has been heard. A cable
// that is pulled ends nothing.
func (c *conn) passes(err error) bool { return c.heard.Load() && isUnreachable(err) }

// WritePackets sends packets with as few system calls as possible.
func (c *conn) WritePackets(buf []byte, ends []int) error {
	left := c.messages(buf, ends)
	for len(left) > 0 {
		n, err := c.batch.WriteBatch(left, 0)
		switch {
		case err == nil:
			left = left[n:]
		case isFull(err) || c.passes(err):
			left = left[1:] // lost
		case !c.whole && cannotSegment(err):
			c.whole = true
			return c.WritePackets(buf, ends) // some packets leave twice
		default:
			return explain(err, c.to)
		}
	}
	return nil
}

// messages returns the messages that carry the packets.
func (c *conn) messages(buf []byte, ends []int) []ipv4.Message {
	c.makeOut(len(ends))
	n, start := 0, 0
	for len(ends) > 0 {
		packets := 1
		if !c.whole {
			packets = run(start, ends)
		}
		c.outParts[n][0], c.out[n].OOB = buf[start:ends[packets-1]], nil
		if packets > 1 {
			c.out[n].OOB = c.outMarks[n*segmentBytes : (n+1)*segmentBytes]
			putSegments(c.out[n].OOB, ends[0]-start)
		}
		start, ends = ends[packets-1], ends[packets:]
		n++
	}
	return c.out[:n]
}

// makeOut makes the messages for n packets.
func (c *conn) makeOut(n int) {
	if n <= len(c.out) {
		return
	}
	c.out, c.outParts, c.outMarks = make([]ipv4.Message, n), make([][1][]byte, n), make([]byte, n*segmentBytes)
	for i := range c.out {
		c.out[i].Buffers = c.outParts[i][:]
	}
}
