package ethernet_test

import (
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/model"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// The frames of a card with a parent: a tree job of one member, whose own sum is its contribution.

const upwardPort = 0x7777

var (
	ownerAddress  = wire.Address{Station: 0x1111_0a000001, MAC: 0x0000_020000000001}
	parentAddress = wire.Address{Station: 0x5442_0a000009, MAC: 0x0001_020000000009}
)

// newChild returns a card with an up port and two Ethernet ports that has set the job up.
func newChild(t *testing.T, name string) *site {
	t.Helper()
	cfg := small(2)
	cfg.Parent = true
	endpoint, err := endpoints[name](cfg)
	require.NoError(t, err)
	for _, w := range [][2]uint64{
		{uint64(wire.RegOwner), 5}, {uint64(wire.RegJobToken), 5}, {uint64(wire.RegJobPorts), 1}, {uint64(wire.RegJobChunk), 1},
		{uint64(wire.RegJobWindow), 1}, {uint64(wire.RegJobParent), wire.Upward(2, upwardPort)}, {uint64(wire.RegJobRepeat), 1000},
		{uint64(wire.RegTreeRanks), 3}, {uint64(wire.RegParentAddress), parentAddress.Station}, {uint64(wire.RegParentMAC), parentAddress.MAC},
		{uint64(wire.RanksAddr(0)), 1}, {uint64(wire.RegMemberAddress), ownerAddress.Station}, {uint64(wire.RegMemberMAC), ownerAddress.MAC},
		{uint64(wire.RegJobCommit), 1 << 32},
	} {
		endpoint.Receive(frames.Access(wire.KindRegWrite, uint32(w[0]), w[1]), ownerAddress, wire.ECT0)
		reply, _, _, ok := endpoint.Send(nil)
		require.True(t, ok)
		require.Equal(t, byte(wire.CodeDone), reply[7], "%#x", w[0])
	}
	card, err := ethernet.New(endpoint, 2)
	require.NoError(t, err)
	return &site{t, endpoint, card}
}

// packet is the datagram of a packet of the job with one element.
func packet(kind wire.Kind, rank uint8, mask uint64) []byte {
	return model.AppendDatagram(nil, &model.Packet{
		Header: model.Header{
			Version: wire.Version, Kind: kind, Epoch: 1, Format: wire.FP32, Rank: rank, Length: 1, Mask: mask, Flags: uint8(wire.ECT0),
		},
		Payload: []byte{1, 2, 3, 4},
	})
}

// parse returns the datagram in a frame that left.
func parse(t *testing.T, frame []byte) (d frames.Datagram) {
	t.Helper()
	require.NoError(t, frames.CheckSound(frame))
	p := gopacket.NewPacket(frame[:len(frame)-4], layers.LayerTypeEthernet, gopacket.Default)
	require.Nil(t, p.ErrorLayer())
	d.Ether = *p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	d.IP = *p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	d.UDP = *p.Layer(layers.LayerTypeUDP).(*layers.UDP)
	d.Body = d.UDP.Payload
	return d
}

func TestFramesOfACardWithAParent(t *testing.T) {
	for name := range endpoints {
		t.Run(name, func(t *testing.T) { framesOfACardWithAParent(t, name) })
	}
}

func framesOfACardWithAParent(t *testing.T, name string) {
	s := newChild(t, name)
	s.endpoint.Receive(packet(wire.KindData, 0, 0), ownerAddress, wire.ECT1)
	all := s.drain()
	require.Len(t, all, 1)
	assert.Equal(t, 1, all[0].port, "the Ethernet port of PARENT_MAC")
	up := parse(t, all[0].frame)
	assert.EqualValues(t, upwardPort, up.UDP.SrcPort)
	assert.EqualValues(t, 0x5442, up.UDP.DstPort)
	assert.Equal(t, "10.0.0.9", up.IP.DstIP.String())
	assert.Equal(t, "02:00:00:00:00:09", up.Ether.DstMAC.String())
	assert.EqualValues(t, wire.ECT1, up.IP.TOS)
	assert.EqualValues(t, 2, up.Body[6], "the card's rank")
	assert.Equal(t, []byte{1, 2, 3, 4}, up.Body[14:18])

	// The final sum comes from the parent, to the upward UDP port.
	down := frames.NewDatagram(packet(wire.KindResult, 0, 3))
	down.Ether.SrcMAC = up.Ether.DstMAC
	down.IP.SrcIP = up.IP.DstIP
	down.UDP.SrcPort, down.UDP.DstPort = 0x5442, upwardPort+1
	assert.Empty(t, s.send(1, down.Bytes()))
	assert.Equal(t, map[string]uint64{"udp_port": 1}, s.counts())
	down.UDP.DstPort = upwardPort
	assert.Empty(t, s.send(0, down.Bytes()), "another Ethernet port")
	assert.Equal(t, map[string]uint64{"udp_port": 1, "stranger": 1}, s.counts())
	all = s.send(1, down.Bytes())
	require.Len(t, all, 1)
	result := parse(t, all[0].frame)
	assert.EqualValues(t, frames.CardAddress.Station>>32, result.UDP.SrcPort)
	assert.Equal(t, layers.UDPPort(0x1111), result.UDP.DstPort)
	assert.Equal(t, []byte{1, 2, 3, 4}, result.Body[30:34])
}
