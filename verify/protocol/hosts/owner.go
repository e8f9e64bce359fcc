package main

// ownerBegins has a process write OWNER.
func (w *world) ownerBegins(o int) bool {
	p := &w.owners[o]
	if p.phase != unborn || o > 0 && !w.followed(&w.owners[o-1]) {
		return false
	}
	w.Say("%s writes OWNER", name(o))
	p.phase, p.took = wanting, true
	return true
}

// followed reports whether another owner may come after this one. Lives that share a port or a token are
// those of one process.
func (w *world) followed(by *owner) bool {
	if w.config.serial || w.weak(samePort|sameToken) {
		return by.phase == gone
	}
	return by.phase != unborn
}

// readOwner has an owner read OWNER. It has the card if its own token is there. Later it has lost the
// card, and all its jobs, if it reads another one.
func (w *world) readOwner(o int) bool {
	p := &w.owners[o]
	if p.phase == unborn || p.phase == gone {
		return false
	}
	mine := w.card.owner == w.token(o)
	switch {
	case p.phase == wanting && (mine || w.weak(takenUnread) && !w.calm):
		w.Say("%s reads its token in OWNER", name(o))
		p.phase = owning
	case p.phase > wanting && !mine && !w.weak(lossUnnoticed):
		w.Say("%s reads OWNER: it has lost the card", name(o))
		w.leave(o)
	default:
		return false
	}
	return true
}

// leave has an owner's life end. The packets that it has sent stay.
func (w *world) leave(o int) { w.owners[o].phase = gone }

// stage has an owner write everything that it stages, and get the answers. The first time it reads
// JOB_STATE before, and chooses the epoch.
func (w *world) stage(o int) bool {
	p := &w.owners[o]
	if p.phase != owning || !w.answers() || !w.mayWrite(w.addressOf(o)) || !w.seated(o) {
		return false
	}
	set := &p.setups[p.setup]
	if set.epoch == 0 {
		last := w.card.last
		for _, s := range p.setups {
			if !w.weak(epochOfCard) {
				last = max(last, s.epoch)
			}
		}
		*set = setup{epoch: last + 1, job: p.job, seats: p.seats}
	}
	v := w.wants(o, p.setup)
	w.Say("%s stages set-up %d: epoch %d, %s", name(o), p.setup+1, set.epoch, w.describe(v))
	if !w.weak(tokenOnce) || !p.wroteToken {
		w.card.token = w.token(o)
	}
	for r, m := range v.members {
		w.tableWritten(r, m)
	}
	w.card.staged.setting = v.setting
	p.wroteToken = true
	p.wrote |= bit(p.setup)
	p.phase = staged
	return true
}

// seated reports whether all ranks of an owner's job have joined. Where the order of joins makes no
// difference, members join when they are needed.
func (w *world) seated(o int) bool {
	p := &w.owners[o]
	if _, members := w.config.people(); !w.config.returns || w.calm {
		for m := range members {
			if l := w.config.life(m); p.seats[l.rank] == 0 && w.ticketFor(m, o) && w.members[m].phase == away {
				w.sit(m, o)
			}
		}
	}
	return p.seats[0] != 0 && p.seats[1] != 0
}

// ask has an owner read back what it has staged, and send JOB_COMMIT if it is right.
func (w *world) ask(o int) bool {
	p := &w.owners[o]
	if p.phase != staged || !w.answers() {
		return false
	}
	if !w.weak(noReadBack) && (w.card.token != w.token(o) || w.card.staged != w.wants(o, p.setup)) {
		w.Say("%s reads back other values than it has staged", name(o))
		p.phase = owning
		return true
	}
	w.Say("%s reads back what it has staged, and sends JOB_COMMIT of epoch %d", name(o), p.setups[p.setup].epoch)
	p.asked |= bit(p.setup)
	p.phase = asking
	if w.weak(toldBeforeDone) {
		w.tellMembers(o)
	}
	return true
}

// hears has an owner hear the answer to its commit.
func (w *world) hears(o int, s int8, answer code) bool {
	p := &w.owners[o]
	if p.phase != asking || p.setup != s {
		return false
	}
	w.Add("; %s hears %s", name(o), answer)
	switch answer {
	case done:
		p.phase = committed
	case epochInUse, staleEpoch:
		return w.again(o)
	default:
		p.phase = owning
	}
	return true
}

// again has an owner set its job up in a later epoch.
func (w *world) again(o int) bool {
	if w.weak(sameEpochRetried) {
		w.owners[o].phase = owning
		return true
	}
	return w.nextSetup(o)
}

// nextSetup has an owner begin another attempt, if the configuration has one left.
func (w *world) nextSetup(o int) bool {
	p := &w.owners[o]
	limit := w.config.setups
	if w.calm {
		limit = maxSetups
	}
	if int(p.setup)+1 >= limit {
		return false
	}
	p.setup++
	p.phase = owning
	return true
}

// verify has an owner read JOB_STATE and JOB_ADDRESS after its commit. It tells its members the epoch
// if it finds its own job.
func (w *world) verify(o int) bool {
	p := &w.owners[o]
	if p.phase != committed || !w.answers() {
		return false
	}
	if found := w.finds(o); found || w.weak(noVerify) {
		w.Say("%s tells its members epoch %d", name(o), p.setups[p.setup].epoch)
		if found {
			w.Add(", because it finds its job on the card")
		}
		p.phase = using
		w.tellMembers(o)
		return true
	}
	w.Say("%s does not find its job on the card", name(o))
	return w.again(o)
}

// finds reports whether JOB_STATE and JOB_ADDRESS show the owner's set-up.
func (w *world) finds(o int) bool {
	return w.findsEpoch(o) && w.card.job.values.members == w.wants(o, w.owners[o].setup).members
}

// findsEpoch reports whether JOB_STATE alone does.
func (w *world) findsEpoch(o int) bool {
	p := &w.owners[o]
	return w.card.up && w.card.job.epoch == p.setups[p.setup].epoch
}

// look has an owner read JOB_STATE and JOB_ADDRESS while it uses its job. It sets the job up again when it
// does not find it.
func (w *world) look(o int) bool {
	p := &w.owners[o]
	if p.phase != using || !w.answers() || w.weak(neverLooks) || w.finds(o) || w.weak(lookAtState) && w.findsEpoch(o) {
		return false
	}
	w.Say("%s does not find its job on the card any more", name(o))
	return w.again(o)
}

// nextJob has an owner end its job by JOB_ABORT, and begin another one.
func (w *world) nextJob(o int) bool {
	p := &w.owners[o]
	if p.phase != using || int(p.job)+1 >= w.config.jobs || !w.nextSetup(o) {
		return false
	}
	w.Say("%s sends JOB_ABORT of epoch %d, and begins another job", name(o), p.setups[p.setup-1].epoch)
	p.aborted |= bit(p.setup - 1)
	p.job++
	p.seats = [ranks]int8{}
	return true
}

// releases has an owner send RELEASE and leave.
func (w *world) releases(o int) bool {
	p := &w.owners[o]
	if p.phase != asking && p.phase != using && !w.calm {
		return false
	}
	w.Say("%s sends RELEASE", name(o))
	p.released = true
	w.leave(o)
	return true
}

// ownerDies has an owner's life end without a word.
func (w *world) ownerDies(o int) bool {
	p := &w.owners[o]
	if w.left.owners == 0 || p.phase == unborn || p.phase == gone {
		return false
	}
	w.Say("%s dies", name(o))
	w.left.owners--
	w.leave(o)
	return true
}
