// Tree jobs: own sums to the parent, final sums from it, and the end of the job (TREES.md, section 4).

package model

import (
	"slices"

	"tributary/driver/wire"
)

// debt is a packet that is owed to the parent, once or again.
type debt struct {
	owed bool
	vid  uint32 // of a finish
	sent bool   // a sending of it has begun before
	at   uint64 // the clock when the last sending began
}

// isEarly reports whether it is too early to owe the packet again.
func (d *debt) isEarly(now, repeat uint64) bool { return d.sent && now-d.at < repeat }

// begin records that a sending begins.
func (d *debt) begin(now uint64) { d.owed, d.sent, d.at = false, true, now }

// isTree reports whether the job of the last set-up uses the up port.
func (j *job) isTree() bool { return j.setup.upward.isTree() }

// global returns the global ranks that ranks of the job stand for.
func (j *job) global(ranks uint64) (global uint64) {
	for rank, stands := range j.ranks {
		if ranks>>rank&1 != 0 {
			global |= stands
		}
	}
	return global
}

// summed returns the global ranks in the result of a slot.
func (j *job) summed(s *slot) uint64 {
	if j.isTree() {
		return j.setup.upward.tree
	}
	return j.global(s.held)
}

// rise owes the own sum of a waiting slot to the parent.
func (t *slotTable) rise(number int) {
	t.slots[number].up.owed = true
	t.rising = append(t.rising, number)
}

// settle clears the debt of a slot's own sum.
func (t *slotTable) settle(number int) {
	t.slots[number].up.owed = false
	t.rising = slices.DeleteFunc(t.rising, func(other int) bool { return other == number })
}

// rises returns the slot whose own sum leaves next; ok is false if there is none.
func (t *slotTable) rises() (number int, ok bool) {
	for _, number := range t.rising {
		if t.isBehind(t.slots[number].vid - t.window) {
			return number, true
		}
	}
	return 0, false
}

// isBehind reports whether the card has the final sum of vid, or needs none. The own sum of the chunk a
// window later does not leave before: it is evidence of that for the parent.
func (t *slotTable) isBehind(vid uint32) bool {
	s, _ := t.of(vid)
	if s.vid == vid {
		return s.state == reduced || s.state == empty
	}
	return outOfWindow(vid, s.vid) == wire.CodeLate
}

// repeatSum owes the parent the own sum of a waiting slot that holds vid again, unless it is owed
// already or was sent a short time ago.
func (c *Card) repeatSum(j *job, vid uint32) {
	s, number := j.table.of(vid)
	if s.vid != vid || s.state != waiting || s.up.owed || s.up.isEarly(c.cycles, j.setup.upward.repeat) {
		return
	}
	c.up.add(countUpRepeats, 1)
	j.table.rise(number)
}

// owe owes the parent a finish, unless one was sent a short time ago.
func (c *Card) owe(j *job, finish *debt, vid uint32) {
	if finish.isEarly(c.cycles, j.setup.upward.repeat) {
		return
	}
	if finish.sent && !finish.owed {
		c.up.add(countUpRepeats, 1)
	}
	finish.owed, finish.vid = true, vid
}

// NextUp is Next for the up port, which can take a packet: it writes the next packet for the parent to
// out. It returns false, and leaves out unchanged, if there is none. The jobs take turns, each with one
// packet at a time. A card without an up port has none.
func (c *Card) NextUp(out *Packet) bool {
	c.Reduce()
	number, ok := c.rising.take(func(number int) bool {
		j := &c.jobs[number]
		_, due := j.table.rises()
		return due || j.finish.owed
	})
	if !ok {
		return false
	}
	j := &c.jobs[number]
	*out = Packet{Header: j.upHeader(), Payload: out.Payload[:0]}
	if slot, due := j.table.rises(); due {
		c.beginSum(j, slot, out)
	} else {
		c.beginFinish(j, out)
	}
	c.up.add(countUpSent, 1)
	return true
}

// upHeader returns the part of a header that all packets to the parent have.
func (j *job) upHeader() Header {
	return Header{Version: wire.Version, Job: uint8(j.number), Epoch: j.epoch, Rank: j.setup.upward.rank()}
}

// beginSum sends the own sum of a slot.
func (c *Card) beginSum(j *job, number int, out *Packet) {
	s := &j.table.slots[number]
	out.Kind, out.Format, out.VID, out.Length = wire.KindData, c.cfg.Format, s.vid, uint16(j.setup.chunk)
	out.Flags = uint8(wire.ECNOrder[s.congestion])
	if s.nonfinite {
		out.Flags |= wire.FlagNonfinite
	}
	out.Payload = append(out.Payload, s.result...)
	j.table.settle(number)
	s.up.begin(c.cycles)
	c.Advance(j.setup.chunk / uint64(c.cfg.Lanes))
}

// beginFinish sends the finish of a job.
func (c *Card) beginFinish(j *job, out *Packet) {
	out.Kind, out.VID = wire.KindFinish, j.finish.vid
	j.finish.begin(c.cycles)
	c.Advance(1)
}

// fromParent commits a packet of the up port.
func (c *Card) fromParent(p *Packet) {
	j := c.numbered(p.Job)
	taken := false
	if p.Version == wire.Version && int(p.Job) < len(c.jobs) && j.running && j.isTree() && p.Epoch == j.epoch {
		switch p.Kind {
		case wire.KindResult, wire.KindReplay:
			taken = c.takeFinal(j, p)
		case wire.KindStatus:
			taken = p.Rank == j.setup.upward.rank() && c.takeStatus(j, p)
		}
	}
	if !taken {
		c.up.add(countUpDropped, 1)
	}
}

// takeFinal takes a final sum, and reports whether it did.
func (c *Card) takeFinal(j *job, p *Packet) bool {
	s, number := j.table.of(p.VID)
	switch {
	case p.Format != c.cfg.Format || uint64(p.Length) != j.setup.chunk || len(p.Payload) != int(p.Length)*elementBytes(p.Format):
		return false
	case p.Mask != j.setup.upward.tree || s.vid != p.VID || s.state != waiting || p.Bad:
		return false
	}
	s.final = append(s.final[:0], p.Payload...)
	s.congestion = max(s.congestion, congestionOf(p.Flags))
	s.nonfinite = s.nonfinite || p.Flags&wire.FlagNonfinite != 0
	s.state = closing
	j.table.settle(number)
	j.table.reducing = append(j.table.reducing, number)
	c.up.add(countUpTaken, 1)
	return true
}

// takeStatus acts on a status of the parent, and reports whether it is one that a card knows.
func (c *Card) takeStatus(j *job, p *Packet) bool {
	switch {
	case p.Code == wire.CodeDone && j.allFinished():
		c.notify(j, wire.CodeDone, p.VID, j.table.members, 0)
		j.complete = true
		j.end()
	case p.Code == wire.CodeOverdue:
		c.notify(j, wire.CodeOverdue, p.VID, j.table.members, p.Mask)
	case p.Code == wire.CodeWait || p.Code == wire.CodeSend:
	case p.Code >= wire.FirstRefusal:
		j.upRefusal = wire.UpRefusal(p.Code, p.VID)
		c.up.add(countUpRefused, 1)
	default:
		return false
	}
	return true
}
