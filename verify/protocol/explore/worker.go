package main

// join starts a worker in the epoch that the controller has set up.
func (w *world) join(m int) {
	c := &w.controllers[w.config.jobOf(m)]
	w.members[m] = member{life: active, epoch: c.epoch, low: c.first, next: c.first,
		sending: w.members[m].sending, begun: w.members[m].begun}
}

// maySend reports whether a worker may send its next VID: it holds every result up to W before
// it.
func (w *world) maySend(m int) bool {
	me := &w.members[m]
	window := w.config.Window
	if w.without(sendOneAhead) {
		window++
	}
	return me.life == active && int(me.next) < w.config.end() && int(me.next) < int(me.low)+window
}

// sendNext sends a worker's next VID. Packets that are now too old leave the network.
func (w *world) sendNext(m int) int {
	me := &w.members[m]
	w.Describe("%s sends %s%s", w.name(m), w.v(int(me.next)), w.during(int(me.epoch)))
	w.expire(w.config.jobOf(m), int(me.epoch), int(me.next))
	p := w.dataOf(m, int(me.next))
	me.next++
	return w.send(p)
}

// dataOf returns a worker's contribution to a VID.
func (w *world) dataOf(m, vid int) packet {
	return packet{kind: data, member: uint8(m), job: uint8(w.config.jobOf(m)), epoch: w.members[m].epoch, vid: uint8(vid)}
}

// expire removes packets from the network that are too old once vid is first sent, or first taken
// by the card. Packets of older epochs stay, whatever their VID.
func (w *world) expire(job, epoch, vid int) {
	lifetime := w.config.lifetime()
	if w.without(longLifetime) {
		lifetime++
	}
	w.network.each(func(n int) {
		p := w.packets.Values[n]
		if (p.kind == data || p.kind == result) && int(p.job) == job && int(p.epoch) == epoch &&
			vid-int(p.vid) >= lifetime {
			w.network.remove(n)
		}
	})
}

// takeResult delivers a result to a worker. The worker takes it if it has sent that VID and lacks
// its result.
func (w *world) takeResult(p packet) bool {
	m := int(p.member)
	me := &w.members[m]
	if me.life != active || int(p.epoch)%w.config.epochs() != int(me.epoch)%w.config.epochs() && !w.without(resultOfAnyEpoch) {
		w.Describe("%s ignores it: not of its epoch", w.name(m))
		return false
	}
	end := int(me.next)
	if w.without(resultBeforeSent) {
		end = min(int(me.low)+w.config.Window, w.config.end())
	}
	for vid := int(me.low); vid < end; vid++ {
		if me.holds(vid) || w.field(vid) != w.field(int(p.vid)) && !w.without(resultOfAnyVID) {
			continue
		}
		w.judgeTaken(m, vid, p)
		me.take(vid)
		w.Describe("%s holds %s, and every result below %s", w.name(m), w.v(vid), w.v(int(me.low)))
		w.finishWhenComplete(m)
		return true
	}
	w.Describe("%s ignores it: it lacks no such result", w.name(m))
	return false
}

// take marks a result as held.
func (m *member) take(vid int) {
	if vid > int(m.low) {
		m.ahead |= 1 << (vid - int(m.low) - 1)
		return
	}
	m.low++
	for m.ahead&1 == 1 {
		m.ahead >>= 1
		m.low++
	}
	m.ahead >>= 1
}

// finishWhenComplete sends a finish once a worker holds everything.
func (w *world) finishWhenComplete(m int) {
	if me := &w.members[m]; int(me.low) == w.config.end() {
		w.send(w.finishOf(m))
		w.Describe("%s has all results and sends finish", w.name(m))
	}
}

func (w *world) finishOf(m int) packet {
	return packet{kind: finish, member: uint8(m), job: uint8(w.config.jobOf(m)), epoch: w.members[m].epoch, vid: uint8(w.config.end())}
}

// takeFinished delivers the answer to a worker's finish.
func (w *world) takeFinished(p packet) {
	me := &w.members[p.member]
	if me.life == active && me.epoch == p.epoch && int(me.low) == w.config.end() {
		me.finished = true
		w.Describe("%s knows that the card took its finish", w.name(int(p.member)))
		return
	}
	w.Describe("%s ignores it", w.name(int(p.member)))
}

// takeEnded delivers a refusal because the job has ended. A worker that waits for the answer to
// its finish ignores refusals of other packets, since the card may have refused an old copy.
func (w *world) takeEnded(p packet) {
	if int(w.members[p.member].low) == w.config.end() && p.of != finish {
		w.Describe("%s ignores it: it waits for the reply to its finish", w.name(int(p.member)))
		return
	}
	w.takeOut(p)
}

// takeOut takes a worker out of its epoch. A worker that holds all results has then finished.
func (w *world) takeOut(p packet) {
	me := &w.members[p.member]
	if me.life != active || me.epoch != p.epoch {
		w.Describe("%s ignores it: not of its epoch", w.name(int(p.member)))
		return
	}
	if int(me.low) == w.config.end() {
		me.finished = true
		w.Describe("%s has everything, and stops", w.name(int(p.member)))
		return
	}
	w.leave(int(p.member), out)
	w.Describe("%s knows that it is evicted, and stops", w.name(int(p.member)))
}

// leave clears a worker's state of its epoch. A transmission on the card's port to it continues.
func (w *world) leave(m int, to life) {
	me := &w.members[m]
	*me = member{life: to, epoch: me.epoch, sending: me.sending, begun: me.begun}
}

// restart clears a worker's state, as a crash does.
func (w *world) restart(m int) {
	w.restarts--
	w.leave(m, down)
	w.Describe("%s restarts and loses its state", w.name(m))
	if w.without(sameEpochReturn) {
		w.join(m)
		w.Describe("%s restarts in the same epoch", w.name(m))
	}
}
