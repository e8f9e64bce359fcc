package ethernet_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/model"
	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
	"tributary/verify/system/connections"
	"tributary/verify/system/frames"
)

// gateway is a card with shell roce, and what a test writes its registers by.
type gateway struct {
	testing.TB
	endpoint *model.Endpoint
	card     *ethernet.Card
}

// owner is the station that owns a gateway.
var owner = wire.Address{Station: 0x1234_0a0000fe, MAC: 0x02_0000_0002_00fe}

// newGateway returns a card with shell roce for int32, and makes the test its owner.
func newGateway(t testing.TB, cfg model.Config) *gateway {
	t.Helper()
	cfg.Shell, cfg.Format, cfg.Link = wire.ShellRoCE, wire.Int32, 64
	if cfg.Lanes == 0 {
		cfg.Lanes = 16
	}
	endpoint, err := model.NewEndpoint(cfg, frames.CardAddress)
	require.NoError(t, err)
	card, err := ethernet.New(endpoint, max(1, cfg.Ethernet))
	require.NoError(t, err)
	g := &gateway{t, endpoint, card}
	g.write(wire.RegOwner, token)
	g.write(wire.RegJobToken, token)
	g.write(wire.RegLease, wire.MaxLease)
	return g
}

const token = 0xfeed

// access performs a register access of the owner.
func (g *gateway) access(kind wire.Kind, addr uint32, value uint64) (wire.Code, uint64) {
	g.Helper()
	g.endpoint.Receive(frames.Access(kind, addr, value), owner, wire.ECT0)
	reply, _, _, ok := g.endpoint.Send(nil)
	require.True(g, ok)
	h := model.ParseHeader(reply)
	return h.Code, h.Mask
}

// write performs a write that must be done.
func (g *gateway) write(addr uint32, value uint64) {
	g.Helper()
	code, _ := g.access(wire.KindRegWrite, addr, value)
	require.Equal(g, wire.CodeDone, code, "%#x", addr)
}

// read reads a register that must be there.
func (g *gateway) read(addr uint32) uint64 {
	g.Helper()
	code, value := g.access(wire.KindRegRead, addr, 0)
	require.Equal(g, wire.CodeDone, code, "%#x", addr)
	return value
}

// count returns a counter.
func (g *gateway) count(name string) uint64 {
	g.Helper()
	for i, c := range wire.CountersOf(wire.ShellRoCE) {
		if c.Name == name {
			return g.read(wire.CounterAddr(i))
		}
	}
	require.Fail(g, "no counter", name)
	return 0
}

// dropped returns the counters that are not zero, without those of every job that does well.
func (g *gateway) dropped() map[string]uint64 {
	g.Helper()
	all := map[string]uint64{}
	for i, c := range wire.CountersOf(wire.ShellRoCE) {
		switch c.Name {
		case "frames", "stored", "chunks", "beats", "results", "passed", "relayed", "overflow":
			continue
		}
		if n := g.read(wire.CounterAddr(i)); n > 0 {
			all[c.Name] = n
		}
	}
	return all
}

// link is a rank's connection, as its owner registers it.
type link struct {
	ip       uint32
	mac      uint64 // and the Ethernet port
	qpn      uint32 // of the receiver
	firstPSN uint32
	receiver int // its port of the core
}

// stage stages links at the ports of the core from 0 on, and the job's parameters.
func (g *gateway) stage(links []link, mtu, window int) {
	g.Helper()
	for port, l := range links {
		g.write(wire.MemberAddr(wire.RegMemberAddress, port), uint64(wire.RoCEPort)<<32|uint64(l.ip))
		g.write(wire.MemberAddr(wire.RegMemberMAC, port), l.mac)
		g.write(wire.RegMemberConnection+8*uint32(port), uint64(l.qpn)|uint64(l.firstPSN)<<24|uint64(l.receiver)<<48)
	}
	g.write(wire.RegJobPorts, 1<<len(links)-1)
	g.write(wire.RegJobChunk, uint64(mtu/4))
	g.write(wire.RegJobWindow, uint64(window))
}

// commit sets job 0 up.
func (g *gateway) commit(epoch uint16) wire.Code {
	g.Helper()
	code, _ := g.access(wire.KindRegWrite, wire.RegJobCommit, uint64(epoch)<<32)
	return code
}

// hostAddress returns the address of a rank's host.
func hostAddress(rank int) rc.Address {
	return rc.Address{MAC: [6]byte{2, 0, 0, 0, 1, byte(rank)}, IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + rank)})}
}

func macOf(a rc.Address) uint64 {
	return binary.BigEndian.Uint64(append([]byte{0, 0}, a.MAC[:]...))
}

func ipOf(a rc.Address) uint32 {
	b := a.IP.As4()
	return binary.BigEndian.Uint32(b[:])
}

// allreduce is a job of RDMA hosts through a card with shell roce.
type allreduce struct {
	*gateway
	job     rc.Job
	room    *cable.Room
	barrier *rc.Barrier
	workers []*rc.Worker
	devices []int           // each worker's number in the room
	cables  []*cable.Faults // from each worker
}

// allreduceConfig is what newAllreduce makes.
type allreduceConfig struct {
	job      rc.Job
	oneArmed bool
	seed     uint64
	faults   cable.Faults
	firstPSN uint32 // of rank 0; that of rank r is 5r further
}

// newAllreduce makes a card, its workers and their cables, and sets the job up. The workers of a one-armed
// card are at a switch.
func newAllreduce(t testing.TB, c allreduceConfig) *allreduce {
	t.Helper()
	window := 1
	for window < c.job.Window {
		window *= 2
	}
	cfg := model.Config{Ports: c.job.Ranks, Window: window, Ethernet: c.job.Ranks}
	if c.oneArmed {
		cfg.Ethernet = 1
	}
	a := &allreduce{gateway: newGateway(t, cfg), job: c.job, room: cable.NewRoom(c.seed), barrier: rc.NewBarrier(c.job.Ranks)}
	at := a.room.Place(a.card)
	if c.oneArmed {
		at = a.placeSwitch(at)
	}
	var links []link
	for rank := range c.job.Ranks {
		w, err := rc.NewWorker(rc.New(hostAddress(rank)), rank, c.job, a.barrier, uint32(200+10*rank), (c.firstPSN+5*uint32(rank))%wire.PSNs)
		require.NoError(t, err)
		a.workers = append(a.workers, w)
		a.devices = append(a.devices, a.room.Place(w))
		a.cables = append(a.cables, a.room.Join(cable.Port{Device: a.devices[rank]}, cable.Port{Device: at, Port: rank}, c.faults))
		l := link{ipOf(hostAddress(rank)), macOf(hostAddress(rank)), 0, w.Offer().FirstPSN, (rank + 1) % c.job.Ranks}
		if !c.oneArmed {
			l.mac |= uint64(rank) << 48
		}
		links = append(links, l)
	}
	for rank, w := range a.workers {
		links[(rank+c.job.Ranks-1)%c.job.Ranks].qpn = w.Offer().TakeQPN
	}
	a.stage(links, c.job.MTU, window)
	require.Equal(t, wire.CodeDone, a.commit(1))
	for rank, w := range a.workers {
		offers := [2]rc.Offer{a.workers[(rank+c.job.Ranks-1)%c.job.Ranks].Offer(), a.workers[(rank+1)%c.job.Ranks].Offer()}
		if c.oneArmed {
			a.write(wire.RegNeighbourAddress+0x10*uint32(rank), uint64(links[rank].ip))
			a.write(wire.RegNeighbourMAC+0x10*uint32(rank), links[rank].mac)
			for i := range offers {
				offers[i].Address.MAC = [6]byte(frames.CardMAC)
			}
		}
		require.NoError(t, w.Connect(offers[0], offers[1]))
	}
	return a
}

// placeSwitch places a switch, joins the card to its last port, and returns it. It is a card that nobody
// talks to.
func (a *allreduce) placeSwitch(card int) int {
	a.Helper()
	ports := a.job.Ranks + 1
	endpoint, err := model.NewEndpoint(model.Config{Lanes: 1, Ports: 1, Window: 1, Shell: wire.ShellUDP, Link: 8, Ethernet: ports}, wire.Address{Station: 1, MAC: 2})
	require.NoError(a, err)
	device, err := ethernet.New(endpoint, ports)
	require.NoError(a, err)
	at := a.room.Place(device)
	a.room.Join(cable.Port{Device: card}, cable.Port{Device: at, Port: a.job.Ranks}, cable.Faults{})
	return at
}

// array returns that of a rank.
func (a *allreduce) array(rank int) []byte {
	b := make([]byte, a.job.Bytes)
	r := rand.New(rand.NewPCG(uint64(rank), 77))
	for i := 0; i < len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], r.Uint32())
	}
	return b
}

// start lets ranks start.
func (a *allreduce) start(ranks ...int) {
	a.Helper()
	for _, rank := range ranks {
		require.NoError(a, a.workers[rank].Start(a.array(rank)))
	}
}

// startAll lets all ranks start.
func (a *allreduce) startAll() {
	a.Helper()
	for rank := range a.workers {
		a.start(rank)
	}
}

// done reports whether every worker has an outcome.
func (a *allreduce) done() bool {
	for _, w := range a.workers {
		if _, done, _ := w.Outcome(); !done {
			return false
		}
	}
	return true
}

// sum returns the sum of all arrays.
func (a *allreduce) sum() []byte {
	sum := make([]byte, a.job.Bytes)
	for rank := range a.workers {
		for i, array := 0, a.array(rank); i < len(sum); i += 4 {
			binary.LittleEndian.PutUint32(sum[i:], binary.LittleEndian.Uint32(sum[i:])+binary.LittleEndian.Uint32(array[i:]))
		}
	}
	return sum
}

// finish runs the job, and checks every element at every rank.
func (a *allreduce) finish() {
	a.Helper()
	require.True(a, a.room.Run(10*time.Minute, a.done), "not done in ten minutes")
	want := a.sum()
	for rank, w := range a.workers {
		got, _, err := w.Outcome()
		require.NoError(a, err, "rank %d", rank)
		for i := range want {
			if want[i] != got[i] {
				require.Fail(a, "a wrong element", "rank %d, byte %d", rank, i)
			}
		}
	}
}

// stats returns those of the queue pairs of a rank that send, and that receive.
func (a *allreduce) stats(rank int) (send, take rc.Stats) {
	s, t := a.workers[rank].Pairs()
	return s.Stats(), t.Stats()
}

// smallJob has messages of 3 packets, 2 in flight. The last message has 2, and its tail is padded.
func smallJob(ranks int, write bool) rc.Job {
	return rc.Job{Ranks: ranks, Bytes: 40*3*256 - 300, MTU: 256, Packets: 3, Window: 8, Write: write, Timeout: 8, Retries: 6, Deadline: 5 * time.Minute}
}

// wrapping is a first PSN with which PSNs wrap within a small job.
const wrapping = wire.PSNs - 32

// everyJob runs a test for rings of 2 and 3, SEND and WRITE, in path and one-armed.
func everyJob(t *testing.T, test func(t *testing.T, c allreduceConfig)) {
	for _, ranks := range []int{2, 3} {
		for _, write := range []bool{false, true} {
			for _, oneArmed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d ranks, write %t, one-armed %t", ranks, write, oneArmed), func(t *testing.T) {
					test(t, allreduceConfig{job: smallJob(ranks, write), oneArmed: oneArmed, firstPSN: wrapping, seed: 1})
				})
			}
		}
	}
}

// TestAllreduceWithoutFaults: no packet is sent again, and every packet leaves once.
func TestAllreduceWithoutFaults(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		a := newAllreduce(t, c)
		a.startAll()
		a.finish()
		for rank := range a.workers {
			send, take := a.stats(rank)
			assert.Zero(t, send.Repeats+send.NAKs+take.Duplicates+take.NAKsSent, "rank %d", rank)
		}
		const packets = 40*3 - 1
		assert.Empty(t, a.dropped())
		assert.EqualValues(t, packets*c.job.Ranks, a.count("stored"))
		assert.EqualValues(t, packets*c.job.Ranks, a.count("results"))
		assert.EqualValues(t, packets, a.count("chunks"))
	})
}

// Places of a packet that is lost.
const (
	beforeTheCard = iota
	behindTheCard
)

// loseOnce loses the first frame on a rank's cable that lose chooses, before the card or behind it.
func (a *allreduce) loseOnce(rank, where int, lose func(p *rc.Packet) bool) (lost *bool) {
	lost = new(bool)
	a.cables[rank].Drop = func(from cable.Port, frame []byte) bool {
		p, err := rc.Parse(frame)
		before := from.Device == a.devices[rank]
		if *lost || err != nil || before != (where == beforeTheCard) || !before && p.To != hostAddress(rank) || !lose(&p) {
			return false // or a frame that a switch sends to all
		}
		*lost = true
		return true
	}
	return lost
}

// vidIs chooses the data packet of a VID of the connection from a rank.
func (a *allreduce) vidIs(rank int, vid uint32) func(p *rc.Packet) bool {
	psn := wire.AddPSN(a.workers[rank].Offer().FirstPSN, int(vid))
	return func(p *rc.Packet) bool { return connections.IsData(p) && p.BTH.PSN == psn }
}

// lastPacket is the VID of the last packet of a small job.
const lastPacket = 40*3 - 2

// TestOneLostPacket: the first, a middle and the last packet of rank 0 is lost, before the card or behind it.
// Only the connection that lacks it sees a NAK or a repeat.
func TestOneLostPacket(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		for _, vid := range []uint32{0, 37, lastPacket} {
			a := newAllreduce(t, c)
			lost := a.loseOnce(0, beforeTheCard, a.vidIs(0, vid))
			a.startAll()
			a.finish()
			assert.True(t, *lost)
			if vid != lastPacket { // which no packet follows: the timers of all end
				a.othersSawNothing(0)
			}

			a = newAllreduce(t, c)
			lost = a.loseOnce(1, behindTheCard, a.vidIs(0, vid))
			a.startAll()
			a.finish()
			assert.True(t, *lost)
			a.othersSawNothing(0)
		}
	})
}

// othersSawNothing checks that no connection but that of a rank saw a NAK, a repeat or a duplicate.
func (a *allreduce) othersSawNothing(rank int) {
	a.Helper()
	for other := range a.workers {
		send, _ := a.stats(other)
		_, take := a.stats((other + 1) % a.job.Ranks)
		if other == rank {
			assert.Positive(a, send.Repeats)
			continue
		}
		assert.Zero(a, send.Repeats+send.NAKs+send.Timeouts+take.OutOfOrder+take.NAKsSent+take.Duplicates, "the connection of rank %d", other)
	}
}

// TestALostPacketIsRepeatedByANAK: what follows a packet that was lost before the card goes ahead of it, so
// that its sender need not wait for its timer.
func TestALostPacketIsRepeatedByANAK(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		a := newAllreduce(t, c)
		a.loseOnce(0, beforeTheCard, a.vidIs(0, 37))
		a.startAll()
		a.finish()
		send, _ := a.stats(0)
		assert.Equal(t, 1, send.NAKs)
		assert.Zero(t, send.Timeouts)
		assert.EqualValues(t, 1, a.count("released_early"))
	})
}

// TestALostACK: the last ACK of a connection is lost. Its sender repeats, and the card answers with the sum.
func TestALostACK(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		a := newAllreduce(t, c)
		last := wire.AddPSN(a.workers[0].Offer().FirstPSN, lastPacket)
		lost := a.loseOnce(0, behindTheCard, func(p *rc.Packet) bool { return !connections.IsData(p) && p.BTH.PSN == last })
		a.startAll()
		a.finish()
		assert.True(t, *lost)
		a.othersSawNothing(0)
		assert.Positive(t, a.count("replays"))
	})
}

// TestOldestAlone: senders that repeat only their oldest packet get every sum too.
func TestOldestAlone(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		c.job.OldestAlone, c.faults = true, cable.Faults{Loss: 0.02}
		a := newAllreduce(t, c)
		a.startAll()
		a.finish()
	})
}

// TestALateWorker: a rank that starts 2.5 s late. The others' timers are longer, and nothing is sent again.
func TestALateWorker(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		c.job.Timeout = 18 // 1.07 s: 7 of them are more than twice the lateness
		a := newAllreduce(t, c)
		for rank := range a.workers[1:] {
			a.start(rank + 1)
		}
		a.room.Run(2500*time.Millisecond, a.done)
		a.start(0)
		a.finish()
		send, _ := a.stats(1)
		assert.Equal(t, 2, send.Timeouts)
	})
}

// networks are networks with faults of each kind, and of all kinds.
var networks = map[string]cable.Faults{
	"loss":      {Loss: 0.02},
	"twice":     {Twice: 0.2},
	"overtaken": {Jitter: 20 * time.Microsecond},
	"damage":    {Damage: 0.05},
	"all":       {Loss: 0.02, Twice: 0.05, Jitter: 5 * time.Microsecond, Damage: 0.02},
}

// TestFaults: thousands of random faults, and every element is right. The PSNs wrap.
func TestFaults(t *testing.T) {
	everyJob(t, func(t *testing.T, c allreduceConfig) {
		for name, faults := range networks {
			c.faults = faults
			t.Run(name, func(t *testing.T) {
				faulty := 0
				for seed := range uint64(2) {
					c.seed = seed
					a := newAllreduce(t, c)
					a.startAll()
					a.finish()
					n := a.room.Counters()
					faulty += n.Lost + n.Twice + n.Damaged
				}
				assert.True(t, name == "overtaken" || faulty > 20, faulty)
			})
		}
	})
}

// TestNetReducesFigures: payloads of 1 KiB, 170 packets a message, 2 messages in flight.
func TestNetReducesFigures(t *testing.T) {
	for _, ranks := range []int{2, 3} {
		for _, loss := range []float64{0, 0.005} {
			job := rc.Job{Ranks: ranks, Bytes: 5*170*1024 + 4, MTU: 1024, Packets: 170, Window: 512, Timeout: 12, Retries: 6}
			job.Bytes -= 170 * 1024 * int(2*loss*100) // a smaller one with loss
			a := newAllreduce(t, allreduceConfig{job: job, seed: 3, faults: cable.Faults{Loss: loss}, firstPSN: wire.PSNs - 300})
			a.startAll()
			a.finish()
		}
	}
}
