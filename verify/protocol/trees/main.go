// Command trees checks the protocol of trees of cards: driver/wire/TREES.md, on top of sections 4, 5
// and 8 of the specification. In small trees of two levels it visits every state that workers,
// network, leaf cards, root and owner can reach. If a property breaks, it prints a shortest path to
// the violation.
//
// The model follows the pages, and shares no code with the driver, the gateware's model or the tables.
package main

import "tributary/verify/protocol/explorer"

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

func main() { suite().Main() }

func suite() *explorer.Suite[config] {
	return &explorer.Suite[config]{Name: "trees", Usage: usage, Configs: configs, Properties: properties, Weakenings: weakenings, Rules: lastRule<<1 - 1,
		Search: func(c config, rules ruleSet, only string) explorer.Runner { return newSearch(c, rules, only) }}
}
