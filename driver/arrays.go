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
func arraysOf(conn transport.Conn) *cpu.Card {
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

// handOver gives the arrays of the call to the card.
func (k *call) handOver() {
	k.exchange.Job, k.exchange.Epoch, k.exchange.First = k.job.number, k.job.epoch, k.first
	k.exchange.Ranks, k.exchange.Inputs, k.exchange.Sum = k.ranks, k.inputs, k.dst
	k.exchange.Chunk, k.exchange.Elements = k.job.cfg.Chunk, k.elements
	k.exchange.Observer = k
	k.job.card.arrays.Begin(&k.exchange)
}

// Summed records that chunks have their sums, with the contributions of ranks, and which ranks were
// evicted by then: the card's notice may still be on its way.
func (k *call) Summed(first, chunks int, ranks, evicted uint64, vid uint32) {
	c := k.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.active && evicted&^k.job.evicted != 0 {
		k.job.evict(evicted, vid, nil)
	}
	if !k.active {
		return
	}
	for _, m := range k.members {
		m.stats.Results += uint64(chunks)
		if ranks>>m.rank&1 != 0 {
			m.stats.Sent += uint64(chunks)
		}
	}
	for i := first; ranks != k.job.ranks && i < first+chunks; i++ {
		k.lacking = append(k.lacking, contributors{i, ranks})
	}
	k.held += chunks
	k.low, k.next, k.moved = k.held, k.held, time.Now()
	if k.held == k.chunks {
		k.complete(nil)
		return
	}
	k.noteProgress()
}

// Refused handles a refusal of a rank's contribution.
func (k *call) Refused(rank int, vid uint32, code wire.Code) {
	c := k.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.active {
		k.job.takeStatus(&frame.Header{Kind: wire.KindStatus, Rank: uint8(rank), VID: vid, Code: code}, time.Now())
	}
}
