package main

type kind uint8

const (
	send kind = iota
	reduce
	deliver
	take
	report
	hand
	begin
	begun
	daemonReturns
	cardDies // the first failure
	daemonDies
	memberDies
)

type step struct {
	kind   kind
	member uint8
	chunk  uint8
	epoch  uint8
}

// steps calls f with every step that may be possible.
func (w *world) steps(f func(step)) {
	for m := range uint8(w.config.members) {
		for v := range uint8(w.config.chunks) {
			f(step{kind: send, member: m, chunk: v})
			f(step{kind: deliver, member: m, chunk: v})
			for e := range uint8(maxEpochs) {
				f(step{kind: take, member: m, chunk: v, epoch: e})
			}
		}
		f(step{kind: report, member: m})
		f(step{kind: hand, member: m})
		f(step{kind: begun, member: m})
		f(step{kind: memberDies, member: m})
	}
	for v := range uint8(w.config.chunks) {
		f(step{kind: reduce, chunk: v})
	}
	f(step{kind: begin})
	f(step{kind: daemonReturns})
	f(step{kind: cardDies})
	f(step{kind: daemonDies})
}

// take makes a step and reports whether it was possible.
func (w *world) take(s step) bool {
	m, v := int(s.member), int(s.chunk)
	switch s.kind {
	case send:
		return w.send(m, v)
	case reduce:
		return w.reduce(v)
	case deliver:
		return w.deliver(m, v)
	case take:
		return w.takeResult(m, v, int(s.epoch))
	case report:
		return w.report(m)
	case hand:
		return w.hand(m)
	case begin:
		return w.begin()
	case begun:
		return w.begun(m)
	case daemonReturns:
		if w.daemonUp {
			return false
		}
		w.say("a new daemon starts, and gathers reports")
		w.daemonUp = true
		w.gather()
		return true
	case cardDies:
		if w.cards == 0 || !w.cardUp || !w.daemonUp {
			return false
		}
		w.say("the card dies; the daemon gathers reports")
		w.cards--
		w.forgetJob()
		w.gather()
		return true
	case daemonDies:
		if w.deaths == 0 || !w.daemonUp {
			return false
		}
		w.say("the daemon dies; the card drops the job")
		w.deaths--
		w.forgetJob()
		w.daemonUp, w.gathering, w.kept = false, false, [maxChunks]value{}
		return true
	case memberDies:
		return w.dies(m)
	}
	return false
}

func (w *world) forgetJob() {
	w.cardUp, w.summed, w.given = false, 0, [maxChunks][maxMembers]content{}
}

// gather has the daemon ask all members for reports.
func (w *world) gather() {
	w.gathering = true
	for i := range w.members {
		w.members[i].reported = false
	}
}

func (w *world) dies(n int) bool {
	m := &w.members[n]
	if w.leaves == 0 || m.dead {
		return false
	}
	w.say("member %d dies", n)
	w.leaves--
	*m = member{dead: true}
	return true
}

// running reports whether a member takes part in the card's epoch.
func (w *world) running(n int) bool {
	m := &w.members[n]
	return !m.dead && !m.stopped && m.epoch == w.epoch && w.cardUp && w.daemonUp && !w.gathering
}

// send has a member contribute its next chunk. The card's slot is free when all members have shown
// that they are done with the chunk 2W before.
func (w *world) send(n, v int) bool {
	m := &w.members[n]
	if !w.running(n) || v < int(m.first) || m.sent&bit(v) != 0 || v > int(m.first) && m.sent&bit(v-1) == 0 ||
		v >= m.low()+w.config.window {
		return false
	}
	if u := v - w.config.window; u >= int(w.first) {
		for o := range w.members {
			if other := &w.members[o]; !other.dead && other.sent&bit(u) == 0 {
				return false
			}
		}
	}
	m.sent |= bit(v)
	c := input
	if m.held[v] != 0 {
		if c = zeros; w.weak(noZeros) {
			c = sum
		}
	}
	w.say("member %d contributes chunk %d%s", n, v, [...]string{"", "", " as zeros", " from an array that has been overwritten"}[c])
	if w.summed&bit(v) == 0 {
		w.given[v][n] = c
	}
	return true
}

// reduce has the card sum a chunk: with the inputs of all living members, or at its deadline.
func (w *world) reduce(v int) bool {
	if !w.cardUp || w.gathering || w.summed&bit(v) != 0 {
		return false
	}
	var r value
	all := true
	for n, c := range w.given[v] {
		switch {
		case c == nothing:
			all = all && w.members[n].dead
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
	w.say("the card sums chunk %d, with contributions of %03b", v, r.named())
	w.summed |= bit(v)
	w.sums[w.epoch][v] = r
	return true
}

// deliver has a result reach the daemon, which keeps it and sends it to a member that has contributed.
// The card repeats a result that is lost, until it reaches the member.
func (w *world) deliver(n, v int) bool {
	m := &w.members[n]
	if !w.running(n) || w.summed&bit(v) == 0 || m.sent&bit(v) == 0 || (m.read|m.flight[w.epoch])&bit(v) != 0 {
		return false
	}
	w.say("the daemon sends the result of chunk %d to member %d", v, n)
	if !w.weak(noDaemonKeep) && w.kept[v] == 0 {
		keep(&w.kept, v, w.config.depth(), w.sums[w.epoch][v])
	}
	m.flight[w.epoch] |= bit(v)
	return true
}

// takeResult has a result that was under way reach a member.
func (w *world) takeResult(n, v, epoch int) bool {
	m := &w.members[n]
	if m.dead || m.flight[epoch]&bit(v) == 0 {
		return false
	}
	w.say("member %d reads the result of chunk %d of epoch %d", n, v, epoch)
	m.flight[epoch] &^= bit(v)
	if epoch == int(m.epoch) {
		m.read |= bit(v)
	}
	switch {
	case epoch != int(m.epoch) && !w.weak(staleEpoch):
		w.tell += ", and drops it: it is in another epoch"
	case m.stopped && !w.weak(noStop):
		w.tell += ", and drops it: it has stopped"
	case m.held[v] != 0 && !w.weak(replaceKept):
		w.tell += ", and drops it: it holds one"
	default:
		if m.held[v] != 0 {
			m.held[v] = 0
		}
		w.hold(n, v, w.sums[epoch][v])
	}
	return true
}

// report has a member stop and report what it holds.
func (w *world) report(n int) bool {
	m := &w.members[n]
	if m.dead || !w.daemonUp || !w.gathering || m.reported {
		return false
	}
	w.say("member %d stops and reports the results that it holds", n)
	m.reported, m.stopped, m.starting = true, true, false
	m.told = 0
	for v := range m.held {
		if m.held[v] != 0 {
			m.told |= bit(v)
		}
	}
	return true
}

// source returns the result of a chunk that the daemon or a member's library keeps.
func (w *world) source(v int) value {
	if w.kept[v] != 0 {
		return w.kept[v]
	}
	for n := range w.members {
		if m := &w.members[n]; !m.dead && m.reported && m.told&bit(v) != 0 && m.ring[v] != 0 {
			return m.ring[v]
		}
	}
	return 0
}

// allReported reports whether the daemon knows what each living member holds.
func (w *world) allReported() bool {
	some, all := false, true
	for n := range w.members {
		if m := &w.members[n]; !m.dead {
			some, all = some || m.reported, all && m.reported
		}
	}
	return some && (all || w.weak(noBarrier))
}

// hand has a member that has stopped take the kept results that it lacks.
func (w *world) hand(n int) bool {
	m := &w.members[n]
	if !w.daemonUp || !w.gathering || m.dead || !m.reported || !w.allReported() || w.weak(keptNotHanded|handWithStart|firstOfFastest) {
		return false
	}
	w.say("member %d takes what it lacks", n)
	var got chunks
	for v := range w.config.chunks {
		if kept := w.source(v); kept != 0 && m.told&bit(v) == 0 {
			got |= bit(v)
			w.tell += fmtChunk(v)
			if m.held[v] == 0 {
				w.hold(n, v, kept)
			}
		}
	}
	m.told |= got
	return got != 0
}

// begin has the daemon set the job up in the next epoch, when all members have reported and hold the
// results that were kept. It begins with the first chunk that a member lacks.
func (w *world) begin() bool {
	if !w.daemonUp || !w.gathering || int(w.epoch)+1 == maxEpochs || !w.allReported() {
		return false
	}
	before := w.state
	w.epoch++
	w.cardUp, w.gathering = true, false
	w.summed, w.given, w.handed = 0, [maxChunks][maxMembers]content{}, [maxChunks]value{}
	w.first = int8(w.config.chunks)
	for v := w.config.chunks - 1; v >= 0; v-- {
		if !w.beginChunk(v) {
			w.state = before
			return false
		}
	}
	w.say("the daemon sets the job up in epoch %d, from chunk %d", w.epoch, w.first)
	for n := range w.members {
		if m := &w.members[n]; !m.dead {
			m.starting = true
		}
	}
	return true
}

// beginChunk decides what becomes of a chunk in the next epoch. It returns false if a member has not
// taken its kept result yet.
func (w *world) beginChunk(v int) bool {
	lacks, holder := false, -1
	for n := range w.members {
		m := &w.members[n]
		switch {
		case m.dead:
		case m.reported && m.told&bit(v) != 0:
			holder = n
		default:
			lacks = true
		}
	}
	if !lacks && !w.weak(firstOfSlowest) {
		return true
	}
	if holder >= 0 && w.weak(firstOfFastest) {
		return true
	}
	kept := w.source(v)
	switch {
	case kept != 0 && w.weak(handWithStart):
		w.handed[v] = kept
		return true
	case kept != 0 && lacks && !w.weak(keptNotHanded|noBarrier):
		return false
	case kept == 0 && lacks && holder >= 0 && !w.weak(sumLost):
		w.violate("nothing lost", "member %d holds the result of chunk %d, and nobody has kept it for those that lack it", holder, v)
	}
	w.first = int8(v)
	return true
}

// begun has a member begin the epoch.
func (w *world) begun(n int) bool {
	m := &w.members[n]
	if m.dead || !m.starting {
		return false
	}
	w.say("member %d begins epoch %d", n, w.epoch)
	m.starting, m.stopped = false, false
	m.epoch, m.first, m.sent, m.read = w.epoch, w.first, 0, 0
	for v, r := range w.handed {
		if r != 0 && m.held[v] == 0 {
			w.tell += fmtChunk(v)
			w.hold(n, v, r)
		}
	}
	return true
}
