package cable

import (
	"math/rand/v2"
	"sync"

	"tributary/driver/frame"
)

// Place is a cable, by its port at the card, and a direction. frame.ToCard is before the card and
// frame.FromCard behind it.
type Place struct {
	Port      int
	Direction frame.Direction
}

// Losses decides which packets are lost on the cables of a card. It loses nothing but packets of
// RoCEv2. The zero value loses none.
type Losses struct {
	mu     sync.Mutex
	chance float64
	random *rand.Rand
	once   []func(Place, Packet) bool
	watch  func(Place, Packet)
	counts Counts
}

// Counts are numbers of packets of RoCEv2 that entered the cables.
type Counts struct {
	Passed [2]int // by direction
	Lost   [2]int
	NAKs   int // that hosts sent
}

// Share loses this share of all packets from now on, both ways.
func (l *Losses) Share(chance float64, seed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chance, l.random = chance, rand.New(rand.NewPCG(seed, 0))
}

// Once loses the next packet that is one, and no other.
func (l *Losses) Once(is func(Place, Packet) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.once = append(l.once, is)
}

// Watch calls see for each packet that enters a cable from now on, lost ones included. see must not call l.
func (l *Losses) Watch(see func(Place, Packet)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = see
}

// Pending returns how many packets of Once have not come yet.
func (l *Losses) Pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.once)
}

// Reset loses and watches nothing from now on, and returns the counts since the last call.
func (l *Losses) Reset() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := l.counts
	l.chance, l.once, l.watch, l.counts = 0, nil, nil, Counts{}
	return counts
}

// Pass returns the Pass of the cable at a port.
func (l *Losses) Pass(port int) Pass {
	return func(d frame.Direction, bytes []byte) bool { return !l.lose(Place{port, d}, bytes) }
}

func (l *Losses) lose(at Place, bytes []byte) bool {
	p, ok := Parse(bytes)
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch != nil {
		l.watch(at, p)
	}
	if p.IsNAK() && at.Direction == frame.ToCard {
		l.counts.NAKs++
	}
	if l.isLost(at, p) {
		l.counts.Lost[at.Direction]++
		return true
	}
	l.counts.Passed[at.Direction]++
	return false
}

// isLost reports whether a packet is lost; mu must be held.
func (l *Losses) isLost(at Place, p Packet) bool {
	for i, is := range l.once {
		if is(at, p) {
			l.once = append(l.once[:i], l.once[i+1:]...)
			return true
		}
	}
	return l.chance > 0 && l.random.Float64() < l.chance
}
