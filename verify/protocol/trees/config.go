package main

import (
	"fmt"

	"tributary/verify/protocol/explorer"
)

// Capacities of a state. They limit configurations, not the exploration.
const (
	maxWorkers = 4
	maxCards   = 3
	maxMembers = 3 // of one card
	maxSlots   = 4 // of one card
)

// death is what a card keeps when it dies. In each case its job is gone.
type death uint8

const (
	keeps   death = iota // its last epoch, as after a soft reset
	forgets              // nothing, as after a loss of power
	taken                // another owner has used it meanwhile: its last epoch is one later
)

// config is one setting to explore completely: a tree of two levels, the length of its stream, and
// how often each fault may strike. The network may always lose, repeat, reorder and delay packets,
// without bound.
type config struct {
	name, about string

	leaves []int // workers of each leaf card; worker numbers run on through the leaves
	direct int   // workers at the root, numbered after those
	window int   // W, in chunks
	mod    int   // modulus of VIDs; 2^32 in the protocol
	first  int   // absolute VID of the first chunk, at least 2W
	chunks int   // length of the stream

	beats    bool // sums, final sums and sendings upwards take time: other events fall inside
	lazy     bool // the sendings of workers are steps, so they can be late
	dataOnly bool // a worker repeats data and never asks, as a card does in a tree of three levels
	rogue    bool // the last worker breaks the rules at will
	earlier  bool // late packets of an earlier owner's tree of these cards arrive; it had the same epoch
	misfit   bool // the root was set up without the last leaf

	dying    []int // cards that may die
	deaths   int   // and how often altogether
	death    death
	restarts int // workers that may lose their state
	epochs   int // numbers of epochs that the owner may use

	large  bool // too slow for the tests; only the command explores it
	states int  // reachable states, up to the exchange of equal workers and leaves
}

// Heading returns what all explorers' configurations have.
func (c config) Heading() explorer.Heading {
	return explorer.Heading{Name: c.name, About: c.about, Note: fmt.Sprintf("; M = %d", c.mod), Large: c.large, States: c.states}
}

// root is the number of the root card. The leaves follow.
const root = 0

func (c *config) cards() int { return 1 + len(c.leaves) }

func (c *config) workers() int {
	n := c.direct
	for _, k := range c.leaves {
		n += k
	}
	return n
}

// honest reports whether a worker keeps the rules.
func (c *config) honest(worker int) bool { return !c.rogue || worker != c.workers()-1 }

// ranks is the set of all global ranks: TREE_RANKS.
func (c *config) ranks() uint8 { return 1<<c.workers() - 1 }

// end is the first VID after the stream.
func (c *config) end() int { return c.first + c.chunks }

// slots is the number of slots of a card: 2W.
func (c *config) slots() int { return 2 * c.window }

// lifetime is the life of a packet in chunks: it leaves the network when a card takes up a VID this
// far ahead of its own.
func (c *config) lifetime() int { return c.mod - 2*c.window }

// node is a member of a card: a worker, by its number, or a leaf, by leaf.
type node int8

func leaf(card int) node { return node(-card) }

func (n node) isLeaf() bool { return n < 0 }
func (n node) card() int    { return int(-n) }

// members returns the members of a card, in the order of their ranks there.
func (c *config) members(card int) []node {
	var members []node
	from, to := c.workers()-c.direct, c.workers()
	if card == root {
		for i := range c.leaves {
			members = append(members, leaf(i+1))
		}
	} else {
		from = 0
		for _, k := range c.leaves[:card-1] {
			from += k
		}
		to = from + c.leaves[card-1]
	}
	for i := from; i < to; i++ {
		members = append(members, node(i))
	}
	return members
}

func bit(i int) uint8 { return 1 << i }
