package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"tributary/driver"
	"tributary/driver/wire"
)

// verdict holds the inputs and outcomes of a job, and the counts drawn from them.
type verdict struct {
	cfg      driver.JobConfig
	inputs   [][][]float32 // of each reduction and rank
	outcomes [][]*outcome  // nil without a call
	evicted  []int         // as the job reports, including members that left by themselves
	overdue  []driver.Overdue

	arrays      int64  // arrays of sums only
	partial     int64  // chunks whose sums lack a member
	gone        []int  // ranks that the card evicted
	contributed uint64 // ranks in any sum
}

// outcome is the result of one rank's call.
type outcome struct {
	buffer   []float32
	partials []driver.Partial
	err      error
	killed   bool // the plan cancelled the call
}

func newVerdict(cfg driver.JobConfig, plan []reduction, rng *rand.Rand) *verdict {
	v := &verdict{cfg: cfg, inputs: make([][][]float32, len(plan)), outcomes: make([][]*outcome, len(plan))}
	for i, p := range plan {
		v.inputs[i] = someArrays(rng, cfg.Workers, p.chunks*cfg.Chunk-p.short%cfg.Chunk)
		v.outcomes[i] = make([]*outcome, cfg.Workers)
	}
	return v
}

// judge checks the job with this number: its sums first, then its errors, notices and closing.
func (v *verdict) judge(number int, closed error) error {
	vid := v.cfg.FirstVID
	for i := range v.inputs {
		s := newSums(v.cfg, v.inputs[i], vid)
		for rank, o := range v.outcomes[i] {
			if o == nil {
				continue
			}
			if err := s.take(rank, o); err != nil {
				return fmt.Errorf("reduction %d, rank %d: %w", i, rank, err)
			}
			if o.err == nil {
				v.arrays++
			}
		}
		v.partial += s.partial
		v.contributed |= s.contributed
		vid += uint32(s.chunks())
	}
	return errors.Join(v.judgeErrors(closed), v.judgeNotices(number, vid))
}

// judgeErrors compares the members' errors with the job's promises. Without a killed call there
// is no error. With partial sums only the evicted member fails, and a killed member leaves alone
// while others remain. Otherwise its death ends the job, or gives a LostError if the card is
// away. Members that block each other may all be evicted, which ends the job at the card. A
// member that misses the notice learns of it from a refusal.
func (v *verdict) judgeErrors(closed error) error {
	left := 0 // members that left by themselves
	for _, o := range slices.Concat(v.outcomes...) {
		if o != nil && o.killed {
			left++
		}
	}
	ended := left > 0 && (!v.cfg.Partial || len(v.evicted) >= v.cfg.Workers-1)
	allowed := func(err error) bool {
		var over *driver.EndedError
		var refused *driver.RefusedError
		gone := v.cfg.Partial && errors.As(err, &refused) && refused.Code == wire.CodeBadJob
		return err == nil || gone || ended && (errors.As(err, &over) || errors.Is(err, context.Canceled))
	}
	for rank := range v.cfg.Workers {
		o := v.last(rank)
		if o == nil || o.killed || allowed(o.err) {
			continue
		}
		var out *driver.EvictedError
		if !v.cfg.Partial || !errors.As(o.err, &out) || out.Rank != rank || out.Err != nil || !slices.Contains(v.evicted, rank) {
			return fmt.Errorf("rank %d (evicted: %v): %w", rank, v.evicted, o.err)
		}
	}
	for _, rank := range v.evicted {
		if o := v.last(rank); o == nil || !o.killed {
			v.gone = append(v.gone, rank)
		}
	}
	if !v.cfg.Partial && len(v.evicted) > 0 {
		return fmt.Errorf("ranks %v were evicted from a job whose sums are whole", v.evicted)
	}
	if !allowed(closed) {
		return fmt.Errorf("close: %w", closed)
	}
	return nil
}

// last returns the outcome of a rank's last call, or nil without one.
func (v *verdict) last(rank int) *outcome {
	var last *outcome
	for i := range v.outcomes {
		if o := v.outcomes[i][rank]; o != nil {
			last = o
		}
	}
	return last
}

// judgeNotices checks the calls of OnOverdue: the job's number, a chunk up to that of vid, and
// some of the ranks, but not all.
func (v *verdict) judgeNotices(number int, vid uint32) error {
	for _, o := range v.overdue {
		if v.cfg.DeadlineCycles == 0 || v.cfg.Partial || o.Job != number || o.VID-v.cfg.FirstVID >= vid-v.cfg.FirstVID ||
			len(o.Ranks) == 0 || len(o.Ranks) >= v.cfg.Workers || o.Ranks[len(o.Ranks)-1] >= v.cfg.Workers {
			return fmt.Errorf("job %d of chunks %d to %d and %d members received the notice %+v", number, v.cfg.FirstVID, vid-1, v.cfg.Workers, o)
		}
	}
	return nil
}
