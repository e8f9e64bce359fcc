package selftest

import (
	"context"
	"slices"
	"sync/atomic"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// spoiler flips a bit of a link, once armed, at regular distances in both directions.
type spoiler struct {
	armed   atomic.Bool
	out, in flips
}

// flipper is a link of bytes with a spoiler.
type flipper struct {
	transport.Conn
	*spoiler
}

// flips is one direction of a spoiler. One goroutine uses it.
type flips struct {
	every int // bytes from one flip to the next
	seen  int // bytes since the last one
	count atomic.Int64
}

// spoil flips the bits in b that are due.
func (f *flips) spoil(b []byte) {
	for i := range b {
		if f.seen++; f.seen == f.every {
			f.seen = 0
			b[i] ^= 1 << (f.count.Add(1) % 8)
		}
	}
}

func (f *flipper) Write(b []byte) (int, error) {
	if !f.armed.Load() {
		return f.Conn.Write(b)
	}
	spoiled := slices.Clone(b) // a Writer must not modify its argument
	f.out.spoil(spoiled)
	return f.Conn.Write(spoiled)
}

func (f *flipper) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if f.armed.Load() {
		f.in.spoil(b[:n])
	}
	return n, err
}

// flipChunks is the number of chunks summed over the spoiled link. flipsEach is the approximate
// number of flipped bits in each direction.
const (
	flipChunks = 64
	flipsEach  = 5
)

// runFlips sums over a link that flips bits.
func runFlips(ctx context.Context, name string, o Options, report func(Outcome)) error {
	conn, err := transport.OpenLink(ctx, name, transport.Needs{})
	if err != nil {
		return &driver.NoCardError{Name: name, Err: err}
	}
	link := &spoiler{}
	card, err := openOver(ctx, name, conn, link, o.Open)
	if err != nil {
		return err
	}
	defer card.Close()
	err = checkFlips(ctx, card, link)
	if ctx.Err() != nil {
		return err
	}
	report(Outcome{"flips", "a sum over a link that flips bits is right, and the flips are caught at both ends", err})
	return nil
}

func checkFlips(ctx context.Context, card *driver.Card, link *spoiler) error {
	s := newSubject(card)
	chunk, ports := s.smallChunk(), s.allPorts()
	inputs := s.wholeInputs(len(ports), flipChunks*chunk)
	before, err := caught(ctx, card)
	if err != nil {
		return err
	}
	job, err := card.Configure(ctx, driver.JobConfig{Ports: ports, Chunk: chunk})
	if err != nil {
		return err
	}
	data, _ := wire.KindData.Info()
	result, _ := wire.KindResult.Info()
	link.out.every = data.FrameBytes(s.inBytes()*chunk) * len(ports) * flipChunks / flipsEach
	link.in.every = result.FrameBytes(s.outBytes()*chunk) * flipChunks / flipsEach
	link.armed.Store(true)
	sum := make([]byte, flipChunks*chunk*s.outBytes())
	err = job.ReduceBytes(ctx, sum, inputs)
	link.armed.Store(false)
	if err != nil {
		return err
	}
	if err := job.Close(ctx); err != nil {
		return err
	}
	if err := s.compare(ports, sum, func(i int) uint32 { return s.wholeSum(len(ports), i) }); err != nil {
		return err
	}
	after, err := caught(ctx, card)
	if err != nil {
		return err
	}
	own := card.LinkStats()
	if out := link.out.count.Load(); out == 0 || after == before {
		return wrong("%d bits were flipped on the way to the card, its counters of damage rose by %d", out, after-before)
	}
	if in := link.in.count.Load(); in == 0 || own.HeaderCRC+own.PayloadCRC+own.Hunted+own.DatagramCRC == 0 {
		return wrong("%d bits were flipped on the way from the card, the driver saw none", in)
	}
	return nil
}

// caught returns the sum of the counters that count flipped bits.
func caught(ctx context.Context, card *driver.Card) (uint32, error) {
	counters, err := card.Counters(ctx)
	var sum uint32
	for _, c := range counters {
		switch c.Name {
		case "header_crc", "payload_crc", "hunted", "datagram_crc":
			sum += c.Value
		}
	}
	return sum, err
}
