package main

import "slices"

// symmetry maps all states that differ only in the numbering of workers and leaves to one
// representative. That is sound because rules and properties use these numbers only to tell workers
// and leaves apart. The order of operands in a sum belongs to the arithmetic, which is not modelled.
type symmetry struct {
	world  *world
	orders []order

	own, best, other []byte
}

// order is a renumbering of workers and leaves. The first order is the identity.
type order struct {
	worker   [maxWorkers]int
	card     [maxCards]int
	rank     [maxCards][maxMembers]int // by the old card and the old rank there
	packets  []uint16                  // the renumbered packet; 0: not known yet
	payloads []uint16
}

func newSymmetry(w *world) *symmetry {
	y := &symmetry{world: w}
	for cards := range permutations(w.config.cards()) {
		if cards[root] == root {
			y.extend(cards, 0, order{})
		}
	}
	return y
}

// extend adds all orders that have the given renumbering of cards, and that of the workers below i.
func (y *symmetry) extend(cards []int, i int, o order) {
	w := y.world
	c := w.config
	copy(o.card[:], cards)
	if i < c.workers() {
		for to := range c.workers() {
			alike := cards[w.place[i].card] == w.place[to].card && c.honest(i) == c.honest(to)
			if alike && !slices.Contains(o.worker[:i], to) {
				o.worker[i] = to
				y.extend(cards, i+1, o)
			}
		}
		return
	}
	for k := range c.cards() {
		if w.all(k) != 1<<len(w.members[k])-1 || len(w.members[k]) != len(w.members[cards[k]]) ||
			slices.Contains(c.dying, k) != slices.Contains(c.dying, cards[k]) {
			if cards[k] != k {
				return
			}
		}
		for m, n := range w.members[k] {
			if n.isLeaf() {
				n = leaf(cards[n.card()])
			} else {
				n = node(o.worker[n])
			}
			o.rank[k][m] = slices.Index(w.members[cards[k]], n)
		}
	}
	if w.config.misfit && cards[len(cards)-1] != len(cards)-1 {
		return
	}
	y.orders = append(y.orders, o)
}

// permutations yields all orders of the numbers below n, the identity first.
func permutations(n int) func(func([]int) bool) {
	return func(yield func([]int) bool) {
		var extend func([]int) bool
		extend = func(begun []int) bool {
			if len(begun) == n {
				return yield(begun)
			}
			for i := range n {
				if !slices.Contains(begun, i) && !extend(append(slices.Clone(begun), i)) {
					return false
				}
			}
			return true
		}
		extend(nil)
	}
}

// canonical returns the encoding of s, and that of its representative. The next call overwrites both.
func (y *symmetry) canonical(s *state) (own, best []byte) {
	c := y.world.config
	y.own = c.encode(y.own[:0], s)
	y.best = append(y.best[:0], y.own...)
	for i := 1; i < len(y.orders); i++ {
		moved := y.move(&y.orders[i], s)
		y.other = c.encode(y.other[:0], &moved)
		if string(y.other) < string(y.best) {
			y.best, y.other = y.other, y.best
		}
	}
	return y.own, y.best
}

// move applies an order to a state.
func (y *symmetry) move(o *order, s *state) state {
	c := y.world.config
	to := *s
	for i := range c.workers() {
		to.workers[o.worker[i]] = s.workers[i]
	}
	to.owner.confirmed = 0
	for k := range c.cards() {
		to.owner.confirmed |= s.owner.confirmed >> k & 1 << o.card[k]
		y.moveCard(o, k, &s.cards[k], &to.cards[o.card[k]])
	}
	to.network = packetSet{}
	s.network.each(func(n int) { to.network.add(int(y.movePacket(o, uint16(n)))) })
	return to
}

func (y *symmetry) moveCard(o *order, k int, from, to *card) {
	*to = *from
	to.finished = o.moveSet(k, from.finished)
	to.begun = y.movePacket(o, from.begun)
	for i := range y.world.config.slots() {
		a, b := &from.slots[i], &to.slots[i]
		b.held, b.done = o.moveSet(k, a.held), o.moveSet(k, a.done)
		for m := range y.world.members[k] {
			b.memory[o.rank[k][m]] = y.movePayload(o, a.memory[m])
		}
		b.final, b.cache = y.movePayload(o, a.final), y.movePayload(o, a.cache)
	}
}

func (o *order) moveSet(k int, set uint8) uint8 {
	var to uint8
	for m := range maxMembers {
		if set&bit(m) != 0 {
			to |= bit(o.rank[k][m])
		}
	}
	return to
}

// known returns the n-th number of a list, which it lengthens as needed.
func known(list *[]uint16, n uint16) *uint16 {
	for len(*list) <= int(n) {
		*list = append(*list, 0)
	}
	return &(*list)[n]
}

func (y *symmetry) movePayload(o *order, n uint16) uint16 {
	if n == 0 {
		return 0
	}
	if to := *known(&o.payloads, n); to != 0 {
		return to
	}
	p := y.world.payloads.Values[n]
	to := payload{torn: p.torn}
	for i := range y.world.config.workers() {
		to.inputs[o.worker[i]] = p.inputs[i]
		to.twice |= p.twice >> i & 1 << o.worker[i]
	}
	number := uint16(y.world.payloads.Number(to))
	*known(&o.payloads, n) = number
	return number
}

func (y *symmetry) movePacket(o *order, n uint16) uint16 {
	if n == 0 {
		return 0
	}
	if to := *known(&o.packets, n); to != 0 {
		return to
	}
	p := y.world.packets.Values[n]
	if p.kind != result && p.kind != commit {
		p.member = uint8(o.rank[p.card][p.member])
	}
	p.card = uint8(o.card[p.card])
	p.payload = y.movePayload(o, p.payload)
	var mask uint8
	for i := range y.world.config.workers() {
		mask |= p.mask >> i & 1 << o.worker[i]
	}
	p.mask = mask
	number := uint16(y.world.packets.Number(p))
	*known(&o.packets, n) = number
	return number
}
