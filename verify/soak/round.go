package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/verify/faults"
)

const (
	mostFaulty = 0.2 // of the frames of a round
	mostChunks = 150 // in a reduction
	reductions = 3

	timeout  = 20 * time.Second // nothing moves
	patience = time.Minute      // for a card that is away; a round has ten times as long
)

// round is some reductions under faults that its seed alone decides on; when they
// happen depends on the machine too.
type round struct {
	*campaign
	seed  uint64
	rng   *rand.Rand
	rates faults.Rates
	cuts  int  // links that are cut
	ruins bool // the card is killed

	dials  atomic.Uint64
	faulty atomic.Bool
	job    *driver.Job
}

// current is the round to whose card "soak:" leads.
var current atomic.Pointer[round]

func init() {
	transport.Register("soak", func(ctx context.Context, _ transport.Request) (transport.Conn, error) {
		return current.Load().dial(ctx)
	})
}

func newRound(c *campaign, seed uint64) *round {
	r := &round{campaign: c, seed: seed, rng: rand.New(rand.NewPCG(seed, 0))}
	kinds := []*float64{&r.rates.Drop, &r.rates.Repeat, &r.rates.Swap, &r.rates.Delay, &r.rates.Flip, &r.rates.Burst, &r.rates.Stall}
	if c.damage {
		kinds = []*float64{&r.rates.Garbage, &r.rates.Cut}
	}
	left := mostFaulty * r.rng.Float64()
	for _, i := range r.rng.Perm(len(kinds)) {
		*kinds[i] = left * r.rng.Float64()
		left -= *kinds[i]
	}
	if r.rng.IntN(2) == 0 {
		r.cuts = 1 + r.rng.IntN(3)
	}
	r.ruins = r.rng.IntN(3) == 0
	return r
}

// dial opens a link to the card. It begins to go wrong when the job is set up.
func (r *round) dial(ctx context.Context) (transport.Conn, error) {
	conn, err := r.card.dial(ctx)
	if err != nil {
		return nil, err
	}
	n := r.dials.Add(1)
	rates := r.rates
	rates.Seed = r.seed<<8 + n
	link := faults.New(conn, rates, &r.counts)
	link.On.Store(r.faulty.Load())
	if n == 1 {
		r.first = link
	}
	if n > uint64(r.cuts) {
		return link, nil
	}
	return &cutOnce{faults.CutAfter(link, 3000+rand.New(rand.NewPCG(r.seed, n)).IntN(200_000)), &r.happened.Cut, sync.Once{}}, nil
}

// cutOnce counts that its link was cut.
type cutOnce struct {
	transport.Conn
	count *atomic.Int64
	once  sync.Once
}

func (c *cutOnce) note(n int, err error) (int, error) {
	if errors.Is(err, faults.ErrCut) {
		c.once.Do(func() { c.count.Add(1) })
	}
	return n, err
}

func (c *cutOnce) Read(p []byte) (int, error)  { return c.note(c.Conn.Read(p)) }
func (c *cutOnce) Write(p []byte) (int, error) { return c.note(c.Conn.Write(p)) }

// run carries the round out. An error is a wrong sum or one that did not come.
func (r *round) run(ctx context.Context) error {
	current.Store(r)
	ctx, cancel := context.WithTimeout(ctx, 10*patience)
	defer cancel()
	card, err := driver.Open(ctx, "soak:", driver.WithTimeout(timeout))
	if err != nil {
		return err
	}
	defer card.Close()
	if err := r.configure(ctx, card); err != nil {
		return err
	}
	r.faulty.Store(true)
	r.first.On.Store(true)
	ruined := make(chan error, 1)
	if r.ruins {
		r.happened.Kill.Add(1)
		time.AfterFunc(time.Duration(r.rng.IntN(int(time.Second))), func() { ruined <- r.card.restart() })
	} else {
		ruined <- nil
	}
	for i := range reductions {
		if err = r.reduce(ctx, card, i); err != nil {
			break
		}
	}
	if err == nil {
		err = r.job.Close(ctx)
	}
	return errors.Join(err, <-ruined)
}

func (r *round) configure(ctx context.Context, card *driver.Card) error {
	info := card.Info()
	job, err := card.Configure(ctx, driver.JobConfig{
		Window:   info.Window >> r.rng.IntN(2),
		Chunk:    info.Lanes * (1 + r.rng.IntN(info.Chunk/info.Lanes)),
		FirstVID: r.rng.Uint32(),
		CarryOn:  patience,
	})
	r.job = job
	return err
}

// reduce has every rank reduce in place in a goroutine of its own, one of them
// late, and compares every bit. Now and then a rank dies on the way: then the job
// is set up anew, and all begin again.
func (r *round) reduce(ctx context.Context, card *driver.Card, i int) error {
	ranks := r.job.Config().Workers
	inputs := someArrays(r.rng, ranks, 1+r.rng.IntN(mostChunks*r.job.Config().Chunk))
	want := treeSum(inputs)
	if r.rng.IntN(6) == 0 {
		if err := r.killRank(ctx, card, inputs); err != nil {
			return err
		}
	}
	stalled, pause := -1, time.Duration(0)
	if r.rng.IntN(3) == 0 {
		stalled, pause = r.rng.IntN(ranks), time.Duration(r.rng.IntN(int(100*time.Millisecond)))
		r.happened.StallRank.Add(1)
	}
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for rank := range ranks {
		all.Go(func() {
			if rank == stalled {
				time.Sleep(pause)
			}
			errs[rank] = r.job.Member(rank).AllReduce(ctx, inputs[rank])
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r.results.Add(int64(ranks))
	for rank := range inputs {
		for k, x := range inputs[rank] {
			if got, want := math.Float32bits(x), math.Float32bits(want[k]); got != want {
				return &wrongSum{fmt.Sprintf("reduction %d, rank %d: element %d is %08x, the sum is %08x", i, rank, k, got, want)}
			}
		}
	}
	return nil
}

// wrongSum is what must never be.
type wrongSum struct{ what string }

func (w *wrongSum) Error() string { return w.what }

// killRank ends a rank's call on copies of the arrays, which ends the job, and
// sets up the next.
func (r *round) killRank(ctx context.Context, card *driver.Card, inputs [][]float32) error {
	victim, after := r.rng.IntN(len(inputs)), time.Duration(r.rng.IntN(int(30*time.Millisecond)))
	killed, kill := context.WithTimeout(ctx, after)
	defer kill()
	r.happened.KillRank.Add(1)
	var all sync.WaitGroup
	for rank := range inputs {
		all.Go(func() {
			ctx := ctx
			if rank == victim {
				ctx = killed
			}
			_ = r.job.Member(rank).AllReduce(ctx, append([]float32(nil), inputs[rank]...)) // how it ends is open
		})
	}
	all.Wait()
	if err := r.configure(ctx, card); err == nil || card.Err() == nil {
		return err
	}
	return errGone
}

// errGone ends a round early: the card went away while no job was set up that
// would wait for it.
var errGone = errors.New("the card was away as a rank died")

// someArrays returns one array a rank, of numbers of all sizes and both signs.
func someArrays(rng *rand.Rand, ranks, n int) [][]float32 {
	all := make([][]float32, ranks)
	for r := range all {
		all[r] = make([]float32, n)
		for i := range all[r] {
			bits := rng.Uint32()
			if bits&0x7f800000 == 0x7f800000 {
				bits &^= 0x40000000 // neither NaN nor infinity
			}
			all[r][i] = math.Float32frombits(bits)
		}
	}
	return all
}

// treeSum is section 7.3 of the specification by the processor's additions, for as
// many ranks as ports.
func treeSum(inputs [][]float32) []float32 {
	sum := make([]float32, len(inputs[0]))
	level := make([]float32, len(inputs))
	for i := range sum {
		for r := range inputs {
			level[r] = inputs[r][i]
		}
		n := len(level)
		for ; n > 1; n = (n + 1) / 2 {
			for k := range n / 2 {
				level[k] = level[2*k] + level[2*k+1]
			}
			if n%2 == 1 {
				level[n/2] = level[n-1]
			}
		}
		if sum[i] = level[0]; sum[i] != sum[i] {
			sum[i] = math.Float32frombits(0x7fc00000)
		}
	}
	return sum
}
