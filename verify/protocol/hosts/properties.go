package main

import "tributary/verify/protocol/explorer"

// Names of the properties.
const (
	whole       = "whole"
	owned       = "owned"
	ownersAlone = "owner's alone"
	rightSum    = "right sum"
	ownResult   = "own result"
	progress    = "progress"
)

var properties = []explorer.Property{
	{Name: whole, Holds: "a job that members are told of has the members that its owner staged for it, and a job that makes a sum has everything that its owner staged; never another staging's values"},
	{Name: owned, Holds: "a job is set up only while the owner's life that set it up has the card"},
	{Name: ownersAlone, Holds: "a job ends by its owner's life that has given it up, by the lease, or by a loss of power; by no other write, and by no late copy"},
	{Name: rightSum, Holds: "a sum has the contribution of each rank once, of this set-up, from the member's life that joined for it; nothing else"},
	{Name: ownResult, Holds: "a member takes only the result of the set-up that it was told of"},
	{Name: progress, Holds: "once faults cease, every owner whose members live gets its sum or learns that it has lost the card; then the card becomes free, and a new owner gets a sum"},
}

// judgeOwned checks that the running job has its owner.
func (w *world) judgeOwned() {
	c := &w.card
	switch {
	case !c.up:
	case int(c.job.by) == theStranger:
		w.Violate(ownersAlone, "the stranger has set a job up")
	case c.owner == 0:
		w.Violate(owned, "the job of %s is set up, and nobody has the card", name(int(c.job.by)))
	case c.owner != w.token(int(c.job.by)):
		w.Violate(owned, "the job of %s is set up, and another owner has the card", name(int(c.job.by)))
	}
}

// judgeEnd checks a write that ends the running job. An owner that lives has given up the set-ups before its
// current one.
func (w *world) judgeEnd(by int, setup int8, write string) {
	job := &w.card.job
	switch {
	case int(job.by) != by:
		w.Violate(ownersAlone, "%s of %s ends the job of %s", write, name(by), name(int(job.by)))
	case by != theStranger && w.owners[by].phase != gone && w.owners[by].setup <= job.setup:
		w.Violate(ownersAlone, "%s of set-up %d ends the job of set-up %d, which %s has not given up",
			write, setup+1, job.setup+1, name(by))
	}
}

// judgeTold checks the job that an owner tells its members of, if it is the owner's.
func (w *world) judgeTold(o int) {
	c, s := &w.card, w.owners[o].setup
	if want := w.wants(o, s); c.up && int(c.job.by) == o && c.job.setup == s && c.job.values.members != want.members {
		w.Violate(whole, "the job has %s, and %s has staged %s for it", w.describe(c.job.values), name(o), w.describe(want))
	}
}

// judgeSum checks the contributions of a sum, and the job that makes it.
func (w *world) judgeSum() {
	first := w.card.held[0]
	for rank, held := range w.card.held {
		if held.member == stranger {
			w.Violate(rightSum, "the contribution of rank %d is the stranger's", rank)
			return
		}
		w.judgeContribution(rank, held, first)
	}
	by := int(w.members[first.member-1].by)
	if want := w.wants(by, first.setup); w.card.job.values != want {
		w.Violate(whole, "the job has %s, and %s has staged %s for it", w.describe(w.card.job.values), name(by), w.describe(want))
	}
}

// judgeContribution checks the contribution of a rank. The first rank has shown the set-up.
func (w *world) judgeContribution(rank int, held, first contribution) {
	m := int(held.member) - 1
	by, o := int(w.members[m].by), int(w.members[first.member-1].by)
	set, l := &w.owners[by].setups[held.setup], w.config.life(m)
	switch {
	case by != o || held.setup != first.setup:
		w.Violate(rightSum, "the contribution of rank 0 is for set-up %d of %s, that of rank %d for set-up %d of %s",
			first.setup+1, name(o), rank, held.setup+1, name(by))
	case int(set.seats[rank]) != m+1:
		w.Violate(rightSum, "the contribution of rank %d is that of member %d, and member %d has the rank", rank, m, set.seats[rank]-1)
	case l.owner != by || l.job != int(set.job):
		w.Violate(rightSum, "member %d, which contributes as rank %d, has a ticket for another job", m, rank)
	}
}
