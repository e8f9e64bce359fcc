package driver_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
)

// behindProxy puts a small card on the loopback network and a proxy before it.
func behindProxy(t *testing.T, rates faults.Rates) (proxy *faults.Proxy, direct string) {
	t.Helper()
	direct = serveUDP(t, smallUDP)
	proxy, err := faults.NewProxy(strings.TrimPrefix(direct, "udp:"), rates, new(faults.Counts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	return proxy, direct
}

// sums reduces random arrays, by a call of all members or by calls of each, and compares every bit.
func sums(t *testing.T, job *driver.Job, seed uint64, n int) {
	t.Helper()
	workers, in := job.Config().Workers, arrays(seed, job.Config().Workers, n)
	want := treeSum(in, job.Config().Ports, small.Ports)
	if seed%2 == 0 {
		dst := make([]float32, n)
		if err := job.Reduce(testContext(t), dst, in); err != nil {
			t.Error(err)
			return
		}
		sameBits(t, "sum", dst, want)
		return
	}
	all := clone(in)
	var calls sync.WaitGroup
	for rank := range workers {
		calls.Go(func() {
			if err := job.Member(rank).AllReduce(testContext(t), all[rank]); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	calls.Wait()
	for rank := range all {
		sameBits(t, fmt.Sprintf("sum at rank %d", rank), all[rank], want)
	}
}

// TestFaultyNetwork: on a network that loses, repeats, reorders, delays and damages packets, every bit
// of every sum is right, job after job.
func TestFaultyNetwork(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			proxy, _ := behindProxy(t, faults.Rates{Drop: 0.03, Repeat: 0.03, Reorder: 0.03, Delay: 0.03, Flip: 0.02, Burst: 0.01, Scramble: 0.01, Cut: 0.01, Insert: 0.01, Seed: seed})
			proxy.On.Store(true)
			card := openForever(t, proxy.Name(), driver.WithTimeout(patience))
			rng := rand.New(rand.NewPCG(seed, 1))
			for i := range uint64(6) {
				ports := rng.Perm(small.Ports)[:1+rng.IntN(small.Ports)]
				slices.Sort(ports)
				job := configure(t, card, driver.JobConfig{Ports: ports, Chunk: 4 << rng.IntN(3), Window: 1 << rng.IntN(3)})
				sums(t, job, 2*seed+i, 1+rng.IntN(1500))
				if rng.IntN(3) == 0 {
					continue // the next job replaces it
				}
				if err := job.Close(testContext(t)); err != nil {
					t.Error(err)
				}
			}
			for kind := range faults.Kinds {
				if k := faults.Kind(kind); k != faults.Stall && k != faults.Garbage && proxy.Happened.Of(k) == 0 {
					t.Errorf("no packet met the fault %s", faults.Kinds[k])
				}
			}
			if s := card.LinkStats(); s.DatagramCRC == 0 {
				t.Errorf("no damaged datagram was caught: %+v", s)
			}
		})
	}
}

// TestNoDuplicatesWithoutFaults: each result comes once for each rank, which is no duplicate, whoever
// calls.
func TestNoDuplicatesWithoutFaults(t *testing.T) {
	card := openForever(t, serveUDP(t, smallUDP))
	job := configure(t, card, driver.JobConfig{FirstVID: 0xfffffff0})
	for seed := range uint64(2) {
		sums(t, job, seed, 1600)
	}
	for rank := range small.Ports {
		if s := job.Member(rank).Stats(); s.Asked == 0 && s.Duplicates != 0 || s.Results != 200 {
			t.Errorf("rank %d: %+v", rank, s)
		}
	}
}

// keepForever gives a card the longest lease, for machines that may stop the owner for seconds.
func keepForever(t testing.TB, card *driver.Card) {
	t.Helper()
	if _, err := card.WriteRegister(testContext(t), wire.RegLease, wire.MaxLease); err != nil {
		t.Fatal(err)
	}
}

// openForever is openName, for an owner that keeps the card.
func openForever(t testing.TB, name string, opts ...driver.Option) *driver.Card {
	t.Helper()
	card := openName(t, name, opts...)
	keepForever(t, card)
	return card
}

// lendsLease makes a card's lease so short that it ends at once when nothing renews it.
func lendsLease(t *testing.T, card *driver.Card) {
	t.Helper()
	if _, err := card.WriteRegister(testContext(t), wire.RegLease, uint64(100*time.Millisecond/cycle)); err != nil {
		t.Fatal(err)
	}
}

// awaitNoOwner waits until the card has no owner.
func awaitNoOwner(t *testing.T, reader *driver.Card) {
	t.Helper()
	for {
		owner, err := reader.ReadRegister(testContext(t), wire.RegOwner)
		if err != nil {
			t.Fatal(err)
		}
		if owner == 0 {
			return
		}
	}
}

// TestOwnerWatchesItsJobs: late copies of the owner's writes may take the card again after a loss of power,
// and set up another job in the place of its own. Its token is in OWNER then, and it notices all the same.
func TestOwnerWatchesItsJobs(t *testing.T) {
	for what, change := range map[string]struct {
		epoch uint16 // beyond the job's
		mac   uint64 // beyond the first member's
	}{"another epoch": {epoch: 1}, "another member": {mac: 1}, "the same job": {}} {
		synctest.Test(t, func(t *testing.T) {
			link := serveInMemory(t, smallUDP).(*memory)
			card := open(t, link)
			job := configure(t, card, driver.JobConfig{})
			token, err := card.ReadRegister(testContext(t), wire.RegOwner)
			if err != nil {
				t.Fatal(err)
			}
			writes := map[uint32]uint64{}
			for _, r := range []uint32{wire.RegJobPorts, wire.RegJobChunk, wire.RegJobWindow, wire.RegJobDeadline} {
				if writes[r], err = card.ReadRegister(testContext(t), r); err != nil {
					t.Fatal(err)
				}
			}
			link.losePower(t, smallUDP)
			link.replay(wire.RegOwner, token)
			link.replay(wire.RegJobToken, token)
			for r, value := range writes {
				link.replay(r, value)
			}
			for port := range job.Config().Workers {
				mac := hostAddress.MAC
				if port == 0 {
					mac += change.mac
				}
				link.replay(wire.MemberAddr(wire.RegMemberAddress, port), hostAddress.Station)
				link.replay(wire.MemberAddr(wire.RegMemberMAC, port), mac)
			}
			link.replay(wire.RegJobCommit, uint64(job.Epoch()+change.epoch)<<32)
			time.Sleep(2 * wire.LeaseSeconds * time.Second)
			var lost *driver.LeaseLostError
			if got := errors.As(card.Err(), &lost) && lost.Changed; got != (change.epoch != 0 || change.mac != 0) {
				t.Errorf("%s: %v", what, card.Err())
			}
		})
	}
}

// TestLeaseIsRenewed: an owner keeps the card while it calls nothing, for many times its lease. It
// accesses the card about four times in a lease, also when the lease becomes longer.
func TestLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := serveInMemory(t, smallUDP).(*memory)
		card := open(t, link)
		job := configure(t, card, driver.JobConfig{})
		for _, lease := range []time.Duration{100 * time.Millisecond, 2 * time.Second} {
			if _, err := card.WriteRegister(testContext(t), wire.RegLease, uint64(lease/cycle)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(lease)
			before := link.written()
			time.Sleep(20 * lease)
			if n := (link.written() - before) / (3 + 1 + 2*job.Config().Workers); n < 75 || n > 90 {
				t.Errorf("%d renewals in 20 leases of %s", n, lease)
			}
		}
		if err := card.Err(); err != nil {
			t.Fatal(err)
		}
		sums(t, job, 2, 100)
	})
}

// cutOff is a way to a card that passes nothing while cut is set.
type cutOff struct {
	transport.PacketConn
	cut *atomic.Bool
}

func (c cutOff) WritePackets(buf []byte, ends []int) error {
	if c.cut.Load() {
		return nil
	}
	return c.PacketConn.WritePackets(buf, ends)
}

func (c cutOff) ReadPackets(batch []transport.Packet) (int, error) {
	for {
		n, err := c.PacketConn.ReadPackets(batch)
		if err != nil || !c.cut.Load() {
			return n, err
		}
	}
}

// TestLeaseLost: an owner that the network has cut off for its lease learns that by a typed error,
// whether another host has the card now or nobody. Its jobs end.
func TestLeaseLost(t *testing.T) {
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprint("taken ", taken), bubble(func(t *testing.T) {
			var cut atomic.Bool
			direct := serveInMemory(t, smallUDP).(*memory)
			card := open(t, cutOff{direct, &cut})
			job := configure(t, card, driver.JobConfig{})
			pending, err := job.Member(0).StartAllReduce(testContext(t), make([]float32, 100)) // the others never call
			if err != nil {
				t.Fatal(err)
			}
			lendsLease(t, card)
			cut.Store(true)
			time.Sleep(time.Second)
			if taken {
				next := open(t, direct.beside())
				sums(t, configure(t, next, driver.JobConfig{}), 4, 100)
				defer func() { sums(t, configure(t, next, driver.JobConfig{}), 6, 100) }()
			}
			cut.Store(false)
			err = pending.Wait(testContext(t))
			wantError[*driver.DiedError](t, err, "is lost: this host was silent for the card's lease", "open it again")
			if lost := wantError[*driver.LeaseLostError](t, err); lost.Owned != taken {
				t.Errorf("%+v", lost)
			}
			<-card.Done()
			_, err = card.Configure(testContext(t), driver.JobConfig{})
			wantError[*driver.LeaseLostError](t, err)
		}))
	}
}

// TestCarryOnAfterTheLease: a job that carries on continues when its owner has lost the card and taken
// it again, with every bit right.
func TestCarryOnAfterTheLease(t *testing.T) {
	proxy, direct := behindProxy(t, faults.Rates{})
	card := openName(t, proxy.Name())
	job := configure(t, card, driver.JobConfig{CarryOn: patience})
	in := arrays(5, 4, 4000)
	members := clone(in)
	var calls sync.WaitGroup
	calls.Go(func() {
		if err := job.Member(0).AllReduce(testContext(t), members[0]); err != nil {
			t.Error(err)
		}
	})
	lendsLease(t, card)
	proxy.Held.Store(true)
	awaitNoOwner(t, openName(t, direct, driver.WithReadOnly()))
	proxy.Held.Store(false)
	for rank := 1; rank < 4; rank++ {
		calls.Go(func() {
			if err := job.Member(rank).AllReduce(testContext(t), members[rank]); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	want := treeSum(in, firstPorts(4), 4)
	for rank := range members {
		sameBits(t, fmt.Sprintf("rank %d", rank), members[rank], want)
	}
	if job.Outages() == 0 {
		t.Error("the job saw no outage")
	}
}

// sluggish is a way to a card that pauses before what is sent.
type sluggish struct {
	transport.PacketConn
	pause func()
}

func (s sluggish) WritePackets(buf []byte, ends []int) error {
	s.pause()
	return s.PacketConn.WritePackets(buf, ends)
}

// sluggishCards gives the scheme of each sluggish card a name of its own.
var sluggishCards atomic.Int32

// TestCarryOnSlowly: on a slow network, an owner needs one attempt to set its jobs up on a card that lost
// its power. It once renewed its new lease before they were set up, took their absence for another loss,
// and left the card to a lease that nobody renewed.
func TestCarryOnSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pause := func() { time.Sleep(20 * time.Millisecond) }
		before, after := serveInMemory(t, smallUDP), sluggish{serveInMemory(t, smallUDP), pause}
		scheme, links := fmt.Sprint("sluggish", sluggishCards.Add(1)), 0
		transport.RegisterPackets(scheme, func(context.Context, transport.Request) (transport.PacketConn, error) {
			if links++; links == 1 {
				return before, nil
			}
			return after, nil
		})
		card := openName(t, scheme+":")
		job := configure(t, card, driver.JobConfig{CarryOn: patience})
		before.Close()
		sums(t, job, 2, 100)
		if outages := job.Outages(); links != 2 || outages != 1 {
			t.Errorf("%d links to the card and %d outages", links, outages)
		}
	})
}

// linkStats returns a card's LinkStats with all that came before the call. Counts of a read appear at
// its end, perhaps after a call that one of its packets ended: the second access ends a later read.
func linkStats(t *testing.T, card *driver.Card) driver.LinkStats {
	t.Helper()
	for range 2 {
		if _, err := card.ReadRegister(testContext(t), wire.RegMagic); err != nil {
			t.Fatal(err)
		}
	}
	return card.LinkStats()
}

// TestMarks: a mark of congestion on the way to the card arrives in the results, merged, and one on the
// way back in their IP headers.
func TestMarks(t *testing.T) {
	proxy, _ := behindProxy(t, faults.Rates{})
	card := openForever(t, proxy.Name())
	job := configure(t, card, driver.JobConfig{})
	sums(t, job, 2, 160)
	before := linkStats(t, card)
	if before.CEToCard+before.CEFromCard != 0 {
		t.Errorf("without marks: %+v", before)
	}
	proxy.Mark(wire.CE, wire.ECT0)
	sums(t, job, 4, 160)
	there := linkStats(t, card)
	if there.CEToCard < 10 || there.CEFromCard != 0 {
		t.Errorf("marked on the way to the card: %+v", there)
	}
	proxy.Mark(wire.ECT0, wire.CE)
	sums(t, job, 6, 160)
	back := linkStats(t, card)
	if back.CEFromCard < 10 || back.CEToCard != there.CEToCard {
		t.Errorf("marked on the way back: %+v after %+v", back, there)
	}
}

// TestReadBesideTheOwner: a host that only reads needs neither the owner nor its process.
func TestReadBesideTheOwner(t *testing.T) {
	name := serveUDP(t, smallUDP)
	owner := openForever(t, name)
	job := configure(t, owner, driver.JobConfig{})
	reader := openName(t, name, driver.WithReadOnly())
	states, err := reader.Jobs(testContext(t))
	if err != nil || !states[0].SetUp || states[0].Epoch != job.Epoch() {
		t.Errorf("%+v, %v", states, err)
	}
	if counters, err := reader.Counters(testContext(t)); err != nil || len(counters) != len(wire.Counters)+len(wire.NetworkCounters) {
		t.Errorf("%d counters, %v", len(counters), err)
	}
	_, err = driver.Open(testContext(t), name)
	wantError[*driver.BusyError](t, err, "another host owns it")
	reader.Close()
	sums(t, job, 2, 100)
	owner.Close()
	openName(t, name) // Close has released the card
}

// TestCardWithAnUpPort: the driver knows it, reads its counters, and uses it as any other card.
func TestCardWithAnUpPort(t *testing.T) {
	cfg := smallUDP
	cfg.Parent = true
	card := openForever(t, serveUDP(t, cfg))
	if !card.Info().Parent {
		t.Error("the card has no up port")
	}
	sums(t, configure(t, card, driver.JobConfig{Workers: 3}), 3, 100)
	counters, err := card.Counters(testContext(t))
	if n := len(wire.Counters) + len(wire.NetworkCounters); err != nil || len(counters) != n+len(wire.UpCounters) || counters[n].Name != "up_sent" {
		t.Errorf("%d counters, %v", len(counters), err)
	}
	for addr, name := range map[uint32]string{
		0x1158: "JOB_UP of job 1", 0x44008: "JOB_RANKS of job 0, port 1", 0xc28: "MEMBER_RANKS of port 5", 0x600: "counter up_sent",
	} {
		_, err := card.WriteRegister(testContext(t), addr, 0)
		wantError[*driver.RefusedError](t, err, name)
	}
	for _, scheme := range []string{"cpu", "model"} {
		if _, err := driver.NewNetworkCard(scheme+":parent=true", wire.Address{Station: 1}, 1); err != nil {
			t.Error(err)
		}
	}
}

// TestNoCardOnTheNetwork: a name without a card behind it fails at once, with a remedy.
func TestNoCardOnTheNetwork(t *testing.T) {
	// A port that takes packets from one address of the loopback network, where nobody is. It is closed to
	// others, and nobody else can open it meanwhile.
	shut, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2), Port: 9})
	if err != nil {
		t.Fatal(err)
	}
	defer shut.Close()
	closed := shut.LocalAddr().String()
	for name, words := range map[string][]string{
		"udp:":                      {"lacks the card's name or IPv4 address"},
		"udp:127.0.0.1:port":        {`"port" is not a UDP port`, "udp:HOST:PORT"},
		"udp:127.0.0.1:0":           {"is not a UDP port"},
		"udp:127.0.0.1:65536":       {"is not a UDP port"},
		"udp:::1":                   {"is not a UDP port", "IPv4"},
		"udp:card.invalid":          {"card.invalid", "check the card's name"},
		"udp:" + closed:             {"connection refused", "nothing listens on UDP port", "check that the card runs"},
		"udp:255.255.255.255:21570": {"255.255.255.255"},
	} {
		t.Run(name, func(t *testing.T) {
			card, err := driver.Open(testContext(t), name)
			if err == nil {
				card.Close()
			}
			wantError[*driver.NoCardError](t, err, words...)
		})
	}
}

// TestSilentAddress: a host that is no card takes packets and says nothing.
func TestSilentAddress(t *testing.T) {
	silent, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, err = driver.Open(testContext(t), "udp:"+silent.LocalAddr().String(), driver.WithTimeout(100*time.Millisecond))
	wantError[*driver.NoCardError](t, err, "nothing replies there", "check the card's address")
}

// TestCardThatEnds: when the card's program ends, its port is closed, and calls fail with that.
func TestCardThatEnds(t *testing.T) {
	name, stop := startUDP(t, smallUDP)
	card := openForever(t, name)
	job := configure(t, card, driver.JobConfig{})
	sums(t, job, 2, 100)
	stop()
	err := job.Reduce(testContext(t), make([]float32, 100), arrays(1, 4, 100))
	wantError[*driver.DiedError](t, err, "connection refused")
}

// strangerVariable makes this test program the stranger of TestStranger: it holds the card's name.
const strangerVariable = "TRIBUTARY_TEST_STRANGER"

// TestStranger: another process writes every register that sets something up, and sends data, asks and
// finishes for the ranks of a job. Nothing changes but the counts of strangers.
func TestStranger(t *testing.T) {
	if name := os.Getenv(strangerVariable); name != "" {
		beStranger(t, name)
		return
	}
	name := serveUDP(t, smallUDP)
	card := openForever(t, name)
	job := configure(t, card, driver.JobConfig{})
	before := registersOf(t, card)
	stranger := exec.Command(os.Args[0], "-test.run=^TestStranger$", "-test.v")
	stranger.Env = append(os.Environ(), strangerVariable+"="+name, fmt.Sprintf("EPOCH=%d", job.Epoch()))
	if out, err := stranger.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	after := registersOf(t, card)
	for addr, value := range before {
		if after[addr] != value {
			t.Errorf("register %#x was %#x, and is %#x", addr, value, after[addr])
		}
	}
	counters, err := card.Counters(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counters {
		switch {
		case c.Name == "stranger" && c.Value != 12:
			t.Errorf("%d strangers were counted, want 12", c.Value)
		case c.Name == "stored" && c.Value != 0:
			t.Errorf("%d contributions were stored", c.Value)
		}
	}
	sums(t, job, 2, 500)
}

// registersOf reads the registers that another host could want to change.
func registersOf(t *testing.T, card *driver.Card) map[uint32]uint64 {
	t.Helper()
	values := map[uint32]uint64{}
	for _, addr := range strangersRegisters() {
		value, err := card.ReadRegister(testContext(t), addr)
		if err != nil {
			t.Fatal(err)
		}
		values[addr] = value
	}
	return values
}

func strangersRegisters() []uint32 {
	all := []uint32{wire.RegOwner, wire.RegRelease, wire.RegReset, wire.RegLease, wire.RegCardAddress, wire.RegCardMAC}
	for _, r := range wire.Registers {
		if r.Addr >= wire.RegJobToken && r.Addr <= wire.RegJobAbort {
			all = append(all, r.Addr)
		}
	}
	for port := range small.Ports {
		all = append(all, wire.MemberAddr(wire.RegMemberAddress, port), wire.MemberAddr(wire.RegMemberMAC, port))
	}
	return append(all, wire.RegJobState, wire.RegJobMembers, wire.RegJobFinished, wire.RegJobSlots)
}

// beStranger is the other process of TestStranger.
func beStranger(t *testing.T, name string) {
	link, err := transport.OpenLink(testContext(t), name, transport.Needs{})
	if err != nil {
		t.Fatal(err)
	}
	conn := link.(transport.PacketConn)
	defer conn.Close()
	var epoch uint16
	if _, err := fmt.Sscan(os.Getenv("EPOCH"), &epoch); err != nil {
		t.Fatal(err)
	}
	for i, addr := range strangersRegisters() {
		reply := exchange(t, conn, frame.Header{Kind: wire.KindRegWrite, VID: addr, Mask: 3, Length: uint16(i)})
		if reply.Code != wire.CodeBusy && reply.Code != wire.CodeReadOnly {
			t.Errorf("a write to register %#x has the reply %s", addr, reply.Code)
		}
	}
	for rank := range uint8(4) {
		for _, h := range []frame.Header{
			{Kind: wire.KindData, Format: wire.FP32, Length: 16, Epoch: epoch, Rank: rank},
			{Kind: wire.KindAsk, Epoch: epoch, Rank: rank},
			{Kind: wire.KindFinish, Epoch: epoch, Rank: rank},
		} {
			b := frame.AppendPaddedDatagram(nil, &h, nil)
			if h.Kind != wire.KindData {
				b = frame.AppendDatagram(nil, &h, nil)
			}
			if err := conn.WritePackets(b, []int{len(b)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	exchange(t, conn, frame.Header{Kind: wire.KindRegRead, VID: wire.RegMagic, Length: 9999}) // all have come
}

// exchange sends a register access and returns its reply.
func exchange(t *testing.T, conn transport.PacketConn, h frame.Header) frame.Header {
	t.Helper()
	b := frame.AppendDatagram(nil, &h, nil)
	if err := conn.WritePackets(b, []int{len(b)}); err != nil {
		t.Fatal(err)
	}
	batch := []transport.Packet{{Bytes: make([]byte, frame.MaxDatagramBytes)}}
	check := frame.NewDatagramChecker(frame.FromCard)
	for f := (frame.Frame{}); ; {
		if _, err := conn.ReadPackets(batch); err != nil {
			t.Fatal(err)
		}
		if check.Check(batch[0].Bytes, &f) && f.Length == h.Length {
			return f.Header
		}
	}
}

// narrow is a link whose host keeps few unread packets, and whose way carries small ones.
type narrow struct {
	transport.PacketConn
	limits transport.PacketLimits
}

func (n narrow) Limits() transport.PacketLimits { return n.limits }

// TestLimitsOfTheNetwork: the driver warns of a small buffer once a job needs more, and chooses chunks
// that the way carries.
func TestLimitsOfTheNetwork(t *testing.T) {
	var warnings []string
	link := narrow{serveInMemory(t, smallUDP), transport.PacketLimits{Unread: 10_000, Packet: 70}}
	card := open(t, link, driver.WithWarnings(func(text string) { warnings = append(warnings, text) }))
	job := configure(t, card, driver.JobConfig{Workers: 1, Window: 1})
	if chunk := job.Config().Chunk; chunk != 8 { // a result of 9 elements has 70 bytes, and chunks are of 4
		t.Errorf("chunks of %d elements", chunk)
	}
	if len(warnings) != 0 {
		t.Errorf("a job of one packet in flight: %q", warnings)
	}
	configure(t, card, driver.JobConfig{})
	if len(warnings) != 1 || !strings.Contains(warnings[0], "keeps 10000 bytes") || !strings.Contains(warnings[0], "net.core.rmem_max") {
		t.Errorf("%q", warnings)
	}
	_, err := card.Configure(context.Background(), driver.JobConfig{Chunk: 12})
	wantError[*driver.InputError](t, err, "12 elements", "packets of 70 bytes", "up to 8")
}
