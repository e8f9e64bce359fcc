package ethernet

import (
	"container/list"

	"tributary/driver/virtual/clock"
)

// A card remembers this many MAC addresses, and forgets each that is silent for this time.
const (
	maxStations = 1024
	forget      = 300 * clock.Rate // cycles
)

// stations is what a card has learned: the Ethernet ports of MAC addresses. A newer address takes the
// place of that which has been silent for longest.
type stations struct {
	known map[mac]*list.Element
	heard list.List // of *learned; the one heard last is in front
}

// learned is where a MAC address was heard last, and when.
type learned struct {
	mac  mac
	port int
	at   uint64 // clock cycles
}

func newStations() *stations { return &stations{known: map[mac]*list.Element{}} }

// learn notes that a frame from a MAC address came at a port. Group addresses are nobody's.
func (s *stations) learn(m mac, port int, now uint64) {
	if m.isGroup() {
		return
	}
	if e := s.known[m]; e != nil {
		*e.Value.(*learned) = learned{m, port, now}
		s.heard.MoveToFront(e)
		return
	}
	if len(s.known) == maxStations {
		delete(s.known, s.heard.Remove(s.heard.Back()).(*learned).mac)
	}
	s.known[m] = s.heard.PushFront(&learned{m, port, now})
}

// find returns the port of a MAC address. ok is false for a group, and if the address is not known.
func (s *stations) find(m mac, now uint64) (port int, ok bool) {
	e := s.known[m]
	if e == nil {
		return 0, false
	}
	l := e.Value.(*learned)
	return l.port, now-l.at < forget
}
