package driver_test

import (
	"net"
	"slices"
	"sync"
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

// inbox has the packets that came for the host over a link in this process. It loses nothing.
type inbox struct {
	mu   sync.Mutex
	came sync.Cond
	in   []transport.Packet
	over bool
}

func newInbox() *inbox {
	b := &inbox{}
	b.came.L = &b.mu
	return b
}

// put adds a packet, which the inbox keeps.
func (b *inbox) put(datagram []byte, mark wire.ECN) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.in = append(b.in, transport.Packet{Bytes: datagram, ECN: mark})
	b.came.Broadcast()
}

func (b *inbox) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

func (b *inbox) ReadPackets(batch []transport.Packet) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.in) == 0 && !b.over {
		b.came.Wait()
	}
	if b.over {
		return 0, net.ErrClosed
	}
	n := min(len(batch), len(b.in))
	for i, p := range b.in[:n] {
		batch[i].Bytes, batch[i].ECN = append(batch[i].Bytes[:0], p.Bytes...), p.ECN
	}
	b.in = slices.Delete(b.in, 0, n)
	return n, nil
}

func (b *inbox) Limits() transport.PacketLimits { return transport.PacketLimits{} }

func (b *inbox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.came.Broadcast()
	return nil
}

// memory is a link of packets to a card in this process: it loses nothing, and works in bubbles.
type memory struct {
	*inbox
	mu     sync.Mutex // guards the rest
	card   *model.Endpoint
	began  time.Time
	sent   int                   // packets of the host
	queues [2]*faults.Bottleneck // by frame.Direction; nil: packets take no time
	second *secondHost
}

// narrow makes the packets in a direction pass a bottleneck.
func (m *memory) narrow(d frame.Direction, q *faults.Bottleneck) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[d] = q
}

// written returns the number of packets that the host has sent.
func (m *memory) written() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent
}

// hostAddress is where the packets of the host come from.
var hostAddress = wire.Address{Station: 0x1234_0a000002}

// losePower gives the link a card that knows nothing of the one before.
func (m *memory) losePower(t testing.TB, cfg model.Config) {
	t.Helper()
	card, err := model.NewEndpoint(cfg, wire.Address{Station: 0x5442_0a000001})
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.card, m.began = card, time.Now()
}

// replay delivers a copy of a write of the host. Its answer is lost.
func (m *memory) replay(addr uint32, value uint64) {
	h := frame.Header{Kind: wire.KindRegWrite, VID: addr, Mask: value}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.card.Receive(frame.AppendDatagram(nil, &h, nil), hostAddress, wire.ECT0)
	m.card.Send(nil)
}

// cycle is that of the card's clock.
const cycle = 10 * time.Nanosecond

// serveInMemory starts a model card and returns a link to it.
func serveInMemory(t testing.TB, cfg model.Config) transport.PacketConn {
	t.Helper()
	card, err := model.NewEndpoint(cfg, wire.Address{Station: 0x5442_0a000001})
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{inbox: newInbox(), card: card, began: time.Now()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ticks := time.NewTicker(100 * time.Microsecond); m.tick(); {
			<-ticks.C
		}
	}()
	t.Cleanup(func() {
		m.Close()
		<-ended
	})
	return m
}

// tick advances the card's clock, and reports whether the link is open.
func (m *memory) tick() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.exchange()
	return !m.isClosed()
}

// exchange advances the card's clock to real time, and takes what the card sends. The caller holds mu.
func (m *memory) exchange() {
	if now := uint64(time.Since(m.began) / cycle); now > m.card.Cycles() {
		m.card.Advance(now - m.card.Cycles())
	}
	for {
		datagram, to, mark, ok := m.card.Send(nil)
		if !ok {
			return
		}
		if m.second != nil && to == secondAddress {
			m.second.put(datagram, mark)
			continue
		}
		if q := m.queues[frame.FromCard]; q != nil {
			q.Pass(time.Now(), len(datagram), mark, func(mark wire.ECN) { m.put(datagram, mark) })
			continue
		}
		m.put(datagram, mark)
	}
}

// receive passes a packet to the card, and takes what the card sends. The caller holds mu.
func (m *memory) receive(datagram []byte, mark wire.ECN) {
	m.card.Receive(datagram, hostAddress, mark)
	m.exchange()
}

func (m *memory) WritePackets(buf []byte, ends []int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isClosed() {
		return net.ErrClosed
	}
	start := 0
	m.sent += len(ends)
	for _, end := range ends {
		datagram := buf[start:end]
		start = end
		q := m.queues[frame.ToCard]
		if q == nil {
			m.receive(datagram, wire.ECT0)
			continue
		}
		datagram = slices.Clone(datagram)
		q.Pass(time.Now(), len(datagram), wire.ECT0, func(mark wire.ECN) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.receive(datagram, mark)
		})
	}
	return nil
}

// secondHost is the link of another host to the same card.
type secondHost struct {
	*inbox
	first *memory
}

// secondAddress is where the packets of the other host come from.
var secondAddress = wire.Address{Station: 0x1234_0a000003}

// beside returns the link of another host to the card.
func (m *memory) beside() transport.PacketConn {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.second = &secondHost{newInbox(), m}
	return m.second
}

func (s *secondHost) WritePackets(buf []byte, ends []int) error {
	s.first.mu.Lock()
	defer s.first.mu.Unlock()
	if s.isClosed() {
		return net.ErrClosed
	}
	start := 0
	for _, end := range ends {
		s.first.card.Receive(buf[start:end], secondAddress, wire.ECT0)
		s.first.exchange()
		start = end
	}
	return nil
}

// TestOnPackets runs the tests of a card on one on a network whose packets stay in memory, in bubbles.
// TestOverUDP names those that cannot run.
func TestOnPackets(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"Reduce":                           TestReduce,
		"AllReduce":                        TestAllReduce,
		"DeadlineReportsMissingRanks":      TestDeadlineReportsMissingRanks,
		"LateMember":                       TestLateMember,
		"DeadMember":                       TestDeadMember,
		"RefusedCallHasNoPartials":         TestRefusedCallHasNoPartials,
		"Leaves":                           TestLeaves,
		"LastMemberLeaves":                 TestLastMemberLeaves,
		"EvictionsAddUp":                   TestEvictionsAddUp,
		"DeadlineOfOneJobIsNotTheNextOnes": TestDeadlineOfOneJobIsNotTheNextOnes,
		"Lags":                             TestLags,
		"PartialInTime":                    TestPartialInTime,
		"MissingRank":                      TestMissingRank,
		"ShorterArray":                     TestShorterArray,
		"OtherLengthInOneChunk":            TestOtherLengthInOneChunk,
		"DeadlineNamesMissing":             TestDeadlineNamesMissing,
		"CloseAndAbort":                    TestCloseAndAbort,
		"Pending":                          TestPending,
		"PendingFails":                     TestPendingFails,
		"PendingLeaves":                    TestPendingLeaves,
		"Detach":                           TestDetach,
		"DetachInTheMiddle":                TestDetachInTheMiddle,
		"ConfigureStorm":                   TestConfigureStorm,
	} {
		t.Run(name, test)
	}
}

// losing is a link of packets that loses chosen ones from the card.
type losing struct {
	transport.PacketConn
	loses func(*frame.Frame) bool
}

func (l losing) ReadPackets(batch []transport.Packet) (int, error) {
	check := frame.NewDatagramChecker(frame.FromCard)
	for {
		n, err := l.PacketConn.ReadPackets(batch)
		kept := 0
		for i := range n {
			if f := (frame.Frame{}); !check.Check(batch[i].Bytes, &f) || !l.loses(&f) {
				batch[kept], batch[i] = batch[i], batch[kept]
				kept++
			}
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}

// TestLossesCostRoundTrips: a lost packet costs a few round trips, not a fixed time: the last result of
// an array, the only one, the answer to a finish and that to a register access.
func TestLossesCostRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := map[wire.Kind]bool{} // the next of these kinds
		link := losing{serveInMemory(t, smallUDP), func(f *frame.Frame) bool {
			now := lost[f.Kind]
			delete(lost, f.Kind)
			return now
		}}
		card := open(t, link)
		job := configure(t, card, driver.JobConfig{Workers: 1})
		const most = 5 * time.Millisecond // the round trips take no time
		costs := func(what string, kind wire.Kind, do func() error) {
			t.Helper()
			for range 5 {
				lost[kind] = true
				began := time.Now()
				if err := do(); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > most || lost[kind] {
					t.Errorf("%s took %s; lost: %t", what, took, !lost[kind])
				}
			}
		}
		array := make([]float32, 16)
		costs("an array of one chunk", wire.KindResult, func() error { return job.Member(0).AllReduce(testContext(t), array) })
		costs("a register access", wire.KindReply, func() error {
			_, err := card.ReadRegister(testContext(t), wire.RegCycles)
			return err
		})
		first := true
		costs("a finish", wire.KindStatus, func() error {
			if !first {
				job = configure(t, card, driver.JobConfig{Workers: 1})
			}
			first = false
			return job.Close(testContext(t))
		})
	})
}
