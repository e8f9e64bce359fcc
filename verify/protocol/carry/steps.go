package main

type kind uint8

const (
	send kind = iota
	reduce
	take
	evict
	notice
	finishes
	report
	hand
	begin
	begun
	renew
	daemonReturns
	learns
	evictLiving // from here on: what need not happen
	cardDies
	daemonDies
	memberDies
	memberReturns
	finishesEarly
)

type step struct {
	kind   kind
	member uint8
	chunk  uint8
	epoch  uint8
}

// Steps calls f with every step that may be possible.
func (w *world) Steps(f func(step)) {
	for m := range uint8(w.config.members) {
		f(step{kind: send, member: m})
		for e := uint8(w.members[m].epoch); ; e-- {
			for v := range uint8(w.config.chunks) {
				f(step{kind: take, member: m, chunk: v, epoch: e})
			}
			if e == 0 || !w.weak(staleEpoch) {
				break
			}
		}
		for k := evict; k <= finishesEarly; k++ {
			if ofMember[k] {
				f(step{kind: k, member: m})
			}
		}
		for v := range uint8(w.config.chunks + 1) {
			f(step{kind: memberReturns, member: m, chunk: v})
		}
	}
	for v := range uint8(w.config.chunks) {
		f(step{kind: reduce, chunk: v})
	}
	for _, k := range []kind{notice, begin, renew, daemonReturns, cardDies, daemonDies} {
		f(step{kind: k})
	}
}

// ofMember are the kinds of steps that have a member and nothing else.
var ofMember = [...]bool{evict: true, evictLiving: true, finishes: true, finishesEarly: true, learns: true,
	report: true, hand: true, begun: true, memberDies: true}

// Step makes a step and reports whether it was possible.
func (w *world) Step(s step) bool {
	if w.over != notOver || !w.apply(s) {
		return false
	}
	w.infer()
	w.end()
	w.settle()
	return true
}

func (w *world) apply(s step) bool {
	m, v := int(s.member), int(s.chunk)
	switch s.kind {
	case send:
		return w.send(m)
	case reduce:
		return w.reduce(v)
	case take:
		return w.takeResult(m, v, int(s.epoch))
	case evict:
		return w.evict(m, false)
	case evictLiving:
		return w.evict(m, true)
	case notice:
		return w.notice()
	case finishes:
		return w.finishes(m, false)
	case finishesEarly:
		return w.finishes(m, true)
	case learns:
		return w.learns(m)
	case report:
		return w.report(m)
	case hand:
		return w.hand(m)
	case begin:
		return w.begin()
	case begun:
		return w.begun(m)
	case renew:
		return w.renew()
	case memberReturns:
		return w.returns(m, v)
	}
	return w.fail(s.kind, m)
}

// send has a member contribute its next chunk.
func (w *world) send(n int) bool {
	v, ready := w.next(n)
	if !ready || w.blocks(v) != 0 {
		return false
	}
	m := &w.members[n]
	m.sent |= bit(v)
	c := input
	if m.held[v] != 0 {
		if c = zeros; w.weak(noZeros) {
			c = sum
		}
	} else if !w.config.boundary(int(m.from)) {
		c = sum
	}
	if c == input {
		m.gave |= bit(v)
	}
	w.Say("member %d contributes chunk %d%s", n, v, [...]string{"", "", " as zeros", ", and not its input"}[c])
	if w.summed[w.epoch]&bit(v) == 0 {
		w.given[v][n] = c
	}
	w.announced = max(w.announced, int8(w.config.after(v)))
	return true
}

// next returns the chunk that a member contributes next, and whether it may.
func (w *world) next(n int) (v int, ready bool) {
	m := &w.members[n]
	if !w.running(n) {
		return 0, false
	}
	v = int(max(m.first, m.from))
	for m.sent&bit(v) != 0 {
		v++
	}
	if v >= w.config.chunks || v >= m.low()+w.config.window {
		return 0, false
	}
	return v, !w.paused || v < int(w.pause) || w.weak(pauseDropsNothing|noPause)
}

// running reports whether a member takes part in the card's epoch.
func (w *world) running(n int) bool {
	m := &w.members[n]
	return m.here() && !m.entering && !m.stopped && m.epoch == w.epoch && w.cardUp && w.daemonUp && !w.gathering &&
		w.evicted&seat(n) == 0
}

// blocks returns the seats that keep chunk v out of its slot: those that have not shown that they are
// done with the chunk 2W before. Contributions of the chunk W after that one show it.
func (w *world) blocks(v int) seats {
	if v < int(w.first)+2*w.config.window {
		return 0
	}
	var s seats
	for n := range w.config.members {
		m := &w.members[n]
		done := m.epoch == w.epoch && m.sent&bit(v-w.config.window) != 0 || m.finish != unfinished && !w.config.early
		if !done && w.evicted&seat(n) == 0 {
			s |= seat(n)
		}
	}
	return s
}

// reduce has the card sum a chunk: with the inputs of all that are not evicted, or at its deadline. The
// daemon sees the result, and keeps it.
func (w *world) reduce(v int) bool {
	if !w.cardUp || w.gathering || w.summed[w.epoch]&bit(v) != 0 {
		return false
	}
	var r value
	all := true
	for n, c := range w.given[v][:w.config.members] {
		switch {
		case c == nothing:
			all = all && w.evicted&seat(n) != 0
			continue
		case c == input:
			r |= 1 << (3 + n)
		case c == sum:
			r |= otherContent
		}
		r |= 1 << n
	}
	if r == 0 || !all && !w.config.partial {
		return false
	}
	w.Say("the card sums chunk %d, with contributions of %03b", v, r.named())
	w.summed[w.epoch] |= bit(v)
	w.sums[w.epoch][v] = r
	w.given[v] = [maxMembers]content{}
	if !w.weak(noDaemonKeep) && w.kept[v] == 0 {
		keep(&w.kept, v, w.config.depth(), r)
	}
	return true
}

// underWay returns the results of an epoch that may reach a member.
func (w *world) underWay(n, epoch int) chunks {
	m := &w.members[n]
	switch {
	case m.dead || m.entering || m.finish == known || m.stopped && !w.weak(noStop):
		return 0
	case epoch == int(m.epoch):
		return w.summed[epoch] & m.sent &^ m.read
	}
	return m.late[epoch]
}

// takeResult has a result that was under way reach a member.
func (w *world) takeResult(n, v, epoch int) bool {
	m := &w.members[n]
	if w.underWay(n, epoch)&bit(v) == 0 || m.held[v] != 0 && !w.weak(replaceKept) {
		return false
	}
	w.Say("member %d takes the result of chunk %d of epoch %d", n, v, epoch)
	if w.weak(replaceKept) {
		m.read |= bit(v)
	}
	m.late[epoch] &^= bit(v)
	w.hold(n, v, w.sums[epoch][v])
	return true
}

// evict has the card evict the seats that block a member. It is a failure if one of them lives.
func (w *world) evict(n int, failure bool) bool {
	v, ready := w.next(n)
	if !ready || !w.config.partial {
		return false
	}
	s := w.blocks(v)
	living := int8(0)
	for o := range w.config.members {
		if s&seat(o) != 0 && w.takesPart(o) {
			living++
		}
	}
	if s == 0 || failure != (living > 0) || living > w.left.evictions {
		return false
	}
	w.Say("the card evicts %03b, which blocks chunk %d of member %d", s, v, n)
	w.left.evictions -= living
	w.evicted |= s
	return true
}

// notice has the card's notice of evictions reach the daemon. One of an old epoch means nothing.
func (w *world) notice() bool {
	if w.cardUp && w.daemonUp && w.noticed != w.evicted {
		w.Say("the daemon learns that the card has evicted %03b", w.evicted)
		w.noticed = w.evicted
		return true
	}
	if w.stale != 0 {
		w.Say("the daemon learns that the card had evicted %03b", w.stale)
		w.marked, w.stale = w.marked|w.stale, 0
		return true
	}
	return false
}

// finishes has a member finish: after all calls, or early, after some. The card confirms it.
func (w *world) finishes(n int, early bool) bool {
	m := &w.members[n]
	low := m.low()
	if !w.running(n) || early != (low < w.config.chunks) {
		return false
	}
	if early && (!w.config.early || !w.config.boundary(low) || m.sent>>low != 0) {
		return false
	}
	w.Say("member %d finishes, and the card confirms it", n)
	m.finish = confirmed
	return true
}

// learns has the confirmation of its finish reach a member.
func (w *world) learns(n int) bool {
	m := &w.members[n]
	if m.dead || m.finish != confirmed {
		return false
	}
	w.Say("member %d learns that it has finished", n)
	m.finish = known
	return true
}
