package ethernet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
	"tributary/verify/system/connections"
)

// failure lets time pass until each rank has failed, and returns the error, which is the same at all. What
// the ranks have received until then is right.
func (a *allreduce) failure() *rc.RankError {
	a.Helper()
	require.True(a, a.room.Run(10*time.Minute, a.done), "not done in ten minutes")
	var first *rc.RankError
	for rank, w := range a.workers {
		_, _, err := w.Outcome()
		var got *rc.RankError
		require.ErrorAs(a, err, &got, "rank %d", rank)
		if first != nil {
			assert.Same(a, first, got)
		}
		first = got
	}
	return first
}

// TestRetriesEnd: a rank that is cut off fails every rank, in the time of the retries.
func TestRetriesEnd(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		a := newAllreduce(t, c)
		a.startAll()
		a.room.Run(20*time.Microsecond, a.done)
		cut := a.room.Now()
		a.cables[1].Loss = 1
		err := a.failure()
		var status *rc.StatusError
		require.ErrorAs(t, err, &status)
		assert.Contains(t, []rc.Status{rc.RetryExceeded, rc.Flushed}, status.Status, "for two ranks, one queue pair sends and receives")
		assert.LessOrEqual(t, a.room.Now(), cut+rc.Longest(c.job.Timeout, c.job.Retries))
	})
}

// TestARankNeverStarts: the retries of the others end, or the deadline. Nobody gets a sum without it.
func TestARankNeverStarts(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		a := newAllreduce(t, c)
		for rank := range a.workers[1:] {
			a.start(rank + 1)
		}
		a.failure()
		assert.Zero(t, a.count("chunks")+a.count("results"))
	})
}

// TestAQueuePairIsReset: a queue pair that is reset in the middle fails every rank.
func TestAQueuePairIsReset(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		a := newAllreduce(t, c)
		a.startAll()
		a.room.Run(20*time.Microsecond, a.done)
		_, take := a.workers[1].Pairs()
		take.Reset()
		a.failure()
	})
}

// TestTheJobEnds: the owner ends the job, or loses the card, in the middle. No rank takes another one's
// array for the sum: all fail.
func TestTheJobEnds(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		a := newAllreduce(t, c)
		a.startAll()
		a.room.Run(20*time.Microsecond, a.done)
		a.write(wire.RegRelease, token)
		a.failure()
		assert.Positive(t, a.count("bad_job"))
	})
}

// TestLies: a rank that lies stops no other connection's packets and makes no wrong element.
func TestLies(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		for _, lie := range connections.Lies {
			a := newAllreduce(t, c)
			a.workers[0].Tamper = lie.Tamper
			a.startAll()
			if lie.Harmless {
				a.finish()
				continue
			}
			a.failure()
			a.partsAreRight()
		}
	})
}

// partsAreRight checks that what ranks have received is the sum, or that they have not received it.
func (a *allreduce) partsAreRight() {
	a.Helper()
	want := a.sum()
	for rank, w := range a.workers {
		got := w.Received()
		for i, b := range got {
			if b != want[i] {
				require.Fail(a, "a wrong element", "rank %d, byte %d", rank, i)
			}
		}
	}
}

// TestPortsGoOn: whatever a rank sends on its connection, other traffic passes at once.
func TestPortsGoOn(t *testing.T) {
	r := newRing(t, 3, false)
	for range 2000 {
		assert.Empty(t, r.send(0, r.packet(0, 0)))
		p := r.packet(0, 1)
		p.BTH.Opcode = wire.OpReadRequest
		assert.Empty(t, r.send(0, p))
	}
	other := r.packet(0, 0)
	other.BTH.DestQP = 0x9999
	frame := other.Append(nil)
	assert.Equal(t, []left{{1, frame}, {2, frame}}, r.took(0, frame))
	r.sums(everyone(3, 0), r.contribute(0, 1, 2))
}

// FuzzRoCE: whatever frames come between those of three ranks, the sums that leave are right.
func FuzzRoCE(f *testing.F) {
	r := newRing(f, 3, false)
	f.Add(uint8(0), r.packet(0, 0).Append(nil))
	f.Add(uint8(1), r.packet(1, 3).Append(nil))
	for _, fault := range connections.Faults {
		port, frame := r.faulty(fault)
		f.Add(uint8(port), frame)
	}
	f.Fuzz(func(t *testing.T, port uint8, frame []byte) {
		r := newRing(t, 3, false)
		for vid := range uint32(2) {
			r.contribute(vid, 0)
		}
		body, _ := ethernet.CutFCS(frame)
		for _, l := range r.took(int(port)%3, ethernet.AppendFCS(append([]byte(nil), body...))) {
			p, err := rc.Parse(l.frame)
			if err == nil && connections.IsData(&p) && p.BTH.DestQP >= 0x50 && p.BTH.DestQP < 0x53 && p.To.IP == hostAddress(int(p.BTH.DestQP-0x50)).IP && p.BTH.Opcode != wire.OpCNP {
				t.Fatal("data of a registered connection leaves, and no sum is complete")
			}
		}
		for vid := range uint32(2) {
			r.contribute(vid, 1)
		}
		stored := r.count("stored")
		for vid := range uint32(2) {
			for _, l := range r.contribute(vid, 2) {
				_, err := rc.Parse(l.frame)
				require.NoError(t, err)
			}
		}
		if stored == 4 { // the frame was not a contribution
			assert.EqualValues(t, 6, r.count("results"))
		}
	})
}

// TestManyRandomFaults: a longer run with thousands of faults.
func TestManyRandomFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("many faults")
	}
	c := allreduceConfig{job: smallJob(3, true), firstPSN: wire.PSNs - 1500, seed: 7, faults: cable.Faults{Loss: 0.02, Twice: 0.05, Jitter: 5 * time.Microsecond, Damage: 0.02}}
	c.job.Bytes = 2000 * 256
	a := newAllreduce(t, c)
	a.startAll()
	a.finish()
	n := a.room.Counters()
	assert.Greater(t, n.Lost+n.Twice+n.Damaged, 1000)
}
