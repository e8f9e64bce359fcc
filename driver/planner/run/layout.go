// Package run carries plans out on cards (driver/planner/README.md, section Run): each switch that sums,
// and each server, is a card; each tree of the plan is a tree of cards, and together they are a forest.
// Layout says which card does what, Session runs it, and moves to another plan.
package run

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"time"

	"tributary/driver/element"
	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
	"tributary/driver/schedule"
	"tributary/driver/wire"
)

// Options are those of cards and jobs.
type Options struct {
	// Scheme is that of cards made to order, "cpu" or "model"; "" is cpu. They run in this process, at
	// UDP sockets of addresses in 127.0.0.0/8, which Linux has.
	Scheme string
	Format wire.Format // of contributions and sums; 0: fp32
	Sum    wire.Sum    // 0: tree
	Lanes  int         // of these cards; 0: 16
	Chunk  int         // elements; 0: what Ethernet's MTU carries, or less if a generated card takes less
	Jobs   int         // that these cards hold at least, a power of two to 16; 0: 4

	// Cards names cards by node: the folder of a generated card, which a card of Scheme then is like,
	// or the name of a card, such as cpu:parent=true,workers=8 or udp:192.0.2.7.
	Cards map[plan.ID]string

	// RoundTrip is the time from a packet's way to a card until its sum is back. The window of each job
	// carries at least the rate times this. 0: 20 µs.
	RoundTrip time.Duration

	Timeout time.Duration // after which a call without progress fails; 0: 10 s
	Loss    float64       // the share of packets that cards in this process lose, 0 to below 1
	Seed    uint64        // of what is lost
}

// Defaults of Options.
const (
	defaultRoundTrip = 20 * time.Microsecond
	defaultTimeout   = 10 * time.Second
	defaultLanes     = 16
	defaultJobs      = 4
	leastWindow      = 2
)

// withDefaults returns o with its defaults filled in.
func (o Options) withDefaults() Options {
	if o.Scheme == "" {
		o.Scheme = "cpu"
	}
	if o.Format == 0 {
		o.Format = wire.FP32
	}
	if o.Sum == 0 {
		o.Sum = wire.SumTree
	}
	if o.Lanes == 0 {
		o.Lanes = defaultLanes
	}
	if o.Jobs == 0 {
		o.Jobs = defaultJobs
	}
	if o.RoundTrip == 0 {
		o.RoundTrip = defaultRoundTrip
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return o
}

// InputError means that cards cannot carry a plan out.
type InputError struct{ Why string }

func (e *InputError) Error() string { return e.Why }

func wrong(format string, args ...any) error { return &InputError{fmt.Sprintf(format, args...)} }

// Limits of the driver (wire/TREES.md; wire/SPEC.md).
const (
	mostRanks = 64
	mostPorts = wire.MaxPorts
	mostJobs  = wire.MaxJobs
)

// Layout says what the cards of a plan do.
type Layout struct {
	Ranks  map[plan.ID]int // global ranks of workers
	Nodes  []Node          // that are cards, in the order of the topology
	Trees  []Tree
	Chunk  int // elements
	Window int // chunks, of each job

	// Schedule gives each tree chunks in proportion to its rate. Exact: the shares are the rates' own;
	// otherwise they would need more than schedule.Most entries, and are the nearest.
	Schedule schedule.Schedule
	Exact    bool
}

// Node is a card.
type Node struct {
	ID    plan.ID
	Card  string   // its name, or what Options.Cards names; "": made to order
	Ports int      // that it has; of a card of Options.Cards, that it needs
	Jobs  int      // trees with it
	Needs int      // the largest number of streams that it sums in a tree
	Load  *big.Rat // Gb/s that arrive

	chunk, window int // of a generated card; 0: another card
}

// Tree is a tree of cards. The first card is the root, the server's.
type Tree struct {
	Rate  plan.Quantity
	Cards []Place
}

// Place is a card's place in a tree. On each card, workers have the first ports in the order of their
// ranks, and the cards below it the next ones in the order of the tree.
type Place struct {
	Node   int   // index of Layout.Nodes
	Parent int   // index of the tree's cards; -1: the root
	Ranks  []int // of the workers at this card, ascending
	path   []plan.ID
	paths  [][]plan.ID // of these workers
}

// Lay lays a plan out on cards. The plan must be right for the topology (package check). ranks are those
// of workers; nil numbers them in the order of the topology.
//
// Errors: InputError, when the driver cannot carry the plan out. Nothing has been set up then.
func Lay(t *topology.Topology, p *plan.Plan, ranks map[plan.ID]int, o Options) (*Layout, error) {
	o = o.withDefaults()
	if ranks == nil {
		ranks = Ranks(t)
	}
	l := &Layout{Ranks: map[plan.ID]int{}}
	for _, w := range t.Of(topology.Worker) {
		id := plan.ID(t.Nodes[w].ID)
		rank, known := ranks[id]
		if !known {
			return nil, wrong("worker %q was not there at the beginning, so it has no rank", id.Text)
		}
		l.Ranks[id] = rank
	}
	if n := len(ranks); n > mostRanks {
		return nil, wrong("the topology has %d workers; the driver sums for %d at most, the global ranks 0 to %d", n, mostRanks, mostRanks-1)
	}
	l.nodes(t, p)
	for i := range p.Trees {
		if err := l.tree(i, &p.Trees[i]); err != nil {
			return nil, err
		}
	}
	for i := range l.Nodes {
		if err := l.Nodes[i].complete(o); err != nil {
			return nil, err
		}
	}
	l.Schedule, l.Exact = spread(p)
	if l.Chunk = o.Chunk; l.Chunk == 0 {
		l.Chunk = l.largestChunk(o)
	}
	if err := l.window(o); err != nil {
		return nil, err
	}
	if err := l.checkSlots(); err != nil {
		return nil, err
	}
	return l, nil
}

// Bytes of a datagram on Ethernet: the MTU, the headers of IPv4 and UDP, and what a result has around its
// elements.
const (
	mtu       = 1500
	ipHeaders = 28
)

// largestChunk returns the most elements, a multiple of the lanes, that a result within Ethernet's MTU has,
// and that all generated cards take.
func (l *Layout) largestChunk(o Options) int {
	result, _ := wire.KindResult.Info()
	most := (mtu - ipHeaders - result.DatagramBytes(0)) / element.Size(o.Format)
	for _, n := range l.Nodes {
		if n.chunk > 0 {
			most = min(most, n.chunk)
		}
	}
	return max(1, most/o.Lanes) * o.Lanes
}

// checkSlots checks that each card has room for the windows of all of its jobs.
func (l *Layout) checkSlots() error {
	for _, n := range l.Nodes {
		most := wire.MaxWindow
		if n.window > 0 {
			most = n.window
		}
		if n.Jobs*l.Window > most {
			return wrong("node %q is in %d trees, with windows of %d chunks each, and its card has room for %d: plan with fewer -trees, or use larger chunks or a shorter round trip", n.ID.Text, n.Jobs, l.Window, most)
		}
	}
	return nil
}

// Ranks numbers the workers of a topology in its order.
func Ranks(t *topology.Topology) map[plan.ID]int {
	ranks := map[plan.ID]int{}
	for i, w := range t.Of(topology.Worker) {
		ranks[plan.ID(t.Nodes[w].ID)] = i
	}
	return ranks
}

// nodes lists the nodes that are cards, with the ports of the topology.
func (l *Layout) nodes(t *topology.Topology, p *plan.Plan) {
	cards := map[plan.ID]bool{}
	for _, tree := range p.Trees {
		cards[tree.Server] = true
		for _, s := range tree.Sums {
			cards[s.Switch] = true
		}
	}
	for _, n := range t.Nodes {
		if id := plan.ID(n.ID); cards[id] {
			l.Nodes = append(l.Nodes, Node{ID: id, Ports: min(n.Ports, mostPorts), Load: new(big.Rat)})
		}
	}
}

// tree lays out a tree.
func (l *Layout) tree(number int, t *plan.Tree) error {
	tree := Tree{Rate: t.Rate}
	at := map[plan.ID]int{}
	add := func(id plan.ID, path []plan.ID) {
		at[id] = len(tree.Cards)
		node := slices.IndexFunc(l.Nodes, func(n Node) bool { return n.ID == id })
		tree.Cards = append(tree.Cards, Place{Node: node, Parent: -1, Ranks: []int{}, path: path})
		l.Nodes[node].Jobs++
	}
	add(t.Server, nil)
	for _, s := range t.Sums {
		add(s.Switch, s.Path)
	}
	streams := make([]int, len(tree.Cards))
	for i, s := range t.Sums {
		tree.Cards[i+1].Parent = at[s.To]
		streams[at[s.To]]++
	}
	members := slices.Clone(t.Members)
	slices.SortFunc(members, func(a, b plan.Member) int { return l.Ranks[a.Worker] - l.Ranks[b.Worker] })
	for _, m := range members {
		rank, known := l.Ranks[m.Worker]
		if !known {
			return wrong("tree %d has the worker %q, which the topology lacks", number, m.Worker.Text)
		}
		c := &tree.Cards[at[m.To]]
		c.Ranks, c.paths = append(c.Ranks, rank), append(c.paths, m.Path)
		streams[at[m.To]]++
	}
	for i, c := range tree.Cards {
		n := &l.Nodes[c.Node]
		n.Needs = max(n.Needs, streams[i])
		n.Load.Add(n.Load, new(big.Rat).Mul(big.NewRat(int64(streams[i]), 1), t.Rate.Rat))
	}
	l.Trees = append(l.Trees, tree)
	return nil
}

// complete checks a node's card, and fills in its defaults.
func (n *Node) complete(o Options) error {
	n.Card = o.Cards[n.ID]
	n.Ports = max(n.Ports, n.Needs)
	switch {
	case n.Needs > mostPorts:
		return wrong("node %q sums %d streams in a tree; a card has %d ports at most", n.ID.Text, n.Needs, mostPorts)
	case n.Jobs > mostJobs:
		return wrong("node %q is in %d trees; a card holds %d jobs at most: plan with fewer -trees", n.ID.Text, n.Jobs, mostJobs)
	case n.Card == "" || strings.Contains(n.Card, ":"):
		return nil
	}
	return n.checkFolder()
}

// window computes the window of the jobs: the power of two that carries the rate of each tree.
func (l *Layout) window(o Options) error {
	for i, t := range l.Trees {
		flight := new(big.Rat).Mul(t.Rate.Rat, big.NewRat(o.RoundTrip.Nanoseconds(), 1)) // Gb/s times ns are bits
		chunks := flight.Quo(flight, big.NewRat(int64(8*l.Chunk*element.Size(o.Format)), 1))
		needs := int(new(big.Int).Quo(new(big.Int).Add(chunks.Num(), new(big.Int).Sub(chunks.Denom(), big.NewInt(1))), chunks.Denom()).Int64())
		window := max(leastWindow, 1<<bits.Len(uint(max(needs, 1)-1)))
		if window > wire.MaxWindow {
			return wrong("tree %d has %s Gb/s, so with a round trip of %v it needs a window of %d chunks; cards have %d at most: use larger chunks", i, t.Rate.FloatString(2), o.RoundTrip, needs, wire.MaxWindow)
		}
		l.Window = max(l.Window, window)
	}
	return nil
}
