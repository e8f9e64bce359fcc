package main

import (
	"fmt"
	"slices"
)

// Completes judges whether everything that lives completes from the state, once faults have ceased. The
// network loses what is under way. From then on each packet arrives once, at once, and each process acts
// in turn, round after round. When nobody wants the card any more, a new owner comes with its members.
//
// This is the worst case of loss, followed by one fair run. Packets that arrive first instead lead to
// another state, from which Completes starts as well.
func (w *world) Completes() {
	w.calm = true
	w.forget()
	w.record("the network loses all packets in flight; from here on it loses and repeats nothing, and nobody fails")
	var passed []state
	for !w.good.Has(&w.state) && !w.complete() {
		if slices.Contains(passed, w.state) {
			w.Violate(progress, "this repeats for ever, and %s", w.missing())
			return
		}
		passed = append(passed, w.state)
		before := w.state
		w.round()
		if w.state == before {
			w.Violate(progress, "no step is possible, and %s", w.missing())
			return
		}
	}
	for _, s := range passed {
		w.good.Add(&s)
	}
}

// forget drops all packets under way, and the faults that are left.
func (w *world) forget() {
	w.left = failures{}
	for o := range w.owners {
		p := &w.owners[o]
		p.took, p.released, p.wrote, p.asked, p.aborted, p.results = false, false, 0, 0, 0, 0
	}
	for m := range w.members {
		w.members[m].sent = 0
	}
}

// record describes a step as a whole.
func (w *world) record(line string) {
	w.Say("%s", line)
	w.Begin()
}

// try makes a step and describes it if it was possible.
func (w *world) try(s step) bool {
	before := w.state
	possible := w.Step(s)
	if !possible {
		w.state = before
		w.Drop()
	}
	w.Begin()
	return possible
}

// round has each process and the card act.
func (w *world) round() {
	if w.card.committer != 0 && !w.try(step{kind: finishCommit, heard: true}) {
		w.try(step{kind: finishCommit})
	}
	silent := true // no access came from the owner's address
	owners, members := w.config.people()
	for o := range owners {
		if p := &w.owners[o]; p.phase != unborn && p.phase != gone {
			w.ownerActs(int8(o))
			silent = silent && w.addressOf(o) != w.card.from
		}
	}
	for m := range members {
		if me := &w.members[m]; me.phase == told && !me.got {
			silent = silent && !w.weak(leaseByData)
			w.memberActs(int8(m))
		}
	}
	if silent {
		w.try(step{kind: leaseEnds})
	}
	if w.idle() {
		w.reserveComes()
	}
}

// ownerActs has an owner that lives take its next step. Each begins with a look at OWNER.
func (w *world) ownerActs(o int8) {
	p := &w.owners[o]
	do := func(k kind) bool { return w.try(step{kind: k, owner: o}) }
	if do(readOwner) {
		return
	}
	switch p.phase {
	case wanting:
		p.took = true
		do(ownerArrives)
		p.took = false
	case owning:
		if !w.seatsLive(int(o)) || !w.seated(int(o)) {
			w.leaves(int(o))
			return
		}
		do(stage)
	case staged:
		do(ask)
	case asking:
		p.asked = bit(p.setup)
		w.try(step{kind: commitArrives, owner: o, setup: p.setup, heard: !w.mayBegin(int(o))})
		p.asked = 0
	case committed:
		do(verify)
	case using:
		w.useJob(o)
	}
}

// mayBegin reports whether the card begins an owner's commit, and answers it later.
func (w *world) mayBegin(o int) bool {
	before := w.state
	p := &w.owners[o]
	_, begun := w.writeCommit(o, p.setup, p.setups[p.setup].epoch, w.addressOf(o))
	w.state = before
	w.Drop()
	return begun
}

// leaves has an owner release the card; RELEASE arrives.
func (w *world) leaves(o int) {
	w.try(step{kind: releases, owner: int8(o)})
	w.try(step{kind: releaseArrives, owner: int8(o)})
	w.owners[o].released = false
}

// useJob has an owner that uses its job look at it, and leave when its members have the sum, or are dead.
func (w *world) useJob(o int8) {
	p := &w.owners[o]
	if w.try(step{kind: look, owner: o}) {
		return
	}
	got := true
	for _, m := range p.setups[p.setup].seats {
		got = got && w.members[m-1].got
	}
	if got || !w.seatsLive(int(o)) {
		w.leaves(int(o))
	}
}

// seatsLive reports whether the members that an owner counts on live.
func (w *world) seatsLive(o int) bool {
	for _, m := range w.owners[o].seats {
		if m != 0 && w.members[m-1].phase == dead {
			return false
		}
	}
	return true
}

// memberActs has a member send its data, and take its result. The card answers data of a chunk that it has
// summed with the result.
func (w *world) memberActs(m int8) {
	me := &w.members[m]
	o, s := me.by, me.setup
	w.try(step{kind: dataArrives, member: m, setup: s})
	w.try(step{kind: dataArrives, member: m, setup: s, heard: true})
	c := &w.card
	rank := w.config.life(int(m)).rank
	if c.up && c.summed && c.held[rank] == (contribution{1 + m, s}) && c.job.values.members[rank] == w.seatOf(int(m)) {
		w.owners[o].results |= bit(s)
		w.try(step{kind: takes, member: m, owner: o, setup: s})
	}
	w.owners[o].results = 0
}

// idle reports whether nobody wants the card, and it is free.
func (w *world) idle() bool {
	for o := range w.config.owners {
		if p := &w.owners[o]; p.phase != unborn && p.phase != gone {
			return false
		}
	}
	reserve, _ := w.config.reserve()
	return w.card.owner == 0 && !w.card.up && w.card.committer == 0 && w.owners[reserve].phase == unborn
}

// reserveComes has a new owner come.
func (w *world) reserveComes() {
	o, _ := w.config.reserve()
	w.owners[o].phase = wanting
	w.record(name(o) + ", which is new, wants the card")
}

// complete reports whether the new owner has come, got its sum and left.
func (w *world) complete() bool {
	o, m := w.config.reserve()
	return w.owners[o].phase == gone && w.members[m].got && w.members[m+1].got && w.card.owner == 0 && !w.card.up
}

// missing describes what is waited for.
func (w *world) missing() string {
	owners, _ := w.config.people()
	for o := range owners {
		switch p := &w.owners[o]; p.phase {
		case wanting:
			return fmt.Sprintf("%s does not get the card", name(o))
		case unborn, gone:
		default:
			return fmt.Sprintf("the members of %s do not get their sum", name(o))
		}
	}
	if w.card.owner != 0 || w.card.up {
		return "the card does not become free"
	}
	if o, _ := w.config.reserve(); w.owners[o].phase == unborn {
		return "the card is not free"
	}
	return "the new owner has left without its sum"
}
