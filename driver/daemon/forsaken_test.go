package daemon_test

import (
	"context"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
)

// metricServer runs a daemon with the card of serve, and returns it and the path of its socket.
func metricServer(t testing.TB) (*daemon.Server, string) {
	t.Helper()
	path := socket(t)
	s, _, _ := serveOn(t, "unix:"+path, daemon.Options{})
	return s, path
}

func awaitNoJobs(t testing.TB, s *daemon.Server) {
	t.Helper()
	for _, state := range []string{"queued", "gathering", "starting", "running", "stopped"} {
		awaitMetric(t, s, `tributary_jobs{card="card",state="`+state+`"}`, 0)
	}
}

// TestForsakenJob: a job that nobody has joined ends with the session that made it. It once kept its room
// on the card until the time to wait for members was over.
func TestForsakenJob(t *testing.T) {
	s, path := metricServer(t)
	maker, other := attach(t, path, &protocol.Hello{Version: 1}), attach(t, path, &protocol.Hello{Version: 1})
	forsaken, joined := maker.create(&protocol.Parameters{}), maker.create(&protocol.Parameters{})
	other.join(joined, 0, nil)
	maker.conn.Close()
	awaitMetric(t, s, `tributary_jobs{card="card",state="gathering"}`, 1)
	if r := other.join(forsaken, 0, nil).GetRefused(); r.GetReason() != protocol.Reason_NO_JOB {
		t.Errorf("the job that nobody joined: %v", r)
	}
	other.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Leave{Leave: &protocol.Leave{Nonce: joined}}})
	awaitNoJobs(t, s)
}

// TestForsakenRejoin: a job of an earlier daemon ends when all members have left that returned. It begins
// neither with a rank that it lacks, nor with one that is taken. It once kept its room on the card for the
// time to carry on.
func TestForsakenRejoin(t *testing.T) {
	s, path := metricServer(t)
	c := attach(t, path, &protocol.Hello{Version: 1})
	rejoin := func(c *client, nonce uint64, rank uint32) {
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Rejoin{Rejoin: &protocol.Rejoin{Join: &protocol.Join{
			Nonce: nonce, Rank: &rank, Parameters: &protocol.Parameters{CarryOnNs: pointer(uint64(patience))}}}}})
	}
	rejoin(c, 1, 4)
	if e := c.receive().GetEnded(); e.GetNonce() != 1 {
		t.Errorf("got %v", e)
	}
	rejoin(c, 2, 3)
	other := attach(t, path, &protocol.Hello{Version: 1})
	awaitMetric(t, s, `tributary_jobs{card="card",state="gathering"}`, 1)
	rejoin(other, 2, 3)
	if e := other.receive().GetEnded(); e.GetText() != "another process has rank 3" {
		t.Errorf("got %v", e)
	}
	c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Leave{Leave: &protocol.Leave{Nonce: 2, Rank: 3}}})
	awaitMetric(t, s, `tributary_jobs_ended_total{card="card",cause="member_lost"}`, 1)
	awaitNoJobs(t, s)
}

// TestMakerAborts: the client that made a job may end it without a seat; another client may not.
func TestMakerAborts(t *testing.T) {
	s, path := metricServer(t)
	maker, other := attach(t, path, &protocol.Hello{Version: 1}), attach(t, path, &protocol.Hello{Version: 1})
	nonce := maker.create(&protocol.Parameters{})
	other.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Abort{Abort: &protocol.Abort{Nonce: nonce}}})
	if m := other.join(nonce, 0, nil); m.GetWaiting() == nil {
		t.Errorf("after the abort of another client: %v", m)
	}
	maker.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Abort{Abort: &protocol.Abort{Nonce: nonce}}})
	if e := other.receive().GetEnded(); e.GetCause() != protocol.Cause_ABORTED || e.Text != "the client that made the job aborted it" {
		t.Errorf("got %v", e)
	}
	awaitNoJobs(t, s)
}

// TestQueuedJobEnds: a job that ends while it waits for room leaves the queue. It once gave its room, which
// it did not have, to the job before it.
func TestQueuedJobEnds(t *testing.T) {
	s, path := metricServer(t)
	c := attach(t, path, &protocol.Hello{Version: 1})
	c.create(&protocol.Parameters{})
	c.create(&protocol.Parameters{}) // the card is full
	create := func(queue bool) *protocol.ToClient {
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{Queue: queue}}})
		return c.receive()
	}
	create(true)
	c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Abort{Abort: &protocol.Abort{Nonce: create(true).GetCreated().GetNonce()}}})
	if r := create(false).GetRefused(); r.GetReason() != protocol.Reason_FULL {
		t.Errorf("got %v", r)
	}
	for state, want := range map[string]float64{"queued": 1, "gathering": 2} {
		if n := metric(t, s, `tributary_jobs{card="card",state="`+state+`"}`); n != want {
			t.Errorf("%g jobs are %s, want %g", n, state, want)
		}
	}
}

// TestConfigureGivenUp: a job whose Configure ends in time to be made, but not to be joined, does not
// stay. Its session goes on.
func TestConfigureGivenUp(t *testing.T) {
	s, path := metricServer(t)
	c := open(t, path)
	for i := range 60 {
		ctx, cancel := context.WithTimeout(testContext(t), time.Duration(i)*20*time.Microsecond)
		if j, err := c.Configure(ctx, driver.JobConfig{Workers: 4, Here: []int{0}}); err == nil {
			if err := j.Abort(testContext(t)); err != nil {
				t.Error(err)
			}
		}
		cancel()
	}
	j, err := c.Configure(testContext(t), driver.JobConfig{Workers: 1, Queue: true}) // the daemon may handle earlier ones meanwhile
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	awaitNoJobs(t, s)
}
