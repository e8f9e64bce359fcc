// Command mutate measures what the proofs and benches of control would notice: it
// puts mistakes into each leaf, one at a time, and counts those that something
// fails for. `make mutate` runs it; it takes an hour or more, and is
// no part of make test.
//
// It works in the root of the repository, after `make setup build`. Yosys makes
// the mutants ("mutate"): of one cell of the leaf as it is elaborated, one bit of
// a port is inverted, stuck, or inverted when another bit is set. All mutants of a
// leaf are in one build of it, which a number chooses among; with the number 0,
// none, everything must pass.
//
// A mutant meets, until something fails: the leaf's proof, its cover
// statements, its benches, and whole cards. What they leave is compared with the
// leaf itself: where no output and no next state differs, whatever the inputs
// and the state that the proof allows, it is the same circuit. What remains is a survivor:
// survivors.txt says of each why nothing fails.
//
// The result is verify/gateware/mutate/recorded.json, for this command, and RESULT.md, for
// people. They are written when all that was asked for is done; leaves that were
// done before an interrupt, in build/mutate, are not done again.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
)

const (
	folder       = "build/mutate" // a folder for each leaf
	recordedFile = "verify/gateware/mutate/recorded.json"
	pageFile     = "verify/gateware/mutate/RESULT.md"
)

func main() {
	c := campaign{}
	leaves := flag.String("leaves", "", "do the leaves whose names match this `regexp` alone")
	flag.IntVar(&c.count, "count", 16, "mutants of a leaf")
	flag.IntVar(&c.seed, "seed", 1, "which mutants")
	flag.IntVar(&c.jobs, "jobs", runtime.NumCPU(), "leaves at once")
	flag.BoolVar(&c.again, "again", false, "also leaves that are done")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &c, *leaves); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run does the leaves that match, and prints the page.
func run(ctx context.Context, c *campaign, leaves string) error {
	match, err := regexp.Compile(leaves)
	if err != nil {
		return err
	}
	var wanted []leaf
	for _, l := range campaignLeaves {
		if match.MatchString(l.name) {
			wanted = append(wanted, l)
		}
	}
	if len(wanted) == 0 {
		return fmt.Errorf("no leaf's name matches %q", leaves)
	}
	if c.root, err = os.Getwd(); err != nil {
		return err
	}
	done, err := c.run(ctx, wanted)
	if err != nil {
		return err
	}
	return publish(done)
}
