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

	"golang.org/x/net/ipv4"

	"tributary/driver/frame"
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
	marks  [2]atomic.Int32 // ECN field of what leaves, by frame.Direction
	closed sync.WaitGroup

	mu   sync.Mutex
	ways map[netip.AddrPort]*proxied
	over bool
}

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
	p := &Proxy{Happened: counts, rates: r, hosts: hosts, card: to, ways: map[netip.AddrPort]*proxied{}}
	p.Mark(wire.ECT0, wire.ECT0)
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
	buf := make([]byte, 1<<16)
	for {
		n, from, err := p.hosts.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if w := p.wayOf(from); err == nil && w != nil && !p.Held.Load() {
			w.toCard.pass(slices.Clone(buf[:n]))
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
	if err != nil {
		return nil
	}
	w = &proxied{card: card}
	w.toCard = p.newWay(frame.ToCard, card, func(b []byte) { card.Write(b) })
	w.toHosts = p.newWay(frame.FromCard, p.hosts, func(b []byte) { p.hosts.WriteToUDPAddrPort(b, from) })
	p.ways[from] = w
	p.closed.Go(func() { p.fromCard(w) })
	return w
}

// fromCard forwards what the card sends to a host.
func (p *Proxy) fromCard(w *proxied) {
	buf := make([]byte, 1<<16)
	for {
		n, err := w.card.Read(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && !p.Held.Load() {
			w.toHosts.pass(slices.Clone(buf[:n]))
		}
	}
}

// packetWay is one direction of a host's way. One goroutine calls pass.
type packetWay struct {
	proxy     *Proxy
	direction frame.Direction
	fate      *fate
	check     *frame.DatagramChecker
	mark      func(ecn int) error
	send      func(b []byte)
	marked    int
	held      []byte // to send after the next packet
}

func (p *Proxy) newWay(d frame.Direction, socket *net.UDPConn, send func(b []byte)) *packetWay {
	return &packetWay{proxy: p, direction: d, fate: newFate(p.rates, d), check: frame.NewDatagramChecker(d),
		mark: ipv4.NewConn(socket).SetTOS, send: send, marked: -1}
}

// pass forwards a packet with its fault.
func (w *packetWay) pass(b []byte) {
	if ecn := int(w.proxy.marks[w.direction].Load()); ecn != w.marked && w.mark(ecn) == nil {
		w.marked = ecn
	}
	w.proxy.Happened.Frames[w.direction].Add(1)
	var f frame.Frame
	kind, rng := none, (*rand.Rand)(nil)
	if w.check.Check(b, &f) && w.proxy.On.Load() {
		kind, rng = w.fate.draw(&f.Header)
	}
	if kind == Reorder && w.held == nil {
		w.held = b
		w.count(Reorder)
		return
	}
	w.apply(b, kind, rng)
	if w.held != nil {
		w.send(w.held)
		w.held = nil
	}
}

func (w *packetWay) count(k Kind) { w.proxy.Happened.Faults[w.direction][k].Add(1) }

// apply sends a packet after a fault that concerns it alone.
func (w *packetWay) apply(b []byte, kind Kind, rng *rand.Rand) {
	if kind != none && kind != Reorder {
		w.count(kind)
	}
	switch kind {
	case Drop:
		return
	case Repeat:
		w.send(b)
	case Delay:
		time.AfterFunc(longTime(rng), func() { w.send(b) })
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
	w.send(b)
}
