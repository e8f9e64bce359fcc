package main

import (
	"encoding/binary"

	"tributary/verify/protocol/explorer"
)

// life is a worker's stage.
type life uint8

const (
	active  life = iota // takes part in its epoch
	stopped             // waits for the owner to set up a new epoch
	down                // has lost its state
)

// worker is the state of one worker in its epoch.
type worker struct {
	life     life
	epoch    uint8
	low      uint8 // the first VID whose result it lacks
	ahead    uint8 // bit i: holds the result of low + 1 + i
	next     uint8 // the first VID it has not sent
	finished bool  // has the answer to its finish
	had      uint8 // low in the last epoch; only for weakenings that use it
}

// holds reports whether the worker holds the result of a VID in its epoch.
func (k *worker) holds(vid int) bool {
	low := int(k.low)
	return vid < low || vid > low && k.ahead>>(vid-low-1)&1 == 1
}

// phase is the state of a slot, in the order that a chunk takes.
type phase uint8

const (
	empty phase = iota
	collecting
	reducing
	waiting // a leaf has the own sum, and lacks the final one
	closing // a leaf has taken the final sum, and passes it through the lanes
	reduced
)

// slot is one slot of a card. Sets have one bit for each member.
type slot struct {
	vid   uint8 // u, absolute; the rules use it modulo config.mod
	phase phase
	held  uint8
	done  uint8
	owed  bool // the own sum is owed to the parent
	fresh bool // it was sent less than JOB_REPEAT ago; set only when faults have ceased

	memory [maxMembers]uint16 // by member; keeps its value across turnovers and jobs, like a RAM
	final  uint16             // memory for the final sum
	cache  uint16             // the own sum, then the final one
}

// loss is what became of a card's job since the owner set it up.
type loss uint8

const (
	none    loss = iota
	unseen       // the card died; a late commit may have set up an old epoch since
	renewed      // the owner knows, and has committed a new epoch
)

// card is a card's state of the job.
type card struct {
	up       bool
	over     bool // ended because all members had finished
	known    bool // has an epoch: some job was set up since it has power
	epoch    uint8
	lost     loss
	finished uint8 // members
	fresh    bool  // a finish went up less than JOB_REPEAT ago; set only when faults have ceased

	sending uint8  // with config.beats: 1 + the slot whose own sum is half sent upwards, or 0
	begun   uint16 // and that packet so far

	slots [maxSlots]slot
}

// owner sets the job up on all cards.
type owner struct {
	epoch     uint8
	first     uint8
	confirmed uint8 // cards that have answered the commit
}

// state is the complete state of a world: it determines all next steps and all judgements.
type state struct {
	workers [maxWorkers]worker
	cards   [maxCards]card
	owner   owner

	// How many faults may still strike.
	deaths, restarts uint8

	// Packets under way. A delivered packet stays, because the network may repeat it. A lost
	// packet stays too: it equals one that never arrives.
	network packetSet
}

// flags packs bits into a byte.
func flags(bits ...bool) byte {
	var b byte
	for i, set := range bits {
		if set {
			b |= 1 << i
		}
	}
	return b
}

// encode appends a state in a compact form: what the configuration has of it, and the network up to
// its last packet. Equal states have equal encodings.
func (c *config) encode(b []byte, s *state) []byte {
	for i := range c.workers() {
		k := &s.workers[i]
		b = append(b, byte(k.life)|flags(k.finished)<<4, k.epoch, k.low, k.ahead, k.next, k.had)
	}
	for i := range c.cards() {
		b = c.encodeCard(b, i, &s.cards[i])
	}
	b = append(b, s.owner.epoch, s.owner.first, s.owner.confirmed, s.deaths, s.restarts)
	last := len(s.network)
	for last > 0 && s.network[last-1] == 0 {
		last--
	}
	for _, word := range s.network[:last] {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

func (c *config) encodeCard(b []byte, i int, k *card) []byte {
	b = append(b, flags(k.up, k.over, k.known, k.fresh)|byte(k.lost)<<4, k.epoch, k.finished, k.sending)
	b = binary.LittleEndian.AppendUint16(b, k.begun)
	for j := range c.slots() {
		t := &k.slots[j]
		b = append(b, t.vid, byte(t.phase)|flags(t.owed, t.fresh)<<4, t.held|t.done<<4)
		for m := range c.memberCount(i) {
			b = binary.LittleEndian.AppendUint16(b, t.memory[m])
		}
		b = binary.LittleEndian.AppendUint16(b, t.final)
		b = binary.LittleEndian.AppendUint16(b, t.cache)
	}
	return b
}

// memberCount is the number of members of a card.
func (c *config) memberCount(card int) int {
	if card == root {
		return len(c.leaves) + c.direct
	}
	return c.leaves[card-1]
}

// decode is the inverse of encode.
func (c *config) decode(from string) state {
	var s state
	r := explorer.Reader(from)
	for i := range c.workers() {
		k := &s.workers[i]
		b := r.Byte()
		k.life, k.finished = life(b&0xf), b>>4 == 1
		k.epoch, k.low, k.ahead, k.next, k.had = r.Byte(), r.Byte(), r.Byte(), r.Byte(), r.Byte()
	}
	for i := range c.cards() {
		c.decodeCard(&r, i, &s.cards[i])
	}
	s.owner = owner{r.Byte(), r.Byte(), r.Byte()}
	s.deaths, s.restarts = r.Byte(), r.Byte()
	for i := 0; len(r) > 0; i++ {
		s.network[i] = r.Uint64()
	}
	return s
}

func (c *config) decodeCard(r *explorer.Reader, i int, k *card) {
	b := r.Byte()
	k.up, k.over, k.known, k.fresh, k.lost = b&1 != 0, b&2 != 0, b&4 != 0, b&8 != 0, loss(b>>4)
	k.epoch, k.finished, k.sending, k.begun = r.Byte(), r.Byte(), r.Byte(), r.Uint16()
	for j := range c.slots() {
		t := &k.slots[j]
		t.vid = r.Byte()
		b := r.Byte()
		t.phase, t.owed, t.fresh = phase(b&0xf), b&16 != 0, b&32 != 0
		b = r.Byte()
		t.held, t.done = b&0xf, b>>4
		for m := range c.memberCount(i) {
			t.memory[m] = r.Uint16()
		}
		t.final, t.cache = r.Uint16(), r.Uint16()
	}
}
