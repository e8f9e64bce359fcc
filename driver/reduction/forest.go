package reduction

// Reductions over several cards: each takes chunks, as a schedule says (TREES.md, section 7).

import (
	"context"

	"tributary/driver"
	"tributary/driver/schedule"
)

// Forest are the options of a reduction over several cards.
type Forest struct {
	Schedule schedule.Schedule // the card of each chunk, repeating; nil: in turn
	Move     bool              // go on without a card that dies
	OnMove   func(driver.Moved)
}

// SumForest is Sum over several cards. It excludes Options.Stats and CarryOn.
//
// Errors: those of Sum, OptionError, and those of driver.ConfigureForest.
func (r *Reduction) SumForest(ctx context.Context, cards []*driver.Card, o Forest) error {
	switch {
	case len(cards) == 0:
		return &driver.InputError{What: "trees", Why: "there are none; name at least one card"}
	case r.opts.Stats:
		return wrongOption("stats", "it needs one card")
	case r.opts.CarryOn > 0:
		return wrongOption("carry-on", "it needs one card; with several, use ${move}")
	}
	trees := make([]driver.ForestTree, len(cards))
	for i, card := range cards {
		trees[i] = card
		if err := checkCard(card.Info(), r.format, r.opts); err != nil {
			return err
		}
	}
	r.card = cards[0].Info()
	forest, err := driver.ConfigureForest(ctx, trees, driver.ForestConfig{
		Job: driver.JobConfig{
			Workers: len(r.workers), Ports: r.opts.Ports, Chunk: r.opts.Chunk, Window: r.opts.Window,
			Deadline: r.opts.Deadline, Partial: r.opts.Partial, OnOverdue: r.opts.OnOverdue,
		},
		Schedule: o.Schedule, Move: o.Move, OnMove: o.OnMove,
	})
	if err != nil {
		return err
	}
	if err := r.prepare(forest.Config().Job); err != nil {
		return err
	}
	var opts []driver.ReduceOption
	if r.opts.OnProgress != nil {
		opts = append(opts, driver.WithProgress(r.opts.OnProgress))
	}
	if err := forest.ReduceBytes(ctx, r.sums, r.inputs, opts...); err != nil {
		return err
	}
	r.setPartials(forest.Partials(), forest.Evicted())
	if err := r.readForestExceptions(ctx, forest); err != nil {
		return err
	}
	if err := forest.Close(ctx); err != nil {
		return err
	}
	return r.judge()
}

// readForestExceptions adds up the counts of all cards. The first of each kind is the first in the
// arrays.
func (r *Reduction) readForestExceptions(ctx context.Context, forest *driver.Forest) error {
	all, err := forest.Exceptions(ctx)
	if err != nil {
		return err
	}
	sum := &r.report.Exceptions
	for _, e := range all {
		at := forest.Locate(e, 0, r.sums, r.inputs)
		worker := e.NonfiniteIn.Rank
		sum.NonfiniteIn.add(newException(e.NonfiniteIn, at.NonfiniteIn), &worker)
		sum.NonfiniteOut.add(newException(e.NonfiniteOut, at.NonfiniteOut), nil)
		sum.Overflow.add(newException(e.Overflow, at.Overflow), nil)
	}
	return nil
}

// add adds the exceptions of another card, whose first one is of that worker.
func (x *Exception) add(o Exception, worker *int) {
	x.Count += min(o.Count, ^uint32(0)-x.Count)
	if o.Chunk != nil && (x.Chunk == nil || *o.Chunk < *x.Chunk) {
		x.Chunk, x.Element, x.Worker = o.Chunk, o.Element, worker
	}
}
