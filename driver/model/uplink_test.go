// The datagrams of an up port, and its registers with shell udp (TREES.md, sections 3 and 5).

package model

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// upwardPort is the upward UDP port of the job in the tests.
const upwardPort = 0x7777

// risen is a tree job of the members b, for the worker 0, and c, for 1 and 2. The card has rank 3 at
// host d, its parent.
var risen = setup{
	ports: 0b11, chunk: 1, window: 1, first: 10,
	upward: upward{parent: wire.Upward(3, upwardPort), repeat: 5000, tree: 0xf, address: hostD, ranks: [maxPorts]uint64{0: 1, 1: 6}},
}

// newHighSite returns the card of newSite with an up port.
func newHighSite(t *testing.T, jobs int) *site {
	t.Helper()
	e, err := NewEndpoint(Config{
		Lanes: 1, Ports: 4, Chunk: 4, Window: 4, Jobs: jobs, Shell: wire.ShellUDP, Link: 64, Ethernet: 2, Parent: true,
	}, wire.Address{Station: 0x5442_0a0000fe, MAC: 0x02_00000000fe})
	require.NoError(t, err)
	s := &site{t, e}
	s.own()
	s.members(hostB, hostC)
	return s
}

// rise stages what a job has of a tree, and sets the job up.
func (s *site) rise(number uint8, epoch uint16, job setup) wire.Code {
	s.Helper()
	u := job.upward
	for addr, value := range map[uint32]uint64{
		wire.RegJobParent: u.parent, wire.RegJobRepeat: u.repeat, wire.RegTreeRanks: u.tree, wire.RegParentAddress: u.address.Station,
		wire.RegParentMAC: u.address.MAC, wire.RanksAddr(0): u.ranks[0], wire.RanksAddr(1): u.ranks[1],
	} {
		s.writes(hostA, addr, value, wire.CodeDone)
	}
	return s.setUp(number, epoch, job)
}

// newTreeSite returns a card that has set risen up as job 0, epoch 1.
func newTreeSite(t *testing.T) *site {
	t.Helper()
	s := newHighSite(t, 2)
	require.Equal(t, wire.CodeDone, s.rise(0, 1, risen))
	return s
}

// up passes a packet to an upward UDP port.
func (s *site) up(port uint16, from wire.Address, mark wire.ECN, p Packet) {
	s.e.Advance(1024)
	s.e.ReceiveUp(port, AppendDatagram(nil, &p), from, mark)
}

// rises checks the datagrams to parents: "30583 to d 2: data v10 of rank 3".
func (s *site) rises(want ...string) {
	s.Helper()
	got := []string{}
	for {
		datagram, port, to, mark, ok := s.e.SendUp(nil)
		if !ok {
			break
		}
		h := ParseHeader(datagram[:14])
		got = append(got, fmt.Sprintf("%d to %s %d: %v v%d of rank %d", port, names[to], mark, h.Kind, h.VID, h.Rank))
	}
	if want == nil {
		want = []string{}
	}
	assert.Equal(s, want, got)
}

// root returns the final sum of a chunk of one element of risen.
func root(vid uint32, x float32) Packet {
	p := packetOf(wire.KindResult, 0, vid)
	p.Format, p.Length, p.Mask, p.Receivers, p.Payload = wire.FP32, 1, 0xf, 0x9, words(f(x))
	return p
}

// upCounts checks a counter of the up port.
func (s *site) upCounts(name string, want int) {
	s.Helper()
	assert.EqualValues(s, want, s.read(wire.UpCounterAddr(indexIn(wire.UpCounters, name))), name)
}

func TestTheWayUpAndDown(t *testing.T) {
	s := newTreeSite(t)
	assert.Equal(t, []uint16{upwardPort}, s.e.UpwardPorts())
	s.in(hostB, wire.ECT1, element(0, 10, 1))
	s.in(hostC, wire.ECT0, element(1, 10, 2))
	s.sends()
	datagram, port, to, mark, ok := s.e.SendUp([]byte{9})
	require.True(t, ok)
	assert.EqualValues(t, upwardPort, port)
	assert.Equal(t, hostD, to)
	assert.Equal(t, wire.ECT0, mark)
	p := element(3, 10, 3)
	p.Flags = uint8(wire.ECT0)
	assert.Equal(t, AppendDatagram([]byte{9}, &p), datagram)
	s.rises()

	s.up(upwardPort, hostD, wire.ECT0, root(10, 8))
	s.sends("b 0: result v10 to 3 = 8", "c 0: result v10 to 3 = 8") // not-ECT in flags is worse than ECT(0)
	s.upCounts("up_taken", 1)
	s.in(hostB, wire.ECT0, packetOf(wire.KindFinish, 0, 11))
	s.in(hostC, wire.ECT0, packetOf(wire.KindFinish, 1, 11))
	s.sends("b 2: status done v11 to rank 0, missing 0")
	s.rises("30583 to d 2: finish v11 of rank 3")
	done := packetOf(wire.KindStatus, 3, 11)
	s.up(upwardPort, hostD, wire.ECT0, done)
	s.sends("b 2: status done v11 to rank 0, missing 0", "c 2: status done v11 to rank 1, missing 0")
	assert.Empty(t, s.e.UpwardPorts())
	s.up(upwardPort, hostD, wire.ECT0, done)
	s.counts("udp_port", 1)
	s.upCounts("up_sent", 2)
}

// TestMarksOnTheWayDown: the mark of a final sum is the worse one of flags and IP.
func TestMarksOnTheWayDown(t *testing.T) {
	for _, c := range []struct {
		flags uint8
		mark  wire.ECN
		want  int
	}{{uint8(wire.ECT0), wire.CE, 3}, {uint8(wire.CE), wire.ECT0, 3}, {uint8(wire.ECT1), wire.ECT0, 2}, {uint8(wire.ECT0), wire.ECT1, 2}} {
		s := newTreeSite(t)
		s.in(hostB, wire.ECT1, element(0, 10, 1))
		s.in(hostC, wire.ECT1, element(1, 10, 2))
		s.rises("30583 to d 1: data v10 of rank 3")
		p := root(10, 8)
		p.Flags = c.flags
		s.up(upwardPort, hostD, c.mark, p)
		s.sends(fmt.Sprintf("b %d: result v10 to 3 = 8", c.want), fmt.Sprintf("c %d: result v10 to 3 = 8", c.want))
	}
}

func TestStrangersAtAnUpwardPort(t *testing.T) {
	s := newTreeSite(t)
	s.in(hostB, wire.ECT0, element(0, 10, 1))
	s.in(hostC, wire.ECT0, element(1, 10, 2))
	s.rises("30583 to d 2: data v10 of rank 3")
	n := 0
	for what, from := range elsewhere(hostD) {
		s.up(upwardPort, from, wire.ECT0, root(10, 8))
		n++
		s.counts("stranger", n)
		s.sends()
		assert.NotEmpty(t, what)
	}
	s.upCounts("up_dropped", 0)
	s.up(upwardPort, behindAnotherRouter(hostD), wire.ECT0, root(10, 8))
	s.sends("b 0: result v10 to 3 = 8", "c 0: result v10 to 3 = 8")
}

// TestWhatArrivesAtAnUpwardPort: the checks of datagrams, with the kinds that come from a card.
func TestWhatArrivesAtAnUpwardPort(t *testing.T) {
	s := newTreeSite(t)
	s.in(hostB, wire.ECT0, element(0, 10, 1))
	s.in(hostC, wire.ECT0, element(1, 10, 2))
	s.rises("30583 to d 2: data v10 of rank 3")
	good := root(10, 8)
	datagram := AppendDatagram(nil, &good)
	receive := func(d []byte) { s.e.ReceiveUp(upwardPort, d, hostD, wire.ECT0) }
	receive(datagram[:17])
	s.counts("short", 1)
	datagram[20] ^= 4
	receive(datagram)
	datagram[20] ^= 4
	s.counts("datagram_crc", 1)
	version := good
	version.Version++
	s.up(upwardPort, hostD, wire.ECT0, version)
	s.counts("bad_version", 1)
	for i, kind := range []wire.Kind{wire.KindData, wire.KindAsk, wire.KindFinish, wire.KindRegRead, wire.KindRegWrite, wire.KindReply, 15} {
		p := packetOf(kind, 0, 10)
		p.Format, p.Length, p.Payload = wire.FP32, 1, words(5)
		s.up(upwardPort, hostD, wire.ECT0, p)
		s.counts("bad_kind", i+1)
	}
	for i, length := range []uint16{0, 2, 5} {
		p := good
		p.Length = length
		if length == 5 {
			p.Payload = words(1, 2, 3, 4, 5) // above CHUNK
		}
		s.up(upwardPort, hostD, wire.ECT0, p)
		s.counts("bad_length", i+1)
	}
	other := good
	other.Job = 1
	s.up(upwardPort, hostD, wire.ECT0, other)
	s.upCounts("up_dropped", 1)
	s.up(upwardPort+1, hostD, wire.ECT0, good)
	s.counts("udp_port", 1)
	s.sends()

	// Results and statuses travel to a card there alone.
	for i, p := range []Packet{good, packetOf(wire.KindStatus, 3, 10)} {
		s.in(hostD, wire.ECT0, p)
		s.counts("bad_kind", 8+i)
	}
	s.up(upwardPort, hostD, wire.ECT0, good)
	s.sends("b 0: result v10 to 3 = 8", "c 0: result v10 to 3 = 8")
}

// TestTwoParents: each job has its upward UDP port, its parent, and its final sums alone.
func TestTwoParents(t *testing.T) {
	s := newTreeSite(t)
	second := risen
	assert.Equal(t, wire.CodeBadParent, s.rise(1, 1, second), "the port of job 0")
	second.upward.parent, second.upward.address = wire.Upward(5, upwardPort+1), hostE
	require.Equal(t, wire.CodeDone, s.rise(1, 1, second))
	assert.Equal(t, []uint16{upwardPort, upwardPort + 1}, s.e.UpwardPorts())
	for job := range uint8(2) {
		for rank, host := range []wire.Address{hostB, hostC} {
			p := element(uint8(rank), 10, 1)
			p.Job = job
			s.in(host, wire.ECT0, p)
		}
	}
	s.rises("30583 to d 2: data v10 of rank 3", "30584 to e 2: data v10 of rank 5")
	p := root(10, 8)
	p.Job = 1
	s.up(upwardPort, hostD, wire.ECT0, p)
	s.up(upwardPort, hostE, wire.ECT0, p)
	s.sends()
	s.upCounts("up_dropped", 1)
	s.counts("stranger", 1)
	s.up(upwardPort+1, hostE, wire.ECT0, p)
	s.sends("b 0: result v10 to 3 = 8", "c 0: result v10 to 3 = 8")
	assert.Equal(t, wire.CodeDone, s.rise(0, 2, risen), "its own port again")
}

func TestParentsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(u *upward)
		want   wire.Code
	}{
		{"an IPv4 address of 0", func(u *upward) { u.address.Station &^= math.MaxUint32 }, wire.CodeBadParent},
		{"a UDP port of 0", func(u *upward) { u.address.Station &= math.MaxUint32 }, wire.CodeBadParent},
		{"the card", func(u *upward) { u.address.Station = 0x5442_0a0000fe }, wire.CodeBadParent},
		{"the card's machine", func(u *upward) { u.address.Station = 0x5443_0a0000fe }, wire.CodeDone},
		{"the last Ethernet port", func(u *upward) { u.address.MAC = 1 << 48 }, wire.CodeDone},
		{"no Ethernet port", func(u *upward) { u.address.MAC = 2 << 48 }, wire.CodeBadParent},
		{"no upward port", func(u *upward) { u.parent = wire.Upward(3, 0) }, wire.CodeBadParent},
		{"the card's port", func(u *upward) { u.parent = wire.Upward(3, 0x5442) }, wire.CodeBadParent},
		{"an unknown bit", func(u *upward) { u.parent |= 1 << 32 }, wire.CodeBadParent},
		{"bits without a meaning", func(u *upward) { u.address.Station |= 1 << 48; u.address.MAC |= 1 << 56 }, wire.CodeDone},
		{"an ordinary job", func(u *upward) { *u = upward{parent: 0x5442_0000} }, wire.CodeDone},
	} {
		s := newHighSite(t, 1)
		job := risen
		c.change(&job.upward)
		assert.Equal(t, c.want, s.rise(0, 1, job), c.what)
	}
	s := newHighSite(t, 1)
	job := risen
	job.upward.repeat = 0
	s.writes(hostA, wire.MemberAddr(wire.RegMemberAddress, 1), 0, wire.CodeDone)
	assert.Equal(t, wire.CodeBadMember, s.rise(0, 1, job), "the check before")
}

func TestTheSameParentAgain(t *testing.T) {
	s := newTreeSite(t)
	same := risen
	same.upward.address.Station |= 1 << 48
	assert.Equal(t, wire.CodeDone, s.rise(0, 1, same))
	for what, change := range map[string]func(u *upward){
		"address": func(u *upward) { u.address = hostE },
		"MAC":     func(u *upward) { u.address.MAC ^= 1 },
		"port":    func(u *upward) { u.parent += 1 << 16 },
	} {
		other := risen
		change(&other.upward)
		assert.Equal(t, wire.CodeEpochInUse, s.rise(0, 1, other), what)
	}
}

func TestRegistersOfAParentOnANetwork(t *testing.T) {
	s := newHighSite(t, 1)
	assert.EqualValues(t, 0x102, s.read(wire.RegShell))
	for _, addr := range []uint32{0x150, 0x158, 0xc18} {
		s.writes(hostA, addr, math.MaxUint64, wire.CodeDone)
		assert.EqualValues(t, uint64(math.MaxUint64), s.read(addr))
		s.writes(hostB, addr, 0, wire.CodeBusy)
	}
	s.read(0x600)
	s.writes(hostA, wire.RegRelease, owner, wire.CodeDone)
	s.own()
	for _, addr := range []uint32{0x150, 0x158, 0xc18} {
		assert.Zero(t, s.read(addr), "an owner of its own")
	}
}

// TestARoot: members of a job without a parent may stand for several ranks.
func TestARoot(t *testing.T) {
	s := newHighSite(t, 1)
	s.own()
	s.members(hostB, hostC)
	s.writes(hostA, wire.RanksAddr(0), 0x30, wire.CodeDone)
	s.writes(hostA, wire.RanksAddr(1), 1<<63, wire.CodeDone)
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, pair))
	assert.EqualValues(t, uint64(1)<<63, s.read(wire.JobRanksAddr(0, 1)))
	s.in(hostB, wire.ECT0, element(0, 10, 1))
	s.in(hostB, wire.ECT0, packetOf(wire.KindAsk, 0, 10))
	s.sends("b 2: status wait v10 to rank 0, missing 8000000000000000")
	s.in(hostC, wire.ECT0, element(1, 10, 2))
	datagram, _, _, ok := s.e.Send(nil)
	require.True(t, ok)
	assert.Equal(t, uint64(1)<<63|0x30, ParseHeader(datagram[:30]).Mask)
	assert.Empty(t, s.e.UpwardPorts())
	s.rises()
	s.writes(hostA, wire.RegReset, owner, wire.CodeDone)
	assert.Zero(t, s.read(wire.RanksAddr(0)))
}
