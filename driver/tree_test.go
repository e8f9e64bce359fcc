package driver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/model"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// smallTree is a small card with an up port.
var smallTree = model.Config{Lanes: 4, Ports: 4, Chunk: 16, Window: 4, Shell: wire.ShellUDP, Link: 64, Latency: 9, Parent: true}

// plant is a card of a tree that a test can pull out, and put in again.
type plant struct {
	t    testing.TB
	cfg  model.Config
	name string // of the card; udp:HOST:PORT
	wrap func(*model.Endpoint) driver.NetworkCard
	stop func()
}

// newPlant starts a card.
func newPlant(t testing.TB, cfg model.Config) *plant {
	t.Helper()
	return newPlantWith(t, cfg, func(e *model.Endpoint) driver.NetworkCard { return e })
}

// newPlantWith starts a card that wrap changes.
func newPlantWith(t testing.TB, cfg model.Config, wrap func(*model.Endpoint) driver.NetworkCard) *plant {
	t.Helper()
	p := &plant{t: t, cfg: cfg, name: "udp:" + udp.OwnLoopback() + ":21570", wrap: wrap}
	p.start()
	t.Cleanup(func() { p.stop() })
	return p
}

// start starts a card that knows nothing of the one before.
func (p *plant) start() {
	p.t.Helper()
	socket, err := udp.Listen(p.name[len("udp:"):])
	if err != nil {
		p.t.Fatal(err)
	}
	card, err := model.NewEndpoint(p.cfg, socket.Address())
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	served := p.wrap(card) // here, as what it counts is the test's
	go func() { ended <- socket.Serve(ctx, served) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
	})
}

// grove is a tree of cards of a test.
type grove struct {
	plants []*plant
	cards  []driver.TreeCard
	tree   *driver.Tree
}

// grow starts a card for each of the parents, with so many workers, and makes a tree of them.
func grow(t testing.TB, cfg model.Config, parents, workers []int) *grove {
	t.Helper()
	return growWith(t, cfg, parents, workers, func(e *model.Endpoint) driver.NetworkCard { return e })
}

// growWith is grow, for cards that wrap changes, opened with options.
func growWith(t testing.TB, cfg model.Config, parents, workers []int, wrap func(*model.Endpoint) driver.NetworkCard, opts ...driver.Option) *grove {
	t.Helper()
	g := &grove{}
	for i, parent := range parents {
		p := newPlantWith(t, cfg, wrap)
		card := openForever(t, p.name, opts...)
		g.plants = append(g.plants, p)
		g.cards = append(g.cards, driver.TreeCard{Card: card, Parent: parent, Workers: workers[i]})
	}
	g.tree = newTree(t, g.cards)
	return g
}

func newTree(t testing.TB, cards []driver.TreeCard) *driver.Tree {
	t.Helper()
	tree, err := driver.NewTree(cards)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func (g *grove) configure(t testing.TB, cfg driver.JobConfig) *driver.Job {
	t.Helper()
	job, err := g.tree.Configure(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// branches is a card of a tree as this test draws it: ranks of workers, and cards below.
type branches struct {
	workers []int
	below   []branches
}

// nestedSum computes the sum of a tree of cards with the processor's additions: each card adds up what is
// at its ports, workers first.
func nestedSum(inputs [][]float32, b branches, ports int) []float32 {
	var at [][]float32
	for _, rank := range b.workers {
		at = append(at, inputs[rank])
	}
	for _, below := range b.below {
		at = append(at, nestedSum(inputs, below, ports))
	}
	return treeSum(at, firstPorts(len(at)), ports)
}

// twoLevels is a root with a worker of its own and two cards below it, of four and two workers.
var (
	twoLevels  = branches{[]int{0}, []branches{{[]int{1, 2, 3, 4}, nil}, {[]int{5, 6}, nil}}}
	twoParents = []int{-1, 0, 0}
	twoWorkers = []int{1, 4, 2}
)

// threeLevels is a root with a worker and a card, which has a worker and two cards below it.
var (
	threeLevels  = branches{[]int{0}, []branches{{[]int{1}, []branches{{[]int{2, 3}, nil}, {[]int{4, 5}, nil}}}}}
	threeParents = []int{-1, 0, 1, 1}
	threeWorkers = []int{1, 1, 2, 2}
	threeRanks   = [][]int{{0}, {1}, {2, 3}, {4, 5}} // by card
)

// treeSums reduces random arrays by all members of a job on a tree, or by each, and compares every bit.
func treeSums(t testing.TB, job *driver.Job, b branches, seed uint64, n int) {
	t.Helper()
	workers := job.Config().Workers
	in := arrays(seed, workers, n)
	want := nestedSum(in, b, smallTree.Ports)
	if seed%2 == 0 {
		if err := job.Reduce(testContext(t), in[workers-1], in); err != nil { // in place
			t.Error(err)
			return
		}
		sameBits(t, "sum", in[workers-1], want)
		return
	}
	var calls sync.WaitGroup
	for rank := range workers {
		calls.Go(func() {
			if err := job.Member(rank).AllReduce(testContext(t), in[rank]); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	calls.Wait()
	for rank := range in {
		sameBits(t, fmt.Sprintf("sum at rank %d", rank), in[rank], want)
	}
}

// TestTree: workers of trees of two and three levels get the nested sum, bit for bit, reduction after
// reduction and job after job.
func TestTree(t *testing.T) {
	for name, x := range map[string]struct {
		shape            branches
		parents, workers []int
	}{
		"one card":     {branches{[]int{0, 1, 2}, nil}, []int{-1}, []int{3}},
		"two levels":   {twoLevels, twoParents, twoWorkers},
		"three levels": {threeLevels, threeParents, threeWorkers},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := grow(t, smallTree, x.parents, x.workers)
			for seed := range uint64(4) {
				job := g.configure(t, driver.JobConfig{Chunk: 8, Window: 2, FirstVID: 0xfffffff0})
				treeSums(t, job, x.shape, seed, 300)
				treeSums(t, job, x.shape, seed+1, 77)
				if err := job.Close(testContext(t)); err != nil {
					t.Fatal(err)
				}
			}
			for i, c := range g.cards {
				wantNoJob(t, fmt.Sprint("card ", i), c.Card)
			}
		})
	}
}

// wantNoJob checks that a card has no running job.
func wantNoJob(t testing.TB, what string, card *driver.Card) {
	t.Helper()
	states, err := card.Jobs(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		if s.SetUp {
			t.Errorf("%s still has job %d", what, s.Number)
		}
	}
}

// slowly reduces arrays of all members again and again until the test has seen enough, and compares every
// bit. Between calls the members are at the same chunk.
func slowly(t *testing.T, job *driver.Job, b branches, until func() bool) {
	t.Helper()
	for seed := uint64(1); !until(); seed += 2 {
		treeSums(t, job, b, seed, 400)
		if t.Failed() {
			return
		}
	}
}

// TestTreeCarriesOn: any card of a tree dies and comes back as a new one, with and without all others, again
// and again. Every bit is as without.
func TestTreeCarriesOn(t *testing.T) {
	for _, victims := range [][]int{{0}, {1}, {2}, {3}, {1, 2}, {0, 1, 2, 3}} {
		t.Run(fmt.Sprint(victims), func(t *testing.T) {
			t.Parallel()
			g := grow(t, smallTree, threeParents, threeWorkers)
			var log outageLog
			back := make(chan string, 100)
			job := g.configure(t, driver.JobConfig{CarryOn: patience, OnOutage: func(o driver.Outage) {
				if log.note(o); o.Epoch != 0 {
					back <- o.Card
				}
			}})
			first := job.Epoch()
			var over atomic.Bool
			var work sync.WaitGroup
			work.Go(func() { slowly(t, job, threeLevels, over.Load) })
			for range 3 {
				for _, i := range victims {
					g.plants[i].stop()
				}
				for _, i := range victims {
					g.plants[i].start()
				}
				for away := len(victims); away > 0; away-- {
					<-back
				}
			}
			over.Store(true)
			work.Wait()
			if err := job.Close(testContext(t)); err != nil {
				t.Fatal(err)
			}
			log.wantEpochs(t, first, g.plants, victims)
			for i, c := range g.cards {
				wantNoJob(t, fmt.Sprint("card ", i), c.Card)
			}
		})
	}
}

// wantEpochs checks that the outages were those of the victims, and that each one ended in a later epoch.
func (l *outageLog) wantEpochs(t *testing.T, epoch uint16, plants []*plant, victims []int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	gone, back := map[string]int{}, map[string]int{}
	for _, o := range l.all {
		if o.Epoch == 0 {
			gone[o.Card]++
			continue
		}
		back[o.Card]++
		if int16(o.Epoch-epoch) < 0 || o.Away <= 0 {
			t.Errorf("%+v in an epoch after %d", o, epoch)
		}
		epoch = o.Epoch
	}
	for _, i := range victims {
		name := plants[i].name
		if gone[name] == 0 || gone[name] != back[name] {
			t.Errorf("card %d went %d times and came back %d times", i, gone[name], back[name])
		}
		delete(gone, name)
	}
	if len(gone) > 0 {
		t.Errorf("cards that never went: %v", gone)
	}
}

// TestTreeDies: without CarryOn, calls at all cards end with an error that names the card that died, and the
// other cards keep nothing of the job.
func TestTreeDies(t *testing.T) {
	for victim := range threeParents {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			t.Parallel()
			g := grow(t, smallTree, threeParents, threeWorkers)
			job := g.configure(t, driver.JobConfig{})
			treeSums(t, job, threeLevels, 1, 100)
			var calls []*driver.Pending
			for rank := range job.Config().Workers - 1 { // the last one never calls
				p, err := job.Member(rank).StartAllReduce(testContext(t), make([]float32, 1000))
				if err != nil {
					t.Fatal(err)
				}
				calls = append(calls, p)
			}
			g.plants[victim].stop()
			for rank, p := range calls {
				died := wantError[*driver.DiedError](t, p.Wait(testContext(t)), g.plants[victim].name)
				if died.Card != g.plants[victim].name {
					t.Errorf("rank %d: %v", rank, died)
				}
			}
			wantError[*driver.DiedError](t, job.Close(testContext(t)))
			for i, c := range g.cards {
				if i != victim {
					awaitNoJob(t, c.Card)
				}
			}
		})
	}
}

// awaitNoJob waits until a card has no running job.
func awaitNoJob(t *testing.T, card *driver.Card) {
	t.Helper()
	for {
		states, err := card.Jobs(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if !states[0].SetUp {
			return
		}
	}
}

// TestTreeClosesWithoutACard: a card dies when all members have all results. The job needs no epoch more to
// be closed, and no other card keeps it: the root would wait for ever for a finish.
func TestTreeClosesWithoutACard(t *testing.T) {
	for victim := range threeParents {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			t.Parallel()
			g := grow(t, smallTree, threeParents, threeWorkers)
			gone := make(chan driver.Outage, 9)
			job := g.configure(t, driver.JobConfig{CarryOn: patience, OnOutage: func(o driver.Outage) { gone <- o }})
			treeSums(t, job, threeLevels, 1, 100)
			g.plants[victim].stop()
			if o := <-gone; o.Card != g.plants[victim].name || o.Patience <= 0 || o.Cause == nil {
				t.Errorf("%+v", o)
			}
			if err := job.Close(testContext(t)); err != nil {
				t.Fatal(err)
			}
			for i, c := range g.cards {
				if i != victim {
					wantNoJob(t, fmt.Sprint("card ", i), c.Card)
				}
			}
			if err := job.Close(testContext(t)); err != nil {
				t.Errorf("closed again: %v", err)
			}
		})
	}
}

// TestTreeLosesAPart: a card that has lost the job alone ends it everywhere, and the next job works.
func TestTreeLosesAPart(t *testing.T) {
	g := grow(t, smallTree, threeParents, threeWorkers)
	for victim := range threeParents {
		job := g.configure(t, driver.JobConfig{})
		treeSums(t, job, threeLevels, 1, 100)
		name := uint64(job.Number())<<48 | uint64(job.Epoch())<<32
		if _, err := g.cards[victim].Card.WriteRegister(testContext(t), wire.RegJobAbort, name); err != nil {
			t.Fatal(err)
		}
		ended := wantError[*driver.EndedError](t, job.Close(testContext(t)), "bad_job")
		if !slices.ContainsFunc(threeRanks[victim], func(rank int) bool { return strings.Contains(ended.Error(), fmt.Sprintf("of rank %d: ", rank)) }) {
			t.Errorf("card %d has ranks %v: %v", victim, threeRanks[victim], ended)
		}
		for i, c := range g.cards {
			wantNoJob(t, fmt.Sprintf("victim %d: card %d", victim, i), c.Card)
		}
		again := g.configure(t, driver.JobConfig{})
		treeSums(t, again, threeLevels, 2, 100)
		if err := again.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTreeOfCardsWithHistories: cards whose last epochs are spread over the circle of epochs, so that none is
// the latest of all in serial order, get one epoch all the same.
func TestTreeOfCardsWithHistories(t *testing.T) {
	for _, lasts := range [][]uint16{{0, 0x5555, 0xaaaa}, {0xfff0, 3, 9}, {7, 7, 7}, {0x8000, 0, 0x4000}} {
		g := grow(t, smallTree, twoParents, twoWorkers)
		for i, last := range lasts {
			leadTo(t, g.cards[i].Card, last)
		}
		job := g.configure(t, driver.JobConfig{})
		for i, last := range lasts {
			if gap := job.Epoch() - last; gap == 0 || gap > 0xc000 {
				t.Errorf("last epochs %x: epoch %x of the tree soon after those of card %d", lasts, job.Epoch(), i)
			}
		}
		treeSums(t, job, twoLevels, 1, 100)
		if err := job.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// leadTo makes an epoch the last one of a card's first job number.
func leadTo(t *testing.T, card *driver.Card, last uint16) {
	t.Helper()
	job := configure(t, card, driver.JobConfig{})
	epoch := job.Epoch()
	if err := job.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	for step := last - epoch; step != 0; step = last - epoch {
		epoch += min(step, 0x7fff)
		for _, addr := range []uint32{wire.RegJobCommit, wire.RegJobAbort} { // with what the job has staged
			if _, err := card.WriteRegister(testContext(t), addr, uint64(epoch)<<32); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOrdinaryJobsAfterTrees: a tree leaves nothing on its cards that an ordinary job, or another tree, would
// inherit.
func TestOrdinaryJobsAfterTrees(t *testing.T) {
	g := grow(t, smallTree, threeParents, threeWorkers)
	for round := range uint64(2) {
		job := g.configure(t, driver.JobConfig{})
		treeSums(t, job, threeLevels, round, 100)
		if err := job.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
		for _, c := range g.cards {
			own := configure(t, c.Card, driver.JobConfig{Workers: 3})
			sums(t, own, round, 100)
			if err := own.Close(testContext(t)); err != nil {
				t.Fatal(err)
			}
		}
		upside := []driver.TreeCard{{Card: g.cards[0].Card, Parent: 1, Workers: 2}, {Card: g.cards[1].Card, Parent: -1, Workers: 1}}
		turned, err := newTree(t, upside).Configure(testContext(t), driver.JobConfig{})
		if err != nil {
			t.Fatal(err)
		}
		treeSums(t, turned, branches{[]int{2}, []branches{{[]int{0, 1}, nil}}}, round, 100)
		if err := turned.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCongestionOfATree: the figures are those of the workers at all cards. In a Reduce, the workers at a
// card have one window: 5 chunks are 5 results at each of 3 cards.
func TestCongestionOfATree(t *testing.T) {
	job := grow(t, smallTree, twoParents, twoWorkers).configure(t, driver.JobConfig{})
	in := arrays(1, 7, 5*16)
	if err := job.Reduce(testContext(t), make([]float32, 5*16), in); err != nil {
		t.Fatal(err)
	}
	if got := job.Congestion(); got.Results != 15 || got.MeanWindow < 1 || got.MeanWindow > 4 {
		t.Errorf("%+v", got)
	}
}

// TestEvictedFromATreeOfOneCard: partial sums, evicted members and their errors have the ranks of the tree,
// not those of the card.
func TestEvictedFromATreeOfOneCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := open(t, serveInMemory(t, smallTree))
		tree := newTree(t, []driver.TreeCard{{Card: card, Parent: -1, Ranks: []int{3, 5, 60}}})
		job, err := tree.Configure(testContext(t), driver.JobConfig{Deadline: 20 * time.Millisecond, Partial: true})
		if err != nil {
			t.Fatal(err)
		}
		in := arrays(1, 2, 500) // more chunks than slots
		want := treeSum(in, []int{0, 2}, smallTree.Ports)
		var calls []*driver.Pending
		for i, rank := range []int{3, 60} {
			p, err := job.Member(rank).StartAllReduce(testContext(t), in[i])
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, p)
		}
		for i, p := range calls {
			if err := p.Wait(testContext(t)); err != nil {
				t.Fatal(err)
			}
			if partials := p.Partials(); len(partials) != 1 || !slices.Equal(partials[0].Ranks, []int{3, 60}) || partials[0].To != 500 {
				t.Errorf("%+v", partials)
			}
			sameBits(t, "partial sum", in[i], want)
		}
		if got := job.Evicted(); !slices.Equal(got, []int{5}) {
			t.Errorf("evicted: %v", got)
		}
		err = job.Member(5).AllReduce(testContext(t), make([]float32, 500))
		if out := wantError[*driver.EvictedError](t, err, "rank 5"); out.Rank != 5 {
			t.Errorf("%+v", out)
		}
		if err := job.Close(testContext(t)); err != nil {
			t.Error(err)
		}
	})
}

// TestUpwardPorts: each set-up of a card has an upward UDP port of its own, whoever owns the card.
func TestUpwardPorts(t *testing.T) {
	g := grow(t, smallTree, twoParents, twoWorkers)
	seen := map[uint64]bool{}
	for round := range 8 {
		if round == 4 { // another owner
			for i := range g.cards {
				g.cards[i].Card.Close()
				g.cards[i].Card = openForever(t, g.plants[i].name)
			}
			g.tree = newTree(t, g.cards)
		}
		job := g.configure(t, driver.JobConfig{})
		up, err := g.cards[1].Card.ReadRegister(testContext(t), wire.JobAddr(wire.RegJobUp, 0))
		if err != nil {
			t.Fatal(err)
		}
		port := up >> wire.ParentPortShift
		if seen[port] || port == 0 {
			t.Errorf("round %d: upward port %d, which the card has used", round, port)
		}
		seen[port] = true
		if err := job.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
}
