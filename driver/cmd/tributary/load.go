package main

// The load that tributary bench puts on a card.

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/reduction"
	"tributary/driver/wire"
)

const (
	// mostLoad limits the bytes of all arrays of a load.
	mostLoad = 64 << 20
	// warmShare is the share of the time for estimating how many elements fit into the rest.
	warmShare = 10
	// aloneRounds is the number of times that a register access and a chunk are timed alone.
	aloneRounds = 15
)

// load is a job with arrays as long as memory permits and known sums: each element comes from one
// worker, and is 0 for all others.
type load struct {
	card     *driver.Card
	job      *driver.Job
	info     driver.Info
	cfg      driver.JobConfig
	errs     io.Writer
	progress *progress

	inputs [][]byte
	sums   []byte
}

func newLoad(card *driver.Card, job *driver.Job, errs io.Writer) *load {
	return &load{card: card, job: job, info: card.Info(), cfg: job.Config(), errs: errs, progress: newProgress(io.Discard, 0)}
}

// value is element i of the sum.
func value(f wire.Format, i int) uint32 {
	n := 1 + i%8
	if f == wire.Int32 {
		return uint32(n)
	}
	return element.Round(f, float64(n))
}

// grow extends the arrays to n elements.
func (l *load) grow(n int) {
	size := element.Size(l.info.Format)
	l.inputs = make([][]byte, l.cfg.Workers)
	for w := range l.inputs {
		l.inputs[w] = make([]byte, n*size)
		for i := w; i < n; i += l.cfg.Workers {
			var bits [4]byte
			binary.LittleEndian.PutUint32(bits[:], value(l.info.Format, i))
			copy(l.inputs[w][i*size:], bits[:size])
		}
	}
	l.sums = make([]byte, n*element.Size(l.info.Result))
}

// length returns the arrays' number of elements.
func (l *load) length() int { return len(l.sums) / element.Size(l.info.Result) }

// longest returns the longest permitted length: whole chunks, at least one.
func (l *load) longest() int {
	each := l.cfg.Workers*element.Size(l.info.Format) + element.Size(l.info.Result)
	return max(1, mostLoad/each/l.cfg.Chunk) * l.cfg.Chunk
}

// reduce sums the first n elements.
func (l *load) reduce(ctx context.Context, n int, opts ...driver.ReduceOption) error {
	inputs := make([][]byte, len(l.inputs))
	for w, in := range l.inputs {
		inputs[w] = in[:n*element.Size(l.info.Format)]
	}
	return l.job.ReduceBytes(ctx, l.sums[:n*element.Size(l.info.Result)], inputs, opts...)
}

// verify checks the sums at the end of the arrays.
func (l *load) verify() error {
	for i := range l.length() {
		if have, want := element.At(l.info.Result, l.sums, i), value(l.info.Result, i); have != want {
			digits := 2 * element.Size(l.info.Result)
			return fmt.Errorf("card %s: element %d of a sum is 0x%0*x, must be 0x%0*x; see tributary selftest", l.info.Name, i, digits, have, digits, want)
		}
	}
	return nil
}

// warmUp reduces longer and longer arrays until one takes its share of the given time, and returns
// the number of elements that would take all of it. The driver's timers have adapted by then.
func (l *load) warmUp(ctx context.Context, t time.Duration) (elements int, err error) {
	for n := min(4*l.cfg.Window*l.cfg.Chunk, l.longest()); ; n = min(4*n, l.longest()) {
		l.grow(n)
		start := time.Now()
		if err := l.reduce(ctx, n); err != nil {
			return 0, err
		}
		took := time.Since(start)
		if took >= t/warmShare || n == l.longest() {
			chunks := max(1, int(float64(n/l.cfg.Chunk)*t.Seconds()/took.Seconds()))
			return chunks * l.cfg.Chunk, nil
		}
	}
}

// measure reduces the given number of elements of each worker; if it is 0, as many as the given
// time permits.
func (l *load) measure(ctx context.Context, t time.Duration, elements int) (*benchRun, error) {
	fitting, err := l.warmUp(ctx, t)
	if err != nil {
		return nil, err
	}
	if elements == 0 {
		elements = fitting
	}
	l.grow(min(elements, l.longest()))
	access, err := timeAlone(func() error {
		_, err := l.card.ReadRegister(ctx, wire.RegCycles)
		return err
	})
	if err != nil {
		return nil, err
	}
	chunk, err := timeAlone(func() error { return l.reduce(ctx, min(l.cfg.Chunk, elements)) })
	if err != nil {
		return nil, err
	}
	l.progress = newProgress(l.errs, elements)
	var did counts
	m, err := reduction.Measure(ctx, l.card, func() error {
		before, err := l.counts(ctx)
		if err != nil {
			return err
		}
		if err := l.reduceAll(ctx, elements); err != nil {
			return err
		}
		after, err := l.counts(ctx)
		did = after.since(before)
		return err
	})
	l.progress.close()
	if err != nil {
		return nil, err
	}
	if err := l.verify(); err != nil {
		return nil, err
	}
	return newBenchRun(l.info, l.cfg, elements, m, did, access, chunk), nil
}

// reduceAll reduces the given number of elements, one array after another.
func (l *load) reduceAll(ctx context.Context, elements int) error {
	for done := 0; done < elements; {
		n := min(l.length(), elements-done)
		if err := l.reduce(ctx, n, driver.WithProgress(func(part, _ int) { l.progress.set(done+part, elements) })); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// timeAlone returns the median duration of an action.
func timeAlone(do func() error) (time.Duration, error) {
	var times []time.Duration
	for range aloneRounds {
		start := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// counts holds the driver's counters.
type counts struct {
	member     driver.MemberStats
	link       driver.LinkStats
	congestion driver.CongestionStats
}

// counts reads the counters. It reads a register first: its reply means that all earlier bytes are
// counted.
func (l *load) counts(ctx context.Context) (counts, error) {
	_, err := l.card.ReadRegister(ctx, wire.RegCycles)
	return counts{l.job.Stats(), l.card.LinkStats(), l.job.Congestion()}, err
}

// since returns the measurement from an earlier count to this one.
func (c counts) since(before counts) counts {
	c.member.Sent -= before.member.Sent
	c.member.Resent -= before.member.Resent
	c.member.Asked -= before.member.Asked
	c.link.BytesIn -= before.link.BytesIn
	c.link.BytesOut -= before.link.BytesOut
	c.link.HeaderCRC -= before.link.HeaderCRC
	c.link.PayloadCRC -= before.link.PayloadCRC
	c.link.DatagramCRC -= before.link.DatagramCRC
	c.congestion = congestionSince(before.congestion, c.congestion)
	return c
}

// congestionSince returns what the congestion windows did from an earlier count to a later one.
func congestionSince(before, after driver.CongestionStats) driver.CongestionStats {
	windows := after.MeanWindow*float64(after.Results) - before.MeanWindow*float64(before.Results)
	after.Results -= before.Results
	after.Marked -= before.Marked
	after.Cuts -= before.Cuts
	after.Halvings -= before.Halvings
	after.MeanWindow = 0
	if after.Results > 0 {
		after.MeanWindow = windows / float64(after.Results)
	}
	return after
}
