package ethernet_test

import (
	"bytes"
	"maps"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// FuzzReceive sends two frames, each as it is and with a right FCS. Whatever they are, gopacket finds
// every frame that leaves whole and its checksums right, a frame that passes has the same bytes, and
// each other one is answered, counted, taken or ignored.
func FuzzReceive(f *testing.F) {
	f.Add(arpRequest(f, toAll, cardIP), echoRequest(f, 0, []byte{1, 2, 3}))
	f.Add(newSent(question()).frame(f), strange(hostMAC, toAll))
	f.Add(newSent(access(wire.KindRegWrite, wire.RegOwner, 7)).frame(f), newSent(access(wire.KindRegWrite, wire.RegCardMAC, 0)).frame(f))
	for _, fault := range faults {
		datagram := newSent(question())
		fault.make(datagram)
		f.Add(datagram.frame(f), []byte{})
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		s := newSite(t, "model", 3)
		for i, frame := range [][]byte{first, closed(first), second, closed(second)} {
			before := s.counts()
			all := s.send(i%3, frame)
			rose := uint64(0)
			for name, n := range s.counts() {
				rose += n - before[name]
			}
			require.LessOrEqual(t, rose, uint64(1), "a frame is counted once")
			for _, l := range all {
				require.Less(t, l.port, 3)
				if bytes.Equal(l.frame, frame) {
					require.NotEqual(t, i%3, l.port)
					require.EqualValues(t, 1, rose)
					continue
				}
				require.Equal(t, i%3, l.port, "an answer goes back")
				requireSound(t, l.frame)
			}
			if len(all) == 0 && maps.Equal(before, s.counts()) {
				require.Equal(t, closed(frame[:max(0, len(frame)-4)]), frame, "what is damaged is counted")
			}
		}
	})
}

// requireSound checks a frame that the card made: FCS, lengths and checksums, as gopacket sees them.
func requireSound(t *testing.T, frame []byte) {
	t.Helper()
	body := frame[:len(frame)-4]
	require.Equal(t, closed(bytes.Clone(body)), frame)
	require.GreaterOrEqual(t, len(body), 60)
	p := gopacket.NewPacket(body, layers.LayerTypeEthernet, gopacket.Default)
	require.Nil(t, p.ErrorLayer())
	if p.Layer(layers.LayerTypeARP) != nil {
		return
	}
	network := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	if u, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP); ok {
		require.NoError(t, u.SetNetworkLayerForChecksum(network))
		require.NotZero(t, u.Checksum)
	}
	err, mismatches := p.VerifyChecksums()
	require.NoError(t, err)
	require.Empty(t, mismatches)
	require.EqualValues(t, 64, network.TTL)
	require.Equal(t, layers.IPv4DontFragment, network.Flags)
}
