// Whatever bytes come in, the model does not panic, keeps its invariants and
// receives the next good frame.

package model

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// padding follows a good frame, so that a header that began in garbage before
// it is whole: a header, its CRC and a sync word are at most so many bytes.
var padding = make([]byte, wire.SyncBytes+wire.MaxHeaderBytes+wire.CRCBytes)

// FuzzDecoder feeds any bytes, in pieces, and then a good frame.
func FuzzDecoder(f *testing.F) {
	for _, frame := range handFrames(f) {
		f.Add(frame.bytes, uint8(7))
		f.Add(frame.bytes[:len(frame.bytes)-1], uint8(0))
	}
	f.Add([]byte("\xa5\xa5T\xa5TRB\xa5TRB\x51"), uint8(1))
	f.Add(bytes.Repeat(wire.Sync[:], 40), uint8(3))
	f.Fuzz(func(t *testing.T, garbage []byte, piece uint8) {
		w := newWireTap(t)
		w.feed(int(piece)+1, garbage...)
		accepted := w.decoder.counters[countFrames]
		before := len(w.packets)

		w.feed(int(piece)+1, decodeHex(t, askFrame)...)
		w.feed(int(piece)+1, padding...)
		if accepted == 0 { // garbage that holds no header whose CRC is right
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

// FuzzCard makes packets and register accesses out of any bytes and checks
// after each what must hold of the slots.
func FuzzCard(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 2, 1, 0, 3, 1, 1, 0, 3})
	f.Add([]byte{0, 1, 0xff, 0, 0xff, 0, 2, 0, 0, 0x44, 3, 3})
	f.Add(bytes.Repeat([]byte{0, 0, 1, 4, 0, 1, 1, 0x14, 0, 2, 1, 2}, 30))
	f.Fuzz(func(t *testing.T, script []byte) { play(t, script) })
}

// play runs a script of four bytes a step.
func play(t *testing.T, script []byte) *desk {
	d := newDesk(t)
	d.setUp(1, setup{ports: 0b1011, chunk: 2, window: 2, first: 0xfffffffe})
	sums := map[uint32][]byte{} // what was sent for a VID of this epoch
	for ; len(script) >= 4; script = script[4:] {
		epoch := d.card.job.epoch
		d.step(script[0], script[1], script[2], script[3], sums)
		if d.card.job.epoch != epoch {
			clear(sums)
		}
		d.invariants()
	}
	return d
}

// TestRandomTraffic plays scripts near to what a job does: VIDs about those
// that the slots hold, one in 64 steps a register access or a change of job.
func TestRandomTraffic(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 11))
	chunks, replays := 0, 0
	for range 40 {
		var script []byte
		for i := range 2000 {
			what := byte(r.IntN(6))
			if r.IntN(64) == 0 {
				what = byte(r.IntN(256))
			}
			if what == 4 && r.IntN(20) > 0 {
				what = 0 // else all have finished soon
			}
			script = append(script, what, byte(r.IntN(256)), byte(i/40+r.IntN(5)), byte(r.IntN(256)))
		}
		d := play(t, script)
		chunks += d.count("chunks")
		replays += d.count("replays")
	}
	assert.Greater(t, chunks, 100)
	assert.Greater(t, replays, 100)
}

// step does one thing that four bytes say.
func (d *desk) step(what, a, b, c byte, sums map[uint32][]byte) {
	vid := 0xfffffffe + uint32(int8(b))
	switch what % 8 {
	case 0, 1, 2:
		p := d.chunk(a%4, vid, float32(c))
		p.Bad = what >= 240
		p.Epoch += uint16(what >> 7 & what >> 6 & 1)
		d.card.Handle(int(a>>2%4), &p)
		port, _ := d.card.PortOf(p.Rank)
		d.card.Handle(port, &p)
	case 3:
		d.ask(a%4, vid)
	case 4:
		d.finish(a%4, vid)
	case 5:
		d.collect(uint64(a), int(c%4), sums)
	case 6:
		addresses := []uint32{wire.RegJobPorts, wire.RegJobChunk, wire.RegJobWindow, wire.RegOwner, wire.RegRelease, wire.RegReset, uint32(b) << 3}
		d.card.Register(a&1 == 0, addresses[int(a>>1)%len(addresses)], uint64(b)<<(c%64))
	case 7:
		switch a % 4 {
		case 0:
			d.card.Reduce()
		case 1:
			d.card.LinkDown()
			d.write(wire.RegOwner, owner)
		default:
			d.stage(setup{ports: uint64(b&0xf) | 1, chunk: 2, window: 2})
			if d.commit(d.card.job.epoch+uint16(c%3), 0xfffffffe) == wire.CodeDone {
				d.now = d.card.job.epoch
			}
		}
	}
}

// collect takes some of what leaves; a VID's sum never changes.
func (d *desk) collect(ready uint64, packets int, sums map[uint32][]byte) {
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

// invariants checks what holds between any two packets.
func (d *desk) invariants() {
	c, t := d.card, &d.card.table
	if !c.job.running {
		require.Empty(d, t.owing)
		require.Empty(d, t.reducing)
		return
	}
	for number := range t.count {
		s := &t.slots[number]
		require.Equal(d, number, s.vid%t.count, "a VID lives in its slot")
		require.Zero(d, (s.held|s.done|s.owed|s.sent)&^t.all, "no bit of a rank that is none")
		switch s.state {
		case empty:
			require.Zero(d, s.held|s.owed|s.sent)
			require.Equal(d, t.all, s.done)
		case collecting:
			require.NotZero(d, s.held)
			require.NotEqual(d, t.all, s.held)
			require.Zero(d, s.owed|s.sent)
		case reducing:
			require.Equal(d, t.all, s.held)
			require.Contains(d, t.reducing, int(number))
			require.Zero(d, s.owed|s.sent)
		case reduced:
			require.Equal(d, t.all, s.held)
			listed := 0
			if s.owed != 0 {
				listed = 1
			}
			require.Equal(d, listed, occurrences(t.owing, int(number)), "listed once when it owes")
		}
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

// FuzzLink feeds any bytes to a whole card; whatever comes, it then answers.
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
		read := Packet{Header: Header{Version: 1, Kind: wire.KindRegRead, VID: wire.RegMagic}}
		reply := Packet{Header: Header{Version: 1, Kind: wire.KindReply, VID: wire.RegMagic, Mask: wire.Magic}}
		require.Equal(t, frames(reply), link.Exchange(nil, frames(read)))
	})
}
