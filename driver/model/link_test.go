// The byte stream around the card: bytes in, bytes out.

package model

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// newServed returns a link of a card with 2 ports, 2 lanes and chunk 4, and a
// job of both ports with epoch 1, first VID 0.
func newServed(t testing.TB) *Link {
	t.Helper()
	card, err := NewCard(served)
	require.NoError(t, err)
	link, err := NewLink(card)
	require.NoError(t, err)
	for _, w := range [][2]uint64{
		{uint64(wire.RegOwner), 7}, {uint64(wire.RegJobToken), 7}, {uint64(wire.RegJobPorts), 3},
		{uint64(wire.RegJobChunk), 4}, {uint64(wire.RegJobWindow), 2}, {uint64(wire.RegJobCommit), 1 << 32},
	} {
		code, _ := card.Register(true, uint32(w[0]), w[1])
		require.Equal(t, wire.CodeDone, code)
	}
	return link
}

// frames returns the frames of packets.
func frames(packets ...Packet) []byte {
	var b []byte
	for i := range packets {
		b = AppendFrame(b, &packets[i])
	}
	return b
}

func TestLinkSendsAResultOnceWithItsReceivers(t *testing.T) {
	link := newServed(t)
	out := link.Exchange(nil, frames(
		contribution(1, 0, 0, f(1), f(2), f(3), f(4)),
		contribution(1, 1, 0, f(10), f(20), f(30), f(40)),
	))
	assert.Equal(t, frames(Packet{
		Header: Header{
			Version: 2, Kind: wire.KindResult, Format: wire.FP32, Epoch: 1, Length: 4, Mask: 3, Receivers: 3,
		},
		Payload: words(f(11), f(22), f(33), f(44)),
	}), out)
}

func TestLinkAnswersRegistersInOrder(t *testing.T) {
	link := newServed(t)
	access := func(kind wire.Kind, addr uint32, tag uint16, value uint64) Packet {
		return Packet{Header: Header{Version: 2, Kind: kind, VID: addr, Length: tag, Mask: value}}
	}
	reply := func(code wire.Code, addr uint32, tag uint16, value uint64) Packet {
		return Packet{Header: Header{Version: 2, Kind: wire.KindReply, Code: code, VID: addr, Length: tag, Mask: value}}
	}
	out := link.Exchange(nil, frames(
		access(wire.KindRegRead, wire.RegLanes, 0x1111, 0),
		access(wire.KindRegWrite, wire.RegJobChunk, 0x2222, 1<<63|5),
		access(wire.KindRegRead, wire.RegJobChunk, 0x2222, 0),
		access(wire.KindRegRead, 4, 0xffff, 0),
		access(wire.KindRegWrite, wire.RegRelease, 0, 8),
		access(wire.KindRegWrite, wire.RegMagic, 9, 8),
	))
	assert.Equal(t, frames(
		reply(wire.CodeDone, wire.RegLanes, 0x1111, 2),
		reply(wire.CodeDone, wire.RegJobChunk, 0x2222, 1<<63|5),
		reply(wire.CodeDone, wire.RegJobChunk, 0x2222, 1<<63|5),
		reply(wire.CodeBadAddress, 4, 0xffff, 0),
		reply(wire.CodeBusy, wire.RegRelease, 0, 0),
		reply(wire.CodeReadOnly, wire.RegMagic, 9, 0),
	), out)
}

func TestLinkCountsABrokenPayload(t *testing.T) {
	link := newServed(t)
	good := frames(contribution(1, 0, 0, 1, 2, 3, 4))
	broken := bytes.Clone(good)
	broken[25] ^= 0x10
	assert.Empty(t, link.Exchange(nil, broken))
	_, count := link.card.Register(false, counterAddr("payload_crc"), 0)
	assert.EqualValues(t, 1, count)
	assert.Empty(t, link.Exchange(nil, good))
	_, count = link.card.Register(false, counterAddr("stored"), 0)
	assert.EqualValues(t, 1, count, "the repair")
}

func TestLinkRefusesRanksThatNoPortHas(t *testing.T) {
	link := newServed(t)
	for _, rank := range []uint8{2, 64, 255} {
		assert.Empty(t, link.Exchange(nil, frames(contribution(1, rank, 0, 1, 2, 3, 4))))
	}
	_, count := link.card.Register(false, counterAddr("bad_rank"), 0)
	assert.EqualValues(t, 3, count)
}

func TestLinkPiecesDoNotMatter(t *testing.T) {
	var stream []byte
	for vid := range uint32(6) {
		for rank := range uint8(2) {
			stream = append(stream, frames(contribution(1, rank, vid, vid, 2, 3, uint32(rank)))...)
			stream = append(stream, "A\xa5TRB garbage \xa5"...)
		}
	}
	whole := newServed(t).Exchange(nil, stream)
	require.NotEmpty(t, whole)
	link := newServed(t)
	var pieces []byte
	for _, b := range stream {
		pieces = link.Exchange(pieces, []byte{b})
	}
	assert.Equal(t, whole, pieces)
}

func TestLinkDownBetweenHosts(t *testing.T) {
	link := newServed(t)
	half := frames(contribution(1, 0, 0, 1, 2, 3, 4))
	link.Exchange(nil, half[:30])
	link.Down()
	read := Packet{Header: Header{Version: 2, Kind: wire.KindRegRead, VID: wire.RegJobState}}
	reply := Packet{Header: Header{Version: 2, Kind: wire.KindReply, VID: wire.RegJobState, Mask: 1<<16 | 2}}
	assert.Equal(t, frames(reply), link.Exchange(nil, frames(read)))
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	link := newServed(t)
	vid := uint32(0)
	var in, out []byte
	packets := [2]Packet{contribution(1, 0, 0, 1, 2, 3, 4), contribution(1, 1, 0, 1, 2, 3, 4)}
	chunk := func() {
		in = in[:0]
		for rank := range packets {
			packets[rank].VID = vid
			in = AppendFrame(in, &packets[rank])
		}
		out = link.Exchange(out[:0], in)
		if len(out) == 0 {
			t.Fatal("no result")
		}
		vid++
	}
	for range 8 {
		chunk()
	}
	assert.Zero(t, testing.AllocsPerRun(100, chunk))
}

// BenchmarkLink measures payload throughput, bytes to bytes, on one core: 4 workers, frames built
// beforehand.
func BenchmarkLink(b *testing.B) {
	const workers, elements, window = 4, 1008, 8
	card, err := NewCard(Config{Lanes: 16, Ports: workers, Chunk: elements, Window: window, Shell: wire.ShellStream, Link: 32})
	require.NoError(b, err)
	link, err := NewLink(card)
	require.NoError(b, err)
	for _, w := range [][2]uint64{
		{uint64(wire.RegOwner), 7}, {uint64(wire.RegJobToken), 7}, {uint64(wire.RegJobPorts), 1<<workers - 1},
		{uint64(wire.RegJobChunk), elements}, {uint64(wire.RegJobWindow), window}, {uint64(wire.RegJobCommit), 1 << 32},
	} {
		card.Register(true, uint32(w[0]), w[1])
	}
	chunk := make([]uint32, elements)
	for i := range chunk {
		chunk[i] = f(float32(i) / 7)
	}
	const group = 64 // chunks built at a time, outside the timing
	packet := contribution(1, 0, 0, chunk...)
	var in, out []byte
	b.SetBytes(workers * elements * 4)
	b.ReportAllocs()
	for vid := range uint32(b.N) {
		if vid%group == 0 {
			b.StopTimer()
			in = in[:0]
			for i := range uint32(group * workers) {
				packet.Rank, packet.VID = uint8(i%workers), vid+i/workers
				in = AppendFrame(in, &packet)
			}
			b.StartTimer()
		}
		size := len(in) / group
		out = link.Exchange(out[:0], in[int(vid%group)*size:][:size])
		if len(out) == 0 {
			b.Fatal("no result")
		}
	}
}
