package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
	"tributary/verify/system/frames"
)

// treeRound is a network of cards and hosts with faulty cables, and trees of these cards. One-armed, cards
// and hosts are at a switch. In path, the cards are switches, one behind the other.
type treeRound struct {
	*campaign
	treePlan
	seed   uint64
	setUps atomic.Int64

	cables []*faults.Cable
	hosts  []*frames.Host
	cards  []*treeCard
	others *traffic
	halt   func() error // ends the switch

	mu       sync.Mutex
	data     int // packets of data that entered cables
	restarts sync.WaitGroup
	restart  error
}

// planted holds the rounds of trees. The driver calls a card of one "soak-tree:SEED/NUMBER".
var planted sync.Map

func init() {
	transport.RegisterPackets("soak-tree", func(ctx context.Context, to transport.Request) (transport.PacketConn, error) {
		seed, number, _ := strings.Cut(to.Address, "/")
		r, there := planted.Load(seed)
		i, err := strconv.Atoi(number)
		if !there || err != nil {
			return nil, fmt.Errorf("no round %s of trees is running", to.Address)
		}
		return r.(*treeRound).dial(ctx, i)
	})
}

// dial opens a link to a card.
func (r *treeRound) dial(ctx context.Context, number int) (transport.PacketConn, error) {
	host := r.hosts[r.treePlan.cards[number].host%len(r.hosts)]
	s, err := host.Dial(ctx, r.cards[number].at())
	if err != nil {
		return nil, err // without a socket in it
	}
	return s, nil
}

func newTreeRound(c *campaign, seed uint64) *treeRound {
	r := &treeRound{campaign: c, treePlan: newTreePlan(seed, c.ethernet), seed: seed, halt: func() error { return nil }}
	for i := range r.treePlan.cards {
		r.cards = append(r.cards, &treeCard{treeRound: r, number: i, stop: func() error { return nil }})
	}
	return r
}

// cable returns another cable of the network.
func (r *treeRound) cable() *faults.Cable {
	rates := r.rates
	rates.Seed = r.seed + uint64(len(r.cables))<<48
	c := faults.NewTrunk(rates, &r.campaign.frames)
	c.Watch = r.watch
	c.On.Store(true)
	r.cables = append(r.cables, c)
	return c
}

// host attaches a host to a cable.
func (r *treeRound) host(c *faults.Cable) {
	n := len(r.hosts)
	r.hosts = append(r.hosts, frames.AttachFaulty(c, hostMAC(n), hostIP(n)))
}

// anything judges no frame: a card in path and a switch pass frames that cables have damaged.
func anything([]byte) error { return nil }

// wire connects cards and hosts.
func (r *treeRound) wire() error {
	if r.ethernet == 1 {
		return r.wireOneArmed()
	}
	for _, c := range r.cards {
		c.plugs = make([]func() frameport.Port, r.ethernet)
	}
	for i, c := range r.cards {
		for port := range r.ethernet {
			if port == 0 && r.treePlan.cards[i].above >= 0 {
				continue // the card above has its cable
			}
			cable := r.cable()
			c.plugs[port] = func() frameport.Port { return cable.Plug(anything) }
			if below := r.below(i, port); below >= 0 {
				r.cards[below].plugs[0] = func() frameport.Port { return cable.PlugHost(anything) }
			} else {
				r.host(cable)
			}
		}
	}
	return nil
}

// wireOneArmed connects all to a switch: the model of a card in path, without jobs.
func (r *treeRound) wireOneArmed() error {
	var plugs []func() frameport.Port
	for _, c := range r.cards {
		cable := r.cable()
		c.plugs = []func() frameport.Port{func() frameport.Port { return cable.Plug(frames.CheckSound) }}
		plugs = append(plugs, func() frameport.Port { return cable.PlugHost(anything) })
	}
	for range r.treePlan.hosts {
		cable := r.cable()
		plugs = append(plugs, func() frameport.Port { return cable.Plug(anything) })
		r.host(cable)
	}
	endpoint, err := driver.NewNetworkCard("model:", frames.CardAddress, len(plugs))
	if err != nil {
		return err
	}
	card, err := ethernet.New(endpoint, len(plugs))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.halt = plugIn(ctx, cancel, card, clock.Start(card), plugs)
	return nil
}

// watch counts data, and kills the card that the plan names.
func (r *treeRound) watch(h *frame.Header) (cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.Kind != wire.KindData {
		return false
	}
	if r.data++; r.data == r.kill {
		r.events[cardKilled].Add(1)
		r.restarts.Go(func() { r.restart = r.cards[r.victim].restart() })
	}
	return false
}

func (r *treeRound) start() error {
	if err := r.wire(); err != nil {
		return err
	}
	for _, c := range r.cards {
		if err := c.start(); err != nil {
			return err
		}
	}
	r.others = newTraffic(r.hosts)
	return nil
}

// run runs the plan.
func (r *treeRound) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.start(); err != nil {
		return err
	}
	name := fmt.Sprint(r.seed)
	planted.Store(name, r)
	defer planted.Delete(name)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var open []*driver.Card
	defer func() { r.leave(ctx, open) }()
	for i := range r.cards {
		card, err := driver.Open(ctx, fmt.Sprintf("soak-tree:%s/%d", name, i), driver.WithTimeout(timeout), driver.WithReopen(nil))
		if err != nil {
			return err
		}
		open = append(open, card)
	}
	err = r.runTenants(ctx, open)
	r.restarts.Wait()
	return errors.Join(err, r.restart, r.judge())
}

// runTenants sets up the first job of each tenant in turn, and then runs all at once.
func (r *treeRound) runTenants(ctx context.Context, open []*driver.Card) error {
	all := make([]*treeTenant, len(r.tenants))
	for i, jobs := range r.tenants {
		all[i] = &treeTenant{treeRound: r, open: open, jobs: jobs, rng: rand.New(rand.NewPCG(r.seed, uint64(i)+5<<32))}
		if err := all[i].setUp(ctx, &jobs[0]); err != nil {
			return fmt.Errorf("tenant %d of %d: set-up: %w", i, len(all), err)
		}
	}
	return runAll(ctx, all)
}

// judge reports what cards did that they must not.
func (r *treeRound) judge() error {
	for i, c := range r.cables {
		if s := c.Strangers(); s.Obeyed > 0 {
			return fmt.Errorf("cable %d: %d writes of a stranger were answered by another reply than busy", i, s.Obeyed)
		}
		if broken := c.Broken(); len(broken) > 0 {
			return broken[0]
		}
	}
	return r.others.failure()
}

// leave closes the cards, and adds up what they have counted.
func (r *treeRound) leave(ctx context.Context, open []*driver.Card) {
	for _, card := range open {
		counters, err := card.Counters(ctx)
		r.campaign.mu.Lock()
		if err == nil {
			r.effects.addCounters(counters)
		}
		r.effects.addLink(card.LinkStats())
		r.campaign.mu.Unlock()
		_ = card.Close()
	}
}

// stop ends everything, and returns why a card ended before.
func (r *treeRound) stop() error {
	r.others.stop()
	for _, c := range r.cables {
		c.Quiet()
	}
	if r.others != nil {
		r.campaign.mu.Lock()
		r.effects.passed += r.others.came.Load()
		r.campaign.mu.Unlock()
	}
	var crash error
	for _, c := range r.cards {
		crash = errors.Join(crash, c.stop())
	}
	for _, h := range r.hosts {
		_ = h.Close()
		r.campaign.mu.Lock()
		r.effects.unsound += h.Unsound.Load()
		r.campaign.mu.Unlock()
	}
	return errors.Join(crash, r.halt())
}

// treeTenant sets up one job after another, each on a tree of its own.
type treeTenant struct {
	*treeRound
	open []*driver.Card
	jobs []treeJob
	rng  *rand.Rand // of the inputs
	job  *driver.Job
}

// setUp sets up a job.
func (t *treeTenant) setUp(ctx context.Context, p *treeJob) error {
	var cards []driver.TreeCard
	beat, chunk, window := 1, 0, 0
	for i, number := range p.cards {
		c := driver.TreeCard{Card: t.open[number], Parent: p.parents[i], Workers: p.workers[i]}
		if c.Parent >= 0 {
			above := p.cards[c.Parent]
			c.Up, c.Down = t.toward(number, above), t.toward(above, number)
		}
		info := c.Card.Info()
		beat, chunk, window = info.Lanes, info.Chunk, info.Window
		cards = append(cards, c)
	}
	tree, err := driver.NewTree(cards)
	if err != nil {
		return err
	}
	t.setUps.Add(1)
	t.job, err = tree.Configure(ctx, driver.JobConfig{
		Window: max(1, window/mostTenants>>p.window), Chunk: beat * (1 + p.chunk%(chunk/beat)), FirstVID: p.firstVID, CarryOn: patience,
	})
	return err
}

// run runs the plan, after the first job is set up.
func (t *treeTenant) run(ctx context.Context) error {
	for i := range t.jobs {
		p := &t.jobs[i]
		if i > 0 {
			if err := t.setUp(ctx, p); err != nil {
				return fmt.Errorf("set-up of job %d: %w", i, err)
			}
		}
		for k, r := range p.reductions {
			if err := t.reduceAll(ctx, p, r); err != nil {
				return fmt.Errorf("job %d, reduction %d: %w", i, k, err)
			}
		}
		if err := t.job.Close(ctx); err != nil {
			return fmt.Errorf("job %d: close: %w", i, err)
		}
		t.campaign.mu.Lock()
		t.effects.jobs++
		t.effects.addJob(t.job)
		t.campaign.mu.Unlock()
	}
	return nil
}

// reduceAll runs a reduction of all workers, and compares every bit with the nested sum.
func (t *treeTenant) reduceAll(ctx context.Context, p *treeJob, r treeReduction) error {
	chunk := t.job.Config().Chunk
	inputs := someArrays(t.rng, totalOf(p.workers), r.chunks*chunk-r.short%chunk)
	want := p.sumOf(0, inputs)
	if r.together {
		got := make([]float32, len(want))
		if err := t.job.Reduce(ctx, got, inputs); err != nil {
			return err
		}
		return t.compare(got, want, chunk)
	}
	errs := make([]error, len(inputs))
	var calls sync.WaitGroup
	for rank, in := range inputs {
		calls.Go(func() {
			got := slices.Clone(in)
			if errs[rank] = t.job.Member(rank).AllReduce(ctx, got); errs[rank] == nil {
				errs[rank] = t.compare(got, want, chunk)
			}
		})
	}
	calls.Wait()
	for rank, err := range errs {
		if err != nil {
			return fmt.Errorf("rank %d of %d in %v: %w", rank, len(errs), p.parents, err)
		}
	}
	return nil
}

// compare returns the error of the first element with another bit.
func (t *treeTenant) compare(got, want []float32, chunk int) error {
	t.arrays.Add(1)
	if i := same(got, want); i >= 0 {
		all := uint64(1)<<t.job.Config().Workers - 1
		return &wrongSum{i / chunk, i % chunk, all, all, got[i], want[i]}
	}
	return nil
}
