package main

// needsEpoch reports whether the tree needs a new epoch: a card or a worker has lost its state.
func (w *world) needsEpoch() bool {
	if int(w.owner.epoch)+1 >= w.config.epochs || w.allFinished() {
		return false
	}
	for c := range w.config.cards() {
		if w.cards[c].lost == unseen {
			return true
		}
	}
	for i := range w.config.workers() {
		if w.workers[i].life == down {
			return true
		}
	}
	return false
}

func (w *world) allFinished() bool {
	for i := range w.config.workers() {
		if w.config.honest(i) && !w.workers[i].finished {
			return false
		}
	}
	return true
}

// newEpoch stops the workers and commits the next epoch to every card, from the lowest VID that a
// worker lacks. Workers without state do not count: they get the missing results from others,
// outside of this protocol.
func (w *world) newEpoch() {
	o := &w.owner
	epoch := o.epoch
	for c := range w.config.cards() {
		if k := &w.cards[c]; k.known && !w.without(epochOfTree) {
			epoch = max(epoch, k.epoch)
		}
	}
	if !w.without(sameEpoch) {
		epoch++
	}
	*o = owner{epoch: epoch, first: uint8(w.lowest())}
	w.Describe("the owner stops the workers and sends JOB_COMMIT of epoch %d from %s, the lowest that a worker lacks", epoch, w.v(int(o.first)))
	for i := range w.config.workers() {
		w.stop(i)
	}
	for c := range w.config.cards() {
		if k := &w.cards[c]; k.lost == unseen {
			k.lost = renewed
		} else if w.without(onlyTheRestarted) {
			o.confirmed |= bit(c)
			continue
		}
		w.send(w.commitOf(c), 0)
	}
	if w.without(beginEarly) {
		w.joinAll()
	}
}

// abort ends what is left of the job after all workers have finished: a card that died may have taken
// a finish that it never sent up.
func (w *world) abort() bool {
	left := false
	died := false
	for c := range w.config.cards() {
		left = left || w.cards[c].up
		died = died || w.cards[c].lost != none
	}
	if !left || !died || !w.allFinished() || w.without(noAbort) {
		return false
	}
	w.Describe("all workers have finished, and the owner sends JOB_ABORT to every card")
	for c := range w.config.cards() {
		w.clear(c)
	}
	return true
}

func (w *world) commitOf(c int) packet {
	return packet{kind: commit, card: uint8(c), epoch: w.owner.epoch, vid: w.owner.first}
}

// lowest is the first VID of a new epoch.
func (w *world) lowest() int {
	lowest, highest := w.config.end(), w.config.first
	for i := range w.config.workers() {
		if k := &w.workers[i]; k.life == active && w.config.honest(i) {
			lowest, highest = min(lowest, int(k.low)), max(highest, int(k.low))
		}
	}
	if w.without(firstOfFastest) {
		return highest
	}
	return lowest
}

// stop clears what a worker has of its epoch.
func (w *world) stop(i int) {
	k := &w.workers[i]
	if k.life == active {
		w.judgeInputs(i, int(w.owner.first))
		if w.without(unstopped) {
			return
		}
	}
	had := uint8(0)
	if w.without(oldResultsCount | heldUnsent | zerosUnshared) {
		had = k.low
	}
	*k = worker{life: stopped, epoch: k.epoch, had: had}
}

// takeCommit is a write of JOB_COMMIT.
func (w *world) takeCommit(c, epoch, first int) {
	k := &w.cards[c]
	switch {
	case k.up && epoch == int(k.epoch) && !w.without(sameEpochAgain):
		w.Describe("%s acknowledges it again and changes nothing", w.card(c))
	case k.known && epoch <= int(k.epoch) && !(epoch < int(k.epoch) && w.without(anyOlderEpoch)) && !(k.up && epoch == int(k.epoch)):
		w.Describe("%s refuses it: a stale epoch", w.card(c))
		return
	default:
		w.setUp(c, epoch, first)
		if k.lost == renewed && epoch == int(w.owner.epoch) {
			k.lost = none
		}
		w.Describe("%s sets up epoch %d", w.card(c), epoch)
	}
	o := &w.owner
	if epoch != int(o.epoch) || o.confirmed&bit(c) != 0 {
		return
	}
	o.confirmed |= bit(c)
	if o.confirmed == 1<<w.config.cards()-1 {
		w.joinAll()
	}
}

// joinAll starts all workers that are not in the owner's epoch yet.
func (w *world) joinAll() {
	w.Describe("the workers begin in epoch %d from %s", w.owner.epoch, w.v(int(w.owner.first)))
	for i := range w.config.workers() {
		if k := &w.workers[i]; k.life == stopped || k.epoch != w.owner.epoch {
			if k.life == active {
				w.judgeInputs(i, int(w.owner.first))
			}
			w.join(i)
		}
	}
}

// die ends a card's job without a trace.
func (w *world) die(c int) {
	w.deaths--
	k := &w.cards[c]
	w.clear(c)
	k.lost = unseen
	k.sending, k.begun = 0, 0
	switch w.config.death {
	case keeps:
		w.Describe("%s dies and comes back without a job; it knows its last epoch", w.card(c))
	case forgets:
		*k = card{lost: unseen}
		w.Describe("%s dies and comes back; it knows nothing", w.card(c))
	case taken:
		k.epoch++
		w.Describe("another owner takes %s, uses epoch %d and leaves it", w.card(c), k.epoch)
	}
}

// restart clears a worker's state, as a crash does.
func (w *world) restart(i int) {
	w.restarts--
	w.workers[i] = worker{life: down, epoch: w.workers[i].epoch}
	w.Describe("%s restarts and loses its state", w.worker(i))
}
