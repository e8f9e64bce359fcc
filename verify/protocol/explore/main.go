// Command explore checks the exactly-once protocol of sections 4, 5 and 8 of the specification.
// In small configurations it visits every state that workers, network, card and controller can
// reach. If a property breaks, it prints a shortest path to the violation.
//
// The model follows the specification, and shares no code with the driver, the gateware's model
// or the tables.
package main

import (
	"fmt"
	"io"

	"tributary/verify/protocol/explorer"
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

func main() { suite().Main() }

func suite() *explorer.Suite[config] {
	var workers, window, limit int
	var walk uint64
	return &explorer.Suite[config]{Name: "explore", Usage: usage, Column: 32,
		Configs: configs, Properties: properties, Weakenings: weakenings, Rules: lastRule<<1 - 1,
		Search: func(c config, rules ruleSet, only string) explorer.Runner { return newSearch(c, rules, only, limit) },
		Flags: func(flags explorer.Flags) {
			flags.IntVar(&workers, "workers", 0, "only configurations with `N` workers in total")
			flags.IntVar(&window, "window", 0, "only configurations with a window of `W` chunks")
			flags.IntVar(&limit, "limit", 0, "stop after `STATES` states (0: no limit)")
			flags.Uint64Var(&walk, "walk", 0, "print the random walk of `SEED` through the card, in lines of JSON")
		},
		Narrow: func() func(config) bool {
			if workers == 0 && window == 0 {
				return nil
			}
			return func(c config) bool {
				return (workers == 0 || workers == c.members()) && (window == 0 || window == c.Window)
			}
		},
		Instead: func(out io.Writer, rules ruleSet) (bool, error) {
			if walk == 0 {
				return false, nil
			}
			return true, takeWalk(out, walk, rules)
		},
		Line: func(name string, found explorer.Outcome, seconds float64) string {
			return fmt.Sprintf("%-18s %9d states %10d steps, up to %2d from the start, %6.1f s", name, found.States, found.Steps, found.Depth, seconds)
		}}
}
