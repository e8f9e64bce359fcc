package driver

// A link carries packets in one of two ways: as frames in a byte stream (SPEC.md, section 3), or as
// datagrams (NETWORK.md, section 2). Everything else is the same for both.

import (
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// way is how the packets of a link travel. The reader calls fill, next, stats and foreign, the holder
// of link.writing calls send.
type way interface {
	// fill waits for something from the card, and returns the number of bytes.
	fill() (int, error)
	// next fills in the next packet of what came that passes its checks.
	next(f *frame.Frame) bool
	// stats returns what was received, except BytesIn.
	stats() LinkStats
	// foreign returns the protocol version of a packet of another one, if such a packet came.
	foreign() (version int, ok bool)
	// send sends a batch, and returns the number of bytes that the link has taken.
	send(b *batch) (int, error)
	Close() error
}

// wayOf returns the way of an open link, and whether it carries packets.
func (c *Card) wayOf(conn transport.Link) (_ way, packets bool) {
	if p, ok := conn.(transport.PacketConn); ok {
		if c.recorder != nil {
			p = c.recorder.RecordPackets(p)
		}
		return newDatagrams(p), true
	}
	bytes := conn.(transport.Conn) // there is no third kind
	if c.recorder != nil {
		bytes = c.recorder.Record(bytes)
	}
	return newStream(bytes), false
}

// stream is the way of a transport.Conn.
type stream struct {
	transport.Conn
	scan *frame.Scanner
}

func newStream(conn transport.Conn) *stream {
	return &stream{conn, frame.NewScanner(frame.FromCard, 0)}
}

func (s *stream) fill() (int, error)         { return s.scan.Fill(s.Conn) }
func (s *stream) next(f *frame.Frame) bool   { return s.scan.Next(f) }
func (s *stream) send(b *batch) (int, error) { return s.Write(b.buf) }

func (s *stream) foreign() (version int, ok bool) {
	return int(s.scan.Version()), s.scan.Stats().BadVersion > 0
}

func (s *stream) stats() LinkStats {
	n := s.scan.Stats()
	return LinkStats{
		Frames:     n.Frames,
		Hunted:     n.Hunted,
		HeaderCRC:  n.HeaderCRC,
		PayloadCRC: n.PayloadCRC,
		Refused:    n.BadVersion + n.BadKind + n.BadLength,
	}
}

// datagrams is the way of a transport.PacketConn.
type datagrams struct {
	transport.PacketConn
	check  *frame.DatagramChecker
	room   []transport.Packet
	came   []transport.Packet // the unread part of room
	toCard uint64             // results with the CE mark of a contribution
	toHost uint64             // packets with a CE mark from their way here
}

// packetsAtOnce is the most packets that one system call reads.
const packetsAtOnce = 64

func newDatagrams(conn transport.PacketConn) *datagrams {
	d := &datagrams{PacketConn: conn, check: frame.NewDatagramChecker(frame.FromCard), room: make([]transport.Packet, packetsAtOnce)}
	for i := range d.room {
		d.room[i].Bytes = make([]byte, frame.MaxDatagramBytes)
	}
	return d
}

func (d *datagrams) fill() (bytes int, err error) {
	n, err := d.ReadPackets(d.room)
	d.came = d.room[:n]
	for _, p := range d.came {
		bytes += len(p.Bytes)
	}
	return bytes, err
}

func (d *datagrams) next(f *frame.Frame) bool {
	for len(d.came) > 0 {
		p := d.came[0]
		d.came = d.came[1:]
		if d.check.Check(p.Bytes, f) {
			d.noteMarks(f, p.ECN)
			return true
		}
	}
	return false
}

// noteMarks counts the two marks that a member sees (NETWORK.md, section 2): the merged one of the
// ways to the card, and that of the packet's own way. It then merges them in the flags of a result: both
// reduce the windows, also those of members behind a relay.
func (d *datagrams) noteMarks(f *frame.Frame, own wire.ECN) {
	if wire.ECN(f.Flags&wire.FlagECN) == wire.CE && f.Payload != nil {
		d.toCard++
	}
	if own == wire.CE {
		d.toHost++
		if f.Payload != nil {
			f.Flags |= uint8(wire.CE)
		}
	}
}

func (d *datagrams) foreign() (version int, ok bool) {
	return int(d.check.Version()), d.check.Stats().BadVersion > 0
}

func (d *datagrams) stats() LinkStats {
	n := d.check.Stats()
	return LinkStats{
		Frames:      n.Packets,
		Short:       n.Short,
		DatagramCRC: n.CRC,
		Refused:     n.BadVersion + n.BadKind + n.BadLength,
		CEToCard:    d.toCard,
		CEFromCard:  d.toHost,
	}
}

func (d *datagrams) send(b *batch) (int, error) {
	return len(b.buf), d.WritePackets(b.buf, b.ends)
}
