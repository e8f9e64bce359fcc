// Package bench measures the operations of a collective and checks their results.
//
// Every member calls Measure with the same arguments. Times and wrong elements are exchanged by the
// collective itself. Columns and factors are those of nccl-tests.
package bench

import (
	"context"
	"encoding/binary"
	"time"

	"tributary/driver/collective"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// Case is what is measured.
type Case struct {
	Operation collective.Operation
	Format    wire.Format
	Elements  int // of the whole array; at least 1
	Root      int // of a broadcast, else 0
}

// Bytes returns the size of the whole array.
func (k Case) Bytes() int { return k.Elements * element.Size(k.Format) }

// Options are the same on all members.
type Options struct {
	Warmup     int           // calls before those that are timed
	Iterations int           // timed calls, at least 1
	Check      bool          // make one more call and check its result
	Timeout    time.Duration // of each call; 0 means none
	Seed       uint64        // of the arrays
}

// Result is the outcome for all members.
type Result struct {
	Time  time.Duration // of a call: the mean over calls and members
	Wrong int           // elements of results, summed over all members; 0 without Options.Check

	// Of this member, in one call; see collective.Stats. A mean over the timed calls.
	Steps, Sent, Received float64
}

// BusFactor is the factor between the two bandwidths of nccl-tests: bus bandwidth is what the slowest
// link carries where the operation is bound by bandwidth, whatever the number of members.
//
// Source: nccl-tests, doc/PERFORMANCE.md.
func BusFactor(o collective.Operation, members int) float64 {
	n := float64(members)
	switch o {
	case collective.AllReduceOp:
		return 2 * (n - 1) / n
	case collective.ReduceScatterOp, collective.AllGatherOp:
		return (n - 1) / n
	}
	return 1
}

// AlgorithmBandwidth returns the bytes of the whole array over the time of a call, in bytes a second.
func (r Result) AlgorithmBandwidth(k Case) float64 { return float64(k.Bytes()) / r.Time.Seconds() }

// Measure runs a case on this member. Its errors are those of the collective.
func Measure(ctx context.Context, c collective.Collective, k Case, o Options) (Result, error) {
	b := newRun(c, k, o)
	for range o.Warmup {
		if err := b.call(ctx); err != nil {
			return Result{}, err
		}
	}
	if _, err := b.exchange(ctx, 0, 0); err != nil { // all members start to measure together
		return Result{}, err
	}
	before, began := c.Stats(), time.Now()
	for range o.Iterations {
		if err := b.call(ctx); err != nil {
			return Result{}, err
		}
	}
	took, after := time.Since(began), c.Stats()
	wrong, err := b.check(ctx)
	if err != nil {
		return Result{}, err
	}
	r, err := b.exchange(ctx, took/time.Duration(o.Iterations), wrong)
	per := func(after, before uint64) float64 { return float64(after-before) / float64(o.Iterations) }
	r.Steps, r.Sent, r.Received = per(after.Steps, before.Steps), per(after.Sent, before.Sent), per(after.Received, before.Received)
	return r, err
}

// run is a case on one member.
type run struct {
	Case
	Options
	c        collective.Collective
	group    collective.Group
	src, dst []byte // the same array for a broadcast
}

func newRun(c collective.Collective, k Case, o Options) *run {
	b := &run{Case: k, Options: o, c: c, group: c.Group()}
	group := &b.group
	from, to := collective.Piece(group.Rank, group.Size(), k.Elements)
	in, out := k.Elements, k.Elements
	switch k.Operation {
	case collective.ReduceScatterOp:
		out = to - from
	case collective.AllGatherOp:
		in = to - from
	}
	size := element.Size(k.Format)
	b.dst = make([]byte, out*size)
	switch {
	case k.Operation != collective.BroadcastOp:
		b.src = make([]byte, in*size)
	case group.Rank == k.Root:
		b.src = b.dst
	}
	b.fill(b.src)
	return b
}

// call makes one call.
func (b *run) call(ctx context.Context) error {
	if b.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.Timeout)
		defer cancel()
	}
	switch b.Operation {
	case collective.ReduceScatterOp:
		return b.c.ReduceScatter(ctx, b.Format, b.dst, b.src)
	case collective.AllGatherOp:
		return b.c.AllGather(ctx, b.Format, b.dst, b.src)
	case collective.BroadcastOp:
		return b.c.Broadcast(ctx, b.Format, b.dst, b.Root)
	}
	return b.c.AllReduce(ctx, b.Format, b.dst, b.src)
}

// check makes a call into an array where every element is wrong, and returns how many still are.
func (b *run) check(ctx context.Context) (wrong int, err error) {
	if !b.Check {
		return 0, nil
	}
	want := b.want()
	if b.Operation != collective.BroadcastOp || b.group.Rank != b.Root {
		for i, x := range want {
			b.dst[i] = ^x
		}
	}
	if err := b.call(ctx); err != nil {
		return 0, err
	}
	for i := range len(want) / element.Size(b.Format) {
		if element.At(b.Format, want, i) != element.At(b.Format, b.dst, i) {
			wrong++
		}
	}
	return wrong, nil
}

// exchange returns the mean of all members' times and the sum of their wrong elements.
func (b *run) exchange(ctx context.Context, took time.Duration, wrong int) (r Result, err error) {
	const own = 16 // bytes: two numbers, each as two int32
	members := b.group.Size()
	src, dst := make([]byte, own), make([]byte, own*members)
	binary.LittleEndian.PutUint64(src, uint64(took))
	binary.LittleEndian.PutUint64(src[8:], uint64(wrong))
	gather := &run{Case: Case{Operation: collective.AllGatherOp, Format: wire.Int32}, Options: b.Options, c: b.c, src: src, dst: dst}
	if err := gather.call(ctx); err != nil {
		return r, err
	}
	var total float64
	for all := dst; len(all) > 0; all = all[own:] {
		total += float64(binary.LittleEndian.Uint64(all))
		r.Wrong += int(binary.LittleEndian.Uint64(all[8:]))
	}
	r.Time = time.Duration(total / float64(members))
	return r, nil
}
