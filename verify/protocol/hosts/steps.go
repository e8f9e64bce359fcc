package main

type kind uint8

const (
	ownerBegins kind = iota
	readOwner
	stage
	ask
	verify
	look
	nextJob
	releases
	ownerDies // the last step of an owner that has nothing else

	ownerArrives // packets of an owner
	releaseArrives
	tokenArrives
	memberArrives // MEMBER of a set-up and rank
	settingArrives
	commitArrives
	abortArrives

	memberDies
	join
	dataArrives
	takes

	finishCommit
	leaseEnds
	powerFails
	strangerWrites
	strangerSends
)

// step is something that happens. heard: the answer reaches its owner.
type step struct {
	kind   kind
	owner  int8
	member int8
	setup  int8
	rank   int8
	heard  bool
}

// Steps calls f with every step that may be possible.
func (w *world) Steps(f func(step)) {
	owners, members := w.config.owners, len(w.config.lives)
	for o := range int8(owners) {
		w.ownerSteps(o, f)
	}
	for m := range int8(members) {
		w.memberSteps(m, f)
	}
	if w.card.committer != 0 {
		f(step{kind: finishCommit, heard: true})
		f(step{kind: finishCommit})
	}
	f(step{kind: leaseEnds})
	f(step{kind: powerFails})
	if w.config.stranger {
		for i := range int8(len(strangerWritten)) {
			f(step{kind: strangerWrites, setup: i})
		}
		for r := range int8(ranks) {
			f(step{kind: strangerSends, rank: r})
		}
	}
}

func (w *world) ownerSteps(o int8, f func(step)) {
	for k := ownerBegins; k <= ownerDies; k++ {
		f(step{kind: k, owner: o})
	}
	p := &w.owners[o]
	for k := ownerArrives; k <= tokenArrives; k++ {
		f(step{kind: k, owner: o})
	}
	for s := range p.setup + 1 {
		if p.wrote&bit(s) != 0 {
			f(step{kind: memberArrives, owner: o, setup: s})
			f(step{kind: memberArrives, owner: o, setup: s, rank: 1})
			f(step{kind: settingArrives, owner: o, setup: s})
		}
		if p.asked&bit(s) != 0 {
			f(step{kind: commitArrives, owner: o, setup: s})
			f(step{kind: commitArrives, owner: o, setup: s, heard: true})
		}
		if p.aborted&bit(s) != 0 {
			f(step{kind: abortArrives, owner: o, setup: s})
		}
	}
}

func (w *world) memberSteps(m int8, f func(step)) {
	me := &w.members[m]
	if w.config.returns {
		for o := range int8(w.config.owners) {
			f(step{kind: join, member: m, owner: o})
		}
	}
	if me.phase == away {
		return
	}
	f(step{kind: memberDies, member: m})
	for s := range int8(w.config.setups) {
		if me.sent&bit(s) != 0 {
			f(step{kind: dataArrives, member: m, setup: s})
			f(step{kind: dataArrives, member: m, setup: s, heard: true})
		}
		for o := range int8(w.config.owners) {
			f(step{kind: takes, member: m, owner: o, setup: s})
		}
	}
}

// Step makes a step and reports whether it was possible.
func (w *world) Step(s step) bool {
	if !w.apply(s) {
		return false
	}
	w.judgeOwned()
	w.settle()
	return true
}

func (w *world) apply(s step) bool {
	o, m := int(s.owner), int(s.member)
	switch s.kind {
	case ownerBegins:
		return w.ownerBegins(o)
	case readOwner:
		return w.readOwner(o)
	case stage:
		return w.stage(o)
	case ask:
		return w.ask(o)
	case verify:
		return w.verify(o)
	case look:
		return w.look(o)
	case nextJob:
		return w.nextJob(o)
	case releases:
		return w.releases(o)
	case ownerDies:
		return w.ownerDies(o)
	case memberDies:
		return w.memberDies(m)
	case join:
		return w.join(m, o)
	case dataArrives:
		return w.dataArrives(m, s.setup, s.heard)
	case takes:
		return w.takes(m, o, s.setup)
	case finishCommit:
		return w.commitEnds(s.heard)
	case leaseEnds:
		return w.leaseEnds()
	case powerFails:
		return w.powerFails()
	case strangerWrites:
		return w.strangerWrites(int(s.setup))
	case strangerSends:
		return w.strangerSends(int(s.rank))
	}
	return w.answers() && w.arrives(s)
}

// arrives has a copy of a write that an owner has sent reach the card.
func (w *world) arrives(s step) bool {
	o := int(s.owner)
	p, from, before := &w.owners[o], w.addressOf(o), w.card
	set := &p.setups[s.setup]
	switch s.kind {
	case ownerArrives:
		if !p.took {
			return false
		}
		w.Say("OWNER of %s reaches the card", name(o))
		w.writeOwner(w.token(o), from)
	case releaseArrives:
		if !p.released {
			return false
		}
		w.Say("RELEASE of %s reaches the card", name(o))
		w.writeRelease(w.token(o), from, o, false)
	case commitArrives:
		return w.commitArrives(o, s.setup, s.heard)
	case abortArrives:
		w.Say("JOB_ABORT of %s, epoch %d, reaches the card", name(o), set.epoch)
		w.writeAbort(o, s.setup, set.epoch, from)
	default:
		if !w.mayWrite(from) || !p.wroteToken {
			return false
		}
		w.stagedArrives(s)
	}
	return w.card != before
}

// stagedArrives has a write to a staged register reach the card.
func (w *world) stagedArrives(s step) {
	o := int(s.owner)
	switch s.kind {
	case tokenArrives:
		w.Say("a copy of %s's write to JOB_TOKEN reaches the card", name(o))
		w.card.token = w.token(o)
	case memberArrives:
		to := w.wants(o, s.setup).members[s.rank]
		w.Say("a copy of %s's write of set-up %d to MEMBER %d reaches the card", name(o), s.setup+1, s.rank)
		w.tableWritten(int(s.rank), to)
	case settingArrives:
		w.Say("a copy of %s's write of set-up %d to JOB_CHUNK reaches the card", name(o), s.setup+1)
		w.card.staged.setting = w.wants(o, s.setup).setting
	}
}

// commitArrives has a copy of JOB_COMMIT reach the card.
func (w *world) commitArrives(o int, s int8, heard bool) bool {
	epoch := w.owners[o].setups[s].epoch
	w.Say("JOB_COMMIT of %s, epoch %d, reaches the card", name(o), epoch)
	answer, begun := w.writeCommit(o, s, epoch, w.addressOf(o))
	if begun {
		w.Add(": the commit begins")
		return !heard
	}
	w.Add(": %s", answer)
	return heard && w.hears(o, s, answer)
}

// commitEnds has the commit finish that the card is busy with.
func (w *world) commitEnds(heard bool) bool {
	by, s := int(w.card.commit.by), w.card.commit.setup
	w.Say("the commit finishes")
	answer := w.finishCommit()
	w.Add(": %s", answer)
	return !heard || by != theStranger && w.hears(by, s, answer)
}

// leaseEnds has the lease end: no access of the owner has come for LEASE cycles.
func (w *world) leaseEnds() bool {
	if w.card.owner == 0 || w.weak(leaseForEver) {
		return false
	}
	w.Say("the lease ends")
	w.free(w.weak(leaseKeepsJob))
	return true
}

// powerFails has the card lose its power, and all that it knows.
func (w *world) powerFails() bool {
	if w.left.power == 0 {
		return false
	}
	w.Say("the card loses its power, and returns")
	w.left.power--
	w.card = card{}
	return true
}

// settle forgets what can make no difference any more, so that states that behave alike are equal.
func (w *world) settle() {
	c := &w.card
	if !c.up && !w.weak(notUp|heldStays) {
		c.held, c.summed, c.job = [ranks]contribution{}, false, job{}
	}
}
