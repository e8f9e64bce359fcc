package driver_test

// Several trees (TREES.md, section 7). The expected sums are those of package model's arithmetic, or
// treeSum, of whole arrays: a schedule changes no bit of them.

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/schedule"
)

// openTrees opens a card for each tree.
func openTrees(t testing.TB, names ...string) []driver.ForestTree {
	trees := make([]driver.ForestTree, len(names))
	for i, name := range names {
		card, err := driver.Open(testContext(t), name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { card.Close() })
		trees[i] = card
	}
	return trees
}

func configureForest(t testing.TB, trees []driver.ForestTree, cfg driver.ForestConfig) *driver.Forest {
	t.Helper()
	f, err := driver.ConfigureForest(testContext(t), trees, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// some returns n times a name.
func some(name string, n int) []string {
	return strings.Fields(strings.Repeat(name+" ", n))
}

const smallCard = ":lanes=4,workers=3,chunk=16,window=4"

// forestShapes are numbers of trees with schedules.
var forestShapes = []struct {
	trees    int
	schedule schedule.Schedule
}{
	{1, nil}, {2, nil}, {2, schedule.Schedule{0, 0, 1}}, {3, nil}, {5, nil}, {5, schedule.Schedule{4, 0, 2, 2}}, {2, schedule.Schedule{1}},
}

// TestForest sums arrays of many lengths over several trees, by all ranks and by members that queue
// their calls, in place.
func TestForest(t *testing.T) {
	const workers = 3
	for _, scheme := range []string{"cpu", "model"} {
		for _, shape := range forestShapes {
			t.Run(fmt.Sprint(scheme, shape.trees, shape.schedule), func(t *testing.T) {
				f := configureForest(t, openTrees(t, some(scheme+smallCard, shape.trees)...), driver.ForestConfig{Schedule: shape.schedule})
				lengths := []int{1, 15, 16, 17, 3 * 16, 100, 1001, 2, 33, 700}
				for i, n := range lengths {
					in := arrays(uint64(i), workers, n)
					want := treeSum(in, firstPorts(workers), workers)
					if err := f.Reduce(testContext(t), in[i%workers], in); err != nil {
						t.Fatal(err)
					}
					sameBits(t, fmt.Sprint("sum of ", n), in[i%workers], want)
				}
				var members sync.WaitGroup
				for r := range workers {
					members.Go(func() {
						var pending []*driver.Pending
						var bufs [][]float32
						for i, n := range lengths {
							bufs = append(bufs, arrays(uint64(100+i), workers, n)[r])
							p, err := f.Member(r).StartAllReduce(testContext(t), bufs[i])
							if err != nil {
								t.Error(err)
								return
							}
							pending = append(pending, p)
						}
						for i, p := range pending {
							if err := p.Wait(testContext(t)); err != nil {
								t.Error(err)
								return
							}
							sameBits(t, fmt.Sprintf("rank %d, call %d", r, i), bufs[i], treeSum(arrays(uint64(100+i), workers, lengths[i]), firstPorts(workers), workers))
						}
					})
				}
				members.Wait()
				if err := f.Close(testContext(t)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestForestUsesItsSchedule counts the chunks of each tree: the place in the schedule goes on from
// call to call.
func TestForestUsesItsSchedule(t *testing.T) {
	f := configureForest(t, openTrees(t, some("cpu"+smallCard, 3)...), driver.ForestConfig{Schedule: schedule.Schedule{0, 2, 0, 0}})
	for range 6 { // 3 chunks each
		in := arrays(1, 3, 40)
		if err := f.Reduce(testContext(t), in[0], in); err != nil {
			t.Fatal(err)
		}
	}
	for tree, want := range []uint64{13, 0, 5} { // chunks 1, 5, 9, 13, 17 of 18 belong to tree 2
		if got := f.Stats()[tree].Sent; got != 3*want {
			t.Errorf("tree %d got %d chunks, not %d", tree, got, 3*want)
		}
	}
}

// TestForestInputs has all that a forest refuses.
func TestForestInputs(t *testing.T) {
	a := openTrees(t, "cpu"+smallCard, "cpu:lanes=4,workers=3,chunk=16,window=4,format=bf16", "cpu:lanes=4,workers=3,chunk=16,window=4,sum=exact", "cpu:lanes=4,workers=2,chunk=8", "cpu:lanes=1,workers=3,chunk=3", "cpu:format=int32", "cpu:format=int32,saturate=true", "cpu:format=bf16,result=fp32")
	for _, c := range []struct {
		trees []driver.ForestTree
		cfg   driver.ForestConfig
		want  string
	}{
		{nil, driver.ForestConfig{}, "trees: there are none"},
		{a[:1], driver.ForestConfig{Schedule: schedule.Schedule{}}, "schedule: it names no tree"},
		{a[:1], driver.ForestConfig{Schedule: schedule.Schedule{0, 1}}, "schedule: entry 1 names tree 1, which does not exist"},
		{[]driver.ForestTree{a[0], a[1]}, driver.ForestConfig{}, "trees: card cpu:lanes=4,workers=3,chunk=16,window=4 has format fp32, card cpu:lanes=4,workers=3,chunk=16,window=4,format=bf16 bf16"},
		{[]driver.ForestTree{a[0], a[2]}, driver.ForestConfig{}, "has sum tree, card cpu:lanes=4,workers=3,chunk=16,window=4,sum=exact exact"},
		{[]driver.ForestTree{a[5], a[6]}, driver.ForestConfig{}, "has saturation false, card cpu:format=int32,saturate=true true"},
		{[]driver.ForestTree{a[1], a[7]}, driver.ForestConfig{}, "has result format bf16, card cpu:format=bf16,result=fp32 fp32"},
		{[]driver.ForestTree{a[0], a[3]}, driver.ForestConfig{}, "workers: card cpu:lanes=4,workers=3,chunk=16,window=4 has 3 ports, card cpu:lanes=4,workers=2,chunk=8 2"},
		{[]driver.ForestTree{a[0], a[3]}, driver.ForestConfig{Job: driver.JobConfig{Workers: 3}}, "workers: 3 workers, but card cpu:lanes=4,workers=2,chunk=8 has 2 ports"},
		{[]driver.ForestTree{a[0], a[3]}, driver.ForestConfig{Job: driver.JobConfig{Workers: 2, Chunk: 16}}, "chunk: 16 elements; card cpu:lanes=4,workers=2,chunk=8 takes"},
		{[]driver.ForestTree{a[0], a[4]}, driver.ForestConfig{}, "chunk: the lanes of one card"},
		{[]driver.ForestTree{a[0], a[0]}, driver.ForestConfig{}, "trees 0 and 1 have the same card"},
		{a[:1], driver.ForestConfig{Job: driver.JobConfig{Here: []int{0}}}, "here: all members"},
		{a[:1], driver.ForestConfig{Move: true, Job: driver.JobConfig{Partial: true, DeadlineCycles: 1000}}, "move: it excludes partial sums"},
	} {
		_, err := driver.ConfigureForest(testContext(t), c.trees, c.cfg)
		var input *driver.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v instead of %q", err, c.want)
		}
	}
	// A mixed pair works with the smaller chunk.
	f := configureForest(t, []driver.ForestTree{a[0], a[3]}, driver.ForestConfig{Job: driver.JobConfig{Workers: 2}})
	if chunk := f.Config().Job.Chunk; chunk != 8 {
		t.Errorf("chunks of %d", chunk)
	}
	ctx := testContext(t)
	var input *driver.InputError
	for _, err := range []error{
		f.Reduce(ctx, nil, [][]float32{nil, nil}),
		f.Reduce(ctx, make([]float32, 3), [][]float32{make([]float32, 3)}),
		f.Member(1).AllReduce(ctx, nil),
		f.Reduce(ctx, make([]float32, 3), [][]float32{make([]float32, 3), make([]float32, 4)}),
	} {
		if !errors.As(err, &input) {
			t.Error(err)
		}
	}
	// Nothing of these calls began.
	in := arrays(1, 2, 100)
	want := treeSum(in, firstPorts(2), 2)
	if err := f.Reduce(ctx, in[0], in); err != nil {
		t.Fatal(err)
	}
	sameBits(t, "sum", in[0], want)

	// Members at different calls.
	p, err := f.Member(0).StartAllReduce(ctx, make([]float32, 20))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		f.Reduce(ctx, in[0], in),
		f.Member(1).AllReduce(ctx, make([]float32, 60)),
		f.Close(ctx),
	} {
		if !errors.As(err, &input) {
			t.Error(err)
		}
	}
	if err := errors.Join(f.Member(1).AllReduce(ctx, make([]float32, 20)), p.Wait(ctx), f.Close(ctx)); err != nil {
		t.Error(err)
	}
	if err := f.Reduce(ctx, in[0], in); !errors.As(err, &input) {
		t.Error(err)
	}
}

// TestForestFails kills one card. All calls end with its death, and so do later ones.
func TestForestFails(t *testing.T) {
	for _, scheme := range []string{"cpu", "model"} {
		t.Run(scheme, func(t *testing.T) {
			trees := openTrees(t, some(scheme+smallCard, 3)...)
			f := configureForest(t, trees, driver.ForestConfig{})
			var pending []*driver.Pending
			for range 3 { // that wait for rank 0
				p, err := f.Member(1).StartAllReduce(testContext(t), make([]float32, 500), driver.WithCallTimeout(time.Hour))
				if err != nil {
					t.Fatal(err)
				}
				pending = append(pending, p)
			}
			trees[1].(*driver.Card).Close()
			for _, p := range pending {
				if err := p.Wait(testContext(t)); !errors.Is(err, driver.ErrClosed) {
					t.Error(err)
				}
			}
			if err := f.Member(0).AllReduce(testContext(t), make([]float32, 500)); err == nil {
				t.Error("a call succeeds after the end")
			}
			// The other cards have dropped their jobs.
			card := trees[2].(*driver.Card)
			jobs, err := card.Jobs(testContext(t))
			if err != nil || jobs[0].SetUp {
				t.Errorf("%v, %v", jobs, err)
			}
		})
	}
}

// TestForestCanceled: the context of one call ends the forest, and its error is that call's alone.
func TestForestCanceled(t *testing.T) {
	f := configureForest(t, openTrees(t, some("cpu"+smallCard, 2)...), driver.ForestConfig{})
	ctx, cancel := context.WithCancel(testContext(t))
	p, err := f.Member(0).StartAllReduce(ctx, make([]float32, 500))
	if err != nil {
		t.Fatal(err)
	}
	q, err := f.Member(1).StartAllReduce(testContext(t), make([]float32, 500))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := p.Wait(testContext(t)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var ended *driver.EndedError
	if err := q.Wait(testContext(t)); !errors.As(err, &ended) || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestForestSlowTree: a call that waits for members on one tree does not time out while another tree
// makes progress, which these members wait for.
func TestForestSlowTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newFar(t, serve(t, small, 64<<10), 300*time.Millisecond)
		trees := []driver.ForestTree{open(t, slow, driver.WithTimeout(time.Second)), open(t, serve(t, small, 64<<10), driver.WithTimeout(time.Second))}
		f := configureForest(t, trees, driver.ForestConfig{Job: driver.JobConfig{Workers: 2}, Schedule: append(make(schedule.Schedule, 40), 1)})
		ctx := testContext(t)
		start := func(rank int, n int) *driver.Pending {
			p, err := f.Member(rank).StartAllReduce(ctx, make([]float32, n))
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		long, short := start(0, 40*16), start(0, 16) // which has its chunk on the other tree
		if err := start(1, 40*16).Wait(ctx); err != nil {
			t.Error(err)
		}
		if err := errors.Join(start(1, 16).Wait(ctx), long.Wait(ctx), short.Wait(ctx)); err != nil {
			t.Error(err)
		}
	})
}

// TestForestMean divides once, over all trees, and progress counts up to all elements.
func TestForestMean(t *testing.T) {
	f := configureForest(t, openTrees(t, some("cpu"+smallCard, 3)...), driver.ForestConfig{})
	in := make([][]float32, 3)
	for r := range in {
		in[r] = make([]float32, 200)
		for i := range in[r] {
			in[r][i] = float32(3 * i * r)
		}
	}
	var last atomic.Int64
	last.Store(-1)
	progress := driver.WithProgress(func(done, total int) {
		if before := last.Swap(int64(done)); int64(done) <= before || total != 200 {
			t.Errorf("%d of %d after %d", done, total, before)
		}
	})
	if err := f.Reduce(testContext(t), in[0], in, driver.WithMean(), progress); err != nil {
		t.Fatal(err)
	}
	for i, x := range in[0] {
		if x != float32(3*i) {
			t.Fatalf("element %d is %v", i, x)
		}
	}
	if last.Load() != 200 {
		t.Errorf("progress ended at %d", last.Load())
	}
}

// TestForestExceptions finds the first NaN of a tree in the arrays of the second call.
func TestForestExceptions(t *testing.T) {
	f := configureForest(t, openTrees(t, some("cpu"+smallCard, 2)...), driver.ForestConfig{Schedule: schedule.Schedule{0, 0, 1}})
	in := arrays(1, 3, 5*16)
	for r := range in {
		for i := range in[r] {
			in[r][i] = 1
		}
	}
	sum := make([]float32, len(in[0]))
	ctx := testContext(t)
	if err := f.Reduce(ctx, sum, in); err != nil {
		t.Fatal(err)
	}
	nan := in[1][0] - in[1][0]
	in[1][3*16+5] = nan / nan // chunk 8 of all, and so of tree 1
	if err := f.Reduce(ctx, sum, in); err != nil {
		t.Fatal(err)
	}
	all, err := f.Exceptions(ctx)
	if err != nil || len(all) != 2 || all[0].Any() || all[1].NonfiniteIn.Count != 1 || all[1].NonfiniteIn.Rank != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	raw := func(a []float32) (b []byte) {
		for _, x := range a {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	places := f.Locate(all[1], 5, raw(sum), [][]byte{raw(in[0]), raw(in[1]), raw(in[2])})
	if p := places.NonfiniteIn; p == nil || *p != (driver.Place{Chunk: 3, Element: 3*16 + 5}) {
		t.Errorf("%v", p)
	}
	if p := places.NonfiniteOut; p == nil || p.Element != 3*16+5 {
		t.Errorf("%v", p)
	}
	if p := f.Locate(all[1], 0, raw(sum), [][]byte{raw(in[0]), raw(in[1]), raw(in[2])}); p.NonfiniteIn != nil {
		t.Errorf("found %v in the first call", p.NonfiniteIn)
	}
}

// TestForestFormats compares forests with one card of package model, on random bits.
func TestForestFormats(t *testing.T) {
	for _, options := range []string{"format=bf16,sum=exact,result=fp32", "format=int32,saturate=true", "format=fp8e4m3,sum=max", "sum=fused", "format=fp16"} {
		var sums [3][]byte
		for i, names := range [][]string{{"model:"}, {"cpu:", "cpu:", "cpu:"}, {"model:", "cpu:"}} {
			for n := range names {
				names[n] += "lanes=4,workers=3,chunk=16,window=4," + options
			}
			trees := openTrees(t, names...)
			info, n := trees[0].Info(), 2005
			rng := rand.New(rand.NewPCG(8, 9))
			inputs := make([][]byte, 3)
			for r := range inputs {
				inputs[r] = make([]byte, n*element.Size(info.Format))
				for b := range inputs[r] {
					inputs[r][b] = byte(rng.Uint32())
				}
			}
			sums[i] = make([]byte, n*element.Size(info.Result))
			var err error
			if i == 0 {
				err = configure(t, trees[0].(*driver.Card), driver.JobConfig{}).ReduceBytes(testContext(t), sums[i], inputs)
			} else {
				err = configureForest(t, trees, driver.ForestConfig{Schedule: schedule.Schedule{1, 0, 0}}).ReduceBytes(testContext(t), sums[i], inputs)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(sums[0], sums[1]) || !bytes.Equal(sums[0], sums[2]) {
			t.Errorf("%s: other bits than one card's", options)
		}
	}
}

// TestForestOverUDP has a tree on the network and one in this process.
func TestForestOverUDP(t *testing.T) {
	trees := openTrees(t, serveUDP(t, smallUDP), serveUDP(t, smallUDP), "cpu:lanes=4,workers=4,chunk=16")
	for _, tree := range trees[:2] {
		keepForever(t, tree.(*driver.Card))
	}
	f := configureForest(t, trees, driver.ForestConfig{})
	in := arrays(3, 4, 1500)
	want := treeSum(in, firstPorts(4), 4)
	var members sync.WaitGroup
	for r := range 4 {
		members.Go(func() {
			if err := f.Member(r).AllReduce(testContext(t), in[r]); err != nil {
				t.Error(err)
			}
		})
	}
	members.Wait()
	for r := range 4 {
		sameBits(t, fmt.Sprintf("sum of rank %d", r), in[r], want)
	}
	if err := f.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestForestPartial: sums that lack a member are reported in elements of the arrays, for chunks of both
// trees.
func TestForestPartial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := configureForest(t, []driver.ForestTree{openSmall(t), openSmall(t)}, driver.ForestConfig{Job: partialJob, Schedule: schedule.Schedule{0, 0, 1}})
		inputs := arrays(4, 4, 505)
		left := []int{0, 2, 3}
		bufs := clone(inputs)
		var members sync.WaitGroup
		for _, r := range left {
			members.Go(func() {
				if err := f.Member(r).AllReduce(testContext(t), bufs[r]); err != nil {
					t.Error(err)
				}
			})
		}
		members.Wait()
		at := 0
		for _, p := range f.Member(2).Partials() {
			if p.From != at || !slices.Equal(p.Ranks, left) {
				t.Errorf("%+v after %d", p, at)
			}
			at = p.To
		}
		if at != 505 {
			t.Errorf("the partial sums end at %d", at)
		}
		sameBits(t, "sum of those left", bufs[2], sumOf(inputs, left))
		if evicted := f.Evicted(); !slices.Equal(evicted, []int{1}) {
			t.Errorf("evicted: %v", evicted)
		}
		var out *driver.EvictedError
		if err := f.Member(1).AllReduce(testContext(t), bufs[1]); !errors.As(err, &out) || out.Rank != 1 {
			t.Error(err)
		}
		if err := f.Close(testContext(t)); err != nil {
			t.Error(err)
		}
	})
}
