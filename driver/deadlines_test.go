package driver_test

// Deadlines: workers that stall, are late, leave or die, on the model card.

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
)

// soon is a deadline of 200 ms on a model card. It leaves punctual workers time on a busy
// machine.
const soon = 20_000_000

// millisecond is a millisecond in the model card's cycles.
const millisecond = 100_000

// partialJob is a job with partial sums on all ports of the small card.
var partialJob = driver.JobConfig{DeadlineCycles: soon, Partial: true}

// reduceAll has the given ranks call AllReduce, each with its array. It returns the resulting
// arrays and the errors.
func reduceAll(ctx context.Context, job *driver.Job, ranks []int, inputs [][]float32) (sums [][]float32, errs []error) {
	sums, errs = clone(inputs), make([]error, len(inputs))
	var wg sync.WaitGroup
	for _, r := range ranks {
		wg.Go(func() { errs[r] = job.Member(r).AllReduce(ctx, sums[r]) })
	}
	wg.Wait()
	return sums, errs
}

// sumOf returns the sum of some ranks' arrays on the small card, rank r on port r.
func sumOf(inputs [][]float32, ranks []int) []float32 {
	var chosen [][]float32
	for _, r := range ranks {
		chosen = append(chosen, inputs[r])
	}
	return treeSum(chosen, ranks, small.Ports)
}

// wantNil checks that none of the ranks has an error.
func wantNil(t *testing.T, errs []error, ranks ...int) {
	t.Helper()
	for _, r := range ranks {
		if errs[r] != nil {
			t.Fatalf("rank %d: %v", r, errs[r])
		}
	}
}

// mute is a link that loses what one rank sends once on is set.
type mute struct {
	transport.Conn
	on   atomic.Bool
	rank uint8
}

func (m *mute) Write(p []byte) (int, error) {
	if !m.on.Load() {
		return m.Conn.Write(p)
	}
	var rest []byte
	scan := frame.NewScanner(frame.ToCard, 0)
	for left := p; len(left) > 0; {
		left = left[scan.Feed(left):]
		for f := (frame.Frame{}); scan.Next(&f); {
			ofRank := f.Kind == wire.KindData || f.Kind == wire.KindAsk || f.Kind == wire.KindFinish
			if !ofRank || f.Rank != m.rank {
				rest = append(rest, f.Raw...)
			}
		}
	}
	_, err := m.Conn.Write(rest)
	return len(p), err
}

// closes closes a job.
func closes(t *testing.T, job *driver.Job) {
	t.Helper()
	if err := job.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
}

func TestDeadlineReportsMissingRanks(t *testing.T) {
	for name, cfg := range map[string]driver.JobConfig{
		"time": {Deadline: 20 * time.Millisecond}, "cycles": {DeadlineCycles: 20 * millisecond},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			told := make(chan driver.Overdue, 100)
			cfg.OnOverdue = func(o driver.Overdue) { told <- o }
			card := openSmall(t)
			job := configure(t, card, cfg)
			inputs := arrays(1, 4, 40)
			began := time.Now()
			var came time.Duration
			first := make(chan driver.Overdue, 1)
			sums := clone(inputs)
			errs := make([]error, 4)
			var wg sync.WaitGroup
			for r := range 4 {
				wg.Go(func() {
					if r == 2 {
						first <- <-told
						<-told // for the second time
						came = time.Since(began)
					}
					errs[r] = job.Member(r).AllReduce(testContext(t), sums[r])
				})
			}
			wg.Wait()
			wantNil(t, errs, 0, 1, 2, 3)
			if got, want := <-first, (driver.Overdue{Card: "test", VID: 0, Ranks: []int{2}}); got.VID > 2 || !slices.Equal(got.Ranks, want.Ranks) || got.Card != want.Card {
				t.Errorf("told %+v, want %+v", got, want)
			}
			if came < 20*time.Millisecond || came > 5*time.Second {
				t.Errorf("told after %s", came)
			}
			for r := range 4 {
				sameBits(t, "whole sum", sums[r], sumOf(inputs, []int{0, 1, 2, 3}))
				if p := job.Member(r).Partials(); p != nil {
					t.Errorf("rank %d: %+v", r, p)
				}
			}
			closes(t, job)
		}))
	}
}

// TestLateMember checks that a member that stalls for one reduction still gets its results, and
// takes part in later ones.
func TestLateMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, partialJob)
		inputs := arrays(2, 4, 50) // 4 chunks, the last one short
		early := []int{0, 1, 3}
		sums, errs := reduceAll(testContext(t), job, early, inputs)
		wantNil(t, errs, early...)
		want := []driver.Partial{{VID: 0, From: 0, To: 50, Ranks: early}}
		for _, r := range early {
			sameBits(t, "partial sum", sums[r], sumOf(inputs, early))
			if got := job.Member(r).Partials(); !reflect.DeepEqual(got, want) {
				t.Errorf("rank %d: %+v, want %+v", r, got, want)
			}
		}
		late, errs := reduceAll(testContext(t), job, []int{2}, inputs)
		wantNil(t, errs, 2)
		sameBits(t, "what comes late", late[2], sums[0])
		if got := job.Member(2).Partials(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}

		all := []int{0, 1, 2, 3}
		next := arrays(3, 4, 50)
		sums, errs = reduceAll(testContext(t), job, all, next)
		wantNil(t, errs, all...)
		for _, r := range all {
			sameBits(t, "sum of all", sums[r], sumOf(next, all))
			if got := job.Member(r).Partials(); got != nil {
				t.Errorf("rank %d: %+v", r, got)
			}
		}
		if e := job.Evicted(); len(e) != 0 {
			t.Errorf("evicted: %v", e)
		}
		closes(t, job)
	})
}

// TestDeadMember checks that a dead member is evicted, that the others continue, and that the next
// job has all members.
func TestDeadMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, partialJob)
		inputs := arrays(4, 4, 500) // 32 chunks of 16; 8 have a slot
		all, left := []int{0, 1, 2, 3}, []int{0, 2, 3}
		sums, errs := reduceAll(testContext(t), job, left, inputs)
		wantNil(t, errs, left...)
		for _, r := range left {
			sameBits(t, "sum of those left", sums[r], sumOf(inputs, left))
		}
		if e := job.Evicted(); !slices.Equal(e, []int{1}) {
			t.Fatalf("evicted: %v", e)
		}
		_, errs = reduceAll(testContext(t), job, []int{1}, inputs)
		if e := wantError[*driver.EvictedError](t, errs[1], "rank 1", "configure a new one"); e.Rank != 1 || e.VID >= 8 {
			t.Errorf("%+v", e)
		}
		states, err := card.Jobs(testContext(t))
		if err != nil || !slices.Equal(states[0].Evicted, []int{1}) || !states[0].SetUp {
			t.Errorf("%+v, %v", states, err)
		}
		// Reduce works for the remaining members.
		sum := make([]float32, 500)
		if err := job.Reduce(testContext(t), sum, inputs); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "Reduce", sum, sumOf(inputs, left))
		if got, want := job.Partials(), []driver.Partial{{VID: 32, From: 0, To: 500, Ranks: left}}; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		closes(t, job)
		if states, err := card.Jobs(testContext(t)); err != nil || states[0].SetUp {
			t.Errorf("%+v, %v", states, err)
		}

		job = configure(t, card, partialJob)
		sums, errs = reduceAll(testContext(t), job, all, inputs)
		wantNil(t, errs, all...)
		sameBits(t, "sum of all again", sums[1], sumOf(inputs, all))
		closes(t, job)
	})
}

// TestDiesInACall checks that a member is evicted during a call when nothing it sends arrives.
func TestDiesInACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &mute{Conn: serve(t, small, 64<<10), rank: 1}
		card := open(t, link)
		job := configure(t, card, partialJob)
		inputs := arrays(5, 4, 500)
		link.on.Store(true)
		sums, errs := reduceAll(testContext(t), job, []int{0, 1, 2, 3}, inputs)
		wantNil(t, errs, 0, 2, 3)
		wantError[*driver.EvictedError](t, errs[1], "rank 1", "its data came too late")
		for _, r := range []int{0, 2, 3} {
			sameBits(t, "sum of those left", sums[r], sumOf(inputs, []int{0, 2, 3}))
		}
		closes(t, job)
	})
}

// TestRefusedCallHasNoPartials checks that Partials is empty after a refused call of an evicted
// member, and does not repeat the call before.
func TestRefusedCallHasNoPartials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, partialJob)
		inputs := arrays(14, 4, 20)
		present, left := []int{0, 1}, []int{0}
		_, errs := reduceAll(testContext(t), job, present, inputs)
		wantNil(t, errs, present...)
		if got := job.Member(1).Partials(); len(got) != 1 {
			t.Fatalf("%+v", got)
		}
		_, errs = reduceAll(testContext(t), job, left, arrays(15, 4, 500))
		wantNil(t, errs, left...)
		_, errs = reduceAll(testContext(t), job, []int{1}, inputs)
		wantError[*driver.EvictedError](t, errs[1], "rank 1")
		if got := job.Member(1).Partials(); got != nil {
			t.Errorf("%+v", got)
		}
		closes(t, job)
		_, errs = reduceAll(testContext(t), job, left, inputs)
		wantError[*driver.EndedError](t, errs[0])
		if got := job.Member(0).Partials(); got != nil {
			t.Errorf("%+v", got)
		}
	})
}

// TestLeaves checks that a member whose context ends leaves the job without ending it for the
// others.
func TestLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openHolding(t, 2)
		job := configure(t, card, driver.JobConfig{Ports: []int{0, 1, 2}, DeadlineCycles: soon, Partial: true})
		inputs := arrays(6, 3, 20)
		ctx, cancel := context.WithCancel(testContext(t))
		cancel()
		_, errs := reduceAll(ctx, job, []int{0}, inputs)
		if !errors.Is(errs[0], context.Canceled) {
			t.Fatal(errs[0])
		}
		_, errs = reduceAll(testContext(t), job, []int{0, 1, 2}, inputs)
		wantNil(t, errs, 1, 2)
		if e := wantError[*driver.EvictedError](t, errs[0], "rank 0", "its call was canceled", "context canceled"); errors.Is(e, context.Canceled) || e.Err != context.Canceled {
			t.Errorf("%v, of a context that ended in an earlier call", e)
		}
		if e := job.Evicted(); !slices.Equal(e, []int{0}) {
			t.Errorf("evicted: %v", e)
		}
		closes(t, job)
		states, err := card.Jobs(testContext(t))
		if err != nil || states[0].SetUp {
			t.Errorf("the card waits for who has left: %+v, %v", states, err)
		}
	})
}

// TestLastMemberLeaves checks that a job without members has ended.
func TestLastMemberLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{Workers: 2, DeadlineCycles: soon, Partial: true})
		for r := range 2 {
			ctx, cancel := context.WithCancel(testContext(t))
			cancel()
			if err := job.Member(r).AllReduce(ctx, make([]float32, 2000)); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		wantError[*driver.EndedError](t, job.Member(0).AllReduce(testContext(t), make([]float32, 20)))
		reuse(t, card)
	})
}

// TestAllAreEvicted checks that a call without remaining members fails, and that the job can be
// closed.
func TestAllAreEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		p.other = func(f *frame.Frame) []frame.Header {
			if f.Kind != wire.KindData {
				return nil
			}
			return []frame.Header{{Kind: wire.KindStatus, Epoch: f.Epoch, Rank: f.Rank, VID: f.VID, Code: wire.CodeEvicted}}
		}
		card := open(t, p.serve(t))
		job := configure(t, card, driver.JobConfig{DeadlineCycles: soon, Partial: true})
		inputs := [][]float32{make([]float32, 9), make([]float32, 9)}
		for range 2 {
			err := job.Reduce(testContext(t), make([]float32, 9), inputs)
			if e := wantError[*driver.EvictedError](t, err, "its data came too late"); e.VID != 0 {
				t.Errorf("%+v", e)
			}
		}
		closes(t, job)
	})
}

// TestLateCopyOfOneThatLeft sends late data of a member that has left, after the card has the
// finishes of all others. The card refuses it, which once made Close fail.
func TestLateCopyOfOneThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		late := true
		p.other = func(f *frame.Frame) []frame.Header {
			if f.Kind != wire.KindFinish {
				return nil
			}
			status := frame.Header{Kind: wire.KindStatus, Epoch: f.Epoch, Rank: f.Rank, VID: f.VID, Code: wire.CodeDone}
			if late {
				late = false
				status.Rank, status.VID, status.Code = 1, 5, wire.CodeBadJob
			}
			return []frame.Header{status}
		}
		card := open(t, p.serve(t))
		job := configure(t, card, driver.JobConfig{DeadlineCycles: soon, Partial: true})
		ctx, cancel := context.WithCancel(testContext(t))
		cancel()
		if err := job.Member(1).AllReduce(ctx, make([]float32, 200)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		closes(t, job)
	})
}

// TestEvictionsAddUp checks that the first evicted member stays out, and that Reduce works for
// the others.
func TestEvictionsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &mute{Conn: serve(t, small, 64<<10), rank: 1}
		card := open(t, link)
		job := configure(t, card, partialJob)
		inputs := arrays(7, 4, 500)
		link.on.Store(true)
		_, errs := reduceAll(testContext(t), job, []int{0, 1, 2, 3}, inputs)
		wantNil(t, errs, 0, 2, 3)
		_, errs = reduceAll(testContext(t), job, []int{1, 2, 3}, inputs) // rank 0 is absent
		wantNil(t, errs, 2, 3)
		if e := job.Evicted(); !slices.Equal(e, []int{0, 1}) {
			t.Fatalf("evicted: %v", e)
		}
		sum := make([]float32, 500)
		if err := job.Reduce(testContext(t), sum, inputs); err != nil {
			t.Fatal(err)
		}
		sameBits(t, "Reduce", sum, sumOf(inputs, []int{2, 3}))
		closes(t, job)
	})
}

// TestStallsAtRandom lets members stall at random, over a link that loses and repeats frames.
// Remaining members must hold the same results, and each element must be the exact sum of the
// reported ranks.
func TestStallsAtRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lacking, evictions := 0, 0
		for seed := range uint64(6) {
			link := faults.New(serve(t, small, 64<<10), faults.Rates{Drop: 0.01, Repeat: 0.02, Reorder: 0.02, Flip: 0.01, Seed: seed}, new(faults.Counts))
			card := open(t, link)
			job := configure(t, card, driver.JobConfig{DeadlineCycles: 10 * millisecond, Partial: true, FirstVID: 1<<32 - 20})
			link.On.Store(true)
			l, e := stallAtRandom(t, job, seed)
			lacking += l
			evictions += e
			link.On.Store(false)
			closes(t, job)
		}
		if lacking == 0 || evictions == 0 {
			t.Errorf("%d partial sums, %d evictions: nothing was tried", lacking, evictions)
		}
	})
}

// TestPartialCarriesOn is the same on a card that goes and comes back. Late members must get
// missing results from the others. No contribution may be in a second sum of a chunk that
// others have.
func TestPartialCarriesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lacking := 0
		for seed := range uint64(20) {
			card := openName(t, restarting(t, seed, 6, seed%2 == 1, faults.Rates{}))
			job := configure(t, card, driver.JobConfig{DeadlineCycles: 5 * millisecond, Partial: true, FirstVID: 1<<32 - 20, CarryOn: 10 * time.Second})
			l, _ := stallAtRandom(t, job, seed)
			lacking += l
			closes(t, job)
			if job.Outages() == 0 {
				t.Errorf("seed %d: the card stayed", seed)
			}
		}
		if lacking == 0 {
			t.Error("no partial sums: nothing was tried")
		}
	})
}

// deaf is a link on which nothing arrives once on is set.
type deaf struct {
	transport.Conn
	on atomic.Bool
}

func (d *deaf) Write(p []byte) (int, error) {
	if d.on.Load() {
		return len(p), nil
	}
	return d.Conn.Write(p)
}

// TestSlowMemberWhenTheCardDisconnects checks that a member that is behind when the card goes copies the
// results of the others and continues with them.
func TestSlowMemberWhenTheCardDisconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &deaf{Conn: serve(t, small, 64<<10)}
		card := openName(t, comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return link, nil
			}
			return serve(t, small, 64<<10), nil
		}))
		cfg := partialJob
		cfg.CarryOn = 10 * time.Second
		job := configure(t, card, cfg)
		early, all := []int{0, 2, 3}, []int{0, 1, 2, 3}
		inputs := arrays(10, 4, 7*16+5) // as many chunks as slots
		sums, errs := reduceAll(testContext(t), job, early, inputs)
		wantNil(t, errs, early...)

		link.on.Store(true)
		time.AfterFunc(100*time.Millisecond, func() { link.Conn.Close() })
		late, errs := reduceAll(testContext(t), job, []int{1}, inputs)
		wantNil(t, errs, 1)
		sameBits(t, "what comes late", late[1], sums[0])
		if got := job.Member(1).Partials(); !reflect.DeepEqual(got, job.Member(0).Partials()) || len(got) != 1 {
			t.Errorf("%+v", got)
		}
		next := arrays(11, 4, 100)
		sums, errs = reduceAll(testContext(t), job, all, next)
		wantNil(t, errs, all...)
		for _, r := range all {
			sameBits(t, "sum of all", sums[r], sumOf(next, all))
		}
		closes(t, job)
		if n := job.Outages(); n != 1 {
			t.Errorf("%d outages", n)
		}
	})
}

// TestEvictedBeforeTheCardGoes checks that an evicted member stays out when the others carry
// on.
func TestEvictedBeforeTheCardGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := serve(t, small, 64<<10)
		card := openName(t, comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return first, nil
			}
			return serve(t, small, 64<<10), nil
		}))
		cfg := partialJob
		cfg.CarryOn = 10 * time.Second
		job := configure(t, card, cfg)
		left := []int{0, 1, 2}
		for round := range uint64(2) {
			inputs := arrays(12+round, 4, 300)
			sums, errs := reduceAll(testContext(t), job, left, inputs)
			wantNil(t, errs, left...)
			for _, r := range left {
				sameBits(t, "sum of those left", sums[r], sumOf(inputs, left))
			}
			first.Close()
		}
		if e := job.Evicted(); !slices.Equal(e, []int{3}) {
			t.Errorf("evicted: %v", e)
		}
		wantError[*driver.EvictedError](t, job.Member(3).AllReduce(testContext(t), make([]float32, 300)), "rank 3")
		closes(t, job)
		if n := job.Outages(); n != 1 {
			t.Errorf("%d outages", n)
		}
	})
}

func stallAtRandom(t *testing.T, job *driver.Job, seed uint64) (lacking, evictions int) {
	const rounds = 12
	type outcome struct {
		sum      []float32
		partials []driver.Partial
		err      error
	}
	var inputs [rounds][][]float32
	var outcomes [rounds][4]outcome
	rng := rand.New(rand.NewPCG(seed, 3))
	lengths := make([]int, rounds)
	for i := range inputs {
		lengths[i] = 1 + rng.IntN(200)
		inputs[i] = arrays(seed*100+uint64(i), 4, lengths[i])
	}
	var wg sync.WaitGroup
	for r := range 4 {
		pauses := rand.New(rand.NewPCG(seed, uint64(10+r)))
		wg.Go(func() {
			for i := range rounds {
				if pauses.IntN(6) == 0 {
					time.Sleep(time.Duration(pauses.IntN(40)) * time.Millisecond)
				}
				o := &outcomes[i][r]
				o.sum = slices.Clone(inputs[i][r])
				o.err = job.Member(r).AllReduce(testContext(t), o.sum)
				o.partials = job.Member(r).Partials()
				if o.err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range rounds {
		var held *outcome
		for r := range 4 {
			o := &outcomes[i][r]
			switch {
			case o.sum == nil:
				continue
			case o.err != nil:
				wantError[*driver.EvictedError](t, o.err)
				evictions++
				continue
			case held == nil:
				held = o
				want := sumOf(inputs[i], []int{0, 1, 2, 3})
				for _, p := range o.partials {
					copy(want[p.From:p.To], sumOf(inputs[i], p.Ranks)[p.From:p.To])
					lacking++
				}
				sameBits(t, "sum of the contributors", o.sum, want)
			}
			sameBits(t, "what another member holds", o.sum, held.sum)
			if !reflect.DeepEqual(o.partials, held.partials) {
				t.Errorf("round %d, rank %d: %+v, another member %+v", i, r, o.partials, held.partials)
			}
		}
		if held == nil {
			t.Fatalf("round %d: nobody is left", i)
		}
	}
	return lacking, evictions
}

func TestInvalidDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		for _, c := range []struct {
			cfg   driver.JobConfig
			words []string
		}{
			{driver.JobConfig{Deadline: -time.Second}, []string{"deadline", "-1s"}},
			{driver.JobConfig{Deadline: time.Second, DeadlineCycles: 5}, []string{"deadline", "set only one"}},
			{driver.JobConfig{Deadline: time.Hour}, []string{"deadline", "1h0m0s", "maximum is 4294967295"}},
			{driver.JobConfig{Partial: true, Deadline: time.Minute}, []string{"deadline", "timeout of 10s", "10s"}},
			{driver.JobConfig{Partial: true}, []string{"partial sums", "deadline"}},
		} {
			_, err := card.Configure(testContext(t), c.cfg)
			wantError[*driver.InputError](t, err, c.words...)
		}
		reuse(t, card)
	})
}

// TestDeadlineOfOneJobIsNotTheNextOnes checks that a job does not inherit the deadline that an
// earlier job has staged.
func TestDeadlineOfOneJobIsNotTheNextOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		closes(t, configure(t, card, partialJob))
		job := configure(t, card, driver.JobConfig{Workers: 2})
		done := make(chan error, 1)
		inputs := arrays(8, 2, 20)
		first := slices.Clone(inputs[0])
		go func() { done <- job.Member(0).AllReduce(testContext(t), first) }()
		time.Sleep(250 * time.Millisecond)
		if err := job.Member(1).AllReduce(testContext(t), slices.Clone(inputs[1])); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		sameBits(t, "whole sum", first, treeSum(inputs, firstPorts(2), small.Ports))
		closes(t, job)
	})
}

func TestLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{Workers: 3})
		inputs := arrays(9, 3, 160) // 10 chunks
		var wg sync.WaitGroup
		for r := range 3 {
			wg.Go(func() {
				if r == 2 {
					time.Sleep(20 * time.Millisecond)
				}
				if err := job.Member(r).AllReduce(testContext(t), inputs[r]); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		lags, err := card.Lags(testContext(t), job.Number())
		if err != nil || len(lags) != 3 {
			t.Fatal(lags, err)
		}
		firsts := uint32(0)
		for r := range lags {
			if n := lags[r].Total(); n != 10 {
				t.Errorf("rank %d: %d contributions counted", r, n)
			}
			firsts += lags[r][0]
		}
		if firsts != 10 {
			t.Errorf("%d came first of 10 chunks", firsts)
		}
		if cycles, ok := lags[2].Within(1); !ok || cycles < 2_000_000 || cycles > 1<<30 {
			t.Errorf("rank 2, which came 20 ms late: within %d cycles, %t: %v", cycles, ok, lags[2])
		}
		closes(t, job)
	})
}

func TestLagsWithin(t *testing.T) {
	l := driver.Lags{0: 50, 1: 30, 2: 10, 5: 9, 15: 1}
	for part, want := range map[float64]uint64{0.1: 0, 0.5: 0, 0.51: 4, 0.8: 4, 0.9: 16, 0.99: 1024} {
		if got, ok := l.Within(part); got != want || !ok {
			t.Errorf("%g: %d, %t; want %d", part, got, ok, want)
		}
	}
	if _, ok := l.Within(1); ok {
		t.Error("the last bucket has no end")
	}
	if _, ok := (&driver.Lags{}).Within(0.5); ok {
		t.Error("there are none")
	}
}

// TestPartialInTime checks a deadline that is given as a time.
func TestPartialInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := open(t, reach(t, model.Config{Lanes: 4, Ports: 2, Chunk: 16, Window: 2, Shell: small.Shell, Link: 32}, 64<<10))
		job := configure(t, card, driver.JobConfig{Deadline: 80 * time.Millisecond, Partial: true})
		began := time.Now()
		if err := job.Member(0).AllReduce(testContext(t), make([]float32, 16)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 60*time.Millisecond || took > 5*time.Second {
			t.Errorf("a deadline of 80ms took %s", took)
		}
		closes(t, job)
	})
}
