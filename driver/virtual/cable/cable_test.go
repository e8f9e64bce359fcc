package cable_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"tributary/driver/virtual/cable"
)

// station sends what it is told, and keeps what comes.
type station struct {
	cycles   uint64
	leaving  [][]byte
	came     [][]byte
	at       []uint64
	deadline uint64 // 0 for none
	expired  []uint64
}

func (s *station) Cycles() uint64 { return s.cycles }
func (s *station) Err() error     { return nil }
func (s *station) Receive(_ int, frame []byte) {
	s.came, s.at = append(s.came, bytes.Clone(frame)), append(s.at, s.cycles)
}

func (s *station) Advance(n uint64) {
	s.cycles += n
	if s.deadline != 0 && s.cycles >= s.deadline {
		s.expired, s.deadline = append(s.expired, s.cycles), 0
	}
}

func (s *station) Deadline() (uint64, bool) { return s.deadline, s.deadline != 0 }

func (s *station) Send(dst []byte) ([]byte, int, bool) {
	if len(s.leaving) == 0 {
		return dst, 0, false
	}
	frame := s.leaving[0]
	s.leaving = s.leaving[1:]
	return append(dst, frame...), 0, true
}

// send returns a room where n frames have crossed a cable, and the station that received them.
func send(seed uint64, n int, f cable.Faults) (*cable.Room, *station) {
	from, to := &station{}, &station{}
	room := cable.NewRoom(seed)
	room.Join(cable.Port{Device: room.Place(from)}, cable.Port{Device: room.Place(to)}, f)
	for i := range n {
		from.leaving = append(from.leaving, []byte{byte(i >> 8), byte(i), 0, 0})
	}
	room.Run(time.Second, func() bool { return false })
	return room, to
}

// TestAGoodCable: frames arrive in order, a microsecond later.
func TestAGoodCable(t *testing.T) {
	room, to := send(1, 1000, cable.Faults{})
	assert.Equal(t, cable.Counters{Carried: 1000}, room.Counters())
	for i, frame := range to.came {
		assert.Equal(t, []byte{byte(i >> 8), byte(i), 0, 0}, frame)
		assert.EqualValues(t, 100, to.at[i])
	}
	assert.Equal(t, time.Second, room.Now())
}

// TestFaults: each fault happens about as often as it should, and nothing else does.
func TestFaults(t *testing.T) {
	room, to := send(1, 1000, cable.Faults{Loss: 0.1})
	lost := room.Counters().Lost
	assert.InDelta(t, 100, lost, 30)
	assert.Len(t, to.came, 1000-lost)

	room, to = send(1, 1000, cable.Faults{Twice: 0.1})
	assert.InDelta(t, 100, room.Counters().Twice, 30)
	assert.Len(t, to.came, 1000+room.Counters().Twice)

	room, to = send(1, 1000, cable.Faults{Damage: 0.1})
	assert.InDelta(t, 100, room.Counters().Damaged, 30)
	damaged := 0
	for i, frame := range to.came {
		if !bytes.Equal(frame, []byte{byte(i >> 8), byte(i), 0, 0}) {
			damaged++
		}
	}
	assert.Equal(t, room.Counters().Damaged, damaged)

	_, to = send(1, 1000, cable.Faults{Latency: 5 * time.Microsecond, Jitter: time.Microsecond})
	overtaken := 0
	for i, frame := range to.came {
		if i > 0 && bytes.Compare(frame, to.came[i-1]) < 0 {
			overtaken++
		}
		assert.GreaterOrEqual(t, to.at[i], uint64(500))
		assert.Less(t, to.at[i], uint64(600))
	}
	assert.Greater(t, overtaken, 50)
	assert.Len(t, to.came, 1000)
}

// TestSeeds: the same seed gives the same faults, another one others.
func TestSeeds(t *testing.T) {
	all := cable.Faults{Loss: 0.1, Twice: 0.1, Damage: 0.1, Jitter: time.Microsecond}
	_, one := send(1, 300, all)
	_, again := send(1, 300, all)
	_, other := send(2, 300, all)
	assert.Equal(t, one, again)
	assert.NotEqual(t, one.came, other.came)
}

// TestDrop: it sees each frame with the port that it leaves from.
func TestDrop(t *testing.T) {
	room, to := send(1, 10, cable.Faults{Drop: func(from cable.Port, frame []byte) bool {
		assert.Equal(t, cable.Port{Device: 0}, from)
		return frame[1]%2 == 0
	}})
	assert.Len(t, to.came, 5)
	assert.Equal(t, cable.Counters{Carried: 5, Lost: 5}, room.Counters())
}

// TestTimers: a device's timer ends on the cycle, and before a frame that comes later.
func TestTimers(t *testing.T) {
	s := &station{deadline: 12345}
	room := cable.NewRoom(1)
	room.Place(s)
	assert.True(t, room.Run(time.Second, func() bool { return len(s.expired) > 0 }))
	assert.Equal(t, []uint64{12345}, s.expired)
	assert.Equal(t, 123450*time.Nanosecond, room.Now())
	s.leaving = [][]byte{{1}} // no cable leads away
	assert.False(t, room.Run(time.Microsecond, func() bool { return false }))
	assert.Equal(t, cable.Counters{Lost: 1}, room.Counters())
	assert.Equal(t, 124450*time.Nanosecond, room.Now())
}

// TestSwitch: a frame leaves at its destination's port; one to nobody, or without an address, leaves nowhere.
func TestSwitch(t *testing.T) {
	s := cable.NewSwitch(map[[6]byte]int{{1, 2, 3, 4, 5, 6}: 3})
	for _, frame := range [][]byte{{1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 7, 7}, {1, 2, 3}} {
		s.Receive(0, frame)
	}
	frame, port, ok := s.Send(nil)
	assert.True(t, ok)
	assert.Equal(t, 3, port)
	assert.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7}, frame)
	_, _, ok = s.Send(nil)
	assert.False(t, ok)
}
