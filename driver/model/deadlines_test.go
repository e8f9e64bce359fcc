// Deadlines, every sentence of section 5 about them, and the lateness of contributions. The
// expectations were worked out by hand from the specification.

package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// patience is the deadline in the tests, longer than a few packets of a harness take.
const patience = 100_000

// three is a job of ports 0, 1 and 2 with a deadline: one element, a window of one chunk, so two
// slots; the first VID is 10.
var three = setup{ports: 0b111, chunk: 1, window: 1, first: 10, deadline: patience}

// threePartial is three with partial sums.
var threePartial = setup{ports: 0b111, chunk: 1, window: 1, first: 10, deadline: deadlinePartial | patience}

// newDeadlines returns a harness with the job s.
func newDeadlines(t *testing.T, s setup) *harness {
	t.Helper()
	d := newHarness(t)
	d.setUp(1, s)
	return d
}

// late waits until a deadline has passed.
func (d *harness) late() { d.card.Advance(patience) }

// all sends the contributions of ranks 0 to 2 to a chunk, x from each, and collects the replies.
func (d *harness) all(vid uint32, x float32) {
	for rank := range uint8(3) {
		d.data(rank, vid, x)
	}
	d.out(AllPorts)
}

// next returns the next packet.
func (d *harness) next() Packet {
	d.Helper()
	var p Packet
	_, ok := d.card.Next(AllPorts, &p)
	require.True(d, ok)
	return p
}

func TestBadDeadline(t *testing.T) {
	d := newHarness(t)
	for deadline, want := range map[uint64]wire.Code{
		0: wire.CodeDone, 1: wire.CodeDone, 1<<32 - 1: wire.CodeDone, 1<<32 | 1: wire.CodeDone, 1<<33 - 1: wire.CodeDone,
		1 << 32: wire.CodeBadDeadline, 1 << 33: wire.CodeBadDeadline, 1<<63 | 5: wire.CodeBadDeadline,
	} {
		s := pair
		s.deadline = deadline
		assert.Equal(t, want, d.trySetUp(d.now+1, s), "%#x", deadline)
		assert.Equal(t, deadline, d.read(wire.RegJobDeadline), "a staged register keeps what it is given")
	}
}

func TestDeadlineIsCheckedAfterWindowBeforeSlots(t *testing.T) {
	d := newHarnesses(t, 2)
	d[0].setUp(1, of(4)) // all slots
	bad := of(4)
	bad.deadline = 1 << 40
	assert.Equal(t, wire.CodeBadDeadline, d[1].trySetUp(1, bad))
	bad.window = 3
	assert.Equal(t, wire.CodeBadWindow, d[1].trySetUp(1, bad))
}

func TestTheDeadlineIsOneOfAJobsParameters(t *testing.T) {
	d := newDeadlines(t, three)
	assert.Equal(t, wire.CodeDone, d.trySetUp(1, three), "the same again")
	assert.Equal(t, wire.CodeEpochInUse, d.trySetUp(1, threePartial))
	other := three
	other.deadline++
	assert.Equal(t, wire.CodeEpochInUse, d.trySetUp(1, other))
}

func TestCollectingSlotIsReportedWithTheRanksItWaitsFor(t *testing.T) {
	d := newDeadlines(t, three)
	d.data(1, 10, 1)
	d.card.Advance(patience - 1)
	d.sends()
	d.card.Advance(1)
	p := d.next()
	assert.Equal(t, Header{Version: 2, Kind: wire.KindStatus, Epoch: 1, Rank: 1, Code: wire.CodeOverdue, VID: 10, Mask: 0b101}, p.Header)
	d.sends()
	assert.Equal(t, 1, d.count("overdue"))
	assert.Equal(t, 1, d.count("statuses"))
}

func TestTheReportIsRepeatedWithEveryDeadline(t *testing.T) {
	d := newDeadlines(t, three)
	d.data(1, 10, 1)
	for range 3 {
		d.late()
		d.sends("status overdue v10 to rank 1, missing 5")
	}
	d.data(0, 10, 1)
	d.late()
	d.sends("status overdue v10 to rank 0, missing 4", "status overdue v10 to rank 1, missing 4")
	assert.Equal(t, 4, d.count("overdue"))

	d.data(2, 10, 1)
	d.sends("result v10 to 7 = 3")
	d.late()
	d.sends()
	assert.Zero(t, d.count("partial"), "this job wants whole sums")
}

func TestDeadlineRunsFromTheTurnover(t *testing.T) {
	d := newDeadlines(t, three)
	d.data(1, 10, 1)
	d.card.Advance(patience / 2)
	d.data(0, 10, 1)
	d.card.Advance(patience / 2)
	d.sends("status overdue v10 to rank 0, missing 4", "status overdue v10 to rank 1, missing 4")
}

func TestBlockedTurnoverIsReported(t *testing.T) {
	d := newDeadlines(t, three)
	d.all(10, 1)
	d.late()
	d.data(1, 12, 1) // u + 2W
	d.sends("status not_ready v12 to rank 1, missing 0")
	d.card.Advance(patience / 2)
	d.data(0, 12, 1) // not the first refusal
	d.sends("status not_ready v12 to rank 0, missing 0")
	d.card.Advance(patience / 2)
	d.sends("status overdue v10 to rank 0, missing 4", "status overdue v10 to rank 1, missing 4")
	d.late()
	d.sends("status overdue v10 to rank 0, missing 4", "status overdue v10 to rank 1, missing 4")
	d.data(2, 12, 1)
	d.late()
	d.sends("status overdue v12 to rank 2, missing 3")
}

func TestSlotThatIsBeingReducedIsNotOverdue(t *testing.T) {
	d := newDeadlines(t, threePartial)
	for rank := range uint8(3) {
		d.data(rank, 10, 1)
	}
	d.data(0, 12, 1) // refused, but not for ranks that are not done
	d.late()
	assert.Zero(t, d.count("overdue"))
	d.out(AllPorts)
	d.late()
	assert.Zero(t, d.count("overdue"))
}

func TestReducedSlotWithoutWaitersIsNotOverdue(t *testing.T) {
	d := newDeadlines(t, threePartial)
	d.all(10, 1)
	for range 5 {
		d.late()
	}
	d.sends()
	assert.Zero(t, d.count("overdue"))
	assert.Zero(t, d.read(wire.RegJobEvicted))
}

func TestNoDeadlineIsForEver(t *testing.T) {
	s := three
	s.deadline = 0
	d := newDeadlines(t, s)
	d.data(1, 10, 1)
	d.card.Advance(1 << 40)
	d.sends()
	assert.Zero(t, d.count("overdue"))
}

func TestPartialSumHoldsPunctualContributions(t *testing.T) {
	d := newDeadlines(t, threePartial)
	d.data(2, 10, 0.5)
	p := d.chunk(0, 10, 2)
	p.Flags = uint8(wire.CE)
	d.in(p)
	d.late()
	sum := d.next()
	assert.Equal(t, Header{
		Version: 2, Kind: wire.KindResult, Flags: uint8(wire.CE) | wire.FlagPartial, Format: wire.FP32,
		Epoch: 1, VID: 10, Length: 1, Mask: 0b101, Receivers: 0b111,
	}, sum.Header, "all members are owed it")
	assert.Equal(t, words(f(2.5)), sum.Payload)
	d.sends()
	assert.Equal(t, 1, d.count("partial"))
	assert.Equal(t, 1, d.count("overdue"))

	d.data(1, 10, 100)
	again := d.next()
	assert.Equal(t, wire.KindReplay, again.Kind, "answered with the result")
	assert.EqualValues(t, 0b010, again.Receivers)
	assert.Equal(t, sum.Payload, again.Payload, "a late contribution is never added")
	assert.Equal(t, sum.Mask, again.Mask)
	assert.Equal(t, sum.Flags, again.Flags)
	assert.Equal(t, 1, d.count("duplicate"))
}

func TestPartialSumIsThatOfItsContributorsBitForBit(t *testing.T) {
	// Ports 0, 1 and 3 of the tree: (p0+p1)+(-0+p3). Without the absent port, big+1+1 would be rounded
	// twice.
	const big = 1 << 24
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b1111, chunk: 1, window: 1, deadline: deadlinePartial | patience})
	d.data(3, 0, 1)
	d.data(1, 0, 1)
	d.data(0, 0, big)
	d.late()
	d.sends("result v0 to f = 1.6777216e+07")

	d.data(0, 1, float32(math.Copysign(0, -1)))
	d.late()
	p := d.next()
	assert.Equal(t, words(0x80000000), p.Payload, "one contribution alone: no identity but -0 meets it")
	assert.EqualValues(t, 0b0001, p.Mask)
}

func TestWhoIsLateForAPartialSumGoesOn(t *testing.T) {
	d := newDeadlines(t, threePartial)
	d.data(0, 10, 1)
	d.data(1, 10, 1)
	d.late()
	d.sends("result v10 to 7 = 2")
	d.all(11, 1)
	for rank := range uint8(3) {
		d.data(rank, 12, 2)
	}
	d.sends("result v12 to 7 = 6")
	assert.Zero(t, d.read(wire.RegJobEvicted), "who is done in time stays")
	assert.Equal(t, 1, d.count("partial"))
}

// evicted returns a harness whose job has evicted rank 2. 10 and 11 are reduced, and the others have
// sent 13, for which rank 2 was not done with 11.
func evicted(t *testing.T) *harness {
	t.Helper()
	d := newDeadlines(t, threePartial)
	d.all(10, 1)
	d.all(11, 1)
	d.data(0, 13, 1)
	d.data(1, 13, 1)
	d.out(AllPorts)
	d.late()
	d.sends("status evicted v11 to rank 0, missing 4", "status evicted v11 to rank 1, missing 4", "status evicted v11 to rank 2, missing 4")
	return d
}

func TestEviction(t *testing.T) {
	d := evicted(t)
	assert.EqualValues(t, 0b100, d.read(wire.RegJobEvicted))
	assert.EqualValues(t, 0b111, d.read(wire.RegJobMembers), "ranks stay as they are")
	assert.Equal(t, 1, d.count("evictions"))
	assert.Equal(t, 1, d.count("overdue"))
	assert.Zero(t, d.count("partial"))
	d.late()
	d.sends()
}

func TestWhoWasEvictedIsRefused(t *testing.T) {
	d := evicted(t)
	stored, asks, finishes := d.count("stored"), d.count("asks"), d.count("finishes")
	d.data(2, 12, 1)
	d.sends("status evicted v12 to rank 2, missing 0")
	d.ask(2, 11)
	d.sends("status evicted v11 to rank 2, missing 0")
	d.finish(2, 12)
	d.sends("status evicted v12 to rank 2, missing 0")
	assert.Equal(t, 3, d.count("evicted"))
	assert.Equal(t, stored, d.count("stored"))
	assert.Equal(t, asks, d.count("asks"))
	assert.Equal(t, finishes, d.count("finishes"))
	assert.Zero(t, d.read(wire.RegJobFinished))
}

func TestEvictionIsCheckedAfterRankBeforeFormat(t *testing.T) {
	d := evicted(t)
	p := d.chunk(2, 12, 1)
	p.Format = wire.BF16
	d.in(p)
	assert.Equal(t, 1, d.count("evicted"))
	assert.Zero(t, d.count("bad_format"))
	p = d.chunk(2, 12, 1)
	d.card.Handle(0, &p)
	assert.Equal(t, 1, d.count("bad_rank"))
	p.Epoch++
	d.in(p)
	assert.Equal(t, 1, d.count("bad_epoch"))
	assert.Equal(t, 1, d.count("evicted"))
}

func TestSlotsDoNotWaitForEvictedRanks(t *testing.T) {
	d := evicted(t)
	d.data(0, 13, 5)
	d.data(1, 13, 6)
	p := d.next()
	assert.Equal(t, "result v13 to 3 = 11", line(&p), "it is not owed to who was evicted")
	assert.EqualValues(t, 0b011, p.Mask)
	assert.NotZero(t, p.Flags&wire.FlagPartial, "these are not all n")
	assert.Equal(t, 1, d.count("partial"))
	d.ask(0, 12)
	d.sends("status send v12 to rank 0, missing 3")
}

func TestWhatTheEvictedContributedBeforeStaysInItsSums(t *testing.T) {
	s := threePartial
	s.window = 2
	d := newDeadlines(t, s) // slots of 10, 11, 12 and 13
	d.all(10, 1)
	d.data(0, 14, 1) // rank 0 rushes ahead: the slot of 10 cannot turn over
	d.data(1, 14, 1)
	d.out(AllPorts)
	d.card.Advance(patience / 2)
	d.data(2, 11, 100)
	d.data(0, 11, 1)
	d.sends()
	d.card.Advance(patience / 2)
	assert.EqualValues(t, 0b100, d.read(wire.RegJobEvicted))
	d.out(AllPorts)
	d.data(1, 11, 2)
	p := d.next()
	assert.Equal(t, "result v11 to 3 = 103", line(&p))
	assert.EqualValues(t, 0b111, p.Mask)
	assert.Zero(t, p.Flags&wire.FlagPartial, "all n are in it")
}

func TestSlotWithAllRemainingRanksReducesAtItsDeadline(t *testing.T) {
	s := threePartial
	s.window = 2
	d := newDeadlines(t, s)
	d.all(10, 1)
	d.data(0, 14, 1)
	d.data(1, 14, 1)
	d.out(AllPorts)
	d.card.Advance(patience / 2)
	d.data(0, 11, 1)
	d.data(1, 11, 2)
	d.card.Advance(patience / 2)
	assert.EqualValues(t, 0b100, d.read(wire.RegJobEvicted))
	d.card.Advance(patience / 2)
	p := Packet{}
	for p = d.next(); p.Kind == wire.KindStatus; {
		p = d.next()
	}
	assert.Equal(t, "result v11 to 3 = 3", line(&p))
}

func TestAllEvictedRanksAreNamed(t *testing.T) {
	d := evicted(t)
	d.both(13, 1, 1)
	d.out(AllPorts)
	d.data(0, 15, 1)
	d.out(AllPorts)
	d.late()
	d.sends("status evicted v13 to rank 0, missing 6", "status evicted v13 to rank 1, missing 6", "status evicted v13 to rank 2, missing 6")
	assert.EqualValues(t, 0b110, d.read(wire.RegJobEvicted))
	assert.Equal(t, 2, d.count("evictions"))
	d.data(0, 15, 7)
	d.sends("result v15 to 1 = 7")
}

func TestJobEndsWhenAllRemainingRanksFinish(t *testing.T) {
	d := evicted(t)
	d.finish(0, 12)
	assert.EqualValues(t, 1, d.read(wire.RegJobState)&1)
	d.finish(1, 12)
	d.sends("status done v12 to rank 0, missing 0", "status done v12 to rank 1, missing 0")
	assert.Zero(t, d.read(wire.RegJobState)&1)
	assert.EqualValues(t, 0b100, d.read(wire.RegJobEvicted), "of the last one")
	d.finish(1, 12)
	d.sends("status done v12 to rank 1, missing 0")
	d.finish(2, 12)
	d.sends("status evicted v12 to rank 2, missing 0")
}

func TestJobEndsWhenAllUnfinishedRanksAreEvicted(t *testing.T) {
	d := newDeadlines(t, threePartial)
	d.all(10, 1)
	d.data(0, 12, 1) // refused: ranks 1 and 2 are not done with 10
	d.out(AllPorts)
	d.finish(0, 11)
	d.finish(1, 11)
	d.sends("status done v11 to rank 0, missing 0", "status done v11 to rank 1, missing 0")
	d.late()
	assert.EqualValues(t, 0b110, d.read(wire.RegJobEvicted))
	assert.Zero(t, d.read(wire.RegJobState)&1, "rank 0 is left, and has finished")
	d.sends("status evicted v10 to rank 0, missing 6", "status evicted v10 to rank 1, missing 6", "status evicted v10 to rank 2, missing 6")
	d.finish(0, 11)
	d.sends("status done v11 to rank 0, missing 0")
}

func TestEvictedRanksReturnInANewEpoch(t *testing.T) {
	d := evicted(t)
	assert.Equal(t, wire.CodeDone, d.trySetUp(1, threePartial), "the same again changes nothing")
	assert.EqualValues(t, 0b100, d.read(wire.RegJobEvicted))
	d.setUp(2, threePartial)
	assert.Zero(t, d.read(wire.RegJobEvicted))
	for rank := range uint8(3) {
		d.data(rank, 10, 1)
	}
	p := d.next()
	assert.Equal(t, "result v10 to 7 = 3", line(&p))
	assert.Zero(t, p.Flags&wire.FlagPartial)
}

func TestNoticeReplacesUnsentNotice(t *testing.T) {
	d := newHarnesses(t, 2)
	d[0].setUp(1, setup{ports: 0b111, chunk: 1, window: 1, first: 10, deadline: patience})
	d[1].setUp(1, setup{ports: 0b1110, chunk: 1, window: 1, first: 50, deadline: patience})
	d[0].data(0, 10, 1)
	d[0].data(1, 10, 1)
	d[0].late()
	var p Packet
	d[0].card.Next(AllPorts, &p)
	assert.Equal(t, "status overdue v10 to rank 0, missing 4", line(&p))
	d[1].data(0, 50, 1)
	d[1].data(1, 50, 1)
	d[1].card.Advance(patience - 3000) // job 1's is due before job 0's next
	d[1].card.Advance(3000)
	assert.Equal(t, []string{"1: status overdue v50 to rank 0, missing 4", "1: status overdue v50 to rank 1, missing 4"}, allOut(d[0].card, AllPorts))
}

func TestAnswersAndNoticesDoNotReplaceEachOther(t *testing.T) {
	d := newDeadlines(t, three)
	d.data(1, 10, 1)
	d.ask(1, 10)
	d.late()
	d.sends("status wait v10 to rank 1, missing 5", "status overdue v10 to rank 1, missing 5")
}

func TestANoticeWaitsForItsPorts(t *testing.T) {
	d := newDeadlines(t, three)
	d.data(0, 10, 1)
	d.data(1, 10, 1)
	d.late()
	assert.Empty(t, d.out(0b100))
	assert.True(t, d.card.Pending())
	assert.Equal(t, []string{"status overdue v10 to rank 1, missing 4"}, d.out(0b010))
	assert.Equal(t, []string{"status overdue v10 to rank 0, missing 4"}, d.out(0b001))
	assert.False(t, d.card.Pending())
}

func TestTheEndOfAJobDropsItsNoticeAlone(t *testing.T) {
	for name, end := range map[string]func(*harness){
		"abort":    func(d *harness) { d.abort(1) },
		"set-up":   func(d *harness) { d.setUp(2, three) },
		"release":  func(d *harness) { d.write(wire.RegRelease, owner) },
		"reset":    func(d *harness) { d.write(wire.RegReset, owner) },
		"link":     func(d *harness) { d.card.LinkDown() },
		"none":     func(*harness) {},
		"another":  func(d *harness) { (&harness{T: d.T, card: d.card, number: 1}).setUp(1, of(1)) },
		"finished": func(d *harness) { d.finish(0, 10); d.finish(1, 10); d.finish(2, 10) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newHarnesses(t, 2)[0]
			d.setUp(1, three)
			d.data(1, 10, 1)
			d.late()
			end(d)
			lines := d.out(AllPorts)
			if name == "none" || name == "another" || name == "finished" {
				assert.Contains(t, lines, "status overdue v10 to rank 1, missing 5")
			} else {
				assert.Empty(t, lines)
			}
		})
	}
}

func TestDeadlinesOfJobsAreTheirOwn(t *testing.T) {
	d := newHarnesses(t, 2)
	d[0].setUp(1, threePartial)
	d[1].setUp(1, three)
	for _, d := range d {
		d.data(0, 10, 1)
	}
	d[0].late()
	assert.Equal(t, []string{"1: status overdue v10 to rank 0, missing 6", "0: result v10 to 7 = 1"}, allOut(d[0].card, AllPorts))
}

func TestEveryCallChecksTheDeadlines(t *testing.T) {
	for name, call := range map[string]func(*harness){
		"packet":   func(d *harness) { p := d.packet(wire.KindAsk, 0, 99); d.card.Handle(0, &p) },
		"register": func(d *harness) { d.read(wire.RegMagic) },
		"leaving":  func(d *harness) { d.ask(1, 10); d.card.cycles += 2000; d.next() },
		"advance":  func(d *harness) { d.card.Advance(0) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDeadlines(t, three)
			d.data(1, 10, 1)
			d.card.cycles += patience
			if name == "leaving" {
				d.card.cycles -= 2000
			}
			call(d)
			assert.EqualValues(t, 1, d.card.counters[countOverdue])
		})
	}
}

// lagsOf returns the JOB_LAG counts of a rank, by bucket.
func (d *harness) lagsOf(rank int) map[int]uint64 {
	counts := map[int]uint64{}
	for bucket := range wire.LagBuckets {
		if n := d.read(wire.LagAddr(int(d.number), rank, bucket)); n != 0 {
			counts[bucket] = n
		}
	}
	return counts
}

func TestLagsOfStoredContributions(t *testing.T) {
	d := newDeadlines(t, setup{ports: 0b11, chunk: 1, window: 4, first: 0})
	for i, c := range []struct {
		cycles uint64
		bucket int
	}{
		{1, 1}, {3, 1}, {4, 2}, {15, 2}, {16, 3}, {63, 3}, {64, 4}, {1<<28 - 1, 14}, {1 << 28, 15}, {1 << 40, 15},
	} {
		before := d.lagsOf(1)[c.bucket]
		vid := uint32(i)
		a, b := d.chunk(0, vid, 1), d.chunk(1, vid, 1)
		d.card.Handle(0, &a)
		d.card.Advance(c.cycles - 1)
		d.card.Handle(1, &b) // takes a cycle
		d.card.Handle(1, &b) // not stored
		d.out(AllPorts)
		assert.Equal(t, before+1, d.lagsOf(1)[c.bucket], "%d cycles", c.cycles)
	}
	assert.Equal(t, map[int]uint64{0: 10}, d.lagsOf(0), "first of every chunk")
	d.abort(1)
	assert.Equal(t, map[int]uint64{0: 10}, d.lagsOf(0), "a job's end keeps them")
	d.setUp(2, pair)
	assert.Empty(t, d.lagsOf(0))
	assert.Empty(t, d.lagsOf(1))
}

func TestLagRegisters(t *testing.T) {
	d := newHarnesses(t, 2)[0] // 4 ports
	for _, addr := range []uint32{wire.LagAddr(0, 0, 0), wire.LagAddr(1, 3, 15)} {
		code, value := d.card.Register(false, addr, 0)
		assert.Equal(t, wire.CodeDone, code, "%#x", addr)
		assert.Zero(t, value)
		assert.Equal(t, wire.CodeReadOnly, d.write(addr, 1), "%#x", addr)
	}
	for _, addr := range []uint32{wire.LagAddr(0, 4, 0), wire.LagAddr(2, 0, 0), wire.LagAddr(0, 0, 0) + 4, wire.LagAddr(15, 63, 15) + 8, wire.LagBase - 8} {
		for _, write := range []bool{false, true} {
			code, _ := d.card.Register(write, addr, 1)
			assert.Equal(t, wire.CodeBadAddress, code, "%#x", addr)
		}
	}
}
