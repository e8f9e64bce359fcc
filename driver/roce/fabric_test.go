package roce_test

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/test/bufconn"

	"tributary/driver"
	"tributary/driver/daemon"
	"tributary/driver/model"
	"tributary/driver/roce"
	"tributary/driver/transport"
	"tributary/driver/transport/rdma"
	"tributary/driver/transport/serve"
	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
	soft "tributary/driver/virtual/rc/stack"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// fabric is a model card under RoCEv2 with RDMA hosts in software at its Ethernet ports, all in this
// process, for tests in bubbles. All of it has the bubble's clock.
type fabric struct {
	testing.TB
	endpoint *model.Endpoint
	oneArmed bool
	hosts    []*rc.Host
	cables   []*cable.Faults

	mu    sync.Mutex // guards all of it
	moved sync.Cond  // time has passed
	room  *cable.Room
	open  int // queue pairs that are not closed
	in    []transport.Packet
	over  bool

	stop func() // ends the daemon
}

// owner is where the daemon's packets come from.
var owner = wire.Address{Station: 0x1234_0a0000fe, MAC: 0x02_0000_0002_00fe}

// newFabric returns a running fabric.
func newFabric(t testing.TB, format wire.Format, hosts int) *fabric {
	t.Helper()
	return newFabricOf(t, hosts, false, model.Config{Lanes: 4, Ports: hosts, Window: 32, Jobs: 2, Format: format, Shell: wire.ShellRoCE, Ethernet: hosts, Link: 64})
}

// newFabricOf is newFabric for any card. The hosts of a one-armed card are at a switch.
func newFabricOf(t testing.TB, hosts int, oneArmed bool, cfg model.Config) *fabric {
	t.Helper()
	endpoint, err := model.NewEndpoint(cfg, frames.CardAddress)
	require.NoError(t, err)
	card, err := ethernet.New(endpoint, cfg.Ethernet)
	require.NoError(t, err)
	f := &fabric{TB: t, endpoint: endpoint, oneArmed: oneArmed, room: cable.NewRoom(1)}
	f.moved.L = &f.mu
	middle := f.room.Place(card)
	if oneArmed {
		stations := map[[6]byte]int{[6]byte(frames.CardMAC): hosts}
		for i := range hosts {
			stations[macOf(i)] = i
		}
		at := f.room.Place(cable.NewSwitch(stations))
		f.room.Join(cable.Port{Device: at, Port: hosts}, cable.Port{Device: middle}, cable.Faults{})
		middle = at
	}
	for i := range hosts {
		host := rc.New(rc.Address{MAC: macOf(i), IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)})})
		f.hosts = append(f.hosts, host)
		f.cables = append(f.cables, f.room.Join(cable.Port{Device: f.room.Place(host)}, cable.Port{Device: middle, Port: i}, cable.Faults{}))
	}
	ended := make(chan struct{})
	go f.run(ended)
	t.Cleanup(func() {
		assert.NoError(t, f.Close())
		<-ended
	})
	return f
}

// macOf returns the MAC address of a host.
func macOf(host int) [6]byte { return [6]byte{2, 0, 0, 0, 1, byte(host)} }

// step is how long the fabric rests between two of its moves.
const step = 100 * time.Microsecond

// run lets time pass in the fabric, as it does in the bubble.
func (f *fabric) run(ended chan<- struct{}) {
	defer close(ended)
	for began := time.Now(); ; time.Sleep(step) {
		f.mu.Lock()
		if f.over {
			f.mu.Unlock()
			return
		}
		f.room.Run(time.Since(began)-f.room.Now(), func() bool { return false })
		f.moved.Broadcast()
		f.mu.Unlock()
	}
}

// The fabric is the owner's link to the card as well: a transport.PacketConn.

func (f *fabric) WritePackets(buf []byte, ends []int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return net.ErrClosed
	}
	start := 0
	for _, end := range ends {
		f.endpoint.Receive(buf[start:end], owner, wire.ECT0)
		start = end
		for {
			datagram, _, mark, ok := f.endpoint.Send(nil)
			if !ok {
				break
			}
			f.in = append(f.in, transport.Packet{Bytes: datagram, ECN: mark})
		}
	}
	f.moved.Broadcast()
	return nil
}

func (f *fabric) ReadPackets(batch []transport.Packet) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.in) == 0 && !f.over {
		f.moved.Wait()
	}
	if f.over {
		return 0, net.ErrClosed
	}
	n := copy(batch, f.in)
	f.in = f.in[n:]
	return n, nil
}

func (f *fabric) Limits() transport.PacketLimits { return transport.PacketLimits{} }

func (f *fabric) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	f.moved.Broadcast()
	return nil
}

// await lets time pass until something is so.
func await(t testing.TB, so func() bool) {
	t.Helper()
	for range 60_000 {
		if so() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	require.Fail(t, "nothing after a minute")
}

// local is a listener in this process.
type local struct{ *bufconn.Listener }

func (l local) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		err = net.ErrClosed // bufconn has no other
	}
	return conn, err
}

func (local) Addr() net.Addr { return &net.UnixAddr{Name: "daemon", Net: "unix"} }

// session opens a session with the daemon.
func (l local) session(t testing.TB) transport.Conn {
	t.Helper()
	conn, err := serve.Over(t.Context(), "daemon", func(ctx context.Context) (net.Conn, error) { return l.DialContext(ctx) })
	require.NoError(t, err)
	return conn
}

// serveCard lets a daemon own a card. stop ends the daemon.
func serveCard(t testing.TB, card *driver.Card) (at local, stop func()) {
	t.Helper()
	at = local{bufconn.Listen(64 << 10)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.New(map[string]daemon.Card{"card": card}, daemon.Options{}).Serve(ctx, at, 0)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return at, stop
}

// serve lets a daemon own the fabric's card.
func (f *fabric) serve() local {
	f.Helper()
	card, err := driver.OpenPackets(f.Context(), "card", f)
	require.NoError(f, err)
	at, stop := serveCard(f, card)
	f.stop = stop
	return at
}

// openAll opens the card once for each host, as its process does.
func (f *fabric) openAll(address local) (cards []*driver.Card) {
	f.Helper()
	for i := range f.hosts {
		cards = append(cards, f.openOn(address, &stack{fabric: f, host: i, mtu: 256}))
	}
	return cards
}

// openOn opens the card over a stack.
func (f *fabric) openOn(address local, s rdma.Stack) *driver.Card {
	f.Helper()
	conn, err := roce.Over(address.session(f), s)
	require.NoError(f, err)
	card, err := driver.OpenConn(f.Context(), "roce:", conn)
	require.NoError(f, err)
	f.Cleanup(func() { card.Close() })
	return card
}

// register returns the value of a register of the card.
func (f *fabric) register(address local, addr uint32) uint64 {
	f.Helper()
	card, err := driver.OpenConn(f.Context(), "serve:", address.session(f))
	require.NoError(f, err)
	value, err := card.ReadRegister(f.Context(), addr)
	require.NoError(f, err)
	require.NoError(f, card.Close())
	return value
}

// queuePairs returns the number of queue pairs that live.
func (f *fabric) queuePairs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

// stack is the RDMA stack of a host of the fabric.
type stack struct {
	*fabric
	host, mtu int
	claims    uint32 // the MTU that its connections claim to have; 0: that of the job
	timeout   uint8  // of queue pairs; 0: 4 s
}

func (s *stack) MTU() int { return s.mtu }

func (s *stack) Open(ctx context.Context, job rdma.Job) (rdma.QueuePairs, error) {
	own := &soft.Stack{Host: s.hosts[s.host], Moved: &s.moved, MaxMTU: s.mtu, Port: s.host, Timeout: s.timeout}
	if s.claims != 0 {
		own.MaxMTU = job.MTU
	}
	if s.oneArmed {
		own.Port, own.CardMAC = 0, [6]byte(frames.CardMAC)
	}
	q, err := own.Open(ctx, job)
	if err != nil {
		return nil, err
	}
	if s.claims != 0 {
		q.Connection().Mtu = s.claims
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	return &counted{q, s.fabric}, nil
}

// counted are queue pairs that the fabric counts until they are closed.
type counted struct {
	rdma.QueuePairs
	fabric *fabric
}

func (c *counted) Close() error {
	err := c.QueuePairs.Close()
	assert.NoError(c.fabric, err)
	c.fabric.mu.Lock()
	defer c.fabric.mu.Unlock()
	c.fabric.open--
	return err
}
