// Package quant sends float32 arrays as int32. It scales every block of elements by a power
// of two, so that a card that sums integers can sum gradients.
//
// The workers divide their arrays into the same blocks. M is the largest magnitude in a
// block among all n workers, e = floor(log2 M), c = ceil(log2 n) and k = 30 - c - e. The
// integer of an element x is the one nearest to x*2^k, ties to even. The sum S of the
// integers means S*2^-k (driver/wire/SPEC.md, section 7.9).
//
// # No overflow
//
// |x|*2^k <= (2 - 2^-23) * 2^(30-c) = 2^(31-c) - 2^(7-c), which is an integer as c <= 6. So no
// rounded element exceeds it, and the sum of n <= 2^c elements is at most 2^31 - 2^7.
//
// # Error
//
// The error of an element is at most 2^-(k+1), so the error of a sum of n is at most
//
//	n * 2^-(k+1) = n * 2^(e+c-31) < n^2 * M * 2^-30
//
// The rounding to float32 adds half a place of the result. The result does not depend on
// the order of the workers. The sign of a zero is lost.
//
// # Use
//
// Each host computes the exponents of its arrays. The hosts of a job exchange the exponents
// and Merge them. All hosts then make the same Scales.
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

// MaxWorkers is the most workers of a sum.
const MaxWorkers = 64

// Exponent is floor(log2 M) of the largest magnitude M in a block. The exponent of several
// blocks together is the largest of their exponents.
type Exponent int16

// Zeros is the exponent of a block of zeros.
const Zeros Exponent = math.MinInt16

// NonfiniteError means that an element has no integer.
type NonfiniteError struct {
	Element int
	Value   float32 // a NaN or an infinity
}

func (e *NonfiniteError) Error() string {
	what := "a NaN"
	if e.Value == e.Value {
		what = "an infinity"
	}
	return fmt.Sprintf("element %d is %s, which no integer represents", e.Element, what)
}

// Exponents appends the exponent of every block of x to dst. block is the number of elements in
// a block, at least 1; the last block may be shorter.
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

// magnitude returns the encoding of the largest magnitude. The encoding of a NaN exceeds those
// of all numbers.
func magnitude(x []float32) uint32 {
	var largest uint32
	for _, v := range x {
		largest = max(largest, math.Float32bits(v)&^(1<<31))
	}
	return largest
}

// nonfinite returns the error for the first NaN or infinity of a block that begins at element
// from. The block must have one.
func nonfinite(from int, x []float32) error {
	for i, v := range x {
		if v-v != 0 { // 0 for every finite number
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

// Merge sets every exponent of dst to the larger of its own and other's, which gives the
// exponents of both hosts together. Both have the same length.
func Merge(dst, other []Exponent) {
	for i, e := range other {
		dst[i] = max(dst[i], e)
	}
}

// Scales are the powers of two that scale the blocks of a reduction.
type Scales struct {
	block int
	limit float64 // the limit of all scaled elements
	up    []float64
	down  []float64
	bound []float64
}

// NewScales returns the scales of a reduction by 1 to MaxWorkers workers. block is the number
// of elements in a block. exponents are merged over all workers. All hosts of the reduction
// must give the same values.
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

// Bound returns the largest error of block b before its sums are rounded to float32: n *
// 2^-(k+1). The error is the difference between the scaled sum of integers and the exact sum of
// the workers' elements.
func (s *Scales) Bound(b int) float64 { return s.bound[b] }

// Quantize converts src into integers in dst. Both have the length of the arrays behind the
// exponents.
//
// The error is a NonfiniteError, or names an element above its block's exponent, which means
// that its exponent was not merged. dst is then undefined.
func (s *Scales) Quantize(dst []int32, src []float32) error {
	for b, from := 0, 0; from < len(src); b, from = b+1, from+s.block {
		up := s.up[b]
		for i := from; i < min(from+s.block, len(src)); i++ {
			// Both factors and their product have at most 24 significant bits, so only
			// RoundToEven rounds.
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

// Dequantize converts the sums of integers into float32 in dst, rounded to nearest, ties to
// even. Both have the same length.
func (s *Scales) Dequantize(dst []float32, sums []int32) { s.Mean(dst, sums, 1) }

// Mean is Dequantize of the sums divided by n, 1 to MaxWorkers. It rounds each quotient once,
// to nearest, ties to even. The bound on its error is that of the sum divided by n, plus half a
// place.
//
// The quotient is rounded to float64 first, which does not change the result. Proof: let h =
// b*2^j, with j an integer and b < 2^25, be halfway between two float32. float64 holds h. If
// the unscaled quotient of the integer S by n is not h, they differ by |S - n*b*2^j| / n. For j
// >= 0 the numerator is an integer, at least 1, and S < 2^31, so they differ by at least 2^-31
// of the quotient. For j < 0 the numerator is a multiple of 2^j, so they differ by at least
// 2^-25/n of h. float64 rounds by at most 2^-53 of the quotient, so its rounding never reaches
// h from either side. Scaling by a power of two is exact.
func (s *Scales) Mean(dst []float32, sums []int32, n int) {
	for b, from := 0, 0; from < len(sums); b, from = b+1, from+s.block {
		down := s.down[b]
		for i := from; i < min(from+s.block, len(sums)); i++ {
			dst[i] = float32(float64(sums[i]) / float64(n) * down)
		}
	}
}
