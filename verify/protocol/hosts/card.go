package main

// code is the card's answer to a write.
type code string

const (
	done       code = "done"
	busy       code = "busy"
	badMember  code = "bad_member"
	epochInUse code = "epoch_in_use"
	staleEpoch code = "stale_epoch"
)

// mayWrite reports whether a write from an address has an effect: other than one of OWNER, RELEASE
// and RESET.
func (w *world) mayWrite(from address) bool {
	c := &w.card
	return c.owner != 0 && (from == c.from || w.weak(anyAddress))
}

// answers reports whether the card takes register accesses: a commit holds them up.
func (w *world) answers() bool { return w.card.committer == 0 || w.weak(overtaken) }

// writeOwner has a write of OWNER reach the card. Nothing stays of what others have staged.
func (w *world) writeOwner(token int8, from address) {
	c := &w.card
	if c.owner != 0 && !w.weak(takeAny) {
		return
	}
	c.owner, c.from = token, from
	if !w.weak(stagedStays) {
		c.token, c.staged = 0, values{}
	}
}

// writeRelease has a write of RELEASE reach the card, or of RESET.
func (w *world) writeRelease(token int8, from address, by int, reset bool) code {
	c := &w.card
	if c.owner != 0 {
		if from != c.from && !w.weak(anyAddress|releaseAnyAddress) {
			return busy
		}
		if token != c.owner && !w.weak(releaseAnyToken) {
			return busy
		}
		if c.up && int(c.job.by) != by {
			w.violate(ownersAlone, "a write of %s ends the job of %s", writer(by), name(int(c.job.by)))
		}
		w.free(w.weak(releaseKeepsJob))
	}
	if reset {
		c.token, c.staged = 0, values{}
	}
	return done
}

// free clears OWNER and ends all jobs.
func (w *world) free(keepsJob bool) {
	c := &w.card
	c.owner, c.from = 0, 0
	if !keepsJob {
		w.endJob()
	}
}

// endJob ends the running job. Its slots keep what they hold until the next set-up.
func (w *world) endJob() { w.card.up = false }

// writeCommit has a write of JOB_COMMIT reach the card: the checks of SPEC, section 4, and bad_member.
// begun reports that the commit has begun: its answer comes when it finishes.
func (w *world) writeCommit(by int, setup, epoch int8, from address) (answer code, begun bool) {
	c := &w.card
	switch {
	case !w.mayWrite(from), c.token != c.owner && !w.weak(tokenUnchecked):
		return busy, false
	case c.up && c.job.epoch == epoch && !w.weak(sameEpochAgain):
		if c.job.values.setting == c.staged.setting && (c.job.values.members == c.staged.members || w.weak(tableNotCompared)) {
			return done, false
		}
		return epochInUse, false
	case epoch <= c.last && !w.weak(anyOlderEpoch) && !(c.up && w.weak(sameEpochAgain) && epoch == c.job.epoch):
		return staleEpoch, false
	case !w.distinct(c.staged.members) && !w.weak(membersUnchecked):
		return badMember, false
	}
	if c.up {
		w.replaced(by, setup)
	}
	w.endJob()
	c.committer, c.commit, c.last = c.owner, job{epoch, c.staged, int8(by), setup}, epoch
	return "", true
}

// distinct reports whether the members have addresses, and different ones.
func (w *world) distinct(m entries) bool { return m[0] != 0 && m[1] != 0 && m[0] != m[1] }

// replaced judges a commit that ends the running job.
func (w *world) replaced(by int, setup int8) {
	c := &w.card
	if by >= maxOwners || int(c.job.by) != by {
		w.violate(ownersAlone, "a commit of %s ends the job of %s", writer(by), name(int(c.job.by)))
	} else if w.owners[by].setup <= c.job.setup && w.owners[by].phase != gone {
		w.violate(ownersAlone, "a late commit of set-up %d ends the job of set-up %d, which %s has not given up",
			setup+1, c.job.setup+1, name(by))
	}
}

// finishCommit sets the job up, unless the owner has lost the card meanwhile.
func (w *world) finishCommit() code {
	c := &w.card
	begun, token := c.commit, c.committer
	if w.weak(overtaken) {
		token, begun.values = c.token, c.staged
	}
	c.committer, c.commit = 0, job{}
	if c.owner != token && !w.weak(ownerUnchecked) {
		return busy
	}
	c.up, c.job = true, begun
	if !w.weak(heldStays) {
		c.held, c.summed = [ranks]contribution{}, false
	}
	return done
}

// writeAbort has a write of JOB_ABORT reach the card.
func (w *world) writeAbort(by int, setup, epoch int8, from address) {
	c := &w.card
	if !w.mayWrite(from) || c.token != c.owner && !w.weak(tokenUnchecked) || !c.up {
		return
	}
	if c.job.epoch != epoch && !w.weak(abortAnyEpoch) {
		return
	}
	if int(c.job.by) != by || w.owners[by].setup <= c.job.setup && w.owners[by].phase != gone {
		w.violate(ownersAlone, "an abort of set-up %d of %s ends the job of set-up %d of %s, which has not given it up",
			setup+1, writer(by), c.job.setup+1, name(int(c.job.by)))
	}
	w.endJob()
}

// writer returns the name of the sender of a write.
func writer(by int) string {
	if by >= maxOwners {
		return "the stranger"
	}
	return name(by)
}

// takeData has data reach the card: from an address, with a rank, an epoch and a size. refused reports
// that the size is not that of the job.
func (w *world) takeData(of contribution, rank int, from address, epoch, setting int8) (refused bool) {
	c := &w.card
	switch {
	case !c.up && (!w.weak(notUp) || c.job.epoch == 0):
		return false
	case c.job.values.members[rank] != from && !w.weak(anySender):
		return false
	case c.job.epoch != epoch && !w.weak(anyEpoch):
		return false
	case c.job.values.setting != setting && !w.weak(anySize):
		return true
	case c.held[rank].member != 0:
		return false
	}
	c.held[rank] = of
	if c.held[0].member != 0 && c.held[1].member != 0 && !c.summed {
		c.summed = true
		w.judgeSum()
		if m := c.held[0].member; m != stranger {
			w.owners[w.members[m-1].by].results |= bit(c.held[0].setup)
		}
	}
	return false
}

// tableWritten has a write of a MEMBER register reach the card.
func (w *world) tableWritten(rank int, to address) {
	c := &w.card
	c.staged.members[rank] = to
	if w.weak(tableAtOnce) && c.up {
		c.job.values.members[rank] = to
	}
}
