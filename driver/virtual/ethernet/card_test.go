package ethernet_test

import (
	"encoding/binary"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/cpu"
	"tributary/driver/model"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// site is a card on Ethernet, and what left it.
type site struct {
	testing.TB
	endpoint ethernet.Endpoint
	card     *ethernet.Card
}

// left is a frame that left, with its FCS.
type left struct {
	port  int
	frame []byte
}

// endpoints are the cards in software.
var endpoints = map[string]func(cfg model.Config) (ethernet.Endpoint, error){
	"model": func(cfg model.Config) (ethernet.Endpoint, error) { return model.NewEndpoint(cfg, frames.CardAddress) },
	"cpu": func(cfg model.Config) (ethernet.Endpoint, error) {
		return cpu.NewEndpoint(cpu.Config(cfg), frames.CardAddress)
	},
}

// small is a card with Ethernet ports.
func small(ports int) model.Config {
	return model.Config{Lanes: 1, Ports: 4, Chunk: 4, Window: 4, Shell: wire.ShellUDP, Link: 64, Ethernet: ports}
}

// newSite returns a card with Ethernet ports around an endpoint.
func newSite(t testing.TB, name string, ports int) *site {
	t.Helper()
	endpoint, err := endpoints[name](small(ports))
	require.NoError(t, err)
	card, err := ethernet.New(endpoint, ports)
	require.NoError(t, err)
	return &site{t, endpoint, card}
}

// send lets a frame come at a port, and returns what leaves.
func (s *site) send(port int, frame []byte) []left {
	s.Helper()
	s.card.Receive(port, frame)
	return s.drain()
}

func (s *site) drain() (all []left) {
	for {
		frame, port, ok := s.card.Send(nil)
		if !ok {
			return all
		}
		all = append(all, left{port, frame})
	}
}

// counts returns the counters of shell udp that are not zero. It asks the endpoint, beside Ethernet.
func (s *site) counts() map[string]uint64 {
	s.Helper()
	all := map[string]uint64{}
	for i, c := range wire.NetworkCounters {
		s.endpoint.Receive(frames.Access(wire.KindRegRead, wire.CounterAddr(len(wire.Counters)+i), 0), wire.Address{}, wire.ECT0)
		reply, _, _, ok := s.endpoint.Send(nil)
		require.True(s, ok)
		if n := binary.LittleEndian.Uint64(reply[wire.BaseHeaderBytes:]); n > 0 {
			all[c.Name] = n
		}
	}
	return all
}

// TestEachFault: a frame with one fault has no effect but the count of its reason.
func TestEachFault(t *testing.T) {
	for name := range endpoints {
		for _, f := range frames.Faults {
			s := newSite(t, name, 1)
			datagram := frames.NewDatagram(frames.Question())
			f.Make(datagram)
			assert.Empty(t, s.send(0, datagram.Bytes()), "%s, %s", name, f.Name)
			want := map[string]uint64{f.Reason: 1}
			delete(want, "")
			assert.Equal(t, want, s.counts(), "%s, %s", name, f.Name)
		}
	}
}

// alike are pairs of frames.Faults of the same field, of which only one can be made.
var alike = map[[2]string]bool{
	{"VLAN tag", "IPv6"}: true, {"other station", "all stations"}: true, {"longer than its frame", "too short"}: true,
	{"TCP", "ICMP, no echo"}: true, {"UDP too long", "UDP too short"}: true, {"short datagram", "CRC"}: true,
	{"UDP checksum", "no UDP checksum"}: true,
	// A short one repairs the lengths, and a long one makes them again.
	{"longer than its frame", "short datagram"}: true, {"too short", "short datagram"}: true,
	{"UDP too long", "short datagram"}: true, {"UDP too short", "short datagram"}: true,
}

// TestTheFirstFaultCounts: of two frames.Faults, that of the earlier check counts.
func TestTheFirstFaultCounts(t *testing.T) {
	for i, first := range frames.Faults {
		for _, second := range frames.Faults[i+1:] {
			if alike[[2]string{first.Name, second.Name}] || first.Name == "runt" && second.Name == "oversize" {
				continue
			}
			s := newSite(t, "model", 1)
			datagram := frames.NewDatagram(frames.Question())
			second.Make(datagram)
			first.Make(datagram)
			assert.Empty(t, s.send(0, datagram.Bytes()))
			want := map[string]uint64{first.Reason: 1}
			delete(want, "")
			assert.Equal(t, want, s.counts(), "%s, %s", first.Name, second.Name)
		}
	}
}

// TestAZeroThatSumsUp: a UDP checksum of 0 is none, also where the sum is right with it. In its other form,
// 0xffff, it is one.
func TestAZeroThatSumsUp(t *testing.T) {
	var frame []byte
	for port := 1; frame == nil; port++ {
		datagram := frames.NewDatagram(frames.Question())
		datagram.UDP.SrcPort = layers.UDPPort(port)
		if f := datagram.Bytes(); f[40] == f[41] && (f[40] == 0 || f[40] == 0xff) {
			frame = f
		}
	}
	s := newSite(t, "model", 1)
	assert.Empty(t, s.send(0, edited(edited(frame, 40, 0), 41, 0)))
	assert.Equal(t, map[string]uint64{"checksum": 1}, s.counts())
	assert.Len(t, s.send(0, edited(edited(frame, 40, 0xff), 41, 0xff)), 1)
}

// TestSizesAtTheLimits: the largest frame is taken, with all behind its packet as padding.
func TestSizesAtTheLimits(t *testing.T) {
	s := newSite(t, "model", 1)
	for _, size := range []int{60, 61, 9018} {
		datagram := frames.NewDatagram(frames.Question())
		datagram.Damage = append(datagram.Damage, func(b []byte) []byte { return append(b, make([]byte, size-len(b))...) })
		require.Len(t, s.send(0, datagram.Bytes()), 1, size)
	}
	for _, frame := range [][]byte{nil, {1}, {0, 0, 0, 0}, {1, 2, 3, 4}} {
		require.Empty(t, s.send(0, frame))
	}
	// Four zeros are the FCS of a frame without bytes, a runt.
	assert.Equal(t, map[string]uint64{"fcs": 3, "runt": 1}, s.counts())
}

// TestARP compares the answer with its bytes, as RFC 826 has them.
func TestARP(t *testing.T) {
	s := newSite(t, "model", 3)
	// 192.168.84.1 at 06:11:22:33:44:55 asks; the card's address is 192.168.84.66 at 02:54:52:42:00:01.
	want := frames.Closed(append([]byte{
		0x06, 0x11, 0x22, 0x33, 0x44, 0x55, 0x02, 0x54, 0x52, 0x42, 0, 1, 0x08, 0x06,
		0, 1, 0x08, 0, 6, 4, 0, 2, 0x02, 0x54, 0x52, 0x42, 0, 1, 192, 168, 84, 66, 0x06, 0x11, 0x22, 0x33, 0x44, 0x55, 192, 168, 84, 1,
	}, make([]byte, 18)...))
	assert.Equal(t, []left{{2, want}}, s.send(2, frames.ARPRequest(frames.ToAll, frames.CardIP)))
	assert.Equal(t, []left{{1, want}}, s.send(1, frames.ARPRequest(frames.CardMAC, frames.CardIP)))

	// It goes to the sender in the request, not to that of the frame.
	proxied := frames.ARPRequest(frames.ToAll, frames.CardIP)
	copy(proxied[6:12], []byte{2, 2, 2, 2, 2, 2})
	assert.Equal(t, []left{{0, want}}, s.send(0, frames.Closed(proxied[:60])))
	assert.Empty(t, s.counts())
}

// TestOtherARP: what is no request for the card's address belongs to others.
func TestOtherARP(t *testing.T) {
	for _, c := range []struct {
		name  string
		ports int // where it leaves
		frame []byte
	}{
		{"for another address", 2, frames.ARPRequest(frames.ToAll, frames.HostIP)},
		{"for the card, to another station", 2, frames.ARPRequest(strangerMAC, frames.CardIP)},
		{"for another address, to the card", 0, frames.ARPRequest(frames.CardMAC, frames.HostIP)},
		{"a reply", 2, edited(frames.ARPRequest(frames.ToAll, frames.CardIP), 21, 2)},
		{"of another hardware", 2, edited(frames.ARPRequest(frames.ToAll, frames.CardIP), 15, 6)},
	} {
		s := newSite(t, "model", 3)
		all := s.send(0, c.frame)
		assert.Len(t, all, c.ports, c.name)
		for _, out := range all {
			assert.Equal(t, c.frame, out.frame, c.name)
		}
	}
}

// edited returns a frame with another byte and the right FCS.
func edited(frame []byte, at int, value byte) []byte {
	body := append([]byte(nil), frame[:len(frame)-4]...)
	body[at] = value
	return frames.Closed(body)
}

// TestEcho compares the answers with those that gopacket makes.
func TestEcho(t *testing.T) {
	s := newSite(t, "model", 2)
	for _, size := range []int{0, 1, 2, 17, 18, 19, 56, 1471, 1472} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * 7)
		}
		want := frames.Closed(frames.MustSerialize(
			&layers.Ethernet{SrcMAC: frames.CardMAC, DstMAC: frames.HostMAC, EthernetType: layers.EthernetTypeIPv4},
			&layers.IPv4{
				Version: 4, IHL: 5, TTL: 64, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolICMPv4, SrcIP: frames.CardIP, DstIP: frames.HostIP,
				Length: uint16(28 + size),
			},
			&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoReply, 0), Id: 0xbeef, Seq: 0x0102},
			gopacket.Payload(data)))
		require.Equal(t, []left{{1, want}}, s.send(1, frames.EchoRequest(0, data)), size)
	}
	assert.Empty(t, s.counts())
	assert.Empty(t, s.send(0, frames.EchoRequest(0, make([]byte, 1473))))
	assert.Empty(t, s.send(0, frames.EchoRequest(1, nil)))
	assert.Empty(t, s.send(0, edited(frames.EchoRequest(0, nil), 36, 0)))
	assert.Equal(t, map[string]uint64{"dropped": 1, "protocol": 1, "checksum": 1}, s.counts())
}

// TestEveryEchoChecksum: the checksum of an answer is right for each of the request's. Both forms of
// zero are.
func TestEveryEchoChecksum(t *testing.T) {
	s := newSite(t, "model", 1)
	base := frames.EchoRequest(0, nil)
	for data := range 1 << 16 {
		request := append([]byte(nil), base[:60]...)
		binary.BigEndian.PutUint16(request[38:], uint16(data)) // the identifier
		binary.BigEndian.PutUint16(request[40:], 0)
		sum := 0xf7ff - data // the complement of type and identifier, modulo 0xffff
		if sum < 0 {
			sum += 0xffff
		}
		binary.BigEndian.PutUint16(request[36:], uint16(sum))
		all := s.send(0, frames.Closed(request))
		if len(all) != 1 {
			t.Fatalf("identifier %#x: %d answers", data, len(all))
		}
		reply := all[0].frame
		if got := (int(binary.BigEndian.Uint16(reply[36:])) + data) % 0xffff; got != 0 || reply[36] == 0 && reply[37] == 0 {
			t.Fatalf("identifier %#x: the checksum %x is wrong", data, reply[36:38])
		}
	}
}

// TestOneAnswerWaits: a request that comes while an answer waits is dropped.
func TestOneAnswerWaits(t *testing.T) {
	s := newSite(t, "model", 1)
	s.card.Receive(0, frames.ARPRequest(frames.ToAll, frames.CardIP))
	s.card.Receive(0, frames.EchoRequest(0, nil))
	all := s.drain()
	require.Len(t, all, 1)
	assert.EqualValues(t, 0x06, all[0].frame[13])
	assert.Equal(t, map[string]uint64{"dropped": 1}, s.counts())
}

// TestADatagramLeaves compares the frame of a reply with that which gopacket makes: IP and UDP have
// the fields that NETWORK.md states.
func TestADatagramLeaves(t *testing.T) {
	for name := range endpoints {
		s := newSite(t, name, 2)
		for _, addr := range []uint32{wire.RegSource, wire.RegSourceMAC} {
			all := s.send(1, frames.NewDatagram(frames.Access(wire.KindRegRead, addr, 0)).Bytes())
			require.Len(t, all, 1)
			require.Equal(t, 1, all[0].port)
			body := all[0].frame[42 : len(all[0].frame)-4]
			want := map[uint32]uint64{wire.RegSource: 0x1234_c0a85401, wire.RegSourceMAC: 0x01_061122334455}[addr]
			require.Equal(t, want, binary.LittleEndian.Uint64(body[14:]))
			require.Equal(t, fromCard(t, body, 2), all[0].frame)
		}
	}
}

// fromCard returns the frame of a datagram from the card to the host with an ECN field.
func fromCard(t testing.TB, body []byte, ecn uint8) []byte {
	t.Helper()
	s := frames.NewDatagram(body)
	s.Ether.SrcMAC, s.Ether.DstMAC = frames.CardMAC, frames.HostMAC
	s.IP.SrcIP, s.IP.DstIP, s.IP.TTL, s.IP.TOS, s.IP.Id, s.IP.Flags = frames.CardIP, frames.HostIP, 64, ecn, 0, layers.IPv4DontFragment
	s.UDP.SrcPort, s.UDP.DstPort = frames.CardPort, frames.HostPort
	return s.Bytes()
}

// fixed is an endpoint that sends what a test gives it.
type fixed struct {
	ethernet.Endpoint
	body []byte
	mark wire.ECN
	got  wire.ECN
	now  uint64
}

func (f *fixed) Own() wire.Address { return frames.CardAddress }
func (f *fixed) Cycles() uint64    { return f.now }
func (f *fixed) Count(string)      {}

func (f *fixed) Receive(_ []byte, _ wire.Address, mark wire.ECN) { f.got = mark }

func (f *fixed) Send(dst []byte) ([]byte, wire.Address, wire.ECN, bool) {
	body := f.body
	f.body = nil
	return append(dst, body...), wire.Address{Station: 0x1234_c0a85401, MAC: 0x061122334455}, f.mark, body != nil
}

// TestChecksumsAndMarksThatLeave: every UDP checksum is right, that which would be 0 leaves as 0xffff,
// and the mark is the ECN field.
func TestChecksumsAndMarksThatLeave(t *testing.T) {
	f := &fixed{}
	card, err := ethernet.New(f, 1)
	require.NoError(t, err)
	zeros := 0
	for word := range 1 << 16 {
		body := binary.BigEndian.AppendUint16(make([]byte, 18, 20), uint16(word))
		f.body, f.mark = body, wire.ECN(word&3)
		frame, _, ok := card.Send(nil)
		require.True(t, ok)
		want := fromCard(t, body, uint8(word&3))
		if want[40] == 0 && want[41] == 0 { // gopacket sends a 0, which is no checksum
			want = edited(edited(want, 40, 0xff), 41, 0xff)
		}
		if frame[40] == 0xff && frame[41] == 0xff {
			zeros++
		}
		require.Equal(t, want, frame)
	}
	assert.Positive(t, zeros)
}

// TestMarksThatCome: the mark of a datagram is the ECN field, whatever else is in TOS.
func TestMarksThatCome(t *testing.T) {
	f := &fixed{}
	card, err := ethernet.New(f, 1)
	require.NoError(t, err)
	for tos := range 256 {
		datagram := frames.NewDatagram(frames.Question())
		datagram.IP.TOS = uint8(tos)
		card.Receive(0, datagram.Bytes())
		require.EqualValues(t, tos&3, f.got)
	}
}

// TestANewAddress: a write of the card's address takes effect when its reply has left.
func TestANewAddress(t *testing.T) {
	s := newSite(t, "model", 1)
	write := func(addr uint32, value uint64) { // the reply comes from the old address
		t.Helper()
		all := s.send(0, frames.NewDatagram(frames.Access(wire.KindRegWrite, addr, value)).Bytes())
		require.Len(t, all, 1)
		require.EqualValues(t, frames.CardMAC, all[0].frame[6:12])
		require.EqualValues(t, frames.CardIP, all[0].frame[26:30])
	}
	write(wire.RegOwner, 7)
	write(wire.RegCardAddress, 0x1111_c0a85443)
	moved := frames.NewDatagram(frames.Access(wire.KindRegWrite, wire.RegCardMAC, 0x02_0000000009))
	moved.IP.DstIP, moved.UDP.DstPort = []byte{192, 168, 84, 67}, 0x1111
	all := s.send(0, moved.Bytes())
	require.Len(t, all, 1)
	require.EqualValues(t, frames.CardMAC, all[0].frame[6:12])
	require.Equal(t, []byte{192, 168, 84, 67}, all[0].frame[26:30])

	require.Empty(t, s.send(0, frames.ARPRequest(frames.ToAll, frames.CardIP)))
	all = s.send(0, frames.ARPRequest(frames.ToAll, []byte{192, 168, 84, 67}))
	require.Len(t, all, 1)
	require.Equal(t, []byte{2, 0, 0, 0, 0, 9}, all[0].frame[6:12])
}

// TestPorts: a card has 1 to 256 Ethernet ports.
func TestPorts(t *testing.T) {
	for _, ports := range []int{0, 257} {
		_, err := ethernet.New(&fixed{}, ports)
		assert.ErrorContains(t, err, "from 1 to 256")
	}
}
