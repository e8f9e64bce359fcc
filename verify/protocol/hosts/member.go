package main

// join has a member take its seat at an owner's process. The owner refuses a ticket with another nonce. A
// member that has a seat already counts as lost: it may live, and keep sending.
func (w *world) join(m, o int) bool {
	l, p, me := w.config.life(m), &w.owners[o], &w.members[m]
	if me.phase != away || p.phase < owning || p.phase == gone {
		return false
	}
	if !w.ticketFor(m, o) {
		return false
	}
	seat := p.seats[l.rank]
	if w.earlier(m) || int(seat) > m+1 {
		return false
	}
	if seat != 0 && p.setups[p.setup].epoch != 0 && !w.weak(tableAtOnce) && !w.nextSetup(o) {
		return false
	}
	w.Say("member %d joins %s as rank %d", m, name(o), l.rank)
	if seat != 0 {
		w.Add(", which has lost member %d", seat-1)
	}
	w.sit(m, o)
	if w.weak(tableAtOnce) && p.phase == using {
		w.moveSeat(o, m)
	}
	return true
}

// ticketFor reports whether an owner takes a member's ticket: one with the nonce of its job.
func (w *world) ticketFor(m, o int) bool {
	l := w.config.life(m)
	return l.owner == o && l.job == int(w.owners[o].job) || w.weak(anyNonce)
}

// sit gives a member its seat.
func (w *world) sit(m, o int) {
	w.owners[o].seats[w.config.life(m).rank] = int8(m) + 1
	w.members[m] = member{phase: joined, by: int8(o)}
}

// moveSeat has an owner that writes into the table of its running job tell a new member the old epoch.
func (w *world) moveSeat(o, m int) {
	p := &w.owners[o]
	p.setups[p.setup].seats = p.seats
	if w.mayWrite(w.addressOf(o)) {
		w.tableWritten(w.config.life(m).rank, w.seatOf(m))
	}
	w.tellMembers(o)
}

// earlier reports whether a former life of the member has not joined yet.
func (w *world) earlier(m int) bool {
	for n := range m {
		if w.config.life(n) == w.config.life(m) && w.members[n].phase == away {
			return true
		}
	}
	return false
}

// tellMembers tells the members of an owner's set-up its number and epoch. From then on they send.
func (w *world) tellMembers(o int) {
	p := &w.owners[o]
	w.judgeTold(o)
	for _, m := range p.setups[p.setup].seats {
		if me := &w.members[m-1]; me.phase == joined || me.phase == told {
			me.got = me.got && me.phase == told && me.setup == p.setup
			me.phase, me.setup = told, p.setup
			me.sent |= bit(p.setup)
		}
	}
}

// dataArrives has data reach the card. A member that hears bad_length reports it to its owner, who sets
// the job up again.
func (w *world) dataArrives(m int, s int8, heard bool) bool {
	me := &w.members[m]
	if me.sent&bit(s) == 0 && !w.calm {
		return false
	}
	o := int(me.by)
	set := &w.owners[o].setups[s]
	before := w.card
	of, rank := contribution{1 + int8(m), s}, w.config.life(m).rank
	refused := w.takeData(of, rank, w.seatOf(m), set.epoch, w.config.setting(me.by, set.job))
	w.Say("data of member %d, epoch %d, reaches the card", m, set.epoch)
	if w.card == before && !(heard && refused) {
		return false
	}
	if p := &w.owners[o]; refused && heard {
		w.Add(": bad_length; %s hears of it", name(o))
		return me.phase == told && me.setup == s && p.phase == using && p.setup == s && !w.weak(sizeUnheard) && w.again(o)
	}
	return true
}

// takes has a result of an owner's set-up reach a member, and reports whether the member takes it.
func (w *world) takes(m, o int, s int8) bool {
	me := &w.members[m]
	if me.phase != told || w.owners[o].results&bit(s) == 0 {
		return false
	}
	rank := w.config.life(m).rank
	of, mine := &w.owners[o].setups[s], &w.owners[me.by].setups[me.setup]
	if of.seats[rank] == 0 || w.seatOf(int(of.seats[rank])-1) != w.seatOf(m) {
		return false
	}
	if of.epoch != mine.epoch && !w.weak(resultAnyEpoch) {
		return false
	}
	w.Say("member %d takes the result of set-up %d of %s", m, s+1, name(o))
	if int(me.by) != o || me.setup != s {
		w.Violate(ownResult, "member %d takes it for the result of set-up %d of %s", m, me.setup+1, name(int(me.by)))
	}
	me.got = me.got || w.calm
	return true
}

// memberDies has a member's life end.
func (w *world) memberDies(m int) bool {
	me := &w.members[m]
	if w.left.members == 0 || me.phase == away || me.phase == dead {
		return false
	}
	w.Say("member %d dies", m)
	w.left.members--
	me.phase, me.got = dead, false
	return true
}
