package main

// Packets that reach the card at once.

import (
	"fmt"
	"maps"
	"slices"
)

// sending is a packet that a walk sends the card.
type sending struct {
	header  header
	payload tag
}

// walkOutcome is the effect of a group of packets.
type walkOutcome struct {
	state  state
	counts map[string]int
	sent   []string
	answer []answer // by packet, in the order of sending
}

// together sends packets from several ports at once. The card may take them in any order, and may
// come to rest in between, so the effect must not depend on either. If it does, together sends
// nothing.
func (k *walk) together() {
	k.passDeadlines()
	var all []sending
	for m := range k.config.members() {
		job := k.config.jobOf(m)
		u := int(k.slotOf(job, k.rng.IntN(k.slotCount())).vid)
		vid := u + k.slotCount()*k.rng.IntN(2)
		h := header{kind: data, port: m, rank: m, job: job, epoch: int(k.jobs[job].epoch), vid: k.field(vid)}
		if k.rng.IntN(4) == 0 {
			h.kind = ask
		}
		all = append(all, sending{h, contribution(m, h.epoch, vid%256, 0)})
	}
	k.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:2+k.rng.IntN(len(all)-1)]
	if !k.commute(all) {
		return
	}
	k.event(walkEvent{Do: "together"}, func(e *walkEvent) answer {
		for _, s := range all {
			p := k.packetEvent(s)
			p.Answer = answerNames[k.takePacket(e, s)]
			e.Packets = append(e.Packets, p)
		}
		return done
	})
}

// commute reports whether packets have the same effect in every order. At most one may be
// refused, since only one refusal is answered in time; at most one deadline may start.
func (k *walk) commute(all []sending) bool {
	var first *walkOutcome
	same := true
	permute(len(all), func(order []int) {
		for _, rests := range []bool{false, true} {
			o := k.try(all, order, rests)
			if first == nil {
				first = o
			}
			same = same && o.state == first.state && maps.Equal(o.counts, first.counts) &&
				slices.Equal(o.sent, first.sent) && slices.Equal(o.answer, first.answer)
		}
	})
	refusals, begun := 0, 0
	for _, a := range first.answer {
		if a == duplicate || a == notReady || a == late || a == early || a >= badJob {
			refusals++
		}
	}
	for i := range first.state.slots {
		if s := &first.state.slots[i]; k.waits(s) && *s != k.slots[i] {
			begun++
		}
	}
	return same && refusals <= 1 && begun <= 1
}

// try returns the effect of packets in an order, with a rest after each or only at the end, and
// restores the walk.
func (k *walk) try(all []sending, order []int, rests bool) *walkOutcome {
	before, counts, sentTo := k.state, k.counts, k.sentTo
	k.counts, k.sentTo, k.trace = maps.Clone(counts), maps.Clone(sentTo), nil
	e := walkEvent{}
	o := &walkOutcome{answer: make([]answer, len(all))}
	for _, i := range order {
		o.answer[i] = k.takePacket(&e, all[i])
		if rests {
			k.settle(&e)
		}
	}
	k.settle(&e)
	for _, p := range e.Sent {
		o.sent = append(o.sent, fmt.Sprint(p))
	}
	slices.Sort(o.sent)
	o.state, o.counts = k.state, k.counts
	k.state, k.counts, k.sentTo = before, counts, sentTo
	return o
}

// permute calls f with every order of n things.
func permute(n int, f func(order []int)) {
	order := make([]int, 0, n)
	var extend func()
	extend = func() {
		if len(order) == n {
			f(order)
			return
		}
		for i := range n {
			if !slices.Contains(order, i) {
				order = append(order, i)
				extend()
				order = order[:len(order)-1]
			}
		}
	}
	extend()
}
