package driver_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/model"
	"tributary/verify/system/faults"
)

// TestReduce covers the boundaries of lane, chunk and window, with all ports and with some.
func TestReduce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := openSmall(t)
		for _, cfg := range []driver.JobConfig{
			{},
			{Workers: 1},
			{Workers: 3, Window: 1},
			{Workers: 2, Chunk: 4, Window: 2},
			{Ports: []int{1, 3}},
			{Ports: []int{0, 2, 3}, Chunk: 8},
			{Ports: []int{2}},
		} {
			job := configure(t, card, cfg)
			full := job.Config()
			for _, n := range []int{1, 3, 4, 5, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000} {
				what := fmt.Sprintf("%+v, %d elements", full, n)
				in := arrays(uint64(n), full.Workers, n)
				kept := clone(in)
				dst := make([]float32, n)
				if err := job.Reduce(testContext(t), dst, in); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				want := treeSum(kept, full.Ports, small.Ports)
				sameBits(t, what, dst, want)
				for w := range in {
					sameBits(t, what+", an input afterwards", in[w], kept[w])
				}
				if err := job.Reduce(testContext(t), in[full.Workers-1], in); err != nil {
					t.Fatalf("%s, in place: %v", what, err)
				}
				sameBits(t, what+", in place", in[full.Workers-1], want)
			}
			// A busy machine may cause an ask.
			if s := job.Stats(); s.Resent != 0 || s.Refused != 0 || s.Asked > s.Sent/4 {
				t.Errorf("%+v: %+v over a link without faults", full, s)
			}
			if err := job.Close(testContext(t)); err != nil {
				t.Fatalf("%+v: close: %v", full, err)
			}
		}
	})
}

// TestReduceSpecialValues covers infinities, NaNs and signed zeros, also with only one worker,
// where no adder is involved.
func TestReduceSpecialValues(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		patterns := []uint32{0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffc12345, 0x3f800000}
		var a, b []float32
		for _, x := range patterns {
			for _, y := range patterns {
				a, b = append(a, math.Float32frombits(x)), append(b, math.Float32frombits(y))
			}
		}
		card := openSmall(t)
		for _, in := range [][][]float32{{a}, {a, b}, {a, b, a}} {
			job := configure(t, card, driver.JobConfig{Workers: len(in)})
			dst := make([]float32, len(a))
			if err := job.Reduce(testContext(t), dst, in); err != nil {
				t.Fatal(err)
			}
			sameBits(t, fmt.Sprint(len(in), " workers"), dst, treeSum(in, firstPorts(len(in)), small.Ports))
		}
	})
}

// TestVIDWraps has chunk numbers pass 2^32 in the middle of an array.
func TestVIDWraps(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{FirstVID: math.MaxUint32 - 5})
		for round := range uint64(3) {
			in := arrays(round, 4, 300)
			want := treeSum(in, firstPorts(4), 4)
			dst := make([]float32, 300)
			if err := job.Reduce(testContext(t), dst, in); err != nil {
				t.Fatal(err)
			}
			sameBits(t, "sum", dst, want)
		}
		if err := job.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// allReduce has every member of job call AllReduce in a goroutine of its own.
func allReduce(ctx context.Context, job *driver.Job, buffers [][]float32) []error {
	errs := make([]error, len(buffers))
	var wg sync.WaitGroup
	for r := range buffers {
		wg.Go(func() { errs[r] = job.Member(r).AllReduce(ctx, buffers[r]) })
	}
	wg.Wait()
	return errs
}

// TestAllReduce has the members call at the same time, each at its own pace. There are several
// reductions, between calls of Reduce.
func TestAllReduce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{})
		const rounds = 20
		var wg sync.WaitGroup
		for r := range 4 {
			wg.Go(func() {
				for round := range uint64(rounds) {
					n := 1 + int(round*37%200)
					in := arrays(round, 4, n)
					want := treeSum(in, firstPorts(4), 4)
					if r == int(round%4) {
						time.Sleep(time.Millisecond)
					}
					if err := job.Member(r).AllReduce(testContext(t), in[r]); err != nil {
						t.Errorf("rank %d, round %d: %v", r, round, err)
						return
					}
					if !slices.Equal(in[r], want) {
						t.Errorf("rank %d, round %d: another sum", r, round)
					}
				}
			})
		}
		wg.Wait()
		in := arrays(1, 4, 100)
		want := treeSum(in, firstPorts(4), 4)
		if err := job.Reduce(testContext(t), in[0], in); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "Reduce after AllReduce", in[0], want)
		for r := range 4 {
			if s := job.Member(r).Stats(); s.Resent != 0 || s.Sent == 0 || s.Sent != s.Results {
				t.Errorf("rank %d: %+v", r, s)
			}
		}
		if err := job.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestProgress checks that progress begins at 0, never decreases and ends at the total.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{})
		in := arrays(1, 4, 5000)
		var seen []int
		err := job.Reduce(testContext(t), make([]float32, 5000), in, driver.WithProgress(func(done, total int) {
			if total != 5000 {
				t.Errorf("total is %d", total)
			}
			seen = append(seen, done)
		}))
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) < 3 || seen[0] != 0 || seen[len(seen)-1] != 5000 || !slices.IsSorted(seen) {
			t.Errorf("progress went %v", seen)
		}
	})
}

// TestTinyPipes uses a link that holds less than a frame in each direction. A driver whose
// reader waits for its writer would deadlock here.
func TestTinyPipes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, capacity := range []int{1, 7, 100, 1000} {
			card := open(t, reach(t, small, capacity))
			job := configure(t, card, driver.JobConfig{})
			n := min(40*capacity, 4000)
			in := arrays(uint64(capacity), 4, n)
			dst := make([]float32, n)
			if err := job.Reduce(testContext(t), dst, in); err != nil {
				t.Fatalf("pipes of %d bytes: %v", capacity, err)
			}
			sameBits(t, fmt.Sprint("pipes of ", capacity), dst, treeSum(in, firstPorts(4), 4))
			if s := job.Stats(); s.Resent != 0 {
				t.Errorf("pipes of %d bytes: %+v", capacity, s)
			}
		}
	})
}

// TestFaults checks that every sum is exact, whatever the link does to frames.
func TestFaults(t *testing.T) {
	for name, f := range map[string]faults.Rates{
		"drop":    {Drop: 0.05},
		"repeat":  {Repeat: 0.2},
		"swap":    {Reorder: 0.2},
		"flip":    {Flip: 0.05},
		"garbage": {Garbage: 0.2},
		"all":     {Drop: 0.02, Repeat: 0.05, Reorder: 0.05, Flip: 0.02, Garbage: 0.05},
		"heavy":   {Drop: 0.2, Repeat: 0.1, Reorder: 0.1, Flip: 0.1},
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, seed), bubble(func(t *testing.T) {
				f := f
				f.Seed = seed
				n := 700
				if name == "heavy" {
					n = 150 // every chunk takes several timeouts
				}
				reduceWithFaults(t, f, n)
			}))
		}
	}
}

// reduceWithFaults runs both kinds of reduction over a link with faults.
func reduceWithFaults(t *testing.T, f faults.Rates, n int) {
	link := faults.New(serve(t, small, 64<<10), f, new(faults.Counts))
	card := open(t, link, driver.WithTimeout(30*time.Second))
	job := configure(t, card, driver.JobConfig{})
	link.On.Store(true)
	for round := range uint64(4) {
		in := arrays(100*f.Seed+round, 4, n)
		want := treeSum(in, firstPorts(4), 4)
		if round%2 == 0 {
			if err := job.Reduce(testContext(t), in[3], in); err != nil {
				t.Fatalf("round %d: %v, %+v", round, err, job.Stats())
			}
			sameBits(t, "sum", in[3], want)
			continue
		}
		for r, err := range allReduce(testContext(t), job, in) {
			if err != nil {
				t.Fatalf("round %d, rank %d: %v, %+v", round, r, err, job.Stats())
			}
			sameBits(t, "sum", in[r], want)
		}
	}
	if err := job.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if link.Happened.Total() == 0 {
		t.Error("no fault has happened: this tested nothing")
	}
}

// TestFaultsFromTheStart checks that Open, Configure and Close work despite faults too.
func TestFaultsFromTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		link := faults.New(serve(t, small, 64<<10), faults.Rates{Drop: 0.05, Flip: 0.05, Repeat: 0.1, Garbage: 0.1, Seed: 7}, new(faults.Counts))
		link.On.Store(true)
		card := open(t, link)
		job := configure(t, card, driver.JobConfig{Workers: 2})
		in := arrays(1, 2, 100)
		dst := make([]float32, 100)
		if err := job.Reduce(testContext(t), dst, in); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "sum", dst, treeSum(in, firstPorts(2), 4))
		if err := job.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSlowCard checks a card much slower than its register accesses suggest. The driver must
// ask rarely and send nothing twice.
func TestSlowCard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		link := faults.New(serve(t, small, 600), faults.Rates{Pause: 300 * time.Millisecond}, new(faults.Counts))
		card := open(t, link)
		job := configure(t, card, driver.JobConfig{})
		link.On.Store(true)
		in := arrays(1, 4, 200)
		dst := make([]float32, 200)
		if err := job.Reduce(testContext(t), dst, in); err != nil {
			t.Fatal(err)
		}
		link.On.Store(false)
		sameBits(t, "sum", dst, treeSum(in, firstPorts(4), 4))
		if s := job.Stats(); s.Resent != 0 {
			t.Errorf("%+v: chunks were sent twice to a card that is slow", s)
		}
		counters, err := card.Counters(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range counters {
			if c.Name == "duplicate" && c.Value != 0 {
				t.Errorf("the card counted %d duplicates", c.Value)
			}
		}
	})
}

// TestZeroAllocations checks that a reduction of many chunks allocates no more than one of few.
func TestZeroAllocations(t *testing.T) {
	card := open(t, reach(t, model.Config{Lanes: 4, Ports: 2, Chunk: 64, Window: 8, Shell: small.Shell, Link: 32}, 64<<10))
	job := configure(t, card, driver.JobConfig{})
	ctx := testContext(t)
	reduce := func(n int) float64 {
		in := arrays(1, 2, n)
		dst := make([]float32, n)
		return testing.AllocsPerRun(5, func() {
			if err := job.Reduce(ctx, dst, in); err != nil {
				t.Fatal(err)
			}
		})
	}
	reduce(10000) // lets all buffers grow
	few, many := reduce(64), reduce(64*2000)
	if many > few+20 { // the runtime allocates now and then; chunks must not
		t.Errorf("%v allocations for 1 chunk and %v for 2000", few, many)
	}
}

func TestInputErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := openSmall(t)
		for _, c := range []struct {
			cfg  driver.JobConfig
			what string
		}{
			{driver.JobConfig{Workers: 5}, "workers: 5 workers, but card test has 4 ports; use fewer, or a card generated with -workers 5"},
			{driver.JobConfig{Workers: -1}, "workers: -1 is negative"},
			{driver.JobConfig{Workers: 2, Ports: []int{1}}, "ports: 1 ports for 2 workers; every worker needs one"},
			{driver.JobConfig{Ports: []int{4}}, "ports: card test has no port 4, its ports are 0 to 3"},
			{driver.JobConfig{Ports: []int{2, 1}}, "ports: port 1 follows port 2; list ports in ascending order"},
			{driver.JobConfig{Chunk: 6}, "chunk: 6 elements; card test takes multiples of 4 up to 16"},
			{driver.JobConfig{Chunk: 20}, "chunk: 20 elements; card test takes multiples of 4 up to 16"},
			{driver.JobConfig{Chunk: -4}, "chunk: -4 elements; card test takes multiples of 4 up to 16"},
			{driver.JobConfig{Window: 3}, "window: 3 chunks; card test takes powers of two up to 4"},
			{driver.JobConfig{Window: 8}, "window: 8 chunks; card test takes powers of two up to 4"},
		} {
			_, err := card.Configure(testContext(t), c.cfg)
			wantInputError(t, err, c.what)
		}

		job := configure(t, card, driver.JobConfig{Workers: 2})
		a := make([]float32, 40)
		for _, c := range []struct {
			dst    []float32
			inputs [][]float32
			what   string
		}{
			{a, [][]float32{a}, "inputs: 1 arrays for a job of 2 workers; every worker has one"},
			{a, [][]float32{a, a[:39]}, "array of worker 1: it has 39 elements, the result 40; all arrays have the same length"},
			{nil, [][]float32{nil, nil}, "result: it is empty; a reduction has at least one element"},
			{a[:20], [][]float32{a[20:], a[1:21]}, "array of worker 1: it overlaps the result without being the same array; results would overwrite elements before they are sent; use separate arrays"},
		} {
			wantInputError(t, job.Reduce(testContext(t), c.dst, c.inputs), c.what)
		}
		wantInputError(t, job.Member(1).AllReduce(testContext(t), nil), "buffer of rank 1: it is empty; a reduction has at least one element")
		if err := job.Reduce(testContext(t), a, [][]float32{a, a}); err != nil {
			t.Errorf("the job is not usable after bad input: %v", err)
		}
	})
}

func wantInputError(t *testing.T, err error, message string) {
	t.Helper()
	var input *driver.InputError
	if !errors.As(err, &input) || err.Error() != message {
		t.Errorf("got %v\nwant %s", err, message)
	}
}
