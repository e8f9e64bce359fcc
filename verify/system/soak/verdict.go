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

// verdict is what a job was given, what it made of it, and what is to be said of
// that.
type verdict struct {
	cfg      driver.JobConfig
	inputs   [][][]float32 // of each reduction and rank
	outcomes [][]*outcome  // nil where there was no call
	evicted  []int         // by the job's word, with those that left by themselves
	overdue  []driver.Overdue

	arrays      int64  // that are sums throughout
	partial     int64  // chunks whose sums lack somebody
	gone        []int  // ranks that the card evicted
	contributed uint64 // ranks that are in some sum
}

// outcome is what became of one rank's call.
type outcome struct {
	buffer   []float32
	partials []driver.Partial
	err      error
	killed   bool // on the way, as was planned
}

func newVerdict(cfg driver.JobConfig, plan []reduction, rng *rand.Rand) *verdict {
	v := &verdict{cfg: cfg, inputs: make([][][]float32, len(plan)), outcomes: make([][]*outcome, len(plan))}
	for i, p := range plan {
		v.inputs[i] = someArrays(rng, cfg.Workers, p.chunks*cfg.Chunk-p.short%cfg.Chunk)
		v.outcomes[i] = make([]*outcome, cfg.Workers)
	}
	return v
}

// judge says what is wrong with the job of a number, and with how its end went:
// first of all with its sums.
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

// judgeErrors holds the members' errors against what a job promises: none at all
// where nobody was killed. Where sums may be partial a member is evicted alone, and
// one that is killed leaves alone, while others are there. Else its death ends the
// job; where the card is away just then, that is told in a LostError. Members that
// keep one another waiting may all be evicted, which ends the job at the card: who
// missed the notice learns from a refusal that it is gone.
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

// last returns what became of a rank's last call; nil where it made none.
func (v *verdict) last(rank int) *outcome {
	var last *outcome
	for i := range v.outcomes {
		if o := v.outcomes[i][rank]; o != nil {
			last = o
		}
	}
	return last
}

// judgeNotices holds what OnOverdue was told against the job: its number, its
// chunks up to that of vid, and some of its ranks, but not all.
func (v *verdict) judgeNotices(number int, vid uint32) error {
	for _, o := range v.overdue {
		if v.cfg.DeadlineCycles == 0 || v.cfg.Partial || o.Job != number || o.VID-v.cfg.FirstVID >= vid-v.cfg.FirstVID ||
			len(o.Ranks) == 0 || len(o.Ranks) >= v.cfg.Workers || o.Ranks[len(o.Ranks)-1] >= v.cfg.Workers {
			return fmt.Errorf("job %d of chunks %d to %d and %d members was told %+v", number, v.cfg.FirstVID, vid-1, v.cfg.Workers, o)
		}
	}
	return nil
}
