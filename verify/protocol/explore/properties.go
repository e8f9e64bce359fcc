package main

import (
	"fmt"

	"tributary/verify/protocol/explorer"
)

// The properties, by their names in counterexamples.
const (
	summedOnce      = "summed once"
	sameReplay      = "same replay"
	rightResult     = "right result"
	noEarlyReuse    = "no early reuse"
	neverTurnedAway = "never turned away"
	isolated        = "isolated"
	forCause        = "evicted for cause"
	inputsThere     = "inputs there"
	progress        = "progress"
)

// properties lists them all, for help and documentation.
var properties = []explorer.Property{
	{Name: summedOnce, Holds: "a result sums each contribution that it names exactly once, all of its VID and epoch, and nothing else; without a deadline it names all members"},
	{Name: sameReplay, Holds: "the card sends the same bits for all results of one job, epoch and VID"},
	{Name: rightResult, Holds: "a worker takes only the result of the VID that it waits for, in its epoch"},
	{Name: noEarlyReuse, Holds: "no slot is reused and no job ends while a member may still ask for a result"},
	{Name: neverTurnedAway, Holds: "the card stores data of a member that keeps the rules, or knows it as a duplicate; without deadlines no slot makes it wait"},
	{Name: isolated, Holds: "a packet from one job's member changes nothing in another job"},
	{Name: forCause, Holds: "an evicted member blocks a member that is done with a result which the evicted has not confirmed"},
	{Name: inputsThere, Holds: "every worker still has its inputs from the first VID of a new epoch on"},
	{Name: progress, Holds: "once faults cease, every member gets every result, every job ends, and the card falls silent"},
}

// judgeSum checks a new sum.
func (w *world) judgeSum(job int, s *slot) {
	j := &w.jobs[job]
	if !w.config.Partial && s.cacheMask != j.members {
		w.Violate(summedOnce, "the result of %s has the contributions of %s only", w.v(int(s.vid)), w.set(s.cacheMask))
	}
	for beat := range w.config.Beats {
		for m := range w.config.members() {
			w.judgeContribution(j, s, m, beat)
		}
	}
}

// judgeContribution checks member m's part of one beat of a sum.
func (w *world) judgeContribution(j *job, s *slot, m, beat int) {
	got := s.cache[beat][m]
	want := contribution(m, int(j.epoch), int(s.vid), 0)
	if !w.config.honest(m) {
		want |= contribution(m, 0, 0, s.cache[0][m].variant()) // any of its variants, but the same one in all beats
	}
	switch named := s.cacheMask&bit(m) != 0; {
	case named && got != want:
		w.Violate(summedOnce, "in the sum of %s%s, %s has %s", w.v(int(s.vid)), w.during(int(j.epoch)), w.name(m), w.tagText(got))
	case !named && got != 0:
		w.Violate(summedOnce, "the sum of %s%s names %s, but contains %s", w.v(int(s.vid)), w.during(int(j.epoch)),
			w.set(s.cacheMask), w.tagText(got))
	}
}

func (w *world) tagText(t tag) string {
	if t == 0 {
		return "no stored contribution"
	}
	text := fmt.Sprintf("%s's contribution to %s%s", w.name(t.from()), w.v(t.vid()), w.during(t.epoch()))
	if t.variant() != 0 {
		text += " (other payload)"
	}
	return text
}

// judgeReplay compares a result that leaves the card with all results of the same VID that left
// before.
func (w *world) judgeReplay(p packet) {
	w.network.each(func(n int) {
		q := w.packets.Values[n]
		if q.kind == result && q.job == p.job && q.epoch == p.epoch && q.vid == p.vid && (q.sum != p.sum || q.mask != p.mask) {
			w.Violate(sameReplay, "the result of %s for %s contains %s, and an earlier one contained %s",
				w.v(int(p.vid)), w.name(int(p.member)), w.sumText(p), w.sumText(q))
		}
	})
}

// sumText describes the contents of a result.
func (w *world) sumText(p packet) string {
	text := w.set(p.mask) + ":"
	for beat := range w.config.Beats {
		if beat > 0 {
			text += " and then"
		}
		if p.sum[beat] == ([maxMembers]tag{}) {
			text += " nothing"
		}
		for m := range w.config.members() {
			if t := p.sum[beat][m]; t != 0 {
				text += " " + w.tagText(t)
			}
		}
	}
	return text
}

// judgeTaken checks a result that a worker takes for a VID.
func (w *world) judgeTaken(m, vid int, p packet) {
	epoch := w.members[m].epoch
	if int(p.vid) != vid || p.epoch != epoch {
		w.Violate(rightResult, "%s takes the result of %s%s for %s%s", w.name(m),
			w.v(int(p.vid)), w.during(int(p.epoch)), w.v(vid), w.during(int(epoch)))
		return
	}
	for beat := range w.config.Beats {
		for from, t := range p.sum[beat] {
			named := p.mask&bit(from) != 0
			if named != (t != 0) || t != 0 && (t.vid() != vid || t.epoch() != int(epoch)) {
				w.Violate(rightResult, "the result that %s takes for %s%s names %s, but contains %s", w.name(m),
					w.v(vid), w.during(int(epoch)), w.set(p.mask), w.tagText(t))
			}
		}
	}
}

// judgeTurnover checks a slot before its reuse.
func (w *world) judgeTurnover(job int, s *slot) {
	for m := range w.config.members() {
		if w.mayAsk(job, m) && !w.members[m].holds(int(s.vid)) {
			w.Violate(noEarlyReuse, "the slot of %s is reused, and %s does not hold that result", w.v(int(s.vid)), w.name(m))
		}
	}
}

// judgeEnd checks a job before it ends because all members have finished.
func (w *world) judgeEnd(job int) {
	for m := range w.config.members() {
		if w.mayAsk(job, m) && int(w.members[m].low) < w.config.end() {
			w.Violate(noEarlyReuse, "the job ends, and %s lacks %s", w.name(m), w.v(int(w.members[m].low)))
		}
	}
}

// judgeEviction checks the slot for which the card evicts members.
func (w *world) judgeEviction(s *slot, behind uint8) {
	if s.done == 0 {
		w.Violate(forCause, "the card evicts %s, and no member waits for the slot of %s", w.set(behind), w.v(int(s.vid)))
	}
}

// mayAsk reports whether a member takes part in the card's current epoch.
func (w *world) mayAsk(job, m int) bool {
	me := &w.members[m]
	return w.config.honest(m) && me.life == active && w.jobs[job].members&bit(m) != 0 && me.epoch == w.jobs[job].epoch
}

// judgeAnswer checks the card's answer to an honest member's data.
func (w *world) judgeAnswer(p packet, a answer) {
	m := int(p.member)
	job := int(p.job)
	if !w.mayAsk(job, m) || p.epoch != w.jobs[job].epoch || !w.jobs[job].up || w.config.Partial || w.config.Rogue {
		return
	}
	if a == notReady || a == early || a == late && !w.members[m].holds(int(p.vid)) {
		w.Violate(neverTurnedAway, "%s was allowed to send %s, the card did not store it, and it is not a duplicate", w.name(m), w.v(int(p.vid)))
	}
}

// judgeIsolation checks that a packet from a member of one job left the other jobs unchanged.
func (w *world) judgeIsolation(m int, before *state) {
	own := w.config.jobOf(m)
	for j := range w.config.Jobs {
		if j == own {
			continue
		}
		same := w.jobs[j] == before.jobs[j]
		for i := range w.slotCount() {
			same = same && w.slots[j*w.slotCount()+i] == before.slots[j*w.slotCount()+i]
		}
		if !same {
			w.Blame(isolated, "a packet of %s changed job %d", w.name(m), j)
		}
	}
}

// judgeInputs checks that a worker still has its inputs from first on.
func (w *world) judgeInputs(m, first int) {
	kept := w.config.inputsKept()
	if w.without(oneWindowOfInputs) {
		kept = w.config.Window
	}
	if w.without(giveUpInputs) {
		kept = 0
	}
	for vid := first; vid+kept < w.config.end(); vid++ {
		if w.members[m].holds(vid + kept) {
			w.Violate(inputsThere, "%s has given up its input %s, since it held the result of %s", w.name(m), w.v(vid), w.v(vid+kept))
			return
		}
	}
}
