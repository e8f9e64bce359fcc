package run

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"sync"

	"tributary/driver"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// card is a card that a session has open.
type card struct {
	*driver.Card
	made *made // nil: it is not in this process
}

// made is a card in this process, at a UDP socket.
type made struct {
	way   *lossy
	ip    uint32
	stop  context.CancelFunc
	ended chan error
}

// order returns the name of the card that a node needs, for NewNetworkCard.
func (n *Node) order(l *Layout, o Options) string {
	if strings.Contains(n.Card, ":") {
		return n.Card
	}
	if n.Card != "" {
		return o.Scheme + ":" + n.Card
	}
	jobs := max(o.Jobs, 1<<bits.Len(uint(n.Jobs-1)))
	return fmt.Sprintf("%s:lanes=%d,workers=%d,format=%v,sum=%v,chunk=%d,window=%d,jobs=%d,parent=true", o.Scheme, o.Lanes, n.Ports, o.Format, o.Sum, l.Chunk, min(l.Window*jobs, wire.MaxWindow), jobs)
}

// fits tells whether a card of a plan before can do what a node needs.
func (n *Node) fits(c *driver.Card, l *Layout) bool {
	info := c.Info()
	return n.Needs <= info.Ports && n.Jobs <= info.Jobs && l.Window*n.Jobs <= info.Window
}

// openCard opens the card of a node; one in software is started first.
func openCard(ctx context.Context, n *Node, l *Layout, o Options) (*card, error) {
	name, c := n.order(l, o), &card{}
	if driver.IsSoftware(name) {
		var err error
		if name, c.made, err = start(name, o); err != nil {
			return nil, err
		}
	}
	var err error
	if c.Card, err = driver.Open(ctx, name, driver.WithTimeout(o.Timeout)); err != nil {
		return nil, errors.Join(err, c.made.end())
	}
	if c.made != nil { // a machine that is busy with all cards must not lose them
		_, err = c.WriteRegister(ctx, wire.RegLease, wire.MaxLease)
	}
	if err == nil && !n.fits(c.Card, l) {
		info := c.Info()
		err = wrong("node %q needs %d ports and %d jobs with windows of %d chunks, and its card %s has %d ports and %d jobs with %d chunks together",
			n.ID.Text, n.Needs, n.Jobs, l.Window, name, info.Ports, info.Jobs, info.Window)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// start starts a card in software, and returns its name on the network.
func start(name string, o Options) (string, *made, error) {
	socket, err := udp.Listen(fmt.Sprintf("%s:%d", udp.OwnLoopback(), wire.NetworkPort))
	if err != nil {
		return "", nil, fmt.Errorf("%w (cards of trees need an address each, which Linux has in 127.0.0.0/8)", err)
	}
	software, err := driver.NewNetworkCard(name, socket.Address(), 0)
	if err != nil {
		return "", nil, errors.Join(err, socket.Close())
	}
	up, ok := software.(uplinked)
	if !ok {
		return "", nil, errors.Join(wrong("card %s has no up port, which trees need", name), socket.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	ip := ipOf(socket.Address())
	m := &made{way: newLossy(up, o.Loss, o.Seed^uint64(ip)), ip: ip, stop: stop, ended: make(chan error, 1)}
	go func() { m.ended <- socket.Serve(ctx, m.way) }()
	return socket.Name(), m, nil
}

// ipOf returns the IPv4 address of a card behind a socket.
func ipOf(a wire.Address) uint32 { return uint32(a.Station) }

// end ends a card in software; it does nothing if it has ended.
func (m *made) end() error {
	if m == nil {
		return nil
	}
	m.stop()
	err, open := <-m.ended
	if open {
		close(m.ended)
	}
	return err
}

func (c *card) close() error {
	err := c.Card.Close()
	if c.made != nil {
		err = nil // it ends here anyway
	}
	return errors.Join(err, c.made.end())
}

// uplinked is a card in software with an up port.
type uplinked interface {
	driver.NetworkCard
	UpwardPorts() []uint16
	ReceiveUp(port uint16, datagram []byte, from wire.Address, mark wire.ECN)
	SendUp(dst []byte) (datagram []byte, port uint16, to wire.Address, mark wire.ECN, ok bool)
}

// lossy is a card whose packets of jobs are lost at random, and on links that have failed. Accesses to
// registers are not: another network may carry them.
type lossy struct {
	uplinked
	random *rand.Rand
	share  float64

	mu    sync.Mutex
	cards map[uint32]bool // nothing arrives from the cards at these addresses
	ranks uint64          // nothing arrives from members of these ranks, in any job
	lost  uint64
}

func newLossy(c uplinked, share float64, seed uint64) *lossy {
	return &lossy{uplinked: c, random: rand.New(rand.NewPCG(seed, 0)), share: share, cards: map[uint32]bool{}}
}

// Places of a packet's header (wire/PACKET.md).
const (
	kindShift = 4
	rankByte  = 6
)

// loses decides whether a packet is lost: on a link that has failed, or at random with a share.
func (l *lossy) loses(datagram []byte, share float64, cut func() bool) bool {
	if len(datagram) <= rankByte {
		return false
	}
	switch wire.Kind(datagram[0] >> kindShift) {
	case wire.KindRegRead, wire.KindRegWrite, wire.KindReply:
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if cut() || share > 0 && l.random.Float64() < share {
		l.lost++
		return true
	}
	return false
}

func (l *lossy) Receive(datagram []byte, from wire.Address, mark wire.ECN) {
	cut := func() bool { return l.cards[ipOf(from)] || l.ranks>>(datagram[rankByte]&63)&1 != 0 }
	if !l.loses(datagram, l.share, cut) {
		l.uplinked.Receive(datagram, from, mark)
	}
}

// ReceiveUp loses nothing at random: the parent's Send has.
func (l *lossy) ReceiveUp(port uint16, datagram []byte, from wire.Address, mark wire.ECN) {
	if !l.loses(datagram, 0, func() bool { return l.cards[ipOf(from)] }) {
		l.uplinked.ReceiveUp(port, datagram, from, mark)
	}
}

// Send loses packets that leave for workers and for cards below.
func (l *lossy) Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool) {
	for {
		datagram, to, mark, ok = l.uplinked.Send(dst)
		if !ok || !l.loses(datagram, l.share, func() bool { return false }) {
			return datagram, to, mark, ok
		}
	}
}

// cut makes a card lose what arrives from another card, or from members of a rank.
func (l *lossy) cut(cards []uint32, ranks uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ip := range cards {
		l.cards[ip] = true
	}
	l.ranks |= ranks
}

// mend ends all cuts.
func (l *lossy) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.cards)
	l.ranks = 0
}

// losses returns how many packets were lost.
func (l *lossy) losses() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}
