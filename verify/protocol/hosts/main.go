// Command hosts checks the rules by which many hosts share a card on a network: owner, lease, commit,
// address table and joins (NETWORK.md, sections 3 to 5). It visits every state of small configurations
// breadth first. If a property breaks, it prints a shortest path to the violation.
//
// The model follows the specification, and shares no code with the driver, the gateware, the Go model or
// the other explorers.
//
// Every packet that a host has sent may reach the card again at any time, in any order. Reads of registers
// happen at once: each sending of an access has its own tag, so an answer is never taken for another one's.
// An answer that comes late is a process that acts late.
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

const usage = `Explores every reachable state of small networks of owners, members and a card.
If a property breaks, prints a shortest counterexample.

    go run ./verify/protocol/hosts                      all configurations of the tests
    go run ./verify/protocol/hosts -large               also those of a million states and more
    go run ./verify/protocol/hosts -config return       one configuration
    go run ./verify/protocol/hosts -weaken no-verify    drop a rule, print a counterexample
    go run ./verify/protocol/hosts -list                list configurations, properties, weakenings

Exit status: 0 every property holds, 1 a property breaks, 2 usage error.

Flags:
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the command; it returns the exit status.
func run(args []string, out, errors io.Writer) int {
	flags := flag.NewFlagSet("hosts", flag.ContinueOnError)
	flags.SetOutput(errors)
	flags.Usage = func() {
		fmt.Fprint(errors, usage)
		flags.PrintDefaults()
	}
	only := flags.String("config", "", "explore only the configuration `NAME`")
	weaken := flags.String("weaken", "", "drop or change the rule of the weakening `NAME`")
	large := flags.Bool("large", false, "include the large configurations")
	list := flags.Bool("list", false, "list configurations, properties and weakenings")
	if err := flags.Parse(args); err == flag.ErrHelp {
		return 0
	} else if err != nil {
		return exitUsage
	}
	if *list {
		printList(out)
		return 0
	}
	chosen, weak, err := choose(*only, *weaken, *large)
	if flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(errors, "hosts:", err)
		return exitUsage
	}
	return exploreAll(out, chosen, weak)
}

// choose finds the selected configurations and weakening.
func choose(only, weaken string, large bool) ([]config, weakening, error) {
	var weak weakening
	if weaken != "" {
		var known bool
		if weak, known = find(weakenings, func(w weakening) bool { return w.name == weaken }); !known {
			return nil, weak, fmt.Errorf("unknown weakening %q; see -list", weaken)
		}
		if only == "" {
			only = weak.config
		}
	}
	if only != "" {
		c, known := find(configs, func(c config) bool { return c.name == only })
		if !known {
			return nil, weak, fmt.Errorf("unknown configuration %q; see -list", only)
		}
		return []config{c}, weak, nil
	}
	var chosen []config
	for _, c := range configs {
		if large || !c.large {
			chosen = append(chosen, c)
		}
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
func exploreAll(out io.Writer, chosen []config, weak weakening) int {
	for _, c := range chosen {
		began := time.Now()
		found := explore(c, weak.rules, weak.breaks)
		if found.broken != "" {
			fmt.Fprint(out, counterexample(c, weak, found))
			return exitBroken
		}
		fmt.Fprintf(out, "%-20s %8d states, %5.1f s: every property holds\n", c.name, found.states, time.Since(began).Seconds())
	}
	return 0
}

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
