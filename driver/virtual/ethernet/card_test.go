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
var endpoints = map[string]func(ports int) (ethernet.Endpoint, error){
	"model": func(ports int) (ethernet.Endpoint, error) {
		return model.NewEndpoint(model.Config{
			Lanes: 1, Ports: 4, Chunk: 4, Window: 4, Shell: wire.ShellUDP, Link: 64, Ethernet: ports,
		}, cardAddress)
	},
	"cpu": func(ports int) (ethernet.Endpoint, error) {
		return cpu.NewEndpoint(cpu.Config{
			Lanes: 1, Ports: 4, Chunk: 4, Window: 4, Shell: wire.ShellUDP, Link: 64, Ethernet: ports,
		}, cardAddress)
	},
}

// newSite returns a card with Ethernet ports around an endpoint.
func newSite(t testing.TB, name string, ports int) *site {
	t.Helper()
	endpoint, err := endpoints[name](ports)
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
		s.endpoint.Receive(access(wire.KindRegRead, wire.CounterAddr(len(wire.Counters)+i), 0), wire.Address{}, wire.ECT0)
		reply, _, _, ok := s.endpoint.Send(nil)
		require.True(s, ok)
		if n := binary.LittleEndian.Uint64(reply[wire.BaseHeaderBytes:]); n > 0 {
			all[c.Name] = n
		}
	}
	return all
}

// fault is a fault of a datagram's frame, and the counter that it belongs to; "" is passed on.
type fault struct {
	name, reason string
	make         func(s *sent)
}

// faults are in the order of the checks.
var faults = []fault{
	{"FCS", "fcs", func(s *sent) { s.badFCS = true }},
	{"runt", "runt", func(s *sent) {
		s.damage = append(s.damage, func(b []byte) []byte { return b[:59] })
	}},
	{"oversize", "oversize", func(s *sent) {
		s.damage = append(s.damage, func(b []byte) []byte { return append(b, make([]byte, 9019-len(b))...) })
	}},
	{"other station", "", func(s *sent) { s.ether.DstMAC = hostMAC }},
	{"all stations", "", func(s *sent) { s.ether.DstMAC = toAll }},
	{"VLAN tag", "", func(s *sent) {
		s.ether.EthernetType = layers.EthernetTypeDot1Q
		s.tag = []gopacket.SerializableLayer{&layers.Dot1Q{VLANIdentifier: 1, Type: layers.EthernetTypeIPv4}}
	}},
	{"IPv6", "", func(s *sent) { s.ether.EthernetType = layers.EthernetTypeIPv6 }},
	{"version 5", "ip_header", func(s *sent) { s.ip.Version = 5 }},
	{"options", "ip_header", func(s *sent) { s.ip.IHL = 6 }},
	{"IP checksum", "ip_checksum", func(s *sent) {
		s.damage = append(s.damage, func(b []byte) []byte { b[25] ^= 1; return b })
	}},
	{"more fragments", "fragment", func(s *sent) { s.ip.Flags = layers.IPv4MoreFragments }},
	{"last fragment", "fragment", func(s *sent) { s.ip.FragOffset = 185 }},
	{"longer than its frame", "ip_length", func(s *sent) { s.lengths(8000) }},
	{"too short", "ip_length", func(s *sent) { s.ip.Length = 27 }},
	{"IP address", "ip_address", func(s *sent) { s.ip.DstIP = hostIP }},
	{"TCP", "protocol", func(s *sent) { s.ip.Protocol = layers.IPProtocolTCP }},
	{"ICMP, no echo", "protocol", func(s *sent) { s.ip.Protocol = layers.IPProtocolICMPv4 }},
	{"UDP too long", "udp_length", func(s *sent) { s.udp.Length++ }},
	{"UDP too short", "udp_length", func(s *sent) { s.udp.Length-- }},
	{"UDP checksum", "checksum", func(s *sent) {
		s.damage = append(s.damage, func(b []byte) []byte { b[41] ^= 1; return b })
	}},
	{"no UDP checksum", "checksum", func(s *sent) {
		s.damage = append(s.damage, func(b []byte) []byte { b[40], b[41] = 0, 0; return b })
	}},
	{"UDP port", "udp_port", func(s *sent) { s.udp.DstPort++ }},
	{"short datagram", "short", func(s *sent) { s.body = s.body[:17]; s.lengths(17) }},
	{"CRC", "datagram_crc", func(s *sent) { s.body[17] ^= 1 }},
}

// question is the body of the datagrams that the tests damage.
func question() []byte { return access(wire.KindRegRead, wire.RegPorts, 0) }

// TestEachFault: a frame with one fault has no effect but the count of its reason.
func TestEachFault(t *testing.T) {
	for name := range endpoints {
		for _, f := range faults {
			s := newSite(t, name, 1)
			datagram := newSent(question())
			f.make(datagram)
			assert.Empty(t, s.send(0, datagram.frame(t)), "%s, %s", name, f.name)
			want := map[string]uint64{f.reason: 1}
			delete(want, "")
			assert.Equal(t, want, s.counts(), "%s, %s", name, f.name)
		}
	}
}

// alike are pairs of faults of the same field, of which only one can be made.
var alike = map[[2]string]bool{
	{"VLAN tag", "IPv6"}: true, {"other station", "all stations"}: true, {"longer than its frame", "too short"}: true,
	{"TCP", "ICMP, no echo"}: true, {"UDP too long", "UDP too short"}: true, {"short datagram", "CRC"}: true,
	{"UDP checksum", "no UDP checksum"}: true,
	// A short one repairs the lengths, and a long one makes them again.
	{"longer than its frame", "short datagram"}: true, {"too short", "short datagram"}: true,
	{"UDP too long", "short datagram"}: true, {"UDP too short", "short datagram"}: true,
}

// TestTheFirstFaultCounts: of two faults, that of the earlier check counts.
func TestTheFirstFaultCounts(t *testing.T) {
	for i, first := range faults {
		for _, second := range faults[i+1:] {
			if alike[[2]string{first.name, second.name}] || first.name == "runt" && second.name == "oversize" {
				continue
			}
			s := newSite(t, "model", 1)
			datagram := newSent(question())
			second.make(datagram)
			first.make(datagram)
			assert.Empty(t, s.send(0, datagram.frame(t)))
			want := map[string]uint64{first.reason: 1}
			delete(want, "")
			assert.Equal(t, want, s.counts(), "%s, %s", first.name, second.name)
		}
	}
}

// TestSizesAtTheLimits: the largest frame is taken, with all behind its packet as padding.
func TestSizesAtTheLimits(t *testing.T) {
	s := newSite(t, "model", 1)
	for _, size := range []int{60, 61, 9018} {
		datagram := newSent(question())
		datagram.damage = append(datagram.damage, func(b []byte) []byte { return append(b, make([]byte, size-len(b))...) })
		require.Len(t, s.send(0, datagram.frame(t)), 1, size)
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
	want := closed(append([]byte{
		0x06, 0x11, 0x22, 0x33, 0x44, 0x55, 0x02, 0x54, 0x52, 0x42, 0, 1, 0x08, 0x06,
		0, 1, 0x08, 0, 6, 4, 0, 2, 0x02, 0x54, 0x52, 0x42, 0, 1, 192, 168, 84, 66, 0x06, 0x11, 0x22, 0x33, 0x44, 0x55, 192, 168, 84, 1,
	}, make([]byte, 18)...))
	assert.Equal(t, []left{{2, want}}, s.send(2, arpRequest(t, toAll, cardIP)))
	assert.Equal(t, []left{{1, want}}, s.send(1, arpRequest(t, cardMAC, cardIP)))

	// It goes to the sender in the request, not to that of the frame.
	proxied := arpRequest(t, toAll, cardIP)
	copy(proxied[6:12], []byte{2, 2, 2, 2, 2, 2})
	assert.Equal(t, []left{{0, want}}, s.send(0, closed(proxied[:60])))
	assert.Empty(t, s.counts())
}

// TestOtherARP: what is no request for the card's address belongs to others.
func TestOtherARP(t *testing.T) {
	for _, c := range []struct {
		name  string
		ports int // where it leaves
		frame []byte
	}{
		{"for another address", 2, arpRequest(t, toAll, hostIP)},
		{"for the card, to another station", 2, arpRequest(t, strangerMAC, cardIP)},
		{"for another address, to the card", 0, arpRequest(t, cardMAC, hostIP)},
		{"a reply", 2, edited(arpRequest(t, toAll, cardIP), 21, 2)},
		{"of another hardware", 2, edited(arpRequest(t, toAll, cardIP), 15, 6)},
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
	return closed(body)
}

// TestEcho compares the answers with those that gopacket makes.
func TestEcho(t *testing.T) {
	s := newSite(t, "model", 2)
	for _, size := range []int{0, 1, 2, 17, 18, 19, 56, 1471, 1472} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * 7)
		}
		want := closed(serialized(t,
			&layers.Ethernet{SrcMAC: cardMAC, DstMAC: hostMAC, EthernetType: layers.EthernetTypeIPv4},
			&layers.IPv4{
				Version: 4, IHL: 5, TTL: 64, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolICMPv4, SrcIP: cardIP, DstIP: hostIP,
				Length: uint16(28 + size),
			},
			&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoReply, 0), Id: 0xbeef, Seq: 0x0102},
			gopacket.Payload(data)))
		require.Equal(t, []left{{1, want}}, s.send(1, echoRequest(t, 0, data)), size)
	}
	assert.Empty(t, s.counts())
	assert.Empty(t, s.send(0, echoRequest(t, 0, make([]byte, 1473))))
	assert.Empty(t, s.send(0, echoRequest(t, 1, nil)))
	assert.Empty(t, s.send(0, edited(echoRequest(t, 0, nil), 36, 0)))
	assert.Equal(t, map[string]uint64{"dropped": 1, "protocol": 1, "checksum": 1}, s.counts())
}

// TestEveryEchoChecksum: the checksum of an answer is right for each of the request's. Both forms of
// zero are.
func TestEveryEchoChecksum(t *testing.T) {
	s := newSite(t, "model", 1)
	base := echoRequest(t, 0, nil)
	for data := range 1 << 16 {
		request := append([]byte(nil), base[:60]...)
		binary.BigEndian.PutUint16(request[38:], uint16(data)) // the identifier
		binary.BigEndian.PutUint16(request[40:], 0)
		sum := 0xf7ff - data // the complement of type and identifier, modulo 0xffff
		if sum < 0 {
			sum += 0xffff
		}
		binary.BigEndian.PutUint16(request[36:], uint16(sum))
		all := s.send(0, closed(request))
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
	s.card.Receive(0, arpRequest(t, toAll, cardIP))
	s.card.Receive(0, echoRequest(t, 0, nil))
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
			all := s.send(1, newSent(access(wire.KindRegRead, addr, 0)).frame(t))
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
	s := newSent(body)
	s.ether.SrcMAC, s.ether.DstMAC = cardMAC, hostMAC
	s.ip.SrcIP, s.ip.DstIP, s.ip.TTL, s.ip.TOS, s.ip.Id, s.ip.Flags = cardIP, hostIP, 64, ecn, 0, layers.IPv4DontFragment
	s.udp.SrcPort, s.udp.DstPort = cardPort, hostPort
	return s.frame(t)
}

// fixed is an endpoint that sends what a test gives it.
type fixed struct {
	ethernet.Endpoint
	body []byte
	mark wire.ECN
	got  wire.ECN
	now  uint64
}

func (f *fixed) Own() wire.Address { return cardAddress }
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
		datagram := newSent(question())
		datagram.ip.TOS = uint8(tos)
		card.Receive(0, datagram.frame(t))
		require.EqualValues(t, tos&3, f.got)
	}
}

// TestANewAddress: a write of the card's address takes effect when its reply has left.
func TestANewAddress(t *testing.T) {
	s := newSite(t, "model", 1)
	write := func(addr uint32, value uint64) { // the reply comes from the old address
		t.Helper()
		all := s.send(0, newSent(access(wire.KindRegWrite, addr, value)).frame(t))
		require.Len(t, all, 1)
		require.EqualValues(t, cardMAC, all[0].frame[6:12])
		require.EqualValues(t, cardIP, all[0].frame[26:30])
	}
	write(wire.RegOwner, 7)
	write(wire.RegCardAddress, 0x1111_c0a85443)
	moved := newSent(access(wire.KindRegWrite, wire.RegCardMAC, 0x02_0000000009))
	moved.ip.DstIP, moved.udp.DstPort = []byte{192, 168, 84, 67}, 0x1111
	all := s.send(0, moved.frame(t))
	require.Len(t, all, 1)
	require.EqualValues(t, cardMAC, all[0].frame[6:12])
	require.Equal(t, []byte{192, 168, 84, 67}, all[0].frame[26:30])

	require.Empty(t, s.send(0, arpRequest(t, toAll, cardIP)))
	all = s.send(0, arpRequest(t, toAll, []byte{192, 168, 84, 67}))
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
