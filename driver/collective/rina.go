package collective

// Rina: a ring whose members are racks with a card, and workers without (SPEC.md, section 12).

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// RackCard is the card of a rack, as every member of a group lists it.
type RackCard struct {
	Rack string      // of Member.Rack
	Info driver.Info // of the card; its name may differ from member to member
}

// RinaConfig has the cards of a group, and this member's seats at the card of its rack.
type RinaConfig struct {
	// Cards lists the cards of racks, in any order: the same on all members, or their calls differ.
	Cards []RackCard
	// Seat is this member's of a job on its rack's card. The job has n+1 members for the n of the rack.
	// Its ranks 0 to n-1 are the rack's members, in the order of their ranks in the group. Seat is nil
	// if the rack has no card, or one of too few ports.
	Seat *driver.Member
	// Incoming is rank n of the same job. It brings what comes from the ring, and belongs to the agent,
	// which is the rack's lowest rank in the group. It is nil on all others.
	Incoming *driver.Member
}

// OpenRina joins a group whose racks have cards, some or all. An all-reduce runs along a ring of G
// nodes, in 2(G-1) steps: a node is a rack whose card is fit (see Fits) for one more than its members,
// or a member elsewhere. A card that is not fit is not used, with a warning, and its members are nodes
// singly. The other operations are the ring's, without cards. The caller closes the job after the
// Collective. A call that fails ends the job too.
//
// A rack waits in calls of its card for what comes from the ring, at most for the driver's timeout
// (driver.WithTimeout).
func OpenRina(ctx context.Context, g Group, cfg RinaConfig, opts ...Option) (Collective, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	o := newOptions(opts)
	r := &rina{seat: cfg.Seat, incoming: cfg.Incoming, unused: newUnused(o)}
	for _, ranks := range g.together(func(m Member) string { return m.Rack }) {
		r.racks = append(r.racks, &rack{name: g.Members[ranks[0]].Rack, ranks: ranks})
	}
	for _, c := range cfg.Cards {
		if err := r.equip(c); err != nil {
			return nil, err
		}
	}
	if err := r.checkSeats(&g); err != nil {
		return nil, err
	}
	m, err := open(ctx, Rina, r, g, o)
	if err != nil {
		return nil, err
	}
	m.plan = r.check(&g)
	return m, nil
}

// rack is some members that can share a card: those of a rack, or one that has none.
type rack struct {
	name  string
	ranks []int        // ascending; the first is the agent
	card  *driver.Info // nil: none
}

// ports is how many the card of the rack must have.
func (k *rack) ports() int { return len(k.ranks) + 1 }

// unfit returns why the rack's card is not used for a format; "" means that it is.
func (k *rack) unfit(f wire.Format) string {
	if k.card.Ports < k.ports() {
		return fmt.Sprintf("it has %d ports; the members and the ring need %d", k.card.Ports, k.ports())
	}
	return Fits(*k.card, f, k.ports())
}

// rina implements algorithm 5.
type rina struct {
	hostRing
	racks          []*rack // in the order of their lowest ranks
	own            *rack
	seat, incoming *driver.Member
	*unused
}

// equip gives a rack its card.
func (r *rina) equip(c RackCard) error {
	i := slices.IndexFunc(r.racks, func(k *rack) bool { return c.Rack != "" && k.name == c.Rack })
	switch {
	case i < 0:
		return &InputError{"plan", fmt.Sprintf("it has a card for rack %q, of which no member is", c.Rack)}
	case r.racks[i].card != nil:
		return &InputError{"plan", fmt.Sprintf("it has two cards for rack %q", c.Rack)}
	}
	r.racks[i].card = &c.Info
	return nil
}

// checkSeats compares the seats of this member with the plan.
func (r *rina) checkSeats(g *Group) error {
	at := slices.IndexFunc(r.racks, func(k *rack) bool { return slices.Contains(k.ranks, g.Rank) })
	k := r.racks[at]
	r.own = k
	n, agent := len(k.ranks), k.ranks[0] == g.Rank
	wrong := func(format string, args ...any) error {
		return &InputError{"seat", fmt.Sprintf("%s, rack %q: ", g.name(g.Rank), k.name) + fmt.Sprintf(format, args...)}
	}
	switch {
	case k.card == nil && (r.seat != nil || r.incoming != nil):
		return wrong("it has one, but the plan has no card for the rack")
	case k.card == nil || k.unfit(k.card.Format) != "":
		return nil
	case r.seat == nil:
		return wrong("it has none at the card of the plan")
	case agent && r.incoming == nil:
		return wrong("it is the agent, and lacks rank %d of the card's job", n)
	case !agent && r.incoming != nil:
		return wrong("it has rank %d of the card's job, which belongs to the agent, %s", n, g.name(k.ranks[0]))
	}
	seats := map[int]*driver.Member{slices.Index(k.ranks, g.Rank): r.seat}
	if agent {
		seats[n] = r.incoming
	}
	for rank, m := range seats {
		info, workers := m.Job().Card().Info(), m.Job().Config().Workers
		switch {
		case workers != n+1 || m.Rank() != rank:
			return wrong("it is rank %d of %d; that of the plan is %d of %d", m.Rank(), workers, rank, n+1)
		case !bytes.Equal(describe(nil, &info), describe(nil, k.card)):
			return wrong("card %s is another one than the plan's: %s, not %s", info.Name, summary(&info), summary(k.card))
		}
	}
	return nil
}

// summary returns what the plan has of a card, for messages.
func summary(i *driver.Info) string {
	return fmt.Sprintf("%s of %s into %s, saturate %t, %d ports", i.Sum, i.Format, i.Result, i.Saturate, i.Ports)
}

// describe appends what the check of a plan has of a card.
func describe(b []byte, i *driver.Info) []byte {
	saturate := byte(0)
	if i.Saturate {
		saturate = 1
	}
	b = append(b, byte(i.Format), byte(i.Result), byte(i.Sum), saturate)
	return binary.LittleEndian.AppendUint32(b, uint32(i.Ports))
}

// check returns the CRC-32C of the plan.
func (r *rina) check(g *Group) uint32 {
	var b []byte
	for _, m := range g.Members {
		b = appendText(b, m.Rack)
	}
	byName := slices.SortedFunc(slices.Values(r.racks), func(x, y *rack) int { return strings.Compare(x.name, y.name) })
	for _, k := range byName {
		if k.card != nil {
			b = describe(appendText(b, k.name), k.card)
		}
	}
	return crc32.Checksum(b, castagnoli)
}

// nodes returns the nodes of a call, by agent. used means that this member's rack is one.
func (r *rina) nodes(f wire.Format) (agents []int, used bool) {
	for _, k := range r.racks {
		if k.card != nil && k.unfit(f) == "" {
			agents = append(agents, k.ranks[0])
			used = used || k == r.own
		} else {
			agents = append(agents, k.ranks...)
		}
	}
	slices.Sort(agents)
	return agents, used
}

func (r *rina) allReduce(c *call) error {
	agents, used := r.nodes(c.format)
	if !used {
		r.single(c)
		if len(agents) == 1 {
			pass(c.format, c.dst, c.src)
			return nil
		}
		return newRing(c, agents, slices.Index(agents, c.own()), &host{call: c, src: c.src, work: c.dst, out: c.dst}, 0).allReduce()
	}
	agent := r.own.ranks[0]
	way := newRing(c, agents, slices.Index(agents, agent), nil, 0)
	if err := r.agree(c); err != nil {
		return err
	}
	seats := newSeats(c, r.seat, r.incoming)
	seats.neutral = c.identities(r.own.card.Sum)
	if c.own() != agent {
		return seats.close(seats.follow(way))
	}
	way.node = &rackNode{seats}
	return seats.close(way.allReduce())
}

// single warns, once for a format, if the rack has a card that is not used.
func (r *rina) single(c *call) {
	if r.own.card == nil {
		return
	}
	r.tell(c.format, fmt.Sprintf("the card of rack %s is not used for %s: %s; its %d members join the ring singly",
		r.own.name, c.format, r.own.unfit(c.format), len(r.own.ranks)))
}

// agree compares the calls of the rack's members, before any reaches the card.
func (r *rina) agree(c *call) error {
	agent, others := r.own.ranks[0], r.own.ranks[1:]
	exchange := func(rank, step int) error {
		m, err := c.recv(rank, phaseRack, step, 0, 0)
		if err == nil {
			m.release()
		}
		return err
	}
	if c.own() != agent {
		if err := c.send(agent, phaseRack, 0, 0, nil); err != nil {
			return err
		}
		return exchange(agent, 1)
	}
	for _, rank := range others {
		if err := exchange(rank, 0); err != nil {
			return err
		}
	}
	for _, rank := range others {
		if err := c.send(rank, phaseRack, 1, 0, nil); err != nil {
			return err
		}
	}
	return nil
}

// cardCalls is how many calls of the card may wait to be concluded, besides the one that is and one
// that starts: enough to fill the card's window.
const cardCalls = 8

// seats is a member's part of a card in one call: it starts calls of the card, and concludes
// them in the same order.
type seats struct {
	*call
	seat, incoming *driver.Member // incoming is nil unless this member is the agent
	neutral        []byte         // identities of the sum, as many as a chunk has elements; nil if none are brought
	started        chan cardCall
	over           chan struct{} // closed when all calls are concluded
	err            error         // the first, when over
}

// cardCall is a call of the card, of one chunk.
type cardCall struct {
	pending []*driver.Pending
	scratch []*[maxPayload]byte // in use until the call is over
	err     error               // why it has not started
	done    func(err error)
}

func newSeats(c *call, seat, incoming *driver.Member) *seats {
	s := &seats{call: c, seat: seat, incoming: incoming, started: make(chan cardCall, cardCalls), over: make(chan struct{})}
	go s.conclude()
	return s
}

// identities returns as many identities of a sum as a chunk of the call may need.
func (c *call) identities(sum wire.Sum) []byte {
	all := make([]byte, min(maxPayload, len(c.src)))
	element.Put(c.format, all, 0, sum.Identity(c.format))
	for done := c.size; done < len(all); done *= 2 {
		copy(all[done:], all[:done])
	}
	return all
}

// conclude waits for the calls, in the order of their starts. Their arrays are free when it has ended.
func (s *seats) conclude() {
	defer close(s.over)
	for k := range s.started {
		err := k.err
		if err != nil { // the calls that have started may wait for this one
			err = s.fail(err)
		}
		for _, p := range k.pending {
			<-p.Done()
			if failed := p.Wait(context.Background()); failed != nil && err == nil {
				err = s.fail(failed)
			}
		}
		for _, b := range k.scratch {
			buffers.Put(b)
		}
		s.err = cmp.Or(s.err, err)
		if k.done != nil {
			k.done(err)
		}
	}
}

// fail ends the call for an error of the card. It returns the reason, which is another one if the call
// had ended before.
func (s *seats) fail(err error) error {
	s.stop(s.cardFailed(err))
	return context.Cause(s.ctx)
}

// close waits for all calls, which end soon if the caller has failed with err. It returns the first
// error.
func (s *seats) close(err error) error {
	if err != nil {
		s.stop(err)
		err = context.Cause(s.ctx)
	}
	close(s.started)
	<-s.over
	return cmp.Or(err, s.err)
}

// start starts a call of the card: elements [first, last) of dst become the sum of own, of the others'
// parts, and of incoming if this member is the agent. nil brings identities; dst nil drops the sum.
func (s *seats) start(first, last int, dst, own, incoming []byte, done func(err error)) {
	k := cardCall{done: done}
	n := (last - first) * s.size
	bring := func(m *driver.Member, dst, src []byte) {
		if dst == nil {
			b := buffers.Get().(*[maxPayload]byte)
			k.scratch = append(k.scratch, b)
			dst = b[:n]
		}
		if src == nil {
			src = s.neutral[:n]
		}
		p, err := m.StartAllReduceBytes(s.ctx, dst, src)
		if err != nil {
			k.err = cmp.Or(k.err, err)
			return
		}
		k.pending = append(k.pending, p)
	}
	if n > 0 {
		bring(s.seat, dst, own)
		if s.incoming != nil {
			bring(s.incoming, nil, incoming)
		}
	}
	s.started <- k
}

// follow is the part of a member that is not the agent: the chunks in the agent's order.
func (s *seats) follow(way *ring) error {
	n := len(way.ranks)
	for step := range 2*n - 1 {
		gathers := step >= n
		place := way.at - step
		if gathers {
			place = way.at - (step - n)
		}
		from, to := way.ringPiece(place)
		for first, last := range s.chunks(from, to) {
			own := s.at(s.src, first, last)
			if gathers {
				own = nil
			}
			s.start(first, last, s.at(s.dst, first, last), own, nil, nil)
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// rackNode is a rack with a card, as a node of the agent's ring.
type rackNode struct{ *seats }

func (r *rackNode) add(first, last int, incoming []byte, sum func([]byte, error)) {
	result := r.at(r.dst, first, last)
	r.start(first, last, result, r.at(r.src, first, last), incoming, func(err error) { sum(result, err) })
}

// finish hands what came from the ring to the rack. The card has done so with its own sums.
func (r *rackNode) finish(first, last int, final []byte) ([]byte, error) {
	kept := r.at(r.dst, first, last)
	if len(kept) == 0 || &kept[0] == &final[0] {
		return kept, nil
	}
	copy(kept, final)
	r.start(first, last, nil, nil, kept, nil)
	return kept, nil
}
