package main

// code is the card's answer to a write.
type code string

const (
	done       code = "done"
	busy       code = "busy"
	badChunk   code = "bad_chunk"
	badMember  code = "bad_member"
	epochInUse code = "epoch_in_use"
	staleEpoch code = "stale_epoch"
)

// writeCommit has a write of JOB_COMMIT reach the card: the checks of SPEC, section 4, and bad_member.
// begun reports that the commit has begun: its answer comes when it finishes.
func (w *world) writeCommit(by int, setup, epoch int8, from address) (answer code, begun bool) {
	c := &w.card
	switch {
	case !w.mayWrite(from), c.token != c.owner && !w.weak(tokenUnchecked):
		return busy, false
	case c.up && c.job.epoch == epoch && !w.weak(sameEpochAgain):
		return w.compareRunning(), false
	case epoch <= c.last && !w.weak(anyOlderEpoch) && !(w.weak(sameEpochAgain) && c.up && epoch == c.job.epoch):
		return staleEpoch, false
	case w.config.settings && c.staged.setting == 0:
		return badChunk, false
	case !w.distinct(c.staged.members) && !w.weak(membersUnchecked):
		return badMember, false
	}
	if c.up {
		w.judgeEnd(by, setup, "JOB_COMMIT")
	}
	w.endJob()
	c.committer, c.commit, c.last = c.owner, job{epoch, c.staged, int8(by), setup}, epoch
	return "", true
}

// compareRunning answers a commit of the running epoch.
func (w *world) compareRunning() code {
	job, staged := w.card.job.values, w.card.staged
	if job.setting == staged.setting && (job.members == staged.members || w.weak(tableNotCompared)) {
		return done
	}
	return epochInUse
}

// distinct reports whether the members have addresses, and different ones.
func (w *world) distinct(m entries) bool { return m[0] != 0 && m[1] != 0 && m[0] != m[1] }

// finishCommit sets the job up, unless the owner has lost the card meanwhile.
func (w *world) finishCommit() code {
	c := &w.card
	begun, token := c.commit, c.committer
	if w.weak(overtaken) {
		token, begun.values = c.token, c.staged
	}
	c.committer, c.commit = 0, job{}
	if (c.owner == 0 || c.owner != token) && !w.weak(ownerUnchecked) {
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
	w.judgeEnd(by, setup, "JOB_ABORT")
	w.endJob()
}
