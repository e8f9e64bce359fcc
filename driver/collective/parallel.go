package collective

// Parallel all-reduce: inside machines, then between them, then inside (SPEC.md, section 13).

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"slices"

	"tributary/driver"
)

// ParallelConfig has this member's seat at a card between machines.
type ParallelConfig struct {
	// Seat is this member's of a job among the members with its local index, one on each machine. Its rank
	// is the machine's place. Seat is nil on all members if there is no card.
	Seat *driver.Member
}

// OpenParallel joins a group on machines of several members each (Member.Machine). Machines stand in the
// order of their lowest ranks. A member's local index is its place in its machine, in the order of ranks.
// All machines have the same number of members, n.
//
// An all-reduce is a reduce-scatter inside the machines, which leaves each member a share of 1/n; then a
// sum of each share between the machines, on a card; then an all-gather inside. Without a card, or with one
// that is not fit for a format (see Fits), the shares go along rings between the machines; a card that is not
// fit gets a warning. The other operations are the ring's, without cards. The caller closes the job after the
// Collective. A call that fails ends the job too.
//
// Source: S. Liu, Q. Wang, J. Zhang and others, "In-Network Aggregation with Transport Transparency for
// Distributed Training" (NetReduce, ASPLOS 2023).
func OpenParallel(ctx context.Context, g Group, cfg ParallelConfig, opts ...Option) (Collective, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	o := newOptions(opts)
	p := &parallel{seat: cfg.Seat, unused: newUnused(o)}
	if err := p.place(&g); err != nil {
		return nil, err
	}
	if err := p.checkSeat(&g); err != nil {
		return nil, err
	}
	m, err := open(ctx, Parallel, p, g, o)
	if err != nil {
		return nil, err
	}
	m.plan = p.check(&g)
	return m, nil
}

// parallel implements algorithm 6.
type parallel struct {
	hostRing
	inside  []int // the ranks of this member's machine, by local index
	between []int // the ranks with its local index, by machine
	index   int   // its place inside
	machine int   // its place between
	seat    *driver.Member
	*unused
}

// place finds this member's machine and local index.
func (p *parallel) place(g *Group) error {
	machines := g.together(func(m Member) string { return m.Machine })
	for i, ranks := range machines {
		if first := machines[0]; len(ranks) != len(first) {
			name := func(ranks []int) string {
				return fmt.Sprintf("machine %q of %s has %d", g.Members[ranks[0]].Machine, g.name(ranks[0]), len(ranks))
			}
			return &InputError{"machines", fmt.Sprintf("%s members, but %s; all machines must have the same number", name(first), name(ranks))}
		}
		if at := slices.Index(ranks, g.Rank); at >= 0 {
			p.inside, p.index, p.machine = ranks, at, i
		}
	}
	for _, ranks := range machines {
		p.between = append(p.between, ranks[p.index])
	}
	return nil
}

// checkSeat compares this member's seat with its place.
func (p *parallel) checkSeat(g *Group) error {
	if p.seat == nil {
		return nil
	}
	if workers := p.seat.Job().Config().Workers; workers != len(p.between) || p.seat.Rank() != p.machine {
		return &InputError{"seat", fmt.Sprintf("%s has rank %d of %d; that of its machine is %d of %d", g.name(g.Rank), p.seat.Rank(), workers, p.machine, len(p.between))}
	}
	return nil
}

// check returns the CRC-32C of the plan.
func (p *parallel) check(g *Group) uint32 {
	var b []byte
	for _, m := range g.Members {
		b = appendText(b, m.Machine)
	}
	if p.seat != nil {
		info := p.seat.Job().Card().Info()
		b = describe(b, &info)
	}
	return crc32.Checksum(b, castagnoli)
}

func (p *parallel) allReduce(c *call) error {
	inside := newRing(c, p.inside, p.index, &host{call: c, src: c.src, work: c.dst, out: c.dst}, -1)
	from, to := Piece(p.index, len(p.inside), int(c.length))
	between := newRing(c, p.between, p.machine, &host{call: c, src: c.dst, work: c.dst, out: c.dst}, 0)
	between.from, between.to = from, to
	if p.seat != nil && p.fits(c, p.seat, len(p.between)) {
		return p.throughCard(inside, between)
	}
	if err := inside.reduce(false); err != nil {
		return err
	}
	switch sums := c.at(c.dst, from, to); {
	case c.group.Size() == 1:
		pass(c.format, sums, sums)
	case len(p.between) > 1:
		if err := between.allReduce(); err != nil {
			return err
		}
	}
	return inside.allGather(c.dst)
}

// throughCard sums the shares on the card, chunk by chunk: each as soon as the machine's sum is there.
func (p *parallel) throughCard(inside, between *ring) error {
	if err := between.agree(); err != nil {
		return err
	}
	seats := newSeats(inside.call, p.seat, nil)
	reduces := *inside
	reduces.node = &shareNode{inside.node, seats, inside}
	if err := seats.close(reduces.reduce(false)); err != nil {
		return err
	}
	return inside.gather()
}

// shareNode is a host that brings its machine's sums to the card, and the card's sums to its machine.
type shareNode struct {
	node
	seats  *seats
	inside *ring
}

func (n *shareNode) finish(first, last int, final []byte) ([]byte, error) {
	sums, err := n.node.finish(first, last, final)
	if err != nil {
		return nil, err
	}
	n.seats.start(first, last, sums, sums, nil, func(err error) {
		if err != nil || len(n.inside.ranks) == 1 {
			return
		}
		if err := n.inside.send(n.inside.next(), phaseGather, 0, first, sums); err != nil {
			n.seats.stop(err)
			n.seats.err = cmp.Or(n.seats.err, err)
		}
	})
	return sums, n.seats.ctx.Err()
}
