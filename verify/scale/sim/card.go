package sim

import "math/bits"

// CardConfig describes a card beside a switch, by figures of its manifest.
type CardConfig struct {
	Latency Time // from the last beat of the last contribution to the first beat of the sum
	Chunk   Time // from one sum to the next
	Repeat  Time // between two sendings of an own sum (JOB_REPEAT)
}

// state is that of a slot.
type state uint8

const (
	collecting state = iota
	reducing
	waiting // for the parent's final sum
	closing
	reduced
)

type slot struct {
	vid    int64
	state  state
	held   uint64 // contributions, by rank
	ce     bool
	sentUp Time
}

// Card sums the contributions of its members and follows SPEC, section 5, and the rules of trees
// of cards: the own sum goes to the parent, and the final one comes back.
type Card struct {
	CardConfig
	engine *Engine
	job    *Job
	id     int32 // node of the switch
	out    sender
	parent func(vid int64) int32 // node, or -1 at the root of the VID's tree
	ranks  map[int32]int         // by node
	nodes  []int32               // by rank
	slots  []slot
	busy   Time // the lanes, until then
	lanes  pipe

	Sums, Replays, Repeats, Duplicates int64
}

// sender is a switch that forwards a packet.
type sender interface{ send(*Packet) }

func newCard(n *Network, c CardConfig, j *Job, id int32, out sender, nodes []int32, parent func(int64) int32) *Card {
	card := &Card{
		CardConfig: c, engine: n.Engine, job: j, id: id, out: out, parent: parent, nodes: nodes,
		ranks: map[int32]int{}, slots: make([]slot, 2*j.Window),
	}
	card.lanes = pipe{engine: n.Engine, to: (*sums)(card)}
	for rank, node := range nodes {
		card.ranks[node] = rank
	}
	for i := range card.slots { // SPEC, section 5, Set-up: each slot takes the VID of its number first
		card.slots[i] = slot{vid: int64(i - len(card.slots)), state: reduced}
	}
	return card
}

func (c *Card) receive(p *Packet) {
	defer c.engine.release(p)
	s := &c.slots[p.seq%int64(len(c.slots))]
	if p.kind == contribution && p.seq == s.vid+int64(len(c.slots)) {
		*s = slot{vid: p.seq}
	}
	if p.seq != s.vid {
		return
	}
	switch p.kind {
	case contribution:
		c.take(p, s)
	case result:
		if s.state == waiting {
			s.state = closing
			s.ce = s.ce || p.ce
			c.sum(s.vid)
		}
	case ask:
		c.answer(p, s)
	}
}

func (c *Card) take(p *Packet, s *slot) {
	bit := uint64(1) << c.ranks[p.from]
	if s.held&bit != 0 {
		c.Duplicates++
		c.repeat(p.from, s)
		return
	}
	s.held |= bit
	s.ce = s.ce || p.ce
	if bits.OnesCount64(s.held) == len(c.nodes) {
		s.state = reducing
		c.sum(s.vid)
	}
}

// answer follows the table of asks.
func (c *Card) answer(p *Packet, s *slot) {
	if s.state == collecting && s.held&(1<<c.ranks[p.from]) == 0 {
		c.emit(statusSend, s.vid, p.from, false)
		return
	}
	c.repeat(p.from, s)
}

// repeat sends again what the slot of a repeated contribution or an ask has.
func (c *Card) repeat(to int32, s *slot) {
	switch {
	case s.state == reduced:
		c.Replays++
		c.emit(result, s.vid, to, s.ce)
	case s.state == waiting && c.engine.now-s.sentUp >= c.Repeat:
		c.Repeats++
		c.up(s)
	}
}

// sum passes a chunk through the lanes, which take one after the other.
func (c *Card) sum(vid int64) {
	start := max(c.engine.now, c.busy)
	c.busy = start + c.Chunk
	p := c.engine.packet()
	p.seq = vid
	c.lanes.push(p, start+c.Latency)
}

// sums takes what leaves the lanes of a card.
type sums Card

func (s *sums) receive(p *Packet) {
	c := (*Card)(s)
	slot := &c.slots[p.seq%int64(len(c.slots))]
	c.engine.release(p)
	c.Sums++
	if slot.state == reducing && c.parent(slot.vid) >= 0 {
		slot.state = waiting
		c.up(slot)
		return
	}
	slot.state = reduced
	for _, node := range c.nodes {
		c.emit(result, slot.vid, node, slot.ce)
	}
}

func (c *Card) up(s *slot) {
	s.sentUp = c.engine.now
	c.emit(contribution, s.vid, c.parent(s.vid), s.ce)
}

func (c *Card) emit(k kind, vid int64, to int32, ce bool) {
	p := c.engine.packet()
	p.kind, p.seq, p.job, p.from, p.dst, p.ce = k, vid, c.job, c.id, to, ce
	p.hash = c.job.Hash
	switch k {
	case contribution:
		p.wire = c.job.payload + dataOver
	case result:
		p.wire = c.job.payload + resOver
	default:
		p.wire = status
	}
	c.out.send(p)
}
