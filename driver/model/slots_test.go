// The slot rules of section 5, one test per rule. The expectations were worked out by hand from the
// specification.

package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// pair is a job of ports 0 and 1: one element, a window of one chunk, so two
// slots; the first VID is 10.
var pair = setup{ports: 0b11, chunk: 1, window: 1, first: 10}

// newPair returns a harness with the job pair.
func newPair(t *testing.T) *harness {
	t.Helper()
	d := newHarness(t)
	d.setUp(1, pair)
	return d
}

// both sends the contributions of both ranks to a chunk.
func (d *harness) both(vid uint32, a, b float32) {
	d.data(0, vid, a)
	d.data(1, vid, b)
}

func TestCompleteChunkIsSummedAndSentToAll(t *testing.T) {
	d := newPair(t)
	d.data(1, 10, 2)
	d.sends()
	d.data(0, 10, 0.5)
	d.sends("result v10 to 3 = 2.5")
	d.sends()
	assert.Equal(t, 2, d.count("stored"))
	assert.Equal(t, 1, d.count("chunks"))
	assert.Equal(t, 1, d.count("beats"))
	assert.Equal(t, 1, d.count("results"))
	assert.Zero(t, d.count("replays"))
}

func TestResultFields(t *testing.T) {
	d := newHarness(t)
	d.setUp(0xbeef, setup{ports: 0b1010, chunk: 3, window: 2, first: 7})
	d.data(0, 7, 1)
	d.data(1, 7, 1)
	var p Packet
	ports, ok := d.card.Next(AllPorts, &p)
	require.True(t, ok)
	assert.Equal(t, uint64(0b1010), ports, "ranks 0 and 1 are at ports 1 and 3")
	assert.Equal(t, Header{
		Version: 2, Kind: wire.KindResult, Flags: uint8(wire.NotECT), Format: wire.FP32,
		Epoch: 0xbeef, VID: 7, Length: 3, Mask: 0b11, Receivers: 0b11,
	}, p.Header)
	assert.Equal(t, words(f(2), f(2), f(2)), p.Payload)
}

func TestPortsBelongToTreeNodesNotRanks(t *testing.T) {
	// Ports 1, 2 and 3: (-0+p1)+(p2+p3), where ranks 0 and 1 would pair up.
	const big = 1 << 24
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b1110, chunk: 1, window: 1})
	d.data(0, 0, big)
	d.data(1, 0, 1)
	d.data(2, 0, 1)
	d.sends("result v0 to 7 = 1.6777218e+07")
}

func TestSetUpSlotsTakeTheFirstVIDsThatLiveInThem(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 1, chunk: 1, window: 2, first: 0xffffffff}) // lives in slot 3 of 4
	for i, vid := range []uint32{0xffffffff, 0, 1, 2} {
		d.data(0, vid, float32(i))
	}
	d.sends("result v4294967295 to 1 = 0", "result v0 to 1 = 1", "result v1 to 1 = 2", "result v2 to 1 = 3")
}

func TestVIDsBeforeTheFirstAreLateAndBeyondTheSlotsEarly(t *testing.T) {
	d := newPair(t)
	d.data(0, 9, 1) // what the empty slot holds
	d.sends("status late v9 to rank 0, missing 0")
	d.data(0, 8, 1)
	d.sends("status late v8 to rank 0, missing 0")
	d.data(0, 7, 1)
	d.sends("status late v7 to rank 0, missing 0")
	d.data(0, 12, 1)
	d.sends("status early v12 to rank 0, missing 0")
	assert.Equal(t, 3, d.count("late"))
	assert.Equal(t, 1, d.count("early"))
	assert.Zero(t, d.count("stored"))
}

func TestLateAndEarlyAreNamedBySerialOrder(t *testing.T) {
	d := newPair(t) // slot 0 is empty with u = 8
	d.data(0, 8+1<<31, 1)
	d.sends("status late v2147483656 to rank 0, missing 0")
	d.data(0, 8+1<<31-2, 1)
	d.sends("status early v2147483654 to rank 0, missing 0")
}

func TestDuplicateWhileCollectingIsDropped(t *testing.T) {
	d := newPair(t)
	d.data(0, 10, 1)
	d.data(0, 10, 100)
	d.sends("status duplicate v10 to rank 0, missing 0")
	d.data(1, 10, 2)
	d.sends("result v10 to 3 = 3")
	assert.Equal(t, 1, d.count("duplicate"))
}

func TestDuplicateWhileReducingIsDropped(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 2) // no call has made the card reduce yet
	d.data(0, 10, 100)
	d.sends("status duplicate v10 to rank 0, missing 0", "result v10 to 3 = 3")
	d.sends()
}

func TestDuplicateOfAResultIsAnsweredByAReplay(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 2)
	d.sends("result v10 to 3 = 3")
	d.data(1, 10, 100)
	d.sends("replay v10 to 2 = 3") // and no status
	assert.Equal(t, 1, d.count("duplicate"))
	assert.Equal(t, 2, d.count("stored"))
	assert.Equal(t, 1, d.count("replays"))
}

func TestTenRepeatsGiveOneReplay(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 2)
	d.sends("result v10 to 3 = 3")
	for range 10 {
		d.ask(0, 10)
	}
	d.sends("replay v10 to 1 = 3")
	d.sends()
}

func TestEvidenceLetsTheSlotBeforeTurnOver(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 1)
	d.sends("result v10 to 3 = 2")
	d.both(11, 2, 2) // each proves that its sender holds 10
	d.sends("result v11 to 3 = 4")
	d.both(12, 3, 3)
	d.sends("result v12 to 3 = 6")
	assert.Zero(t, d.count("not_ready"))
}

func TestEvidenceNeedsTheResult(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 1)
	d.data(1, 11, 2) // 10 is being reduced: no evidence
	d.data(0, 12, 3)
	d.sends("status not_ready v12 to rank 0, missing 0", "result v10 to 3 = 2")
	d.data(0, 12, 3)
	d.sends("status not_ready v12 to rank 0, missing 0")
	d.data(1, 11, 2) // a repeat, now that 10 is held
	d.data(0, 12, 3)
	d.sends("status duplicate v11 to rank 1, missing 0")
	assert.Equal(t, 4, d.count("stored"), "12 was taken")
}

func TestEvidenceOfARepeatCounts(t *testing.T) {
	d := newPair(t)
	d.data(1, 11, 2) // before 10 is reduced: no evidence
	d.both(10, 1, 1)
	d.sends("result v10 to 3 = 2")
	d.data(0, 12, 3)
	d.sends("status not_ready v12 to rank 0, missing 0")
	d.data(1, 11, 2)
	d.sends("status duplicate v11 to rank 1, missing 0")
	d.data(0, 12, 3)
	d.sends()
	assert.Equal(t, 4, d.count("stored"))
}

func TestEvidenceOfDataThatIsNotReadyCounts(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 1)
	d.sends("result v10 to 3 = 2")
	d.data(0, 11, 1)
	d.both(13, 1, 1) // slot 1 collects 11: not ready; proves nothing about 10
	assert.Equal(t, 2, d.count("not_ready"))
	assert.Len(t, d.out(AllPorts), 2)
	d.data(1, 11, 1)
	d.sends("result v11 to 3 = 2")
	d.both(12, 2, 2) // proves 11, by both; 10 is proved by the data for 11 and by 12 itself
	d.sends("result v12 to 3 = 4")
	d.both(13, 5, 5)
	d.sends("result v13 to 3 = 10")
}

func TestEvidenceIsForExactlyTheChunkAWindowBefore(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b11, chunk: 1, window: 2}) // slots 0..3
	d.both(0, 1, 1)
	d.sends("result v0 to 3 = 2")
	d.both(1, 1, 1) // proves -1, not 0
	d.sends("result v1 to 3 = 2")
	d.data(0, 4, 1) // 4 proves 2, and 0 for its own sender
	d.sends("status not_ready v4 to rank 0, missing 0")
	d.data(1, 2, 1) // proves 0
	d.data(0, 4, 1)
	assert.Equal(t, 6, d.count("stored"), "4 was taken")
}

func TestEvidenceIsNotForALaterChunkInThatSlot(t *testing.T) {
	d := newPair(t)
	for vid := range uint32(3) {
		d.both(10+vid, 1, 1)
		d.card.Reduce()
	}
	assert.Equal(t, 3, d.count("chunks"))
	d.data(1, 11, 1) // a repeat: proves 10, where the slot holds 12
	d.data(0, 14, 1)
	d.sends("status not_ready v14 to rank 0, missing 0", "result v11 to 3 = 2", "result v12 to 3 = 2")
}

func TestTurnoverNeedsEveryRankDone(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 1)
	d.sends("result v10 to 3 = 2")
	d.data(0, 12, 5)
	d.sends("status not_ready v12 to rank 0, missing 0")
	d.ask(1, 10) // not overwritten
	d.sends("replay v10 to 2 = 2")
	d.data(1, 12, 6) // rank 0 is done since its refused 12
	d.sends()
	d.data(0, 12, 5)
	d.sends("result v12 to 3 = 11")
	assert.Equal(t, 1, d.count("not_ready"))
}

func TestTurnoverNeedsTheResult(t *testing.T) {
	d := newPair(t)
	d.data(0, 10, 1)
	d.data(0, 12, 5) // collecting
	d.data(1, 12, 5) // both are done with 10 now
	d.sends("status not_ready v12 to rank 0, missing 0", "status not_ready v12 to rank 1, missing 0")
	d.data(1, 10, 1)
	d.data(0, 12, 5) // reducing
	d.sends("status not_ready v12 to rank 0, missing 0", "result v10 to 3 = 2")
	d.both(12, 1, 2)
	d.sends("result v12 to 3 = 3")
	assert.Equal(t, 3, d.count("not_ready"))
}

func TestTurnoverClearsOwedAndSent(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 1)
	assert.Equal(t, []string{"result v10 to 1 = 2"}, d.out(0b01))
	d.ask(0, 10) // 10 is now owed to both, and was sent to rank 0
	d.both(12, 2, 2)
	d.data(0, 12, 2)
	d.sends("status not_ready v12 to rank 0, missing 0", "result v12 to 3 = 4")
}

func TestSlotOfOneMemberReducesAtOnce(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b100, chunk: 1, window: 1})
	for vid := range uint32(5) {
		d.data(0, vid, float32(vid))
		assert.Equal(t, []string{"result v" + string('0'+rune(vid)) + " to 1 = " + string('0'+rune(vid))}, d.out(0b100))
	}
	assert.Equal(t, 5, d.count("results"))
}

func TestOneMembersNaNIsCanonical(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 1, chunk: 1, window: 1})
	p := d.chunk(0, 0, 0)
	p.Payload = words(0xffbfffff)
	d.in(p)
	var out Packet
	_, ok := d.card.Next(AllPorts, &out)
	require.True(t, ok)
	assert.Equal(t, words(0x7fc00000), out.Payload)
	assert.EqualValues(t, wire.FlagNonfinite, out.Flags)
}

func TestVIDsWrapAround(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b11, chunk: 1, window: 2, first: 0xfffffffd})
	for i := range uint32(8) {
		vid := 0xfffffffd + i
		d.both(vid, float32(i), float32(i))
		d.card.Reduce()
		assert.Equal(t, 2*int(i+1), d.count("stored"))
	}
	lines := d.out(AllPorts)
	// The turnover dropped the results owed for the first four.
	assert.Equal(t, []string{"result v1 to 3 = 8", "result v2 to 3 = 10", "result v3 to 3 = 12", "result v4 to 3 = 14"}, lines)
	d.data(0, 0xffffffff, 1) // the slot holds 3
	d.sends("status late v4294967295 to rank 0, missing 0")
}

func TestWindowSmallerThanTheCards(t *testing.T) {
	// Only two of the card's eight slots are used: 12 uses 10's slot.
	d := newPair(t)
	d.both(10, 1, 1)
	d.data(0, 14, 1)
	d.sends("status early v14 to rank 0, missing 0", "result v10 to 3 = 2")
	d.both(12, 2, 2)
	d.sends("status not_ready v12 to rank 0, missing 0")
	d.data(0, 12, 2)
	d.sends("result v12 to 3 = 4")
}

func TestLargestWindow(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b11, chunk: 1, window: 4})
	for vid := range uint32(8) {
		d.data(0, vid, 1)
	}
	assert.Equal(t, 8, d.count("stored"), "2W slots")
	d.data(0, 8, 1)
	d.sends("status not_ready v8 to rank 0, missing 0")
}

func TestReplaysGoBeforeFreshResults(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b11, chunk: 1, window: 4})
	d.both(0, 1, 1)
	d.sends("result v0 to 3 = 2")
	d.both(1, 2, 2)
	d.both(2, 3, 3)
	d.ask(0, 0)
	d.sends("replay v0 to 1 = 2", "result v1 to 3 = 4", "result v2 to 3 = 6")
}

func TestFreshResultsGoInTheOrderOfReduction(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b11, chunk: 1, window: 4})
	d.both(2, 3, 3)
	d.both(0, 1, 1)
	d.both(1, 2, 2)
	d.sends("result v2 to 3 = 6", "result v0 to 3 = 2", "result v1 to 3 = 4")
}

func TestBlockedReceiverDoesNotBlockOthers(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b11, chunk: 1, window: 4})
	d.both(0, 1, 1)
	d.both(1, 2, 2)
	assert.Equal(t, []string{"result v0 to 1 = 2", "result v1 to 1 = 4"}, d.out(0b01))
	d.sends("result v0 to 2 = 2", "result v1 to 2 = 4")
	assert.Zero(t, d.count("replays"))
}

func TestAReplayServesFreshReceiversToo(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 1)
	assert.Equal(t, []string{"result v10 to 1 = 2"}, d.out(0b01))
	d.ask(0, 10)
	d.sends("replay v10 to 3 = 2")
}

func TestReplaysRepeatBitsAndMarks(t *testing.T) {
	d := newPair(t)
	a, b := d.chunk(0, 10, 0), d.chunk(1, 10, 0)
	a.Payload, b.Payload = words(0x00000001), words(0x80000003)
	a.Flags = uint8(wire.CE)
	d.in(a)
	d.in(b)
	var first, again Packet
	_, ok := d.card.Next(AllPorts, &first)
	require.True(t, ok)
	d.ask(1, 10)
	_, ok = d.card.Next(AllPorts, &again)
	require.True(t, ok)
	assert.Equal(t, words(0x80000002), first.Payload)
	assert.EqualValues(t, wire.CE, first.Flags)
	first.Kind, first.Receivers = wire.KindReplay, 0b10
	assert.Equal(t, first, again)
}

func TestAskWhileCollecting(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b111, chunk: 1, window: 1, first: 10})
	d.data(1, 10, 1)
	d.ask(0, 10)
	d.ask(1, 10)
	d.sends("status send v10 to rank 0, missing 5", "status wait v10 to rank 1, missing 5")
	assert.Equal(t, 2, d.count("asks"))
}

func TestAskForWhatTheSlotTakesNext(t *testing.T) {
	d := newPair(t)
	d.ask(0, 10) // nothing came yet
	d.sends("status send v10 to rank 0, missing 3")
	d.both(10, 1, 1)
	d.sends("result v10 to 3 = 2")
	d.ask(1, 12)
	d.sends("status send v12 to rank 1, missing 3")
	assert.Equal(t, 2, d.count("asks"))
}

func TestAskWhileReducingIsNotAnswered(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 1)
	d.ask(0, 10)
	d.sends("result v10 to 3 = 2")
	d.sends()
	assert.Equal(t, 1, d.count("asks"))
}

func TestAskBeforeTheResultWasSentGivesOneResult(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 1)
	d.card.Reduce()
	d.ask(0, 10)
	d.sends("result v10 to 3 = 2")
	d.sends()
}

func TestAskOutOfTheWindow(t *testing.T) {
	d := newPair(t)
	d.ask(0, 9) // what the empty slot holds
	d.sends("status late v9 to rank 0, missing 0")
	d.ask(0, 6)
	d.sends("status late v6 to rank 0, missing 0")
	d.ask(0, 12)
	d.sends("status early v12 to rank 0, missing 0")
	assert.Zero(t, d.count("asks"))
	assert.Equal(t, 2, d.count("late"))
	assert.Equal(t, 1, d.count("early"))
}

func TestAskProvesNothing(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 1)
	d.sends("result v10 to 3 = 2")
	d.ask(1, 11)
	d.ask(1, 12)
	d.sends("status send v12 to rank 1, missing 3")
	d.data(0, 12, 1)
	d.sends("status not_ready v12 to rank 0, missing 0")
}

func TestECNMerge(t *testing.T) {
	const notECT, ect1, ect0, ce = wire.NotECT, wire.ECT1, wire.ECT0, wire.CE
	merged := map[[2]wire.ECN]wire.ECN{
		{ect1, ect1}: ect1, {ect1, ect0}: ect0, {ect1, notECT}: notECT, {ect1, ce}: ce,
		{ect0, ect0}: ect0, {ect0, notECT}: notECT, {ect0, ce}: ce,
		{notECT, notECT}: notECT, {notECT, ce}: ce,
		{ce, ce}: ce,
	}
	for marks, want := range merged {
		for _, marks := range [][2]wire.ECN{marks, {marks[1], marks[0]}} {
			d := newPair(t)
			for rank, mark := range marks {
				p := d.chunk(uint8(rank), 10, 1)
				p.Flags = uint8(mark)
				d.in(p)
			}
			var out Packet
			_, ok := d.card.Next(AllPorts, &out)
			require.True(t, ok)
			assert.EqualValues(t, want, out.Flags, "%v", marks)
		}
	}
}

func TestOnlyWhatIsSummedMerges(t *testing.T) {
	d := newPair(t)
	d.data(0, 10, 1)
	p := d.chunk(0, 10, 1) // a duplicate
	p.Flags, p.Payload = uint8(wire.CE), words(0x7f800000)
	d.in(p)
	d.data(1, 10, 1)
	d.out(0b10)
	var out Packet
	for out.Kind != wire.KindResult {
		_, ok := d.card.Next(AllPorts, &out)
		require.True(t, ok)
	}
	assert.Zero(t, out.Flags)
	assert.Zero(t, d.count("ce"))
	assert.Zero(t, d.count("nonfinite_in"))
}

func TestMarksAreClearedByTurnover(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 1, chunk: 1, window: 1})
	var out Packet
	for _, c := range []struct {
		vid   uint32
		in    uint8
		x     uint32
		flags uint8
	}{
		{vid: 0, in: uint8(wire.CE), x: 0x7fc00000, flags: uint8(wire.CE) | wire.FlagNonfinite},
		{vid: 2, in: uint8(wire.ECT1), x: f(1), flags: uint8(wire.ECT1)},
	} {
		p := d.chunk(0, c.vid, 0)
		p.Flags, p.Payload = c.in, words(c.x)
		d.in(p)
		_, ok := d.card.Next(AllPorts, &out)
		require.True(t, ok)
		assert.Equal(t, c.flags, out.Flags)
	}
}

func TestNonfinite(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b11, chunk: 4, window: 1})
	a, b := d.chunk(0, 0, 0), d.chunk(1, 0, 0)
	a.Payload = words(0x7f800000, 0x7f7fffff, f(1), 0xff800001)
	b.Payload = words(0xff800000, 0x7f7fffff, f(1), f(1))
	d.in(a)
	d.in(b)
	var out Packet
	_, ok := d.card.Next(AllPorts, &out)
	require.True(t, ok)
	assert.Equal(t, words(0x7fc00000, 0x7f800000, f(2), 0x7fc00000), out.Payload)
	assert.EqualValues(t, wire.FlagNonfinite, out.Flags)
	assert.Equal(t, 2, d.count("nonfinite_in"), "contributions")
	assert.Equal(t, 3, d.count("nonfinite_out"), "elements")
}

func TestOverflowIsNoNonfiniteContribution(t *testing.T) {
	d := newPair(t)
	d.both(10, 3e38, 3e38)
	var out Packet
	_, ok := d.card.Next(AllPorts, &out)
	require.True(t, ok)
	assert.Equal(t, words(0x7f800000), out.Payload)
	assert.Zero(t, out.Flags)
	assert.Zero(t, d.count("nonfinite_in"))
	assert.Equal(t, 1, d.count("nonfinite_out"))
}
