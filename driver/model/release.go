// The release of sums on connections, each in a header of its own (ROCE.md, sections 4 and 5).

package model

import (
	"encoding/binary"
	"slices"

	"tributary/driver/wire"
)

// stream is the state of one connection of a running job.
type stream struct {
	next    uint32   // the lowest VID that was not released in its turn
	early   bool     // next + 1 was released before next
	ended   bool     // a slot turned over from next or a later VID: nothing more is released
	answers []uint32 // VIDs below next that are to be released again
	headers []header // by slot
}

// header is the newest header of a rank's packets for a slot.
type header struct {
	kept   bool
	vid    uint32
	bytes  []byte // of the frame, up to the payload
	toCard bool   // it came to the card's MAC address
}

// keep replaces the header of a VID's slot. It copies the header's bytes.
func (s *stream) keep(vid uint32, h header) {
	kept := &s.headers[vid%uint32(len(s.headers))]
	*kept = header{true, vid, append(kept.bytes[:0], h.bytes...), h.toCard}
}

// headerOf returns the header of a VID, if the stream has it.
func (s *stream) headerOf(vid uint32) (h *header, ok bool) {
	h = &s.headers[vid%uint32(len(s.headers))]
	return h, h.kept && h.vid == vid
}

// answer notes that a VID is to be released again.
func (s *stream) answer(vid uint32) {
	if !slices.Contains(s.answers, vid) {
		s.answers = append(s.answers, vid)
	}
}

// turnedOver ends the connections that have not had the VID from which a slot turned over, nor one before it:
// their ranks claimed sums that their receivers never got.
func (j *job) turnedOver(vid uint32) {
	for _, s := range j.streams {
		s.ended = s.ended || !isAfter(s.next, vid)
	}
}

// SendFrame appends the next frame of a registered connection that leaves to dst, without its FCS, and
// returns its Ethernet port. ok is false, and dst unchanged, if there is none. The connections take turns,
// in the order of the jobs and ranks; on each, answers to repeats go first. SendFrame is for after Send,
// when no reply waits.
func (e *Endpoint) SendFrame(dst []byte) (frame []byte, port int, ok bool) {
	c := e.card
	if c.connections == nil {
		return dst, 0, false
	}
	c.Reduce()
	place, ok := c.releasing.take(func(place int) bool {
		j, rank := c.place(place)
		_, _, due := j.due(rank)
		return due
	})
	if !ok {
		return dst, 0, false
	}
	j, rank := c.place(place)
	return c.leave(dst, j, rank)
}

// place returns the connection of a number in the order of the turns.
func (c *Card) place(place int) (j *job, rank int) {
	return &c.jobs[place/c.cfg.Ports], place % c.cfg.Ports
}

// due returns the next VID that is to be released on a rank's connection, and the counter of its rule.
func (j *job) due(rank int) (vid uint32, rule int, ok bool) {
	if !j.running || rank >= len(j.streams) {
		return 0, 0, false
	}
	s := j.streams[rank]
	if s.ended {
		return 0, 0, false
	}
	s.answers = slices.DeleteFunc(s.answers, func(vid uint32) bool { return !j.canLeave(rank, vid) })
	if len(s.answers) > 0 {
		return s.answers[0], countReplays, true
	}
	if j.isSummed(s.next) {
		return s.next, countResults, j.canLeave(rank, s.next)
	}
	early := !s.early && !j.hasContributed(rank, s.next) && j.isSummed(s.next+1)
	return s.next + 1, countReleasedEarly, early && j.canLeave(rank, s.next+1)
}

// isSummed reports whether the sum of a VID is in its slot.
func (j *job) isSummed(vid uint32) bool {
	slot, _ := j.table.of(vid)
	return slot.vid == vid && slot.state == reduced
}

// canLeave reports whether the sum of a VID can leave on a rank's connection: it is there, and so is a
// header of the VID.
func (j *job) canLeave(rank int, vid uint32) bool {
	_, ok := j.streams[rank].headerOf(vid)
	return ok && j.isSummed(vid)
}

// hasContributed reports whether the slot of a VID has had the rank's contribution, or had to.
func (j *job) hasContributed(rank int, vid uint32) bool {
	slot, _ := j.table.of(vid)
	return slot.vid == vid && slot.held>>rank&1 != 0 || isAfter(slot.vid, vid)
}

// released notes the release of a VID by a rule.
func (s *stream) released(vid uint32, rule int) {
	switch rule {
	case countReplays:
		s.answers = slices.Delete(s.answers, 0, 1)
	case countReleasedEarly:
		s.early = true
	default:
		s.next++
		s.early = false
	}
}

// leave appends the frame that is due on a rank's connection.
func (c *Card) leave(dst []byte, j *job, rank int) (frame []byte, port int, ok bool) {
	vid, rule, _ := j.due(rank)
	slot, _ := j.table.of(vid)
	s := j.streams[rank]
	h, _ := s.headerOf(vid)
	to := c.network.table[j.number][c.connections.table[j.number][j.portOf[rank]].receiver()]
	frame = c.appendLeaving(dst, h, slot, to)
	s.released(vid, rule)
	c.counters.add(rule, 1)
	c.Advance(j.setup.chunk / uint64(c.cfg.Lanes))
	return frame, ethernetPort(to), true
}

// appendLeaving appends the frame of a slot's sum in a header, to the receiver of its connection.
func (c *Card) appendLeaving(dst []byte, h *header, sum *slot, to wire.Address) []byte {
	start := len(dst)
	dst = append(append(dst, h.bytes...), sum.result...)
	f := roceFrame(dst[start:])
	if h.toCard {
		putMAC(f[0:], to.MAC)
		putMAC(f[6:], c.network.card.MAC)
	}
	f[atTOS] = f[atTOS]&^wire.FlagECN | byte(wire.ECNOrder[sum.congestion])
	binary.BigEndian.PutUint16(f[atIPChecksum:], 0)
	binary.BigEndian.PutUint16(f[atIPChecksum:], ^uint16(onesSum(f[atIP:atUDP])))
	binary.BigEndian.PutUint16(f[atUDPSum:], 0)
	return binary.LittleEndian.AppendUint32(dst, wire.ICRC(f[atIP:]))
}

// putMAC writes the MAC address in a register to a frame.
func putMAC(b []byte, register uint64) {
	var m [8]byte
	binary.BigEndian.PutUint64(m[:], register)
	copy(b, m[2:])
}

// Neighbour returns the MAC address of a one-armed card's neighbour with an IPv4 address, as in the
// registers. ok is false if there is none.
func (e *Endpoint) Neighbour(ip uint32) (mac uint64, ok bool) { return e.card.neighbour(ip) }
