package driver_test

// Calls that queue, and calls that leave their arrays.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/verify/system/faults"
)

// far is a link whose card is far away: its bytes arrive after distance.
type far struct {
	transport.Conn
	distance time.Duration
	arriving chan arrival
	rest     []byte
}

type arrival struct {
	at    time.Time
	bytes []byte
	err   error
}

func newFar(t testing.TB, conn transport.Conn, distance time.Duration) *far {
	f := &far{Conn: conn, distance: distance, arriving: make(chan arrival, 1000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			b := make([]byte, 4096)
			n, err := conn.Read(b)
			f.arriving <- arrival{time.Now().Add(distance), b[:n], err}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-ended })
	return f
}

func (f *far) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		a := <-f.arriving
		time.Sleep(time.Until(a.at))
		if a.err != nil {
			return 0, a.err
		}
		f.rest = a.bytes
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// lengths are those of a training step's arrays: some are shorter than a chunk, some longer than
// the window.
var lengths = []int{1, 16, 17, 64, 65, 300, 3, 15, 48, 129, 1000, 2, 5, 16, 32, 64, 7, 80, 81, 20, 1, 1, 1, 40, 33}

// steps returns, for each of the lengths, the arrays of all workers, and their sums.
func steps(seed uint64, workers int) (in [][][]float32, want [][]float32) {
	for i, n := range lengths {
		in = append(in, arrays(seed<<8|uint64(i), workers, n))
		want = append(want, treeSum(in[i], firstPorts(workers), small.Ports))
	}
	return in, want
}

// TestPending queues 25 arrays of each member, in place, and waits for them in another order.
func TestPending(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		job := configure(t, openSmall(t), driver.JobConfig{})
		rng := rand.New(rand.NewPCG(1, 1))
		for round := range uint64(4) {
			in, want := steps(round, 4)
			pending := make([][4]*driver.Pending, len(in))
			for _, place := range rng.Perm(4 * len(in)) { // each member in order, the members mixed
				r := place % 4
				i := 0
				for pending[i][r] != nil {
					i++
				}
				p, err := job.Member(r).StartAllReduce(testContext(t), in[i][r])
				if err != nil {
					t.Fatal(err)
				}
				pending[i][r] = p
			}
			for _, i := range rng.Perm(len(in)) {
				for r, p := range pending[i] {
					if err := p.Wait(testContext(t)); err != nil {
						t.Fatal(err)
					}
					sameBits(t, fmt.Sprintf("array %d of rank %d", i, r), in[i][r], want[i])
					if p.Partials() != nil {
						t.Errorf("array %d lacks ranks", i)
					}
				}
			}
			// A call of all ranks follows, and blocking calls of each.
			in, want = steps(round+100, 4)
			var whole []*driver.Pending
			sums := make([][]float32, len(in))
			for i := range in {
				sums[i] = make([]float32, lengths[i])
				p, err := job.StartReduce(testContext(t), sums[i], in[i])
				if err != nil {
					t.Fatal(err)
				}
				whole = append(whole, p)
			}
			for i, p := range whole {
				if err := p.Wait(testContext(t)); err != nil {
					t.Fatal(err)
				}
				sameBits(t, fmt.Sprintf("array %d", i), sums[i], want[i])
			}
			if err := errors.Join(allReduce(testContext(t), job, in[10])...); err != nil {
				t.Fatal(err)
			}
		}
		if err := job.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPendingKeepsTheWindowFull compares 24 arrays of a chunk, one after another and queued, over a
// link with a round trip of a second: the window of 4 chunks is full from the first array to the last.
func TestPendingKeepsTheWindowFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := open(t, newFar(t, serve(t, small, 64<<10), time.Second), driver.WithTimeout(time.Hour))
		job := configure(t, card, driver.JobConfig{})
		in := arrays(1, 4, 16)
		sums := make([][]float32, 24)
		start := time.Now()
		for i := range sums {
			sums[i] = make([]float32, 16)
			if err := job.Reduce(testContext(t), sums[i], in); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 24*time.Second {
			t.Errorf("one after another took %s, want 24 round trips", took)
		}
		start = time.Now()
		pending := make([]*driver.Pending, len(sums))
		for i := range sums {
			var err error
			if pending[i], err = job.StartReduce(testContext(t), sums[i], in); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range pending {
			if err := p.Wait(testContext(t)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("queued took %s, want 6 round trips: 24 chunks with 4 in flight", took)
		}
	})
}

// TestPendingAcrossOutages queues arrays on a card that goes and comes back in the middle of
// frames. Every bit must be as without outages.
func TestPendingAcrossOutages(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), bubble(func(t *testing.T) {
			card := openName(t, restarting(t, seed, 12, seed%2 == 1, faults.Rates{}))
			cfg := driver.JobConfig{CarryOn: 10 * time.Second}
			if seed >= 5 {
				cfg.Partial, cfg.DeadlineCycles = true, 1<<31
			}
			job := configure(t, card, cfg)
			for round := uint64(0); round < 40 && (round < 4 || job.Outages() < 6); round++ {
				in, want := steps(seed<<8|round, 4)
				var pending []*driver.Pending
				for i := range in {
					for r := range 4 {
						p, err := job.Member(r).StartAllReduce(testContext(t), in[i][r])
						if err != nil {
							t.Fatal(err)
						}
						pending = append(pending, p)
					}
				}
				for _, p := range pending {
					if err := p.Wait(testContext(t)); err != nil {
						t.Fatal(err)
					}
				}
				for i := range in {
					for r := range 4 {
						sameBits(t, fmt.Sprintf("array %d of rank %d", i, r), in[i][r], want[i])
					}
				}
			}
			if n := job.Outages(); n < 6 {
				t.Errorf("%d outages; the test is to have 6", n)
			}
		}))
	}
}

// TestPendingFails checks the errors of queued calls: a wait that ends leaves its call alone, a call
// whose context ends takes the job with it, and calls of one rank exclude those of all.
func TestPendingFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		job := configure(t, openSmall(t), driver.JobConfig{Workers: 2})
		in := arrays(1, 2, 100)
		want := treeSum(in, firstPorts(2), 4)
		first, err := job.Member(0).StartAllReduce(testContext(t), in[0])
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = first.Wait(ctx)
		if wantError[*driver.StoppedError](t, err, "wait for a reduction"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		_, err = job.StartReduce(testContext(t), in[0], in)
		wantInputError(t, err, "reduction: rank 0 is in a call already; calls of all ranks and calls of one rank exclude each other")
		if err := job.Member(1).AllReduce(testContext(t), in[1]); err != nil {
			t.Fatal(err)
		}
		if err := first.Wait(testContext(t)); err != nil {
			t.Fatal(err)
		}
		<-first.Done()
		sameBits(t, "sum", in[0], want)

		stop, cancel := context.WithCancel(t.Context())
		one, err := job.Member(0).StartAllReduce(testContext(t), in[0])
		if err != nil {
			t.Fatal(err)
		}
		two, err := job.Member(0).StartAllReduce(stop, in[1])
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		wantError[*driver.StoppedError](t, two.Wait(testContext(t)), "context canceled")
		wantError[*driver.EndedError](t, one.Wait(testContext(t)))
		wantError[*driver.GivenUpError](t, job.Member(1).AllReduce(testContext(t), in[1]), "the call of rank 0 was canceled")
	})
}

// TestPendingLeaves has a member leave a job with partial sums by the second of three calls: all of
// them end, and the other member goes on.
func TestPendingLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := configure(t, openSmall(t), driver.JobConfig{Workers: 2, Partial: true, DeadlineCycles: 1000})
		in := arrays(1, 2, 300)
		stop, cancel := context.WithCancel(t.Context())
		var pending []*driver.Pending
		for i := range 3 {
			ctx := testContext(t)
			if i == 1 {
				ctx = stop
			}
			p, err := job.Member(0).StartAllReduce(ctx, in[0])
			if err != nil {
				t.Fatal(err)
			}
			pending = append(pending, p)
		}
		cancel()
		wantError[*driver.StoppedError](t, pending[1].Wait(testContext(t)))
		wantError[*driver.EvictedError](t, pending[0].Wait(testContext(t)))
		wantError[*driver.EvictedError](t, pending[2].Wait(testContext(t)))
		other, err := job.Member(1).StartAllReduce(testContext(t), in[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Wait(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if all := other.Partials(); len(all) == 0 || all[len(all)-1].To != 300 {
			t.Errorf("partial sums are %+v, want the last to lack rank 0", all)
		}
	})
}

// TestDetach has a member leave its arrays in the middle of one of three queued calls, and overwrite
// them. The others get their sums with what it contributed, and its next call follows.
func TestDetach(t *testing.T) {
	for after := range 8 { // chunks of the other member's first array, whose sums exist by then
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				job := configure(t, openSmall(t), driver.JobConfig{Workers: 2})
				n := 16*7 - 3
				var in [3][][]float32
				var want [3][]float32
				for i := range in {
					in[i] = arrays(uint64(10*after+i), 2, n)
					want[i] = treeSum(in[i], firstPorts(2), 4)
				}
				stop, cancel := context.WithCancel(t.Context())
				var gone, others []*driver.Pending
				start := func(to *[]*driver.Pending, ctx context.Context, rank int, buf []float32) {
					t.Helper()
					p, err := job.Member(rank).StartAllReduce(ctx, buf, driver.WithDetach())
					if err != nil {
						t.Fatal(err)
					}
					*to = append(*to, p)
				}
				if after > 0 { // the two arrays have chunks in common, and so sums before the end
					start(&others, testContext(t), 1, in[0][1][:min(16*after, n)])
					start(&gone, testContext(t), 0, in[0][0][:min(16*after, n)])
					synctest.Wait()
				}
				for i := range 2 {
					start(&gone, stop, 0, in[i+1][0])
				}
				synctest.Wait()
				cancel()
				for _, p := range gone[len(gone)-2:] {
					if err := p.Wait(testContext(t)); !errors.Is(err, context.Canceled) {
						t.Errorf("got %v", err)
					}
				}
				for i := range 2 {
					for e := range in[i+1][0] {
						in[i+1][0][e] = 1e30 // the race detector checks that nobody reads it
					}
				}
				_, err := job.StartReduce(testContext(t), in[0][0], in[0])
				wantInputError(t, err, "reduction: rank 0 is in a call already; calls of all ranks and calls of one rank exclude each other")
				for i := range 2 {
					start(&others, testContext(t), 1, in[i+1][1])
				}
				for _, p := range others {
					if err := p.Wait(testContext(t)); err != nil {
						t.Fatal(err)
					}
				}
				sameBits(t, "first sum beside a detached call", in[1][1], want[1])
				sameBits(t, "second sum beside a detached call", in[2][1], want[2])
				next := arrays(99, 2, n)
				sum := treeSum(next, firstPorts(2), 4)
				if err := errors.Join(allReduce(testContext(t), job, next)...); err != nil {
					t.Fatal(err)
				}
				sameBits(t, "the next call", next[0], sum)
				if err := job.Close(testContext(t)); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestDetachInTheMiddle has a member leave its array, which sums overwrite, when some of them are
// there.
func TestDetachInTheMiddle(t *testing.T) {
	const elements = 200_000
	job := configure(t, open(t, reach(t, small, 1000)), driver.JobConfig{Workers: 2})
	for seed := range uint64(5) {
		in := arrays(seed, 2, elements)
		want := treeSum(in, firstPorts(2), 4)
		stop, cancel := context.WithCancel(t.Context())
		left, err := job.Member(0).StartAllReduce(stop, in[0], driver.WithDetach(), driver.WithProgress(func(done, total int) {
			if done > int(seed)*total/8 {
				cancel()
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		if err := job.Member(1).AllReduce(testContext(t), in[1]); err != nil {
			t.Fatal(err)
		}
		if err := left.Wait(testContext(t)); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		cancel()
		clear(in[0])
		sameBits(t, "the other member's sum", in[1], want)
		reduced := arrays(99, 2, 1000)
		sum := treeSum(reduced, firstPorts(2), 4)
		if err := errors.Join(allReduce(testContext(t), job, reduced)...); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "the next call", reduced[0], sum)
	}
}
