package daemon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
	"tributary/driver/element"
)

// Jobs on cards that take arrays (SPEC.md, section 9). The daemon is the host of all their members: a
// seat's blocks are calls of its member, one after another.

// blockBytes is the most that the elements of a block have. Small blocks let copies and sums overlap,
// large ones cost fewer messages.
const blockBytes = 1 << 20

// blocksAhead is the most blocks of a seat whose sums are not there.
const blocksAhead = 64

// arrays is a job on a card that takes arrays.
type arrays struct {
	job *driver.Job
	per []*arraySeat // by rank
}

// arraySeat sums the blocks of a seat.
type arraySeat struct {
	member *driver.Member
	blocks chan block
	calls  []uint64 // elements of announced calls whose blocks have not come
	next   uint32   // VID of the next block
	open   int      // blocks whose sums are not there
}

// block is a block of elements on its way through the card.
type block struct {
	session *session
	vid     uint32
	in, sum []byte
	inline  bool // the sums travel in the answer
}

// startArrays sets up a job on a card that takes arrays.
func (j *job) startArrays(ctx context.Context) {
	c := j.card
	cfg := j.parameters
	cfg.OnOverdue = func(o driver.Overdue) { j.noteOverdue(o) }
	cfg.OnOutage = j.noteOutage
	direct, err := c.driver.Configure(ctx, cfg)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		j.arrays = &arrays{job: direct}
	}
	if !j.isSetUp(err) {
		return
	}
	j.number, j.epoch = uint8(direct.Number()), direct.Epoch()
	for rank := range j.seats {
		s := &arraySeat{member: direct.Member(rank), blocks: make(chan block, blocksAhead), next: j.parameters.FirstVID}
		j.arrays.per = append(j.arrays.per, s)
		go j.sumBlocks(s)
	}
	j.begin()
	if j.away > 0 {
		j.pauseBlocks()
	}
}

// noteOutage passes the outage of a card of a tree on to the members. The job's blocks stay where they are,
// and the tree continues by itself.
func (j *job) noteOutage(o driver.Outage) {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if o.Epoch == 0 {
		j.away++
		j.lost = o.Cause
	} else {
		j.away--
		j.epoch, j.first = o.Epoch, o.VID
	}
	switch {
	case j.state != running || j.arrays == nil:
	case j.away == 0:
		j.begin()
	case j.away == 1 && o.Epoch == 0:
		j.pauseBlocks()
	}
}

// pauseBlocks asks the members of a job for no further blocks until its next epoch.
func (j *job) pauseBlocks() {
	j.tell(everyone, &protocol.ToClient{Message: &protocol.ToClient_Stop{Stop: &protocol.Stop{Nonce: j.nonce, Cause: j.lost.Error()}}})
}

// forever is the time that a member's call waits for the others: their clients decide that.
const forever = time.Duration(math.MaxInt64)

// sumBlocks sums the blocks of a seat until the job is over.
func (j *job) sumBlocks(s *arraySeat) {
	ctx := context.Background()
	waiting := make(chan func(), blocksAhead)
	var answers sync.WaitGroup
	answers.Go(func() {
		for wait := range waiting {
			wait()
		}
	})
	for b := range s.blocks {
		p, err := s.member.StartAllReduceBytes(ctx, b.sum, b.in, driver.WithCallTimeout(forever))
		waiting <- func() {
			if err == nil {
				err = p.Wait(ctx)
			}
			j.answer(s, b, p, err)
		}
	}
	close(waiting)
	answers.Wait()
}

// answer tells a client that the sums of a block are there.
func (j *job) answer(s *arraySeat, b block, p *driver.Pending, err error) {
	m := &protocol.Summed{Nonce: j.nonce, Rank: uint32(s.member.Rank()), Vid: b.vid}
	var evicted *driver.EvictedError
	switch {
	case errors.As(err, &evicted):
		m.Evicted = true
	case err != nil:
		m.Failed = true
	default:
		m.Parts = j.partsOf(p.Partials())
		for _, rank := range j.arrays.job.Evicted() {
			m.Gone |= 1 << rank
		}
		if b.inline {
			m.Payload = b.sum
		}
	}
	b.session.memory.leave()
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	s.open--
	j.evicted |= m.Gone
	j.card.counts.out += uint64(len(b.sum))
	b.session.tell(&protocol.ToClient{Message: &protocol.ToClient_Summed{Summed: m}})
	if m.Failed {
		j.end(&protocol.Ended{Cause: protocol.Cause_CARD_LOST, Text: err.Error()})
	}
}

// partsOf converts ranges of elements into ranges of chunks.
func (j *job) partsOf(partials []driver.Partial) (parts []*protocol.Part) {
	for _, p := range partials {
		part := &protocol.Part{Vid: p.VID, Chunks: uint32((p.To - p.From + j.parameters.Chunk - 1) / j.parameters.Chunk)}
		for _, rank := range p.Ranks {
			part.Mask |= 1 << rank
		}
		parts = append(parts, part)
	}
	return parts
}

// blockElements returns the number of elements of a block: whole chunks.
func (j *job) blockElements() int {
	size := max(element.Size(j.card.driver.Info().Format), element.Size(j.card.driver.Info().Result))
	return max(1, blockBytes/size/j.parameters.Chunk) * j.parameters.Chunk
}

// takeBlock takes a seat's block. An error is the session's fault. The caller holds the card's mutex.
func (j *job) takeBlock(seat *seat, p *protocol.Block) error {
	if j.state != running || j.arrays == nil {
		j.card.counts.stale++
		return nil
	}
	s := j.arrays.per[seat.rank]
	switch {
	case len(s.calls) == 0:
		return fmt.Errorf("rank %d sent block %d of a call that it did not announce", seat.rank, p.Vid)
	case s.open == blocksAhead:
		return fmt.Errorf("rank %d has sent more than %d blocks ahead", seat.rank, blocksAhead)
	}
	left := &s.calls[0]
	n := min(uint64(j.blockElements()), *left)
	if p.Vid != s.next || uint64(p.Elements) != n {
		return fmt.Errorf("rank %d sent block %d of %d elements, not block %d of %d", seat.rank, p.Vid, p.Elements, s.next, n)
	}
	b, err := j.place(seat, p)
	if err != nil {
		return err
	}
	chunk := uint64(j.parameters.Chunk)
	s.next += uint32((n + chunk - 1) / chunk)
	if *left -= n; *left == 0 {
		s.calls = s.calls[1:]
	}
	s.open++
	j.card.counts.in += uint64(len(b.in))
	b.session.memory.enter() // the session has not ended: it holds the seat
	s.blocks <- b            // there is room
	return nil
}

// place returns the memory of a block and of its sums. They are the same, unless their elements differ
// in size: then the sums follow the elements.
func (j *job) place(seat *seat, p *protocol.Block) (block, error) {
	info := j.card.driver.Info()
	b := block{session: seat.session, vid: p.Vid}
	in, out := int(p.Elements)*element.Size(info.Format), int(p.Elements)*element.Size(info.Result)
	memory := seat.session.memory.bytes()
	if memory == nil || len(p.Payload) > 0 {
		if len(p.Payload) != in {
			return b, fmt.Errorf("rank %d sent block %d with %d bytes, not %d", seat.rank, p.Vid, len(p.Payload), in)
		}
		b.in, b.sum, b.inline = p.Payload, p.Payload, true
		if in != out {
			b.sum = make([]byte, out)
		}
		return b, nil
	}
	need := in
	if in != out {
		need += out
	}
	if p.Place > uint64(len(memory)) || uint64(need) > uint64(len(memory))-p.Place {
		return b, fmt.Errorf("rank %d sent a block at %d, beyond its memory of %d bytes", seat.rank, p.Place, len(memory))
	}
	at := memory[p.Place:][:need:need]
	b.in, b.sum = at[:in:in], at[need-out:]
	return b, nil
}

// takeFinish notes that a seat has made all its calls. With the last one the job is over.
func (j *job) takeFinish(seat *seat) error {
	if j.direct {
		j.takeDirectFinish(seat)
		return nil
	}
	if j.rdma != nil {
		j.takeConnectedFinish(seat)
		return nil
	}
	if j.state != running || j.arrays == nil {
		return nil
	}
	if s := j.arrays.per[seat.rank]; s.open > 0 || len(s.calls) > 0 {
		return fmt.Errorf("rank %d finishes in a call", seat.rank)
	}
	j.confirmFinish(seat)
	return nil
}

// late returns the ranks whose block with a VID has not come.
func (j *job) late(vid uint32) (mask uint64) {
	for rank, s := range j.arrays.per {
		if int32(s.next-vid) <= 0 && (j.finished|j.evicted)>>rank&1 == 0 {
			mask |= 1 << rank
		}
	}
	return mask
}

// mostAnswered is how many messages may wait for a client whose question is answered.
const mostAnswered = queueMessages / 2

// takeAsk answers a question, unless the client has not read much: it asks again. Each of its seats asks ten
// times a second, and the questions of a pause come at once.
func (j *job) takeAsk(seat *seat, p *protocol.Ask) {
	if j.state == running && j.arrays != nil && len(seat.session.messages) < mostAnswered {
		seat.session.tell(missing(j.nonce, p.Vid, j.late(p.Vid), false))
	}
}

// noteOverdue passes a notice of the card on to all members.
func (j *job) noteOverdue(o driver.Overdue) {
	var mask uint64
	for _, rank := range o.Ranks {
		mask |= 1 << rank
	}
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	j.tell(everyone, missing(j.nonce, o.VID, mask, true))
}

func missing(nonce uint64, vid uint32, mask uint64, overdue bool) *protocol.ToClient {
	return &protocol.ToClient{Message: &protocol.ToClient_Missing{Missing: &protocol.Missing{Nonce: nonce, Vid: vid, Mask: mask, Overdue: overdue}}}
}

// close ends the job on the card: in order if it has finished.
func (a *arrays) close(finished bool) {
	for _, s := range a.per {
		close(s.blocks)
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
	defer cancel()
	if !finished || a.job.Close(ctx) != nil {
		_ = a.job.Abort(ctx) // the next set-up drops what the card still has
	}
}
