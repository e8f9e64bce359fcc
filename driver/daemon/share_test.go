package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/daemon"
	_ "tributary/driver/transport/serve"
)

// open opens the daemon's card.
func open(t testing.TB, path string, opts ...driver.Option) *driver.Card {
	t.Helper()
	c, err := driver.Open(testContext(t), "serve:unix:"+path, append([]driver.Option{driver.WithTimeout(patience)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestReduceThroughDaemon: a program that has all members works as on its own card.
func TestReduceThroughDaemon(t *testing.T) {
	ctx := testContext(t)
	c := open(t, serve(t, daemon.Options{}))
	for range 3 { // more jobs than the card holds at once, one after another
		j, err := c.Configure(ctx, driver.JobConfig{Workers: 3})
		if err != nil {
			t.Fatal(err)
		}
		in := [][]float32{ramp(200, 1), ramp(200, 2), ramp(200, 3)}
		for range 2 {
			sum := make([]float32, 200)
			if err := j.Reduce(ctx, sum, in); err != nil {
				t.Fatal(err)
			}
			check(t, "sum", sum, 6)
		}
		if err := j.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// ramp returns x*i for i below n.
func ramp(n int, x float32) []float32 {
	a := make([]float32, n)
	for i := range a {
		a[i] = x * float32(i)
	}
	return a
}

func check(t testing.TB, what string, got []float32, x float32) {
	t.Helper()
	for i, v := range got {
		if v != x*float32(i) {
			t.Errorf("%s: element %d is %g, not %g", what, i, v, x*float32(i))
			return
		}
	}
}

// TestJoin: members of four processes, each with a session of its own, queue several calls, and finish.
func TestJoin(t *testing.T) {
	ctx := testContext(t)
	path := serve(t, daemon.Options{})
	c := open(t, path)
	j, err := c.Configure(ctx, driver.JobConfig{Workers: 4, Here: []int{2}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	taken := make(chan int, 3)
	for range 3 {
		all.Go(func() {
			m, err := driver.Join(ctx, j.Ticket(), driver.AnyRank, driver.WithJob(driver.JobConfig{Workers: 4}))
			if err != nil {
				t.Error(err)
				return
			}
			taken <- m.Rank()
			if err := call(ctx, t, m); err != nil {
				t.Error(err)
			}
			if err := m.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	if err := call(ctx, t, j.Member(2)); err != nil {
		t.Error(err)
	}
	if err := j.Close(ctx); err != nil {
		t.Error(err)
	}
	all.Wait()
	if sum := <-taken + <-taken + <-taken; sum != 0+1+3 {
		t.Errorf("the ranks add up to %d", sum)
	}
}

// call queues five calls of different lengths, and checks their sums over four members.
func call(ctx context.Context, t testing.TB, m *driver.Member) error {
	var started []*driver.Pending
	var arrays [][]float32
	for n := range 5 {
		a := ramp(100+50*n, float32(m.Rank()+n))
		p, err := m.StartAllReduce(ctx, a)
		if err != nil {
			return err
		}
		started, arrays = append(started, p), append(arrays, a)
	}
	for n, p := range started {
		if err := p.Wait(ctx); err != nil {
			return err
		}
		check(t, fmt.Sprintf("rank %d, call %d", m.Rank(), n), arrays[n], float32(0+1+2+3+4*n))
	}
	return nil
}

// join joins a job in a goroutine of its own, and returns the outcome of a call there.
func join(ctx context.Context, j *driver.Job, rank, n int) <-chan error {
	outcome := make(chan error, 1)
	go func() {
		m, err := driver.Join(ctx, j.Ticket(), rank)
		if err == nil {
			err = m.AllReduce(ctx, make([]float32, n))
		}
		outcome <- err
	}()
	return outcome
}

// half makes a job of two members, of which one is here.
func half(t testing.TB, cfg driver.JobConfig) (*driver.Card, *driver.Job) {
	t.Helper()
	c := open(t, serve(t, daemon.Options{}))
	cfg.Workers, cfg.Here = 2, []int{0}
	j, err := c.Configure(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, j
}

// TestCallsOfMembersDiffer: both members learn that their calls differ.
func TestCallsOfMembersDiffer(t *testing.T) {
	ctx := testContext(t)
	_, j := half(t, driver.JobConfig{})
	other := join(ctx, j, 1, 99)
	for _, err := range []error{j.Member(0).AllReduce(ctx, make([]float32, 100)), <-other} {
		var differ *driver.CallsDifferError
		if !errors.As(err, &differ) || len(differ.Ranks) != 2 {
			t.Errorf("got %v", err)
		}
	}
}

// TestOperationsOfMembersDiffer: one member asks for a mean, the others for a sum. All of them learn both
// calls, on cards of both kinds.
func TestOperationsOfMembersDiffer(t *testing.T) {
	for name, path := range map[string]string{
		"frames": serve(t, daemon.Options{}), "arrays": serveArrays(t, "cpu:workers=4", daemon.Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			j, err := open(t, path).Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{0}})
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for _, m := range []*driver.Member{j.Member(0), joined(ctx, t, j, 1), joined(ctx, t, j, 2)} {
				var opts []driver.ReduceOption
				if m.Rank() == 1 {
					opts = append(opts, driver.WithMean())
				}
				all.Go(func() {
					var differ *driver.CallsDifferError
					err := m.AllReduce(ctx, make([]float32, 100), opts...)
					if !errors.As(err, &differ) || len(differ.Ranks) != 2 || !slices.Contains(differ.Ranks, 1) ||
						!strings.Contains(differ.Text, "the sum of 100 elements of fp32") ||
						!strings.Contains(differ.Text, "rank 1 asks for the mean of 100 elements of fp32") &&
							!strings.Contains(differ.Text, "rank 1 for the mean of 100 elements of fp32") {
						t.Errorf("rank %d got %v", m.Rank(), err)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestMeanThroughDaemon: members that all ask for the mean get it.
func TestMeanThroughDaemon(t *testing.T) {
	ctx := testContext(t)
	_, j := half(t, driver.JobConfig{})
	m := joined(ctx, t, j, 1)
	one, two := ramp(100, 1), ramp(100, 2)
	p, err := m.StartAllReduce(ctx, two, driver.WithMean())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Member(0).AllReduce(ctx, one, driver.WithMean()), p.Wait(ctx)); err != nil {
		t.Fatal(err)
	}
	check(t, "mean of rank 0", one, 1.5)
	check(t, "mean of rank 1", two, 1.5)
	finishAll(ctx, t, j, []*driver.Member{m})
}

// TestMemberLost: a process that dies ends the job for the others, which learn its rank.
func TestMemberLost(t *testing.T) {
	ctx := testContext(t)
	c, j := half(t, driver.JobConfig{})
	m, err := driver.Join(ctx, j.Ticket(), 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.StartAllReduce(ctx, make([]float32, 100))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.AwaitMembers(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	var lost *driver.MemberLostError
	if err := p.Wait(ctx); !errors.As(err, &lost) || len(lost.Ranks) != 1 || lost.Ranks[0] != 0 {
		t.Errorf("got %v", err)
	}
}

// TestNotStarted: a job without its members fails after the time to wait, and names the ranks.
func TestNotStarted(t *testing.T) {
	ctx := testContext(t)
	c := open(t, serve(t, daemon.Options{}))
	var j *driver.Job
	var err error
	for wait := time.Millisecond; j == nil; wait *= 2 { // on a busy machine it may be over before the creator joins
		if j, err = c.Configure(ctx, driver.JobConfig{Workers: 2, Here: []int{0}, Wait: wait}); err != nil && ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	err = j.Member(0).AllReduce(ctx, make([]float32, 100))
	var never *driver.NotStartedError
	if !errors.As(err, &never) || len(never.Missing) != 1 || never.Missing[0] != 1 {
		t.Errorf("got %v", err)
	}
	if _, err := driver.Join(ctx, j.Ticket(), 1); err == nil {
		t.Error("a job that is over takes members")
	}
}

// TestWaiting: a member hears whom its job waits for, whenever that changes.
func TestWaiting(t *testing.T) {
	ctx := testContext(t)
	var mu sync.Mutex
	var heard [][]int
	j, err := open(t, serve(t, daemon.Options{})).Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{0}, OnWaiting: func(missing []int, place int) {
		mu.Lock()
		defer mu.Unlock()
		if heard = append(heard, missing); place != 0 {
			t.Errorf("place %d", place)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	others := []*driver.Member{joined(ctx, t, j, 2), joined(ctx, t, j, 1)}
	if err := errors.Join(j.AwaitMembers(ctx), others[0].Job().AwaitMembers(ctx), others[1].Job().AwaitMembers(ctx)); err != nil {
		t.Fatal(err)
	}
	finishAll(ctx, t, j, others)
	mu.Lock()
	defer mu.Unlock()
	if want := [][]int{{1, 2}, {1}, {}}; !reflect.DeepEqual(heard, want) {
		t.Errorf("heard of %v, want %v", heard, want)
	}
}
