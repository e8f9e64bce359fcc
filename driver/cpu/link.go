package cpu

import (
	"errors"
	"math"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// mostReplies is the number of replies that wait before the receiver stops reading.
const mostReplies = 16

// Link is the byte stream of a card, for calls from one goroutine at a time. The same bytes in the
// same pieces give the same bytes. Card.Serve runs one over a connection.
type Link struct {
	card    *Card
	scan    *frame.Scanner
	counted frame.Stats // that are in the card's counters
	frame   frame.Frame
	replies []frame.Header // that wait
}

// NewLink puts a byte stream around a card whose shell is "stream".
func NewLink(card *Card) (*Link, error) {
	cfg := card.Config()
	if cfg.Shell != wire.ShellStream {
		return nil, errors.New("cpu: the card has no byte stream")
	}
	return &Link{card: card, scan: frame.NewCardScanner(cfg.Chunk, cfg.Format), replies: make([]frame.Header, 0, mostReplies)}, nil
}

// Exchange processes bytes from the host, and appends every frame that the card then sends to dst.
func (l *Link) Exchange(dst, received []byte) []byte {
	for {
		received = received[l.scan.Feed(received):]
		for l.scan.Next(&l.frame) {
			l.card.lock()
			l.take()
			dst = l.send(dst, math.MaxInt)
			l.card.unlock()
		}
		if len(received) == 0 {
			break
		}
	}
	l.card.lock()
	defer l.card.unlock()
	l.count()
	return l.send(dst, math.MaxInt)
}

// Down reports that the link's host disconnected: it drops half a frame, and tells
// the card.
func (l *Link) Down() {
	l.card.lock()
	defer l.card.unlock()
	l.down()
}

// down is Down, for callers with the card's lock.
func (l *Link) down() {
	l.count()
	l.scan.Drop()
	l.card.engine.linkDown()
}

// isAccess reports whether the scanned frame is a register access.
func (l *Link) isAccess() bool {
	return l.frame.Kind == wire.KindRegRead || l.frame.Kind == wire.KindRegWrite
}

// take commits the scanned frame.
func (l *Link) take() {
	e, h := l.card.engine, &l.frame.Header
	if !l.isAccess() {
		port, _ := e.port(h.Job, h.Rank) // port 0 refuses a rank without a port
		e.handle(port, h, l.frame.Payload, l.frame.Bad)
		return
	}
	l.count()
	code, value := e.register(h.Kind == wire.KindRegWrite, h.VID, h.Mask)
	l.replies = append(l.replies, frame.Header{Kind: wire.KindReply, Code: code, VID: h.VID, Length: h.Length, Mask: value})
}

// count adds what the scanner has counted to the card's counters.
func (l *Link) count() {
	now, c := l.scan.Stats(), l.card.engine.counters
	for _, x := range []struct {
		to        counter
		now, then uint64
	}{
		{countFrames, now.Headers, l.counted.Headers},
		{countHunted, now.Hunted, l.counted.Hunted},
		{countHeaderCRC, now.HeaderCRC, l.counted.HeaderCRC},
		{refusals[wire.CodeBadVersion], now.BadVersion, l.counted.BadVersion},
		{refusals[wire.CodeBadKind], now.BadKind, l.counted.BadKind},
		{refusals[wire.CodeBadLength], now.BadLength, l.counted.BadLength},
	} {
		c[x.to] += uint32(x.now - x.then)
	}
	l.counted = now
}

// send appends frames that leave, until dst has most bytes or more. Replies go before the core's
// packets.
func (l *Link) send(dst []byte, most int) []byte {
	for i := range l.replies {
		dst = frame.Append(dst, &l.replies[i], nil)
	}
	l.replies = l.replies[:0]
	var h frame.Header
	for len(dst) < most {
		payload, ports := l.card.engine.next(AllPorts, &h)
		if ports == 0 {
			break
		}
		dst = frame.Append(dst, &h, payload)
	}
	return dst
}
