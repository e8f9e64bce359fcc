package driver

// Calls on a card in this process (the scheme cpu). The card takes the arrays of a call as they
// are: no frames, no CRCs, no copies. Its link carries register accesses, finishes and notices. It
// also carries the results of members that have not handed over their arrays yet; these get them
// again when they do.
//
// Locks: the card calls back without its own lock, and the driver calls the card without
// Card.mu.

import (
	"time"

	"tributary/driver/cpu"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// arraysOf returns the card behind conn if it takes arrays, else nil.
func arraysOf(conn transport.Link) *cpu.Card {
	if folder, ok := conn.(*folderConn); ok {
		conn = folder.madeConn
	}
	made, ok := conn.(*madeConn)
	if !ok {
		return nil
	}
	card, _ := made.card.(*cpu.Card)
	return card
}

// TakesArrays reports whether the card is in this process and takes arrays as they are (cpu).
func (c *Card) TakesArrays() bool { return c.arrays != nil }

// handOver gives the arrays of the flow's first call to the card, and those of the next calls as
// soon as the card has summed the ones before. The card may call back meanwhile.
func (f *flow) handOver() {
	c := f.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	for !f.handing && len(f.calls) > 0 && !f.calls[0].handed {
		k := f.calls[0]
		k.fillExchange()
		k.handed, f.handing = true, true
		c.mu.Unlock()
		c.arrays.Begin(k.exchange)
		c.mu.Lock()
		f.handing = false
		c.unpinned.Broadcast()
	}
}

// waitForHandOver waits while handOver is at work.
func (f *flow) waitForHandOver() {
	c := f.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	for f.handing {
		c.unpinned.Wait()
	}
}

func (k *call) fillExchange() {
	f, x := k.flow, k.exchange
	x.Job, x.Epoch, x.First = f.job.number, f.job.epoch, k.vid
	x.Ranks, x.Inputs, x.Sum = f.ranks, k.inputs, k.dst
	x.Chunk, x.Elements, x.View = f.job.cfg.Chunk, k.elements, k.view
	x.Observer = k
}

// Summed records that chunks have their sums, with the contributions of ranks, and which ranks were
// evicted by then: the card's notice may still be on its way.
func (k *call) Summed(first, chunks int, ranks, evicted uint64, vid uint32) {
	if k.noteSummed(first, chunks, ranks, evicted, vid) {
		k.flow.handOver()
	}
}

// noteSummed is Summed under the lock. It reports whether the call is complete.
func (k *call) noteSummed(first, chunks int, ranks, evicted uint64, vid uint32) bool {
	f, j := k.flow, k.flow.job
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	k.mark(first, chunks) // also when the call is over: its array has the sums
	if k.heir != nil {
		k = k.heir
	}
	if k.active && evicted&^j.evicted != 0 {
		j.evict(evicted, vid, nil)
	}
	if !k.active {
		return false
	}
	for _, m := range f.members {
		m.stats.Results += uint64(chunks)
		if ranks>>m.rank&1 != 0 {
			m.stats.Sent += uint64(chunks)
		}
	}
	for i := first; ranks != j.ranks && i < first+chunks; i++ {
		k.lacking = append(k.lacking, contributors{i, ranks})
	}
	f.held += chunks
	f.low, f.next, f.moved = f.held, f.held, time.Now()
	f.settle()
	f.noteProgress()
	return !k.active
}

// Refused handles a refusal of a rank's contribution.
func (k *call) Refused(rank int, vid uint32, code wire.Code) {
	j := k.flow.job
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if k.active {
		j.takeStatus(&frame.Header{Kind: wire.KindStatus, Rank: uint8(rank), VID: vid, Code: code}, time.Now())
	}
}
