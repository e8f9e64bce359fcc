package main

// theStranger is its number among the owners.
const theStranger = maxOwners

// strangerWritten are the stranger's writes. It has read OWNER and JOB_STATE, as every host may.
var strangerWritten = []string{"RELEASE with the owner's token", "RESET with the owner's token",
	"JOB_COMMIT of the next epoch", "JOB_ABORT of the running epoch", "MEMBER 0 with its own address"}

// strangerWrites has a write of the stranger reach the card.
func (w *world) strangerWrites(i int) bool {
	c := &w.card
	if !w.answers() {
		return false
	}
	before := *c
	w.Say("the stranger writes %s", strangerWritten[i])
	switch i {
	case 0, 1:
		w.writeRelease(c.owner, foreign, theStranger, i == 1)
	case 2:
		if w.mayWrite(foreign) {
			w.writeCommit(theStranger, 0, c.last+1, foreign)
		}
	case 3:
		w.writeAbort(theStranger, 0, c.job.epoch, foreign)
	case 4:
		if w.mayWrite(foreign) {
			w.tableWritten(0, foreign)
		}
	}
	return *c != before
}

// strangerSends has data of the stranger reach the card: with the running epoch, and the rank of a member.
func (w *world) strangerSends(rank int) bool {
	before := w.card
	w.Say("data of the stranger reaches the card, as rank %d of epoch %d", rank, w.card.job.epoch)
	w.takeData(contribution{stranger, 0}, rank, foreign, w.card.job.epoch, w.card.job.values.setting)
	return w.card != before
}
