package driver

import (
	"context"
	"errors"
)

// JobConfig says how a job is set up. The zero value of a field means the
// default given there.
type JobConfig struct {
	Workers  int    // members of the job; default: as many as Ports, or all ports of the card
	Ports    []int  // their ports, ascending, rank r on Ports[r]; default: 0..Workers-1
	Chunk    int    // elements in a chunk, a multiple of the card's lanes; default: the card's
	Window   int    // chunks in flight, a power of two; default: the card's
	FirstVID uint32 // number of the first chunk; it only matters to tests of the wrap-around
}

// Job is a reduction that is set up on a card: n members who add up arrays
// together, chunk by chunk. Several reductions can follow one another on it.
//
// A call that fails, and one whose context ends, ends the job: the members no
// longer agree on where they are in its stream. Its calls then answer
// EndedError, and Configure sets up the next job at once.
type Job struct{}

// Configure sets up a job, after validating cfg against the card. A job that
// this Card had set up before is ended.
//
// Errors: InputError when cfg cannot be right; RefusedError, BusyError,
// TimeoutError, DiedError, ErrClosed, or ctx's.
func (c *Card) Configure(ctx context.Context, cfg JobConfig) (*Job, error) {
	return nil, errors.New("not there yet")
}

// Config returns the job's parameters with every default filled in.
func (j *Job) Config() JobConfig { return JobConfig{} }

// Epoch returns the epoch that tells this job from those before and after it.
func (j *Job) Epoch() uint16 { return 0 }

// Member returns the member of that rank, 0..Workers-1. It panics when there
// is none, like an index out of range.
func (j *Job) Member(rank int) *Member { return nil }

// Reduce adds up inputs[r] over all ranks r into dst: the card's sum of the
// arrays, element by element. All arrays have dst's length, at least 1; dst may
// be one of the inputs. When Reduce fails dst holds sums in some places and
// nothing of use in others.
//
// Errors: InputError, EndedError, MissingError, TimeoutError, RefusedError,
// DiedError, ErrClosed, or one that wraps ctx's.
func (j *Job) Reduce(ctx context.Context, dst []float32, inputs [][]float32, opts ...ReduceOption) error {
	return errors.New("not there yet")
}

// Stats returns the sum of the counters of all members.
func (j *Job) Stats() MemberStats { return MemberStats{} }

// Close finishes the job: it tells the card that every member holds its
// results, until the card has confirmed it. Members must not be in a call.
func (j *Job) Close(ctx context.Context) error { return errors.New("not there yet") }

// Abort ends the job at once, whatever its members are doing.
func (j *Job) Abort(ctx context.Context) error { return errors.New("not there yet") }

// Member is one worker's view of a job.
type Member struct{}

// Rank returns the member's place in the job.
func (m *Member) Rank() int { return 0 }

// AllReduce replaces buf by its sum with the buffers of all other members,
// which must call it too, with the same length. It returns when buf holds the
// sum. One call at a time per member; those of different members go side by
// side in goroutines of their own. Errors are those of Job.Reduce; after one,
// part of buf is summed and part is not.
func (m *Member) AllReduce(ctx context.Context, buf []float32) error {
	return errors.New("not there yet")
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

// Stats returns the member's counters since Configure.
func (m *Member) Stats() MemberStats { return MemberStats{} }
