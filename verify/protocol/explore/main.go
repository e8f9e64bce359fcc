// Command explore checks the exactly-once protocol of sections 4, 5 and 8 of the specification.
// In small configurations it visits every state that workers, network, card and controller can
// reach. If a property breaks, it prints a shortest path to the violation.
//
// The model follows the specification, and shares no code with the driver, the gateware's model
// or the tables.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	exitBroken = 1
	exitUsage  = 2
)

const usage = `Explores every reachable state of the exactly-once protocol in small
configurations. If a property breaks, prints a shortest counterexample.

    go run ./verify/protocol/explore                              all configurations of the tests
    go run ./verify/protocol/explore -large                       also those that take minutes and gigabytes
    go run ./verify/protocol/explore -workers 3 -window 2         configurations of this size
    go run ./verify/protocol/explore -config restart              one configuration
    go run ./verify/protocol/explore -weaken no-bitmap            drop a rule, print a counterexample
    go run ./verify/protocol/explore -weaken no-bitmap -config partial
    go run ./verify/protocol/explore -list                        list configurations, properties, weakenings
    go run ./verify/protocol/explore -walk 7                      a random walk, for verify/protocol/walks

Exit status: 0 every property holds, 1 a property breaks, 2 usage error.

Flags:
`

// selection is the parsed command line.
type selection struct {
	config, weaken  string
	workers, window int
	limit           int
	large, list     bool
	walk            uint64
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command; it returns the exit status.
func run(args []string, out, errors io.Writer) int {
	var want selection
	flags := flag.NewFlagSet("explore", flag.ContinueOnError)
	flags.SetOutput(errors)
	flags.Usage = func() {
		fmt.Fprint(errors, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&want.config, "config", "", "explore only the configuration `NAME`")
	flags.StringVar(&want.weaken, "weaken", "", "drop or change the rule of the weakening `NAME`")
	flags.IntVar(&want.workers, "workers", 0, "only configurations with `N` workers in total")
	flags.IntVar(&want.window, "window", 0, "only configurations with a window of `W` chunks")
	flags.IntVar(&want.limit, "limit", 0, "stop after `STATES` states (0: no limit)")
	flags.BoolVar(&want.large, "large", false, "include the large configurations")
	flags.BoolVar(&want.list, "list", false, "list configurations, properties and weakenings")
	flags.Uint64Var(&want.walk, "walk", 0, "print the random walk of `SEED` through the card, in lines of JSON")
	if err := flags.Parse(args); err == flag.ErrHelp {
		return 0
	} else if err != nil {
		return exitUsage
	}
	if want.list {
		list(out)
		return 0
	}
	chosen, weak, err := want.choose()
	if flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(errors, "explore:", err)
		return exitUsage
	}
	if want.walk != 0 {
		if err := takeWalk(out, want.walk, weak.rules); err != nil {
			fmt.Fprintln(errors, "explore:", err)
			return exitBroken
		}
		return 0
	}
	return exploreAll(out, newWatch(errors), chosen, weak, want.limit)
}

// choose finds the selected configurations and weakening.
func (s *selection) choose() ([]config, weakening, error) {
	var weak weakening
	if s.weaken != "" {
		var ok bool
		if weak, ok = find(weakenings, func(w weakening) bool { return w.Name == s.weaken }); !ok {
			return nil, weak, fmt.Errorf("unknown weakening %q; see -list", s.weaken)
		}
	}
	name := s.config
	if name == "" && s.workers == 0 && s.window == 0 {
		name = weak.Config
	}
	var chosen []config
	for _, c := range configs {
		named := name == c.Name || name == "" && (!c.Large || s.large || s.workers != 0 || s.window != 0)
		if named && (s.workers == 0 || s.workers == c.members()) && (s.window == 0 || s.window == c.Window) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, weak, fmt.Errorf("no such configuration; see -list")
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
func exploreAll(out io.Writer, seen *watch, chosen []config, weak weakening, limit int) int {
	for _, c := range chosen {
		if weak.reshape != nil {
			weak.reshape(&c)
		}
		began := time.Now()
		found := explore(c, weak.rules, weak.Breaks, limit, seen)
		if found.broken != nil {
			fmt.Fprint(out, counterexample(c, weak, found))
			return exitBroken
		}
		verdict := "every property holds"
		if found.cut {
			verdict = "no violation found up to the limit of states"
		}
		fmt.Fprintf(out, "%-18s %9d states %10d steps, up to %2d from the start, %6.1f s: %s\n", c.Name,
			found.states, found.steps, found.depth, time.Since(began).Seconds(), verdict)
	}
	return 0
}

// counterexample formats the path to a broken property.
func counterexample(c config, weak weakening, found outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s; M = %d\n", c.Name, c.About, c.Modulus)
	if weak.Name != "" {
		fmt.Fprintf(&b, "weakened: %s\n", weak.Means)
	}
	fmt.Fprintf(&b, "\n%s\n", strings.Join(found.trace, "\n"))
	fmt.Fprintf(&b, "\nviolated: %s\n     %s\n", found.broken.property.Name, found.broken.how)
	fmt.Fprintf(&b, "property: %s\n", found.broken.property.Means)
	return b.String()
}

// list prints the configurations, properties and weakenings.
func list(out io.Writer) {
	fmt.Fprintln(out, "configurations (* large)")
	for _, c := range configs {
		large := " "
		if c.Large {
			large = "*"
		}
		fmt.Fprintf(out, " %s %-32s %s\n", large, c.Name, c.About)
	}
	fmt.Fprintln(out, "properties")
	for _, p := range properties {
		fmt.Fprintf(out, "   %-32s %s\n", p.Name, p.Means)
	}
	fmt.Fprintln(out, "weakenings")
	for _, w := range weakenings {
		breaks := w.Breaks.Name
		if w.Harmless != "" {
			breaks = "nothing"
		}
		fmt.Fprintf(out, "   %-32s %s (breaks: %s)\n", w.Name, w.Means, breaks)
	}
}
