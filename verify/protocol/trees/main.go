// Command trees checks the protocol of trees of cards: driver/wire/TREES.md, on top of sections 4, 5
// and 8 of the specification. In small trees of two levels it visits every state that workers,
// network, leaf cards, root and owner can reach. If a property breaks, it prints a shortest path to
// the violation.
//
// The model follows the pages, and shares no code with the driver, the gateware's model or the tables.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	exitBroken = 1
	exitUsage  = 2
)

const usage = `Explores every reachable state of small trees of cards. If a property
breaks, prints a shortest counterexample.

    go run ./verify/protocol/trees                              all configurations of the tests
    go run ./verify/protocol/trees -large                       also those that take two minutes
    go run ./verify/protocol/trees -config leaf-dies            one configuration
    go run ./verify/protocol/trees -weaken final-of-any-vid     drop a rule, print a counterexample
    go run ./verify/protocol/trees -weaken final-of-any-vid -config two-two
    go run ./verify/protocol/trees -list                        list configurations, properties, weakenings

Exit status: 0 every property holds, 1 a property breaks, 2 usage error.

Flags:
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command; it returns the exit status.
func run(args []string, out, errors io.Writer) int {
	var only, weaken string
	var large, list bool
	flags := flag.NewFlagSet("trees", flag.ContinueOnError)
	flags.SetOutput(errors)
	flags.Usage = func() {
		fmt.Fprint(errors, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&only, "config", "", "explore only the configuration `NAME`")
	flags.StringVar(&weaken, "weaken", "", "drop or change the rule of the weakening `NAME`")
	flags.BoolVar(&large, "large", false, "include the large configurations")
	flags.BoolVar(&list, "list", false, "list configurations, properties and weakenings")
	if err := flags.Parse(args); err == flag.ErrHelp {
		return 0
	} else if err != nil {
		return exitUsage
	}
	if list {
		printList(out)
		return 0
	}
	chosen, weak, err := choose(only, weaken, large)
	if flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q; see -help", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(errors, "trees:", err)
		return exitUsage
	}
	return exploreAll(out, newWatch(errors), chosen, weak)
}

// choose finds the selected configurations and weakening.
func choose(only, weaken string, large bool) ([]config, weakening, error) {
	var weak weakening
	if weaken != "" {
		var ok bool
		if weak, ok = find(weakenings, func(w weakening) bool { return w.name == weaken }); !ok {
			return nil, weak, fmt.Errorf("unknown weakening %q; see -list", weaken)
		}
		if only == "" {
			only = weak.config
		}
	}
	var chosen []config
	for _, c := range configs {
		if only == c.name || only == "" && (!c.large || large) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, weak, fmt.Errorf("unknown configuration %q; see -list", only)
	}
	return chosen, weak, nil
}

// find returns the first element for which f holds.
func find[T any](all []T, f func(T) bool) (T, bool) {
	for _, e := range all {
		if f(e) {
			return e, true
		}
	}
	var none T
	return none, false
}

// exploreAll explores the configurations until a property breaks, and returns the exit status.
func exploreAll(out io.Writer, seen *watch, chosen []config, weak weakening) int {
	for _, c := range chosen {
		began := time.Now()
		found := explore(c, weak.rules, weak.breaks, seen)
		if found.broken != "" {
			fmt.Fprint(out, counterexample(c, weak, found))
			return exitBroken
		}
		fmt.Fprintf(out, "%-20s %8d states, %5.1f s: every property holds\n", c.name, found.states, time.Since(began).Seconds())
	}
	return 0
}

// printList prints the configurations, properties and weakenings.
func printList(out io.Writer) {
	fmt.Fprintln(out, "configurations (* large)")
	for _, c := range configs {
		large := " "
		if c.large {
			large = "*"
		}
		fmt.Fprintf(out, " %s %-24s %s\n", large, c.name, c.about)
	}
	fmt.Fprintln(out, "properties")
	for _, p := range properties {
		fmt.Fprintf(out, "   %-24s %s\n", p.name, p.holds)
	}
	fmt.Fprintln(out, "weakenings")
	for _, w := range weakenings {
		breaks := w.breaks
		if w.harmless != "" {
			breaks = "nothing"
		}
		fmt.Fprintf(out, "   %-24s %s (breaks: %s)\n", w.name, w.means, breaks)
	}
}
