package main

import "tributary/verify/protocol/explorer"

// Capacities of a state. They limit configurations, not the exploration.
const (
	maxRanks = 4
	maxSlots = 8
	maxQueue = 16 // packets on one cable
	maxVIDs  = 30
)

// config is one setting to explore completely: ranks, their messages, and what the network does.
//
// An open network loses, repeats, reorders and delays every packet without bound. Timers then need no
// steps: a repeat is a packet that arrives again. In an ordered network packets keep their order on
// each cable, faults are counted, and NAKs and repeats have their causes.
type config struct {
	name, about string

	ranks    int  // rank i sends on connection i, to rank i + 1
	pairs    bool // ... or ranks 0 and 1 to each other, and 2 and 3
	packets  int  // P, in a message
	credits  int  // C, messages in flight
	messages int  // of each rank
	window   int  // W: a power of two, at least C · P
	mod      int  // modulus of PSNs, 2^24 in the protocol; 0: they do not wrap

	oldest   bool // senders repeat their oldest PSN alone, instead of all from there on
	asked    bool // receivers send ACKs only for packets with AckReq: the last of a message, and repeats
	inPlace  bool // the sum overwrites the contribution, so a late repeat carries the sum
	lag      bool // the card releases sums later than it makes them
	damage   bool // the network damages payloads
	strays   bool // ... and QPNs, which then name other connections
	ends     bool // the job may end at any moment: by its owner, or by the lease
	reckless bool // rank 0 posts all messages at once

	ordered bool // and how often each fault may strike there:
	losses  int  // a packet is lost
	others  int  // a packet is repeated, or overtakes the one before
	timers  int  // a timer expires though something else can still happen

	large  bool // too slow for the tests; only the command explores it
	states int  // reachable states
}

// Heading returns what all explorers' configurations have.
func (c config) Heading() explorer.Heading {
	return explorer.Heading{Name: c.name, About: c.about, Large: c.large, States: c.states}
}

// end is the first VID after the last message.
func (c *config) end() int { return c.messages * c.packets }

// slots is the number of slots of the job: 2W.
func (c *config) slots() int { return 2 * c.window }

// field returns a VID as packets carry it: a PSN, for a first PSN of 0.
func (c *config) field(vid int) int {
	if c.mod == 0 {
		return vid
	}
	return (vid%c.mod + c.mod) % c.mod
}

// ahead returns how far PSN a is ahead of PSN b: negative if it is behind.
func (c *config) ahead(a, b int) int {
	d := a - b
	if c.mod != 0 {
		d = (d%c.mod + c.mod) % c.mod
		if d >= c.mod/2 {
			d -= c.mod
		}
	}
	return d
}

// receiver is the rank to which a connection leads.
func (c *config) receiver(conn int) int {
	if c.pairs {
		return conn ^ 1
	}
	return (conn + 1) % c.ranks
}

// from is the connection on which a rank receives.
func (c *config) from(rank int) int {
	for conn := range c.ranks {
		if c.receiver(conn) == rank {
			return conn
		}
	}
	panic("roce: a rank without a connection to it")
}

// honest reports whether a rank keeps its window.
func (c *config) honest(rank int) bool { return !c.reckless || rank != 0 }

// all is the set of all ranks, and of all connections.
func (c *config) all() uint8 { return 1<<c.ranks - 1 }

func bit(i int) uint8 { return 1 << i }
