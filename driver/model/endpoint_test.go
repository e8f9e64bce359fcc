// A card on a network whose traffic is written in short lines; and a conversation in bytes.

package model

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// The hosts in the tests: a sets the card up, b to e are members of jobs, on both Ethernet ports.
var (
	hostA = wire.Address{Station: 0x5442_0a000001, MAC: 0x0000_020000000001}
	hostB = wire.Address{Station: 0x1234_0a000002, MAC: 0x0001_020000000002}
	hostC = wire.Address{Station: 0x4321_0a000003, MAC: 0x0000_020000000003}
	hostD = wire.Address{Station: 0x1234_0a000004, MAC: 0x0001_020000000004}
	hostE = wire.Address{Station: 0x1234_0a000005, MAC: 0x0000_020000000005}
)

// site is a card on a network with one lane, 4 ports, chunks of at most 4 elements, a window of 4 and
// 2 Ethernet ports.
type site struct {
	*testing.T
	e *Endpoint
}

// newSite returns a card with so many jobs.
func newSite(t *testing.T, jobs int) *site {
	t.Helper()
	e, err := NewEndpoint(Config{
		Lanes: 1, Ports: 4, Chunk: 4, Window: 4, Jobs: jobs, Shell: wire.ShellUDP, Link: 64, Ethernet: 2,
	}, wire.Address{Station: 0x5442_0a0000fe, MAC: 0x02_00000000fe})
	require.NoError(t, err)
	return &site{t, e}
}

// newSiteWithJob returns a card whose owner a has set up job 0: epoch 1, members b and c at the ports 0 and 1,
// chunks of 1 element, a window of 1, from VID 10 on.
func newSiteWithJob(t *testing.T, jobs int) *site {
	t.Helper()
	s := newSite(t, jobs)
	s.own()
	s.members(hostB, hostC)
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, pair))
	return s
}

// own lets host a take the card.
func (s *site) own() {
	s.Helper()
	s.writes(hostA, wire.RegOwner, owner, wire.CodeDone)
}

// members stages the addresses of members, from port 0 on.
func (s *site) members(addresses ...wire.Address) {
	s.Helper()
	for port, a := range addresses {
		s.writes(hostA, wire.MemberAddr(wire.RegMemberAddress, port), a.Station, wire.CodeDone)
		s.writes(hostA, wire.MemberAddr(wire.RegMemberMAC, port), a.MAC, wire.CodeDone)
	}
}

// setUp stages a job and commits it.
func (s *site) setUp(number uint8, epoch uint16, job setup) wire.Code {
	s.Helper()
	for addr, value := range map[uint32]uint64{
		wire.RegJobToken: owner, wire.RegJobPorts: job.ports, wire.RegJobChunk: job.chunk, wire.RegJobWindow: job.window,
		wire.RegJobDeadline: job.deadline,
	} {
		s.writes(hostA, addr, value, wire.CodeDone)
	}
	code, _ := s.access(hostA, true, wire.RegJobCommit, uint64(number)<<48|uint64(epoch)<<32|uint64(job.first))
	return code
}

// access accesses a register from an address. The reply must be the next datagram, and go back there.
func (s *site) access(from wire.Address, write bool, addr uint32, value uint64) (wire.Code, uint64) {
	s.Helper()
	h := Header{Version: wire.Version, Kind: wire.KindRegRead, VID: addr, Length: uint16(addr) ^ 0x5555}
	if write {
		h.Kind, h.Mask = wire.KindRegWrite, value
	}
	s.e.Receive(AppendDatagram(nil, &Packet{Header: h}), from, wire.ECT0)
	datagram, to, mark, ok := s.e.Send(nil)
	require.True(s, ok, "a reply")
	require.Len(s, datagram, 26)
	require.Equal(s, from, to)
	require.Equal(s, wire.ECT0, mark)
	reply := ParseHeader(datagram[:22])
	require.Equal(s, wire.KindReply, reply.Kind)
	require.Equal(s, addr, reply.VID)
	require.Equal(s, h.Length, reply.Length)
	return reply.Code, reply.Mask
}

// writes checks the code that a write gets.
func (s *site) writes(from wire.Address, addr uint32, value uint64, want wire.Code) {
	s.Helper()
	code, _ := s.access(from, true, addr, value)
	require.Equal(s, want, code, "write %#x to %#x", value, addr)
}

// read reads a register, from a host that is nobody's.
func (s *site) read(addr uint32) uint64 {
	s.Helper()
	code, value := s.access(wire.Address{Station: 0x9999_0a000063}, false, addr, 0)
	require.Equal(s, wire.CodeDone, code, "read %#x", addr)
	return value
}

// networkCounterAddr is counterAddr for the counters of shell udp.
func networkCounterAddr(name string) uint32 {
	for i, c := range wire.NetworkCounters {
		if c.Name == name {
			return wire.CounterAddr(len(wire.Counters) + i)
		}
	}
	return counterAddr(name)
}

// counts checks a counter.
func (s *site) counts(name string, want int) {
	s.Helper()
	assert.EqualValues(s, want, s.read(networkCounterAddr(name)), name)
}

// in passes a packet that comes from an address with a mark, late enough for a refusal to be
// answered.
func (s *site) in(from wire.Address, mark wire.ECN, p Packet) {
	s.e.Advance(1024)
	s.e.Receive(AppendDatagram(nil, &p), from, mark)
}

// packetOf returns a packet of job 0, epoch 1.
func packetOf(kind wire.Kind, rank uint8, vid uint32) Packet {
	return Packet{Header: Header{Version: wire.Version, Kind: kind, Epoch: 1, Rank: rank, VID: vid}}
}

// element returns a contribution of one element to job 0, epoch 1.
func element(rank uint8, vid uint32, x float32) Packet {
	p := packetOf(wire.KindData, rank, vid)
	p.Format, p.Length, p.Payload = wire.FP32, 1, words(f(x))
	return p
}

// names are the hosts' for lines.
var names = map[wire.Address]string{hostA: "a", hostB: "b", hostC: "c", hostD: "d", hostE: "e"}

// sends checks the datagrams that leave: "b 2: result v10 to 1 = 2.5" for one to host b with mark 2,
// and otherwise as line has it.
func (s *site) sends(want ...string) {
	s.Helper()
	got := []string{}
	for {
		datagram, to, mark, ok := s.e.Send(nil)
		if !ok {
			break
		}
		p := Packet{Header: ParseHeader(datagram[:14])}
		info, _ := p.Kind.Info()
		n := info.HeaderBytes(true)
		p.Header, p.Payload = ParseHeader(datagram[:n]), datagram[n:len(datagram)-4]
		got = append(got, fmt.Sprintf("%s %d: %s", names[to], mark, line(&p)))
	}
	if want == nil {
		want = []string{}
	}
	assert.Equal(s, want, got)
}

// conversationHosts are the hosts of the conversation in bytes, as its page has them.
var conversationHosts = map[string]wire.Address{"a": hostA, "b": hostB, "c": hostC}

// TestConversation replays testdata/conversation.txt, whose bytes come from elsewhere. After each
// datagram to the card, everything that the card sends must be there.
func TestConversation(t *testing.T) {
	s := newSite(t, 1)
	file, err := os.Open("testdata/conversation.txt")
	require.NoError(t, err)
	defer file.Close()
	lines := 0
	for text := bufio.NewScanner(file); text.Scan(); {
		way, rest, _ := strings.Cut(text.Text(), " ")
		if way != ">" && way != "<" {
			continue
		}
		lines++
		host, rest, _ := strings.Cut(rest, " ")
		number, bytes, _ := strings.Cut(rest, " ")
		mark, err := strconv.Atoi(number)
		require.NoError(t, err)
		want, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(bytes))
		require.NoError(t, err)
		got, to, gotMark, ok := s.e.Send(nil)
		if way == ">" {
			require.False(t, ok, "line %d: it sends %x to %x", lines, got, to)
			s.e.Receive(want, conversationHosts[host], wire.ECN(mark))
			continue
		}
		require.True(t, ok, text.Text())
		require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got))
		require.Equal(t, conversationHosts[host], to, text.Text())
		require.EqualValues(t, mark, gotMark, text.Text())
	}
	require.Greater(t, lines, 50)
	s.sends()
	s.counts("stranger", 1)
}

func TestResultsLeaveForEachRankInOrder(t *testing.T) {
	s := newSite(t, 1)
	s.own()
	s.members(hostE, hostD, hostC, hostB)
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, setup{ports: 0b1101, chunk: 1, window: 1, first: 10}))
	for rank, host := range []wire.Address{hostE, hostC, hostB} {
		s.in(host, wire.ECT0, element(uint8(rank), 10, float32(rank+1)))
	}
	s.sends("e 2: result v10 to 1 = 6", "c 2: result v10 to 2 = 6", "b 2: result v10 to 4 = 6")
	s.counts("results", 1)
}

func TestAReplyGoesBeforeTheRestOfAResult(t *testing.T) {
	s := newSiteWithJob(t, 1)
	s.in(hostB, wire.ECT0, element(0, 10, 1))
	s.in(hostC, wire.ECT0, element(1, 10, 2))
	_, to, _, _ := s.e.Send(nil)
	require.Equal(t, hostB, to)
	s.read(wire.RegOwner) // which checks that the reply is next
	s.sends("c 2: result v10 to 2 = 3")
}

// TestABegunResultKeepsItsAddresses: what had begun to leave when a job ended leaves for the addresses
// of its epoch, whoever holds the ranks in the next one.
func TestABegunResultKeepsItsAddresses(t *testing.T) {
	s := newSiteWithJob(t, 1)
	s.in(hostB, wire.ECT0, element(0, 10, 1))
	s.in(hostC, wire.ECT0, element(1, 10, 2))
	_, to, _, _ := s.e.Send(nil)
	require.Equal(t, hostB, to)
	s.members(hostD, hostE)
	require.Equal(t, wire.CodeDone, s.setUp(0, 2, pair))
	s.sends("c 2: result v10 to 2 = 3")
}

func TestOneProcessWithAllRanks(t *testing.T) {
	s := newSite(t, 1)
	s.own()
	s.members(hostA, hostA)
	require.Equal(t, wire.CodeDone, s.setUp(0, 1, pair))
	s.in(hostA, wire.ECT0, element(0, 10, 1))
	s.in(hostA, wire.ECT0, element(1, 10, 2))
	s.sends("a 2: result v10 to 1 = 3", "a 2: result v10 to 2 = 3")
}

// TestMarks: the field in IP counts on the way in, whatever flags say; the merge, which is the larger
// in ECT(1) < ECT(0) < not-ECT < CE, is in both places on the way out. All else has ECT(0).
func TestMarks(t *testing.T) {
	for _, c := range []struct {
		b, c, merged wire.ECN
		ce           int
	}{
		{wire.ECT1, wire.ECT1, wire.ECT1, 0}, {wire.ECT1, wire.ECT0, wire.ECT0, 0}, {wire.ECT0, wire.NotECT, wire.NotECT, 0},
		{wire.NotECT, wire.CE, wire.CE, 1}, {wire.CE, wire.ECT1, wire.CE, 1}, {wire.CE, wire.CE, wire.CE, 2},
	} {
		s := newSiteWithJob(t, 1)
		data := element(0, 10, 1)
		data.Flags = uint8(c.b) ^ wire.FlagECN
		s.in(hostB, c.b, data)
		data = element(1, 10, 2)
		data.Flags = uint8(c.c) ^ wire.FlagECN
		s.in(hostC, c.c, data)
		for range 2 {
			datagram, _, mark, ok := s.e.Send(nil)
			require.True(t, ok)
			assert.Equal(t, c.merged, mark, "%v", c)
			assert.EqualValues(t, c.merged, datagram[1], "%v: flags", c)
		}
		s.counts("ce", c.ce)
		s.in(hostB, wire.CE, packetOf(wire.KindAsk, 0, 12))
		s.sends("b 2: status send v12 to rank 0, missing 3")
	}
}

// TestRepliesAreBounded: 16 replies wait; more accesses have no effect.
func TestRepliesAreBounded(t *testing.T) {
	s := newSite(t, 1)
	for tag := range uint16(20) {
		h := Header{Version: wire.Version, Kind: wire.KindRegWrite, VID: wire.RegOwner, Length: tag, Mask: 7}
		if tag < 16 {
			h.VID = wire.RegSource // read-only
		}
		s.e.Receive(AppendDatagram(nil, &Packet{Header: h}), hostA, wire.ECT0)
	}
	for tag := range uint16(16) {
		datagram, _, _, ok := s.e.Send(nil)
		require.True(t, ok)
		require.Equal(t, tag, binary.LittleEndian.Uint16(datagram[12:]))
	}
	s.sends()
	s.counts("dropped", 4)
	assert.Zero(t, s.read(wire.RegOwner), "what was dropped has not been done")
}
