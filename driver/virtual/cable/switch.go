package cable

// Switch is an Ethernet switch that knows its stations: an ethernet.Device that passes each frame to the
// port of its destination, as it is. Frames to others are dropped.
type Switch struct {
	stations map[[6]byte]int
	cycles   uint64
	waiting  []waiting
}

// waiting is a frame that leaves at a port.
type waiting struct {
	frame []byte
	port  int
}

// NewSwitch returns a switch with a station's port for each MAC address.
func NewSwitch(stations map[[6]byte]int) *Switch { return &Switch{stations: stations} }

// Cycles returns the switch's clock.
func (s *Switch) Cycles() uint64 { return s.cycles }

// Advance advances the switch's clock, which has no effect.
func (s *Switch) Advance(cycles uint64) { s.cycles += cycles }

// Err returns nil.
func (s *Switch) Err() error { return nil }

// Receive takes a frame at a port.
func (s *Switch) Receive(_ int, frame []byte) {
	if len(frame) < 6 {
		return
	}
	if port, ok := s.stations[[6]byte(frame)]; ok {
		s.waiting = append(s.waiting, waiting{append([]byte(nil), frame...), port})
	}
}

// Send appends the next frame that leaves to dst, and returns its port. ok is false if there is none.
func (s *Switch) Send(dst []byte) (frame []byte, port int, ok bool) {
	if len(s.waiting) == 0 {
		return dst, 0, false
	}
	w := s.waiting[0]
	s.waiting = s.waiting[1:]
	return append(dst, w.frame...), w.port, true
}
