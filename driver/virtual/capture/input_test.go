package capture_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// input is a capture that gopacket makes, from the hosts of the tests.
type input struct {
	ports  int
	at     time.Time
	frames []captured
}

// captured is a frame with its FCS, at a port.
type captured struct {
	at    time.Time
	port  int
	frame []byte
}

// newInput returns an empty one.
func newInput(ports int) *input { return &input{ports: ports, at: time.Unix(1_700_000_000, 0).UTC()} }

// add adds frames at a port, 10 microseconds apart.
func (in *input) add(port int, all ...[]byte) {
	for _, f := range all {
		in.at = in.at.Add(10 * time.Microsecond)
		in.frames = append(in.frames, captured{in.at, port, f})
	}
}

// hostMAC returns the MAC address of host n, which is 192.168.84.n.
func hostMAC(n byte) net.HardwareAddr { return net.HardwareAddr{0x06, 0x11, 0x22, 0x33, 0x44, n} }

// from returns the frame of a datagram from UDP port 5000 of host n.
func from(n byte, body []byte, mark wire.ECN) []byte {
	d := frames.NewDatagram(body)
	d.Ether.SrcMAC, d.IP.SrcIP, d.UDP.SrcPort, d.IP.TOS = hostMAC(n), net.IP{192, 168, 84, n}, 5000, uint8(mark)
	return d.Bytes()
}

// write returns the frame of a register write by host 1, the owner.
func write(addr uint32, value uint64) []byte {
	return from(1, frames.Access(wire.KindRegWrite, addr, value), wire.ECT0)
}

// contribution returns the frame of a contribution of host 2 + rank: four elements, the first of which is
// the VID.
func contribution(rank byte, vid uint32, mark wire.ECN) []byte {
	payload := make([]byte, 16)
	for i, x := range []float32{float32(vid), 1, float32(rank), -2} {
		_, err := binary.Encode(payload[4*i:], binary.LittleEndian, x)
		if err != nil {
			panic(err)
		}
	}
	h := frame.Header{Kind: wire.KindData, Rank: rank, Epoch: 1, VID: vid, Length: 4, Format: wire.FP32}
	return from(2+rank, frame.AppendDatagram(nil, &h, payload), mark)
}

// setUp lets host 1 at port 0 take the card and set up a job of the hosts 2 and 3, which are at ports.
func (in *input) setUp(deadline uint64, ports ...uint64) {
	in.stage(deadline, ports...)
	in.add(0, write(wire.RegJobCommit, 1<<32))
}

// stage is setUp without the commit.
func (in *input) stage(deadline uint64, ports ...uint64) {
	const token = 0x0123_4567_89ab_cdef
	in.add(0, write(wire.RegOwner, token))
	for rank, port := range ports {
		mac := binary.BigEndian.Uint64(append([]byte{0, byte(port)}, hostMAC(byte(2+rank))...))
		in.add(0,
			write(wire.MemberAddr(wire.RegMemberAddress, rank), 5000<<32|0xc0a85402+uint64(rank)),
			write(wire.MemberAddr(wire.RegMemberMAC, rank), mac))
	}
	in.add(0, write(wire.RegJobToken, token), write(wire.RegJobPorts, 3), write(wire.RegJobChunk, 4),
		write(wire.RegJobWindow, 2), write(wire.RegJobDeadline, deadline))
}

// inputs are the captures, by the names of their goldens, and the numbers of their ports.
var inputs = []struct {
	name  string
	ports int
	make  func(in *input)
}{
	{"answers", 1, answers}, {"faults", 1, addFaults}, {"job", 1, func(in *input) { addJob(in, 0, 0) }},
	{"deadline", 1, addDeadline}, {"lease", 1, addLease},
	{"faults2", 2, addFaults}, {"path", 3, func(in *input) { addJob(in, 1, 2) }}, {"switch", 3, addPassing},
	{"tree", 3, addTree},
}

// withParent is the number of ports of the cards that have an up port.
const withParent = 3

// answers asks for the card's address and for echoes.
func answers(in *input) {
	in.add(0, frames.ARPRequest(frames.ToAll, frames.CardIP), frames.ARPRequest(frames.CardMAC, frames.CardIP))
	in.add(0, frames.ARPRequest(frames.ToAll, frames.HostIP))
	for _, size := range []int{0, 1, 17, 18, 56, 1471, 1472, 1473} {
		in.add(0, frames.EchoRequest(0, bytes.Repeat([]byte{0xa5}, size)))
	}
	in.add(0, frames.EchoRequest(1, nil))
}

// addFaults has each fault of a datagram, and a good one behind it, at each port in turn.
func addFaults(in *input) {
	for i, f := range frames.Faults {
		d := frames.NewDatagram(frames.Question())
		f.Make(d)
		in.add(i%in.ports, d.Bytes(), frames.NewDatagram(frames.Question()).Bytes())
	}
}

// addJob has a job whose members are at two ports, with every mark, a repeated contribution, a stranger, a
// refusal, and reads of the counters of shell udp.
func addJob(in *input, a, b int) {
	in.setUp(0, uint64(a), uint64(b))
	for vid, mark := range []wire.ECN{wire.NotECT, wire.ECT1, wire.ECT0, wire.CE} {
		in.add(a, contribution(0, uint32(vid), wire.ECT0))
		in.add(b, contribution(1, uint32(vid), mark))
	}
	in.add(a, contribution(0, 3, wire.ECT0), contribution(0, 9, wire.ECT0))
	in.add(b, contribution(0, 4, wire.ECT0))
	for i := range wire.NetworkCounters { // those of SPEC count cycles of the core, too
		in.add(a, from(2, frames.Access(wire.KindRegRead, wire.CounterAddr(len(wire.Counters)+i), 0), wire.ECT0))
	}
}

// upwardPort is the upward UDP port of the tree job.
const upwardPort = 7000

// down returns the frame of a packet for a member of host 9, to a UDP port of the card.
func down(n byte, port uint16, h frame.Header, mark wire.ECN) []byte {
	h.Epoch = 1
	var payload []byte
	if info, _ := h.Kind.Info(); info.Payload {
		h.Length, h.Format, payload = 4, wire.FP32, bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, 4)
	}
	d := frames.NewDatagram(frame.AppendDatagram(nil, &h, payload))
	d.Ether.SrcMAC, d.IP.SrcIP, d.IP.TOS = hostMAC(n), net.IP{192, 168, 84, n}, uint8(mark)
	d.UDP.SrcPort, d.UDP.DstPort = 5000, layers.UDPPort(port)
	return d.Bytes()
}

// addTree has a tree job of two members at port 1, and its parent, host 9, at port 2: own sums with their
// repeats, final sums of the parent and of others, statuses, finishes, and reads of the up port's counters.
func addTree(in *input) {
	in.stage(0, 1, 1)
	mac := binary.BigEndian.Uint64(append([]byte{0, 2}, hostMAC(9)...))
	in.add(0, write(wire.RegJobParent, wire.Upward(4, upwardPort)), write(wire.RegJobRepeat, 1), write(wire.RegTreeRanks, 7),
		write(wire.RanksAddr(0), 1), write(wire.RanksAddr(1), 4),
		write(wire.RegParentAddress, 5000<<32|0xc0a85409), write(wire.RegParentMAC, mac), write(wire.RegJobCommit, 1<<32))
	final := func(vid uint32, flags uint8) frame.Header {
		return frame.Header{Kind: wire.KindResult, VID: vid, Mask: 7, Receivers: 1 << 4, Flags: flags}
	}
	status := func(code wire.Code, vid uint32) frame.Header {
		return frame.Header{Kind: wire.KindStatus, Rank: 4, Code: code, VID: vid, Mask: 2}
	}
	in.add(1, contribution(0, 0, wire.ECT1), contribution(1, 0, wire.ECT0), contribution(0, 0, wire.ECT0))
	in.add(2, down(9, upwardPort, status(wire.CodeDuplicate, 0), wire.ECT0), down(9, upwardPort, status(wire.CodeOverdue, 0), wire.ECT0))
	in.add(2, down(9, upwardPort+1, final(0, 0), wire.ECT0), down(8, upwardPort, final(0, 0), wire.ECT0))
	in.add(1, down(9, upwardPort, final(0, 0), wire.ECT0))
	other := final(0, 0)
	other.Job = 1
	in.add(2, down(9, upwardPort, other, wire.ECT0), down(9, upwardPort, frame.Header{Kind: wire.KindData}, wire.ECT0))
	in.add(2, down(9, upwardPort, final(0, uint8(wire.ECT1)), wire.CE), down(9, upwardPort, final(0, 0), wire.ECT0))
	in.add(1, contribution(1, 1, wire.NotECT), contribution(0, 1, wire.CE))
	in.add(2, down(9, upwardPort, final(1, wire.FlagNonfinite|uint8(wire.CE)), wire.ECT1))
	for rank := range byte(2) {
		h := frame.Header{Kind: wire.KindFinish, Rank: rank, Epoch: 1, VID: 2}
		in.add(1, from(2+rank, frame.AppendDatagram(nil, &h, nil), wire.ECT0))
	}
	in.add(2, down(9, upwardPort, status(wire.CodeDone, 2), wire.ECT0), down(9, upwardPort, status(wire.CodeDone, 2), wire.ECT0))
	for i := range wire.UpCounters {
		in.add(0, from(1, frames.Access(wire.KindRegRead, wire.UpCounterAddr(i), 0), wire.ECT0))
	}
	for i := range wire.NetworkCounters {
		in.add(0, from(1, frames.Access(wire.KindRegRead, wire.CounterAddr(len(wire.Counters)+i), 0), wire.ECT0))
	}
}

// addPassing has frames between stations that come, move and do not answer.
func addPassing(in *input) {
	a, b := hostMAC(10), hostMAC(11)
	in.add(0, frames.Strange(a, b, 1))
	in.add(1, frames.Strange(b, a, 2))
	in.add(0, frames.Strange(a, b, 3), frames.Strange(a, frames.ToAll, 4))
	in.add(2, frames.Strange(a, b, 5))
	in.add(1, frames.Strange(b, a, 6), frames.Strange(b, b, 7), frames.Strange(b, frames.CardMAC, 8))
	tagged := frames.NewDatagram(make([]byte, 1400))
	tagged.Ether.DstMAC, tagged.Ether.EthernetType = b, layers.EthernetTypeDot1Q
	tagged.Tags = []gopacket.SerializableLayer{&layers.Dot1Q{VLANIdentifier: 84, Priority: 5, Type: layers.EthernetTypeIPv4}}
	in.add(2, tagged.Bytes(), frames.Strange(a, b, make([]byte, 9004)...))
}

// partial is the bit of JOB_DEADLINE for partial sums.
const partial = 1 << 32

// addDeadline has a chunk that one member does not send: its sum leaves when 20,000 cycles have passed. (A
// simulator runs a few thousand until it notices that nothing moves.)
func addDeadline(in *input) {
	in.setUp(partial|20_000, 0, 0)
	in.add(0, contribution(0, 0, wire.ECT0))
	in.at = in.at.Add(290 * time.Microsecond)
	in.add(0, contribution(1, 0, wire.ECT0))
}

// addLease has an owner that is silent for its lease of 30,000 cycles.
func addLease(in *input) {
	in.add(0, write(wire.RegOwner, 7), write(wire.RegLease, 30_000))
	in.at = in.at.Add(250 * time.Microsecond)
	owner := from(2, frames.Access(wire.KindRegRead, wire.RegOwner, 0), wire.ECT0)
	in.add(0, owner, owner)
}

// file returns the capture as a pcapng.
func (in *input) file(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	one := pcapgo.NgInterface{LinkType: layers.LinkTypeEthernet}
	w, err := pcapgo.NewNgWriterInterface(&b, one, pcapgo.NgWriterOptions{})
	require.NoError(t, err)
	for range in.ports - 1 {
		_, err = w.AddInterface(one)
		require.NoError(t, err)
	}
	for _, f := range in.frames {
		ci := gopacket.CaptureInfo{Timestamp: f.at, CaptureLength: len(f.frame), Length: len(f.frame), InterfaceIndex: f.port}
		require.NoError(t, w.WritePacketWithOptions(ci, f.frame, pcapgo.NgPacketOptions{
			Flags: &pcapgo.NgEpbFlags{FCSLen: pcapgo.NewNgEpbFlagFCSLength(4)},
		}))
	}
	require.NoError(t, w.Flush())
	return b.Bytes()
}

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%s differs; to accept it: go test ./driver/virtual/capture -update", path)
}
