// Command mutate measures how many mistakes the proofs and benches of the control logic detect.
// It injects mistakes into each leaf, one at a time, and counts those that make a check fail. Run
// it with `make mutate`; it takes an hour or more, and is not part of `make test`.
//
// It works in the root of the repository, after `make setup build`. Yosys makes the mutants
// ("mutate") from the elaborated leaf. It inverts one bit of a cell's port, makes it stuck, or
// inverts it when another bit is set. One build contains all mutants of a leaf and selects one by
// number; number 0 is the unmodified leaf, which must pass.
//
// A mutant goes through the leaf's proof, its cover statements, its benches and whole cards,
// until one fails. Any mutant left is compared with the leaf. If no output and no next state
// differs, for all inputs and all states that the proof allows, it is the same circuit. The
// others are survivors; survivors.txt explains each.
//
// It also applies the weakenings of the requested leaves, which are in weakenings.go: changes of a
// line that drop a rule. A check must notice each.
//
// The results are verify/gateware/mutate/recorded.json and weakenings.json, for this command, and
// RESULT.md, for readers. The command writes them after all requested leaves. After an interrupt it
// reuses the finished leaves in build/mutate.
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
	weakenedFile = "verify/gateware/mutate/weakenings.json"
	pageFile     = "verify/gateware/mutate/RESULT.md"
)

func main() {
	c := campaign{}
	leaves := flag.String("leaves", "", "do the leaves whose names match this `regexp` alone")
	flag.IntVar(&c.count, "count", 16, "mutants of a leaf")
	flag.IntVar(&c.seed, "seed", 1, "which mutants")
	flag.IntVar(&c.jobs, "jobs", runtime.NumCPU(), "leaves at once")
	only := flag.Bool("weakenings", false, "do the weakenings of these leaves alone, no mutants")
	flag.BoolVar(&c.again, "again", false, "also leaves that are done")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &c, *leaves, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run processes the leaves that match and their weakenings, and prints the page.
func run(ctx context.Context, c *campaign, leaves string, only bool) error {
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
	weak, err := c.weaken(ctx, match.MatchString)
	if err != nil {
		return err
	}
	var done []record
	if !only {
		if done, err = c.run(ctx, wanted); err != nil {
			return err
		}
	}
	return publish(done, weak)
}
