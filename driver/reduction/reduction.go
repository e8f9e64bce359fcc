package reduction

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/npy"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// Reduction is one reduction of workers' arrays: New checks them, Sum sends them through a card,
// Finish makes the outcome. It is for one goroutine and one Sum.
type Reduction struct {
	opts     Options
	workers  []contribution
	format   wire.Format // of the arrays
	elements int         // per worker

	card     driver.Info
	cards    []driver.TreeCard // of SumTree; else nil
	nested   nesting           // of a tree of cards; else nil
	ranks    []int             // of the workers in that tree
	inputs   [][]byte          // per worker, as sent to the card
	sums     []byte            // as received from the card
	scaled   *scaled           // with Quantize
	report   *Report
	outages  *outageLog
	overdue  driver.Overdue // last reported
	partials []driver.Partial
}

// Outcome is the outcome of a reduction.
type Outcome struct {
	Sum      Arrays   // names and shapes are the first worker's; the type is TypeOf the card's result format, or float32 with Quantize
	Report   *Report  //
	Warnings []string // a sentence each: exceptions, and workers that were too late
}

// Run opens the card called name (see package driver), reduces the workers' arrays
// through it and closes it. further are options of driver.Open.
//
// Errors: those of New, driver.Open, Sum and Finish.
func Run(ctx context.Context, name string, workers []Arrays, o Options, further ...driver.Option) (*Outcome, error) {
	r, err := New(workers, o)
	if err != nil {
		return nil, err
	}
	needs := r.Needs()
	opts := []driver.Option{driver.WithTimeout(o.timeout()), driver.WithWorkers(needs.Workers), driver.WithFormat(needs.Format)}
	card, err := driver.Open(ctx, name, append(opts, further...)...)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(r.Sum(ctx, card), card.Close()); err != nil {
		return nil, err
	}
	return r.Finish(ctx)
}

// Reduce reduces the workers' arrays through an open card, and leaves it open. The arrays must not
// change during the call.
func Reduce(ctx context.Context, card *driver.Card, workers []Arrays, o Options) (*Outcome, error) {
	r, err := New(workers, o)
	if err != nil {
		return nil, err
	}
	if err := r.Sum(ctx, card); err != nil {
		return nil, err
	}
	return r.Finish(ctx)
}

// New makes the checks that need no card. All workers must have arrays of the same names, shapes
// and type, with at least one element. A worker's arrays count as one array, in their order.
//
// Errors: OptionError, ArraysError, FormatError.
func New(workers []Arrays, o Options) (*Reduction, error) {
	if len(workers) == 0 {
		return nil, &OptionError{Option: "workers", words: say("no arrays; pass those of at least one worker")}
	}
	if err := o.Check(len(workers)); err != nil {
		return nil, err
	}
	all, err := join(workers)
	if err != nil {
		return nil, err
	}
	format, err := formatOf(all[0], o.Format)
	if err != nil {
		return nil, err
	}
	if o.Quantize && format != wire.FP32 {
		return nil, wrongOption("quantize", "it needs float32, but the ${files} hold %s", format)
	}
	return &Reduction{opts: o, workers: all, format: format, elements: len(all[0].data) / all[0].element.Size(), outages: newOutageLog()}, nil
}

// Needs returns this reduction's requirements on a card.
func (r *Reduction) Needs() transport.Needs {
	n := transport.Needs{Workers: PortsNeeded(len(r.workers), r.opts.Ports), Format: r.format}
	if r.opts.Quantize {
		n.Format = wire.Int32
	}
	return n
}

// Elements returns the number of elements of each worker.
func (r *Reduction) Elements() int { return r.elements }

// Sum sets up a job on the card, sums the arrays and ends the job.
//
// Errors: CardError, NonfiniteError and ExceptionsError; driver.InputError for a chunk, a window,
// ports or a deadline that this card does not support; those of driver's Configure, ReduceBytes and
// Close.
func (r *Reduction) Sum(ctx context.Context, card *driver.Card) error {
	if card.IsTree() {
		r.nested = card.Nested
		for rank := range r.workers {
			r.ranks = append(r.ranks, rank)
		}
	}
	return r.sum(ctx, card, card.Info().Window, card.Configure)
}

// SumTree is Sum through a tree of cards. Worker n of New has the n-th rank of the tree.
//
// Errors: those of Sum; OptionError for Options.Ports and Options.Partial.
func (r *Reduction) SumTree(ctx context.Context, tree *driver.Tree) error {
	switch {
	case len(r.opts.Ports) > 0:
		return wrongOption("ports", "a tree places its workers itself; leave it out")
	case r.opts.Partial:
		return wrongOption("partial", "a tree of cards has no partial sums; leave it out")
	}
	r.cards, r.nested, r.ranks = tree.Cards(), tree.Nested, tree.Ranks()
	root, window := 0, 0
	for i, c := range r.cards {
		if c.Parent < 0 {
			root = i
		}
		if most := c.Card.Info().Window; window == 0 || most < window {
			window = most
		}
	}
	return r.sum(ctx, r.cards[root].Card, window, tree.Configure)
}

// sum sums the arrays by a job that configure sets up, with a window of so many chunks by default. The card
// is that of the job.
func (r *Reduction) sum(ctx context.Context, card *driver.Card, window int, configure func(context.Context, driver.JobConfig) (*driver.Job, error)) error {
	r.card = card.Info()
	if err := checkCard(r.card, r.format, r.opts); err != nil {
		return err
	}
	job, err := configure(ctx, r.jobConfig(window))
	if err != nil {
		return err
	}
	if err := r.prepare(job.Config()); err != nil {
		return err
	}
	if err := r.send(ctx, job); err != nil {
		return err
	}
	r.notePartials(job)
	if r.report.Exceptions, err = r.readExceptions(ctx, job); err != nil {
		return err
	}
	if err := job.Close(ctx); err != nil {
		return err
	}
	if r.report.Outages, err = r.outages.await(ctx, job.Outages()); err != nil {
		return err
	}
	return r.judge()
}

// jobConfig returns the job's parameters. It is the card's only job, so its window gets all slots.
func (r *Reduction) jobConfig(window int) driver.JobConfig {
	o := r.opts
	return driver.JobConfig{
		Workers: len(r.workers), Ports: o.Ports, Chunk: o.Chunk, Window: cmp.Or(o.Window, window),
		CarryOn: o.CarryOn, OnOutage: r.noteOutage,
		Deadline: o.Deadline, Partial: o.Partial, OnOverdue: r.noteOverdue,
	}
}

// prepare makes the card's inputs, and memory for its sums.
func (r *Reduction) prepare(job driver.JobConfig) error {
	r.sums = make([]byte, r.elements*element.Size(r.card.Result))
	if r.opts.Quantize {
		var err error
		if r.scaled, err = scale(r.workers, cmp.Or(r.opts.Block, job.Chunk)); err != nil {
			return err
		}
		r.inputs = r.scaled.integers
	} else {
		for _, w := range r.workers {
			r.inputs = append(r.inputs, w.data)
		}
	}
	r.report = r.newReport()
	return nil
}

// send streams the arrays through the card, and measures that if Options.Stats is set.
func (r *Reduction) send(ctx context.Context, job *driver.Job) error {
	var opts []driver.ReduceOption
	if r.opts.OnProgress != nil {
		opts = append(opts, driver.WithProgress(r.opts.OnProgress))
	}
	work := func() error { return job.ReduceBytes(ctx, r.sums, r.inputs, opts...) }
	if !r.opts.Stats {
		return work()
	}
	cards := []driver.TreeCard{{Card: job.Card(), Parent: -1}}
	if r.cards != nil {
		cards = r.cards
	}
	all, err := measureAll(ctx, cards, work)
	if err != nil {
		return err
	}
	r.report.Stats = newStats(job, cards, all)
	return nil
}

// noteOutage records an outage, and reports it to the caller.
func (r *Reduction) noteOutage(o driver.Outage) {
	if r.opts.OnOutage != nil {
		r.opts.OnOutage(o)
	}
	if o.Away != 0 {
		r.outages.add(Outage{Chunk: int(o.VID), Seconds: o.Away.Seconds()})
	}
}

// noteOverdue reports the workers for which the card waits, once until they or the chunk change.
func (r *Reduction) noteOverdue(o driver.Overdue) {
	if r.opts.OnOverdue == nil || o.VID == r.overdue.VID && slices.Equal(o.Ranks, r.overdue.Ranks) {
		return
	}
	r.overdue = driver.Overdue{VID: o.VID, Ranks: slices.Clone(o.Ranks)}
	r.opts.OnOverdue(o)
}

// Warnings returns, after Sum, a sentence for each kind of exception and for each set of late
// workers.
func (r *Reduction) Warnings() []string { return append(r.exceptionLines(), r.partialLines()...) }

// exceptionLines describes the card's counts, and the loss of counts in an outage.
func (r *Reduction) exceptionLines() []string {
	lines := r.report.Exceptions.lines(r.workers, r.nested != nil && len(r.cards) != 1)
	if n := len(r.report.Outages); n > 0 && r.report.Outages[n-1].Chunk > 0 {
		lines = append(lines, fmt.Sprintf("NaNs, infinities and overflows before chunk %d are not known, as the card was away", r.report.Outages[n-1].Chunk))
	}
	return lines
}

// judge returns an error for exceptions, with FailNonfinite.
func (r *Reduction) judge() error {
	lines := r.exceptionLines()
	if len(lines) == 0 || !r.opts.FailNonfinite {
		return nil
	}
	return &ExceptionsError{r.report.Exceptions, say("nothing was written, because of ${fail-nonfinite}:\n  %s", joinLines(lines))}
}

// Finish compares the sum with the model's if Options.Verify is set, and makes the outcome. Call it
// once, after a successful Sum; it does not need the card.
func (r *Reduction) Finish(ctx context.Context) (*Outcome, error) {
	if r.opts.Verify {
		if err := r.compareWithModel(ctx); err != nil {
			return nil, err
		}
		r.report.Verified = true
	}
	kept, result, err := r.result()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	first := r.workers[0]
	return &Outcome{
		Sum:      Arrays{Archive: first.archive, Tensors: cut(kept, result, first.tensors)},
		Report:   r.report,
		Warnings: r.Warnings(),
	}, nil
}

// result returns the elements of the outcome and their type.
func (r *Reduction) result() (npy.Type, []byte, error) {
	if r.opts.Quantize {
		return npy.Float32, r.scaled.restore(r.sums, r.opts.divisor(len(r.workers))), nil
	}
	if r.opts.Op == Mean {
		if err := r.card.Mean(r.sums, len(r.workers), r.partials...); err != nil {
			return keptAs[r.card.Result], nil, err
		}
	}
	return keptAs[r.card.Result], r.sums, nil
}
