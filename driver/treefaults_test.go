package driver_test

// Trees whose packets are lost, repeated, delayed and damaged, and whose cards are silent.

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/model"
	"tributary/driver/wire"
)

// muddled is a card whose packets have an accident each, with some probability: on their way from the
// card to hosts, and on their way to it from hosts, cards below, and its parent.
type muddled struct {
	*model.Endpoint
	r    *rand.Rand
	late []func() // packets that others overtake
	n    *atomic.Int64
}

// muddles returns a function that makes muddled cards, each with accidents of its own. n counts them all.
func muddles(seed uint64, n *atomic.Int64) func(*model.Endpoint) *muddled {
	made := uint64(0)
	return func(e *model.Endpoint) *muddled {
		made++
		return &muddled{Endpoint: e, r: rand.New(rand.NewPCG(seed, made)), n: n}
	}
}

// accident lets a packet pass, unless something happens to it.
func (m *muddled) accident(datagram []byte, pass func([]byte)) {
	switch m.r.IntN(40) {
	case 0: // lost
	case 1:
		pass(datagram)
		pass(datagram)
	case 2:
		late := slices.Clone(datagram)
		m.late = append(m.late, func() { pass(late) })
	case 3:
		harmed := slices.Clone(datagram)
		harmed[m.r.IntN(len(harmed))] ^= 1 << m.r.IntN(8)
		pass(harmed)
	default:
		pass(datagram)
		if len(m.late) > 0 && m.r.IntN(4) == 0 {
			late := m.late[0]
			m.late = m.late[1:]
			late()
		}
		return
	}
	m.n.Add(1)
}

func (m *muddled) Receive(datagram []byte, from wire.Address, mark wire.ECN) {
	m.accident(datagram, func(d []byte) { m.Endpoint.Receive(d, from, mark) })
}

func (m *muddled) ReceiveUp(port uint16, datagram []byte, from wire.Address, mark wire.ECN) {
	m.accident(datagram, func(d []byte) { m.Endpoint.ReceiveUp(port, d, from, mark) })
}

func (m *muddled) Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool) {
	datagram, to, mark, ok = m.Endpoint.Send(dst)
	for ok && m.r.IntN(40) == 0 { // lost
		m.n.Add(1)
		datagram, to, mark, ok = m.Endpoint.Send(dst)
	}
	return datagram, to, mark, ok
}

// treeRounds is the number of rounds of TestTreeOnAFaultyNetwork; `make soak-trees ROUNDS=1000` sets it.
var treeRounds = flag.Uint64("tree-rounds", 4, "trees on a faulty network")

// TestTreeOnAFaultyNetwork: bits are right on a network that does anything to packets between hosts and
// cards and between cards, while cards die and come back.
func TestTreeOnAFaultyNetwork(t *testing.T) {
	for seed := range *treeRounds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			var accidents atomic.Int64
			muddle := muddles(seed, &accidents)
			parents, workers, shape := twoParents, twoWorkers, twoLevels
			if seed%2 == 1 {
				parents, workers, shape = threeParents, threeWorkers, threeLevels
			}
			g := growWith(t, smallTree, parents, workers, func(e *model.Endpoint) driver.NetworkCard { return muddle(e) }, driver.WithTimeout(patience))
			back := make(chan bool, 100)
			for i := range uint64(2) {
				job := g.configure(t, driver.JobConfig{Chunk: 8 << (seed % 2), Window: 2 << (i % 2), CarryOn: patience, OnOutage: func(o driver.Outage) {
					if o.Epoch != 0 {
						back <- true
					}
				}})
				treeSums(t, job, shape, seed+i, 1000)
				var over atomic.Bool
				var work sync.WaitGroup
				ended := make(chan struct{})
				work.Go(func() {
					defer close(ended)
					slowly(t, job, shape, over.Load)
				})
				victim := g.plants[int(seed+i)%len(g.plants)]
				victim.stop()
				victim.start()
				select {
				case <-back:
				case <-ended:
					t.Fatal("nobody sums any more, and notices that the card is back")
				}
				over.Store(true)
				work.Wait()
				if err := job.Close(testContext(t)); err != nil {
					t.Fatal(err)
				}
			}
			if accidents.Load() < 50 {
				t.Errorf("%d accidents", accidents.Load())
			}
		})
	}
}

// unplugged is a card that takes and sends nothing once off is set.
type unplugged struct {
	*model.Endpoint
	off *atomic.Bool
}

func (u *unplugged) Receive(datagram []byte, from wire.Address, mark wire.ECN) {
	if !u.off.Load() {
		u.Endpoint.Receive(datagram, from, mark)
	}
}

func (u *unplugged) ReceiveUp(port uint16, datagram []byte, from wire.Address, mark wire.ECN) {
	if !u.off.Load() {
		u.Endpoint.ReceiveUp(port, datagram, from, mark)
	}
}

func (u *unplugged) Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool) {
	datagram, to, mark, ok = u.Endpoint.Send(dst)
	return datagram, to, mark, ok && !u.off.Load()
}

func (u *unplugged) SendUp(dst []byte) (datagram []byte, port uint16, to wire.Address, mark wire.ECN, ok bool) {
	datagram, port, to, mark, ok = u.Endpoint.SendUp(dst)
	return datagram, port, to, mark, ok && !u.off.Load()
}

// TestTreeWithASilentCard: a card that says nothing any more, without a word of the network, ends the calls
// at all cards by its name. The other cards answer all the time that they wait.
func TestTreeWithASilentCard(t *testing.T) {
	for victim := range threeParents {
		t.Run(fmt.Sprint(victim), bubble(func(t *testing.T) {
			off, made := make([]atomic.Bool, len(threeParents)), 0
			g := growOnLAN(t, threeParents, threeWorkers, func(e *model.Endpoint) lanCard {
				made++
				return &unplugged{e, &off[made-1]}
			}, driver.WithTimeout(time.Second))
			job := g.configure(t, driver.JobConfig{})
			treeSums(t, job, threeLevels, 1, 100)
			off[victim].Store(true)
			var calls []*driver.Pending
			for rank := range job.Config().Workers {
				p, err := job.Member(rank).StartAllReduce(testContext(t), make([]float32, 1000))
				if err != nil {
					t.Fatal(err)
				}
				calls = append(calls, p)
			}
			for rank, p := range calls {
				died := wantError[*driver.DiedError](t, p.Wait(testContext(t)))
				if died.Card != fmt.Sprint("card ", victim) {
					t.Errorf("rank %d: %v", rank, died)
				}
			}
		}))
	}
}

// TestTreeMissesAWorker: a worker that does not call is missed by its rank in the tree, by those at its own card. The cards
// answer, so none is given up, however long they had nothing to say.
func TestTreeMissesAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := growOnLAN(t, threeParents, threeWorkers, plain, driver.WithTimeout(500*time.Millisecond))
		job := g.configure(t, driver.JobConfig{})
		p, err := job.Member(4).StartAllReduce(testContext(t), make([]float32, 10))
		if err != nil {
			t.Fatal(err)
		}
		if missing := wantError[*driver.MissingError](t, p.Wait(testContext(t))); !slices.Equal(missing.Ranks, []int{5}) {
			t.Errorf("missing: %v", missing.Ranks)
		}
		for i, c := range g.cards {
			if err := c.Card.Err(); err != nil {
				t.Errorf("card %d: %v", i, err)
			}
		}
	})
}

// TestTreeOf64: 64 workers at eight cards below a ninth, in fp32 and in int32, get the bits of the model of
// the same tree.
func TestTreeOf64(t *testing.T) {
	for _, format := range []wire.Format{wire.FP32, wire.Int32} {
		t.Run(format.String(), func(t *testing.T) {
			t.Parallel()
			cfg := model.Config{Lanes: 4, Ports: 8, Chunk: 64, Window: 8, Shell: wire.ShellUDP, Link: 64, Parent: true, Format: format, Result: format}
			shape := &model.Shape{}
			parents, workers := []int{-1}, []int{0}
			for leaf := range 8 {
				parents, workers = append(parents, 0), append(workers, 8)
				below := &model.Shape{}
				for port := range 8 {
					below.Ports = append(below.Ports, &model.Shape{Worker: 8*leaf + port})
				}
				shape.Ports = append(shape.Ports, below)
			}
			g := grow(t, cfg, parents, workers)
			arithmetic, err := model.NewArithmetic(wire.SumTree, format, format, false)
			if err != nil {
				t.Fatal(err)
			}
			job := g.configure(t, driver.JobConfig{})
			const n = 1000
			r, x := rand.New(rand.NewPCG(1, 64)), make([]uint32, 64)
			in, want := make([][]byte, 64), []byte{}
			for range n {
				for w := range x {
					if x[w] = r.Uint32(); format == wire.FP32 {
						x[w] = x[w]&0x80ffffff | 0x3f000000
					}
					in[w] = binary.LittleEndian.AppendUint32(in[w], x[w])
				}
				want = binary.LittleEndian.AppendUint32(want, arithmetic.Nested(shape, x))
			}
			sums := make([]byte, 4*n)
			if err := job.ReduceBytes(testContext(t), sums, in); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(sums, want) {
				t.Error("the sum of Reduce is not the model's")
			}
			var calls []*driver.Pending
			for rank := range in {
				p, err := job.Member(rank).StartAllReduceBytes(testContext(t), in[rank], in[rank])
				if err != nil {
					t.Fatal(err)
				}
				calls = append(calls, p)
			}
			for rank, p := range calls {
				if err := p.Wait(testContext(t)); err != nil || !slices.Equal(in[rank], want) {
					t.Errorf("rank %d: its sum is not the model's, or %v", rank, err)
				}
			}
			if bits.Len64(g.tree.Shape().Ranks()) != 64 {
				t.Errorf("ranks %x", g.tree.Shape().Ranks())
			}
			if err := job.Close(testContext(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// speechless is a card whose results do not leave.
type speechless struct {
	*model.Endpoint
	on *atomic.Bool
}

func (m *speechless) Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool) {
	for {
		datagram, to, mark, ok = m.Endpoint.Send(dst)
		if kind := wire.KindResult; !ok || !m.on.Load() || wire.Kind(datagram[0]>>4) != kind && wire.Kind(datagram[0]>>4) != wire.KindReplay {
			return datagram, to, mark, ok
		}
	}
}

// TestTreeSharesResults: the workers at one card get no results, and those at other cards all. When the card
// dies then, the latter have no inputs any more: their results are what the former get.
func TestTreeSharesResults(t *testing.T) {
	var on atomic.Bool
	n := 0
	g := growWith(t, smallTree, twoParents, twoWorkers, func(e *model.Endpoint) driver.NetworkCard {
		if n++; n == 3 {
			return &speechless{e, &on}
		}
		return e
	})
	job := g.configure(t, driver.JobConfig{CarryOn: patience})
	treeSums(t, job, twoLevels, 1, 100)
	on.Store(true)
	in := arrays(7, 7, 4*16)
	want := nestedSum(in, twoLevels, smallTree.Ports)
	var calls []*driver.Pending
	for rank := range in {
		p, err := job.Member(rank).StartAllReduce(testContext(t), in[rank])
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, p)
	}
	for rank, p := range calls {
		if rank == 5 {
			g.plants[2].stop()
			g.plants[2].start()
		}
		if err := p.Wait(testContext(t)); err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
		sameBits(t, fmt.Sprint("rank ", rank), in[rank], want)
	}
	treeSums(t, job, twoLevels, 3, 100)
}

// unfinished is a card that takes no finishes while on is set. done gets a value for each status done that it
// sends.
type unfinished struct {
	*model.Endpoint
	on   *atomic.Bool
	done chan bool
}

func (u *unfinished) Receive(datagram []byte, from wire.Address, mark wire.ECN) {
	if !u.on.Load() || wire.Kind(datagram[0]>>4) != wire.KindFinish {
		u.Endpoint.Receive(datagram, from, mark)
	}
}

func (u *unfinished) Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool) {
	datagram, to, mark, ok = u.Endpoint.Send(dst)
	if ok && wire.Kind(datagram[0]>>4) == wire.KindStatus && wire.Code(datagram[7]) == wire.CodeDone {
		select {
		case u.done <- true:
		default:
		}
	}
	return datagram, to, mark, ok
}

// TestJobBesideATreeThatCloses: the root's worker has finished, and those at another card have not. The root
// still has the job, so another job on it gets another number and does not end that of the tree.
func TestJobBesideATreeThatCloses(t *testing.T) {
	cfg := smallTree
	cfg.Jobs, cfg.Window = 2, 8
	var late, never atomic.Bool
	late.Store(true)
	done := make(chan bool, 1)
	n := 0
	g := growWith(t, cfg, twoParents, twoWorkers, func(e *model.Endpoint) driver.NetworkCard {
		n++
		switch n {
		case 1:
			return &unfinished{e, &never, done}
		case 3:
			return &unfinished{e, &late, make(chan bool)}
		}
		return e
	})
	job := g.configure(t, driver.JobConfig{})
	treeSums(t, job, twoLevels, 1, 100)
	closed := make(chan error, 1)
	go func() { closed <- job.Close(testContext(t)) }()
	<-done
	root := g.cards[0].Card
	if _, err := root.ReadRegister(testContext(t), wire.RegMagic); err != nil { // the driver has seen the status before the reply
		t.Fatal(err)
	}
	beside := configure(t, root, driver.JobConfig{Workers: 2})
	if beside.Number() == job.Number() {
		t.Errorf("both jobs have number %d", job.Number())
	}
	sums(t, beside, 1, 100)
	late.Store(false)
	if err := <-closed; err != nil {
		t.Errorf("close of the tree's job: %v", err)
	}
	if err := beside.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	again := g.configure(t, driver.JobConfig{})
	if again.Number() != job.Number() {
		t.Errorf("job %d after job %d", again.Number(), job.Number())
	}
	treeSums(t, again, twoLevels, 2, 100)
	if err := again.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}
