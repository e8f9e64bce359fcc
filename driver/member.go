package driver

import (
	"context"
	"fmt"
	"unsafe"
)

// Member is one worker's view of a job.
type Member struct {
	job  *Job
	rank int
	call *call // of AllReduce

	// Guarded by Card.mu.
	next  uint32 // VID of the first chunk that it does not hold, when it is in no call
	busy  bool   // in a call
	stats MemberStats
}

// Rank returns the member's place in the job.
func (m *Member) Rank() int { return m.rank }

// AllReduce replaces buf by its sum with the buffers of all other members,
// which must call it too, with the same length. It returns when buf holds the
// sum. One call at a time per member; those of different members go side by
// side in goroutines of their own. Errors are those of Job.Reduce; after one,
// part of buf is summed and part is not.
func (m *Member) AllReduce(ctx context.Context, buf []float32) error {
	if len(buf) == 0 {
		return &InputError{fmt.Sprintf("buffer of rank %d", m.rank), "it is empty; a reduction has at least one element"}
	}
	if err := m.call.start(buf, false, buf); err != nil {
		return err
	}
	return m.call.run(ctx, nil)
}

// Reduce adds up inputs[r] over all ranks r into dst: the card's sum of the
// arrays, element by element. All arrays have dst's length, at least 1; dst may
// be one of the inputs. When Reduce fails dst holds sums in some places and
// nothing of use in others.
//
// Errors: InputError, EndedError, MissingError, TimeoutError, RefusedError,
// DiedError, ErrClosed, or one that wraps ctx's.
func (j *Job) Reduce(ctx context.Context, dst []float32, inputs [][]float32, opts ...ReduceOption) error {
	if err := j.checkArrays(dst, inputs); err != nil {
		return err
	}
	var o reduceOptions
	for _, f := range opts {
		f(&o)
	}
	if err := j.whole.start(dst, o.progress != nil, inputs...); err != nil {
		return err
	}
	return j.whole.run(ctx, o.progress)
}

// checkArrays refuses arrays that cannot be reduced.
func (j *Job) checkArrays(dst []float32, inputs [][]float32) error {
	if len(inputs) != len(j.members) {
		return &InputError{"inputs", fmt.Sprintf("%d arrays for a job of %d workers; every worker has one", len(inputs), len(j.members))}
	}
	if len(dst) == 0 {
		return &InputError{"result", "it is empty; a reduction has at least one element"}
	}
	for r, in := range inputs {
		what := fmt.Sprintf("array of worker %d", r)
		if len(in) != len(dst) {
			return &InputError{what, fmt.Sprintf("it has %d elements, the result %d; all arrays have the same length", len(in), len(dst))}
		}
		if overlaps(dst, in) {
			return &InputError{what, "it overlaps the result without being the same array; results would overwrite what is still to be sent"}
		}
	}
	return nil
}

// overlaps says whether two arrays of the same length share elements at
// different places.
func overlaps(a, b []float32) bool {
	pa, pb := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	size := uintptr(len(a)) * unsafe.Sizeof(a[0])
	return pa != pb && pa < pb+size && pb < pa+size
}

// MemberStats counts what a member's end of the protocol did.
type MemberStats struct {
	Sent       uint64 // chunks sent, each counted once
	Resent     uint64 // chunks sent again because the card lacked them
	Asked      uint64 // overdue results asked for
	Results    uint64 // results taken
	Duplicates uint64 // results that came again or were not waited for
	Refused    uint64 // refusals the card sent (late, early, not_ready, ...)
}

func (s *MemberStats) add(o *MemberStats) {
	s.Sent += o.Sent
	s.Resent += o.Resent
	s.Asked += o.Asked
	s.Results += o.Results
	s.Duplicates += o.Duplicates
	s.Refused += o.Refused
}

// Stats returns the member's counters since Configure.
func (m *Member) Stats() MemberStats {
	m.job.card.mu.Lock()
	defer m.job.card.mu.Unlock()
	return m.stats
}
