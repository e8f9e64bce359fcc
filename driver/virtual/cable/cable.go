// Package cable joins Ethernet ports of devices in software by cables with faults, on one virtual clock. A
// seed decides all faults, so each run is the same on every machine, however busy.
//
//	room := cable.NewRoom(1)
//	a, b, card := room.Place(hostA), room.Place(hostB), room.Place(card)
//	room.Join(cable.Port{Device: a}, cable.Port{Device: card, Port: 0}, cable.Faults{Loss: 0.02})
//	room.Join(cable.Port{Device: b}, cable.Port{Device: card, Port: 1}, cable.Faults{})
//	room.Run(time.Second, func() bool { return done })
package cable

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/ethernet"
)

// Port is an Ethernet port of a device in a room.
type Port struct {
	Device int // as Place returned it
	Port   int
}

// Faults is what a cable does to frames, in both directions.
type Faults struct {
	Latency time.Duration // of each frame; 0 means a microsecond
	Jitter  time.Duration // added at most; frames overtake each other
	Loss    float64       // part of the frames that are lost
	Twice   float64       // part of the others that arrive twice, both with jitter of their own
	Damage  float64       // part of those that arrive with a bit turned over

	// Drop, unless it is nil, decides about each frame, by the port that it leaves from.
	Drop func(from Port, frame []byte) bool
}

// Counters counts frames of a room.
type Counters struct{ Carried, Lost, Twice, Damaged int }

// Room holds devices, cables and the clock. It is for calls from one goroutine at a time.
type Room struct {
	rng     *rand.Rand
	devices []ethernet.Device
	cables  map[Port]end
	flying  flights
	now     uint64 // clock cycles
	order   int    // of flights of the same time
	counts  Counters
}

// end is a cable as one of its ports sees it.
type end struct {
	to     Port
	faults *Faults
}

// timed is a device that knows when its next timer ends.
type timed interface {
	Deadline() (cycle uint64, ok bool)
}

// NewRoom returns an empty room.
func NewRoom(seed uint64) *Room {
	return &Room{rng: rand.New(rand.NewPCG(seed, 0)), cables: map[Port]end{}}
}

// Place puts a device into the room, whose clock shows 0, and returns its number. A device with a method
// Deadline() (cycle uint64, ok bool) has its timers served on the cycle.
func (r *Room) Place(d ethernet.Device) int {
	r.devices = append(r.devices, d)
	return len(r.devices) - 1
}

// Join lays a cable between two ports. Frames that leave from a port without one are lost. The faults may
// change while the room rests: Join returns them.
func (r *Room) Join(a, b Port, f Faults) *Faults {
	faults := &f
	r.cables[a], r.cables[b] = end{b, faults}, end{a, faults}
	return faults
}

// Now returns the time since the room was made.
func (r *Room) Now() time.Duration { return time.Duration(r.now) * (time.Second / clock.Rate) }

// Counters returns what happened to frames until now.
func (r *Room) Counters() Counters { return r.counts }

// Run lets time pass until done returns true, or for at most a time. It reports whether done returned true.
// It asks after each frame and each timer.
func (r *Room) Run(most time.Duration, done func() bool) bool {
	end := r.now + clock.Cycles(most)
	for {
		r.collect()
		if done() {
			return true
		}
		at := min(r.next(), end)
		r.advance(at)
		if at == end && (len(r.flying) == 0 || r.flying[0].at > end) {
			r.collect()
			return done()
		}
		if len(r.flying) > 0 && r.flying[0].at == at {
			f := heap.Pop(&r.flying).(flight)
			r.devices[f.to.Device].Receive(f.to.Port, f.frame)
		}
	}
}

// collect takes all frames that leave devices.
func (r *Room) collect() {
	for i, d := range r.devices {
		for {
			frame, port, ok := d.Send(nil)
			if !ok {
				break
			}
			r.carry(Port{i, port}, frame)
		}
	}
}

// carry puts a frame on its way.
func (r *Room) carry(from Port, frame []byte) {
	cable, ok := r.cables[from]
	if !ok {
		r.counts.Lost++
		return
	}
	f := cable.faults
	if f.Drop != nil && f.Drop(from, frame) || r.rng.Float64() < f.Loss {
		r.counts.Lost++
		return
	}
	r.fly(cable, frame)
	if r.rng.Float64() < f.Twice {
		r.counts.Twice++
		r.fly(cable, frame)
	}
}

// fly lets a frame arrive later.
func (r *Room) fly(cable end, frame []byte) {
	f := cable.faults
	late := f.Latency
	if late == 0 {
		late = time.Microsecond
	}
	if f.Jitter > 0 {
		late += time.Duration(r.rng.Int64N(int64(f.Jitter)))
	}
	if r.rng.Float64() < f.Damage {
		r.counts.Damaged++
		frame = append([]byte(nil), frame...)
		bit := r.rng.IntN(8 * len(frame))
		frame[bit/8] ^= 1 << (bit % 8)
	}
	r.counts.Carried++
	r.order++
	heap.Push(&r.flying, flight{r.now + max(1, clock.Cycles(late)), r.order, cable.to, frame})
}

// next returns the cycle of the next arrival or timer.
func (r *Room) next() uint64 {
	at := uint64(math.MaxUint64)
	if len(r.flying) > 0 {
		at = r.flying[0].at
	}
	for _, d := range r.devices {
		if t, ok := d.(timed); ok {
			if cycle, ok := t.Deadline(); ok {
				at = min(at, max(cycle, r.now))
			}
		}
	}
	return at
}

// advance lets time pass on all devices.
func (r *Room) advance(to uint64) {
	for _, d := range r.devices {
		d.Advance(to - r.now)
	}
	r.now = to
}

// flight is a frame on its way.
type flight struct {
	at    uint64
	order int
	to    Port
	frame []byte
}

// flights is a heap of flights by time.
type flights []flight

func (f flights) Len() int { return len(f) }
func (f flights) Less(i, j int) bool {
	return f[i].at < f[j].at || f[i].at == f[j].at && f[i].order < f[j].order
}
func (f flights) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)   { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}
