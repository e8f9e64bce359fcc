// Command carry explores the rules by which a job outlives its card and its daemon: what the daemon and the
// members' libraries keep, how they stop, and where the next epoch begins (driver/daemon/SPEC.md). It visits
// every state of small configurations, breadth first. If a property breaks, it prints a shortest path to the
// violation.
//
// The model follows the specification, and shares no code with the daemon, the driver or the other explorers.
//
// Within an epoch the exchange with the card is the one that verify/protocol/explore checks: packets are
// neither lost nor repeated here. A contribution reaches the card at once. The daemon sees a result
// when the card has summed it; it reaches each member later, in any order, or not before the epoch's
// end.
package main

import "tributary/verify/protocol/explorer"

const usage = `Explores every reachable state of small jobs whose card, daemon and members
die. If a property breaks, prints a shortest counterexample.

    go run ./verify/protocol/carry                    all configurations of the tests
    go run ./verify/protocol/carry -large             also those of half a million states and more
    go run ./verify/protocol/carry -config window     one configuration
    go run ./verify/protocol/carry -weaken no-stop    drop a rule, print a counterexample
    go run ./verify/protocol/carry -list              list configurations, properties, weakenings

Exit status: 0 every property holds, 1 a property breaks, 2 usage error.

Flags:
`

func main() { suite().Main() }

func suite() *explorer.Suite[config] {
	return &explorer.Suite[config]{Name: "carry", Usage: usage, Configs: configs, Properties: properties, Weakenings: weakenings, Rules: lastRule<<1 - 1,
		Search: func(c config, rules ruleSet, only string) explorer.Runner { return newSearch(c, rules, only) }}
}
