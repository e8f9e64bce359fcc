package driver_test

// Several jobs on one card at the same time.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// holding returns the small card for a number of jobs.
func holding(jobs int) model.Config {
	cfg := small
	cfg.Jobs = jobs
	return cfg
}

// paced returns conn with a millisecond for every write to the card. Otherwise endless traffic
// would leave no time to pass in a bubble.
func paced(conn transport.Conn) transport.Conn {
	link := faults.New(conn, faults.Rates{Pause: time.Millisecond}, new(faults.Counts))
	link.On.Store(true)
	return link
}

func openHolding(t testing.TB, jobs int, opts ...driver.Option) *driver.Card {
	t.Helper()
	return open(t, reach(t, holding(jobs), 64<<10), opts...)
}

// randomJob returns a job that fits on a card of that many jobs, whatever the others are.
func randomJob(rng *rand.Rand, jobs int) driver.JobConfig {
	ports := rng.Perm(small.Ports)[:1+rng.IntN(small.Ports)]
	slices.Sort(ports)
	return driver.JobConfig{
		Ports: ports, Chunk: small.Lanes * (1 + rng.IntN(small.Chunk/small.Lanes)),
		Window: 1 << rng.IntN(1+log2(small.Window/jobs)), FirstVID: rng.Uint32(),
	}
}

func log2(n int) int { return int(math.Log2(float64(n))) }

// reduceOnce sums arrays of random length through a job and compares every bit. It uses Reduce
// or the members, in place or not.
func reduceOnce(t testing.TB, job *driver.Job, rng *rand.Rand) {
	t.Helper()
	cfg := job.Config()
	n := 1 + rng.IntN(40*cfg.Chunk)
	in := arrays(rng.Uint64(), cfg.Workers, n)
	want := treeSum(in, cfg.Ports, small.Ports)
	sums := [][]float32{make([]float32, n)}
	var err error
	switch rng.IntN(3) {
	case 0:
		err = job.Reduce(testContext(t), sums[0], in)
	case 1:
		sums[0] = in[rng.IntN(len(in))]
		err = job.Reduce(testContext(t), sums[0], in)
	default:
		sums = in
		err = errors.Join(allReduce(testContext(t), job, in)...)
	}
	if err != nil {
		t.Errorf("job %d: %v", job.Number(), err)
		return
	}
	for _, sum := range sums {
		if !slices.EqualFunc(sum, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			t.Errorf("job %d of ports %v: a wrong sum", job.Number(), cfg.Ports)
		}
	}
}

// TestJobsSideBySide has goroutines that set up jobs, reduce a few times and end them. The card
// holds one job for each goroutine. The links have faults or none.
func TestJobsSideBySide(t *testing.T) {
	noise := faults.Rates{Drop: 0.02, Repeat: 0.05, Reorder: 0.1, Flip: 0.02, Garbage: 0.02, Seed: 7}
	for name, c := range map[string]struct {
		jobs, rounds int
		rates        faults.Rates
	}{
		"two":           {2, 12, faults.Rates{}},
		"four":          {4, 12, faults.Rates{}},
		"two, faults":   {2, 2, noise},
		"four, faults":  {4, 2, noise},
		"four, delayed": {4, 3, faults.Rates{Pause: time.Millisecond}},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			link := faults.New(serve(t, holding(c.jobs), 4000), c.rates, new(faults.Counts))
			card := open(t, link)
			link.On.Store(true)
			var wg sync.WaitGroup
			for g := range c.jobs {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(g), 77))
					for range c.rounds {
						job, err := card.Configure(testContext(t), randomJob(rng, c.jobs))
						if err != nil {
							t.Errorf("configure: %v", err)
							return
						}
						for range 1 + rng.IntN(3) {
							reduceOnce(t, job, rng)
						}
						if err := job.Close(testContext(t)); err != nil {
							t.Errorf("close: %v", err)
						}
					}
				})
			}
			wg.Wait()
		}))
	}
}

// TestJobsHaveNumbersAndSlots checks the report of Jobs, that Configure takes the lowest free
// number, and the defaults.
func TestJobsHaveNumbersAndSlots(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := openHolding(t, 4)
		var jobs []*driver.Job
		for range 4 {
			jobs = append(jobs, configure(t, card, driver.JobConfig{Ports: []int{1, 3}}))
		}
		for number, job := range jobs {
			if cfg := job.Config(); job.Number() != number || cfg.Window != small.Window/4 {
				t.Errorf("job %d has number %d and window %d", number, job.Number(), cfg.Window)
			}
		}
		if err := jobs[1].Abort(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if err := jobs[2].Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
		next := configure(t, card, driver.JobConfig{Workers: 1})
		if next.Number() != 1 || next.Epoch() != jobs[1].Epoch()+1 {
			t.Errorf("number %d, epoch %d", next.Number(), next.Epoch())
		}
		states, err := card.Jobs(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		for number, want := range []driver.JobState{
			{SetUp: true, Epoch: jobs[0].Epoch(), Ports: []int{1, 3}, FirstSlot: 0, Slots: 2},
			{SetUp: true, Epoch: next.Epoch(), Ports: []int{0}, FirstSlot: 2, Slots: 2},
			{Epoch: jobs[2].Epoch(), Ports: []int{1, 3}},
			{SetUp: true, Epoch: jobs[3].Epoch(), Ports: []int{1, 3}, FirstSlot: 6, Slots: 2},
		} {
			want.Number, want.EverSetUp = number, true
			if got := states[number]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
	})
}

// TestNoFreeSlots checks that the error for a full card names the jobs and the remedy.
func TestNoFreeSlots(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := openHolding(t, 2)
		a := configure(t, card, driver.JobConfig{Workers: 2, Window: 1})
		refused := func(cfg driver.JobConfig, text string) *driver.FullError {
			t.Helper()
			_, err := card.Configure(testContext(t), cfg)
			full := wantError[*driver.FullError](t, err)
			if err.Error() != text {
				t.Errorf("got  %s\nwant %s", err, text)
			}
			return full
		}
		full := refused(driver.JobConfig{Window: 4},
			"card test has no free slots for a window of 4, which needs 8 consecutive slots of its 8: job 0 has slots 0 to 1; use a window of 2, the largest that fits, or close or abort a job")
		if full.Fits() != 2 || len(full.Jobs) != 1 || full.Jobs[0].Number != 0 {
			t.Errorf("%+v", full)
		}
		wantError[*driver.RefusedError](t, full, "no free slots")
		b := configure(t, card, driver.JobConfig{})
		full = refused(driver.JobConfig{},
			"card test holds 2 jobs at once, and all are in use: job 0 has slots 0 to 1, job 1 has slots 4 to 7; close or abort a job, or use a card generated with more -jobs")
		if len(full.Jobs) != 2 || full.Err != nil {
			t.Errorf("%+v", full)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		reduceOnce(t, a, rng) // the running jobs are unaffected
		reduceOnce(t, b, rng)
		if err := errors.Join(a.Close(testContext(t)), b.Close(testContext(t))); err != nil {
			t.Fatal(err)
		}
		all := configure(t, card, driver.JobConfig{Window: 4})
		refused(driver.JobConfig{},
			"card test has no free slots for a window of 2, which needs 4 consecutive slots of its 8: job 0 has slots 0 to 7; close or abort a job")
		reduceOnce(t, all, rng)
	})
}

// TestACardOfOneJobReplacesIt checks that Configure ends the job with the only number.
func TestACardOfOneJobReplacesIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := openHolding(t, 1)
		first := configure(t, card, driver.JobConfig{})
		second := configure(t, card, driver.JobConfig{})
		if second.Number() != 0 || second.Epoch() != first.Epoch()+1 || second.Config().Window != small.Window {
			t.Errorf("number %d, epoch %d after %d, window %d", second.Number(), second.Epoch(), first.Epoch(), second.Config().Window)
		}
		err := first.Close(testContext(t))
		if e := wantError[*driver.EndedError](t, err); e.Error() != fmt.Sprintf("card test: the job of epoch %d has ended: another job was configured; configure a new job to continue", first.Epoch()) {
			t.Error(e)
		}
	})
}

// TestErrorsNameTheJob checks errors on a card that holds several jobs.
func TestErrorsNameTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openHolding(t, 2, driver.WithTimeout(300*time.Millisecond))
		configure(t, card, driver.JobConfig{})
		job := configure(t, card, driver.JobConfig{Workers: 2})
		wantError[*driver.MissingError](t, job.Member(0).AllReduce(testContext(t), make([]float32, 9)), "card test, job 1: chunk 0 waited", "rank 1")
		wantError[*driver.EndedError](t, job.Close(testContext(t)), "card test, job 1: the job of epoch")
		_, err := card.ReadRegister(testContext(t), wire.JobAddr(wire.RegJobState, 7))
		wantError[*driver.RefusedError](t, err, "read JOB_STATE of job 7", "bad_address")
	})
}

// TestEndOfOneJobDoesNotAffectOthers ends jobs while the card sums for another: by a cancelled
// context, an abort, a missing rank or a deadline. Their numbers and slots must be free again
// each time.
func TestEndOfOneJobDoesNotAffectOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := open(t, paced(serve(t, holding(4), 64<<10)), driver.WithTimeout(time.Second))
		steady := configure(t, card, driver.JobConfig{})
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(3, 3))
			for rounds := 0; ; rounds++ {
				select {
				case <-stop:
					if rounds < 10 {
						t.Errorf("%d rounds beside the others", rounds)
					}
					return
				default:
					if reduceOnce(t, steady, rng); t.Failed() {
						return
					}
				}
			}
		})
		var storm sync.WaitGroup
		for g := range 3 {
			storm.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 5))
				for range 8 {
					job, err := card.Configure(testContext(t), driver.JobConfig{Workers: 2})
					if err != nil {
						t.Errorf("configure: %v", err)
						return
					}
					stormy(t, job, rng)
				}
			})
		}
		storm.Wait()
		close(stop)
		wg.Wait()
		states, err := card.Jobs(testContext(t))
		for _, s := range states {
			if s.SetUp != (s.Number == steady.Number()) {
				t.Errorf("%+v", s)
			}
		}
		if err := errors.Join(err, steady.Close(testContext(t))); err != nil {
			t.Error(err)
		}
	})
}

// stormy ends one of two jobs in an abnormal way.
func stormy(t testing.TB, job *driver.Job, rng *rand.Rand) {
	in := arrays(rng.Uint64(), 2, 20_000)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	after := func(f func()) { time.AfterFunc(time.Duration(rng.IntN(3000))*time.Microsecond, f) }
	var err error
	switch rng.IntN(4) {
	case 0:
		after(cancel)
		err = job.Reduce(ctx, in[0], in)
	case 1:
		aborted := make(chan error)
		after(func() { aborted <- job.Abort(testContext(t)) })
		err = job.Reduce(ctx, in[0], in)
		if e := <-aborted; e != nil {
			t.Errorf("abort: %v", e)
		}
	case 2:
		var missing *driver.MissingError
		if err = job.Member(1).AllReduce(ctx, in[1]); !errors.As(err, &missing) {
			t.Errorf("without rank 0: %v", err)
		}
	default:
		soon, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(20))*time.Millisecond)
		defer cancel()
		err = job.Member(0).AllReduce(soon, in[0])
	}
	if err == nil { // it finished first
		if err := job.Close(testContext(t)); err != nil {
			var ended *driver.EndedError
			if !errors.As(err, &ended) {
				t.Errorf("close: %v", err)
			}
		}
	}
	clear(in[0]) // the race detector checks that nobody uses the arrays
	clear(in[1])
}

// TestTimersOfOtherJobsDoNotDelayAWaitingJob checks a job that lacks a rank while another
// job keeps the link busy: it must time out. A job whose result was lost must ask for it.
func TestTimersOfOtherJobsDoNotDelayAWaitingJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lose := make(chan struct{}, 1)
		conn := &watched{Conn: serve(t, holding(2), 4000), toCard: frame.NewScanner(frame.ToCard, 0), fromCard: frame.NewScanner(frame.FromCard, 0),
			out: func(*frame.Frame) bool { return true },
			in: func(f *frame.Frame) (pass, ends bool) {
				if f.Kind == wire.KindResult && f.Job == 1 {
					select {
					case <-lose:
						return false, false
					default:
					}
				}
				return true, false
			}}
		card := open(t, paced(conn), driver.WithTimeout(400*time.Millisecond))
		busy := configure(t, card, driver.JobConfig{})
		waits := configure(t, card, driver.JobConfig{Workers: 2})
		ctx, cancel := context.WithCancel(testContext(t))
		var wg sync.WaitGroup
		wg.Go(func() {
			in := arrays(1, 4, 100_000)
			sum := make([]float32, len(in[0]))
			for ctx.Err() == nil {
				_ = busy.Reduce(ctx, sum, in)
			}
		})
		defer wg.Wait()
		defer cancel()
		for busy.Stats().Results == 0 {
			time.Sleep(time.Millisecond)
		}
		lose <- struct{}{}
		in := arrays(2, 2, 10)
		start := time.Now()
		if err := waits.Reduce(testContext(t), make([]float32, 10), in); err != nil || waits.Stats().Asked == 0 {
			t.Errorf("%v, after %s; %+v", err, time.Since(start), waits.Stats())
		}
		start = time.Now()
		wantError[*driver.MissingError](t, waits.Member(1).AllReduce(testContext(t), in[1]), "rank 0")
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// TestJobsTakeTurns checks that frames of two jobs with data alternate. The link accepts
// nothing until both have a window of data.
func TestJobsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := holding(2)
		cfg.Window = 64
		const window = 32 // of each job
		var order []uint8 // of the data frames that the card received
		held, release := make(chan struct{}), make(chan struct{})
		conn := &watched{Conn: serve(t, cfg, 1<<20), toCard: frame.NewScanner(frame.ToCard, 0), fromCard: frame.NewScanner(frame.FromCard, 0),
			out: func(f *frame.Frame) bool {
				switch {
				case f.Kind == wire.KindData:
					order = append(order, f.Job)
				case f.Kind == wire.KindRegRead && f.VID == wire.RegCycles:
					close(held)
					<-release
				}
				return true
			},
			in: func(*frame.Frame) (pass, ends bool) { return true, false }}
		card := open(t, conn)
		jobs := []*driver.Job{configure(t, card, driver.JobConfig{}), configure(t, card, driver.JobConfig{})}
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := card.ReadRegister(testContext(t), wire.RegCycles); err != nil {
				t.Error(err)
			}
		})
		<-held
		for i, job := range jobs {
			all.Go(func() {
				if err := job.Reduce(testContext(t), make([]float32, 5000), arrays(uint64(i), 4, 5000)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(release)
		all.Wait()
		for i := range 2*4*window - 1 {
			if order[i] == order[i+1] {
				t.Fatalf("frames %d and %d are both of job %d: %v", i, i+1, order[i], order[:2*4*window])
			}
		}
	})
}

// TestConfigureStorm has goroutines set up and drop jobs of all windows, during resets and
// reads. Each set-up must succeed or report that there is no room. In the end the card must
// have no job.
func TestConfigureStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := open(t, paced(serve(t, holding(4), 64<<10)))
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 9))
				for range 40 {
					job, err := card.Configure(testContext(t), driver.JobConfig{Window: 1 << rng.IntN(3), Workers: 1 + rng.IntN(4)})
					var full *driver.FullError
					switch {
					case errors.As(err, &full):
						continue
					case err != nil:
						t.Errorf("configure: %v", err)
						return
					}
					n := 1 + rng.IntN(200)
					in := arrays(uint64(g), job.Config().Workers, n)
					dst := make([]float32, n)
					ctx, cancel := context.WithCancel(testContext(t))
					if rng.IntN(2) == 0 {
						time.AfterFunc(time.Duration(rng.IntN(20))*time.Millisecond, cancel)
					}
					var ended *driver.EndedError
					switch err := job.Reduce(ctx, dst, in); {
					case err == nil && rng.IntN(2) == 0:
						err = job.Close(testContext(t))
						if err != nil && !errors.As(err, &ended) {
							t.Errorf("close: %v", err)
						}
					case err == nil || errors.As(err, &ended) || errors.Is(err, context.Canceled):
						if err := job.Abort(testContext(t)); err != nil {
							t.Errorf("abort: %v", err)
						}
					default:
						t.Errorf("reduce: %v", err)
					}
					cancel()
				}
			})
		}
		wg.Go(func() {
			for range 10 {
				if _, err := card.Jobs(testContext(t)); err != nil {
					t.Errorf("jobs: %v", err)
				}
				if err := card.Reset(testContext(t)); err != nil {
					t.Errorf("reset: %v", err)
				}
			}
		})
		wg.Wait()
		states, err := card.Jobs(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range states {
			if s.SetUp || s.Slots != 0 {
				t.Errorf("%+v is left", s)
			}
		}
		configure(t, card, driver.JobConfig{Window: small.Window})
	})
}

// TestAJobThatTheCardKeptIsDropped ends a job without telling the card. The next set-up, under
// another number, must not find its slots taken.
func TestAJobThatTheCardKeptIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lose atomic.Bool
		conn := &watched{Conn: serve(t, holding(2), 64<<10), toCard: frame.NewScanner(frame.ToCard, 0), fromCard: frame.NewScanner(frame.FromCard, 0),
			out: func(f *frame.Frame) bool {
				return !lose.Load() || f.Kind != wire.KindRegWrite || f.VID != wire.RegJobAbort
			},
			in: func(*frame.Frame) (pass, ends bool) { return true, false }}
		card := open(t, conn)
		first, kept := configure(t, card, driver.JobConfig{}), configure(t, card, driver.JobConfig{})
		lose.Store(true)
		ctx, cancel := context.WithTimeout(testContext(t), 10*time.Millisecond)
		defer cancel()
		if err := kept.Member(0).AllReduce(ctx, make([]float32, 5)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		lose.Store(false)
		if err := first.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
		states, err := card.Jobs(testContext(t))
		if err != nil || !states[1].SetUp {
			t.Fatalf("%+v %v: the test is to leave job 1 set up", states, err)
		}
		if next := configure(t, card, driver.JobConfig{Window: small.Window}); next.Number() != 0 {
			t.Errorf("number %d", next.Number())
		}
	})
}

// TestConfigureGivenUp ends the context of a set-up at each of its accesses. Nothing must
// remain on the card.
func TestConfigureGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Int32 // frames until giveUp
		giveUp := func() {}
		conn := &watched{Conn: serve(t, holding(2), 64<<10), toCard: frame.NewScanner(frame.ToCard, 0), fromCard: frame.NewScanner(frame.FromCard, 0),
			out: func(*frame.Frame) bool {
				if left.Add(-1) == 0 {
					giveUp()
				}
				return true
			},
			in: func(*frame.Frame) (pass, ends bool) { return true, false }}
		card := open(t, conn)
		given := 0
		for i := range int32(40) {
			ctx, cancel := context.WithCancel(testContext(t))
			giveUp = cancel
			left.Store(1 + i)
			job, err := card.Configure(ctx, driver.JobConfig{Window: small.Window})
			switch {
			case err == nil:
				err = job.Abort(testContext(t))
			case errors.Is(err, context.Canceled):
				given, err = given+1, nil
			}
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			if states, err := card.Jobs(testContext(t)); err != nil || states[0].SetUp {
				t.Fatalf("%+v %v", states, err)
			}
		}
		if given < 5 || given == 40 {
			t.Errorf("%d of 40 set-ups were given up: not those that the test is about", given)
		}
		configure(t, card, driver.JobConfig{Window: small.Window})
	})
}

// TestExceptionsOfEachJob checks that each job has its own counts until its number is reused.
func TestExceptionsOfEachJob(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := openHolding(t, 2)
		plain, special := configure(t, card, driver.JobConfig{Workers: 1}), configure(t, card, driver.JobConfig{Workers: 1})
		for _, c := range []struct {
			job  *driver.Job
			x    float32
			want driver.Exceptions
		}{
			{plain, 1, driver.Exceptions{}},
			{special, float32(math.Inf(1)), driver.Exceptions{NonfiniteIn: driver.Exception{Count: 1}, NonfiniteOut: driver.Exception{Count: 1}}},
		} {
			buf := []float32{c.x}
			if err := errors.Join(c.job.Reduce(testContext(t), buf, [][]float32{buf}), c.job.Close(testContext(t))); err != nil {
				t.Fatal(err)
			}
			if e, err := c.job.Exceptions(testContext(t)); err != nil || e != c.want {
				t.Errorf("job %d: %+v %v", c.job.Number(), e, err)
			}
		}
		configure(t, card, driver.JobConfig{})
		if _, err := special.Exceptions(testContext(t)); err != nil {
			t.Errorf("job 0 is another, not job 1: %v", err)
		}
		_, err := plain.Exceptions(testContext(t))
		wantError[*driver.EndedError](t, err, "another job")
	})
}

// restartingJobs is restarting for a card that holds several jobs.
func restartingJobs(t testing.TB, jobs int, seed uint64, times int, stays bool) string {
	rng := rand.New(rand.NewPCG(seed, 6))
	card, err := model.NewCard(holding(jobs))
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.Mutex
	return comes(func(n int) (transport.Conn, error) {
		if !stays && n > 0 {
			if card, err = model.NewCard(holding(jobs)); err != nil {
				return nil, err
			}
		}
		link := connectNext(t, card, &serving)
		if n >= times {
			return link, nil
		}
		least := 500 // during the set-up
		if n == 0 {
			least = 6000 // after it: Configure must succeed
		}
		return faults.CutAfter(link, least+rng.IntN(20000)), nil
	})
}

// TestJobsCarryOn has several jobs on a card that goes and comes back, as a new process or the
// same. The driver must open the card once each time, and each job must continue.
func TestJobsCarryOn(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), bubble(func(t *testing.T) {
			jobs := 2 + 2*int(seed%2)
			const times = 8
			card := openName(t, restartingJobs(t, jobs, seed, times, seed%3 == 1))
			logs, epochs := make([]outageLog, jobs), make([]uint16, jobs)
			var wg sync.WaitGroup
			for g := range jobs {
				rng := rand.New(rand.NewPCG(seed, uint64(g)))
				cfg := randomJob(rng, jobs)
				cfg.FirstVID = 0
				cfg.CarryOn, cfg.OnOutage = patience, logs[g].note
				job := configure(t, card, cfg)
				epochs[g] = job.Epoch()
				wg.Go(func() {
					for round := 0; round < 100 && (round < 4 || job.Outages() < times/2); round++ {
						reduceOnce(t, job, rng)
					}
					if err := job.Close(testContext(t)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			for g := range jobs {
				logs[g].check(t, card, epochs[g])
			}
		}))
	}
}

// TestCarryOnIsEachJobsOwn checks that, when the card goes, a job without CarryOn ends at once
// and one with little patience soon. The others must continue. Set-ups requested meanwhile must
// wait.
func TestCarryOnIsEachJobsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := serve(t, holding(4), 4000)
		back := make(chan struct{})
		name := comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return first, nil
			}
			select {
			case <-back:
				return serve(t, holding(4), 4000), nil
			default:
				return nil, errors.New("not yet")
			}
		})
		card := openName(t, name)
		gone := make(chan struct{}, 9)
		ends := configure(t, card, driver.JobConfig{Workers: 1})
		brief := configure(t, card, driver.JobConfig{Workers: 1, CarryOn: 100 * time.Millisecond})
		aborted := configure(t, card, driver.JobConfig{Workers: 1, CarryOn: patience})
		stays := configure(t, card, driver.JobConfig{Workers: 1, CarryOn: patience, OnOutage: func(driver.Outage) { gone <- struct{}{} }})
		first.Close()
		<-gone
		buf := []float32{1}
		reduce := func(j *driver.Job) error { return j.Member(0).AllReduce(testContext(t), buf) }
		wantError[*driver.DiedError](t, reduce(ends), "disconnected")
		wantError[*driver.LostError](t, reduce(brief), "did not return within 1", "ms: not yet")
		start := time.Now()
		if err := aborted.Abort(testContext(t)); err != nil || time.Since(start) > time.Second {
			t.Errorf("abort while the card is away: %v, after %s", err, time.Since(start))
		}
		configured := make(chan *driver.Job)
		go func() {
			job, err := card.Configure(testContext(t), driver.JobConfig{Workers: 1})
			if err != nil {
				t.Error(err)
			}
			configured <- job
		}()
		time.AfterFunc(100*time.Millisecond, func() { close(back) })
		if err := reduce(stays); err != nil {
			t.Error(err)
		}
		next := <-configured
		if next == nil {
			t.FailNow()
		}
		if err := reduce(next); err != nil || next.Number() != 0 || stays.Number() != 3 {
			t.Errorf("%v, numbers %d and %d", err, next.Number(), stays.Number())
		}
		if card.Err() != nil {
			t.Error(card.Err())
		}
	})
}

// TestLastJobEndsTheSearchForTheCard checks that an absent card is gone when the last waiting job has
// lost patience.
func TestLastJobEndsTheSearchForTheCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := serve(t, holding(2), 4000)
		card := openName(t, comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return first, nil
			}
			return nil, errors.New("nobody listens there")
		}))
		brief := configure(t, card, driver.JobConfig{CarryOn: 50 * time.Millisecond})
		long := configure(t, card, driver.JobConfig{CarryOn: 300 * time.Millisecond})
		start := time.Now()
		first.Close()
		for _, job := range []*driver.Job{brief, long} {
			wantError[*driver.LostError](t, job.Member(0).AllReduce(testContext(t), make([]float32, 5)), "nobody listens there")
		}
		<-card.Done()
		if took := time.Since(start); took < 250*time.Millisecond || took > 3*time.Second {
			t.Errorf("it took %s", took)
		}
		wantError[*driver.LostError](t, card.Err(), "did not return within 30")
	})
}

// TestCarriedJobsFindSlots has jobs whose slots are not in the order of their numbers. A set-up
// in the order of the numbers must still find room for all of them.
func TestCarriedJobsFindSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := serve(t, holding(4), 4000)
		card := openName(t, comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return first, nil
			}
			return serve(t, holding(4), 4000), nil
		}))
		var jobs []*driver.Job
		carry := func(window int) {
			jobs = append(jobs, configure(t, card, driver.JobConfig{Workers: 1, Window: window, CarryOn: patience}))
		}
		for _, window := range []int{1, 1, 1} {
			carry(window)
		}
		if err := jobs[1].Close(testContext(t)); err != nil { // slots 2 and 3
			t.Fatal(err)
		}
		jobs[1] = configure(t, card, driver.JobConfig{Workers: 1, Window: 1, CarryOn: patience})
		if err := errors.Join(jobs[0].Close(testContext(t)), jobs[1].Close(testContext(t))); err != nil {
			t.Fatal(err)
		}
		jobs = jobs[2:] // slots 4 and 5, as job 2
		carry(1)        // job 0, slots 0 and 1
		carry(1)        // job 1, slots 2 and 3
		carry(1)        // job 3, slots 6 and 7
		if err := errors.Join(jobs[1].Close(testContext(t)), jobs[2].Close(testContext(t))); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs[:1], jobs[3])
		carry(2) // job 0, slots 0 to 3
		first.Close()
		rng := rand.New(rand.NewPCG(1, 2))
		for _, job := range jobs {
			reduceOnce(t, job, rng)
			if job.Outages() != 1 {
				t.Errorf("job %d: %d outages", job.Number(), job.Outages())
			}
		}
	})
}

// TestModelOfAFolderHoldsItsJobs checks the number of jobs in the manifest.
func TestModelOfAFolderHoldsItsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const golden = "../hwgen/testdata/golden/l4_w3_stream"
		text, err := os.ReadFile(filepath.Join(golden, "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := transport.ReadManifest(golden)
		if err != nil {
			t.Fatal(err)
		}
		values := map[uint32]uint64{}
		for _, r := range wire.Registers {
			values[r.Addr] = manifest.Constants[r.Name]
		}
		values[wire.RegJobs] = 4
		hash := wire.ConfigHash(func(addr uint32) uint64 { return values[addr] })
		value := regexp.MustCompile(`("name": "JOBS",[^}]*"value": )"0x1"`)
		changed := value.ReplaceAllString(string(text), `$1"0x4"`)
		changed = strings.ReplaceAll(changed, fmt.Sprintf("%016x", manifest.ConfigHash), fmt.Sprintf("%016x", hash))
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(changed), 0o666); err != nil {
			t.Fatal(err)
		}
		card := openName(t, "model:"+dir)
		if info := card.Info(); info.Jobs != min(4, info.Window) || info.ConfigHash != hash {
			t.Errorf("%+v", info)
		}
	})
}

// TestAJobThatEndsWhileItIsSetUpAgainIsDropped checks that the card does not keep a job that
// this host has ended meanwhile.
func TestAJobThatEndsWhileItIsSetUpAgainIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := serve(t, holding(2), 4000)
		var ends *driver.Job
		card := openName(t, comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return first, nil
			}
			return &watched{Conn: serve(t, holding(2), 4000), toCard: frame.NewScanner(frame.ToCard, 0), fromCard: frame.NewScanner(frame.FromCard, 0),
				out: func(f *frame.Frame) bool {
					if f.Kind == wire.KindRegWrite && f.VID == wire.RegJobCommit && uint8(f.Mask>>48) == 1 {
						if err := ends.Abort(context.Background()); err != nil {
							t.Error(err)
						}
					}
					return true
				},
				in: func(*frame.Frame) (pass, ends bool) { return true, false }}, nil
		}))
		stays := configure(t, card, driver.JobConfig{Workers: 1, CarryOn: patience})
		ends = configure(t, card, driver.JobConfig{Workers: 1, CarryOn: patience})
		first.Close()
		reduceOnce(t, stays, rand.New(rand.NewPCG(4, 4)))
		for ctx := testContext(t); ; {
			states, err := card.Jobs(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if states[1].EverSetUp && !states[1].SetUp {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
}
