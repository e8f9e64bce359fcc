package driver

// Calls on a shared card that takes arrays (daemon/SPEC.md, section 9). A call's arrays travel in
// blocks: the writer copies the next block into memory that the daemon sees, or into a message, and
// the daemon answers with its sums, in order. Card.mu guards everything.

import (
	"math/bits"
	"slices"
	"time"

	"tributary/driver/daemon/protocol"
)

// blocksAhead is the most blocks of a member whose sums are not there.
const blocksAhead = 16

// blocks are the places of blocks of a link; nil if the card takes frames.
type blocks struct {
	bytes  int    // of a block's elements, at most
	memory []byte // shared with the daemon; nil: blocks travel in messages
	free   []int  // places, in bytes
	sent   []sentBlock
}

// sentBlock is a block without its sums. Its place is in use until they have come, even if the job has
// ended meanwhile.
type sentBlock struct {
	member *Member
	flow   *flow
	chunk  int // its first one, counted in the flow
	chunks int
	vid    uint32
	place  int    // inline: in a message
	memory []byte // of the sums; nil in messages
}

// inline is the place of a block that travels in a message.
const inline = -1

// newBlocks divides the memory of a session. size is that of an element and its sum together, or of one
// of them if they are the same.
func newBlocks(s session) *blocks {
	if s.Block() == 0 {
		return nil
	}
	b := &blocks{bytes: s.Block(), memory: s.Memory()}
	for place := 0; place+2*b.bytes <= len(b.memory); place += 2 * b.bytes {
		b.free = append(b.free, place)
	}
	return b
}

// blockChunks returns the number of chunks of a block.
func (j *Job) blockChunks() int {
	return max(1, j.card.link.blocks.bytes/max(j.inBytes, j.outBytes)/j.cfg.Chunk)
}

// sendBlock sends the next block of a flow, if there is one and a place for it. It releases the mutex
// while it copies, with the call pinned.
func (j *Job) sendBlock(now time.Time) bool {
	for n := range j.flows {
		f := j.flows[(j.turn+n)%len(j.flows)]
		for f.next < f.chunks && !f.pausesAt(f.next) {
			m, k := f.members[f.turn], f.callOf(f.next)
			chunks := min(j.blockChunks(), k.end()-f.next)
			if m.out != nil {
				f.passBlock(chunks)
				continue
			}
			place, ok := j.card.placeFor(m)
			if !ok {
				break
			}
			j.turn = (j.turn + n + 1) % len(j.flows)
			f.sendNext(m, k, chunks, place, now)
			return true
		}
	}
	return false
}

// placeFor returns a place for a member's next block, if the member may send one. The seats of this
// session share the places. A member that has none sends a block in a message, so that no member waits
// for the places of others that wait for it.
func (c *Card) placeFor(m *Member) (place int, ok bool) {
	b := c.link.blocks
	open, placed := 0, 0
	for i := range b.sent {
		if b.sent[i].member == m {
			open++
		}
		if b.sent[i].place != inline {
			placed++
		}
	}
	if b.memory == nil {
		return inline, open < blocksAhead
	}
	seats := 0
	for j := range c.jobs() {
		seats += bits.OnesCount64(j.here)
	}
	last := len(b.free) - 1
	switch {
	case open >= max(1, (placed+len(b.free))/max(1, seats)):
		return 0, false
	case last < 0:
		return inline, open == 0
	}
	place = b.free[last]
	b.free = b.free[:last]
	return place, true
}

// passBlock records that the member in turn has sent its next block, or has none to send.
func (f *flow) passBlock(chunks int) {
	if f.turn++; f.turn == len(f.members) {
		f.turn = 0
		f.next += chunks
	}
}

func (f *flow) sendNext(m *Member, k *call, chunks, place int, now time.Time) {
	j, c := f.job, f.job.card
	b := c.link.blocks
	first := f.next - k.from
	elements := min((first+chunks)*j.cfg.Chunk, k.elements) - first*j.cfg.Chunk
	in := k.inputs[f.turn]
	sent := sentBlock{member: m, flow: f, chunk: f.next, chunks: chunks, vid: f.vid(f.next), place: place}
	message := &protocol.Block{Nonce: j.seats.nonce, Rank: uint32(m.rank), Vid: sent.vid, Elements: uint32(elements)}
	var to []byte
	if place != inline {
		message.Place = uint64(place)
		to = b.memory[place:][:elements*j.inBytes]
		sent.memory = to
		if j.inBytes != j.outBytes {
			sent.memory = b.memory[place+len(to):][:elements*j.outBytes]
		}
	}
	c.pinned = k
	c.mu.Unlock()
	if to != nil {
		k.gather(to[:0], in, sent.chunk, chunks, j.inBytes)
	} else {
		message.Payload = k.gather(nil, in, sent.chunk, chunks, j.inBytes)
	}
	c.mu.Lock()
	c.pinned = nil
	c.unpinned.Broadcast()
	if !k.active || j.stopped || c.link.err != nil {
		b.release(&sent)
		return // the call ended meanwhile
	}
	b.sent = append(b.sent, sent)
	m.stats.Sent += uint64(chunks)
	f.passBlock(chunks)
	j.sentData = now
	j.tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Block{Block: message}})
}

// release frees the place of a block.
func (b *blocks) release(s *sentBlock) {
	if s.place != inline {
		b.free = append(b.free, s.place)
	}
}

// hearSummed stores the sums of a block, and frees its place.
func (c *Card) hearSummed(s *protocol.Summed) {
	b := c.link.blocks
	if b == nil {
		return
	}
	i := slices.IndexFunc(b.sent, func(sent sentBlock) bool {
		return sent.vid == s.Vid && sent.member.rank == int(s.Rank) && sent.member.job.seats.nonce == s.Nonce
	})
	if i < 0 {
		return
	}
	sent := b.sent[i]
	b.sent = slices.Delete(b.sent, i, i+1)
	j := sent.member.job
	switch {
	case j.ended || sent.member.out != nil || s.Failed:
	case s.Evicted:
		j.evict(1<<s.Rank, s.Vid, nil)
	default:
		if sent.place == inline {
			sent.memory = s.Payload
		}
		sent.flow.copyBlock(&sent)
		if sent.place != inline && !c.link.session.Kept() {
			return // zeros, maybe: the session is over, and its end is on its way
		}
		sent.flow.takeBlock(&sent, s.Parts)
		if s.Gone&^j.evicted != 0 {
			j.evict(s.Gone&j.ranks, s.Vid, nil)
		}
	}
	b.release(&sent)
	c.kick()
}

// copyBlock stores the sums of a block, for the first of the flow's members that takes part.
func (f *flow) copyBlock(b *sentBlock) {
	if k := f.callOf(b.chunk); k != nil && k.dst != nil && b.member == f.turnOf(0) {
		k.scatter(b.chunk, b.chunks, b.memory)
	}
}

// takeBlock notes the progress with a block whose sums are stored.
func (f *flow) takeBlock(b *sentBlock, parts []*protocol.Part) {
	b.member.got = b.chunk + b.chunks
	b.member.stats.Results += uint64(b.chunks)
	if k := f.callOf(b.chunk); k != nil && b.member == f.turnOf(0) {
		for _, p := range parts {
			for i := range int(p.Chunks) {
				k.lacking = append(k.lacking, contributors{f.chunkOf(p.Vid) + i - k.from, p.Mask})
			}
		}
	}
	low := f.chunks
	for _, m := range f.members {
		if m.out == nil {
			low = min(low, m.got)
		}
	}
	if low > f.low {
		*f.state(low) = chunkState{}
		f.low, f.held, f.moved = low, low, time.Now()
		f.settle()
		f.noteProgress()
	}
}

// scatter stores the sums of n chunks from chunk i on.
func (k *call) scatter(i, n int, sums []byte) {
	for ; n > 0; i, n = i+1, n-1 {
		sums = sums[copy(k.part(k.dst, i, k.from, k.flow.job.outBytes), sums):]
	}
}

// mostQuiet is how long a flow hears nothing before it asks which members are late.
const mostQuiet = 100 * time.Millisecond

// appendBlockAsks asks which members are late when nothing has moved for a while. wait is how long
// nothing else is due.
func (f *flow) appendBlockAsks(now time.Time) (wait time.Duration) {
	interval := min(f.job.card.opts.timeout/asksInTimeout, mostQuiet)
	last := f.lastMoved()
	if f.asked.After(last) {
		last = f.asked
	}
	if wait = last.Add(interval).Sub(now); wait > 0 || f.low == f.next {
		return max(wait, interval)
	}
	f.asked = now
	f.job.tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Ask{Ask: &protocol.Ask{
		Nonce: f.job.seats.nonce, Rank: uint32(f.turnOf(0).rank), Vid: f.vid(f.low)}}})
	return interval
}

// takeMissingBlocks notes which ranks are late, for the error of a call that gives up. The block of
// another rank is progress.
func (j *Job) takeMissingBlocks(m *protocol.Missing) {
	for _, f := range j.flows {
		if i := f.chunkOf(m.Vid); i != f.low || f.low == f.next {
			continue
		}
		s := f.state(f.low)
		known := s.known
		if s.lacks(m.Mask, j.ranks) && known {
			f.moved = time.Now()
		}
	}
	if m.Overdue && j.cfg.OnOverdue != nil {
		o := Overdue{Card: j.card.name, Job: int(j.number), VID: m.Vid, Ranks: bitSlice(m.Mask)}
		j.card.unlocked(func() { j.cfg.OnOverdue(o) })
	}
}

// finishBlocks reports that the members here have made all their calls.
func (j *Job) finishBlocks() {
	for _, rank := range bitSlice(j.finish.left) {
		j.tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Finish{Finish: &protocol.Finish{Nonce: j.seats.nonce, Rank: uint32(rank)}}})
	}
}
