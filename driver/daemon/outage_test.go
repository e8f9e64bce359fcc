package daemon_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/daemon"
)

// TestCardOutage cuts the card off again and again while members in several processes sum. Their calls
// do not notice, and every sum is right.
func TestCardOutage(t *testing.T) {
	ctx := testContext(t)
	card := newFragile(t)
	shared, err := driver.Open(ctx, card.name, driver.WithTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	path := serveCard(t, shared, daemon.Options{})
	var outages sync.Map
	cfg := driver.JobConfig{Workers: 3, Here: []int{0}, CarryOn: patience,
		OnOutage: func(o driver.Outage) { outages.Store(o.Epoch, o) }}
	j, err := open(t, path).Configure(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	members := []*driver.Member{j.Member(0), joined(ctx, t, j, 1), joined(ctx, t, j, 2)}
	sumWith(ctx, t, members, 20, func(n int) {
		if n%4 == 1 {
			card.cut()
		}
	})
	finishAll(ctx, t, j, members[1:])
	if j.Outages() == 0 {
		t.Error("the job noticed no outage")
	}
	n := 0
	outages.Range(func(_, _ any) bool { n++; return true })
	if n < 2 {
		t.Errorf("OnOutage ran for %d epochs", n)
	}
}

// joined joins a job from a session of its own.
func joined(ctx context.Context, t testing.TB, j *driver.Job, rank int, opts ...driver.Option) *driver.Member {
	t.Helper()
	m, err := driver.Join(ctx, j.Ticket(), rank, append(opts, driver.WithTimeout(patience))...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// finishAll closes a job's part here, and its members elsewhere.
func finishAll(ctx context.Context, t testing.TB, j *driver.Job, others []*driver.Member) {
	t.Helper()
	var all sync.WaitGroup
	for _, m := range others {
		all.Go(func() {
			if err := m.Close(ctx); err != nil {
				t.Errorf("rank %d: %v", m.Rank(), err)
			}
		})
	}
	if err := j.Close(ctx); err != nil {
		t.Error(err)
	}
	all.Wait()
}

// TestCardGone loses the card of a job that does not carry on: every member gets a DiedError, as on a
// card of its own. It was an EndedError without a type.
func TestCardGone(t *testing.T) {
	ctx := testContext(t)
	card := newFragile(t)
	shared, err := driver.Open(ctx, card.name, driver.WithTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	j, err := open(t, serveCard(t, shared, daemon.Options{})).Configure(ctx, driver.JobConfig{Workers: 2, Here: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	m := joined(ctx, t, j, 1)
	if err := errors.Join(j.AwaitMembers(ctx), m.Job().AwaitMembers(ctx)); err != nil {
		t.Fatal(err)
	}
	card.cut()
	for _, m := range []*driver.Member{j.Member(0), m} { // neither call is complete without the other
		var died *driver.DiedError
		if err := m.AllReduce(ctx, make([]float32, 100)); !errors.As(err, &died) {
			t.Errorf("rank %d got %v", m.Rank(), err)
		}
	}
}

// door is a socket in front of a daemon. move cuts all connections at once, as a daemon's death does, and
// leads the next ones to another daemon.
type door struct {
	path string

	mu    sync.RWMutex // held for reading while bytes pass
	to    string
	moves int
	conns []net.Conn
}

func newDoor(t testing.TB, to string) *door {
	d := &door{path: filepath.Join(t.TempDir(), "door"), to: to}
	listener, err := net.Listen("unix", d.path)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { d.lead(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		d.move("")
		serving.Wait()
	})
	return d
}

// lead connects a client with the daemon until either end closes.
func (d *door) lead(conn net.Conn) {
	defer conn.Close()
	d.mu.Lock()
	moves := d.moves
	other, err := net.Dial("unix", d.to)
	if err == nil {
		d.conns = append(d.conns, conn, other)
	}
	d.mu.Unlock()
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { d.pass(conn, other, moves) })
	d.pass(other, conn, moves)
	back.Wait()
}

// pass passes bytes on until an end closes, or the door moves.
func (d *door) pass(to, from net.Conn, moves int) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		d.mu.RLock()
		if d.moves != moves {
			err = net.ErrClosed
		} else if n > 0 {
			_, err = to.Write(buf[:n])
		}
		d.mu.RUnlock()
		if err != nil {
			return
		}
	}
}

func (d *door) move(to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to = to
	d.moves++
	for _, c := range d.conns {
		c.Close()
	}
	d.conns = nil
}

// TestDaemonDies replaces the daemon again and again while members in several processes sum.
func TestDaemonDies(t *testing.T) {
	ctx := testContext(t)
	d := newDoor(t, serve(t, daemon.Options{}))
	j, err := open(t, d.path).Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{0}, CarryOn: patience})
	if err != nil {
		t.Fatal(err)
	}
	members := []*driver.Member{j.Member(0), joined(ctx, t, j, 1), joined(ctx, t, j, 2)}
	sumWith(ctx, t, members, 20, func(n int) {
		if n%6 == 1 && n < 19 {
			d.move(serve(t, daemon.Options{}))
		}
	})
	finishAll(ctx, t, j, members[1:])
	if j.Outages() == 0 {
		t.Error("the job noticed no outage")
	}
}

// TestDaemonGone: without another daemon the calls fail when the time to carry on is over.
func TestDaemonGone(t *testing.T) {
	ctx := testContext(t)
	d := newDoor(t, serve(t, daemon.Options{}))
	j, err := open(t, d.path).Configure(ctx, driver.JobConfig{Workers: 2, Here: []int{0}, CarryOn: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	m := joined(ctx, t, j, 1)
	if err := errors.Join(j.AwaitMembers(ctx), m.Job().AwaitMembers(ctx)); err != nil {
		t.Fatal(err)
	}
	d.move("")
	other := make(chan error, 1)
	go func() { other <- m.AllReduce(ctx, make([]float32, 100)) }()
	var lost *driver.LostError
	if err := j.Member(0).AllReduce(ctx, make([]float32, 100)); !errors.As(err, &lost) {
		t.Errorf("got %v", err)
	}
	if err := <-other; !errors.As(err, &lost) {
		t.Errorf("the other member got %v", err)
	}
}

// TestMemberReturns loses a member of a job with partial sums. The others go on without it, and it
// returns to a later call: until a call has the contributions of both, because on a busy machine it
// may be evicted again.
func TestMemberReturns(t *testing.T) {
	ctx := testContext(t)
	path := serve(t, daemon.Options{})
	lost := make(chan []int, 100)
	cfg := driver.JobConfig{Workers: 2, Here: []int{0}, Partial: true, Deadline: 50 * time.Millisecond, OnLost: func(ranks []int) { lost <- ranks }}
	j, err := open(t, path).Configure(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for complete := 0; complete < 2; {
		other := open(t, path)
		m, err := other.Join(ctx, j.Ticket(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Job().AwaitMembers(ctx); err != nil {
			t.Fatal(err)
		}
		first := both(ctx, t, j, m)
		if both(ctx, t, j, m) && first {
			complete++
		}
		other.Close()
		if ranks := <-lost; len(ranks) != 1 || ranks[0] != 1 {
			t.Errorf("ranks %d were lost", ranks)
		}
		for range 3 {
			a := ramp(160, 1)
			if err := j.Member(0).AllReduce(ctx, a); err != nil {
				t.Fatal(err)
			}
			check(t, "sum of one", a, 1)
		}
	}
	if err := j.Abort(ctx); err != nil {
		t.Error(err)
	}
}

// both sums arrays of the members of a job of two, and reports whether all sums have both.
func both(ctx context.Context, t testing.TB, j *driver.Job, m *driver.Member) bool {
	t.Helper()
	other := make(chan error, 1)
	go func() { other <- m.AllReduce(ctx, ramp(160, 2)) }()
	a := ramp(160, 1)
	if err := j.Member(0).AllReduce(ctx, a); err != nil {
		t.Fatal(err)
	}
	var evicted *driver.EvictedError
	if err := <-other; err != nil && !errors.As(err, &evicted) {
		t.Fatal(err)
	}
	for _, p := range j.Member(0).Partials() {
		check(t, "partial sum", a[:p.From], 3)
		return false
	}
	check(t, "sum of both", a, 3)
	return evicted == nil
}

// TestFinishedMemberStaysAway: the next daemon does not know that a member has finished before, and the
// others give up waiting for it. None takes the other's end for an abort.
func TestFinishedMemberStaysAway(t *testing.T) {
	ctx := testContext(t)
	d := newDoor(t, serve(t, daemon.Options{}))
	j, err := open(t, d.path).Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{0}, CarryOn: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	one, two := joined(ctx, t, j, 1), joined(ctx, t, j, 2)
	if err := errors.Join(j.AwaitMembers(ctx), one.Job().AwaitMembers(ctx), two.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	d.move(serve(t, daemon.Options{}))
	fails := make(chan error, 2)
	for _, m := range []*driver.Member{j.Member(0), one} {
		go func() { fails <- m.AllReduce(ctx, make([]float32, 100)) }()
	}
	for range 2 {
		var lost *driver.LostError
		var memberLost *driver.MemberLostError
		if err := <-fails; !errors.As(err, &lost) && !errors.As(err, &memberLost) {
			t.Errorf("got %v", err)
		}
	}
}

// TestReturningMemberOutlivesTheDaemon: a member that waits to return to a job gives up when the daemon
// dies. It once began in the middle of the others' calls at the next daemon.
func TestReturningMemberOutlivesTheDaemon(t *testing.T) {
	ctx := testContext(t)
	carryOn := 500 * time.Millisecond
	for !outlivesTheDaemon(ctx, t, carryOn) { // on a busy machine the next daemon may answer too late
		carryOn *= 2
	}
}

// outlivesTheDaemon reports whether the next daemon answers a member that waits to return, within the time to
// carry on.
func outlivesTheDaemon(ctx context.Context, t *testing.T, carryOn time.Duration) (answers bool) {
	t.Helper()
	s, path := metricServer(t)
	d := newDoor(t, path)
	j, err := open(t, d.path).Configure(ctx, driver.JobConfig{Workers: 2, Here: []int{0}, Partial: true, DeadlineCycles: 1 << 31, CarryOn: carryOn})
	if err != nil {
		t.Fatal(err)
	}
	card := open(t, d.path)
	m, err := card.Join(ctx, j.Ticket(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.AwaitMembers(ctx), m.Job().AwaitMembers(ctx), card.Close()); err != nil {
		t.Fatal(err)
	}
	call, err := j.Member(0).StartAllReduce(ctx, make([]float32, 100)) // its deadline does not pass
	if err != nil {
		t.Fatal(err)
	}
	came := `tributary_payload_bytes_total{card="card",direction="in"}` // of the call: it comes before the return
	awaitMetricIs(t, s, came, "more", func(x float64) bool { return x > 0 })
	back, err := driver.Join(ctx, j.Ticket(), 1)
	for err != nil && ctx.Err() == nil { // its seat is still taken
		back, err = driver.Join(ctx, j.Ticket(), 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.move(serve(t, daemon.Options{}))
	var lost *driver.LostError
	err = back.Job().AwaitMembers(ctx)
	if !errors.As(err, &lost) {
		t.Fatalf("got %v", err)
	}
	if err := call.Wait(ctx); err == nil {
		t.Error("a call of two members ended with one")
	}
	return strings.Contains(lost.Error(), "had not begun")
}
