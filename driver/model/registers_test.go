// Every rule of section 4.

package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

func TestIdentification(t *testing.T) {
	card, err := NewCard(Config{Lanes: 16, Ports: 4, Chunk: 1008, Window: 8, Shell: wire.ShellStream, Link: 32, Latency: 23})
	require.NoError(t, err)
	d := &harness{T: t, card: card}
	for addr, want := range map[uint32]uint64{
		0x000: 0x5952545542495254, // "TRIBUTRY"
		0x008: 2,
		0x010: 0x135d5bf502aa5a28, // FNV-1a by another program
		0x018: 16,
		0x020: 4,
		0x028: 0x0101, // fp32 in and out
		0x030: 1,      // tree
		0x038: 1,      // stream
		0x040: 1008,
		0x048: 8,
		0x050: 1,
		0x058: 32,
		0x060: 23,
	} {
		assert.Equal(t, want, d.read(addr), "%#x", addr)
		assert.Equal(t, wire.CodeReadOnly, d.write(addr, 0), "%#x", addr)
	}
	assert.Equal(t, card.Config().Hash(), d.read(wire.RegConfigHash))
}

func TestEveryRegisterAnswersAsTheTableSays(t *testing.T) {
	d := newHarness(t)
	for _, r := range wire.Registers {
		code, value := d.card.Register(false, r.Addr, 0)
		assert.Equal(t, wire.CodeDone, code, r.Name)
		if r.Access == wire.WriteOnly {
			assert.Zero(t, value, r.Name)
		}
		code, value = d.card.Register(true, r.Addr, 1)
		if r.Access == wire.ReadOnly {
			assert.Equal(t, wire.CodeReadOnly, code, r.Name)
			assert.Zero(t, value, r.Name)
		} else {
			assert.NotEqual(t, wire.CodeReadOnly, code, r.Name)
		}
	}
	for i := range wire.Counters {
		assert.Equal(t, wire.CodeReadOnly, d.write(wire.CounterAddr(i), 1))
		assert.Zero(t, d.read(wire.CounterAddr(i)))
	}
}

func TestAddressesThatAreNotInTheTable(t *testing.T) {
	d := newHarness(t)
	for _, addr := range []uint32{1, 4, 7, 0x068, 0x0f8, 0x128, 0x238, 0x240, 0x3f8, wire.CounterBase + 4,
		wire.CounterAddr(len(wire.Counters)), wire.CounterAddr(0) + 1<<31, 0xff8, 0x1004, 0x1058, 0x10f8, 0x1100, 0x1150, 0x1fff8, 0x20004, 0x20200, 0x22000, 0x40000, 0xfffffff8} {
		for _, write := range []bool{false, true} {
			code, value := d.card.Register(write, addr, 1)
			assert.Equal(t, wire.CodeBadAddress, code, "%#x", addr)
			assert.Zero(t, value)
		}
	}
}

func TestOwner(t *testing.T) {
	d := newHarness(t)
	for _, c := range []struct{ write, holds uint64 }{
		{0, 0}, {7, 7}, {7, 7}, {8, 7}, {0, 7},
	} {
		code, value := d.card.Register(true, wire.RegOwner, c.write)
		assert.Equal(t, wire.CodeDone, code)
		assert.Equal(t, c.holds, value, "after writing %d", c.write)
	}
}

func TestRelease(t *testing.T) {
	d := newHarness(t)
	assert.Equal(t, wire.CodeDone, d.write(wire.RegRelease, 5), "nobody owns the card")
	d.setUp(1, pair)
	assert.Equal(t, wire.CodeBusy, d.write(wire.RegRelease, owner+1))
	assert.EqualValues(t, 1, d.read(wire.RegJobState)&1, "the job goes on")
	assert.Equal(t, wire.CodeDone, d.write(wire.RegRelease, owner))
	assert.Zero(t, d.read(wire.RegOwner))
	assert.Zero(t, d.read(wire.RegJobState)&1)
	assert.Equal(t, wire.CodeDone, d.write(wire.RegRelease, owner), "again")
	assert.EqualValues(t, owner, d.read(wire.RegJobToken), "what is staged stays")
}

func TestReset(t *testing.T) {
	d := newPair(t)
	d.data(0, 10, 1)
	assert.Equal(t, wire.CodeBusy, d.write(wire.RegReset, owner+1))
	assert.Equal(t, 1, d.count("stored"))
	before := d.read(wire.RegCycles)
	assert.Equal(t, wire.CodeDone, d.write(wire.RegReset, owner))
	for _, r := range []uint32{wire.RegOwner, wire.RegJobToken, wire.RegJobPorts, wire.RegJobChunk, wire.RegJobWindow, wire.RegJobDeadline} {
		assert.Zero(t, d.read(r), "%#x", r)
	}
	for _, c := range wire.Counters {
		assert.Zero(t, d.count(c.Name), c.Name)
	}
	assert.Equal(t, uint64(1<<16|0b10), d.read(wire.RegJobState), "the last epoch is kept")
	assert.Greater(t, d.read(wire.RegCycles), before, "cycles run on")
	assert.Equal(t, wire.CodeDone, d.write(wire.RegReset, 99), "nobody owns the card: any token")
}

func TestCyclesCountBeats(t *testing.T) {
	d := newHarness(t)
	d.setUp(1, setup{ports: 1, chunk: 4, window: 1})
	start := d.read(wire.RegCycles)
	p := d.chunk(0, 0, 1)
	d.card.Handle(0, &p) // 4 beats
	d.sends("result v0 to 1 = 1")
	assert.Equal(t, start+4+4+1, d.read(wire.RegCycles))
	d.card.Advance(100)
	assert.Equal(t, start+4+4+2+100, d.read(wire.RegCycles))
}

func TestCommitChecksInTheirOrder(t *testing.T) {
	// Each step corrects one field, starting from a commit with all of them wrong.
	d := newHarness(t)
	d.write(wire.RegOwner, owner)
	d.stage(setup{ports: 1, chunk: 1, window: 1})
	require.Equal(t, wire.CodeDone, d.commit(100, 0))
	d.abort(100)

	const wrongJob = 1 << 48
	command := uint64(wrongJob | 100<<32)
	d.stage(setup{ports: 0, chunk: 5, window: 3})
	d.write(wire.RegJobToken, owner+1)
	try := func(want wire.Code) {
		t.Helper()
		assert.Equal(t, want, d.write(wire.RegJobCommit, command))
		assert.Equal(t, uint64(100<<16|0b10), d.read(wire.RegJobState), "nothing changes")
	}
	try(wire.CodeBusy)
	d.write(wire.RegJobToken, owner)
	try(wire.CodeBadJob)
	command = 100 << 32
	try(wire.CodeStaleEpoch)
	command = 101 << 32
	try(wire.CodeBadPorts)
	d.write(wire.RegJobPorts, 0b10001) // port 4 of 4
	try(wire.CodeBadPorts)
	d.write(wire.RegJobPorts, 0b1001)
	try(wire.CodeBadChunk)
	d.write(wire.RegJobChunk, 4)
	try(wire.CodeBadWindow)
	d.write(wire.RegJobWindow, 4)
	assert.Equal(t, wire.CodeDone, d.write(wire.RegJobCommit, command))
	assert.Equal(t, uint64(101<<16|0b11), d.read(wire.RegJobState))
}

func TestCommitNeedsAnOwner(t *testing.T) {
	d := newHarness(t)
	d.stage(pair)
	assert.Equal(t, wire.CodeBusy, d.commit(1, 0))
	d.write(wire.RegJobToken, 0)
	assert.Equal(t, wire.CodeBusy, d.commit(1, 0), "OWNER is zero, and so is the token")
	assert.Equal(t, wire.CodeBusy, d.abort(1))
}

func TestCommitChunksAndWindows(t *testing.T) {
	card, err := NewCard(Config{Lanes: 4, Ports: 2, Chunk: 24, Window: 8})
	require.NoError(t, err)
	d := &harness{T: t, card: card}
	d.write(wire.RegOwner, owner)
	epoch := uint16(0)
	for _, c := range []struct {
		chunk, window uint64
		code          wire.Code
	}{
		{0, 1, wire.CodeBadChunk}, {2, 1, wire.CodeBadChunk}, {6, 1, wire.CodeBadChunk}, {28, 1, wire.CodeBadChunk},
		{1 << 32, 1, wire.CodeBadChunk}, {1<<32 + 4, 1, wire.CodeBadChunk},
		{4, 0, wire.CodeBadWindow}, {4, 3, wire.CodeBadWindow}, {4, 6, wire.CodeBadWindow}, {4, 16, wire.CodeBadWindow},
		{4, 1 << 32, wire.CodeBadWindow},
		{4, 1, wire.CodeDone}, {8, 2, wire.CodeDone}, {24, 8, wire.CodeDone},
	} {
		epoch++
		d.stage(setup{ports: 1, chunk: c.chunk, window: c.window})
		assert.Equal(t, c.code, d.commit(epoch, 0), "chunk %d, window %d", c.chunk, c.window)
	}
}

func TestEpochInUse(t *testing.T) {
	d := newPair(t)
	d.data(0, 10, 1)
	assert.Equal(t, wire.CodeDone, d.commit(1, 10), "the same again changes nothing")
	d.data(1, 10, 1)
	d.sends("result v10 to 3 = 2")

	assert.Equal(t, wire.CodeEpochInUse, d.commit(1, 11))
	for _, other := range []setup{
		{ports: 0b111, chunk: 1, window: 1}, {ports: 0b11, chunk: 2, window: 1}, {ports: 0b11, chunk: 1, window: 2},
	} {
		d.stage(other)
		assert.Equal(t, wire.CodeEpochInUse, d.commit(1, 10))
	}
	d.stage(setup{}) // epoch_in_use is checked before the parameters
	assert.Equal(t, wire.CodeEpochInUse, d.commit(1, 10))
	d.ask(0, 10)
	d.sends("replay v10 to 1 = 2")
}

func TestTheSameEpochAgainAfterTheEndIsStale(t *testing.T) {
	d := newPair(t)
	d.abort(1)
	assert.Equal(t, wire.CodeStaleEpoch, d.commit(1, 10))
}

func TestEpochsAreSerialNumbers(t *testing.T) {
	for _, c := range []struct {
		last, next uint16
		code       wire.Code
	}{
		{5, 6, wire.CodeDone}, {5, 4, wire.CodeStaleEpoch}, {5, 5 + 0x7fff, wire.CodeDone}, {5, 5 + 0x8000, wire.CodeStaleEpoch},
		{0xffff, 0, wire.CodeDone}, {0, 0xffff, wire.CodeStaleEpoch}, {0x9000, 0x0fff, wire.CodeDone}, {0x9000, 0x1000, wire.CodeStaleEpoch},
	} {
		d := newHarness(t)
		d.setUp(c.last, pair) // the first epoch may be any
		assert.Equal(t, c.code, d.commit(c.next, 10), "%#x after %#x", c.next, c.last)
		want := c.last
		if c.code == wire.CodeDone {
			want = c.next
		}
		assert.Equal(t, uint64(want)<<16|0b11, d.read(wire.RegJobState), "a refused epoch changes nothing")
	}
}

func TestEpochsOutliveResetAndLinkDown(t *testing.T) {
	d := newHarness(t)
	d.setUp(9, pair)
	d.write(wire.RegReset, owner)
	d.write(wire.RegOwner, owner)
	d.stage(pair)
	assert.Equal(t, wire.CodeStaleEpoch, d.commit(9, 0))
	d.card.LinkDown()
	d.write(wire.RegOwner, owner)
	assert.Equal(t, wire.CodeStaleEpoch, d.commit(8, 0))
	assert.Equal(t, wire.CodeDone, d.commit(10, 0))
}

func TestAbort(t *testing.T) {
	d := newHarness(t)
	d.write(wire.RegOwner, owner)
	d.write(wire.RegJobToken, owner)
	assert.Equal(t, wire.CodeDone, d.abort(77), "no job is set up")
	assert.Zero(t, d.read(wire.RegJobState))
	d.setUp(1, pair)
	d.write(wire.RegJobToken, 1)
	assert.Equal(t, wire.CodeBusy, d.abort(1))
	d.write(wire.RegJobToken, owner)
	assert.Equal(t, wire.CodeBadJob, d.write(wire.RegJobAbort, 2<<48|1<<32))
	assert.Equal(t, wire.CodeBadEpoch, d.abort(2))
	assert.Equal(t, uint64(1<<16|0b11), d.read(wire.RegJobState))
	assert.Equal(t, wire.CodeDone, d.abort(1))
	assert.Equal(t, uint64(1<<16|0b10), d.read(wire.RegJobState))
	assert.Equal(t, wire.CodeDone, d.abort(1), "again")
	assert.Zero(t, d.count("bad_job")+d.count("bad_epoch"), "the counters count packets")
}

func TestLinkDown(t *testing.T) {
	d := newPair(t)
	d.data(0, 10, 1)
	d.card.LinkDown()
	assert.Zero(t, d.read(wire.RegOwner))
	assert.Equal(t, 1, d.count("link_down"))
	assert.Equal(t, 1, d.count("stored"), "the counters stay")
	assert.EqualValues(t, owner, d.read(wire.RegJobToken), "what is staged stays")
}
