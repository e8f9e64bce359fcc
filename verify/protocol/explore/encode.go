package main

import (
	"encoding/binary"

	"tributary/verify/protocol/explorer"
)

// encode appends a state in a compact form: only the members and slots that
// the configuration has, and the network up to its last packet. Equal states
// have equal encodings.
func (w *world) encode(b []byte) []byte { return w.encodeState(b, &w.state) }

// encodeState appends a state other than the world's own.
func (w *world) encodeState(b []byte, s *state) []byte {
	for m := range w.config.members() {
		b = s.members[m].encode(b)
	}
	for i := range len(w.config.Jobs) * w.slotCount() {
		b = s.slots[i].encode(b, w.config)
	}
	for j := range w.config.Jobs {
		k, c := &s.jobs[j], &s.controllers[j]
		b = append(b, boolBit(k.up)|boolBit(k.over)<<1|boolBit(c.confirmed)<<2, k.epoch, k.members, k.finished, c.epoch, c.first)
	}
	b = append(b, s.restarts, s.resets, s.evictions)
	last := len(s.network)
	for last > 0 && s.network[last-1] == 0 {
		last--
	}
	for _, word := range s.network[:last] {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

func (m *member) encode(b []byte) []byte {
	b = append(b, byte(m.life)|boolBit(m.finished)<<4, m.epoch, m.low, m.ahead, m.next, m.sending)
	return binary.LittleEndian.AppendUint16(b, m.begun)
}

func (s *slot) encode(b []byte, c *config) []byte {
	b = append(b, s.vid, byte(s.phase)|boolBit(s.stalled)<<4, s.held, s.done, s.owed, s.mask, s.count, s.cacheMask)
	for m := range c.members() {
		b = binary.LittleEndian.AppendUint16(b, uint16(s.memory[m]))
		for beat := range c.Beats {
			b = binary.LittleEndian.AppendUint16(b, uint16(s.cache[beat][m]))
		}
	}
	return b
}

func boolBit(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// decode is the inverse of encodeState.
func (w *world) decode(b string, s *state) {
	r := explorer.Reader(b)
	*s = state{}
	for m := range w.config.members() {
		me := &s.members[m]
		flags := r.Byte()
		me.life, me.finished = life(flags&0xf), flags>>4 == 1
		me.epoch, me.low, me.ahead, me.next, me.sending, me.begun = r.Byte(), r.Byte(), r.Byte(), r.Byte(), r.Byte(), r.Uint16()
	}
	for i := range len(w.config.Jobs) * w.slotCount() {
		s.slots[i].decode(&r, w.config)
	}
	for j := range w.config.Jobs {
		k, c := &s.jobs[j], &s.controllers[j]
		flags := r.Byte()
		k.up, k.over, c.confirmed = flags&1 != 0, flags&2 != 0, flags&4 != 0
		k.epoch, k.members, k.finished, c.epoch, c.first = r.Byte(), r.Byte(), r.Byte(), r.Byte(), r.Byte()
	}
	s.restarts, s.resets, s.evictions = r.Byte(), r.Byte(), r.Byte()
	for i := 0; len(r) > 0; i++ {
		s.network[i] = r.Uint64()
	}
}

func (s *slot) decode(r *explorer.Reader, c *config) {
	s.vid = r.Byte()
	flags := r.Byte()
	s.phase, s.stalled = phase(flags&0xf), flags>>4 == 1
	s.held, s.done, s.owed, s.mask, s.count, s.cacheMask = r.Byte(), r.Byte(), r.Byte(), r.Byte(), r.Byte(), r.Byte()
	for m := range c.members() {
		s.memory[m] = tag(r.Uint16())
		for beat := range c.Beats {
			s.cache[beat][m] = tag(r.Uint16())
		}
	}
}
