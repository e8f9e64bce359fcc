// Carry explores the rules by which a job outlives its card and its daemon: what the daemon and the
// members' libraries keep, how they stop, and where the next epoch begins (driver/daemon/SPEC.md).
//
//	go run ./verify/protocol/carry                  # the rules, in every small configuration
//	go run ./verify/protocol/carry -large           # adds configurations of half a million states and more
//	go run ./verify/protocol/carry -weaken no-stop  # leaves a rule out, prints how that fails
//	go run ./verify/protocol/carry -list            # configurations, properties and weakenings
//
// It visits every state of a small configuration, breadth first, and prints a shortest path to a
// violation, with exit status 1. It shares no code with the daemon, the driver or the other explorer.
//
// Within an epoch the exchange with the card is the one that the other explorer checks: packets are
// neither lost nor repeated here. A contribution reaches the card at once. The daemon sees a result
// when the card has summed it; it reaches each member later, in any order, or not before the epoch's
// end.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
)

func main() {
	weaken := flag.String("weaken", "", "leave out this rule, and print how that fails")
	only := flag.String("config", "", "explore this configuration alone")
	large := flag.Bool("large", false, "add the configurations of half a million states and more")
	list := flag.Bool("list", false, "list configurations, properties and weakenings")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "carry: %q is not a flag; carry -h lists them\n", flag.Arg(0))
		os.Exit(2)
	}
	switch {
	case *list:
		printList()
	case *weaken != "":
		i := slices.IndexFunc(weakenings, func(w weakening) bool { return w.name == *weaken })
		if i < 0 {
			fmt.Fprintf(os.Stderr, "carry: no weakening %q; carry -list names them\n", *weaken)
			os.Exit(2)
		}
		w := weakenings[i]
		found := explore(configOf(w.config), w.rules, w.breaks)
		fmt.Print(found.story())
		if found.broken == "" {
			fmt.Printf("%s in %s: %d states, no property is broken\n", w.name, w.config, found.states)
			return
		}
		os.Exit(1)
	default:
		for _, c := range configs {
			if *only != c.name && (*only != "" || c.large && !*large) {
				continue
			}
			found := explore(c, 0, "")
			fmt.Print(found.story())
			if found.broken != "" {
				os.Exit(1)
			}
			fmt.Printf("%-22s %8d states: every property holds\n", c.name, found.states)
		}
	}
}

func printList() {
	fmt.Println("configurations:")
	for _, c := range configs {
		fmt.Printf("  %-22s %s\n", c.name, c.about)
	}
	fmt.Println("\nproperties:")
	for _, p := range properties {
		fmt.Printf("  %-22s %s\n", p.name, p.holds)
	}
	fmt.Println("\nweakenings:")
	for _, w := range weakenings {
		fmt.Printf("  %-22s %s (%s)\n", w.name, w.means, w.config)
	}
}
