package faults

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tributary/driver/frame"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// Proxy is a network with faults between hosts and a card, on real sockets of this machine. It
// forwards datagrams as a router that translates addresses does: each host has a UDP port of its own
// towards the card.
//
// Of the kinds of faults it has Drop, Repeat, Reorder, Delay, Flip, Burst, Scramble, Cut and Insert.
type Proxy struct {
	On       atomic.Bool // faults happen
	Held     atomic.Bool // nothing passes
	Happened *Counts

	rates  Rates
	hosts  *net.UDPConn
	card   netip.AddrPort
	marks  [2]atomic.Int32 // ECN field of what leaves, by frame.Direction; keepMark: as it came
	queues [2]atomic.Pointer[Bottleneck]
	closed sync.WaitGroup

	mu   sync.Mutex
	ways map[netip.AddrPort]*proxied
	over bool
}

// keepMark leaves the ECN field of a packet as it came.
const keepMark = -1

// unreadBytes is the memory that the system is asked for, for packets that wait in a socket.
const unreadBytes = 4 << 20

// proxied is a host's way through a proxy.
type proxied struct {
	card    *net.UDPConn // towards the card
	toCard  *packetWay
	toHosts *packetWay
}

// NewProxy opens a proxy to the card at an address, HOST:PORT. Its counts go to counts.
func NewProxy(card string, r Rates, counts *Counts) (*Proxy, error) {
	to, err := netip.ParseAddrPort(card)
	if err != nil {
		return nil, err
	}
	hosts, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(udp.SetUp(hosts), hosts.SetReadBuffer(unreadBytes)); err != nil {
		return nil, errors.Join(err, hosts.Close())
	}
	p := &Proxy{Happened: counts, rates: r, hosts: hosts, card: to, ways: map[netip.AddrPort]*proxied{}}
	for d := range p.marks {
		p.marks[d].Store(keepMark)
	}
	p.closed.Go(p.fromHosts)
	return p, nil
}

// Name returns the card's name for hosts behind the proxy.
func (p *Proxy) Name() string { return "udp:" + p.hosts.LocalAddr().String() }

// Mark sets the ECN fields of what leaves from now on, towards the card and towards hosts.
func (p *Proxy) Mark(toCard, fromCard wire.ECN) {
	p.marks[frame.ToCard].Store(int32(toCard))
	p.marks[frame.FromCard].Store(int32(fromCard))
}

// Narrow makes what leaves in a direction pass a bottleneck, after its faults.
func (p *Proxy) Narrow(d frame.Direction, q *Bottleneck) { p.queues[d].Store(q) }

// Close closes the proxy's sockets.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.over = true
	for _, w := range p.ways {
		w.card.Close()
	}
	p.mu.Unlock()
	err := p.hosts.Close()
	p.closed.Wait()
	return err
}

// fromHosts forwards what hosts send.
func (p *Proxy) fromHosts() {
	buf, control := make([]byte, 1<<16), make([]byte, udp.ControlBytes)
	for {
		n, shown, _, from, err := p.hosts.ReadMsgUDPAddrPort(buf, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if w := p.wayOf(from); err == nil && w != nil && !p.Held.Load() {
			w.toCard.pass(slices.Clone(buf[:n]), udp.ReceivedMark(control[:shown]))
		}
	}
}

// wayOf returns a host's way, or nil if the proxy is closed.
func (p *Proxy) wayOf(from netip.AddrPort) *proxied {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.ways[from]
	if w != nil || p.over {
		return w
	}
	card, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(p.card))
	if err != nil || errors.Join(udp.SetUp(card), card.SetReadBuffer(unreadBytes)) != nil {
		return nil
	}
	w = &proxied{card: card}
	w.toCard = p.newWay(frame.ToCard, func(b, control []byte) { card.WriteMsgUDPAddrPort(b, control, netip.AddrPort{}) })
	w.toHosts = p.newWay(frame.FromCard, func(b, control []byte) { p.hosts.WriteMsgUDPAddrPort(b, control, from) })
	p.ways[from] = w
	p.closed.Go(func() { p.fromCard(w) })
	return w
}

// fromCard forwards what the card sends to a host.
func (p *Proxy) fromCard(w *proxied) {
	buf, control := make([]byte, 1<<16), make([]byte, udp.ControlBytes)
	for {
		n, shown, _, _, err := w.card.ReadMsgUDPAddrPort(buf, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && !p.Held.Load() {
			w.toHosts.pass(slices.Clone(buf[:n]), udp.ReceivedMark(control[:shown]))
		}
	}
}

// packetWay is one direction of a host's way. One goroutine calls pass.
type packetWay struct {
	proxy     *Proxy
	direction frame.Direction
	fate      *fate
	check     *frame.DatagramChecker
	write     func(b, control []byte)
	held      func() // sends a packet after the next one
}

func (p *Proxy) newWay(d frame.Direction, write func(b, control []byte)) *packetWay {
	return &packetWay{proxy: p, direction: d, fate: newFate(p.rates, d), check: frame.NewDatagramChecker(d), write: write}
}

// pass forwards a packet, which came with a mark, with its fault.
func (w *packetWay) pass(b []byte, mark wire.ECN) {
	w.proxy.Happened.Frames[w.direction].Add(1)
	var f frame.Frame
	kind, rng := none, (*rand.Rand)(nil)
	if w.check.Check(b, &f) && w.proxy.On.Load() {
		kind, rng = w.fate.draw(&f.Header)
	}
	send := func(b []byte) { w.leave(b, mark) }
	if kind == Reorder && w.held == nil {
		w.held = func() { send(b) }
		w.count(Reorder)
		return
	}
	w.apply(b, kind, rng, send)
	if w.held != nil {
		w.held()
		w.held = nil
	}
}

// leave sends a packet, through the bottleneck if there is one.
func (w *packetWay) leave(b []byte, mark wire.ECN) {
	if set := w.proxy.marks[w.direction].Load(); set != keepMark {
		mark = wire.ECN(set)
	}
	send := func(mark wire.ECN) { w.write(b, udp.AppendMark(nil, mark)) }
	if q := w.proxy.queues[w.direction].Load(); q != nil {
		q.Pass(time.Now(), len(b), mark, send)
		return
	}
	send(mark)
}

func (w *packetWay) count(k Kind) { w.proxy.Happened.Faults[w.direction][k].Add(1) }

// apply sends a packet after a fault that concerns it alone.
func (w *packetWay) apply(b []byte, kind Kind, rng *rand.Rand, send func(b []byte)) {
	if kind != none && kind != Reorder {
		w.count(kind)
	}
	switch kind {
	case Drop:
		return
	case Repeat:
		send(b)
	case Delay:
		time.AfterFunc(longTime(rng), func() { send(b) })
		return
	case Flip:
		flips(b, rng)
	case Burst:
		burst(b, rng)
	case Scramble:
		at := rng.IntN(len(b))
		for i := range b[at:min(len(b), at+1+rng.IntN(mostBytes))] {
			b[at+i] = byte(rng.Uint32())
		}
	case Cut:
		at := rng.IntN(len(b))
		b = append(b[:at], b[min(len(b), at+1+rng.IntN(mostBytes)):]...)
	case Insert:
		at := 1 + rng.IntN(len(b)-1)
		b = slices.Concat(b[:at], appendRandom(nil, rng), b[at:])
	}
	send(b)
}
