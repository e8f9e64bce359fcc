package driver

import "tributary/driver/frame"

// batchBytes is how much the writer gathers before it writes. It is large enough for an
// efficient system call, and small enough that asks and register accesses, which go first, wait
// only briefly.
const batchBytes = 64 << 10

// batch is what the writer sends at once: frames of a byte stream, or datagrams.
type batch struct {
	packets bool // datagrams
	buf     []byte
	ends    []int // of the datagrams
	scan    *frame.Scanner
}

// newBatch returns an empty batch for a link of packets or of a stream.
func newBatch(packets bool) *batch {
	return &batch{packets: packets, buf: make([]byte, 0, batchBytes+frame.MaxDatagramBytes)}
}

func (b *batch) empty() bool { return len(b.buf) == 0 }
func (b *batch) full() bool  { return len(b.buf) >= batchBytes }
func (b *batch) clear()      { b.buf, b.ends = b.buf[:0], b.ends[:0] }

// add adds a packet. payload is nil for kinds without one.
func (b *batch) add(h *frame.Header, payload []byte) {
	if !b.packets {
		b.buf = frame.Append(b.buf, h, payload)
		return
	}
	b.buf = frame.AppendDatagram(b.buf, h, payload)
	b.ends = append(b.ends, len(b.buf))
}

// addPadded adds a packet with a payload of h's length: elements, padded with zeros.
func (b *batch) addPadded(h *frame.Header, elements []byte) {
	if !b.packets {
		b.buf = frame.AppendPadded(b.buf, h, elements)
		return
	}
	b.buf = frame.AppendPaddedDatagram(b.buf, h, elements)
	b.ends = append(b.ends, len(b.buf))
}

// addFrames adds whole frames of a stream, as a relay gets them. On a link of packets, each becomes a
// datagram, unless its payload's CRC is wrong: that of the datagram would hide it.
func (b *batch) addFrames(frames []byte) {
	if !b.packets {
		b.buf = append(b.buf, frames...)
		return
	}
	if b.scan == nil {
		b.scan = frame.NewScanner(frame.ToCard, 0)
	}
	var f frame.Frame
	for len(frames) > 0 {
		frames = frames[b.scan.Feed(frames):]
		for b.scan.Next(&f) {
			b.add(&f.Header, f.Payload)
		}
	}
	b.scan.Drop()
}
