package main

import "slices"

// symmetry maps all states that differ only in the numbering of the members to one
// representative. That is sound because rules and properties use member numbers only to tell
// members apart. So honest members of one job can be exchanged in the state and in all packets
// and contributions at once.
//
// The order of operands in a sum belongs to the arithmetic, which the explorer does not model.
// Without the check of the job number, members of equal rank in two jobs are linked, so no
// members are exchanged.
type symmetry struct {
	world  *world            // for its config and packets
	orders [][maxMembers]int // new number of each member; the first order is the identity
	moved  [][]int           // by order and packet: the number of the exchanged packet, or -1

	best, other []byte
}

func newSymmetry(w *world) *symmetry {
	y := &symmetry{world: w}
	y.extend([maxMembers]int{0, 1, 2}, 0, 0)
	y.moved = make([][]int, len(y.orders))
	return y
}

// extend lists the orders in which the first n members take the numbers in taken.
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

// canonical returns the encoding of the representative of s. It orders the members by ranking,
// and takes the least encoding among equal rankings. The next call overwrites it.
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

// ranking returns the members' states, one number each, in the i-th order.
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

// movePacket returns the number of packet n after the i-th exchange of members.
func (y *symmetry) movePacket(i, n int) int {
	for len(y.moved[i]) <= n {
		y.moved[i] = append(y.moved[i], -1)
	}
	if y.moved[i][n] < 0 {
		p := y.world.packets.Values[n]
		if p.kind != commit {
			p.member = uint8(y.orders[i][p.member])
		}
		p.mask = moveSet(&y.orders[i], p.mask)
		p.sum = moveSum(&y.orders[i], &p.sum)
		y.moved[i][n] = y.world.packets.Number(p)
	}
	return y.moved[i][n]
}
