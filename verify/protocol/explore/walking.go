package main

// The random choices of a walk: the next event, its sender and its packet.

// step makes one random event happen, mostly one that sends the card a packet.
func (k *walk) step() {
	k.look()
	switch r := k.rng.IntN(1000); {
	case r < 30:
		k.waitForDeadline()
	case r < 130:
		k.forge()
	case r < 135:
		k.commitOld()
	case r < 138:
		k.Step(step{kind: stepRestart, member: uint8(k.rng.IntN(k.config.members()))})
	case r < 141 && k.anyUp():
		k.event(walkEvent{Do: "reset"}, func(*walkEvent) answer { k.reset(); return done })
	case r < 145:
		k.abort()
	case r < 245:
		k.together()
	case r < 700 && len(k.fresh) > 0:
		i := len(k.fresh) - 1 - k.rng.IntN(min(len(k.fresh), 6)) // a packet sent long ago is as good as lost
		n := k.fresh[i]
		k.fresh = append(k.fresh[:i], k.fresh[i+1:]...)
		k.arrive(n)
	case r < 960:
		k.act()
	default:
		k.again()
	}
}

// look finds the packets sent since its last call.
func (k *walk) look() {
	for ; k.known < len(k.world.packets.Values); k.known++ {
		if k.network.has(k.known) {
			k.fresh = append(k.fresh, k.known)
		}
	}
}

// act lets a worker or a controller take its next step.
func (k *walk) act() {
	for j := range k.config.Jobs {
		k.Step(step{kind: stepNewEpoch, member: uint8(j)})
	}
	m := uint8(k.rng.IntN(k.config.members()))
	if !k.Step(step{kind: stepJoin, member: m}) {
		k.Step(step{kind: stepSend, member: m})
	}
}

// again repeats a packet, or sends an ask for a packet's VID.
func (k *walk) again() {
	n := k.rng.IntN(len(k.world.packets.Values))
	if p := k.world.packets.Values[n]; p.kind == data && k.rng.IntN(2) == 0 {
		h := k.headerOf(p)
		h.kind = ask
		k.receive(h, 0)
		return
	}
	if k.network.has(n) {
		k.arrive(n)
	}
}

// arrive delivers a packet to its receiver.
func (k *walk) arrive(n int) {
	switch p := k.world.packets.Values[n]; p.kind {
	case data:
		k.receive(k.headerOf(p), contribution(int(p.member), int(p.epoch), int(p.vid), 0))
	case finish:
		k.receive(k.headerOf(p), 0)
	case commit:
		k.commit(p)
	default:
		k.deliver(n)
	}
}

// forge sends the card a packet that no worker would. Its VID is near the slot's VID or far from
// it, and its rank mostly belongs to its port.
func (k *walk) forge() {
	job := k.rng.IntN(len(k.config.Jobs))
	port := k.rng.IntN(k.config.members())
	h := header{kind: data, port: port, rank: port, job: k.config.jobOf(port), epoch: int(k.jobs[job].epoch)}
	if k.rng.IntN(6) == 0 {
		h.rank = k.rng.IntN(k.config.members())
	}
	if k.rng.IntN(8) == 0 {
		h.job = job
	}
	if k.rng.IntN(8) == 0 {
		h.epoch = (h.epoch + []int{1, -1, 1 << 15}[k.rng.IntN(3)] + k.config.epochs()) % k.config.epochs()
	}
	switch r := k.rng.IntN(20); {
	case r < 6:
		h.kind = ask
	case r < 7:
		h.kind = finish
	}
	u := int(k.slotOf(h.job, k.rng.IntN(k.slotCount())).vid)
	w, half := k.config.Window, k.config.Modulus/2
	ahead := []int{0, 0, 2 * w, 2 * w, 2 * w, w, -w, -2 * w, 4 * w, 1, -1, half - 1, half, half + 1, half + 2*w}
	h.vid = k.ahead(k.field(u), ahead[k.rng.IntN(len(ahead))])
	k.receive(h, contribution(port, h.epoch%8, h.vid%256, 1))
}

// commitOld sends a commit that is not newer than the job's epoch.
func (k *walk) commitOld() {
	job := k.rng.IntN(len(k.config.Jobs))
	j := &k.jobs[job]
	epoch := int(j.epoch) - []int{0, 1, k.config.epochs() / 2}[k.rng.IntN(3)]
	if epoch == int(j.epoch) && j.up {
		return // the controller's own commits cover this case, and their first VID varies
	}
	k.event(walkEvent{Do: "commit", Job: job, Epoch: k.epochBase + uint16(epoch), VID: k.vidBase}, func(*walkEvent) answer {
		return k.takeCommit(job, epoch, 0)
	})
}

// abort sends an abort with the job's epoch, or with a wrong one.
func (k *walk) abort() {
	job := k.rng.IntN(len(k.config.Jobs))
	epoch := int(k.jobs[job].epoch) + k.rng.IntN(2)
	k.event(walkEvent{Do: "abort", Job: job, Epoch: k.epochBase + uint16(epoch)}, func(*walkEvent) answer { return k.takeAbort(job, epoch) })
}

// commit delivers a commit to the card.
func (k *walk) commit(p packet) {
	e := walkEvent{Do: "commit", Job: int(p.job), Epoch: k.epochBase + uint16(p.epoch), VID: k.vidBase + uint32(p.vid)}
	k.event(e, func(*walkEvent) answer { return k.takeCommit(int(p.job), int(p.epoch), int(p.vid)) })
}

// probe makes the state of the slots visible. All members ask for all VIDs of the windows, send
// data that turns each slot over, and finish. The answers show held, done and finished bits. With
// partial sums, and in half of the other walks, one member first asks for each slot's turnover
// while the other members stay silent until the deadline.
func (k *walk) probe() {
	for job := range k.config.Jobs {
		low, high := 255, 0
		for i := range k.slotCount() {
			vid := int(k.slotOf(job, i).vid)
			low, high = min(low, vid), max(high, vid)
		}
		if !k.jobs[job].up {
			low, high = 0, 0
		}
		for vid := low; vid <= high+k.slotCount(); vid++ {
			k.everyone(job, ask, vid)
		}
		if k.config.Partial || k.rng.IntN(2) == 0 {
			k.waitForEachOther(job)
		}
		for i := range k.slotCount() {
			k.everyone(job, data, int(k.slotOf(job, i).vid)+k.slotCount())
		}
		for range 2 {
			k.everyone(job, finish, k.config.end())
		}
	}
}

// waitForEachOther has one member ask for each slot's turnover, the members taking turns. Then it
// advances time until all slots were overdue.
func (k *walk) waitForEachOther(job int) {
	first := 0
	for k.config.jobOf(first) != job {
		first++
	}
	for i := range k.slotCount() {
		m := first + i%k.config.Jobs[job]
		h := header{kind: data, port: m, rank: m, job: job, epoch: int(k.jobs[job].epoch), vid: k.field(int(k.slotOf(job, i).vid) + k.slotCount())}
		k.receive(h, contribution(m, h.epoch, h.vid%256, 1))
	}
	for range k.slotCount() {
		k.waitForDeadline()
	}
}

// everyone sends a packet of a kind from every member of a job.
func (k *walk) everyone(job int, of kind, vid int) {
	for m := range k.config.members() {
		if k.config.jobOf(m) == job {
			h := header{kind: of, port: m, rank: m, job: job, epoch: int(k.jobs[job].epoch), vid: k.field(vid)}
			k.receive(h, contribution(m, h.epoch, vid%256, 1))
		}
	}
}
