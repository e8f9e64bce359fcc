package rc_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/rc"
	"tributary/driver/virtual/ring"
	"tributary/driver/wire"
)

// around is a job without a card: each rank receives the previous one's array.
type around struct {
	testing.TB
	*ring.Ring
	job rc.Job
}

// newRing connects the workers of a job around a switch.
func newRing(t testing.TB, seed uint64, job rc.Job, faults cable.Faults) *around {
	t.Helper()
	stations := map[[6]byte]int{}
	for rank := range job.Ranks {
		stations[ring.Address(rank).MAC] = rank
	}
	r, err := ring.New(cable.NewSwitch(stations), ring.Config{Job: job, Seed: seed, Faults: faults})
	require.NoError(t, err)
	require.NoError(t, r.Connect())
	return &around{t, r, job}
}

// array returns that of a rank.
func (r *around) array(rank int) []byte { return random(uint64(1000+rank), r.job.Bytes) }

// start lets ranks start.
func (r *around) start(ranks ...int) {
	r.Helper()
	for _, rank := range ranks {
		if rank == r.job.Ranks {
			return
		}
		require.NoError(r, r.Workers[rank].Start(r.array(rank)))
	}
}

// finish runs the job and checks each byte that each rank has received.
func (r *around) finish() {
	r.Helper()
	require.True(r, r.Run(10*time.Minute), "not done in ten minutes")
	r.Room.Run(time.Second, func() bool { return false })
	for rank, w := range r.Workers {
		_, running := w.Deadline()
		assert.False(r, running, "a timer of rank %d", rank)
		got, done, err := w.Outcome()
		require.NoError(r, err)
		assert.True(r, done)
		assert.True(r, bytes.Equal(r.array((rank+r.job.Ranks-1)%r.job.Ranks), got), "rank %d", rank)
		assert.LessOrEqual(r, w.Ahead(), r.job.Credits())
	}
}

// small is a job of messages of 3 packets, 2 in flight. The PSNs wrap within it, and its tail is padded.
func small(ranks int, write bool) rc.Job {
	return rc.Job{Ranks: ranks, Bytes: 40*3*256 - 301, MTU: 256, Packets: 3, Window: 8, Write: write, Timeout: 8, Retries: 6, Deadline: 5 * time.Minute}
}

// TestRing: every rank receives every byte, in spite of all faults.
func TestRing(t *testing.T) {
	for _, ranks := range []int{2, 3, 5} {
		for network, faults := range faulty {
			for _, write := range []bool{false, true} {
				for _, alone := range []bool{false, true} {
					t.Run(fmt.Sprintf("%d/%s/write=%t/alone=%t", ranks, network, write, alone), func(t *testing.T) {
						job := small(ranks, write)
						job.OldestAlone = alone
						r := newRing(t, uint64(ranks), job, faults)
						r.start(0, 1, 2, 3, 4)
						r.finish()
					})
				}
			}
		}
	}
}

// TestNetReducesOwnFigures: 1 KiB payloads, 170 packets a message, 2 messages in flight.
func TestNetReducesOwnFigures(t *testing.T) {
	job := small(2, false)
	job.MTU, job.Packets, job.Window, job.Bytes = 1024, 170, 340, 5*170*1024+4
	r := newRing(t, 1, job, cable.Faults{Loss: 0.005})
	r.start(0, 1)
	r.finish()
	assert.Equal(t, 2, r.Workers[0].Ahead())
	assert.Equal(t, 6, job.Messages())
}

// TestSizes: an array of any size is padded to whole packets, and no more of them is received.
func TestSizes(t *testing.T) {
	for _, n := range []int{1, 255, 256, 257, 767, 768, 769, 2048, 12 * 256} {
		job := small(2, n%2 == 0)
		job.Bytes = n
		r := newRing(t, 1, job, cable.Faults{})
		sizes := map[int]int{}
		var left []byte
		r.Workers[0].Tamper = func(p *rc.Packet) {
			sizes[len(p.Payload)]++
			left = append(left, p.Payload...)
		}
		array := r.array(0)
		require.NoError(t, r.Workers[0].Start(array))
		clear(array) // it was copied
		r.start(1)
		r.finish()
		assert.True(t, bytes.Equal(append(r.array(0), make([]byte, len(left)-n)...), left), "%d: the padding is zeros", n)
		delete(sizes, 0) // ACKs
		assert.Equal(t, map[int]int{256: (n + 255) / 256}, sizes, n)
	}
}

// TestCredits: with no answer from the others, a worker posts as many messages as there are credits. With
// window 8 and 3 packets a message there are 2.
func TestCredits(t *testing.T) {
	r := newRing(t, 1, small(3, false), cable.Faults{})
	sent := map[uint32]bool{}
	r.Workers[0].Tamper = func(p *rc.Packet) { sent[p.BTH.PSN] = true }
	r.start(0)
	r.Run(time.Second)
	assert.Len(t, sent, 2*3)
	r.start(1)
	r.Run(time.Second)
	assert.Len(t, sent, 2*3) // rank 2, which precedes it, sends nothing
	r.start(2)
	r.finish()
}

// TestOwnSendCompletes: a worker that has received all posts no more than its credits while the next rank
// acknowledges nothing.
func TestOwnSendCompletes(t *testing.T) {
	r := newRing(t, 1, small(3, false), cable.Faults{})
	sent := map[uint32]bool{}
	r.Workers[0].Tamper = func(p *rc.Packet) {
		if p.BTH.Opcode != wire.OpAcknowledge {
			sent[p.BTH.PSN] = true
		}
	}
	r.Cables[1].Drop = func(from cable.Port, frame []byte) bool {
		p, _ := rc.Parse(frame)
		return p.BTH.Opcode == wire.OpAcknowledge && p.To == ring.Address(0)
	}
	r.start(0, 1, 2)
	r.Run(3 * time.Millisecond) // less than the retries take
	_, take := r.Workers[0].Pairs()
	assert.False(t, take.Failed())
	assert.Len(t, sent, 2*3)
	r.Cables[1].Drop = nil
	r.finish()
}

// TestALateWorker: the others wait 2.5 s, without an error: nothing of theirs is unanswered.
func TestALateWorker(t *testing.T) {
	r := newRing(t, 1, small(2, true), cable.Faults{})
	r.start(0)
	r.Run(2500 * time.Millisecond)
	r.start(1)
	r.finish()
}

// failure lets time pass until each rank has failed, and returns the error.
func (r *around) failure() *rc.RankError {
	r.Helper()
	require.True(r, r.Run(10*time.Minute))
	var first *rc.RankError
	for _, w := range r.Workers {
		var err *rc.RankError
		_, _, got := w.Outcome()
		require.ErrorAs(r, got, &err)
		if first != nil {
			assert.Same(r, first, err)
		}
		first = err
	}
	return first
}

// TestARankThatNeverStarts: the deadline ends the job on all ranks.
func TestARankThatNeverStarts(t *testing.T) {
	job := small(3, false)
	job.Deadline = 2 * time.Second
	r := newRing(t, 1, job, cable.Faults{})
	r.start(0, 1)
	assert.ErrorIs(t, r.failure(), rc.ErrDeadline)
	assert.Equal(t, 2*time.Second, r.Room.Now())
}

// TestDeadlineBeforeTimers: the deadline ends on time, also if a timer of a queue pair ends later.
func TestDeadlineBeforeTimers(t *testing.T) {
	job := small(2, false)
	job.Timeout, job.Deadline = 20, 2*time.Second
	r := newRing(t, 1, job, cable.Faults{Loss: 1})
	r.start(0, 1)
	assert.ErrorIs(t, r.failure(), rc.ErrDeadline)
	assert.Equal(t, 2*time.Second, r.Room.Now())
}

// TestTheLastACK: a worker that has received everything waits until its own sends have completed.
func TestTheLastACK(t *testing.T) {
	job := small(2, true)
	job.Bytes = 3 * 256
	r := newRing(t, 1, job, cable.Faults{})
	r.Cables[0].Drop = func(from cable.Port, frame []byte) bool {
		p, _ := rc.Parse(frame)
		return p.BTH.Opcode == wire.OpAcknowledge && p.To == ring.Address(0)
	}
	r.start(0, 1)
	assert.False(t, r.Run(3*time.Millisecond)) // less than the retries take
	r.Cables[0].Drop = nil
	r.finish()
}

// TestReceivesAreFirst: the messages that a rank may send before another has taken any find receives.
func TestReceivesAreFirst(t *testing.T) {
	r := newRing(t, 1, small(2, false), cable.Faults{})
	r.start(1)
	for {
		frame, _, ok := r.Workers[1].Send(nil)
		if !ok {
			break
		}
		r.Workers[0].Host.Receive(0, frame)
	}
	_, take := r.Workers[0].Pairs()
	assert.Equal(t, rc.Stats{}, take.Stats())
	for m := range 2 {
		done, ok := take.PollReceive()
		assert.True(t, ok)
		assert.Equal(t, rc.Completion{ID: uint64(m), Bytes: 3 * 256}, done)
	}
}

// TestOtherKinds: ranks that do not agree on SEND or WRITE fail.
func TestOtherKinds(t *testing.T) {
	barrier := rc.NewBarrier(2)
	room := cable.NewRoom(1)
	var workers []*rc.Worker
	for rank := range 2 {
		w, err := rc.NewWorker(rc.New(address(rank)), rank, small(2, rank == 0), barrier, 9, 0)
		require.NoError(t, err)
		workers = append(workers, w)
		room.Place(w)
	}
	room.Join(cable.Port{Device: 0}, cable.Port{Device: 1}, cable.Faults{})
	require.NoError(t, workers[0].Connect(workers[1].Offer(), workers[1].Offer()))
	require.NoError(t, workers[1].Connect(workers[0].Offer(), workers[0].Offer()))
	require.NoError(t, workers[0].Start(random(1, small(2, true).Bytes)))
	require.True(t, room.Run(time.Second, barrier.Done))
	var cause *rc.MessageError
	assert.ErrorAs(t, barrier.Err(), &cause)
}

// TestNobodyAtTheOtherEnd: retries that end fail all ranks, in the time that Longest returns after the last
// progress.
func TestNobodyAtTheOtherEnd(t *testing.T) {
	r := newRing(t, 1, small(3, false), cable.Faults{})
	r.start(0, 1, 2)
	r.Run(20 * time.Microsecond)
	cut := r.Room.Now()
	r.Cables[1].Loss = 1
	err := r.failure()
	var status *rc.StatusError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, rc.RetryExceeded, status.Status)
	assert.Contains(t, []int{0, 1}, err.Rank) // they send to rank 1 and to rank 2
	longest := rc.Longest(8, 6)
	assert.Equal(t, 7*256*4096*time.Nanosecond, longest)
	assert.LessOrEqual(t, r.Room.Now(), cut+longest)
}

// TestAPeerThatResets: a queue pair that is reset in the middle fails all ranks.
func TestAPeerThatResets(t *testing.T) {
	r := newRing(t, 1, small(3, true), cable.Faults{})
	r.start(0, 1, 2)
	r.Run(20 * time.Microsecond)
	_, take := r.Workers[2].Pairs()
	take.Reset()
	var status *rc.StatusError
	err := r.failure()
	require.ErrorAs(t, err, &status)
	assert.Equal(t, 1, err.Rank)
	assert.Equal(t, rc.RetryExceeded, status.Status)
}

// TestAPeerThatLies: a message that does not fit the job fails all ranks.
func TestAPeerThatLies(t *testing.T) {
	for _, lie := range []struct {
		name  string
		write bool
		lie   func(p *rc.Packet)
		cause error
	}{
		{"a message with a packet less", false, func(p *rc.Packet) {
			if p.BTH.PSN == ring.FirstPSN(0)+1 {
				p.BTH.Opcode = wire.OpSendLast
			}
		}, &rc.MessageError{Message: 0, Bytes: 512, Want: 768}},
		{"a wrong immediate", true, func(p *rc.Packet) { p.Imm += 4 }, &rc.MessageError{Message: 0, Bytes: 768, Want: 768, Imm: 4}},
		{"WRITE without the receiver's memory", true, func(p *rc.Packet) { p.RETH.RKey++ }, &rc.StatusError{Message: 0, Status: rc.RemoteAccess}},
	} {
		r := newRing(t, 1, small(2, lie.write), cable.Faults{})
		r.Workers[0].Tamper = lie.lie
		r.start(0, 1)
		err := r.failure()
		if status, ok := lie.cause.(*rc.StatusError); ok {
			var got *rc.StatusError
			require.ErrorAs(t, err, &got, lie.name)
			assert.Contains(t, []rc.Status{status.Status, rc.Flushed}, got.Status, lie.name)
			continue
		}
		assert.Equal(t, lie.cause, err.Cause, lie.name)
		assert.Equal(t, 1, err.Rank)
	}
}

// TestBadJobs: NewWorker and Connect refuse what no job can be.
func TestBadJobs(t *testing.T) {
	for name, edit := range map[string]func(j *rc.Job){
		"ranks":  func(j *rc.Job) { j.Ranks = 1 },
		"bytes":  func(j *rc.Job) { j.Bytes = 0 },
		"MTU":    func(j *rc.Job) { j.MTU = 0 },
		"window": func(j *rc.Job) { j.Window = 2 },
	} {
		job := small(2, false)
		edit(&job)
		_, err := rc.NewWorker(rc.New(address(0)), 0, job, rc.NewBarrier(2), 10, 0)
		assert.Error(t, err, name)
	}
	job := small(2, false)
	w, err := rc.NewWorker(rc.New(address(0)), 0, job, rc.NewBarrier(2), 10, 0)
	require.NoError(t, err)
	other := w.Offer()
	other.MTU = 512
	assert.Error(t, w.Connect(other, other))
	assert.Error(t, w.Start(make([]byte, 3)))
}
