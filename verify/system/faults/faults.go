// Package faults is a faulty link between a host and a card. It loses, repeats, reorders, delays
// and damages frames.
//
// The fault of a frame depends on a seed and on the frame: its number among the frames of the
// same direction, kind, job, rank and VID. So the same frames get the same faults in every run,
// whatever the scheduling of goroutines and processes.
package faults

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"tributary/driver/frame"
)

// Kind is a kind of fault. A frame has at most one.
type Kind int

// The kinds. A 16-bit CRC does not always detect the kinds from Garbage on.
const (
	Drop     Kind = iota
	Repeat        // the frame arrives twice
	Reorder       // the frame arrives after the next one
	Delay         // the frame arrives up to 200 ms later
	Flip          // one to three bits of the frame flip
	Burst         // a burst of up to 16 bits in the frame is damaged
	Stall         // the link pauses for some milliseconds before the frame
	Garbage       // random bytes arrive before the frame
	Scramble      // random bytes replace some of the frame
	Cut           // some bytes of the frame are missing
	Insert        // random bytes arrive inside the frame
)

// Kinds are the names of the kinds.
var Kinds = [...]string{"drop", "repeat", "reorder", "delay", "flip", "burst", "stall", "garbage", "scramble", "cut", "insert"}

// Rates are the probabilities of each kind, per frame and in each direction. Their sum is at most
// 1.
type Rates struct {
	Drop, Repeat, Reorder, Delay, Flip, Burst, Stall float64
	Garbage, Scramble, Cut, Insert                   float64

	Seed  uint64
	Pause time.Duration // before every write to the card
}

func (r *Rates) chances() [len(Kinds)]float64 {
	return [...]float64{r.Drop, r.Repeat, r.Reorder, r.Delay, r.Flip, r.Burst, r.Stall, r.Garbage, r.Scramble, r.Cut, r.Insert}
}

// Counts counts frames and faults; the index is a frame.Direction. Links may share one.
type Counts struct {
	Frames     [2]atomic.Int64 // frames that entered the link
	Faults     [2][len(Kinds)]atomic.Int64
	LetThrough [2]atomic.Int64 // frames with right CRCs that neither end sent
}

// Total returns the number of faults of all kinds.
func (c *Counts) Total() int64 {
	var n int64
	for kind := range Kinds {
		n += c.Of(Kind(kind))
	}
	return n
}

// Of returns the number of faults of a kind, in both directions.
func (c *Counts) Of(k Kind) int64 {
	return c.Faults[frame.ToCard][k].Load() + c.Faults[frame.FromCard][k].Load()
}

// fate draws the faults of frames.
type fate struct {
	seed    uint64
	chances []float64
	seen    map[identity]uint64
	source  rand.PCG
}

// identity distinguishes frames, except repetitions.
type identity struct {
	kind, job, rank uint8
	vid             uint32
}

func newFate(r Rates, d frame.Direction) *fate {
	chances := r.chances()
	return fateOf(r.Seed, d, chances[:])
}

// fateOf returns the fate of the frames of a direction, with the chances of kinds of any numbering.
func fateOf(seed uint64, d frame.Direction, chances []float64) *fate {
	return &fate{seed: mix(seed, uint64(d)+1), chances: chances, seen: map[identity]uint64{}}
}

const none Kind = -1

// draw returns the fault of a frame, and a random source for its details.
func (f *fate) draw(h *frame.Header) (Kind, *rand.Rand) {
	kind, rng := f.drawFor(identity{uint8(h.Kind), h.Job, h.Rank, h.VID})
	return Kind(kind), rng
}

// drawFor is draw for the next frame of an identity. The kind is -1 for none.
func (f *fate) drawFor(who identity) (kind int, rng *rand.Rand) {
	n := f.seen[who]
	f.seen[who]++
	f.source.Seed(mix(f.seed, uint64(who.job)<<48|uint64(who.kind)<<40|uint64(who.rank)<<32|uint64(who.vid)), n)
	rng = rand.New(&f.source)
	_ = rng.Uint64() // the first output depends on the seeds too directly
	x := rng.Float64()
	for kind, chance := range f.chances {
		if x < chance {
			return kind, rng
		}
		x -= chance
	}
	return int(none), rng
}

// mix is the finalizer of SplitMix64 over two numbers (Steele, Lea and Flood, "Fast
// splittable pseudorandom number generators", 2014).
func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + b
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
