// Every rule of TREES.md, sections 3 and 4, at packet level.

package model

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// upPort is the number of the up port of a harness's card.
const upPort = 4

// nested is a tree job of two members that stand for the workers 0, 1 and 4, and for 2 and 3. Worker 5
// is elsewhere in the tree. The card has rank 7 at its parent.
var nested = setup{
	ports: 0b1010, chunk: 1, window: 2,
	upward: upward{parent: wire.Upward(7, 0), repeat: 5000, tree: 0x3f, ranks: [maxPorts]uint64{1: 0x13, 3: 0x0c}},
}

// newChild returns the harness of a card with an up port and one job.
func newChild(t *testing.T) *harness {
	t.Helper()
	return newChildren(t, 1)[0]
}

// newChildren returns the harnesses of a card with an up port, one per job.
func newChildren(t *testing.T, jobs int) []*harness {
	t.Helper()
	card, err := NewCard(Config{Lanes: 1, Ports: upPort, Chunk: 4, Window: 4, Jobs: jobs, Parent: true})
	require.NoError(t, err)
	var harnesses []*harness
	for number := range jobs {
		harnesses = append(harnesses, &harness{T: t, card: card, number: uint8(number)})
	}
	return harnesses
}

// newTreeJob returns the harness of a card with an up port that has set nested up.
func newTreeJob(t *testing.T) *harness {
	t.Helper()
	d := newChild(t)
	d.setUp(9, nested)
	return d
}

// stageUpward writes the registers of trees for a commit.
func (d *harness) stageUpward(u upward) {
	d.Helper()
	for addr, value := range map[uint32]uint64{wire.RegJobParent: u.parent, wire.RegJobRepeat: u.repeat, wire.RegTreeRanks: u.tree} {
		require.Equal(d, wire.CodeDone, d.write(addr, value))
	}
	for port := range upPort {
		require.Equal(d, wire.CodeDone, d.write(wire.RanksAddr(port), u.ranks[port]))
	}
}

// upCount reads a counter of the up port.
func (d *harness) upCount(name string) int {
	return int(d.read(wire.UpCounterAddr(indexIn(wire.UpCounters, name))))
}

// result returns the packet with which the parent brings a chunk's final sum.
func (d *harness) result(vid uint32, x float32) Packet {
	p := d.packet(wire.KindResult, 0, vid)
	p.Format, p.Length, p.Mask = wire.FP32, uint16(d.job.chunk), d.job.upward.tree
	p.Flags = uint8(wire.ECT1)
	for range d.job.chunk {
		p.Payload = append(p.Payload, words(f(x))...)
	}
	return p
}

// status returns a status of the parent.
func (d *harness) status(code wire.Code, vid uint32, mask uint64) Packet {
	p := d.packet(wire.KindStatus, d.job.upward.rank(), vid)
	p.Code, p.Mask = code, mask
	return p
}

// down passes a packet to the up port, as in does to the others.
func (d *harness) down(p Packet) {
	d.card.Advance(1024)
	d.card.Handle(upPort, &p)
}

// final brings a final sum.
func (d *harness) final(vid uint32, x float32) { d.down(d.result(vid, x)) }

// contribute sends data of both members: their sum is 3 times x.
func (d *harness) contribute(vid uint32, x float32) {
	d.data(0, vid, x)
	d.data(1, vid, 2*x)
}

// rises checks the packets that leave for the parent.
func (d *harness) rises(lines ...string) {
	d.Helper()
	got := []string{}
	var p Packet
	for d.card.NextUp(&p) {
		require.EqualValues(d, wire.Version, p.Version)
		require.Equal(d, d.number, p.Job)
		require.Equal(d, d.now, p.Epoch)
		l := fmt.Sprintf("%v v%d of rank %d", p.Kind, p.VID, p.Rank)
		if p.Kind == wire.KindData {
			l += fmt.Sprint(" = ", math.Float32frombits(elements(p.Payload)[0]))
		}
		got = append(got, l)
	}
	if lines == nil {
		lines = []string{}
	}
	assert.Equal(d, lines, got)
}

// waitUntil advances the clock, so that a packet of one beat commits at that time.
func (d *harness) waitUntil(cycle uint64) {
	d.Helper()
	require.Less(d, d.card.cycles, cycle)
	d.card.Advance(cycle - d.card.cycles - 1)
}

// at passes a packet to the port of its rank at a time.
func (d *harness) at(cycle uint64, p Packet) {
	d.Helper()
	d.waitUntil(cycle)
	port, _ := d.card.PortOf(p.Job, p.Rank)
	d.card.Handle(port, &p)
}

func TestAnOwnSumLeavesForTheParentAlone(t *testing.T) {
	d := newTreeJob(t)
	d.data(0, 0, 1)
	d.rises()
	d.data(1, 0, 2)
	d.sends()
	d.rises("data v0 of rank 7 = 3")
	d.rises()
	d.sends()
	assert.Equal(t, 1, d.upCount("up_sent"))
	assert.Equal(t, 0, d.upCount("up_repeats"))
}

func TestAPacketToTheParent(t *testing.T) {
	d := newTreeJob(t)
	p := d.chunk(0, 1, float32(math.Inf(1)))
	p.Flags = uint8(wire.CE)
	d.in(p)
	d.data(1, 1, 2)
	out := Packet{Payload: words(5, 6, 7), Bad: true, Header: Header{Mask: 5, Receivers: 5, Code: 5}}
	require.True(t, d.card.NextUp(&out))
	assert.Equal(t, Packet{
		Header: Header{
			Version: wire.Version, Kind: wire.KindData, Flags: 0x0b, Job: 0, Format: wire.FP32, Epoch: 9, Rank: 7, VID: 1, Length: 1,
		},
		Payload: words(inf),
	}, out, "CE, with an infinity")
	before := out
	require.False(t, d.card.NextUp(&out))
	assert.Equal(t, before, out, "unchanged")
}

func TestNoOwnSumOvertakesTheLastOneOfItsSlotsNeighbour(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(0, 1)
	d.contribute(2, 10) // members that do not keep the window: chunk 0 is W earlier
	d.contribute(1, 100)
	d.rises("data v0 of rank 7 = 3", "data v1 of rank 7 = 300")
	d.final(0, 4)
	d.card.Handle(upPort, &Packet{}) // anything
	d.sends("result v0 to 3 = 4")
	d.rises("data v2 of rank 7 = 30")
}

// TestAnOwnSumWaitsForAChunkThatIsNotThere: evidence of a chunk never leaves before its final sum is
// here, whatever members send.
func TestAnOwnSumWaitsForAChunkThatIsNotThere(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(2, 10) // 0 never arrived
	d.rises()
	d.data(0, 0, 1) // 0 collects
	d.rises()
	d.data(1, 0, 2)
	d.rises("data v0 of rank 7 = 3")
	d.final(0, 4)
	d.sends("result v0 to 3 = 4")
	d.rises("data v2 of rank 7 = 30")
	d.card.Advance(5000)
	d.final(2, 5)
	d.sends("result v2 to 3 = 5")
	d.data(0, 4, 1) // rank 1 may lack 0
	d.data(1, 4, 2)
	d.rises()
	d.data(0, 4, 1)
	d.rises("data v4 of rank 7 = 3")
}

// TestAnOwnSumPassesALaterChunk: the slot of v - W may have turned over.
func TestAnOwnSumPassesALaterChunk(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(0, 1)
	d.rises("data v0 of rank 7 = 3")
	d.final(0, 4)
	d.sends("result v0 to 3 = 4")
	d.contribute(2, 10)
	d.rises("data v2 of rank 7 = 30")
	d.data(0, 4, 1) // the slot of 0 holds 4, and 2 is repeated
	d.card.Advance(5000)
	d.ask(0, 2)
	d.rises("data v2 of rank 7 = 30")
}

func TestAClosingSlotHoldsTheNextWindowBack(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(0, 1)
	d.contribute(2, 10)
	d.card.Reduce()
	d.final(0, 4)
	_, rises := d.card.jobs[0].table.rises()
	assert.False(t, rises, "before the final sum is through the lanes")
	d.card.Reduce()
	d.rises("data v2 of rank 7 = 30")
}

func TestRepeatsOweTheOwnSumAgain(t *testing.T) {
	for what, repeat := range map[string]func(d *harness) Packet{
		"data": func(d *harness) Packet { return d.chunk(1, 1, 9) },
		"ask":  func(d *harness) Packet { return d.packet(wire.KindAsk, 1, 1) },
	} {
		t.Run(what, func(t *testing.T) {
			d := newTreeJob(t)
			d.contribute(1, 1)
			d.card.Reduce()
			d.at(d.card.cycles+10, repeat(d))
			assert.Equal(t, 0, d.upCount("up_repeats"), "it is owed already")
			sent := d.card.cycles
			d.rises("data v1 of rank 7 = 3")
			d.at(sent+4999, repeat(d))
			d.rises()
			d.at(sent+5000, repeat(d))
			d.at(sent+5010, repeat(d))
			assert.Equal(t, 1, d.upCount("up_repeats"), "owed once")
			sent = d.card.cycles
			d.rises("data v1 of rank 7 = 3")
			d.at(sent+4999, repeat(d))
			d.rises()
			d.at(sent+9000, repeat(d))
			d.rises("data v1 of rank 7 = 3")
			assert.Equal(t, 2, d.upCount("up_repeats"))
			assert.Equal(t, 3, d.upCount("up_sent"))
		})
	}
}

func TestAnswersToRepeats(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(0, 1)
	d.rises("data v0 of rank 7 = 3")
	d.data(0, 0, 9)
	d.sends("status duplicate v0 to rank 0, missing 0")
	assert.Equal(t, 1, d.count("duplicate"))
	d.ask(1, 0)
	d.sends("status wait v0 to rank 1, missing 0")
	assert.Equal(t, 1, d.count("asks"))
}

func TestNothingElseRepeats(t *testing.T) {
	d := newTreeJob(t)
	d.data(0, 0, 1)
	d.data(0, 0, 1)
	d.ask(0, 0)
	d.rises()
	d.data(1, 0, 2)
	d.rises("data v0 of rank 7 = 3")
	d.card.Advance(10_000)
	d.rises()
	d.finish(0, 0)
	d.data(0, 1, 5)                       // of another slot
	d.ask(0, 4)                           // of the slot's next chunk
	d.in(d.chunk(0, 4, 1))                // likewise
	d.down(d.status(wire.CodeSend, 0, 0)) // of the parent
	bad := d.chunk(0, 0, 1)
	bad.Bad = true
	d.in(bad)
	d.rises()
	assert.Equal(t, 0, d.upCount("up_repeats"))
	d.final(0, 8)
	d.card.Reduce()
	d.data(0, 0, 1)
	d.ask(0, 0)
	d.rises()
	assert.Equal(t, 0, d.upCount("up_repeats"))
}

func TestAFinalSumReachesAllMembers(t *testing.T) {
	for _, kind := range []wire.Kind{wire.KindResult, wire.KindReplay} {
		d := newTreeJob(t)
		d.contribute(0, 1)
		d.rises("data v0 of rank 7 = 3")
		p := d.result(0, 41)
		p.Kind = kind
		d.down(p)
		var out Packet
		ports, ok := d.card.Next(AllPorts, &out)
		require.True(t, ok)
		assert.EqualValues(t, 0b1010, ports)
		assert.Equal(t, Header{
			Version: wire.Version, Kind: wire.KindResult, Format: wire.FP32, Epoch: 9, Length: 1, Mask: 0x3f, Receivers: 3,
		}, out.Header)
		assert.Equal(t, words(f(41)), out.Payload)
		assert.Equal(t, 1, d.upCount("up_taken"))
		assert.Equal(t, 0, d.upCount("up_dropped"))
		d.ask(0, 0)
		d.sends("replay v0 to 1 = 41")
	}
}

// TestFinalSumsThatAreDropped: each differs from a good one in one point.
func TestFinalSumsThatAreDropped(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(0, 1)
	d.rises("data v0 of rank 7 = 3")
	d.data(0, 1, 5) // 1 collects; 2 was never there
	for what, change := range map[string]func(p *Packet){
		"version":      func(p *Packet) { p.Version++ },
		"data":         func(p *Packet) { p.Kind = wire.KindData },
		"reply":        func(p *Packet) { p.Kind = wire.KindReply },
		"job":          func(p *Packet) { p.Job = 1 },
		"epoch":        func(p *Packet) { p.Epoch-- },
		"format":       func(p *Packet) { p.Format = wire.Int32 },
		"length":       func(p *Packet) { p.Length, p.Payload = 2, words(f(1), f(1)) },
		"size":         func(p *Packet) { p.Payload = words(f(1), f(1)) },
		"a rank more":  func(p *Packet) { p.Mask = 0x7f },
		"a rank less":  func(p *Packet) { p.Mask = 0x1f },
		"collecting":   func(p *Packet) { p.VID = 1 },
		"empty":        func(p *Packet) { p.VID = math.MaxUint32 },
		"next":         func(p *Packet) { p.VID = 4 },
		"payload, CRC": func(p *Packet) { p.Bad = true },
	} {
		dropped := d.upCount("up_dropped")
		p := d.result(0, 99)
		change(&p)
		d.down(p)
		d.sends()
		assert.Equal(t, dropped+1, d.upCount("up_dropped"), what)
		d.card.Advance(5000)
		d.ask(0, 0)
		d.sends("status wait v0 to rank 0, missing 0")
		d.rises("data v0 of rank 7 = 3") // the own sum is as it was
	}
	assert.Equal(t, 0, d.upCount("up_taken"))
	d.final(0, 8)
	d.sends("result v0 to 3 = 8")
}

func TestTheFirstCopyOfAFinalSumDecides(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(0, 1)
	d.rises("data v0 of rank 7 = 3")
	first, second := d.result(0, 8), d.result(0, 99)
	second.Flags = uint8(wire.CE) | wire.FlagNonfinite
	d.down(first)
	d.down(second) // before the first is in the cache
	d.card.Reduce()
	d.down(second)
	var out Packet
	_, ok := d.card.Next(AllPorts, &out)
	require.True(t, ok)
	assert.Equal(t, words(f(8)), out.Payload)
	assert.Equal(t, uint8(wire.NotECT), out.Flags, "chunk's data has not-ECT")
	assert.Equal(t, 1, d.upCount("up_taken"))
	assert.Equal(t, 2, d.upCount("up_dropped"))
	d.sends()
}

func TestAFinalSumEndsTheDebtToTheParent(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(0, 1)
	d.rises("data v0 of rank 7 = 3")
	d.card.Advance(5000)
	d.ask(0, 0)
	d.final(0, 8)
	d.rises()
	d.sends("status wait v0 to rank 0, missing 0", "result v0 to 3 = 8")
}

func TestAFinalSumKeepsItsBits(t *testing.T) {
	for _, c := range []struct{ sent, want uint32 }{
		{0x80000000, 0x80000000}, {0, 0}, {1, 1}, {0x80000001, 0x80000001}, {inf, inf}, {0xff800000, 0xff800000}, {maximum, maximum},
		{0x7fc00000, 0x7fc00000}, {0xffc00001, 0x7fc00000}, // no card sends that NaN
	} {
		d := newTreeJob(t)
		d.contribute(0, 1)
		d.card.Reduce()
		p := d.result(0, 0)
		p.Payload = words(c.sent)
		d.down(p)
		var out Packet
		_, ok := d.card.Next(AllPorts, &out)
		require.True(t, ok)
		assert.Equal(t, words(c.want), out.Payload)
		assert.Zero(t, d.count("overflow"))
		assert.Zero(t, d.count("nonfinite_in"))
	}
}

func TestMarksOfAFinalSum(t *testing.T) {
	for _, c := range []struct{ own, final, want uint8 }{
		{uint8(wire.ECT1), uint8(wire.ECT0), uint8(wire.ECT0)},
		{uint8(wire.CE), uint8(wire.ECT0), uint8(wire.CE)},
		{uint8(wire.NotECT), uint8(wire.CE), uint8(wire.CE)},
		{uint8(wire.ECT0), uint8(wire.ECT0) | wire.FlagNonfinite, uint8(wire.ECT0) | wire.FlagNonfinite},
	} {
		d := newTreeJob(t)
		for rank := range uint8(2) {
			p := d.chunk(rank, 0, 1)
			p.Flags = c.own
			d.in(p)
		}
		p := d.result(0, 8)
		p.Flags = c.final
		d.card.Reduce()
		d.down(p)
		var out Packet
		_, ok := d.card.Next(AllPorts, &out)
		require.True(t, ok)
		assert.Equal(t, c.want, out.Flags)
	}
	d := newTreeJob(t)
	d.data(0, 0, float32(math.Inf(1)))
	d.data(1, 0, 1)
	d.card.Reduce()
	d.final(0, 8)
	var out Packet
	_, ok := d.card.Next(AllPorts, &out)
	require.True(t, ok)
	assert.Equal(t, uint8(wire.FlagNonfinite), out.Flags&wire.FlagNonfinite, "of the own sum")
}

// TestBothSumsCount: the own sum and the final one pass through the lanes and into the cache.
func TestBothSumsCount(t *testing.T) {
	d := newTreeJob(t)
	d.data(0, 0, math.MaxFloat32)
	d.data(1, 0, math.MaxFloat32) // the own sum overflows
	d.card.Reduce()
	assert.Equal(t, counted{out: 1, overflow: 1, firstOut: 1 << 63, firstOverflow: 1 << 63}, d.counted())
	d.final(0, float32(math.Inf(1)))
	d.card.Reduce()
	assert.Equal(t, counted{out: 2, overflow: 1, firstOut: 1 << 63, firstOverflow: 1 << 63}, d.counted())
	assert.Equal(t, 2, d.count("chunks"))
	assert.Equal(t, 2, d.count("beats"))
	assert.Equal(t, 0, d.count("partial"))
}

func TestWaitingAndClosingSlotsAreClosed(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(0, 1)
	d.card.Reduce()
	d.data(0, 4, 1)
	d.sends("status not_ready v4 to rank 0, missing 0")
	d.final(0, 8)
	d.data(0, 4, 1)
	d.data(1, 0, 1)
	assert.Equal(t, 2, d.count("not_ready"))
	assert.Equal(t, 1, d.count("duplicate"))
	d.ask(1, 0)
	d.sends("status not_ready v4 to rank 0, missing 0", "status duplicate v0 to rank 1, missing 0", "result v0 to 3 = 8")
	d.rises()
}

func TestAClosingSlotAnswersNoAsk(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(0, 1)
	d.card.Reduce()
	d.final(0, 8)
	d.ask(1, 0)
	d.sends("result v0 to 3 = 8")
}

// TestEvidenceNeedsTheFinalSum: data of v proves that its sender has v - W, if there is something to
// have.
func TestEvidenceNeedsTheFinalSum(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(0, 1)
	d.rises("data v0 of rank 7 = 3")
	d.data(0, 2, 1) // too early to prove anything
	d.final(0, 8)
	d.sends("result v0 to 3 = 8")
	d.data(1, 2, 1)
	d.data(1, 4, 1)
	d.sends("status not_ready v4 to rank 1, missing 0")
	d.data(0, 2, 1) // again, which proves it
	d.sends("status duplicate v2 to rank 0, missing 0")
	d.data(1, 4, 1)
	d.sends()
	assert.Equal(t, 1, d.count("duplicate"))
	assert.Equal(t, 5, d.count("stored"))
}

func TestMasksNameGlobalRanks(t *testing.T) {
	d := newTreeJob(t)
	d.data(0, 0, 1)
	d.ask(0, 0)
	d.sends("status wait v0 to rank 0, missing c")
	d.ask(1, 0)
	d.sends("status send v0 to rank 1, missing c")
	d.ask(1, 1)
	d.sends("status send v1 to rank 1, missing 1f")

	ordinary := nested
	ordinary.upward.parent, ordinary.deadline = 0, 3000
	d.setUp(10, ordinary)
	d.data(1, 0, 1)
	d.ask(1, 0)
	d.sends("status wait v0 to rank 1, missing 13")
	d.card.Advance(3000)
	d.sends("status overdue v0 to rank 1, missing 13")
	d.data(0, 0, 1)
	var out Packet
	_, ok := d.card.Next(AllPorts, &out)
	require.True(t, ok)
	assert.EqualValues(t, 0x1f, out.Mask)
	assert.EqualValues(t, 3, out.Receivers)
	assert.Zero(t, out.Flags&wire.FlagPartial)
	d.rises()
	d.finish(0, 1)
	assert.EqualValues(t, 1, d.read(wire.RegJobFinished), "a local rank")
}

func TestMasksOfPartialSums(t *testing.T) {
	d := newChild(t)
	s := setup{ports: 0b0011, chunk: 1, window: 1, deadline: 1<<32 | 2000, upward: upward{ranks: [maxPorts]uint64{0: 1 << 40, 1: 1 << 63}}}
	d.setUp(1, s)
	d.data(1, 0, 1)
	d.card.Advance(2000)
	var out Packet
	_, ok := d.card.Next(AllPorts, &out)
	require.True(t, ok)
	assert.Equal(t, uint64(1)<<63, out.Mask)
	assert.Equal(t, uint8(wire.FlagPartial), out.Flags&wire.FlagPartial)
	d.data(1, 1, 1)
	d.data(1, 2, 1) // blocked by rank 0
	d.card.Advance(2000)
	lines := d.out(AllPorts)
	assert.Contains(t, lines, "status evicted v0 to rank 1, missing 10000000000")
	assert.EqualValues(t, 1, d.read(wire.RegJobEvicted), "a local rank")
}

func TestStatusesOfTheParent(t *testing.T) {
	d := newTreeJob(t)
	d.contribute(0, 1)
	d.rises("data v0 of rank 7 = 3")
	d.down(d.status(wire.CodeOverdue, 0, 0x20))
	d.sends("status overdue v0 to rank 0, missing 20", "status overdue v0 to rank 1, missing 20")
	assert.Equal(t, 0, d.count("overdue"), "no slot of this card")
	for _, code := range []wire.Code{wire.CodeWait, wire.CodeSend} {
		d.down(d.status(code, 0, 1))
		d.sends()
		d.rises()
	}
	assert.Zero(t, d.read(wire.RegJobUpRefusal))
	assert.Equal(t, 0, d.upCount("up_dropped"))
	d.down(d.status(wire.CodeBadEpoch, 0xabc, 0))
	assert.EqualValues(t, 0xabc_00000013, d.read(wire.RegJobUpRefusal))
	d.down(d.status(wire.CodeNotReady, 1, 0))
	assert.EqualValues(t, 0x1_00000019, d.read(wire.RegJobUpRefusal))
	assert.Equal(t, 2, d.upCount("up_refused"))
	d.sends()
	d.final(0, 8)
	d.sends("result v0 to 3 = 8")
	d.setUp(10, nested)
	assert.Zero(t, d.read(wire.RegJobUpRefusal), "none since the set-up")
}

func TestStatusesThatAreDropped(t *testing.T) {
	d := newTreeJob(t)
	for what, change := range map[string]func(p *Packet){
		"version": func(p *Packet) { p.Version++ },
		"rank":    func(p *Packet) { p.Rank = 6 },
		"epoch":   func(p *Packet) { p.Epoch++ },
		"job":     func(p *Packet) { p.Job = 1 },
	} {
		for _, code := range []wire.Code{wire.CodeOverdue, wire.CodeBadJob, wire.CodeWait} {
			dropped := d.upCount("up_dropped")
			p := d.status(code, 0, 1)
			change(&p)
			d.down(p)
			d.sends()
			assert.Equal(t, dropped+1, d.upCount("up_dropped"), what)
		}
	}
	dropped := d.upCount("up_dropped")
	d.down(d.status(wire.CodeBusy, 0, 0)) // no packet gets that
	assert.Equal(t, dropped+1, d.upCount("up_dropped"))
	assert.Zero(t, d.read(wire.RegJobUpRefusal))
	assert.Equal(t, 0, d.upCount("up_refused"))
}

func TestFinishesOfATreeJob(t *testing.T) {
	d := newTreeJob(t)
	d.down(d.status(wire.CodeDone, 5, 0)) // nobody has finished
	d.finish(0, 5)
	d.sends("status done v5 to rank 0, missing 0")
	d.rises()
	d.down(d.status(wire.CodeDone, 5, 0)) // not all have
	assert.Equal(t, 2, d.upCount("up_dropped"))
	assert.EqualValues(t, 1, d.read(wire.RegJobState)&1)

	d.finish(1, 5)
	d.sends()
	sent := d.card.cycles
	d.rises("finish v5 of rank 7")
	d.at(sent+4999, d.packet(wire.KindFinish, 0, 5))
	d.rises()
	d.at(sent+5000, d.packet(wire.KindFinish, 1, 5))
	d.sends()
	sent = d.card.cycles
	d.rises("finish v5 of rank 7")
	d.at(sent+4999, d.packet(wire.KindFinish, 1, 5))
	d.rises()
	d.at(sent+5000, d.packet(wire.KindFinish, 0, 5))
	d.sends()
	d.rises("finish v5 of rank 7")
	assert.Equal(t, 6, d.count("finishes"))
	assert.Equal(t, 2, d.upCount("up_repeats"))
	assert.Equal(t, 3, d.upCount("up_sent"))
	assert.EqualValues(t, 3, d.read(wire.RegJobFinished))
	assert.EqualValues(t, 1, d.read(wire.RegJobState)&1, "until the parent confirms")

	d.down(d.status(wire.CodeDone, 5, 0))
	assert.Zero(t, d.read(wire.RegJobState)&1)
	d.sends("status done v5 to rank 0, missing 0", "status done v5 to rank 1, missing 0")
	d.rises()
	d.finish(1, 5)
	d.sends("status done v5 to rank 1, missing 0")
	d.rises()
	d.down(d.status(wire.CodeDone, 5, 0))
	assert.Equal(t, 3, d.upCount("up_dropped"), "the job is over")
	d.data(0, 4, 1)
	d.sends("status bad_job v4 to rank 0, missing 0")
}

func TestAFinishIsAPacketWithoutPayload(t *testing.T) {
	d := newTreeJob(t)
	d.finish(1, 77)
	d.finish(0, 77)
	out := Packet{Payload: words(1)}
	require.True(t, d.card.NextUp(&out))
	assert.Equal(t, Header{Version: wire.Version, Kind: wire.KindFinish, Epoch: 9, Rank: 7, VID: 77}, out.Header)
	assert.Empty(t, out.Payload)
}

func TestDeadlinesOfATreeJob(t *testing.T) {
	d := newChild(t)
	s := nested
	s.deadline = 3000
	d.setUp(9, s)
	d.data(0, 0, 1)
	d.card.Advance(3000)
	d.sends("status overdue v0 to rank 0, missing c")
	d.data(1, 0, 1)
	d.rises("data v0 of rank 7 = 2")
	d.data(0, 4, 1)
	d.out(AllPorts)
	d.card.Advance(20_000)
	d.sends()
	assert.Equal(t, 1, d.count("overdue"), "the parent knows whom it waits for")
	d.final(0, 8)
	d.card.Advance(20_000)
	d.sends("result v0 to 3 = 8")
	d.data(0, 4, 1)
	d.sends("status not_ready v4 to rank 0, missing 0")
	d.card.Advance(3000)
	d.sends("status overdue v0 to rank 0, missing c")
}

func TestTheEndOfAJobDropsWhatItOwesTheParent(t *testing.T) {
	for what, end := range map[string]func(d *harness){
		"abort":     func(d *harness) { d.abort(9) },
		"release":   func(d *harness) { d.write(wire.RegRelease, owner) },
		"link down": func(d *harness) { d.card.LinkDown() },
		"new epoch": func(d *harness) { d.setUp(10, nested) },
	} {
		d := newTreeJob(t)
		d.contribute(0, 1)
		d.card.Reduce()
		d.contribute(1, 1) // not summed
		d.finish(0, 5)
		d.finish(1, 5)
		end(d)
		assert.False(t, d.card.NextUp(&Packet{}), what)
		d.down(d.result(0, 8))
		assert.Equal(t, 1, d.upCount("up_dropped"), what)
		d.setUp(11, nested)
		d.contribute(0, 2)
		d.rises("data v0 of rank 7 = 6")
		d.finish(0, 5)
		d.rises()
	}
}

func TestJobsTakeTurnsAtTheUpPort(t *testing.T) {
	ds := newChildren(t, 2)
	for _, d := range ds {
		d.setUp(9, nested)
		d.contribute(0, 1)
		d.contribute(1, 2)
	}
	var numbers []uint8
	var p Packet
	for ds[0].card.NextUp(&p) {
		numbers = append(numbers, p.Job)
	}
	assert.Equal(t, []uint8{0, 1, 0, 1}, numbers)
	ds[1].final(0, 5)
	ds[1].sends("result v0 to 3 = 5")
	ds[0].sends()
}

func TestAnOrdinaryJobOfACardWithAnUpPort(t *testing.T) {
	d := newChild(t)
	d.setUp(1, setup{ports: 0b11, chunk: 1, window: 1})
	d.contribute(0, 1)
	d.rises()
	d.sends("result v0 to 3 = 3")
	d.down(d.result(0, 8))
	d.down(d.status(wire.CodeOverdue, 0, 1))
	d.sends()
	assert.Equal(t, 2, d.upCount("up_dropped"))
	d.finish(0, 1)
	d.finish(1, 1)
	d.sends("status done v1 to rank 0, missing 0", "status done v1 to rank 1, missing 0")
	d.rises()
}

func TestACardWithoutAnUpPort(t *testing.T) {
	d := newHarness(t)
	assert.False(t, d.card.NextUp(&Packet{}))
	for _, addr := range []uint32{0x150, 0x158, 0x238, 0x240, 0x248, 0x600, 0x620, 0xc00, 0xc18, 0x1058, 0x1060, 0x1068, 0x44000} {
		code, _ := d.card.Register(false, addr, 0)
		assert.Equal(t, wire.CodeBadAddress, code, "%#x", addr)
		assert.Equal(t, wire.CodeBadAddress, d.write(addr, 1), "%#x", addr)
	}
	d.setUp(1, setup{ports: 0b11, chunk: 1, window: 1})
	p := d.result(0, 1)
	d.card.Handle(3, &p)
	assert.Equal(t, 1, d.count("bad_kind"), "no port takes results")
}

func TestRegistersOfACardWithAnUpPort(t *testing.T) {
	d := newChildren(t, 2)[0]
	assert.EqualValues(t, 0x100, d.read(wire.RegShell))
	d.write(wire.RegOwner, owner)
	for _, addr := range []uint32{0x238, 0x240, 0x248, 0xc00, 0xc08, 0xc18} {
		code, value := d.card.Register(true, addr, math.MaxUint64)
		assert.Equal(t, wire.CodeDone, code, "%#x", addr)
		assert.EqualValues(t, uint64(math.MaxUint64), value, "it keeps all bits")
	}
	for _, addr := range []uint32{0x600, 0x608, 0x610, 0x618, 0x620, 0x1058, 0x1060, 0x1068, 0x1158, 0x1168, 0x44000, 0x44018, 0x44200, 0x44218} {
		code, value := d.card.Register(false, addr, 0)
		assert.Equal(t, wire.CodeDone, code, "%#x", addr)
		assert.Zero(t, value)
		assert.Equal(t, wire.CodeReadOnly, d.write(addr, 1), "%#x", addr)
	}
	for _, addr := range []uint32{0x150, 0x158, 0x230 + 0x20, 0x5f8, 0x628, 0xc20, 0xc04, 0xbf8, 0x1070, 0x1258, 0x44020, 0x44400, 0x800} {
		code, _ := d.card.Register(false, addr, 0)
		assert.Equal(t, wire.CodeBadAddress, code, "%#x", addr)
	}
	staged := []uint32{0x238, 0x240, 0x248, 0xc00, 0xc18}
	d.write(wire.RegRelease, owner)
	d.card.LinkDown()
	for _, addr := range staged {
		assert.NotZero(t, d.read(addr), "RELEASE and the link clear nothing")
	}
	d.write(wire.RegOwner, owner)
	for _, addr := range staged {
		assert.Zero(t, d.read(addr), "taking the card does")
		d.write(addr, 5)
	}
	d.write(wire.RegReset, owner)
	for _, addr := range staged {
		assert.Zero(t, d.read(addr), "RESET does")
	}
}

func TestRegistersOfATreeJob(t *testing.T) {
	d := newTreeJob(t)
	d.stageUpward(upward{parent: 1, tree: 2})
	check := func() {
		t.Helper()
		assert.EqualValues(t, 0x0701, d.read(wire.RegJobUp))
		assert.EqualValues(t, 0x3f, d.read(wire.RegJobTree))
		for port, want := range []uint64{0, 0x13, 0, 0x0c} {
			_, value := d.card.Register(false, wire.JobRanksAddr(0, port), 0)
			assert.Equal(t, want, value)
		}
	}
	check()
	d.abort(9)
	check()
	d.down(Packet{})
	d.write(wire.RegReset, owner)
	check()
	assert.Equal(t, 0, d.upCount("up_dropped"), "RESET clears it")

	s := nested
	s.upward.ranks[0] = 1 << 20
	d.setUp(10, s)
	_, value := d.card.Register(false, wire.JobRanksAddr(0, 0), 0)
	assert.Zero(t, value, "port 0 is no member")
}

func TestTheSameTreeJobAgain(t *testing.T) {
	d := newTreeJob(t)
	s := nested
	s.upward.ranks[0] = 1 << 20 // of no member
	assert.Equal(t, wire.CodeDone, d.trySetUp(9, s))
	for what, change := range map[string]func(u *upward){
		"tree":   func(u *upward) { u.parent &^= 1 },
		"rank":   func(u *upward) { u.parent ^= 1 << 8 },
		"repeat": func(u *upward) { u.repeat-- },
		"tree's": func(u *upward) { u.tree = 0x7f },
		"ranks":  func(u *upward) { u.ranks[3] = 0x08 },
	} {
		s := nested
		change(&s.upward)
		assert.Equal(t, wire.CodeEpochInUse, d.trySetUp(9, s), what)
	}
	assert.EqualValues(t, 0x0701, d.read(wire.RegJobUp))
}

func TestChecksOfATreeJob(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(s *setup)
		want   wire.Code
	}{
		{"an unknown bit", func(s *setup) { s.upward.parent |= 2 }, wire.CodeBadParent},
		{"an unknown bit of an ordinary job", func(s *setup) { s.upward.parent = 1 << 32 }, wire.CodeBadParent},
		{"a UDP port without shell udp", func(s *setup) { s.upward.parent |= 1 << 16 }, wire.CodeBadParent},
		{"no repeat", func(s *setup) { s.upward.repeat = 0 }, wire.CodeBadParent},
		{"the longest repeat", func(s *setup) { s.upward.repeat = 1 << 24 }, wire.CodeDone},
		{"a longer repeat", func(s *setup) { s.upward.repeat = 1<<24 + 1 }, wire.CodeBadParent},
		{"an ordinary job without repeat", func(s *setup) { s.upward.parent, s.upward.repeat = 0x700, 0 }, wire.CodeDone},
		{"overlap", func(s *setup) { s.upward.ranks[1] |= 4 }, wire.CodeBadRanks},
		{"overlap of an ordinary job", func(s *setup) { s.upward.ranks[1] |= 4; s.upward.parent = 0 }, wire.CodeBadRanks},
		{"one without ranks", func(s *setup) { s.upward.ranks[3] = 0 }, wire.CodeBadRanks},
		{"one without ranks in an ordinary job", func(s *setup) { s.upward.ranks[1] = 0; s.upward.parent = 0 }, wire.CodeBadRanks},
		{"no ranks", func(s *setup) { s.upward.ranks = [maxPorts]uint64{} }, wire.CodeBadRanks},
		{"no ranks in an ordinary job", func(s *setup) { s.upward.ranks = [maxPorts]uint64{}; s.upward.parent = 0 }, wire.CodeDone},
		{"a rank out of the tree", func(s *setup) { s.upward.tree = 0x1d }, wire.CodeBadRanks},
		{"a rank out of the tree of an ordinary job", func(s *setup) { s.upward.tree, s.upward.parent = 0, 0 }, wire.CodeDone},
		{"the members alone", func(s *setup) { s.upward.tree = 0x1f }, wire.CodeDone},
		{"overlap with no member", func(s *setup) { s.upward.ranks[0] = 0xff }, wire.CodeDone},
		{"partial sums", func(s *setup) { s.deadline = 1<<32 | 5 }, wire.CodeBadDeadline},
		{"partial sums of a tree job", func(s *setup) { s.deadline = 1<<32 | 5; s.upward.ranks = [maxPorts]uint64{1: 1, 3: 2} }, wire.CodeBadDeadline},
		{"partial sums of a member for several", func(s *setup) { s.deadline = 1<<32 | 5; s.upward.parent = 0 }, wire.CodeBadDeadline},
		{"partial sums of a member for one", func(s *setup) {
			s.deadline, s.upward.parent, s.upward.ranks = 1<<32|5, 0, [maxPorts]uint64{1: 1 << 5, 3: 1 << 60}
		}, wire.CodeDone},
		{"a deadline", func(s *setup) { s.deadline = 5 }, wire.CodeDone},

		// The order of the checks.
		{"ports, parent", func(s *setup) { s.ports, s.upward.repeat = 0, 0 }, wire.CodeBadPorts},
		{"parent, ranks", func(s *setup) { s.upward.repeat, s.upward.tree = 0, 0 }, wire.CodeBadParent},
		{"ranks, deadline", func(s *setup) { s.upward.tree, s.deadline = 0, 1<<32|5 }, wire.CodeBadRanks},
		{"deadline, chunk", func(s *setup) { s.deadline, s.chunk = 1<<32|5, 0 }, wire.CodeBadDeadline},
		{"chunk, unknown bits of the deadline", func(s *setup) { s.deadline, s.chunk = 1<<33, 0 }, wire.CodeBadChunk},
	} {
		d := newChild(t)
		s := nested
		c.change(&s)
		assert.Equal(t, c.want, d.trySetUp(1, s), c.what)
		assert.Equal(t, c.want == wire.CodeDone, d.read(wire.RegJobState)&1 == 1, c.what)
	}
}

func TestConfigsOfCardsWithAnUpPort(t *testing.T) {
	good := Config{Lanes: 1, Ports: 1, Chunk: 4, Window: 1, Parent: true}
	require.NoError(t, good.Validate())
	stream, wide := good, good
	stream.Shell, stream.Link = wire.ShellStream, 8
	assert.ErrorContains(t, stream.Validate(), "parent: a card with shell stream has no up port")
	wide.Format, wide.Result = wire.BF16, wire.FP32
	assert.ErrorContains(t, wide.Validate(), "a card with an up port has one format")
	other := good
	other.Parent = false
	assert.NotEqual(t, other.Hash(), good.Hash())
}
