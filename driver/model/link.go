// The shell "stream": a card behind one byte stream, shared by all ranks of a host.

package model

import (
	"errors"

	"tributary/driver/wire"
)

// maxReplies is how many replies may wait for the sender before the receiver stops.
const maxReplies = 16

// Link is the byte stream of a card, for calls from one goroutine at a time. The same bytes in the
// same pieces give the same bytes. Serve runs one over a connection.
type Link struct {
	card    *Card
	decoder decoder
	replies []Header // waiting replies, in the order of the accesses
	in, out Packet   // reused for their memory
}

// NewLink puts a byte stream around a card whose shell is "stream".
func NewLink(card *Card) (*Link, error) {
	if card.cfg.Shell != wire.ShellStream {
		return nil, errors.New("model: the card's shell has no byte stream")
	}
	return &Link{card: card, decoder: newDecoder(card.cfg, card.counters)}, nil
}

// Exchange processes bytes from the host and appends every frame that the card then sends to dst.
func (l *Link) Exchange(dst, received []byte) []byte {
	for len(received) > 0 {
		n := copy(l.decoder.space(), received)
		l.decoder.advance(n)
		received = received[n:]
		for l.decoder.next(&l.in) {
			l.take(&l.in)
			l.card.Reduce()
			for l.next(&l.out) {
				dst = AppendFrame(dst, &l.out)
			}
		}
	}
	return dst
}

// Down reports that the link's host disconnected: it drops half a frame, and informs the card.
func (l *Link) Down() {
	l.decoder.drop()
	l.replies = l.replies[:0]
	l.card.LinkDown()
}

// take passes a packet to the register bus, or to the port of its rank. A rank without a port goes
// to port 0, which refuses it.
func (l *Link) take(p *Packet) {
	if p.Kind == wire.KindRegRead || p.Kind == wire.KindRegWrite {
		code, value := l.card.Register(p.Kind == wire.KindRegWrite, p.VID, p.Mask)
		l.replies = append(l.replies, replyTo(&p.Header, code, value))
		return
	}
	port, _ := l.card.PortOf(p.Job, p.Rank)
	l.card.Handle(port, p)
}

// next returns the next packet that leaves: replies first, then the core's packets.
func (l *Link) next(p *Packet) bool {
	if len(l.replies) > 0 {
		*p = Packet{Header: l.replies[0], Payload: p.Payload[:0]}
		l.replies = append(l.replies[:0], l.replies[1:]...)
		return true
	}
	_, ok := l.card.Next(AllPorts, p)
	return ok
}

// pending reports whether next has a packet.
func (l *Link) pending() bool { return len(l.replies) > 0 || l.card.Pending() }
