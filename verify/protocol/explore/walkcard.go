package main

// The card's part of a walk, and its timing.

// receive delivers data, an ask or a finish to the card.
func (k *walk) receive(h header, payload tag) {
	s := sending{h, payload}
	k.event(k.packetEvent(s), func(e *walkEvent) answer { return k.takePacket(e, s) })
}

// packetEvent returns the event that describes a packet.
func (k *walk) packetEvent(s sending) walkEvent {
	h := s.header
	e := walkEvent{Do: doNames[h.kind], Port: h.port, Job: h.job, Epoch: k.epochBase + uint16(h.epoch), Rank: k.rank(h.job, h.rank),
		VID: k.vidBase + uint32(h.vid)}
	if h.kind == data {
		e.Tag = &walkTag{s.payload.from(), uint16(s.payload)}
	}
	return e
}

var doNames = map[kind]string{data: "data", ask: "ask", finish: "finish"}

// takePacket delivers a packet to the card and records the status that answers it.
func (k *walk) takePacket(e *walkEvent, s sending) answer {
	var a answer
	switch s.header.kind {
	case data:
		a = k.takeData(s.header, func(*slot) tag { return s.payload })
	case ask:
		a = k.takeAsk(s.header)
	case finish:
		a = k.takeFinish(s.header)
	}
	k.count(s.header, a)
	k.status(e, s, a)
	return a
}

// rank returns a member's rank in a job, in 8 bits. A member of another job gets a rank that this
// job does not have.
func (k *walk) rank(job, member int) uint8 {
	for j := range job {
		member -= k.config.Jobs[j]
	}
	return uint8(member)
}

// ranks returns the set of the members' ranks in a job.
func (k *walk) ranks(job int, members uint8) uint64 {
	var ranks uint64
	for m := range k.config.members() {
		if members&bit(m) != 0 {
			ranks |= 1 << k.rank(job, m)
		}
	}
	return ranks
}

// count increments the card's counter for a packet with this answer.
func (k *walk) count(h header, a answer) {
	name := answerNames[a]
	switch {
	case h.kind == finish && a == done:
		name = "finishes"
	case h.kind == ask && (a == owes || a == underWay || a == wait || a == sendIt):
		name = "asks"
	case a == owes:
		name = "duplicate"
	}
	k.counts[name]++
}

// status records the status that answers a packet. The card sends none if it sends the result, if
// it is still summing it, or if the rank does not belong to the port.
func (k *walk) status(e *walkEvent, of sending, a answer) {
	h := of.header
	if a == stored || a == owes || a == underWay || a == badRank || h.rank != h.port || k.config.membersOf(h.job)&bit(h.rank) == 0 {
		return
	}
	p := k.packetEvent(of)
	s := walkPacket{Kind: "status", Job: h.job, Epoch: p.Epoch, Rank: p.Rank, Code: answerNames[a], VID: p.VID}
	if a == wait || a == sendIt {
		missing := k.jobs[h.job].members
		if holds := k.slotOf(h.job, h.vid); k.field(int(holds.vid)) == h.vid {
			missing &^= holds.held
		}
		s.Mask = k.ranks(h.job, missing)
	}
	e.Sent = append(e.Sent, s)
}

// waitForDeadline advances time to the next deadline.
func (k *walk) waitForDeadline() {
	if i, ok := k.nextDeadline(); ok {
		k.passDeadline(i)
	}
}

// nextDeadline returns the slot whose deadline expires first.
func (k *walk) nextDeadline() (slot int, ok bool) {
	for i, t := range k.timers {
		if !ok || t.at < k.timers[slot].at {
			slot, ok = i, true
		}
	}
	return slot, ok
}

// passDeadline expires the deadline of slot i, which is the next one, and restarts it.
func (k *walk) passDeadline(i int) {
	t := k.timers[i]
	t.at += walkDeadline
	k.timers[i] = t
	job := k.jobOfSlot(i)
	e := walkEvent{Do: "deadline", At: t.at - walkDeadline, Job: job, VID: k.vidBase + uint32(k.slots[i].vid), Epoch: k.epochBase + uint16(k.jobs[job].epoch)}
	k.happen(e, func(e *walkEvent) answer {
		k.overdue(e, i)
		return done
	})
}

// overdue is the card's reaction to a slot's deadline, with the statuses that it sends.
func (k *walk) overdue(e *walkEvent, i int) {
	s, j := &k.slots[i], &k.jobs[e.Job]
	before := j.members
	missing := before &^ s.done
	if s.phase == collecting {
		missing = before &^ s.held
	}
	if missing == 0 && s.phase == reduced {
		k.Describe("the deadline of %s passes, but the slot waits for no member", k.v(int(s.vid)))
		return
	}
	k.counts["overdue"]++
	acted, closed := k.deadline(i), s.phase == reducing
	notified, code, named := before&^missing, "overdue", missing
	switch {
	case closed:
		return
	case acted:
		k.counts["evictions"]++
		notified, code, named = k.config.membersOf(e.Job), "evicted", k.config.membersOf(e.Job)&^j.members
	default:
		k.Describe("the deadline of %s passes: the card notifies %s that it waits for %s", k.v(int(s.vid)), k.set(notified), k.set(named))
	}
	for m := range k.config.members() {
		if notified&bit(m) != 0 {
			e.Sent = append(e.Sent, walkPacket{Kind: "status", Job: e.Job, Epoch: e.Epoch, Rank: k.rank(e.Job, m), Code: code, VID: e.VID, Mask: k.ranks(e.Job, named)})
		}
	}
}

// event makes something happen as the next packet.
func (k *walk) event(e walkEvent, do func(*walkEvent) answer) {
	k.passDeadlines()
	e.At = k.now + walkGap
	k.packets++
	k.happen(e, do)
}

// passDeadlines expires the deadlines that would fall into the time of the next packet.
func (k *walk) passDeadlines() {
	for {
		i, ok := k.nextDeadline()
		if !ok || k.timers[i].at >= k.now+2*walkGap {
			return
		}
		k.passDeadline(i)
	}
}

// happen makes an event happen at its time, with all its effects, and prints it.
func (k *walk) happen(e walkEvent, do func(*walkEvent) answer) {
	k.now = e.At
	k.trace = &trace{}
	k.Begin()
	a := do(&e)
	e.Answer = answerNames[a]
	k.settle(&e)
	e.Says = k.trace.last().text
	for j := range k.config.Jobs {
		of := &k.jobs[j]
		e.Jobs = append(e.Jobs, walkJob{Up: of.up, Epoch: k.epochBase + uint16(of.epoch),
			Finished: k.ranks(j, of.finished), Evicted: k.ranks(j, k.config.membersOf(j)&^of.members)})
	}
	if e.Do == "reset" {
		k.counts = map[string]int{}
	}
	k.counts["statuses"] += statuses(e.Sent)
	k.keepTime()
	if k.err == nil {
		k.err = k.out.Encode(e)
	}
}

func statuses(sent []walkPacket) int {
	n := 0
	for _, p := range sent {
		if p.Kind == "status" {
			n++
		}
	}
	return n
}

// settle lets the card sum all complete slots and send all owed results, once.
func (k *walk) settle(e *walkEvent) {
	for i := range len(k.config.Jobs) * k.slotCount() {
		job := k.jobOfSlot(i)
		if k.reduce(i) {
			k.counts["chunks"]++
			if s := &k.slots[i]; s.cacheMask != k.config.membersOf(job) {
				k.counts["partial"]++
			}
		}
	}
	for i := range len(k.config.Jobs) * k.slotCount() {
		for m := range k.config.members() {
			k.result(e, i, m)
		}
	}
}

// result sends a slot's result to a member if the card owes it.
func (k *walk) result(e *walkEvent, i, m int) {
	if !k.transmit(i, m) {
		return
	}
	s, job := &k.slots[i], k.jobOfSlot(i)
	epoch := int(k.jobs[job].epoch)
	p := walkPacket{Kind: "result", Job: job, Epoch: k.epochBase + uint16(epoch), Rank: k.rank(job, m), VID: k.vidBase + uint32(s.vid),
		Mask: k.ranks(job, s.cacheMask)}
	// The explorer does not distinguish replays from results; only the walk does.
	key := sentKey{job, epoch, int(s.vid), m}
	if k.sentTo[key] {
		p.Kind = "replay"
	}
	k.sentTo[key] = true
	for _, t := range s.cache[0] {
		if t != 0 {
			p.Tags = append(p.Tags, walkTag{t.from(), uint16(t)})
		}
	}
	e.Sent = append(e.Sent, p)
}

// keepTime starts the timers of slots that wait, and stops those of the others.
func (k *walk) keepTime() {
	for i := range len(k.config.Jobs) * k.slotCount() {
		s := &k.slots[i]
		t, runs := k.timers[i]
		same := runs && t.vid == s.vid && t.collected == (s.phase == collecting)
		switch {
		case !k.waits(s):
			delete(k.timers, i)
		case !same:
			k.timers[i] = timer{at: k.now + walkDeadline, vid: s.vid, collected: s.phase == collecting}
		}
	}
}

// waits reports whether a slot's timer runs.
func (k *walk) waits(s *slot) bool {
	waits := s.phase == collecting || s.phase == reduced && (s.stalled || k.without(evictUnasked))
	return waits && (k.config.Partial || k.config.Notices)
}
