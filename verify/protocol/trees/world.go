package main

import "tributary/verify/protocol/explorer"

// world is a state with the rules and everything that they read and write.
type world struct {
	config   *config
	rules    ruleSet // rules that are left out
	members  [maxCards][]node
	place    [maxWorkers]place
	packets  *explorer.Numbers[packet]
	payloads *explorer.Numbers[payload]
	state

	explorer.Story

	calm  bool            // faults have ceased
	queue []delivery      // packets under way then
	good  map[string]bool // states that complete, by representative

	symmetry *symmetry
	alphabet []forgery // of the rogue; filled on first use
}

// place is where a worker is.
type place struct{ card, member int }

func newWorld(c *config, rules ruleSet, only string) *world {
	w := &world{config: c, rules: rules, Story: explorer.Story{Only: only},
		packets: explorer.NewNumbers[packet](maxPackets), payloads: explorer.NewNumbers[payload](1 << 16)}
	w.packets.Number(packet{}) // 0: none
	w.payloads.Number(payload{})
	for i := range c.cards() {
		w.members[i] = c.members(i)
		for m, n := range w.members[i] {
			if !n.isLeaf() {
				w.place[n] = place{i, m}
			}
		}
	}
	return w
}

// another returns a world with the same tables.
func (w *world) another() *world {
	return &world{config: w.config, rules: w.rules, members: w.members, place: w.place, packets: w.packets, payloads: w.payloads,
		Story: explorer.Story{Only: w.Only}, symmetry: w.symmetry, good: map[string]bool{}}
}

// Current returns the world's state.
func (w *world) Current() *state { return &w.state }

// all is M of a card: the members with which it was set up.
func (w *world) all(c int) uint8 {
	n := len(w.members[c])
	if c == root && w.config.misfit {
		return bit(len(w.config.leaves)-1) - 1
	}
	return 1<<n - 1
}

// ranks returns the global ranks that members of a card stand for.
func (w *world) ranks(c int, members uint8) uint8 {
	var ranks uint8
	for m, n := range w.members[c] {
		switch {
		case members&bit(m) == 0:
		case n.isLeaf():
			ranks |= w.ranks(n.card(), 1<<len(w.members[n.card()])-1)
		default:
			ranks |= bit(int(n))
		}
	}
	return ranks
}

// field returns the VID as packets carry it.
func (w *world) field(vid int) int { return vid % w.config.mod }

// ahead returns the field n chunks later; n may be negative.
func (w *world) ahead(field, n int) int {
	m := w.config.mod
	return ((field+n)%m + m) % m
}

// slotOf returns a card's slot for a VID, or for its field.
func (w *world) slotOf(c, vid int) *slot { return &w.cards[c].slots[vid%w.config.slots()] }

// rankAtParent is a leaf's rank at the root.
func rankAtParent(c int) int { return c - 1 }

// delivery is a packet on its way to one receiver, when faults have ceased.
type delivery struct {
	packet packet
	member int // of the card; -1: the card itself
}

// send puts a packet on its way. A result goes to the members in the set to.
func (w *world) send(p packet, to uint8) {
	if !w.calm {
		w.network.add(w.packets.Number(p))
		return
	}
	if to == 0 {
		w.queue = append(w.queue, delivery{p, -1})
	}
	for m := range w.members[p.card] {
		if to&bit(m) != 0 {
			w.queue = append(w.queue, delivery{p, m})
		}
	}
}

// expire removes packets from the network that are too old once a card takes up vid. Packets of
// older epochs and earlier trees stay, whatever their VID.
func (w *world) expire(epoch uint8, vid int) {
	w.network.each(func(n int) {
		p := w.packets.Values[n]
		if (p.kind == data || p.kind == result) && p.epoch == epoch && !p.earlier && vid-int(p.vid) >= w.config.lifetime() {
			w.network.remove(n)
		}
	})
}

// Start sets up all cards, before any worker has sent. The network may repeat the commits.
func (w *world) Start() {
	c := w.config
	w.state = state{deaths: uint8(c.deaths), restarts: uint8(c.restarts), owner: owner{first: uint8(c.first), confirmed: 1<<c.cards() - 1}}
	for i := range c.cards() {
		w.setUp(i, 0, c.first)
		w.send(packet{kind: commit, card: uint8(i), vid: uint8(c.first)}, 0)
	}
	if c.earlier {
		w.sendEarlier()
	}
	for i := range c.workers() {
		w.join(i)
	}
}

// sendEarlier puts late packets on their way: of an earlier owner's tree of the same cards, with the
// same epoch, VIDs and ranks.
func (w *world) sendEarlier() {
	c := w.config
	for i := 1; i < c.cards(); i++ {
		end := packet{card: root, member: uint8(rankAtParent(i)), vid: uint8(c.end()), earlier: true}
		for vid := c.first; vid < c.end(); vid++ {
			p := end
			p.kind, p.vid, p.payload = data, uint8(vid), w.foreign(w.ranks(root, bit(rankAtParent(i))), vid)
			w.send(p, 0)
		}
		end.kind = finish
		w.send(end, 0)
		end.kind = done
		w.send(end, bit(rankAtParent(i)))
	}
	for vid := c.first; vid < c.end(); vid++ {
		w.send(packet{kind: result, card: root, vid: uint8(vid), payload: w.foreign(c.ranks(), vid), mask: c.ranks(), earlier: true}, w.all(root))
	}
}
