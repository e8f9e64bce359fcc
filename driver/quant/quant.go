// Package quant lets float32 arrays travel as int32: every block of elements is
// scaled by one power of two, so that a card that sums integers sums gradients.
//
// The workers cut their arrays alike into blocks. M is the largest magnitude in a
// block among all n workers, e = floor(log2 M), c = ceil(log2 n) and
// k = 30 - c - e. An element x travels as the integer nearest to x*2^k, ties to
// even; the sum S of the integers stands for S*2^-k (driver/wire/SPEC.md,
// section 7.9).
//
// # No overflow
//
// |x|*2^k <= (2 - 2^-23) * 2^(30-c) = 2^(31-c) - 2^(7-c), which is an integer as
// c <= 6. So no rounded element is beyond it, and the sum of n <= 2^c of them is
// at most 2^31 - 2^7.
//
// # Error
//
// An element is off by at most 2^-(k+1), so the sum of n by at most
//
//	n * 2^-(k+1) = n * 2^(e+c-31) < n^2 * M * 2^-30
//
// to which its rounding to float32 adds half a place of the result. The result
// does not depend on the order of the workers. The sign of a zero is lost.
//
// # Use
//
// Each host finds the exponents of its arrays; the hosts of a job exchange
// them, block by block, and Merge them; then all make the same Scales.
//
//	mine := quant.Exponents(nil, gradient, block) // and quant.Merge(mine, others)
//	scales, err := quant.NewScales(workers, block, mine)
//	err = scales.Quantize(integers, gradient)
//	// the card sums integers
//	scales.Dequantize(gradient, integers)
package quant

import (
	"fmt"
	"math"
)

// MaxWorkers is how many workers a sum has at most.
const MaxWorkers = 64

// An Exponent is floor(log2 M) of the largest magnitude M in a block. A larger
// magnitude has no smaller one, so the exponent of several blocks together is
// the largest of theirs.
type Exponent int16

// Zeros is the exponent of a block that holds zeros alone.
const Zeros Exponent = math.MinInt16

// NonfiniteError is answered for an element that no integer can stand for.
type NonfiniteError struct {
	Element int
	Value   float32 // a NaN or an infinity
}

func (e *NonfiniteError) Error() string {
	what := "a NaN"
	if e.Value == e.Value {
		what = "an infinity"
	}
	return fmt.Sprintf("element %d is %s, which no integer can stand for", e.Element, what)
}

// Exponents appends the exponent of every block of x to dst. Blocks have the
// given number of elements, more than zero; the last one may be shorter.
//
// The error is a NonfiniteError for the first NaN or infinity.
func Exponents(dst []Exponent, x []float32, block int) ([]Exponent, error) {
	for from := 0; from < len(x); from += block {
		part := x[from:min(from+block, len(x))]
		largest := magnitude(part)
		if largest >= 0x7f800000 {
			return nil, nonfinite(from, part)
		}
		dst = append(dst, exponent(largest))
	}
	return dst, nil
}

// magnitude returns the encoding of the largest magnitude; those of NaNs are
// larger than any number's.
func magnitude(x []float32) uint32 {
	var largest uint32
	for _, v := range x {
		largest = max(largest, math.Float32bits(v)&^(1<<31))
	}
	return largest
}

// nonfinite returns the error for the first NaN or infinity of a block that has
// one and begins at element from.
func nonfinite(from int, x []float32) error {
	for i, v := range x {
		if v-v != 0 { // 0 for every number
			return &NonfiniteError{Element: from + i, Value: v}
		}
	}
	return nil
}

// exponent returns floor(log2) of the number with that encoding.
func exponent(bits uint32) Exponent {
	if bits == 0 {
		return Zeros
	}
	_, e := math.Frexp(float64(math.Float32frombits(bits)))
	return Exponent(e - 1)
}

// Merge makes every exponent of dst the larger one of its own and other's: that
// of the block at both hosts. Both have the same length.
func Merge(dst, other []Exponent) {
	for i, e := range other {
		dst[i] = max(dst[i], e)
	}
}

// Scales are the powers of two by which the blocks of a reduction are scaled.
type Scales struct {
	block int
	limit float64 // what no scaled element exceeds
	up    []float64
	down  []float64
	bound []float64
}

// NewScales returns the scales of a reduction of so many workers, 1 to
// MaxWorkers, whose blocks have the given number of elements and exponents,
// merged over all workers. All hosts of the reduction must give the same.
func NewScales(workers, block int, exponents []Exponent) (*Scales, error) {
	if workers < 1 || workers > MaxWorkers {
		return nil, fmt.Errorf("%d workers; integers can be scaled for 1 to %d", workers, MaxWorkers)
	}
	if block < 1 {
		return nil, fmt.Errorf("blocks of %d elements; a block has at least one", block)
	}
	c := ceilLog2(workers)
	s := &Scales{
		block: block,
		limit: math.Ldexp(1, 31-c) - math.Ldexp(1, 7-c),
		up:    make([]float64, len(exponents)),
		down:  make([]float64, len(exponents)),
		bound: make([]float64, len(exponents)),
	}
	for b, e := range exponents {
		k := 0
		if e != Zeros {
			k = 30 - c - int(e)
			s.bound[b] = math.Ldexp(float64(workers), -k-1)
		}
		s.up[b], s.down[b] = math.Ldexp(1, k), math.Ldexp(1, -k)
	}
	return s, nil
}

// ceilLog2 returns the least c with n <= 2^c.
func ceilLog2(n int) int {
	c := 0
	for 1<<c < n {
		c++
	}
	return c
}

// Bound returns by how much the exact sum that the integers of block b stand for
// may differ from the sum of the workers' elements, before it is rounded to
// float32: n * 2^-(k+1).
func (s *Scales) Bound(b int) float64 { return s.bound[b] }

// Quantize writes the integers that stand for src to dst, which has the same
// length: that of the arrays whose exponents were given.
//
// The error is a NonfiniteError, or says which element is larger than the
// exponent of its block allows: then it was not among those that were merged. dst
// is of no use then.
func (s *Scales) Quantize(dst []int32, src []float32) error {
	for b, from := 0, 0; from < len(src); b, from = b+1, from+s.block {
		up := s.up[b]
		for i := from; i < min(from+s.block, len(src)); i++ {
			// Both factors and their product have 24 bits at most: only the
			// rounding to an integer rounds.
			x := math.RoundToEven(float64(src[i]) * up)
			if !(math.Abs(x) <= s.limit) {
				return s.refuse(src[i], i)
			}
			dst[i] = int32(x)
		}
	}
	return nil
}

func (s *Scales) refuse(x float32, i int) error {
	if x-x != 0 {
		return &NonfiniteError{Element: i, Value: x}
	}
	return fmt.Errorf("element %d is %g, more than the exponent of its block allows; it was not merged", i, x)
}

// Dequantize writes what the sums of integers stand for to dst, rounded to
// float32, to nearest, ties to even. Both have the same length.
func (s *Scales) Dequantize(dst []float32, sums []int32) { s.Mean(dst, sums, 1) }

// Mean writes what the sums of integers stand for, divided by n, 1 to
// MaxWorkers, to dst: the quotient rounded once, to nearest, ties to even. The
// bound on its error is that of the sum divided by n, and half a place.
//
// The quotient is rounded to float64 before it is rounded to float32, which
// changes nothing. Let h = b*2^j, j an integer, lie halfway between two float32,
// with b < 2^25. The quotient of the integer S by n, where it is not scaled yet,
// differs from h by |S - n*b*2^j| / n, if at all. With j >= 0 the numerator is a
// whole number, at least 1, and S < 2^31: they differ by 2^-31 of the quotient
// or more. With j < 0 it is a multiple of 2^j, so they differ by 2^-25/n of h or
// more. float64 rounds by 2^-53 of it, and holds h itself; so its rounding never
// reaches h from either side. Scaling by a power of two is exact.
func (s *Scales) Mean(dst []float32, sums []int32, n int) {
	for b, from := 0, 0; from < len(sums); b, from = b+1, from+s.block {
		down := s.down[b]
		for i := from; i < min(from+s.block, len(sums)); i++ {
			dst[i] = float32(float64(sums[i]) / float64(n) * down)
		}
	}
}
