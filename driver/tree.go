package driver

// Trees of cards (wire/TREES.md): which card has which parent and which workers. treejob.go has the jobs
// on them.

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
)

// TreeCard is a card of a tree, with its place there. A card's workers have its first ports, in the order
// of their ranks; the cards below it have the next ones, in the order of the list.
type TreeCard struct {
	Card   *Card
	Parent int // index of the parent in the list of cards; -1 for the root

	// Workers is the number of workers at this card itself. Their ranks in the tree, the global ranks,
	// follow those of the cards before it in the list. On a card with no cards below it, 0 means a
	// worker at each port.
	Workers int
	// Ranks names the global ranks of these workers instead, 0 to 63 and ascending. Either all cards
	// with workers have Ranks, or none.
	Ranks []int

	// Of cards in path, with several Ethernet ports: the port of this card towards its parent, and the
	// port of the parent towards this card.
	Up, Down int
}

// Tree is a tree of cards that sum in several levels. Each card sums what its workers and the cards below
// it bring, and its parent sums that; the root's sum travels down to all workers. Every card rounds once,
// so for fp32 the bits are those of the nested sum (Shape).
//
// This program owns all cards of a tree, and all workers are in this process. ShareTree is for a daemon, whose
// clients have the workers.
type Tree struct {
	cards   []TreeCard // with all defaults
	below   [][]int    // for each card, the cards below it
	root    int
	workers []seat // by global rank; ranks between others may be unused
	all     uint64 // the global ranks
}

// seat is a worker's place in a tree.
type seat struct {
	card int
	rank int // on the card
}

// mostRanks is the number of global ranks.
const mostRanks = 64

// NewTree checks that cards can be a tree, before anything is written to one. They are open, have an up
// port (hwgen -parent) if there are several, and sum the same format in the same way. The tree does not
// close them.
//
// Errors: InputError, which names the card.
func NewTree(cards []TreeCard) (*Tree, error) {
	t := &Tree{cards: slices.Clone(cards), below: make([][]int, len(cards)), root: -1}
	for _, check := range []func() error{t.checkCards, t.checkParents, t.checkFormats, t.place} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// wrongTree returns the error for a tree that cannot be.
func wrongTree(format string, args ...any) error {
	return &InputError{"tree", fmt.Sprintf(format, args...)}
}

// name returns the name of a card.
func (t *Tree) name(i int) string { return t.cards[i].Card.name }

// checkCards rejects cards that no tree can have.
func (t *Tree) checkCards() error {
	if len(t.cards) == 0 {
		return wrongTree("it has no cards; name the root, and the cards below it")
	}
	for i, c := range t.cards {
		switch {
		case c.Card == nil:
			return wrongTree("entry %d has no card; open it first", i)
		case slices.ContainsFunc(t.cards[:i], func(other TreeCard) bool { return other.Card == c.Card }):
			return wrongTree("card %s is there twice; a card has one place, and one parent", c.Card.name)
		case c.Card.shared:
			return wrongTree("card %s is shared by a daemon, which sets its jobs up; open the card itself", c.Card.name)
		case c.Card.opts.reads:
			return wrongTree("card %s is open for reading only; open it without WithReadOnly", c.Card.name)
		case len(t.cards) > 1 && !c.Card.info.Parent:
			return wrongTree("card %s has no up port, which each card of a tree needs; generate it with -parent", c.Card.name)
		case c.Up < 0 || c.Up > mostEthernet || c.Down < 0 || c.Down > mostEthernet:
			return wrongTree("card %s is behind Ethernet ports %d and %d; they are 0 to %d", c.Card.name, c.Up, c.Down, mostEthernet)
		}
	}
	return nil
}

// mostEthernet is the largest number of an Ethernet port in an address.
const mostEthernet = 0xff

// checkParents rejects cards that are not one tree.
func (t *Tree) checkParents() (err error) {
	names, parents := make([]string, len(t.cards)), make([]int, len(t.cards))
	for i, c := range t.cards {
		names[i], parents[i] = t.name(i), c.Parent
	}
	if t.root, err = TreeRoot(names, parents); err != nil {
		return err
	}
	for i, parent := range parents {
		if parent >= 0 {
			t.below[parent] = append(t.below[parent], i)
		}
	}
	return nil
}

// TreeRoot returns the root of a tree of cards with these names, before they are open. parents has the index
// of each card's parent, or -1. NewTree makes the same checks.
//
// Errors: InputError, which names the cards that make it no tree.
func TreeRoot(names []string, parents []int) (root int, err error) {
	root = -1
	for i, parent := range parents {
		switch {
		case parent == i:
			return 0, wrongTree("card %s is its own parent; the root has no parent", names[i])
		case parent < -1 || parent >= len(parents):
			return 0, wrongTree("card %s has parent %d; parents are -1 for the root, or 0 to %d", names[i], parent, len(parents)-1)
		case parent == -1 && root >= 0:
			return 0, wrongTree("cards %s and %s have no parent; one card is the root", names[root], names[i])
		case parent == -1:
			root = i
		}
	}
	for at := range parents {
		for range parents {
			if at = parents[at]; at == -1 {
				break
			}
		}
		if at != -1 {
			return 0, wrongTree("card %s is its own parent, through others; one card is the root, without a parent", names[at])
		}
	}
	return root, nil
}

// checkFormats rejects cards whose sums do not nest.
func (t *Tree) checkFormats() error {
	root := t.cards[t.root].Card.info
	for i, c := range t.cards {
		switch info := c.Card.info; {
		case info.Format != root.Format:
			return wrongTree("card %s sums %s, but the root %s sums %s; all cards of a tree have one format", t.name(i), info.Format, root.Name, root.Format)
		case info.Sum != root.Sum || info.Saturate != root.Saturate:
			return wrongTree("card %s computes %s, but the root %s computes %s; all cards of a tree compute one sum", t.name(i), info.sumText(), root.Name, root.sumText())
		}
	}
	return nil
}

// sumText returns the card's sum in words.
func (i Info) sumText() string {
	if i.Saturate {
		return i.Sum.String() + ", saturating"
	}
	return i.Sum.String()
}

// place gives each worker its rank and port.
func (t *Tree) place() error {
	named := slices.ContainsFunc(t.cards, func(c TreeCard) bool { return c.Ranks != nil })
	next := 0
	for i := range t.cards {
		c := &t.cards[i]
		ports := c.Card.info.Ports
		switch {
		case c.Workers < 0:
			return wrongTree("card %s has %d workers", t.name(i), c.Workers)
		case c.Ranks != nil && c.Workers != 0 && c.Workers != len(c.Ranks):
			return wrongTree("card %s has %d workers with %d ranks; leave one of the two out", t.name(i), c.Workers, len(c.Ranks))
		case c.Ranks != nil:
			c.Workers, c.Ranks = len(c.Ranks), slices.Clone(c.Ranks)
		case named && (c.Workers > 0 || len(t.below[i]) == 0):
			return wrongTree("card %s has no ranks, but others have; name those of all workers, or of none", t.name(i))
		case c.Workers == 0 && len(t.below[i]) == 0:
			c.Workers = ports
		}
		if c.Workers+len(t.below[i]) > ports {
			return wrongTree("card %s has %d workers and %d cards below it, but %d ports; move some, or use a card generated with -workers %d",
				t.name(i), c.Workers, len(t.below[i]), ports, c.Workers+len(t.below[i]))
		}
		if c.Workers+len(t.below[i]) == 0 {
			return wrongTree("card %s has neither workers nor cards below it; leave it out", t.name(i))
		}
		for len(c.Ranks) < c.Workers {
			c.Ranks = append(c.Ranks, next)
			next++
		}
		if err := t.seat(i); err != nil {
			return err
		}
	}
	if c := t.cards[t.root]; len(t.cards) == 1 && !c.Card.info.Parent && t.all != 1<<c.Workers-1 {
		return wrongTree("card %s has no up port, so its workers have the ranks 0 to %d", c.Card.name, c.Workers-1)
	}
	return nil
}

// seat gives a card's workers their ranks.
func (t *Tree) seat(i int) error {
	for local, rank := range t.cards[i].Ranks {
		switch {
		case rank < 0 || rank >= mostRanks:
			return wrongTree("card %s has a worker of rank %d; a tree has the ranks 0 to %d", t.name(i), rank, mostRanks-1)
		case local > 0 && rank <= t.cards[i].Ranks[local-1]:
			return wrongTree("card %s has rank %d after rank %d; list the ranks in ascending order", t.name(i), rank, t.cards[i].Ranks[local-1])
		case t.all>>rank&1 != 0:
			return wrongTree("cards %s and %s have a worker of rank %d each; every rank is that of one worker", t.name(t.workers[rank].card), t.name(i), rank)
		}
		t.all |= 1 << rank
		if grow := rank + 1 - len(t.workers); grow > 0 {
			t.workers = append(t.workers, make([]seat, grow)...)
		}
		t.workers[rank] = seat{i, local}
	}
	return nil
}

// Ranks returns the global ranks of all workers, ascending.
func (t *Tree) Ranks() []int { return bitSlice(t.all) }

// Cards returns the cards with the ranks that each worker has, in the order of NewTree.
func (t *Tree) Cards() []TreeCard {
	cards := slices.Clone(t.cards)
	for i := range cards {
		cards[i].Ranks = slices.Clone(cards[i].Ranks)
	}
	return cards
}

// standsFor returns the global ranks that each member of a card stands for.
func (t *Tree) standsFor(i int) (ranks []uint64) {
	for _, rank := range t.cards[i].Ranks {
		ranks = append(ranks, 1<<rank)
	}
	for _, child := range t.below[i] {
		var all uint64
		for _, below := range t.standsFor(child) {
			all |= below
		}
		ranks = append(ranks, all)
	}
	return ranks
}

// rankAtParent returns the rank that a card has at its parent.
func (t *Tree) rankAtParent(i int) int {
	parent := t.cards[i].Parent
	return t.cards[parent].Workers + slices.Index(t.below[parent], i)
}

// Configure sets up a job on all cards of the tree, as Card.Configure does on one: under one number, in
// one epoch. The job that it returns has the members of the whole tree: Member takes global ranks, Reduce
// takes the inputs of all workers in their order, and Close finishes the job on all cards. Card returns
// the root, and Config the ranks that exist as Workers, without Ports.
//
// In cfg, Ports and Here are empty. Workers is 0, or the number of workers in the tree. The default chunk
// and window are the largest that all cards take. A tree has no partial sums.
//
// When a card goes away, the calls end with a DiedError that names it. With CarryOn, all members stop
// until it is back, and the job continues on all cards in a later epoch. Deadlines hold at each card:
// OnOverdue runs for each card with workers.
//
// Errors: those of Card.Configure. An InputError or FullError names the card.
func (t *Tree) Configure(ctx context.Context, cfg JobConfig) (*Job, error) {
	cfgs, whole, err := t.complete(cfg)
	if err != nil {
		return nil, err
	}
	return t.configure(ctx, whole, cfgs)
}

// complete fills in the defaults of a job's parameters, and returns those of each card's part of it.
func (t *Tree) complete(cfg JobConfig) (cfgs []JobConfig, whole JobConfig, err error) {
	workers := bits.OnesCount64(t.all)
	switch {
	case cfg.Partial && len(t.cards) > 1:
		return nil, cfg, &InputError{"partial sums", "a tree of cards has none; leave them out, or use one card"}
	case cfg.Workers != 0 && cfg.Workers != workers:
		return nil, cfg, &InputError{"workers", fmt.Sprintf("%d workers, but the tree has %d", cfg.Workers, workers)}
	case cfg.Ports != nil:
		return nil, cfg, &InputError{"ports", "a tree places its workers itself; leave them out"}
	case cfg.Here != nil || cfg.Queue:
		return nil, cfg, &InputError{"ranks here", "all workers of a tree are in this process; leave them out, or share the tree with `tributary serve -tree`"}
	}
	cfg.Workers = workers
	if err := t.defaults(&cfg); err != nil {
		return nil, cfg, err
	}
	for i, c := range t.cards {
		part := cfg
		part.Workers = c.Workers + len(t.below[i])
		if cfg.CarryOn > 0 && c.Card.reopen == nil {
			return nil, cfg, &InputError{"carry on", "card " + c.Card.name + " was opened on the caller's stream, which the driver cannot open again; open the card by its name"}
		}
		if part, err = c.Card.info.Complete(part); err != nil {
			return nil, cfg, err
		}
		cfgs = append(cfgs, part)
	}
	return cfgs, cfg, nil
}

// defaults fills in the largest chunk and window that all cards take.
func (t *Tree) defaults(cfg *JobConfig) error {
	cards := t.infos()
	if cfg.Window == 0 {
		share := cards[0].Window
		for _, i := range cards {
			share = min(share, i.Window/i.Jobs)
		}
		cfg.Window = 1 << (bits.Len(uint(share)) - 1)
	}
	return cfg.fillChunk(cards)
}

// infos describes the cards, in the order of NewTree.
func (t *Tree) infos() []Info {
	all := make([]Info, len(t.cards))
	for i, c := range t.cards {
		all[i] = c.Card.info
	}
	return all
}
