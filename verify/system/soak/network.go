package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
	"tributary/driver/virtual/simulator"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
	"tributary/verify/system/frames"
)

// networkClock is the speed of such a card's clock, relative to one at a byte stream: frames are longer, and
// it moves in steps of real time.
const networkClock = 8

// network is a card with Ethernet ports, a faulty cable and a host at each of them, and a gateway from the
// driver's UDP sockets to the hosts.
type network struct {
	*round
	cables  []*faults.Cable
	hosts   []*frames.Host
	gateway *frames.Gateway
	others  *traffic

	running sync.Mutex
	cancel  context.CancelFunc
	ended   chan error
	crash   error
}

// cardAt is the address of a generated card.
var cardAt = netip.AddrPortFrom(netip.AddrFrom4([4]byte(frames.CardIP)), frames.CardPort)

func newNetwork(r *round) *network {
	n := &network{round: r}
	rng := rand.New(rand.NewPCG(r.seed, 1<<32))
	rates := newFrameRates(rng, leastHarmed, mostHarmed)
	for i := range r.ethernet {
		rates.Seed = r.seed + uint64(i)<<48
		c := faults.NewCable(rates, &r.campaign.frames)
		c.Watch = r.watch
		c.On.Store(true)
		n.cables = append(n.cables, c)
	}
	return n
}

const leastHarmed, mostHarmed = 0.1, 0.3 // share of a round's Ethernet frames with a fault

// newFrameRates draws the share of each kind of fault, and from least to most that of all.
func newFrameRates(rng *rand.Rand, least, most float64) faults.FrameRates {
	var r faults.FrameRates
	var sum float64
	for kind := range r.Chances {
		r.Chances[kind] = rng.Float64()
		switch faults.FrameKind(kind) {
		case faults.Oversized:
			r.Chances[kind] /= 20 // it is as long as a hundred others
		case faults.Repeated, faults.Reordered, faults.Padded, faults.Marked, faults.OthersWrite, faults.OthersData:
			r.Chances[kind] *= 2 // nothing is lost
		}
		sum += r.Chances[kind]
	}
	faulty := least + (most-least)*rng.Float64()
	for kind := range r.Chances {
		r.Chances[kind] *= faulty / sum
	}
	return r
}

func (n *network) name() string { return n.gateway.Name() }

func (n *network) start() (err error) {
	n.running.Lock()
	defer n.running.Unlock()
	if err := n.runLocked(); err != nil {
		return err
	}
	for i, c := range n.cables {
		n.hosts = append(n.hosts, frames.AttachFaulty(c, net.HardwareAddr{0x06, 0, 0, 0, 0, byte(1 + i)}, net.IPv4(192, 168, 84, byte(1+i))))
	}
	n.others = newTraffic(n.hosts)
	n.gateway, err = frames.OpenGateway(cardAt, n.hosts...)
	return err
}

// runLocked runs a card without any history at the cables.
func (n *network) runLocked() error {
	ctx, cancel := context.WithCancel(context.Background())
	card, time, err := n.device(ctx, n.awaitsDeadlines())
	if err != nil {
		cancel()
		return fmt.Errorf("the card does not start: %w", err)
	}
	var ports []frameport.Port
	for _, c := range n.cables {
		ports = append(ports, c.Plug(frames.CheckSound))
	}
	n.cancel, n.ended = cancel, make(chan error, 1)
	go func() { n.ended <- frameport.Serve(ctx, card, time, ports) }()
	return nil
}

// awaitsDeadlines reports whether the card must move to a deadline while all wait.
func (n *network) awaitsDeadlines() bool {
	return slices.ContainsFunc(n.tenants, func(t tenantPlan) bool { return t.deadline > 0 })
}

// gateware starts the campaign's card in a simulator.
func (c *campaign) gateware(ctx context.Context, deadlines bool) (ethernet.Device, frameport.Timekeeper, error) {
	card, err := simulator.Start(ctx, c.program, c.ethernet, os.Stderr)
	if err != nil {
		return nil, nil, err
	}
	context.AfterFunc(ctx, func() { _ = card.Close() }) // it was killed
	p := newPaced(card, uint64(c.link)/8, deadlines)
	return p, p, nil
}

// haltLocked kills the card.
func (n *network) haltLocked() {
	n.cancel()
	n.crash = errors.Join(n.crash, <-n.ended)
}

func (n *network) restart() error {
	n.running.Lock()
	defer n.running.Unlock()
	n.haltLocked()
	return n.runLocked()
}

func (n *network) stop() error {
	n.running.Lock()
	defer n.running.Unlock()
	if n.gateway != nil {
		_ = n.gateway.Close()
	}
	n.others.stop()
	for _, c := range n.cables {
		c.Quiet()
	}
	n.campaign.mu.Lock()
	defer n.campaign.mu.Unlock()
	for _, h := range n.hosts {
		_ = h.Close()
		n.effects.unsound += h.Unsound.Load()
	}
	if n.others != nil {
		n.effects.passed += n.others.came.Load()
	}
	n.haltLocked()
	return n.crash
}

// account compares the card's counters of dropped frames with the faults, and judges what it sent.
func (n *network) account(ctx context.Context, counters func() ([]driver.Counter, error)) error {
	want := map[string]int64{}
	for i, c := range n.cables {
		c.Quiet()
		if err := settle(ctx, n.hosts[i]); err != nil {
			return fmt.Errorf("cable %d: %w", i, err)
		}
	}
	var all faults.Strangers
	for _, c := range n.cables {
		for name, count := range c.Expected() {
			want[name] += count
		}
		s := c.Strangers()
		all.Writes, all.Data, all.Refused, all.Obeyed = all.Writes+s.Writes, all.Data+s.Data, all.Refused+s.Refused, all.Obeyed+s.Obeyed
		if broken := c.Broken(); len(broken) > 0 {
			return broken[0]
		}
	}
	got, err := counters()
	if err != nil {
		return err
	}
	return errors.Join(n.others.failure(), compare(got, want, all))
}

// exact are the counters that nothing but the faults may change.
var exact = []string{
	"short", "datagram_crc", "fcs", "runt", "oversize", "ip_header", "ip_checksum", "fragment", "ip_length", "ip_address", "protocol",
	"udp_length", "checksum", "udp_port", "lease",
}

// compare compares a card's counters with what the faults must have caused.
func compare(got []driver.Counter, want map[string]int64, strangers faults.Strangers) error {
	counted := map[string]int64{}
	for _, c := range got {
		counted[c.Name] = int64(c.Value)
	}
	var wrong []error
	for _, name := range exact {
		if counted[name] != want[name] {
			wrong = append(wrong, &wrongCount{name, counted[name], want[name]})
		}
	}
	if n := counted["stranger"]; n < strangers.Data {
		wrong = append(wrong, &wrongCount{"stranger", n, strangers.Data})
	}
	if strangers.Obeyed > 0 {
		wrong = append(wrong, fmt.Errorf("the card answered %d writes of a stranger by another reply than busy", strangers.Obeyed))
	}
	if lost := strangers.Writes - strangers.Refused; lost < 0 || lost > counted["dropped"] {
		wrong = append(wrong, fmt.Errorf("%d of %d writes of a stranger were refused, and %d requests were dropped", strangers.Refused, strangers.Writes, counted["dropped"]))
	}
	return errors.Join(wrong...)
}

// wrongCount is the error of a counter that is not what the faults make it.
type wrongCount struct {
	name      string
	got, want int64
}

func (w *wrongCount) Error() string {
	return fmt.Sprintf("counter %s is %d, the faults make it %d", w.name, w.got, w.want)
}

// settle returns when the card has taken all frames of a host.
func settle(ctx context.Context, h *frames.Host) error {
	s, err := h.Dial(ctx, cardAt)
	if err != nil {
		return err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { s.Close() })()
	b := frame.AppendDatagram(nil, &frame.Header{Kind: wire.KindRegRead, VID: wire.RegMagic}, nil)
	if err := s.WritePackets(b, []int{len(b)}); err != nil {
		return err
	}
	_, err = s.ReadPackets(make([]transport.Packet, 1))
	return err
}
