package daemon_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/daemon"
)

// serveArrays runs a daemon with a card in software that takes arrays.
func serveArrays(t testing.TB, name string, o daemon.Options) string {
	t.Helper()
	card, err := driver.Open(testContext(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return serveCard(t, card, o)
}

// TestArrays sums arrays of three processes through a card in the daemon's: several blocks of several
// calls at once, a last block that is shorter, and single elements.
func TestArrays(t *testing.T) {
	for _, o := range []daemon.Options{{}, {Limits: daemon.Limits{Memory: 1}}} { // with shared memory, and without
		ctx := testContext(t)
		path := serveArrays(t, "cpu:workers=3,jobs=2", o)
		j, err := open(t, path).Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{1}})
		if err != nil {
			t.Fatal(err)
		}
		others := []*driver.Member{joined(ctx, t, j, 0), joined(ctx, t, j, 2)}
		var all sync.WaitGroup
		for _, m := range append(others, j.Member(1)) {
			all.Go(func() {
				var started []*driver.Pending
				var arrays [][]float32
				for n, length := range []int{1, 1_000_003, 700, 600_000} {
					a := ramp(length, float32(m.Rank()+n))
					p, err := m.StartAllReduce(ctx, a)
					if err != nil {
						t.Error(err)
						return
					}
					started, arrays = append(started, p), append(arrays, a)
				}
				for n, p := range started {
					if err := p.Wait(ctx); err != nil {
						t.Error(err)
						return
					}
					check(t, fmt.Sprintf("rank %d, call %d", m.Rank(), n), arrays[n], float32(3+3*n))
				}
			})
		}
		all.Wait()
		finishAll(ctx, t, j, others)
	}
}

// TestArraysOfOtherSizes sums contributions whose sums have other sizes.
func TestArraysOfOtherSizes(t *testing.T) {
	ctx := testContext(t)
	path := serveArrays(t, "cpu:workers=2,format=bf16,result=fp32", daemon.Options{})
	j, err := open(t, path).Configure(ctx, driver.JobConfig{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 700_000
	one := slices.Repeat([]uint16{0x3f80}, n) // 1
	sum := make([]float32, n)
	if err := driver.Reduce(ctx, j, sum, [][]uint16{one, one}); err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(sum, func(x float32) bool { return x != 2 }); i >= 0 {
		t.Errorf("element %d is %g", i, sum[i])
	}
	if err := j.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestManyArraySeats: all members of a session have calls of their own, more than there are places.
func TestManyArraySeats(t *testing.T) {
	ctx := testContext(t)
	path := serveArrays(t, "cpu:workers=24", daemon.Options{Limits: daemon.Limits{Memory: 8 << 20}})
	j, err := open(t, path).Configure(ctx, driver.JobConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for rank := range 24 {
		all.Go(func() {
			a := slices.Repeat([]float32{float32(rank)}, 600_000)
			if err := j.Member(rank).AllReduce(ctx, a); err != nil {
				t.Error(err)
				return
			}
			if i := slices.IndexFunc(a, func(x float32) bool { return x != 23*24/2 }); i >= 0 {
				t.Errorf("rank %d: element %d is %g", rank, i, a[i])
			}
		})
	}
	all.Wait()
	if err := j.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestArraysLate: a call names the ranks that it waits for; a job whose member has gone ends; places of
// aborted calls come back.
func TestArraysLate(t *testing.T) {
	ctx := testContext(t)
	path := serveArrays(t, "cpu:workers=2,jobs=2", daemon.Options{})
	c := open(t, path)
	patient := 200 * time.Millisecond
	for named := 0; named < 3; { // on a busy machine the daemon's answer may come too late
		j, err := c.Configure(ctx, driver.JobConfig{})
		if err != nil {
			t.Fatal(err)
		}
		err = j.Member(0).AllReduce(ctx, make([]float32, 10_000_000), driver.WithCallTimeout(patient))
		var missing *driver.MissingError
		var late *driver.TimeoutError
		switch {
		case errors.As(err, &missing) && slices.Equal(missing.Ranks, []int{1}):
			named++
		case !errors.As(err, &late) || ctx.Err() != nil:
			t.Fatalf("got %v", err)
		default:
			patient *= 2
		}
	}
	j, err := c.Configure(ctx, driver.JobConfig{})
	if err != nil {
		t.Fatal(err)
	}
	a := ramp(3_000_000, 1)
	if err := j.Reduce(ctx, a, [][]float32{a, ramp(3_000_000, 2)}); err != nil {
		t.Fatal(err)
	}
	check(t, "sum", a, 3)
}

// TestArraysPartial: a member that leaves does not stop the others, and sums say who is in them.
func TestArraysPartial(t *testing.T) {
	ctx := testContext(t)
	path := serveArrays(t, "cpu:workers=2,jobs=2", daemon.Options{})
	j, err := open(t, path).Configure(ctx, driver.JobConfig{Here: []int{0}, Partial: true, Deadline: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, path)
	m, err := other.Join(ctx, j.Ticket(), 1)
	if err != nil {
		t.Fatal(err)
	}
	both(ctx, t, j, m)
	other.Close()
	for range 3 {
		a := ramp(600_000, 1)
		if err := j.Member(0).AllReduce(ctx, a); err != nil {
			t.Fatal(err)
		}
		check(t, "sum of one", a, 1)
		if p := j.Member(0).Partials(); len(p) != 1 || p[0].From != 0 || p[0].To != len(a) || !slices.Equal(p[0].Ranks, []int{0}) {
			t.Errorf("partial sums are %v", p)
		}
	}
	if err := j.Abort(ctx); err != nil {
		t.Error(err)
	}
}
