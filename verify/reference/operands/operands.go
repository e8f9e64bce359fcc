// Package operands makes sets of operands that are difficult for adders: every exponent distance,
// ties, ties broken by a far smaller term, cancellation, ladders, edges of the range, NaNs; and
// random ones. The same seed gives the same sets. It imports only the tables.
package operands

import (
	"math"
	"math/rand/v2"

	"tributary/driver/wire"
)

// Source makes sets of operands, one element for each port.
type Source struct {
	*rand.Rand
	format wire.FormatInfo // of the operands
	result int             // bits of the result's fraction
	kinds  []kind
	made   int // sets so far
}

// kind makes sets of one kind; it writes the n-th set to x.
type kind struct {
	name string
	make func(s *Source, x []uint32, n int)
}

// New returns a source of operands in a format, for cards with this result format.
func New(format, result wire.Format, seed uint64) *Source {
	in, _ := format.Info()
	out, _ := result.Info()
	s := &Source{Rand: rand.New(rand.NewPCG(seed, uint64(format)<<8|uint64(result))), format: in, result: out.Frac, kinds: floats}
	if in.Exp == 0 {
		s.kinds = wholes
	}
	return s
}

// Next makes a set of len(x) operands and names its kind. Kinds take turns.
func (s *Source) Next(x []uint32) (kind string) {
	k := s.kinds[s.made%len(s.kinds)]
	k.make(s, x, s.made/len(s.kinds))
	s.made++
	return k.name
}

// shuffle permutes x randomly.
func (s *Source) shuffle(x []uint32) {
	for i := len(x) - 1; i > 0; i-- {
		j := s.IntN(i + 1)
		x[i], x[j] = x[j], x[i]
	}
}

// wholes are the kinds of int32 operands.
var wholes = []kind{
	{"bits", func(s *Source, x []uint32, _ int) { s.fill(x, s.Uint32) }},
	{"edges", func(s *Source, x []uint32, _ int) {
		s.fill(x, func() uint32 {
			edges := [...]uint32{0, 1, math.MaxUint32, math.MaxInt32, math.MaxInt32 - 1, 1 << 31, 1<<31 + 1, 1 << 30, 3 << 30}
			return edges[s.IntN(len(edges))]
		})
	}},
	{"powers of two", func(s *Source, x []uint32, _ int) {
		s.fill(x, func() uint32 { return uint32(s.IntN(3)-1) + 1<<s.IntN(32)*uint32(2*s.IntN(2)-1) })
	}},
	{"sums about a limit", aboutLimit},
	{"small", func(s *Source, x []uint32, _ int) {
		s.fill(x, func() uint32 { return uint32(int32(s.Uint32()) >> s.IntN(32)) })
	}},
	{"one number", func(s *Source, x []uint32, _ int) {
		one := uint32(int32(s.Uint32()) >> s.IntN(32))
		s.fill(x, func() uint32 { return one })
	}},
	{"cancelling", func(s *Source, x []uint32, _ int) {
		for i := range x {
			x[i] = s.Uint32()
			if i%2 == 1 {
				x[i] = -x[i-1] + uint32(s.IntN(2))
			}
		}
		s.shuffle(x)
	}},
}

func (s *Source) fill(x []uint32, next func() uint32) {
	for i := range x {
		x[i] = next()
	}
}

// aboutLimit makes integers whose sum is just inside or just outside of int32.
func aboutLimit(s *Source, x []uint32, _ int) {
	limits := [...]int64{math.MaxInt32, math.MaxInt32 + 1, math.MinInt32, math.MinInt32 - 1, 1 << 32, -1 << 32, 0}
	rest := limits[s.IntN(len(limits))]
	if s.IntN(8) == 0 {
		rest += int64(s.IntN(5) - 2)
	}
	for i := range x {
		left := int64(len(x) - 1 - i) // operands still to come
		least, most := max(rest-left*math.MaxInt32, math.MinInt32), min(rest-left*math.MinInt32, math.MaxInt32)
		next := most
		if least < most {
			next = least + s.Int64N(most-least+1)
		}
		x[i] = uint32(next)
		rest -= next
	}
	s.shuffle(x)
}
