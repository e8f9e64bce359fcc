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

import "tributary/verify/protocol/explorer"

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

func main() { suite().Main() }

func suite() *explorer.Suite[config] {
	return &explorer.Suite[config]{Name: "hosts", Usage: usage, Configs: configs, Properties: properties, Weakenings: weakenings, Rules: lastRule<<1 - 1,
		Search: func(c config, rules ruleSet, only string) explorer.Runner { return newSearch(c, rules, only) }}
}
