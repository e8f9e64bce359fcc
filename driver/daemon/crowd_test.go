package daemon_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tributary/driver"
	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
)

// TestCrowd: 64 workers have 16 jobs for a card of four. Half of the jobs wait for room. Every job is
// refused or finishes, and its sums are right. None starves: the first four go on summing until all
// four have made their calls, however many calls the others make meanwhile.
func TestCrowd(t *testing.T) {
	const jobs, workers, numbers, calls, elements = 16, 4, 4, 20, 100
	ctx := testContext(t)
	s, path := serveNamed(t, "model:lanes=4,workers=4,chunk=16,window=8,jobs=4", daemon.Options{})
	sessions := openAll(t, path, jobs*workers)
	awaitMetric(t, s, `tributary_sessions{card="card"}`, jobs*workers)

	made := make([]*driver.Job, jobs)
	errs := make([]error, jobs)
	var all sync.WaitGroup
	for i := range jobs {
		all.Go(func() {
			made[i], errs[i] = sessions[i*workers].Configure(ctx, driver.JobConfig{Workers: workers, Here: []int{0}, Queue: i%2 == 0, Wait: patience})
		})
	}
	all.Wait()
	refused := 0
	for i, err := range errs {
		var full *driver.FullError
		switch {
		case err == nil:
		case i%2 == 0 || !errors.As(err, &full) || !strings.Contains(err.Error(), "holds 4 jobs at once, and all are in use; "):
			t.Fatalf("job %d: %v", i, err)
		default:
			refused++
		}
	}
	for name, want := range map[string]int{
		`tributary_refusals_total{reason="full"}`:       refused,
		`tributary_jobs{card="card",state="gathering"}`: numbers,
		`tributary_jobs{card="card",state="queued"}`:    jobs - numbers - refused,
	} {
		if n := metric(t, s, name); n != float64(want) {
			t.Errorf("%s is %g, want %d", name, n, want)
		}
	}

	var served atomic.Int64 // jobs that have made their calls
	for i, j := range made {
		if j == nil {
			continue
		}
		m := newTeam(t, j, sessions[i*workers:][:workers], i)
		all.Go(func() {
			err := j.AwaitMembers(ctx)
			for n := 1; err == nil && (n <= calls || served.Load() < numbers); n++ {
				if err = m.sum(ctx, elements); n == calls {
					served.Add(1)
				}
			}
			if err == nil {
				err = m.finish(ctx)
			}
			if err != nil {
				t.Errorf("job %d: %v", i, err)
			}
		})
	}
	all.Wait()
	awaitNoJobs(t, s)
	if n := metric(t, s, `tributary_jobs_ended_total{card="card",cause="finished"}`); n != float64(jobs-refused) {
		t.Errorf("%g jobs finished, want %d", n, jobs-refused)
	}
	for _, session := range sessions {
		session.Close()
	}
	awaitMetric(t, s, `tributary_sessions{card="card"}`, 0)
}

// TestQueueComesFirst: a job does not get room that others wait for, and these learn their places. The
// daemon once gave the room to a job that came while the card dropped the one before, and reported no
// places.
func TestQueueComesFirst(t *testing.T) {
	s, path := metricServer(t)
	one, _, b := pair(t, path, &protocol.Parameters{})
	one.create(&protocol.Parameters{}) // the card is full
	queue := &protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{Queue: true}}}
	var waiting []*client
	for i := range 2 {
		c := attach(t, path, &protocol.Hello{Version: 1})
		c.send(queue)
		if w := c.join(c.receive().GetCreated().GetNonce(), 0, nil).GetWaiting(); int(w.GetPlace()) != i+1 {
			t.Errorf("job %d of the queue: got %v", i, w)
		}
		waiting = append(waiting, c)
	}
	one.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Abort{Abort: &protocol.Abort{Nonce: b.Nonce}}})
	one.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{}}})
	if e := one.receive().GetEnded(); e.GetCause() != protocol.Cause_ABORTED {
		t.Errorf("got %v", e)
	}
	if m := one.receive(); m.GetRefused().GetReason() != protocol.Reason_FULL {
		t.Errorf("a job that does not wait: got %v", m)
	}
	for i, c := range waiting {
		if w := c.receive().GetWaiting(); w == nil || int(w.Place) != i {
			t.Errorf("job %d of the queue: got %v", i, w)
		}
	}
	if n := metric(t, s, `tributary_jobs{card="card",state="queued"}`); n != 1 {
		t.Errorf("%g jobs wait, want 1", n)
	}
}

// TestRoomIsThere: a job that waited for room starts however many jobs end at once, also while the card
// sets them up. A job that does not wait is not refused when another has just ended. The daemon once gave
// the room of all of them when the card had dropped the first: jobs ended because they found no slots.
func TestRoomIsThere(t *testing.T) {
	_, path := metricServer(t)
	c := attach(t, path, &protocol.Hello{Version: 1})
	var running []uint64
	receive := func() *protocol.ToClient {
		m := c.receive()
		if b := m.GetBegin(); b != nil {
			running = append(running, b.Nonce)
		}
		if e := m.GetEnded(); e != nil {
			running = slices.DeleteFunc(running, func(nonce uint64) bool { return nonce == e.Nonce })
			if e.Cause != protocol.Cause_ABORTED {
				t.Fatalf("got %v", e)
			}
		}
		if m.GetRefused() != nil {
			t.Fatalf("got %v", m)
		}
		return m
	}
	create := func(queue bool) uint64 {
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{
			Queue: queue, Parameters: &protocol.Parameters{Workers: pointer(uint32(1))}}}})
		m := receive()
		for m.GetCreated() == nil {
			m = receive()
		}
		nonce := m.GetCreated().Nonce
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Join{Join: &protocol.Join{Nonce: nonce}}})
		return nonce
	}
	abort := func(nonce uint64) {
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Abort{Abort: &protocol.Abort{Nonce: nonce}}})
	}
	for range 100 {
		abort(create(false))
	}
	create(true)
	create(true)
	for range 500 { // two run, and two wait
		create(true)
		create(true)
		for len(running) < 2 {
			receive()
		}
		for range 2 {
			abort(running[0])
			running = running[1:]
		}
	}
}
