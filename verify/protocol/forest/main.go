// Command forest explores the rules of several trees: how chunks map to trees, and what happens when a tree
// dies (driver/wire/TREES.md, section 7). It visits every state of small configurations, breadth first. If a
// property breaks, it prints a shortest path to the violation.
//
// The model follows the page, and shares no code with the driver or the other explorers.
//
// Within an epoch a tree is what the other explorers check: contributions reach it once, and it sums
// those of all members with one VID. Members send, take sums, start reductions and give them back at
// their own pace.
package main

import "tributary/verify/protocol/explorer"

const usage = `Explores every reachable state of reductions over several small trees. If a
property breaks, prints a shortest counterexample.

    go run ./verify/protocol/forest                   all configurations
    go run ./verify/protocol/forest -config pair      one configuration
    go run ./verify/protocol/forest -weaken remake    drop a rule, print a counterexample
    go run ./verify/protocol/forest -list             list configurations, properties, weakenings

Exit status: 0 every property holds, 1 a property breaks, 2 usage error.

Flags:
`

func main() { suite().Main() }

func suite() *explorer.Suite[config] {
	return &explorer.Suite[config]{Name: "forest", Usage: usage, Configs: configs, Properties: properties, Weakenings: weakenings, Rules: lastRule<<1 - 1,
		Search: func(c config, rules ruleSet, only string) explorer.Runner { return newSearch(c, rules, only) }}
}
