package daemon_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
	"tributary/driver/transport"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
)

// networked is a model card on the network, of 4 lanes, chunks of 16 elements and a window of 4. Its test
// may take its power away, and give it back at the same address.
type networked struct {
	testing.TB
	kind string // of the card: its name as one in software
	name string

	mu    sync.Mutex
	off   context.CancelFunc
	ended chan error
}

func newNetworked(t testing.TB) *networked {
	t.Helper()
	return newNetworkedAt(t, udp.OwnLoopback()+":0", "model:lanes=4,workers=4,chunk=16,window=4,jobs=2")
}

// newNetworkedAt starts a card of another kind at an address.
func newNetworkedAt(t testing.TB, address, kind string) *networked {
	t.Helper()
	n := &networked{TB: t, kind: kind}
	n.power(address)
	t.Cleanup(n.cut)
	return n
}

// power starts a card that knows nothing of earlier ones.
func (n *networked) power(address string) {
	n.Helper()
	socket := bind(n, func() (*udp.Socket, error) { return udp.Listen(address) })
	card, err := driver.NewNetworkCard(n.kind, socket.Address(), 1)
	if err != nil {
		n.Fatal(err)
	}
	ctx, off := context.WithCancel(context.Background())
	n.mu.Lock()
	defer n.mu.Unlock()
	n.name, n.off, n.ended = socket.Name(), off, make(chan error, 1)
	go func() { n.ended <- socket.Serve(ctx, card) }()
}

// bind binds a socket, and does so again while another one is in the way: one that connects has its port at all
// addresses for a moment.
func bind[T any](t testing.TB, listen func() (T, error)) T {
	t.Helper()
	for ctx := testContext(t); ; runtime.Gosched() {
		socket, err := listen()
		if err == nil {
			return socket
		}
		if !errors.Is(err, syscall.EADDRINUSE) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// cut takes the power away.
func (n *networked) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.off()
	if err := <-n.ended; err != nil {
		n.Error(err)
	}
	n.ended <- nil
}

// restart takes the power away and gives it back.
func (n *networked) restart() {
	n.cut()
	n.power(n.name[len("udp:"):])
}

// open opens the card, as its owner or for reads alone.
func (n *networked) open(opts ...driver.Option) *driver.Card {
	n.Helper()
	c, err := driver.Open(testContext(n), n.name, append([]driver.Option{driver.WithTimeout(patience)}, opts...)...)
	if err != nil {
		n.Fatal(err)
	}
	return c
}

// serveDirect runs a daemon with a card on the network, and returns the path of its socket.
func serveDirect(t testing.TB, o daemon.Options) (*networked, string) {
	t.Helper()
	n := newNetworked(t)
	return n, serveCard(t, n.open(driver.WithReopen(func(*driver.DiedError) {})), o)
}

// TestDirectMembers: members in sessions of their own send their data to the card. The daemon forwards
// none, and each port of the card has an address of its own. Every sum is right.
func TestDirectMembers(t *testing.T) {
	ctx := testContext(t)
	card, path := serveDirect(t, daemon.Options{})
	sessions := openAll(t, path, 3)
	reader := card.open(driver.WithReadOnly())
	defer reader.Close()
	for round := range 3 { // more jobs than the card holds at once
		j, err := sessions[0].Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{0}})
		if err != nil {
			t.Fatal(err)
		}
		m := newTeam(t, j, sessions, round)
		if err := j.AwaitMembers(ctx); err != nil {
			t.Fatal(err)
		}
		var places []uint64
		for port := range 3 {
			place, err := reader.ReadRegister(ctx, wire.TableAddr(wire.RegJobAddress, j.Number(), port))
			if err != nil || place == 0 || slices.Contains(places, place) {
				t.Errorf("port %d has address %x (%v), others %x", port, place, err, places)
			}
			places = append(places, place)
		}
		for _, elements := range []int{1, 16, 1000, 77} {
			if err := m.sum(ctx, elements); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.finish(ctx); err != nil {
			t.Fatal(err)
		}
	}
	count(t, ctx, reader, "stored", 3*3*(1+1+63+5))
}

// count compares a counter of the card.
func count(t *testing.T, ctx context.Context, c *driver.Card, name string, want uint64) {
	t.Helper()
	got, err := c.ReadRegister(ctx, wire.CounterAddr(slices.IndexFunc(wire.Counters, func(i wire.CounterInfo) bool { return i.Name == name })))
	if err != nil || got != want {
		t.Errorf("%s is %d (%v), want %d", name, got, err, want)
	}
}

// TestDirectEpoch: a job's epoch is none of which a member may still have packets under way.
func TestDirectEpoch(t *testing.T) {
	ctx := testContext(t)
	card := newNetworkedAt(t, udp.OwnLoopback()+":0", "model:lanes=4,workers=4,chunk=16,window=4,jobs=1") // each number has epochs of its own
	path := serveCard(t, card.open(), daemon.Options{})
	session := open(t, path)
	before, err := session.Configure(ctx, driver.JobConfig{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(before.AwaitMembers(ctx), before.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	next := uint32(before.Epoch()) + 1
	c := attach(t, path, &protocol.Hello{Version: 1, Direct: true})
	nonce := c.create(&protocol.Parameters{Workers: new(uint32(2))})
	for rank, seen := range [][]uint32{{next + 1}, {next, next + 3}} {
		c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Join{Join: &protocol.Join{
			Request: 2, Nonce: nonce, Rank: new(uint32(rank)), Source: 0x1234_7f000001, Seen: seen}}})
	}
	if epoch := c.begun().Epoch; epoch != (next+2)&0xffff {
		t.Errorf("epoch %d, want %d", epoch, next+2)
	}
}

// TestDirectReduce: a program with all members of a job has one address for them.
func TestDirectReduce(t *testing.T) {
	ctx := testContext(t)
	_, path := serveDirect(t, daemon.Options{})
	j, err := open(t, path).Configure(ctx, driver.JobConfig{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	sum := make([]float32, 500)
	if err := j.Reduce(ctx, sum, [][]float32{ramp(500, 1), ramp(500, 2), ramp(500, 3), ramp(500, 4)}); err != nil {
		t.Fatal(err)
	}
	check(t, "sum", sum, 10)
	if err := j.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestDirectOverFaults: the network between members and card drops, repeats, reorders, delays and damages
// datagrams, and translates addresses. Every sum is right.
func TestDirectOverFaults(t *testing.T) {
	ctx := testContext(t)
	rates := faults.Rates{Drop: 0.02, Repeat: 0.02, Reorder: 0.02, Delay: 0.02, Flip: 0.02, Cut: 0.01, Seed: 1}
	proxy, path := serveBehindProxy(ctx, t, rates)
	proxy.On.Store(true)
	sessions := openAll(t, path, 3)
	for seed := range 2 {
		j, err := sessions[0].Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{0}})
		if err != nil {
			t.Fatal(err)
		}
		m := newTeam(t, j, sessions, seed)
		for _, elements := range []int{16, 2000, 77} {
			if err := m.sum(ctx, elements); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.finish(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []faults.Kind{faults.Drop, faults.Repeat, faults.Reorder, faults.Delay, faults.Flip, faults.Cut} {
		if proxy.Happened.Of(k) == 0 {
			t.Errorf("fault %v did not happen", k)
		}
	}
}

// serveBehindProxy runs a daemon with a card on a network behind a proxy, and returns the daemon's path.
func serveBehindProxy(ctx context.Context, t *testing.T, rates faults.Rates) (proxy *faults.Proxy, path string) {
	t.Helper()
	card := newNetworked(t)
	proxy, err := faults.NewProxy(card.name[len("udp:"):], rates, new(faults.Counts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	owner, err := driver.Open(ctx, proxy.Name(), driver.WithTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	return proxy, serveCard(t, owner, daemon.Options{})
}

// TestDirectMarks: each direct member reacts to marks on its own way, and to the merged ones.
func TestDirectMarks(t *testing.T) {
	ctx := testContext(t)
	proxy, path := serveBehindProxy(ctx, t, faults.Rates{})
	proxy.Mark(wire.CE, wire.ECT0)
	sessions := openAll(t, path, 3)
	j, err := sessions[0].Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	m := newTeam(t, j, sessions, 0)
	if err := m.sum(ctx, 40*16); err != nil {
		t.Fatal(err)
	}
	for rank, member := range m.members {
		if got := member.Job().Congestion(); got.Results != 40 || got.Marked != 40 || got.Cuts == 0 || got.MeanWindow >= 2 {
			t.Errorf("rank %d: %+v", rank, got)
		}
	}
	if err := m.finish(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestDirectCallsDiffer: the card gets nothing of a call before all members have announced the same.
func TestDirectCallsDiffer(t *testing.T) {
	ctx := testContext(t)
	card, path := serveDirect(t, daemon.Options{})
	j, err := open(t, path).Configure(ctx, driver.JobConfig{Workers: 2, Here: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	members := []*driver.Member{j.Member(0), joined(ctx, t, j, 1)}
	var calls sync.WaitGroup
	for rank, m := range members {
		calls.Go(func() {
			var differ *driver.CallsDifferError
			if err := m.AllReduce(ctx, make([]float32, 100+rank)); !errors.As(err, &differ) || !strings.Contains(err.Error(), "100 elements") || !strings.Contains(err.Error(), "101 elements") {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	calls.Wait()
	reader := card.open(driver.WithReadOnly())
	defer reader.Close()
	count(t, ctx, reader, "stored", 0)
}

// TestDirectMemberLost: the end of a member's session ends the job for the others.
func TestDirectMemberLost(t *testing.T) {
	ctx := testContext(t)
	_, path := serveDirect(t, daemon.Options{})
	j, err := open(t, path).Configure(ctx, driver.JobConfig{Workers: 2, Here: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	session := open(t, path)
	if _, err := session.Join(ctx, j.Ticket(), 1); err != nil {
		t.Fatal(err)
	}
	pending, err := j.Member(0).StartAllReduce(ctx, ramp(500, 1))
	if err != nil {
		t.Fatal(err)
	}
	session.Close()
	var lost *driver.MemberLostError
	if err := pending.Wait(ctx); !errors.As(err, &lost) || !slices.Equal(lost.Ranks, []int{1}) {
		t.Errorf("got %v", err)
	}
}

// TestDirectCardOutage takes the card's power while direct members sum. The next card knows no epoch. The
// members go on by what their libraries keep.
func TestDirectCardOutage(t *testing.T) {
	ctx := testContext(t)
	card, path := serveDirect(t, daemon.Options{})
	j, err := open(t, path).Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{0}, CarryOn: patience})
	if err != nil {
		t.Fatal(err)
	}
	members := []*driver.Member{j.Member(0), joined(ctx, t, j, 1), joined(ctx, t, j, 2)}
	sumWith(ctx, t, members, 12, func(n int) {
		if n%4 == 1 {
			card.restart()
		}
	})
	finishAll(ctx, t, j, members[1:])
	if j.Outages() == 0 {
		t.Error("the job noticed no outage")
	}
}

// sumWith makes calls of all members at once, and runs disturb after each call of some member.
func sumWith(ctx context.Context, t *testing.T, members []*driver.Member, times int, disturb func(n int)) {
	t.Helper()
	var calls sync.WaitGroup
	summed := make(chan int, times*len(members))
	for _, m := range members {
		calls.Go(func() {
			for n := range times {
				a := ramp(160, float32(m.Rank()+n))
				if err := m.AllReduce(ctx, a); err != nil {
					t.Errorf("rank %d, call %d: %v", m.Rank(), n, err)
					return
				}
				check(t, "sum", a, float32(3+3*n))
				summed <- n
			}
		})
	}
	go func() {
		calls.Wait()
		close(summed)
	}()
	seen := -1
	for n := range summed {
		if n > seen {
			seen = n
			disturb(n)
		}
	}
}

// TestDirectDaemonOutage takes the daemon away from direct members that sum, without a word to the card. The
// next one gets the card when the lease is over, and the members go on there.
func TestDirectDaemonOutage(t *testing.T) {
	ctx := testContext(t)
	card := newNetworked(t)
	owner, mute := card.openMutable(ctx)
	d := newDoor(t, serveCard(t, owner, daemon.Options{}))
	j, err := open(t, d.path).Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{0}, CarryOn: patience})
	if err != nil {
		t.Fatal(err)
	}
	members := []*driver.Member{j.Member(0), joined(ctx, t, j, 1), joined(ctx, t, j, 2)}
	sumWith(ctx, t, members, 8, func(n int) {
		if n == 2 {
			if _, err := owner.WriteRegister(ctx, wire.RegLease, 30_000_000); err != nil { // cycles: 0.3 s
				t.Error(err)
			}
			mute()
			d.move("")
			d.move(serveCard(t, card.own(ctx), daemon.Options{}))
		}
	})
	finishAll(ctx, t, j, members[1:])
	if j.Outages() == 0 {
		t.Error("the job noticed no outage")
	}
}

// own opens the card when its owner has lost it.
func (n *networked) own(ctx context.Context) *driver.Card {
	for {
		c, err := driver.Open(ctx, n.name, driver.WithTimeout(patience))
		var busy *driver.BusyError
		if !errors.As(err, &busy) {
			if err != nil {
				n.Fatal(err)
			}
			return c
		}
	}
}

// openMutable opens the card over links that fall silent when mute is called: what is sent is lost.
func (n *networked) openMutable(ctx context.Context) (card *driver.Card, mute func()) {
	n.Helper()
	scheme := fmt.Sprintf("mutable%d", mutables.Add(1))
	var muted atomic.Bool
	transport.RegisterPackets(scheme, func(ctx context.Context, _ transport.Request) (transport.PacketConn, error) {
		conn, err := transport.OpenLink(ctx, n.name, transport.Needs{})
		if err != nil {
			return nil, err
		}
		return &mutable{conn.(transport.PacketConn), n.name, &muted}, nil
	})
	card, err := driver.Open(ctx, scheme+":", driver.WithTimeout(patience))
	if err != nil {
		n.Fatal(err)
	}
	return card, func() { muted.Store(true) }
}

var mutables atomic.Int32

type mutable struct {
	transport.PacketConn
	name  string
	muted *atomic.Bool
}

func (m *mutable) WritePackets(buf []byte, ends []int) error {
	if m.muted.Load() {
		return nil
	}
	return m.PacketConn.WritePackets(buf, ends)
}

func (m *mutable) Network() string { return m.name }

// TestDirectStranger sends contributions of a rank from another address, and writes to the registers. The
// sums do not change, and the sender gets no answer but busy.
func TestDirectStranger(t *testing.T) {
	ctx := testContext(t)
	card, path := serveDirect(t, daemon.Options{})
	j, err := open(t, path).Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	members := []*driver.Member{j.Member(0), joined(ctx, t, j, 1), joined(ctx, t, j, 2)}
	if err := j.AwaitMembers(ctx); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("udp4", card.name[len("udp:"):])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := func(d []byte) {
		if _, err := conn.Write(binary.LittleEndian.AppendUint32(d, crc32.Checksum(d, crc32.MakeTable(crc32.Castagnoli)))); err != nil {
			t.Error(err)
		}
	}
	sumWith(ctx, t, members, 12, func(n int) {
		for rank := range byte(3) {
			for vid := range uint32(8) {
				d := make([]byte, 14+64)
				d[0], d[1], d[2], d[3] = 2|byte(wire.KindData)<<4, byte(wire.ECT0), byte(j.Number()), byte(wire.FP32)
				binary.LittleEndian.PutUint16(d[4:], j.Epoch())
				d[6] = rank
				binary.LittleEndian.PutUint32(d[8:], uint32(10*n)+vid)
				binary.LittleEndian.PutUint16(d[12:], 16)
				d[14] = 0x7f
				send(d)
			}
		}
		for _, addr := range []uint32{wire.RegOwner, wire.RegRelease, wire.RegReset, wire.RegJobAbort, wire.MemberAddr(wire.RegMemberAddress, 0)} {
			d := make([]byte, 22)
			d[0] = 2 | byte(wire.KindRegWrite)<<4
			binary.LittleEndian.PutUint32(d[8:], addr)
			binary.LittleEndian.PutUint64(d[14:], uint64(j.Number())<<48|uint64(j.Epoch())<<32)
			send(d)
		}
	})
	finishAll(ctx, t, j, members[1:])
	reader := card.open(driver.WithReadOnly())
	defer reader.Close()
	strangers := wire.CounterAddr(len(wire.Counters) + slices.IndexFunc(wire.NetworkCounters, func(i wire.CounterInfo) bool { return i.Name == "stranger" }))
	if n, err := reader.ReadRegister(ctx, strangers); err != nil || n == 0 {
		t.Errorf("the card counted %d strangers (%v)", n, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	reply := make([]byte, 1500)
	for range 12 * 5 { // nothing was lost on the loopback interface: a reply for each write, and nothing else
		n, err := conn.Read(reply)
		if err != nil || n != 26 || reply[0]>>4 != byte(wire.KindReply) || wire.Code(reply[7]) != wire.CodeBusy {
			t.Fatalf("the stranger got %x (%v)", reply[:n], err)
		}
	}
}

// TestDirectRefused: what a direct job cannot have, and who cannot join it.
func TestDirectRefused(t *testing.T) {
	ctx := testContext(t)
	_, path := serveDirect(t, daemon.Options{})
	session := open(t, path)
	if _, err := session.Configure(ctx, driver.JobConfig{Workers: 2, Here: []int{0}, Partial: true, Deadline: time.Second}); err == nil || !strings.Contains(err.Error(), "partial sums: the daemon must see the results") {
		t.Errorf("partial sums: %v", err)
	}
	j, err := session.Configure(ctx, driver.JobConfig{Workers: 2, Here: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	_, number, _ := strings.Cut(j.Ticket(), "?job=")
	nonce, err := strconv.ParseUint(number, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	c := attach(t, path, &protocol.Hello{Version: 1})
	if r := c.join(nonce, 1, nil).GetRefused(); r == nil || r.Field != "way" {
		t.Errorf("a client that cannot send datagrams: %v", r)
	}
}

// TestRelayedNetwork: with the option Relay all frames go through the daemon, also partial sums.
func TestRelayedNetwork(t *testing.T) {
	ctx := testContext(t)
	_, path := serveDirect(t, daemon.Options{Relay: true})
	sessions := openAll(t, path, 3)
	j, err := sessions[0].Configure(ctx, driver.JobConfig{Workers: 3, Here: []int{0}, Partial: true, Deadline: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m := newTeam(t, j, sessions, 1)
	if err := m.sum(ctx, 1000); err != nil {
		t.Fatal(err)
	}
	if err := m.finish(ctx); err != nil {
		t.Fatal(err)
	}
}
