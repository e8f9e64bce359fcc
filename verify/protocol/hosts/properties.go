package main

// property is what must hold.
type property struct{ name, holds string }

// Names of the properties.
const (
	whole       = "whole"
	owned       = "owned"
	ownersAlone = "owner's alone"
	rightSum    = "right sum"
	ownResult   = "own result"
	progress    = "progress"
)

var properties = []property{
	{whole, "a job that members are told of has the members that its owner staged for it, and a job that makes a sum has everything that its owner staged; never another staging's values"},
	{owned, "a job is set up only while the owner's life that set it up has the card"},
	{ownersAlone, "a job ends by its owner's life that has given it up, by the lease, or by a loss of power; by no other write, and by no late copy"},
	{rightSum, "a sum has the contribution of each rank once, of this set-up, from the member's life that joined for it; nothing else"},
	{ownResult, "a member takes only the result of the set-up that it was told of"},
	{progress, "once faults cease, every owner whose members live gets its sum or learns that it has lost the card; then the card becomes free, and a new owner gets a sum"},
}

// judgeOwned checks that the running job has its owner.
func (w *world) judgeOwned() {
	c := &w.card
	switch {
	case !c.up:
	case int(c.job.by) >= maxOwners:
		w.violate(ownersAlone, "the stranger has set a job up")
	case c.owner == 0:
		w.violate(owned, "the job of %s is set up, and nobody has the card", name(int(c.job.by)))
	case c.owner != w.token(int(c.job.by)):
		w.violate(owned, "the job of %s is set up, and another owner has the card", name(int(c.job.by)))
	}
}

// judgeTold checks the job that an owner tells its members of, if it is the owner's.
func (w *world) judgeTold(o int) {
	c, s := &w.card, w.owners[o].setup
	if want := w.wants(o, s); c.up && int(c.job.by) == o && c.job.setup == s && c.job.values.members != want.members {
		w.violate(whole, "the job has %s, and %s has staged %s for it", w.describe(c.job.values), name(o), w.describe(want))
	}
}

// judgeSum checks the job that makes a sum, and the contributions.
func (w *world) judgeSum() {
	c := &w.card
	by := int(c.job.by)
	if by >= maxOwners {
		return // judged already: the stranger has set it up
	}
	set := &w.owners[by].setups[c.job.setup]
	if want := w.wants(by, c.job.setup); c.job.values != want {
		w.violate(whole, "the job has %s, and %s has staged %s for it", w.describe(c.job.values), name(by), w.describe(want))
	}
	for rank, held := range c.held {
		m := int(held.member) - 1
		switch {
		case held.member == stranger:
			w.violate(rightSum, "the contribution of rank %d is the stranger's", rank)
		case int(w.members[m].by) != by || held.setup != c.job.setup:
			w.violate(rightSum, "the contribution of rank %d is that of member %d to set-up %d of %s; the job is set-up %d of %s",
				rank, m, held.setup+1, name(int(w.members[m].by)), c.job.setup+1, name(by))
		case w.config.life(m).rank != rank || int(set.seats[rank]) != m+1:
			w.violate(rightSum, "the contribution of rank %d is that of member %d, and member %d has the rank", rank, m, set.seats[rank]-1)
		case w.config.life(m).owner != by || w.config.life(m).job != int(set.job):
			w.violate(rightSum, "member %d, which contributes as rank %d, has a ticket for another job", m, rank)
		}
	}
}
