package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/verify/faults"
)

const (
	leastFaulty, mostFaulty = 0.02, 0.2 // of the frames of a round

	reductions = 3
	mostChunks = 300 // in a reduction

	timeout  = 20 * time.Second // nothing moves
	patience = time.Minute      // for a card that is away
	limit    = 3 * time.Minute  // of a round

	retry = 5 * time.Millisecond // between attempts to open a card that is away
)

// plan is what a round's seed decides on. What happens when is counted in frames.
type plan struct {
	rates    faults.Rates
	window   int // how often the card's is halved
	chunk    int // beats, modulo the card's
	firstVID uint32
	cuts     []int // frames of the round in which a link is cut, ascending
	kill     int   // frame at which the card is killed; 0: it is not
	reduce   [reductions]reduction
}

type reduction struct {
	chunks int
	short  int // elements by which the last chunk is short, modulo the chunk
	victim int // rank that dies in a first attempt, modulo the ranks; -1: none
	dies   int // frames into it
	late   int // rank that comes late, modulo the ranks; -1: none
	pause  time.Duration
}

func newPlan(seed uint64, damage bool) plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := plan{rates: newRates(rng, seed, damage), window: rng.IntN(3), chunk: rng.IntN(1 << 20), firstVID: rng.Uint32()}
	if rng.IntN(2) == 0 {
		p.firstVID = -uint32(rng.IntN(mostChunks)) // VIDs wrap around soon
	}
	frames := 0
	for i := range p.reduce {
		p.reduce[i] = newReduction(rng, damage)
		frames += 8 * p.reduce[i].chunks // at least: a chunk's data
	}
	if damage {
		return p
	}
	if rng.IntN(2) == 0 {
		for range 1 + rng.IntN(3) {
			p.cuts = append(p.cuts, 1+rng.IntN(frames))
		}
		slices.Sort(p.cuts)
	}
	if rng.IntN(2) == 0 {
		p.kill = 1 + rng.IntN(frames)
	}
	return p
}

func newRates(rng *rand.Rand, seed uint64, damage bool) faults.Rates {
	r := faults.Rates{Seed: seed}
	kinds := []*float64{&r.Drop, &r.Repeat, &r.Reorder, &r.Delay, &r.Flip, &r.Burst, &r.Stall}
	if damage {
		kinds = []*float64{&r.Garbage, &r.Scramble, &r.Cut, &r.Insert}
	}
	var sum float64
	for _, rate := range kinds {
		*rate = rng.Float64()
		sum += *rate
	}
	faulty := leastFaulty + (mostFaulty-leastFaulty)*rng.Float64()
	for _, rate := range kinds {
		*rate *= faulty / sum
	}
	return r
}

func newReduction(rng *rand.Rand, damage bool) reduction {
	r := reduction{chunks: 1 + rng.IntN(mostChunks), short: rng.IntN(1 << 20), victim: -1, late: -1}
	if damage {
		return r
	}
	if rng.IntN(4) == 0 {
		r.victim, r.dies = rng.IntN(1<<20), rng.IntN(8*r.chunks)
		if rng.IntN(2) == 0 {
			r.dies = rng.IntN(80) // what is late then has the VIDs of the next attempt
		}
	}
	if rng.IntN(4) == 0 {
		r.late, r.pause = rng.IntN(1<<20), time.Duration(rng.IntN(int(50*time.Millisecond)))
	}
	return r
}

// round is some reductions under faults that its seed alone decides on.
type round struct {
	*campaign
	plan
	seed uint64
	card card
	host *driver.Card
	job  *driver.Job

	mu       sync.Mutex
	frames   int // that came to its links
	links    uint64
	victim   func() // kills a rank
	dies     int    // frame at which it does
	restarts sync.WaitGroup
	restart  error
}

// running are the rounds to whose cards "soak:SEED" leads.
var running sync.Map

func init() {
	transport.Register("soak", func(ctx context.Context, to transport.Request) (transport.Conn, error) {
		r, there := running.Load(to.Address)
		if !there {
			return nil, fmt.Errorf("no round %s is under way", to.Address)
		}
		return r.(*round).dial(ctx)
	})
}

func newRound(c *campaign, seed uint64, socket string) *round {
	return &round{campaign: c, plan: newPlan(seed, c.damage), seed: seed, card: card{program: c.program, socket: socket}}
}

// dial opens a link to the card, which has the next faults.
func (r *round) dial(ctx context.Context) (transport.Conn, error) {
	conn, err := r.card.dial(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rates := r.rates
	rates.Seed += r.links << 48
	r.links++
	link := faults.New(conn, rates, &r.counts)
	link.Watch = r.watch
	link.On.Store(true)
	return link, nil
}

// watch counts the frames and has happen what is to happen at this one.
func (r *round) watch(*frame.Header) (cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames++
	if r.frames == r.kill {
		r.events[cardKilled].Add(1)
		r.restarts.Go(func() { r.restart = r.card.restart() })
	}
	if r.victim != nil && r.frames >= r.dies {
		r.victim()
		r.victim = nil
	}
	if len(r.cuts) > 0 && r.frames >= r.cuts[0] {
		r.events[linkCut].Add(1)
		r.cuts = r.cuts[1:]
		return true
	}
	return false
}

// run carries the round out. An error is a wrong sum or one that did not come.
func (r *round) run(ctx context.Context) error {
	if err := r.card.start(); err != nil {
		return fmt.Errorf("%w; `make soak` builds one", err)
	}
	defer r.card.stop()
	running.Store(fmt.Sprint(r.seed), r)
	defer running.Delete(fmt.Sprint(r.seed))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := r.reduceAll(ctx)
	if r.host != nil {
		r.leave(ctx)
	}
	r.restarts.Wait()
	return errors.Join(err, r.restart)
}

func (r *round) reduceAll(ctx context.Context) error {
	if err := r.setUp(ctx); err != nil {
		return err
	}
	for i := range r.reduce {
		if err := r.reduceOne(ctx, i); err != nil {
			return fmt.Errorf("reduction %d: %w", i, err)
		}
	}
	return r.job.Close(ctx)
}

// setUp sets a job up, and opens the card where it is not open: a card may go away
// while no job is there that would wait for it.
func (r *round) setUp(ctx context.Context) error {
	for {
		err := r.trySetUp(ctx)
		if err == nil || ctx.Err() != nil || !goneAway(err) {
			return err
		}
		time.Sleep(retry)
	}
}

func (r *round) trySetUp(ctx context.Context) (err error) {
	r.noteJob()
	if r.host != nil && r.host.Err() != nil {
		r.leave(ctx)
	}
	if r.host == nil {
		if r.host, err = driver.Open(ctx, fmt.Sprint("soak:", r.seed), driver.WithTimeout(timeout)); err != nil {
			return err
		}
	}
	info := r.host.Info()
	r.job, err = r.host.Configure(ctx, driver.JobConfig{
		Window:   max(1, info.Window>>r.window),
		Chunk:    info.Lanes * (1 + r.chunk%(info.Chunk/info.Lanes)),
		FirstVID: r.firstVID,
		CarryOn:  patience,
	})
	return err
}

func goneAway(err error) bool {
	var died *driver.DiedError
	var none *driver.NoCardError
	var busy *driver.BusyError
	return errors.As(err, &died) || errors.As(err, &none) || errors.As(err, &busy)
}

// leave closes the card, and takes in what it has counted.
func (r *round) leave(ctx context.Context) {
	r.noteJob()
	counters, err := r.host.Counters(ctx)
	_ = r.host.Close() // the link may be cut
	r.campaign.mu.Lock()
	defer r.campaign.mu.Unlock()
	if err == nil {
		r.effects.addCounters(counters)
	}
	r.effects.addLink(r.host.LinkStats())
	r.host = nil
}

// noteJob takes in what a job has counted that is over.
func (r *round) noteJob() {
	if r.job == nil {
		return
	}
	r.campaign.mu.Lock()
	defer r.campaign.mu.Unlock()
	r.effects.addJob(r.job)
	r.job = nil
}

// reduceOne has every rank reduce in place in a goroutine of its own, one of them
// late perhaps, and compares every bit. Where a rank is to die, it does so in an
// attempt before, which ends the job: then another is set up, and all begin again.
func (r *round) reduceOne(ctx context.Context, i int) error {
	p := r.reduce[i]
	chunk := r.job.Config().Chunk
	rng := rand.New(rand.NewPCG(r.seed, uint64(i)+1))
	inputs := someArrays(rng, r.job.Config().Workers, p.chunks*chunk-p.short%chunk)
	want := treeSum(inputs)
	if p.victim >= 0 {
		others := someArrays(rng, len(inputs), len(inputs[0])) // whose sums must not turn up
		r.killRank(ctx, others, p.victim%len(inputs), p.dies)
		if err := r.setUp(ctx); err != nil {
			return err
		}
	}
	if p.late >= 0 {
		r.events[rankLate].Add(1)
	}
	err := errors.Join(r.allReduce(inputs, func(rank int) context.Context {
		if p.late >= 0 && rank == p.late%len(inputs) {
			time.Sleep(p.pause)
		}
		return ctx
	})...)
	if err != nil {
		return err
	}
	r.arrays.Add(int64(len(inputs)))
	return compare(inputs, want)
}

// allReduce has every rank reduce in place, with the context that it is given.
func (r *round) allReduce(inputs [][]float32, of func(rank int) context.Context) []error {
	errs := make([]error, len(inputs))
	var all sync.WaitGroup
	for rank := range inputs {
		all.Go(func() { errs[rank] = r.job.Member(rank).AllReduce(of(rank), inputs[rank]) })
	}
	all.Wait()
	return errs
}

// killRank ends a rank's call some frames into a reduction.
func (r *round) killRank(ctx context.Context, inputs [][]float32, victim, after int) {
	killed, kill := context.WithCancel(ctx)
	defer kill()
	r.mu.Lock()
	r.victim, r.dies = kill, r.frames+after
	r.mu.Unlock()
	errs := r.allReduce(inputs, func(rank int) context.Context {
		if rank == victim {
			return killed
		}
		return ctx
	})
	if errors.Is(errs[victim], context.Canceled) {
		r.events[rankKilled].Add(1)
	}
}

// wrongSum is what must never be.
type wrongSum struct {
	rank, element int
	got, want     float32
}

func (w *wrongSum) Error() string {
	return fmt.Sprintf("rank %d: element %d is %08x, the sum is %08x", w.rank, w.element, math.Float32bits(w.got), math.Float32bits(w.want))
}

func compare(got [][]float32, want []float32) error {
	for rank := range got {
		for i, x := range got[rank] {
			if math.Float32bits(x) != math.Float32bits(want[i]) {
				return &wrongSum{rank, i, x, want[i]}
			}
		}
	}
	return nil
}
