package ethernet_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/ethernet"
	"tributary/verify/system/frames"
)

// strangerMAC is a station that has sent nothing.
var strangerMAC = net.HardwareAddr{0x06, 0, 0, 0, 0, 0x99}

// stationMAC returns the MAC address of a station of the tests.
func stationMAC(n int) net.HardwareAddr {
	return binary.BigEndian.AppendUint32(net.HardwareAddr{0x06, 0x77}, uint32(n))
}

// ports returns where frames left.
func ports(all []left) (at []int) {
	for _, l := range all {
		at = append(at, l.port)
	}
	return at
}

// TestLearning follows stations from port to port.
func TestLearning(t *testing.T) {
	s := newSite(t, "model", 4)
	a, b := stationMAC(1), stationMAC(2)
	pass := func(at int, from, to net.HardwareAddr, want ...int) {
		t.Helper()
		frame := frames.Strange(from, to, 1, 2, 3)
		all := s.send(at, frame)
		assert.Equal(t, want, ports(all))
		for _, l := range all {
			assert.Equal(t, frame, l.frame)
		}
	}
	pass(0, a, b, 1, 2, 3)            // b is not known
	pass(2, b, a, 0)                  // a is
	pass(0, a, b, 2)                  // and b
	pass(1, a, b, 2)                  // a moves
	pass(2, b, a, 1)                  //
	pass(1, b, a)                     // b is where a is
	pass(1, a, frames.ToAll, 0, 2, 3) // a group is everywhere
	pass(3, stationMAC(3), net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, 0, 1, 2)
	pass(3, net.HardwareAddr{0x01, 0, 0, 0, 0, 1}, a, 1)                                         // and is not learned
	pass(0, stationMAC(3), net.HardwareAddr{0x01, 0, 0, 0, 0, 1}, 1, 2, 3)                       //
	pass(0, stationMAC(3), frames.CardMAC)                                                       // the card is at no port
	assert.Equal(t, map[string]uint64{"passed": 9}, s.counts())                                  // once each
	assert.Equal(t, []int{0}, ports(s.send(2, edited(frames.Strange(b, stationMAC(3)), 20, 5)))) // it moved
}

// TestWhatIsLearned: each good frame is, also one for the card; a damaged one is not.
func TestWhatIsLearned(t *testing.T) {
	to := func(s *site) []int { return ports(s.send(0, frames.Strange(stationMAC(1), frames.HostMAC))) }
	for _, c := range []struct {
		name string
		make func(*frames.Datagram)
		want []int
	}{
		{"a datagram", func(*frames.Datagram) {}, []int{2}},
		{"bad UDP", func(s *frames.Datagram) { s.UDP.DstPort++ }, []int{2}},
		{"bad FCS", frames.Faults[0].Make, []int{1, 2}},
		{"runt", frames.Faults[1].Make, []int{1, 2}},
		{"oversize", frames.Faults[2].Make, []int{1, 2}},
	} {
		s := newSite(t, "cpu", 3)
		datagram := frames.NewDatagram(frames.Question())
		c.make(datagram)
		s.send(2, datagram.Bytes())
		assert.Equal(t, c.want, to(s), c.name)
	}
}

// TestForgetting: a station is forgotten after 300 seconds of silence, of 100,000,000 cycles each.
func TestForgetting(t *testing.T) {
	f := &fixed{now: 5}
	card, err := ethernet.New(f, 3)
	require.NoError(t, err)
	s := &site{t, f, card}
	s.send(1, frames.Strange(stationMAC(1), frames.ToAll))
	f.now += 30_000_000_000 - 1
	assert.Equal(t, []int{1}, ports(s.send(0, frames.Strange(stationMAC(2), stationMAC(1)))))
	f.now++
	assert.Equal(t, []int{1, 2}, ports(s.send(0, frames.Strange(stationMAC(2), stationMAC(1)))))
	assert.Equal(t, []int{0}, ports(s.send(1, frames.Strange(stationMAC(1), stationMAC(2)))))
	assert.Equal(t, []int{1}, ports(s.send(0, frames.Strange(stationMAC(2), stationMAC(1)))))
}

// TestATableThatIsFull forgets the station that was silent for longest.
func TestATableThatIsFull(t *testing.T) {
	s := newSite(t, "model", 3)
	const room = 1024
	for n := range room {
		s.send(1, frames.Strange(stationMAC(n), frames.ToAll))
	}
	s.send(1, frames.Strange(stationMAC(0), frames.ToAll))    // heard again
	s.send(1, frames.Strange(stationMAC(room), frames.ToAll)) // in the place of station 1
	nobody := net.HardwareAddr{0x01, 0, 0, 0, 0, 1}           // a group, so that the table keeps what it has
	for n, want := range map[int][]int{0: {1}, 2: {1}, room: {1}, 1: {1, 2}} {
		assert.Equal(t, want, ports(s.send(0, frames.Strange(nobody, stationMAC(n)))), n)
	}
}

// TestOrderAndBytes: random frames pass byte for byte, in their order, also between frames for the card.
func TestOrderAndBytes(t *testing.T) {
	s := newSite(t, "model", 2)
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 2000 {
		from := n % 2
		data := make([]byte, rng.IntN(9018-14))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		frame := frames.Strange(stationMAC(from), stationMAC(1-from), data...)
		binary.BigEndian.PutUint16(frame[12:], uint16(rng.Uint32())|0x8000) // any EtherType but IPv4 and ARP
		frame = frames.Closed(frame[:len(frame)-4])
		require.Equal(t, []left{{1 - from, frame}}, s.send(from, frame))
		if n%7 == 0 {
			require.Len(t, s.send(from, frames.NewDatagram(frames.Question()).Bytes()), 1)
		}
	}
	assert.Equal(t, map[string]uint64{"passed": 2000}, s.counts())
}

// TestCausesInOrder: answers leave before datagrams, and these before frames that pass.
func TestCausesInOrder(t *testing.T) {
	s := newSite(t, "model", 3)
	s.card.Receive(0, frames.Strange(stationMAC(1), frames.ToAll, 1))
	s.card.Receive(1, frames.Strange(stationMAC(2), frames.ToAll, 2))
	s.card.Receive(0, frames.NewDatagram(frames.Question()).Bytes())
	s.card.Receive(2, frames.ARPRequest(frames.ToAll, frames.CardIP))
	all := s.drain()
	require.Equal(t, []int{2, 0, 1, 2, 0, 2}, ports(all))
	assert.Equal(t, all[2].frame, all[3].frame)
	assert.Equal(t, all[4].frame, all[5].frame)
	assert.EqualValues(t, 2, all[4].frame[14])
}

// TestAFullQueue: a frame without room is dropped whole and counted.
func TestAFullQueue(t *testing.T) {
	s := newSite(t, "model", 3)
	const room = 256
	for n := range room + 2 {
		s.card.Receive(0, frames.Strange(stationMAC(1), frames.ToAll, byte(n), byte(n>>8)))
	}
	all := s.drain()
	require.Len(t, all, 2*room)
	assert.Equal(t, []byte{255, 0}, all[2*room-1].frame[14:16])
	assert.Equal(t, map[string]uint64{"passed": room, "dropped": 2}, s.counts())
}
