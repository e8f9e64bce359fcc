package ethernet_test

import (
	"bytes"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// FuzzReceive sends two frames, each as it is and with a right FCS. Whatever they are, gopacket finds
// every frame that leaves whole and its checksums right, a frame that passes has the same bytes, and
// each other one is answered, counted, taken or ignored.
func FuzzReceive(f *testing.F) {
	f.Add(frames.ARPRequest(frames.ToAll, frames.CardIP), frames.EchoRequest(0, []byte{1, 2, 3}))
	f.Add(frames.NewDatagram(frames.Question()).Bytes(), frames.Strange(frames.HostMAC, frames.ToAll))
	f.Add(frames.NewDatagram(frames.Access(wire.KindRegWrite, wire.RegOwner, 7)).Bytes(), frames.NewDatagram(frames.Access(wire.KindRegWrite, wire.RegCardMAC, 0)).Bytes())
	for _, fault := range frames.Faults {
		datagram := frames.NewDatagram(frames.Question())
		fault.Make(datagram)
		f.Add(datagram.Bytes(), []byte{})
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		s := newSite(t, "model", 3)
		for i, frame := range [][]byte{first, frames.Closed(first), second, frames.Closed(second)} {
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
				require.NoError(t, frames.CheckSound(l.frame))
			}
			if len(all) == 0 && maps.Equal(before, s.counts()) {
				require.Equal(t, frames.Closed(frame[:max(0, len(frame)-4)]), frame, "what is damaged is counted")
			}
		}
	})
}
