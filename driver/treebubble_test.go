package driver_test

// Trees of cards on a network in this process, in bubbles: the time that they take does not depend on the
// machine's load.

import (
	"fmt"
	"math"
	"net"
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

// lan is a network between a host and cards. A packet arrives with the tick after its sending.
type lan struct {
	t     *testing.T
	began time.Time

	mu     sync.Mutex // guards the rest
	links  []*lanLink
	flying []letter
}

// letter is a packet under way.
type letter struct {
	datagram []byte
	from, to wire.Address
	mark     wire.ECN
}

// lanCard is a card with an up port, in software.
type lanCard interface {
	driver.NetworkCard
	UpwardPorts() []uint16
	ReceiveUp(port uint16, datagram []byte, from wire.Address, mark wire.ECN)
	SendUp(dst []byte) (datagram []byte, port uint16, to wire.Address, mark wire.ECN, ok bool)
}

// lanLink is the host's link to one of the cards.
type lanLink struct {
	*inbox
	lan  *lan
	card lanCard
	host wire.Address
}

// lanTick is the time that a packet takes.
const lanTick = 100 * time.Microsecond

// newLAN starts a network without cards.
func newLAN(t *testing.T) *lan {
	t.Helper()
	n := &lan{t: t, began: time.Now()}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticks := time.NewTicker(lanTick)
		for {
			select {
			case <-ticks.C:
				n.tick()
			case <-over:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(over)
		<-ended
	})
	return n
}

// plain is a card as it is.
func plain(e *model.Endpoint) lanCard { return e }

// open starts a card that wrap changes, and opens it. Its name is its number on the network.
func (n *lan) open(cfg model.Config, wrap func(*model.Endpoint) lanCard, opts ...driver.Option) *driver.Card {
	n.t.Helper()
	n.mu.Lock()
	i := len(n.links)
	card, err := model.NewEndpoint(cfg, wire.Address{Station: 0x5442_0a000001 + uint64(i)})
	if err != nil {
		n.mu.Unlock()
		n.t.Fatal(err)
	}
	l := &lanLink{newInbox(), n, wrap(card), wire.Address{Station: hostAddress.Station + uint64(i)<<32}}
	n.links = append(n.links, l)
	n.mu.Unlock()
	opened, err := driver.OpenPackets(testContext(n.t), fmt.Sprint("card ", i), l, opts...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { opened.Close() })
	return opened
}

// growOnLAN makes a tree of small cards that wrap changes, on a network in this process.
func growOnLAN(t *testing.T, parents, workers []int, wrap func(*model.Endpoint) lanCard, opts ...driver.Option) *grove {
	t.Helper()
	n, g := newLAN(t), &grove{}
	for i, parent := range parents {
		g.cards = append(g.cards, driver.TreeCard{Card: n.open(smallTree, wrap, opts...), Parent: parent, Workers: workers[i]})
	}
	g.tree = newTree(t, g.cards)
	return g
}

// tick advances the clocks of the cards, and delivers what is under way.
func (n *lan) tick() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		if now := uint64(time.Since(n.began) / cycle); now > l.card.Cycles() {
			l.card.Advance(now - l.card.Cycles())
		}
	}
	arrived := n.flying
	n.flying = nil
	for _, p := range arrived {
		for _, l := range n.links {
			l.deliver(p)
		}
	}
	for _, l := range n.links {
		l.collect()
	}
}

// deliver passes a packet on if it is for the host at this link, or for the card.
func (l *lanLink) deliver(p letter) {
	switch own, port := l.card.Own().Station, uint16(p.to.Station>>32); {
	case p.to.Station == l.host.Station:
		l.put(p.datagram, p.mark)
	case p.to.Station == own:
		l.card.Receive(p.datagram, p.from, p.mark)
		l.collect()
	case uint32(p.to.Station) == uint32(own) && slices.Contains(l.card.UpwardPorts(), port):
		l.card.ReceiveUp(port, p.datagram, p.from, p.mark)
		l.collect()
	}
}

// collect takes what the card sends.
func (l *lanLink) collect() {
	own := l.card.Own()
	for {
		datagram, to, mark, ok := l.card.Send(nil)
		if !ok {
			break
		}
		l.lan.flying = append(l.lan.flying, letter{datagram, own, to, mark})
	}
	for {
		datagram, port, to, mark, ok := l.card.SendUp(nil)
		if !ok {
			break
		}
		from := wire.Address{Station: own.Station&math.MaxUint32 | uint64(port)<<32}
		l.lan.flying = append(l.lan.flying, letter{datagram, from, to, mark})
	}
}

func (l *lanLink) WritePackets(buf []byte, ends []int) error {
	if l.isClosed() {
		return net.ErrClosed
	}
	l.lan.mu.Lock()
	defer l.lan.mu.Unlock()
	start := 0
	for _, end := range ends {
		l.lan.flying = append(l.lan.flying, letter{slices.Clone(buf[start:end]), l.host, l.card.Own(), wire.ECT0})
		start = end
	}
	return nil
}

// TestTreeLearnsNoWaits: a worker that is alone at its card takes no sample of its results, which wait for the
// worker at another card, later and later. When that is a second late, the first one has asked often.
func TestTreeLearnsNoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := growOnLAN(t, []int{-1, 0}, []int{1, 1}, plain, driver.WithTimeout(patience)).configure(t, driver.JobConfig{})
		early, late := job.Member(1), job.Member(0)
		asked := uint64(0)
		for delay := 2 * time.Millisecond; delay < 2*time.Second; delay += delay / 2 {
			before := early.Stats().Asked
			p, err := early.StartAllReduce(testContext(t), make([]float32, 16))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(delay)
			if err := late.AllReduce(testContext(t), make([]float32, 16)); err != nil {
				t.Fatal(err)
			}
			if err := p.Wait(testContext(t)); err != nil {
				t.Fatal(err)
			}
			asked = early.Stats().Asked - before
		}
		if asked < 100 {
			t.Errorf("%d asks in the last wait", asked)
		}
		if err := job.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLossesInATree: what is lost in a tree takes its workers some round trips. It once took some of them a minute:
// when all workers at a card were in one call, the time to a result was a sample of its round trip. So the timeouts
// of each card raised those of the others.
func TestLossesInATree(t *testing.T) {
	took := time.Duration(0)
	for seed := range uint64(16) {
		synctest.Test(t, func(t *testing.T) {
			var accidents atomic.Int64
			muddle := muddles(seed, &accidents)
			parents, workers, shape := twoParents, twoWorkers, twoLevels
			if seed%2 == 1 {
				parents, workers, shape = threeParents, threeWorkers, threeLevels
			}
			g := growOnLAN(t, parents, workers, func(e *model.Endpoint) lanCard { return muddle(e) }, driver.WithTimeout(patience))
			for round := range uint64(2) {
				job := g.configure(t, driver.JobConfig{Chunk: 8 << (seed % 2), Window: 2 << round})
				began := time.Now()
				for n := range uint64(2) {
					treeSums(t, job, shape, n, 1000)
				}
				took += time.Since(began)
				if err := job.Close(testContext(t)); err != nil {
					t.Fatal(err)
				}
			}
			if accidents.Load() < 50 {
				t.Errorf("%d accidents", accidents.Load())
			}
		})
	}
	if took > 20*time.Second {
		t.Errorf("64 reductions took %s", took)
	}
}
