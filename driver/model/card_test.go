// The checks before the slot rules, refusals and their answers, finish, and the state after a job's
// end.

package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// spoil makes one field of a data packet wrong. Entries are in the order of the checks: each must
// be reported before those after it.
var spoil = []struct {
	code     wire.Code
	answered bool
	apply    func(*Packet)
}{
	{wire.CodeBadVersion, true, func(p *Packet) { p.Version = 1 }},
	{wire.CodeBadKind, true, func(p *Packet) { p.Kind = wire.KindResult }},
	{wire.CodeBadJob, true, func(p *Packet) { p.Job = 1 }},
	{wire.CodeBadEpoch, true, func(p *Packet) { p.Epoch++ }},
	{wire.CodeBadRank, false, func(p *Packet) { p.Rank = 1 }},
	{wire.CodeBadFormat, true, func(p *Packet) { p.Format = wire.Int32 }},
	{wire.CodeBadLength, true, func(p *Packet) { p.Length = 2 }},
	{wire.CodePayloadCRC, false, func(p *Packet) { p.Bad = true }},
	{wire.CodeLate, true, func(p *Packet) { p.VID = 0 }},
}

func TestEachCheckRefuses(t *testing.T) {
	for _, c := range spoil {
		d := newPair(t)
		p := d.chunk(0, 10, 1)
		c.apply(&p)
		d.card.Handle(0, &p)
		assert.Equal(t, 1, d.count(c.code.String()), c.code.String())
		assert.Zero(t, d.count("stored"))
		var out Packet
		ports, ok := d.card.Next(AllPorts, &out)
		assert.Equal(t, c.answered, ok, c.code.String())
		if ok {
			assert.Equal(t, uint64(1), ports, "the port it came by")
			assert.Equal(t, Header{
				Version: 2, Kind: wire.KindStatus, Job: p.Job, Epoch: p.Epoch,
				Rank: p.Rank, Code: c.code, VID: p.VID,
			}, out.Header)
		}
	}
}

func TestChecksInTheirOrder(t *testing.T) {
	for first := range spoil {
		d := newPair(t)
		p := d.chunk(0, 10, 1)
		for _, c := range spoil[first:] {
			c.apply(&p)
		}
		d.card.Handle(0, &p)
		assert.Equal(t, 1, d.count(spoil[first].code.String()), "everything from %v on is wrong", spoil[first].code)
	}
}

func TestAskAndFinishAreCheckedToo(t *testing.T) {
	for _, kind := range []wire.Kind{wire.KindAsk, wire.KindFinish} {
		for _, c := range spoil[:5] {
			if c.code == wire.CodeBadKind {
				continue
			}
			d := newPair(t)
			p := d.packet(kind, 0, 10)
			c.apply(&p)
			d.card.Handle(0, &p)
			assert.Equal(t, 1, d.count(c.code.String()), "%v %v", kind, c.code)
			assert.Zero(t, d.count("asks")+d.count("finishes"))
		}
	}
}

func TestRegisterKindsAreNoPacketsOfAPort(t *testing.T) {
	d := newPair(t)
	d.in(d.packet(wire.KindRegRead, 0, 0))
	d.sends("status bad_kind v0 to rank 0, missing 0")
}

func TestEmptyAndForeignPayloadsAreBadLength(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 1, chunk: 2, window: 1})
	for _, payload := range [][]byte{nil, words(0), words(0, 0, 0), words(0, 0)[:7]} {
		p := d.chunk(0, 0, 0)
		p.Payload = payload
		d.in(p)
	}
	p := d.chunk(0, 0, 0)
	p.Length, p.Payload = 4, words(0, 0, 0, 0) // the card's chunk, not the job's
	d.in(p)
	assert.Equal(t, 5, d.count("bad_length"))
	assert.Zero(t, d.count("stored"))
}

func TestRanksBelongToPorts(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 0b1010, chunk: 1, window: 1}) // rank 0 at port 1, rank 1 at port 3
	for port, rank := range []uint8{0, 1, 0, 2} {
		p := d.chunk(rank, 0, 1)
		d.card.Handle(port, &p)
	}
	assert.Equal(t, 4, d.count("bad_rank"))
	d.sends()
	for rank, port := range []int{1, 3} {
		p := d.chunk(uint8(rank), 0, 1)
		d.card.Handle(port, &p)
	}
	d.sends("result v0 to 3 = 2")
}

func TestARefusalIsAnsweredOnlyToAPortOfItsRank(t *testing.T) {
	d := newHarness(t) // no job yet: rank r belongs to port r
	p := d.packet(wire.KindAsk, 2, 0)
	d.card.Handle(1, &p)
	d.sends()
	d.card.Handle(2, &p)
	d.sends("status bad_job v0 to rank 2, missing 0")
	d.setUp(1, setup{ports: 0b1000, chunk: 1, window: 1})
	require.Equal(t, wire.CodeDone, d.abort(1))
	d.in(d.packet(wire.KindAsk, 0, 0)) // port 3 keeps rank 0
	port, ok := d.card.PortOf(0, 0)
	assert.Equal(t, 3, port)
	assert.True(t, ok)
	d.sends("status bad_job v0 to rank 0, missing 0")
	d.in(d.packet(wire.KindAsk, 2, 0)) // no port has rank 2 any more
	d.sends()
	assert.Equal(t, 4, d.count("bad_job"))
}

func TestRefusalsAreAnsweredOnceIn1024Cycles(t *testing.T) {
	d := newPair(t)
	p := d.packet(wire.KindAsk, 0, 3)
	d.card.Handle(0, &p) // takes a cycle, in which it is answered
	d.sends("status late v3 to rank 0, missing 0")
	d.card.Advance(1021) // the status took a cycle
	q := d.packet(wire.KindAsk, 1, 3)
	d.card.Handle(1, &q)
	d.sends() // 1,023 cycles later; the limit covers the whole card
	d.card.Handle(1, &q)
	d.sends("status late v3 to rank 1, missing 0")
	assert.Equal(t, 3, d.count("late"), "all are counted")
}

func TestOtherAnswersHaveNoLimit(t *testing.T) {
	d := newPair(t)
	for range 3 {
		p := d.packet(wire.KindFinish, 0, 10)
		d.card.Handle(0, &p)
		d.sends("status done v10 to rank 0, missing 0")
	}
}

func TestALaterStatusOfAPortReplacesAnEarlier(t *testing.T) {
	d := newPair(t)
	d.ask(0, 10)
	d.ask(1, 10)
	d.ask(0, 11)
	d.sends("status send v11 to rank 0, missing 3", "status send v10 to rank 1, missing 3")
	assert.Equal(t, 2, d.count("statuses"))
}

func TestAStatusWaitsForItsPort(t *testing.T) {
	d := newPair(t)
	d.ask(0, 10)
	d.ask(1, 10)
	assert.Equal(t, []string{"status send v10 to rank 1, missing 3"}, d.out(0b10))
	assert.True(t, d.card.Pending())
	d.sends("status send v10 to rank 0, missing 3")
	assert.False(t, d.card.Pending())
}

func TestFinishTwice(t *testing.T) {
	d := newPair(t)
	d.finish(1, 10)
	d.sends("status done v10 to rank 1, missing 0")
	d.finish(1, 10)
	d.sends("status done v10 to rank 1, missing 0")
	assert.Equal(t, uint64(0b10), d.read(wire.RegJobFinished))
	assert.Equal(t, uint64(1<<16|0b11), d.read(wire.RegJobState))
	assert.Equal(t, 2, d.count("finishes"))
	d.both(10, 1, 1) // the job goes on
	d.sends("result v10 to 3 = 2")
}

func TestFinishOfAllEndsTheJob(t *testing.T) {
	d := newPair(t)
	d.both(10, 1, 1)
	d.finish(0, 11)
	d.finish(1, 11)
	d.sends("status done v11 to rank 0, missing 0", "status done v11 to rank 1, missing 0")
	assert.Equal(t, uint64(1<<16|0b10), d.read(wire.RegJobState))
	d.data(0, 11, 1)
	d.sends("status bad_job v11 to rank 0, missing 0")
}

func TestFinishAfterTheEnd(t *testing.T) {
	d := newPair(t)
	d.finish(0, 10)
	d.finish(1, 10)
	d.sends("status done v10 to rank 0, missing 0", "status done v10 to rank 1, missing 0")
	d.finish(0, 10)
	d.sends("status done v10 to rank 0, missing 0")
	assert.Equal(t, 3, d.count("finishes"))

	p := d.packet(wire.KindFinish, 0, 10)
	d.card.Handle(1, &p)
	assert.Equal(t, 1, d.count("bad_rank"))
	d.now = 2
	d.finish(0, 10)
	d.sends("status bad_job v10 to rank 0, missing 0")
	d.now = 1
	d.ask(0, 10)
	d.sends("status bad_job v10 to rank 0, missing 0")
}

func TestFinishAfterAnAbortIsRefused(t *testing.T) {
	d := newPair(t)
	d.finish(0, 10)
	d.sends("status done v10 to rank 0, missing 0")
	require.Equal(t, wire.CodeDone, d.abort(1))
	d.finish(0, 10)
	d.sends("status bad_job v10 to rank 0, missing 0")
}

func TestFinishOfTheJobBeforeIsRefused(t *testing.T) {
	d := newPair(t)
	d.finish(0, 10)
	d.finish(1, 10)
	d.out(AllPorts)
	d.setUp(2, pair)
	d.now = 1
	d.finish(0, 10)
	d.sends("status bad_epoch v10 to rank 0, missing 0")
	assert.Zero(t, d.read(wire.RegJobFinished))
}

func TestFinishOfAnAbortedJobAfterAFinishedOneIsRefused(t *testing.T) {
	d := newPair(t)
	d.finish(0, 10)
	d.finish(1, 10)
	d.out(AllPorts)
	d.setUp(2, pair)
	require.Equal(t, wire.CodeDone, d.abort(2))
	d.finish(0, 10)
	d.sends("status bad_job v10 to rank 0, missing 0")
}

// ends lists the ways to end a job, except the finish of all members.
var ends = map[string]func(*harness){
	"abort":     func(d *harness) { require.Equal(d, wire.CodeDone, d.abort(d.now)) },
	"release":   func(d *harness) { require.Equal(d, wire.CodeDone, d.write(wire.RegRelease, owner)) },
	"reset":     func(d *harness) { require.Equal(d, wire.CodeDone, d.write(wire.RegReset, owner)) },
	"link down": func(d *harness) { d.card.LinkDown() },
	"new epoch": func(d *harness) { d.now++; require.Equal(d, wire.CodeDone, d.commit(d.now, 10)) },
}

func TestAnEndedJobLeavesNothingBehind(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			d := newPair(t)
			d.both(10, 1, 1)
			d.card.Reduce()  // 10 is owed
			d.both(11, 2, 2) // 11 is being reduced
			d.finish(0, 11)  // a status waits
			end(d)
			d.sends()
			assert.False(t, d.card.Pending())
			assert.Zero(t, d.read(wire.RegJobFinished))
			assert.EqualValues(t, d.now, d.read(wire.RegJobState)>>16, "the epoch stays")

			d.setUp(d.now+1, pair)
			d.ask(0, 10)
			d.sends("status send v10 to rank 0, missing 3")
			d.data(0, 10, 3)
			d.data(1, 10, 4)
			d.sends("result v10 to 3 = 7")
			d.data(0, 12, 1) // no rank is done with earlier chunks
			d.sends("status not_ready v12 to rank 0, missing 0")
		})
	}
}

func TestAnEndedJobOfWhichNothingIsSetUp(t *testing.T) {
	for name, end := range ends {
		if name == "new epoch" {
			continue
		}
		d := newPair(t)
		end(d)
		assert.Equal(t, uint64(1<<16|0b10), d.read(wire.RegJobState), name)
		d.data(0, 10, 1)
		d.sends("status bad_job v10 to rank 0, missing 0")
	}
}

func TestAnotherChunkSizeForTheNextJob(t *testing.T) {
	d := newHarness(t)
	for epoch, chunk := range []uint64{4, 1, 3, 2} {
		d.setUp(uint16(epoch), setup{ports: 0b11, chunk: chunk, window: 4})
		d.both(0, 1, float32(chunk))
		var out Packet
		_, ok := d.card.Next(AllPorts, &out)
		require.True(t, ok)
		want := []uint32{f(float32(chunk) + 1), f(float32(chunk) + 1), f(float32(chunk) + 1), f(float32(chunk) + 1)}
		assert.Equal(t, want[:chunk], elements(out.Payload))
	}
}

func TestSixtyFourPorts(t *testing.T) {
	card, err := NewCard(Config{Lanes: 1, Ports: 64, Chunk: 1, Window: 1})
	require.NoError(t, err)
	d := &harness{T: t, card: card}
	d.setUp(1, setup{ports: ^uint64(0), chunk: 1, window: 1})
	for rank := range uint8(64) {
		d.data(63-rank, 0, 1)
	}
	d.sends("result v0 to ffffffffffffffff = 64")
}
