package main

// join starts a worker in the epoch that the owner has set up.
func (w *world) join(i int) {
	had := w.workers[i].had
	o := &w.owner
	k := worker{life: active, epoch: o.epoch, low: o.first, next: o.first}
	if w.without(oldResultsCount) {
		k.low = max(k.low, had)
	}
	if w.without(heldUnsent) {
		k.low = max(k.low, had)
		k.next = k.low
	}
	if w.without(zerosUnshared) {
		k.had = had
	}
	w.workers[i] = k
	w.sendAll(i)
}

// sendAll sends all that a worker may. A later sending equals a delay on the way, unless the
// configuration makes them steps of their own.
func (w *world) sendAll(i int) {
	for !w.config.lazy && w.sendNext(i) {
	}
	if w.config.honest(i) && int(w.workers[i].low) == w.config.end() {
		w.Describe("%s has all results and sends finish", w.worker(i))
		w.send(w.finishOf(i), 0)
	}
}

// sendNext sends a worker's next VID, if it holds every result up to W before it.
func (w *world) sendNext(i int) bool {
	k := &w.workers[i]
	if !w.config.honest(i) || k.life != active || int(k.next) >= min(int(k.low)+w.config.window, w.config.end()) {
		return false
	}
	w.Describe("%s sends %s", w.worker(i), w.v(int(k.next)))
	w.send(w.dataOf(i, int(k.next)), 0)
	k.next++
	return true
}

// dataOf returns a worker's data for a VID.
func (w *world) dataOf(i, vid int) packet {
	at := w.place[i]
	epoch := w.workers[i].epoch
	var marks tag
	if vid < int(w.workers[i].had) {
		marks = tagZeros
	}
	return packet{kind: data, card: uint8(at.card), member: uint8(at.member), epoch: epoch, vid: uint8(vid),
		payload: w.input(i, int(epoch), vid, marks)}
}

func (w *world) finishOf(i int) packet {
	at := w.place[i]
	return packet{kind: finish, card: uint8(at.card), member: uint8(at.member), epoch: w.workers[i].epoch, vid: uint8(w.config.end())}
}

// takeResult delivers a result to a worker. The worker takes it if it has sent that VID and lacks
// its result.
func (w *world) takeResult(i int, p packet) {
	k := &w.workers[i]
	if k.life != active || p.epoch != k.epoch && !w.without(resultOfAnyEpoch) {
		w.Describe("%s ignores it: not of its epoch", w.worker(i))
		return
	}
	for vid := int(k.low); vid < int(k.next); vid++ {
		if k.holds(vid) || w.field(vid) != w.field(int(p.vid)) {
			continue
		}
		w.judgeTaken(i, vid, p)
		k.take(vid)
		w.Describe("%s holds %s, and every result below %s", w.worker(i), w.v(vid), w.v(int(k.low)))
		w.sendAll(i)
		return
	}
	w.Describe("%s ignores it: it lacks no such result", w.worker(i))
}

// take marks a result as held.
func (k *worker) take(vid int) {
	if vid > int(k.low) {
		k.ahead |= 1 << (vid - int(k.low) - 1)
		return
	}
	k.low++
	for k.ahead&1 == 1 {
		k.ahead >>= 1
		k.low++
	}
	k.ahead >>= 1
}

// workerDone delivers the answer to a worker's finish, or the notice.
func (w *world) workerDone(i int, p packet) {
	k := &w.workers[i]
	if k.life != active || k.epoch != p.epoch || int(k.low) != w.config.end() {
		w.Describe("%s ignores it", w.worker(i))
		return
	}
	k.finished = true
	w.Describe("%s knows that its finish was taken", w.worker(i))
}
