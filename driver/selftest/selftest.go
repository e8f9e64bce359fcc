// Package selftest checks a card with questions whose answers are known.
//
// The answers for every format and sum are constants here, or follow from integers that
// add without rounding. Neither the model nor the card computes them. Each group of
// questions has its own connection:
//
//   - sums through the driver: every lane and port, the edges of the arithmetic, three
//     inputs at once, counted overflows, deadlines, as many jobs as the card holds;
//   - hand-made frames, which a card must refuse, count or repeat;
//   - sums over a link that flips bits.
//
// The card must not be in use. The questions add to its counters and change nothing else.
package selftest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tributary/driver"
)

// Options are the options of Run.
type Options struct {
	Timeout time.Duration   // for a card that does not reply
	Open    []driver.Option // for the driver's connections
}

// Outcome is the answer to one question.
type Outcome struct {
	Name string // short, for scripts
	What string // a sentence for people
	Err  error  // what is wrong; nil when the answer is right
}

// Run asks the card called name every question and reports each outcome as it comes. A wrong
// answer is an outcome. The error means that the card could not be opened or died, or that ctx
// ended.
func Run(ctx context.Context, name string, o Options, report func(Outcome)) error {
	groups := []func(context.Context, string, Options, func(Outcome)) error{runSums, runFrames, runFlips}
	for _, group := range groups {
		if err := group(ctx, name, o, report); err != nil {
			return err
		}
	}
	return nil
}

// sumTest is a question for an open card.
type sumTest struct {
	name, what string
	minPorts   int // fewer ports skip the question
	ask        func(ctx context.Context, s *subject) error
}

// jobsTest is the question for cards that can hold several jobs.
var jobsTest = sumTest{"jobs", "jobs that run side by side, begin and end do not affect one another's sums", 1, checkJobs}

var sumTests = []sumTest{
	{"lanes", "what one port sends comes back from every lane and beat, port by port", 1, checkLanes},
	{"ports", "whole numbers from all ports add up", 1, checkPorts},
	{"single", "extreme values pass a single port unchanged; every NaN comes back as the canonical one", 1, checkSingle},
	{"edges", "known sums at the edges of the arithmetic, in every lane of every pair of neighbouring ports", 2, checkEdges},
	{"order", "ties, cancellation and overflow between every three neighbouring ports, added in the order of the card's sum, or in any order", 3, checkOrder},
	{"far", "between four ports, ties that much smaller inputs break, or do not", 4, checkFar},
	{"counted", "overflows and NaNs are counted for each job, with the chunk and the rank of the first", 2, checkCounted},
	{"deadlines", "a chunk is summed without late ranks, and a rank that blocks the others is evicted", 2, checkDeadlines},
	{"sizes", "lengths around the boundaries of lane, beat, chunk and window", 1, checkSizes},
}

func runSums(ctx context.Context, name string, o Options, report func(Outcome)) error {
	card, err := driver.Open(ctx, name, o.Open...)
	if err != nil {
		return err
	}
	defer card.Close()
	if card.IsTree() {
		return &driver.InputError{What: "card", Why: name + " is a tree of cards, whose sums nest; test each of its cards by its own name"}
	}
	if card.IsShared() {
		return &driver.InputError{What: "card", Why: "tributary serve shares " + name + ", and the self-test needs a card to itself; end tributary serve, and name the card itself"}
	}
	if err := checkSum(card.Info()); err != nil {
		return err
	}
	tests := sumTests
	if card.Info().Jobs > 1 {
		tests = append(slices.Clone(tests), jobsTest)
	}
	for _, t := range tests {
		if card.Info().Ports < t.minPorts {
			continue
		}
		err := t.ask(ctx, newSubject(card))
		if ctx.Err() != nil {
			return err
		}
		report(Outcome{t.name, t.what, err})
		if err := card.Err(); err != nil {
			return err
		}
	}
	return card.Close()
}

// wrong returns the error for a wrong answer.
func wrong(format string, args ...any) error { return fmt.Errorf(format, args...) }

// check returns err if it is not nil, else a new error unless ok.
func check(err error, ok bool, format string, args ...any) error {
	if err != nil || ok {
		return err
	}
	return wrong(format, args...)
}
