package reduction

// A card's counts of NaNs, infinities and overflows, as text.

import (
	"context"
	"fmt"
	"strings"

	"tributary/driver"
)

// readExceptions reads the card's counts, and finds the first exception of each kind in the arrays.
func (r *Reduction) readExceptions(ctx context.Context, job *driver.Job) (Exceptions, error) {
	e, err := job.Exceptions(ctx)
	if err != nil || !e.Any() {
		return Exceptions{}, err
	}
	at := job.Locate(e, 0, r.sums, r.inputs)
	report := Exceptions{
		NonfiniteIn:  newException(e.NonfiniteIn, at.NonfiniteIn),
		NonfiniteOut: newException(e.NonfiniteOut, at.NonfiniteOut),
		Overflow:     newException(e.Overflow, at.Overflow),
	}
	if at.NonfiniteIn != nil {
		report.NonfiniteIn.Worker = &e.NonfiniteIn.Rank
	}
	return report, nil
}

func newException(e driver.Exception, at *driver.Place) Exception {
	r := Exception{Count: e.Count}
	if at != nil {
		r.Chunk, r.Element = &at.Chunk, &at.Element
	}
	return r
}

// lines returns a sentence for each kind.
//
// On a tree, what is not finite passes every level, and each counts it.
func (e Exceptions) lines(workers []contribution, tree bool) []string {
	var lines []string
	add := func(x Exception, one, many string, c contribution, in string) {
		if x.Count == 0 {
			return
		}
		line := "1 " + one
		if x.Count > 1 {
			line = fmt.Sprintf("%d %s", x.Count, many)
		}
		if x.Element != nil {
			line += fmt.Sprintf("; the first in chunk %d: %s%s", *x.Chunk, c.place(*x.Element), in)
		}
		lines = append(lines, line)
	}
	worker := 0
	if e.NonfiniteIn.Worker != nil {
		worker = *e.NonfiniteIn.Worker
	}
	inputs := "the inputs"
	if tree {
		inputs = "the inputs, and of the sums of cards below,"
	}
	add(e.NonfiniteIn, "chunk of "+inputs+" holds a NaN or an infinity", "chunks of "+inputs+" hold a NaN or an infinity", workers[worker], " in "+workers[worker].name)
	add(e.Overflow, "element of the sum overflowed", "elements of the sum overflowed", workers[0], "")
	if e.NonfiniteOut.Count == e.Overflow.Count {
		return lines // the same elements
	}
	add(e.NonfiniteOut, "element of the sum is a NaN or an infinity", "elements of the sum are a NaN or an infinity", workers[0], "")
	return lines
}

func joinLines(lines []string) string { return strings.Join(lines, "\n  ") }
