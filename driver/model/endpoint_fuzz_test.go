// For any datagrams from any addresses, a card on a network does not panic, sends no more than it may,
// and takes no more memory.

package model

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// crowd are the senders in fuzzed scripts: the owner, members, and strangers that differ in one part.
var crowd = []wire.Address{
	hostA, hostB, hostC, hostD, {Station: hostB.Station, MAC: hostB.MAC ^ 1<<48}, {Station: hostB.Station ^ 1, MAC: hostB.MAC}, {},
	{Station: ^uint64(0), MAC: ^uint64(0)},
}

// besiege runs a script on a card with two jobs. A step begins with a byte that chooses the sender
// (bits 2:0), a missing CRC (bit 3), the time that passes (bits 7:4) and the mark (bits 7:6). The next
// byte is the size of the datagram that follows. After each step it checks what the card sends.
func besiege(t *testing.T, script []byte) *site {
	s := newSiteWithJob(t, 2)
	s.members(hostC, hostD)
	require.Equal(t, wire.CodeDone, s.setUp(1, 1, setup{ports: 0b11, chunk: 2, window: 2, deadline: deadlinePartial | 5000}))
	for len(script) >= 2 {
		how, n := script[0], min(int(script[1]), len(script)-2)
		datagram := script[2 : 2+n]
		script = script[2+n:]
		if how&8 == 0 {
			datagram = sealed(datagram)
		}
		s.e.Advance(uint64(how>>4) * uint64(how>>4) * 64)
		from := crowd[how%8]
		given := bytes.Clone(datagram)
		s.e.Receive(datagram, from, wire.ECN(how>>6))
		require.Equal(t, given, datagram, "the datagram is the caller's")
		s.answers(datagram, from)
	}
	return s
}

// answers takes what a card sends, of which one datagram alone may be the reply to an access.
func (s *site) answers(access []byte, from wire.Address) {
	replies := 0
	for sent := 0; ; sent++ {
		require.Less(s, sent, 1000, "it sends for ever")
		datagram, to, _, ok := s.e.Send(nil)
		if !ok {
			break
		}
		require.Equal(s, crc32c(datagram[:len(datagram)-4]), binary.LittleEndian.Uint32(datagram[len(datagram)-4:]))
		h := ParseHeader(datagram[:14])
		if h.Kind == wire.KindReply {
			replies++
			require.Equal(s, from, to)
			require.LessOrEqual(s, len(datagram), len(access)+8)
			continue
		}
		require.True(s, isWhole(to), "to nobody: %x", datagram)
		require.LessOrEqual(s, len(datagram), 30+4*4+4)
	}
	require.LessOrEqual(s, replies, 1)
}

// scriptOf returns the step of a packet.
func scriptOf(how byte, p Packet) []byte {
	datagram := AppendDatagram(nil, &p)
	datagram = datagram[:len(datagram)-4]
	return append([]byte{how, byte(len(datagram))}, datagram...)
}

// accessOf returns a register access as a packet.
func accessOf(addr uint32, write bool, value uint64) Packet {
	h := Header{Version: wire.Version, Kind: wire.KindRegRead, VID: addr}
	if write {
		h.Kind, h.Mask = wire.KindRegWrite, value
	}
	return Packet{Header: h}
}

// FuzzEndpoint gives any datagrams to a card. Its seeds are a job's traffic, its set-up, and damage.
func FuzzEndpoint(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{8, 18, 0x12, 0, 0, 1})
	f.Add(bytes.Join([][]byte{
		scriptOf(1, element(0, 10, 1)), scriptOf(2, element(1, 10, 2)), scriptOf(3, element(1, 10, 2)),
		scriptOf(2, packetOf(wire.KindAsk, 1, 10)), scriptOf(1, packetOf(wire.KindFinish, 0, 11)), scriptOf(2, packetOf(wire.KindFinish, 1, 11)),
	}, nil))
	f.Add(bytes.Join([][]byte{
		scriptOf(0, accessOf(wire.RegRelease, true, owner)), scriptOf(5, accessOf(wire.RegOwner, true, 9)), scriptOf(5, accessOf(wire.RegJobToken, true, 9)),
		scriptOf(0xf5, accessOf(wire.RegLease, true, 3)), scriptOf(0xf7, accessOf(wire.RegSource, false, 0)), scriptOf(6, accessOf(0x40030, false, 0)),
	}, nil))
	f.Add(bytes.Join([][]byte{scriptOf(0xf0, accessOf(wire.RegJobCommit, true, 1<<48|2<<32)), scriptOf(0xf9, element(0, 10, 1))}, nil))
	f.Fuzz(func(t *testing.T, script []byte) { besiege(t, script) })
}

// TestSiege plays scripts of packets that are nearly right, from all senders.
func TestSiege(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 1))
	counted := map[string]uint32{}
	for range 20 {
		var script []byte
		for i := range 1000 {
			script = append(script, nearlyRight(r, uint32(i/40))...)
		}
		s := besiege(t, script)
		for _, name := range dropCounters {
			counted[name] += s.e.card.counters[counterIndex(name)]
		}
		counted["results"] += s.e.card.counters[countResults]
		counted["lease"] += s.e.card.counters[countLease]
	}
	for _, name := range append(dropCounters, "results") {
		assert.Greater(t, counted[name], uint32(10), name)
	}
}

// nearlyRight returns a random step: mostly a packet that a member may send.
func nearlyRight(r *rand.Rand, progress uint32) []byte {
	job, rank := r.IntN(2), r.IntN(2)
	p := element(uint8(rank), 10+progress+uint32(r.IntN(3)), 1)
	if p.Job = uint8(job); job == 1 {
		p.VID -= 10
		p.Length, p.Payload = 2, words(1, 2)
	}
	sender := 1 + job + rank // b and c, c and d
	switch r.IntN(16) {
	case 0:
		p.Kind, p.Payload = wire.Kind(r.IntN(16)), nil
	case 1:
		p.Version = uint8(r.IntN(16))
	case 2:
		p = accessOf([]uint32{wire.RegLease, wire.RegOwner, wire.RegJobPorts, wire.RegCycles, 0x810}[r.IntN(5)], r.IntN(2) == 0, r.Uint64()>>r.IntN(64))
	case 3:
		sender = r.IntN(8)
	}
	step := scriptOf(byte(sender|r.IntN(16)<<4), p)
	if r.IntN(16) == 0 {
		cut := r.IntN(len(step) - 2)
		step = append(step[:1:1], append([]byte{byte(cut)}, step[2:2+cut]...)...)
	}
	if r.IntN(16) == 0 {
		step[0] |= 8
	}
	return step
}

// TestAFloodTakesNoMemory: while nothing leaves, datagrams of all kinds from everybody allocate
// nothing, once the slots have their memory; and what waits is bounded.
func TestAFloodTakesNoMemory(t *testing.T) {
	s := newSiteWithJob(t, 2)
	r := rand.New(rand.NewPCG(19, 2))
	var flood, datagrams [][]byte
	for range 500 {
		step := nearlyRight(r, 0)
		flood = append(flood, step)
		datagrams = append(datagrams, sealed(step[2:]))
	}
	all := func() {
		for i, datagram := range datagrams {
			s.e.Receive(datagram, crowd[flood[i][0]%8], wire.ECT0)
		}
	}
	all()
	assert.Zero(t, testing.AllocsPerRun(20, all))
	waiting := 0
	for ok := true; ok; waiting++ {
		_, _, _, ok = s.e.Send(nil)
	}
	assert.LessOrEqual(t, waiting, 1+16+4+2*2*4, "16 replies, a status for each port, results for each slot and rank")
}
