// For any input bytes, the model does not panic, keeps its invariants and receives the next good
// frame.

package model

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// padding follows a good frame, so that a header which began in garbage before it is complete: a
// header, its CRC and a sync word are at most that long.
var padding = make([]byte, wire.SyncBytes+wire.MaxHeaderBytes+wire.CRCBytes)

// FuzzDecoder feeds any bytes, in pieces, and then a good frame.
func FuzzDecoder(f *testing.F) {
	for _, frame := range handFrames(f) {
		f.Add(frame.bytes, uint8(7))
		f.Add(frame.bytes[:len(frame.bytes)-1], uint8(0))
	}
	f.Add([]byte("\xa5\xa5T\xa5TRB\xa5TRB\x52"), uint8(1))
	f.Add(bytes.Repeat(wire.Sync[:], 40), uint8(3))
	f.Fuzz(func(t *testing.T, garbage []byte, piece uint8) {
		w := newWireTap(t)
		w.feed(int(piece)+1, garbage...)
		accepted := w.decoder.counters[countFrames]
		before := len(w.packets)

		w.feed(int(piece)+1, decodeHex(t, askFrame)...)
		w.feed(int(piece)+1, padding...)
		if accepted == 0 { // garbage without a header whose CRC is valid
			require.Len(t, w.packets, before+1)
			require.Equal(t, askPacket, w.packets[before])
		}

		total := len(garbage) + wire.SyncBytes + wire.BaseHeaderBytes + wire.CRCBytes + len(padding)
		whole := newWireTap(t)
		whole.feed(total, append(append(bytes.Clone(garbage), decodeHex(t, askFrame)...), padding...)...)
		require.Equal(t, whole.packets, w.packets, "pieces make no difference")
		require.Equal(t, whole.decoder.counters, w.decoder.counters)
		for _, p := range w.packets {
			if p.Kind == wire.KindData {
				require.Len(t, p.Payload, 4*int(p.Length))
				require.LessOrEqual(t, p.Length, uint16(4), "the card's chunk")
			}
		}
	})
}

// FuzzCard makes packets and register accesses of several jobs from any bytes, and checks the
// slots' invariants after each.
func FuzzCard(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 2, 1, 0, 3, 1, 1, 0, 3})
	f.Add([]byte{0, 1, 0xff, 0, 0xff, 0, 2, 0, 0, 0x44, 3, 3})
	f.Add(bytes.Repeat([]byte{0, 0, 1, 4, 0, 1, 1, 0x14, 0, 2, 1, 2}, 30))
	f.Add(bytes.Repeat([]byte{0, 0, 1, 4, 8, 1, 1, 0x14, 16, 2, 1, 2, 5, 0xff, 0, 7, 31, 3, 1, 0}, 30))
	f.Fuzz(func(t *testing.T, script []byte) { play(t, script[:min(len(script), longestScript)]) })
}

// longestScript limits a fuzzed script, in bytes: many short scripts find more than few long ones.
const longestScript = 4 * 200

// playedJobs is the number of jobs on a script's card.
const playedJobs = 4

// player is one of a script's jobs.
type player struct {
	*harness
	sums map[uint32][]byte // sent for a VID of this epoch
}

// play runs a script of four bytes a step.
func play(t *testing.T, script []byte) *harness {
	var players []player
	for number, d := range newHarnesses(t, playedJobs) {
		// The last job gets no slots until another ends.
		d.trySetUp(1, setup{
			ports: 0b1011, chunk: 2, window: []uint64{2, 1, 1, 1}[number], first: 0xfffffffe,
			deadline: []uint64{0, 5000, deadlinePartial | 8000, 0}[number],
		})
		players = append(players, player{d, map[uint32][]byte{}})
	}
	for ; len(script) >= 4; script = script[4:] {
		p := players[script[0]>>3%playedJobs]
		epoch := p.state().epoch
		p.step(script[0], script[1], script[2], script[3], players)
		if p.state().epoch != epoch {
			clear(p.sums)
		}
		for _, p := range players {
			p.invariants()
		}
	}
	return players[0].harness
}

// TestRandomTraffic plays scripts that resemble real jobs. VIDs are near those in the slots; one
// step in 64 is a register access or a change of job.
func TestRandomTraffic(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 11))
	counted := map[string]int{}
	for range 40 {
		jobs := 1 << r.IntN(3)
		var script []byte
		for i := range 2000 {
			what := byte(r.IntN(6) + 8*r.IntN(jobs))
			if r.IntN(64) == 0 {
				what = byte(r.IntN(256))
			}
			if what%8 == 4 && r.IntN(20) > 0 {
				what -= 4 // otherwise all soon finish
			}
			script = append(script, what, byte(r.IntN(256)), byte(i/(40*jobs)+r.IntN(5)), byte(r.IntN(256)))
		}
		d := play(t, script)
		for _, c := range wire.Counters {
			counted[c.Name] += d.count(c.Name)
		}
	}
	for name, least := range map[string]int{"chunks": 100, "replays": 100, "overdue": 100, "partial": 100, "evictions": 10, "evicted": 100} {
		assert.Greater(t, counted[name], least, name)
	}
}

// step performs the action that four bytes encode.
func (d player) step(what, a, b, c byte, all []player) {
	vid := 0xfffffffe + uint32(int8(b))
	switch what % 8 {
	case 0, 1, 2:
		p := d.chunk(a%4, vid, float32(c))
		p.Bad = what >= 224
		p.Epoch += uint16(what >> 7 & what >> 6 & 1)
		d.card.Handle(int(a>>2%4), &p)
		port, _ := d.card.PortOf(p.Job, p.Rank)
		d.card.Handle(port, &p)
	case 3:
		d.ask(a%4, vid)
	case 4:
		d.finish(a%4, vid)
	case 5:
		d.collect(uint64(a), int(c%4), all)
	case 6:
		addresses := []uint32{wire.RegJobPorts, wire.RegJobChunk, wire.RegJobWindow, wire.RegOwner, wire.RegRelease, wire.RegReset, uint32(b) << 3}
		d.card.Register(a&1 == 0, addresses[int(a>>1)%len(addresses)], uint64(b)<<(c%64))
	case 7:
		switch a % 8 {
		case 0:
			d.card.Reduce()
			d.card.Advance(uint64(b) * 16)
		case 1:
			d.card.LinkDown()
			d.write(wire.RegOwner, owner)
		case 2:
			d.abort(d.now + uint16(c%2))
		default:
			d.trySetUp(d.state().epoch+uint16(c%3), setup{
				ports: uint64(b&0xf) | 1, chunk: 2, window: 1 << (a >> 3 % 3), first: 0xfffffffe,
				deadline: []uint64{0, 3000, deadlinePartial | 3000, deadlinePartial | 50}[c>>2%4],
			})
		}
	}
}

// collect takes some of the packets that leave; a VID's sum never changes.
func (d player) collect(ready uint64, packets int, all []player) {
	for range packets {
		var p Packet
		ports, ok := d.card.Next(ready, &p)
		if !ok {
			return
		}
		require.Zero(d, ports&^ready)
		require.NotZero(d, ports)
		if p.Kind == wire.KindStatus {
			continue
		}
		job := all[p.Job].state()
		require.Equal(d, job.epoch, p.Epoch)
		require.Equal(d, p.Mask != job.all, p.Flags&wire.FlagPartial != 0)
		sums := all[p.Job].sums
		first, seen := sums[p.VID]
		if p.Kind == wire.KindReplay {
			require.True(d, seen, "a replay of what was never sent")
		}
		if seen {
			require.Equal(d, first, p.Payload, "VID %d", p.VID)
		}
		sums[p.VID] = p.Payload
	}
}

// state returns the harness's job.
func (d *harness) state() *job { return &d.card.jobs[d.number] }

// holds fails the test unless a condition on a job holds. It runs so often that testify's
// comparisons would dominate the test's time.
func (d *harness) holds(ok bool, what string, args ...any) {
	if !ok {
		d.Helper()
		d.Fatalf("job %d: "+what, append([]any{d.number}, args...)...)
	}
}

// invariants checks a job's invariants between any two packets.
func (d *harness) invariants() {
	j := d.state()
	t := &j.table
	d.holds(j.evicted&^j.all == 0, "evicted %x of %x", j.evicted, j.all)
	d.holds(j.evicted == 0 || j.setup.partial(), "evicted %x of a job without partial sums", j.evicted)
	if !j.running {
		d.holds(j.slots == (span{}), "slots %v without running", j.slots)
		d.holds(len(t.owing) == 0 && len(t.reducing) == 0, "owing %v, reducing %v without running", t.owing, t.reducing)
		return
	}
	d.slotsAreItsOwn()
	d.holds(t.members == j.all&^j.evicted, "members %x of %x, evicted %x", t.members, j.all, j.evicted)
	d.holds(t.members&^j.finished != 0, "members %x have finished, but it runs", t.members)
	for number := range t.count {
		d.slotHolds(int(number), &t.slots[number])
	}
}

// slotHolds checks one slot of a running job.
func (d *harness) slotHolds(number int, s *slot) {
	j := d.state()
	t := &j.table
	d.holds(s.vid%t.count == uint32(number), "VID %d in slot %d of %d", s.vid, number, t.count)
	d.holds((s.held|s.done|s.owed|s.sent)&^j.all == 0, "slot %d has a bit of a rank that is none", number)
	switch s.state {
	case empty:
		d.holds(s.held|s.owed|s.sent == 0 && s.done == j.all && !s.waits, "empty slot %d: %+v", number, s)
	case collecting:
		d.holds(s.held != 0 && s.held != j.all && s.owed|s.sent == 0 && s.waits, "collecting slot %d: %+v", number, s)
		cycles := j.setup.cycles()
		d.holds(cycles == 0 || d.card.cycles-s.since < cycles, "slot %d is overdue since %d", number, s.since)
	case reducing:
		d.holds(s.held != 0 && !s.waits && s.owed|s.sent == 0, "reducing slot %d: %+v", number, s)
		d.holds(slices.Contains(t.reducing, number), "slot %d is not among the reducing %v", number, t.reducing)
	case reduced:
		d.holds(s.held != 0 && (j.setup.partial() || s.held == j.all), "reduced slot %d: %+v", number, s)
		d.holds(occurrences(t.owing, number) == 1 == (s.owed != 0), "slot %d owes %x, in %v", number, s.owed, t.owing)
		d.holds(occurrences(t.owing, number) <= 1, "slot %d owes twice: %v", number, t.owing)
	}
}

// slotsAreItsOwn checks the placement of a running job's slots.
func (d *harness) slotsAreItsOwn() {
	slots := d.state().slots
	d.holds(int(d.state().table.count) == slots.count && slots.first%slots.count == 0 && slots.first+slots.count <= 2*d.card.cfg.Window, "slots %v", slots)
	for number := range d.card.jobs {
		other := d.card.jobs[number].slots
		d.holds(number == int(d.number) || other.first >= slots.first+slots.count || slots.first >= other.first+other.count,
			"slots %v, but job %d has %v", slots, number, other)
	}
}

// occurrences counts x in list.
func occurrences(list []int, x int) int {
	n := 0
	for _, y := range list {
		if x == y {
			n++
		}
	}
	return n
}

// FuzzLink feeds any bytes to a whole card, which must still reply afterwards.
func FuzzLink(f *testing.F) {
	for _, frame := range handFrames(f) {
		f.Add(frame.bytes)
	}
	f.Add(frames(contribution(1, 0, 0, 1, 2, 3, 4), contribution(1, 1, 0, 1, 2, 3, 4)))
	f.Add(append(wire.Sync[:], make([]byte, 20)...))
	f.Fuzz(func(t *testing.T, garbage []byte) {
		link := newServed(t)
		link.Exchange(nil, garbage)
		link.Down()
		read := Packet{Header: Header{Version: 2, Kind: wire.KindRegRead, VID: wire.RegMagic}}
		reply := Packet{Header: Header{Version: 2, Kind: wire.KindReply, VID: wire.RegMagic, Mask: wire.Magic}}
		require.Equal(t, frames(reply), link.Exchange(nil, frames(read)))
	})
}
