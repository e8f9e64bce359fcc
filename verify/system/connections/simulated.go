package connections

import "tributary/driver/virtual/simulator"

// Simulated is a card in a simulator's process, for a cable.Room: an ethernet.Device. Its clock runs while
// frames come or leave, and for a while after. Then the gateware rests, however long the room's timers last.
// So frames come while others are under way in the card, as on a real network.
//
// The process may be ahead of the room's clock by a few hundred cycles, as the machine has it. So runs with
// the same seed see the same faults only as long as frames leave in the same order.
type Simulated struct {
	// Watch, unless it is nil, sees each frame that leaves.
	Watch func(frame []byte)

	card  *simulator.Card
	link  int      // bits a cycle
	now   uint64   // the room's clock
	until uint64   // it rests from then on
	owed  uint64   // cycles that have passed in the room, and not in the card
	ports []uint64 // when the last frame of each has come
}

// Clock cycles: what a frame takes in the card at most while nothing moves at its ports, and a step, which
// saves calls of the process. Also the bits of a frame on the wire that are not in it.
const (
	quiet = 1024
	step  = 512
	apart = 8 * 24
)

// Simulate returns the card of a process, whose Ethernet ports move so many bits a cycle.
func Simulate(card *simulator.Card, ports, link int) *Simulated {
	card.RunFreely()
	return &Simulated{card: card, link: link, ports: make([]uint64, ports)}
}

// Restart sets a resting card's clock to 0, as a new room's.
func (s *Simulated) Restart() {
	s.now, s.until, s.owed = 0, 0, 0
	clear(s.ports)
}

// Cycles returns the room's clock.
func (s *Simulated) Cycles() uint64 { return s.now }

// Err returns why the process has ended, or nil.
func (s *Simulated) Err() error { return s.card.Err() }

// Advance advances the room's clock. The card follows in steps.
func (s *Simulated) Advance(cycles uint64) {
	if s.now < s.until {
		s.owed += min(cycles, s.until-s.now)
	}
	s.now += cycles
	if s.owed >= step || s.owed > 0 && s.now >= s.until {
		s.card.Advance(s.owed)
		s.owed = 0
	}
}

// Deadline returns the end of the next step. ok is false while the card rests.
func (s *Simulated) Deadline() (cycle uint64, ok bool) {
	return min(s.now+step-s.owed, s.until), s.now < s.until
}

// Step lets the card run so many cycles at most, while the room's clock stands. It returns false if the card
// rests.
func (s *Simulated) Step(cycles uint64) bool {
	if s.now >= s.until {
		return false
	}
	cycles = min(cycles, s.until-s.now)
	s.card.Advance(cycles)
	s.until -= cycles
	for port := range s.ports {
		s.ports[port] -= min(cycles, s.ports[port])
	}
	return true
}

// Receive lets a frame come at a port, behind those that have not come yet.
func (s *Simulated) Receive(port int, frame []byte) {
	came := &s.ports[port]
	*came = max(*came, s.now) + uint64((8*len(frame)+apart)/s.link)
	s.until = max(s.until, *came+s.time())
	s.card.Receive(port, frame)
	s.card.Advance(0) // the process may have run on since it was last heard; the frame's time begins now
}

// time returns the time that the card works on a frame at most, without a movement at its ports.
func (s *Simulated) time() uint64 { return uint64(max(quiet, 4*quiet*8/s.link)) }

// Send appends the next frame that has left, and returns its port.
func (s *Simulated) Send(dst []byte) (frame []byte, port int, ok bool) {
	frame, port, ok = s.card.Send(dst)
	if ok {
		s.until = max(s.until, s.now+s.time())
		if s.Watch != nil {
			s.Watch(frame[len(dst):])
		}
	}
	return frame, port, ok
}
