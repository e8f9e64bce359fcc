package main

// reduce -deadline and -partial: who is late, and whose arrays are missing from
// which elements.

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tributary/driver"
	"tributary/driver/element"
)

// checkDeadline refuses flags that do not go together.
func (f *reduceFlags) checkDeadline() error {
	switch {
	case f.deadline < 0:
		return usagef("-deadline %s: it must be more than zero", f.deadline)
	case f.partial && f.deadline == 0:
		return usagef("-partial: -deadline is missing, after which sums are partial")
	case f.partial && f.quantize:
		return usagef("-partial: not with -quantize, whose scales are for all workers")
	case f.partial && f.verify:
		return usagef("-partial: not with -verify, which sums all workers' arrays")
	}
	return nil
}

// noteOverdue says for whom the card waits, once for as long as nothing changes.
func (r *reduction) noteOverdue(o driver.Overdue) {
	text := fmt.Sprintf("chunk %d waits for worker %s", o.VID, runs(o.Ranks))
	if text != r.overdue {
		r.overdue = text
		r.progress.say("%s: %s", r.command, text)
	}
}

// partialReport is a run of elements whose sums lack workers.
type partialReport struct {
	From    int   `json:"from"`    // elements, counted through all arrays of an archive
	To      int   `json:"to"`      // the first behind them
	Workers []int `json:"workers"` // that are in the sums
}

// notePartials keeps which sums lack whom.
func (r *reduction) notePartials(job *driver.Job) {
	r.partials = job.Partials()
	for _, p := range r.partials {
		r.report.Partial = append(r.report.Partial, partialReport{From: p.From, To: p.To, Workers: p.Ranks})
	}
	r.report.Evicted = job.Evicted()
}

// divide makes means of the sums: each is divided by the number of workers in it.
func (r *reduction) divide() error {
	size, done := element.Size(r.card.Result), 0
	var errs []error
	part := func(to, workers int) {
		errs = append(errs, r.card.Mean(r.sums[done*size:to*size], workers))
		done = to
	}
	for _, p := range r.partials {
		part(p.From, len(r.files))
		part(p.To, len(p.Ranks))
	}
	part(r.lengths, len(r.files))
	return errors.Join(errs...)
}

// partialLines says how many elements lack whom, a line for each set of workers,
// and who was left out in the end.
func (r *reduction) partialLines() []string {
	type lack struct {
		who      string
		elements int
		first    int
	}
	var lacks []lack
	for _, p := range r.partials {
		var who []string
		for worker, f := range r.files {
			if !slices.Contains(p.Ranks, worker) {
				who = append(who, f.path)
			}
		}
		names := strings.Join(who, ", ")
		at := slices.IndexFunc(lacks, func(l lack) bool { return l.who == names })
		if at < 0 {
			at = len(lacks)
			lacks = append(lacks, lack{who: names, first: p.From})
		}
		lacks[at].elements += p.To - p.From
	}
	var lines []string
	for _, l := range lacks {
		lines = append(lines, fmt.Sprintf("%d of %d elements of the sum lack %s, which came too late; the first is %s", l.elements, r.lengths, l.who, r.files[0].place(l.first)))
	}
	for _, worker := range r.report.Evicted {
		lines = append(lines, fmt.Sprintf("%s was left out in the end: it held the others up", r.files[worker].path))
	}
	return lines
}
