package main

// takeData has data reach the card: from an address, with a rank, an epoch and a size. refused reports
// that the size is not that of the job.
func (w *world) takeData(of contribution, rank int, from address, epoch, setting int8) (refused bool) {
	c := &w.card
	switch {
	case !c.up && (!w.weak(notUp) || c.job.epoch == 0):
		return false
	case c.job.values.members[rank] != from && !w.weak(anySender):
		return false
	case c.job.epoch != epoch && !w.weak(anyEpoch):
		return false
	case c.job.values.setting != setting && !w.weak(anySize):
		return true
	case c.held[rank].member != 0:
		return false
	}
	c.held[rank] = of
	if c.held[0].member != 0 && c.held[1].member != 0 && !c.summed {
		c.summed = true
		w.judgeSum()
		if m := c.held[0].member; m != stranger {
			w.owners[w.members[m-1].by].results |= bit(c.held[0].setup)
		}
	}
	return false
}
