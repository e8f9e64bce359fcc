// Several jobs on one card: slot allocation at set-up, separate lifetimes, and turns at shared
// resources.

package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// of returns a job of ports 0 and 1 with the given window, and chunks of one element.
func of(window uint64) setup { return setup{ports: 0b11, chunk: 1, window: window, first: 10} }

// slots returns the value of JOB_SLOTS.
func (d *harness) slots() span {
	value := d.read(wire.RegJobSlots)
	return span{int(value & 0xffff), int(value >> 16)}
}

// allOut returns the packets of all jobs that leave while only the ports in ready can take packets.
// Each line begins with the number of its job.
func allOut(card *Card, ready uint64) []string {
	lines := []string{}
	for p := (Packet{}); ; {
		if _, ok := card.Next(ready, &p); !ok {
			return lines
		}
		lines = append(lines, fmt.Sprintf("%d: %s", p.Job, line(&p)))
	}
}

func TestJobsGetTheFirstSlotsThatAreFree(t *testing.T) {
	d := newHarnesses(t, 4) // 8 slots
	for number, window := range []uint64{1, 2, 1} {
		d[number].setUp(1, of(window))
	}
	assert.Equal(t, span{0, 2}, d[0].slots())
	assert.Equal(t, span{4, 4}, d[1].slots(), "counted from a multiple of 4")
	assert.Equal(t, span{2, 2}, d[2].slots(), "the first that are free")
	assert.Zero(t, d[3].slots())
	assert.Equal(t, wire.CodeNoSlots, d[3].trySetUp(1, of(1)))
	assert.Equal(t, uint64(3)<<32, d[3].read(wire.RegJobState), "nothing changed")

	d[0].abort(1)
	assert.Zero(t, d[0].slots())
	assert.Equal(t, wire.CodeNoSlots, d[3].trySetUp(1, of(2)), "two are free")
	d[3].setUp(1, of(1))
	assert.Equal(t, span{0, 2}, d[3].slots())
}

func TestSlotsThatAreFreeInPiecesHoldNoLargeWindow(t *testing.T) {
	d := newHarnesses(t, 4)
	for _, d := range d {
		d.setUp(1, of(1))
	}
	d[1].abort(1)
	d[2].abort(1) // 2..5 are free, but not aligned for four slots
	assert.Equal(t, wire.CodeNoSlots, d[1].trySetUp(2, of(2)))
	d[3].abort(1)
	d[1].setUp(2, of(2))
	assert.Equal(t, span{4, 4}, d[1].slots())
	d[2].setUp(2, of(1))
	assert.Equal(t, span{2, 2}, d[2].slots())
}

func TestTheSlotsOfTheJobThatIsReplacedAreFree(t *testing.T) {
	d := newHarnesses(t, 2)
	d[0].setUp(1, of(4)) // all
	d[0].setUp(2, of(4))
	assert.Equal(t, span{0, 8}, d[0].slots())
	assert.Equal(t, wire.CodeNoSlots, d[1].trySetUp(1, of(1)))
	d[0].setUp(3, of(1))
	d[1].setUp(1, of(2))
	assert.Equal(t, span{4, 4}, d[1].slots())

	d[1].data(0, 10, 1)
	assert.Equal(t, wire.CodeNoSlots, d[1].trySetUp(2, of(4)))
	assert.Equal(t, uint64(1<<32|1<<16|0b11), d[1].read(wire.RegJobState), "what was refused replaces nothing")
	d[1].job = of(2)
	d[1].data(1, 10, 1)
	d[1].sends("result v10 to 3 = 2")
	d[0].abort(3)
	d[1].setUp(2, of(4))
	assert.Equal(t, span{0, 8}, d[1].slots())
}

func TestNoSlotsIsTheLastCheck(t *testing.T) {
	d := newHarnesses(t, 2)
	d[0].setUp(1, of(4))
	for _, c := range []struct {
		code wire.Code
		s    setup
	}{
		{wire.CodeBadPorts, setup{chunk: 1, window: 1}},
		{wire.CodeBadChunk, setup{ports: 1, window: 1}},
		{wire.CodeBadWindow, setup{ports: 1, chunk: 1}},
		{wire.CodeNoSlots, setup{ports: 1, chunk: 1, window: 1}},
	} {
		assert.Equal(t, c.code, d[1].trySetUp(1, c.s))
	}
	assert.Equal(t, wire.CodeDone, d[0].trySetUp(1, of(4)), "the same again needs no slots")
}

func TestJobNumbersEndAtJOBS(t *testing.T) {
	for _, jobs := range []int{1, 2, 16} {
		card, err := NewCard(Config{Lanes: 1, Ports: 4, Chunk: 4, Window: 16, Jobs: jobs})
		require.NoError(t, err)
		d := &harness{T: t, card: card, number: uint8(jobs - 1)}
		d.setUp(1, of(1))
		assert.EqualValues(t, jobs, d.read(wire.RegJobs))
		d.number = uint8(jobs)
		assert.Equal(t, wire.CodeBadJob, d.commit(1, 10))
		assert.Equal(t, wire.CodeBadJob, d.abort(1))
		d.data(0, 10, 1)
		assert.Equal(t, 1, d.count("bad_job"))
	}
}

func TestEachJobHasABlockOfRegisters(t *testing.T) {
	d := newHarnesses(t, 4)
	d[1].setUp(7, setup{ports: 0b1010, chunk: 1, window: 2, first: 10})
	d[1].finish(1, 10)
	p := d[1].chunk(0, 10, 0)
	p.Payload = words(inf)
	d[1].in(p)
	for _, d := range d {
		want := map[uint32]uint64{wire.RegJobState: uint64(d.number) << 32, wire.RegJobMembers: 0b1111}
		if d.number == 1 {
			want = map[uint32]uint64{
				wire.RegJobState: 1<<32 | 7<<16 | 0b11, wire.RegJobFinished: 0b10, wire.RegJobMembers: 0b1010, wire.RegJobSlots: 4 << 16,
				wire.RegJobNonfiniteIn: 1, wire.RegJobFirstIn: 1<<63 | 10,
			}
		}
		for _, r := range wire.Registers {
			if r.PerJob() {
				addr := wire.JobAddr(r.Addr, int(d.number))
				assert.Equal(t, want[r.Addr], d.read(r.Addr), "%s of job %d", r.Name, d.number)
				assert.Equal(t, wire.CodeReadOnly, d.write(addr, 1), "%s of job %d", r.Name, d.number)
			}
		}
	}
	for _, addr := range []uint32{0x1058, 0x1158, 0x13f8, 0x1400, 0x1f00} {
		for _, write := range []bool{false, true} {
			code, _ := d[0].card.Register(write, addr, 1)
			assert.Equal(t, wire.CodeBadAddress, code, "%#x", addr)
		}
	}
	d[1].abort(7)
	assert.EqualValues(t, 0b1010, d[1].read(wire.RegJobMembers), "of the last one")
}

func TestJobsHaveEpochsOfTheirOwn(t *testing.T) {
	d := newHarnesses(t, 2)
	d[0].setUp(100, of(1))
	d[1].setUp(5, of(1)) // older than 100
	assert.Equal(t, wire.CodeStaleEpoch, d[0].trySetUp(99, of(1)))
	d[1].setUp(6, of(1))
	assert.Equal(t, uint64(100<<16|0b11), d[0].read(wire.RegJobState))
	assert.Equal(t, uint64(1<<32|6<<16|0b11), d[1].read(wire.RegJobState))

	d[0].now, d[1].now = 6, 100
	d[0].data(0, 10, 1)
	d[1].data(0, 10, 1)
	assert.Equal(t, 2, d[0].count("bad_epoch"), "the other's")
	assert.Zero(t, d[0].count("stored"))
}

func TestJobsHaveMembersChunksAndVIDsOfTheirOwn(t *testing.T) {
	d := newHarnesses(t, 2)
	d[0].setUp(1, setup{ports: 0b0011, chunk: 1, window: 1, first: 10})
	d[1].setUp(1, setup{ports: 0b1110, chunk: 4, window: 2, first: 10}) // shares port 1
	for rank := range uint8(3) {
		d[1].data(rank, 10, 100)
	}
	d[0].both(10, 1, 2)
	assert.Equal(t, []string{"0: result v10 to 3 = 3", "1: result v10 to 7 = 300"}, allOut(d[0].card, AllPorts))
	for number, want := range []uint64{0b0011, 0b1110} {
		d[number].ask(0, 10)
		var p Packet
		ports, ok := d[0].card.Next(AllPorts, &p)
		require.True(t, ok)
		assert.EqualValues(t, number, p.Job)
		assert.Equal(t, want&-want, ports, "rank 0 of job %d", number)
		assert.Equal(t, want, uint64(d[number].read(wire.RegJobMembers)))
	}
}

func TestRefusalsGoToThePortsOfTheirNumber(t *testing.T) {
	d := newHarnesses(t, 2)
	d[0].setUp(1, setup{ports: 0b1000, chunk: 1, window: 1})
	d[0].abort(1)
	d[0].ask(0, 0) // rank 0 stays with port 3
	d[1].ask(0, 0) // no job yet: rank 0 is port 0
	assert.Equal(t, []string{"1: status bad_job v0 to rank 0, missing 0", "0: status bad_job v0 to rank 0, missing 0"}, allOut(d[0].card, AllPorts), "by port")
	for number, want := range map[uint8]int{0: 3, 1: 0, 2: 3, 3: 0, 254: 3, 255: 0} {
		port, ok := d[0].card.PortOf(number, 0)
		assert.True(t, ok)
		assert.Equal(t, want, port, "rank 0 of job %d", number)
		beyond := harness{T: t, card: d[0].card, number: number}
		beyond.ask(0, 0)
		assert.Equal(t, []string{fmt.Sprintf("%d: status bad_job v0 to rank 0, missing 0", number)}, allOut(d[0].card, 1<<want))
	}
	d[1].ask(3, 0)
	assert.Equal(t, []string{"1: status bad_job v0 to rank 3, missing 0"}, allOut(d[0].card, AllPorts))
}

func TestTheLimitOfRefusalsIsTheCards(t *testing.T) {
	d := newHarnesses(t, 2)
	for _, d := range d {
		p := d.packet(wire.KindAsk, d.number, 0)
		d.card.Handle(int(d.number), &p)
	}
	assert.Equal(t, []string{"0: status bad_job v0 to rank 0, missing 0"}, allOut(d[0].card, AllPorts))
}

func TestPacketsOfAnEndedJobDoNotReachTheNext(t *testing.T) {
	d := newHarnesses(t, 2)
	d[0].setUp(1, of(4))
	d[0].data(0, 10, 100)
	d[0].abort(1)
	d[1].setUp(1, of(4)) // all slots, the same VIDs
	d[1].data(0, 10, 1)

	d[0].data(1, 10, 100)
	d[0].finish(1, 10)
	assert.Equal(t, []string{"0: status bad_job v10 to rank 1, missing 0"}, allOut(d[0].card, AllPorts))
	d[1].ask(1, 10)
	d[1].sends("status send v10 to rank 1, missing 2")
	d[1].data(1, 10, 2)
	d[1].sends("result v10 to 3 = 3")
	assert.Zero(t, d[1].read(wire.RegJobFinished))
	assert.Equal(t, 2, d[0].count("bad_job"))
}

func TestJobIsSetUpAndEndsWhileAnotherRuns(t *testing.T) {
	d := newHarnesses(t, 2)
	d[0].setUp(1, of(2))
	d[0].data(0, 10, 1) // collecting
	d[0].both(11, 5, 6) // complete
	for epoch := range uint16(3) {
		d[1].setUp(epoch, of(2))
		d[1].both(10, 20, 30)
		d[1].card.Reduce()
		d[1].data(0, 11, 20)
		if epoch == 1 {
			d[1].abort(epoch) // otherwise the next set-up ends it
		}
	}
	assert.Equal(t, []string{"0: result v11 to 3 = 11", "1: result v10 to 3 = 50"}, allOut(d[0].card, AllPorts))
	d[0].data(1, 10, 2)
	d[0].sends("result v10 to 3 = 3")
	d[0].ask(1, 11)
	d[0].sends("replay v11 to 2 = 11")
	assert.Equal(t, uint64(1<<16|0b11), d[0].read(wire.RegJobState))
}

func TestFinishOfAllEndsOneJobAlone(t *testing.T) {
	d := newHarnesses(t, 2)
	for _, d := range d {
		d.setUp(1, of(1))
		d.both(10, 1, float32(d.number))
		d.card.Reduce()
		d.finish(0, 11)
	}
	d[0].finish(1, 11)
	assert.Equal(t, []string{
		"1: status done v11 to rank 0, missing 0", // at port 0, in place of job 0's
		"0: status done v11 to rank 1, missing 0",
		"1: result v10 to 3 = 2",
	}, allOut(d[0].card, AllPorts))
	assert.Equal(t, uint64(1<<16|0b10), d[0].read(wire.RegJobState))
	assert.Equal(t, uint64(1<<32|1<<16|0b11), d[1].read(wire.RegJobState))
	assert.EqualValues(t, 0b01, d[1].read(wire.RegJobFinished))
	d[0].finish(0, 11) // its answer was lost
	d[0].sends("status done v11 to rank 0, missing 0")
	d[1].finish(1, 11)
	d[1].sends("status done v11 to rank 1, missing 0")
	assert.Equal(t, uint64(1<<32|1<<16|0b10), d[1].read(wire.RegJobState))
}

func TestAJobsEndDropsItsOwnStatusesAlone(t *testing.T) {
	for name, end := range ends {
		d := newHarnesses(t, 2)
		d[0].setUp(1, of(1))
		d[1].setUp(1, of(1))
		d[0].ask(0, 10)
		d[1].ask(1, 10)
		end(d[1])
		want := []string{"0: status send v10 to rank 0, missing 3"}
		if name != "abort" && name != "new epoch" {
			want = []string{} // all jobs end
		}
		assert.Equal(t, want, allOut(d[0].card, AllPorts), name)
	}
}

func TestReleaseResetAndLinkDownEndAllJobs(t *testing.T) {
	for _, name := range []string{"release", "reset", "link down"} {
		d := newHarnesses(t, 4)
		for epoch, d := range d {
			d.setUp(uint16(10+epoch), of(1))
			d.both(10, 1, 1)
			d.card.Reduce()
			d.both(11, 1, 1)
		}
		ends[name](d[2])
		assert.False(t, d[0].card.Pending(), name)
		for _, d := range d {
			assert.Equal(t, uint64(d.number)<<32|uint64(d.now)<<16|0b10, d.read(wire.RegJobState), name)
			assert.Zero(t, d.slots(), name)
			d.setUp(d.now+1, of(1))
		}
	}
}

func TestResultsLeaveJobByJob(t *testing.T) {
	d := newHarnesses(t, 4)
	for _, d := range d[:3] {
		d.setUp(1, of(1))
	}
	for _, vid := range []uint32{10, 11} {
		d[0].both(vid, 1, 1)
	}
	d[2].both(10, 2, 2)
	d[2].both(11, 2, 2)
	d[1].both(11, 3, 3)
	assert.Equal(t, []string{
		"0: result v10 to 3 = 2", "1: result v11 to 3 = 6", "2: result v10 to 3 = 4",
		"0: result v11 to 3 = 2", "2: result v11 to 3 = 4",
	}, allOut(d[0].card, AllPorts))

	// The job with the last turn waits, even with a replay.
	d[2].ask(0, 10)
	d[1].both(10, 3, 3)
	d[1].ask(0, 11)
	d[0].ask(0, 11)
	assert.Equal(t, []string{
		"0: replay v11 to 1 = 2", "1: replay v11 to 1 = 6", "2: replay v10 to 1 = 4", "1: result v10 to 3 = 6",
	}, allOut(d[0].card, AllPorts))
}

func TestBlockedJobDoesNotBlockOthers(t *testing.T) {
	d := newHarnesses(t, 2)
	d[0].setUp(1, setup{ports: 0b0011, chunk: 1, window: 2, first: 10})
	d[1].setUp(1, setup{ports: 0b1100, chunk: 1, window: 2, first: 10})
	for vid := range uint32(3) {
		d[0].both(10+vid, 1, 1)
		d[1].both(10+vid, 2, 2)
	}
	assert.Equal(t, []string{"1: result v10 to 3 = 4", "1: result v11 to 3 = 4", "1: result v12 to 3 = 4"}, allOut(d[0].card, 0b1100))
	assert.Equal(t, []string{"0: result v10 to 3 = 2", "0: result v11 to 3 = 2", "0: result v12 to 3 = 2"}, allOut(d[0].card, AllPorts))
}

func TestTurns(t *testing.T) {
	todo := []int{3, 0, 1, 2}
	turn := turns{of: len(todo)}
	var order []int
	for {
		number, ok := turn.take(func(number int) bool { return todo[number] > 0 })
		if !ok {
			break
		}
		todo[number]--
		order = append(order, number)
		if len(order) == 3 {
			todo[1] = 2
		}
	}
	assert.Equal(t, []int{0, 2, 3, 0, 1, 3, 0, 1}, order)
}

func TestAJobCountsItsOwn(t *testing.T) {
	d := newHarnesses(t, 2)
	for _, d := range d {
		d.setUp(1, of(1))
	}
	d[1].elements(0, 10, inf)
	d[1].elements(1, 10, quietNaN)
	d[0].elements(1, 11, maximum)
	d[0].elements(0, 11, maximum)
	d[0].card.Reduce()
	want := []counted{
		{out: 1, overflow: 1, firstOut: 1<<63 | 11, firstOverflow: 1<<63 | 11},
		{in: 2, out: 1, firstIn: 1<<63 | 10, firstOut: 1<<63 | 10},
	}
	for number, want := range want {
		assert.Equal(t, want, d[number].counted(), "job %d", number)
	}
	d[0].setUp(2, of(1))
	assert.Zero(t, d[0].counted())
	assert.Equal(t, want[1], d[1].counted())
}

// neighbour performs random actions on the card of a job that it must not disturb.
func (d *harness) neighbour(r *rand.Rand, ports uint64) {
	vid := 10 + uint32(r.IntN(12))
	rank := uint8(r.IntN(3))
	switch r.IntN(40) {
	case 0:
		d.trySetUp(d.state().epoch+uint16(r.IntN(3)), setup{ports: ports, chunk: 1 + uint64(r.IntN(4)), window: 1 << r.IntN(2), first: 10})
	case 1:
		d.abort(d.now)
	case 2:
		d.finish(rank, vid)
	case 3, 4, 5:
		d.ask(rank, vid)
	case 6:
		d.elements(rank, vid, inf, quietNaN, maximum, maximum)
	default:
		d.data(rank, vid, r.Float32())
	}
}

// record takes all packets that leave through the ports in ready, and returns those of the harness's
// job, as if it were job 0.
func (d *harness) record(ready uint64, statuses bool) []Packet {
	packets := []Packet{}
	for {
		var p Packet
		if _, ok := d.card.Next(ready, &p); !ok {
			return packets
		}
		if p.Job == d.number && (statuses || p.Kind != wire.KindStatus) {
			p.Job = 0
			packets = append(packets, p)
		}
	}
}

// TestAJobDoesTheSameAloneAndAmongOthers plays the same random traffic to a job alone on its card,
// and to one whose card has other jobs that come, go and send at random. All its packets must be
// equal. For jobs with a common port, statuses are exempt, because only one waits at a port.
func TestAJobDoesTheSameAloneAndAmongOthers(t *testing.T) {
	for seed := range uint64(20) {
		for _, others := range []uint64{0b1100, 0b0110} {
			r := rand.New(rand.NewPCG(seed, others))
			alone, among := newHarness(t), newHarnesses(t, 4)
			number := uint8(r.IntN(4))
			both := []*harness{alone, among[number]}
			for _, other := range among { // from now on its ranks belong to those ports
				other.setUp(0, setup{ports: others, chunk: 1, window: 1})
				other.abort(0)
			}
			alone.setUp(0, setup{ports: others, chunk: 1, window: 1})
			packets := 0
			for step := range 400 {
				if step%100 == 0 {
					s := setup{ports: 0b0011, chunk: 1 + uint64(r.IntN(4)), window: 1 << (1 - step/200), first: 10}
					for _, d := range both {
						d.setUp(uint16(step+1), s)
					}
				}
				for range r.IntN(4) {
					if other := among[r.IntN(4)]; other.number != number {
						other.neighbour(r, others)
					}
				}
				vid, rank, x := 10+uint32(step%100/8+r.IntN(3)), uint8(r.IntN(2)), r.Float32()
				ready := []uint64{AllPorts, 0b1101, 0b1110, 0b1100}[r.IntN(4)]
				what := r.IntN(10)
				var left [2][]Packet
				for i, d := range both {
					switch what {
					case 0:
						d.ask(rank, vid)
					case 1:
						d.elements(rank, vid, slices.Repeat([]uint32{inf}, int(d.job.chunk))...)
					default:
						d.data(rank, vid, x)
					}
					left[i] = d.record(ready, others&0b0011 == 0)
				}
				require.Equal(t, left[0], left[1], "seed %d, step %d", seed, step)
				require.Equal(t, alone.counted(), among[number].counted())
				packets += len(left[0])
			}
			assert.Greater(t, packets, 30, "seed %d", seed)
		}
	}
}
