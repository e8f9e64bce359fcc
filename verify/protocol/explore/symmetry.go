package main

import "slices"

// symmetry maps a state to the one that stands for all that differ from it in
// the numbering of the members only. That is sound because no rule and no
// property looks at a member's number but to tell it from others: honest
// members of one job can be exchanged, in the state and in every packet and
// contribution at once. (The order in which a sum adds its operands is the
// arithmetic's, which is not explored. Without the check of the job number,
// members of the same rank in two jobs belong together, so nobody is exchanged.)
type symmetry struct {
	world  *world            // its config and packets
	orders [][maxMembers]int // where each member goes; the first changes nothing
	moved  [][]int           // by order and packet: the exchanged packet's number, or -1

	best, other []byte
}

func newSymmetry(w *world) *symmetry {
	y := &symmetry{world: w}
	y.extend([maxMembers]int{0, 1, 2}, 0, 0)
	y.moved = make([][]int, len(y.orders))
	return y
}

// extend lists the orders in which the first n members go to the places of
// taken.
func (y *symmetry) extend(order [maxMembers]int, n int, taken uint8) {
	c := y.world.config
	if n == c.members() {
		y.orders = append(y.orders, order)
		return
	}
	for to := range c.members() {
		exchangeable := to == n || c.jobOf(to) == c.jobOf(n) && c.honest(to) && c.honest(n) && !y.world.without(anyJob)
		if taken&bit(to) == 0 && exchangeable {
			order[n] = to
			y.extend(order, n+1, taken|bit(to))
		}
	}
}

// canonical is the encoding of the state that stands for s: the least encoding
// of those exchanged states whose members come in the least order. It is
// overwritten by the next call.
func (y *symmetry) canonical(s *state) []byte {
	least := y.ranking(0, s)
	for i := range y.orders {
		if ranks := y.ranking(i, s); slices.Compare(ranks[:], least[:]) < 0 {
			least = ranks
		}
	}
	y.best = y.best[:0]
	for i := range y.orders {
		if y.ranking(i, s) != least {
			continue
		}
		if i == 0 {
			y.other = y.world.encodeState(y.other[:0], s)
		} else {
			moved := y.exchange(i, s)
			y.other = y.world.encodeState(y.other[:0], &moved)
		}
		if len(y.best) == 0 || string(y.other) < string(y.best) {
			y.best, y.other = y.other, y.best
		}
	}
	return y.best
}

// ranking is what an order puts where: a number for the state of each worker.
func (y *symmetry) ranking(i int, s *state) [maxMembers]uint64 {
	var ranks [maxMembers]uint64
	for m := range y.world.config.members() {
		me := &s.members[m]
		ranks[y.orders[i][m]] = uint64(me.life) | uint64(boolBit(me.finished))<<7 |
			uint64(me.epoch)<<8 | uint64(me.low)<<16 | uint64(me.ahead)<<24 | uint64(me.next)<<32 | uint64(me.sending)<<40
	}
	return ranks
}

// exchange applies an order to a state.
func (y *symmetry) exchange(i int, s *state) state {
	order := &y.orders[i]
	to := *s
	for m := range y.world.config.members() {
		to.members[order[m]] = s.members[m]
		if s.members[m].sending != 0 {
			to.members[order[m]].begun = uint16(y.movePacket(i, int(s.members[m].begun)))
		}
	}
	for k := range to.slots {
		moveSlot(order, &s.slots[k], &to.slots[k])
	}
	for j := range to.jobs {
		to.jobs[j].members = moveSet(order, s.jobs[j].members)
		to.jobs[j].finished = moveSet(order, s.jobs[j].finished)
	}
	to.network = packetSet{}
	s.network.each(func(n int) { to.network.add(y.movePacket(i, n)) })
	return to
}

func moveSlot(order *[maxMembers]int, from, to *slot) {
	for _, set := range []*uint8{&to.held, &to.done, &to.owed, &to.mask, &to.cacheMask} {
		*set = moveSet(order, *set)
	}
	for m := range maxMembers {
		to.memory[order[m]] = moveTag(order, from.memory[m])
	}
	to.cache = moveSum(order, &from.cache)
}

func moveSet(order *[maxMembers]int, set uint8) uint8 {
	var to uint8
	for m := range maxMembers {
		if set&bit(m) != 0 {
			to |= bit(order[m])
		}
	}
	return to
}

func moveTag(order *[maxMembers]int, t tag) tag {
	if t == 0 {
		return 0
	}
	return contribution(order[t.from()], t.epoch(), t.vid(), t.variant())
}

func moveSum(order *[maxMembers]int, from *sum) sum {
	var to sum
	for beat := range maxBeats {
		for m := range maxMembers {
			to[beat][order[m]] = moveTag(order, from[beat][m])
		}
	}
	return to
}

// movePacket is the number of a packet whose members are exchanged.
func (y *symmetry) movePacket(i, n int) int {
	for len(y.moved[i]) <= n {
		y.moved[i] = append(y.moved[i], -1)
	}
	if y.moved[i][n] < 0 {
		p := y.world.packets.packets[n]
		if p.kind != commit {
			p.member = uint8(y.orders[i][p.member])
		}
		p.mask = moveSet(&y.orders[i], p.mask)
		p.sum = moveSum(&y.orders[i], &p.sum)
		y.moved[i][n] = y.world.packets.number(p)
	}
	return y.moved[i][n]
}
