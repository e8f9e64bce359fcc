package main

// What a card counted of NaNs, infinities and overflows, in words.

import (
	"context"
	"fmt"
	"strings"

	"tributary/driver"
)

// exceptionsReport is what a reduction met.
type exceptionsReport struct {
	NonfiniteIn  exceptionReport `json:"nonfinite_in"`  // chunks of contributions that held a NaN or an infinity
	NonfiniteOut exceptionReport `json:"nonfinite_out"` // elements of the sum that are a NaN or an infinity
	Overflow     exceptionReport `json:"overflow"`      // elements of the sum that overflowed
}

// exceptionReport is one kind of them. Where the first is is left out when there
// is none.
type exceptionReport struct {
	Count   uint32 `json:"count"`
	Chunk   *int   `json:"chunk,omitempty"`
	Worker  *int   `json:"worker,omitempty"` // of contributions
	Element *int   `json:"element,omitempty"`
}

// readExceptions asks the card what it counted, and finds the first of each kind
// in the arrays.
func (r *reduction) readExceptions(ctx context.Context, job *driver.Job) (exceptionsReport, error) {
	e, err := job.Exceptions(ctx)
	if err != nil || !e.Any() {
		return exceptionsReport{}, err
	}
	at := job.Locate(e, 0, r.sums, r.inputs)
	report := exceptionsReport{
		NonfiniteIn:  newExceptionReport(e.NonfiniteIn, at.NonfiniteIn),
		NonfiniteOut: newExceptionReport(e.NonfiniteOut, at.NonfiniteOut),
		Overflow:     newExceptionReport(e.Overflow, at.Overflow),
	}
	if at.NonfiniteIn != nil {
		report.NonfiniteIn.Worker = &e.NonfiniteIn.Rank
	}
	return report, nil
}

func newExceptionReport(e driver.Exception, at *driver.Place) exceptionReport {
	r := exceptionReport{Count: e.Count}
	if at != nil {
		r.Chunk, r.Element = &at.Chunk, &at.Element
	}
	return r
}

// lines says what was met, a sentence for each kind.
func (e exceptionsReport) lines(files []gradients) []string {
	var lines []string
	add := func(x exceptionReport, one, many string, file gradients, in string) {
		if x.Count == 0 {
			return
		}
		line := "1 " + one
		if x.Count > 1 {
			line = fmt.Sprintf("%d %s", x.Count, many)
		}
		if x.Element != nil {
			line += fmt.Sprintf("; the first in chunk %d: %s%s", *x.Chunk, file.place(*x.Element), in)
		}
		lines = append(lines, line)
	}
	worker := 0
	if e.NonfiniteIn.Worker != nil {
		worker = *e.NonfiniteIn.Worker
	}
	add(e.NonfiniteIn, "chunk of the inputs holds a NaN or an infinity", "chunks of the inputs hold a NaN or an infinity", files[worker], " in "+files[worker].path)
	add(e.Overflow, "element of the sum overflowed", "elements of the sum overflowed", files[0], "")
	if e.NonfiniteOut.Count == e.Overflow.Count {
		return lines // the same elements
	}
	add(e.NonfiniteOut, "element of the sum is a NaN or an infinity", "elements of the sum are a NaN or an infinity", files[0], "")
	return lines
}

func joinLines(lines []string) string { return strings.Join(lines, "\n  ") }
