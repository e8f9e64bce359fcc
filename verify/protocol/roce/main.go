// Command roce checks the protocol of cards under RoCEv2: driver/wire/ROCE.md. In small rings of ranks
// it visits every state that workers, queue pairs, network and card can reach. If a property breaks, it
// prints a shortest path to the violation.
//
// The model follows the page, and shares no code with the driver, the gateware or the card's model.
package main

import "tributary/verify/protocol/explorer"

const usage = `Explores every reachable state of small rings of RDMA endpoints around a
card. If a property breaks, prints a shortest counterexample.

    go run ./verify/protocol/roce                        all configurations of the tests
    go run ./verify/protocol/roce -large                 also those that take minutes
    go run ./verify/protocol/roce -config ring           one configuration
    go run ./verify/protocol/roce -weaken no-replay      drop a rule, print a counterexample
    go run ./verify/protocol/roce -weaken no-replay -config ring
    go run ./verify/protocol/roce -list                  list configurations, properties, weakenings

Exit status: 0 every property holds, 1 a property breaks, 2 usage error.

Flags:
`

func main() { suite().Main() }

func suite() *explorer.Suite[config] {
	return &explorer.Suite[config]{Name: "roce", Usage: usage, Configs: configs, Properties: properties, Weakenings: weakenings, Rules: lastRule<<1 - 1,
		Search: func(c config, rules ruleSet, only string) explorer.Runner { return newSearch(c, rules, only) }}
}
