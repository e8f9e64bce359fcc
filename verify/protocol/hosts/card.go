package main

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
func (w *world) writeRelease(token int8, from address, by int, reset bool) {
	c := &w.card
	if c.owner != 0 {
		if from != c.from && !w.weak(anyAddress|releaseAnyAddress) || token != c.owner && !w.weak(releaseAnyToken) {
			return
		}
		if c.up {
			w.judgeEnd(by, maxSetups, "RELEASE or RESET")
		}
		w.free(w.weak(releaseKeepsJob))
	}
	if reset {
		c.token, c.staged = 0, values{}
	}
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

// tableWritten has a write of a MEMBER register reach the card.
func (w *world) tableWritten(rank int, to address) {
	c := &w.card
	c.staged.members[rank] = to
	if w.weak(tableAtOnce) && c.up {
		c.job.values.members[rank] = to
	}
}
