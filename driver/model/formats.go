// The floating-point formats: what an encoding means, and how a number is
// rounded to one (section 7.1 of the specification).

package model

import (
	"math/bits"

	"tributary/driver/wire"
)

// float is a floating-point format. Encodings are uint32s whose upper bits are
// zero.
//
// A finite number is sig * 2^place in units of the format's least positive number. place is the
// exponent field less one; a field of 0 (a zero or a subnormal) has the place of field 1. So places
// are never negative, and all numbers of a format are whole.
type float struct {
	wire.FormatInfo
	sign     uint32 // the sign's bit
	hidden   uint32 // the leading bit that a normal number's encoding leaves out
	infinite uint32 // magnitude of an infinity; above every magnitude where there is none
	nan      uint32 // least magnitude of a NaN
	largest  uint32 // greatest finite magnitude
	overflow uint32 // what a positive number beyond the largest rounds to
}

// newFloat returns the format that a row of the table describes.
func newFloat(info wire.FormatInfo) *float {
	f := &float{FormatInfo: info, sign: 1 << (info.Exp + info.Frac), hidden: 1 << info.Frac}
	if info.Infinity {
		f.infinite = f.sign - f.hidden
		f.nan = f.infinite + 1
		f.largest = f.infinite - 1
		f.overflow = f.infinite
		return f
	}
	f.infinite = f.sign
	f.nan = f.sign - 1
	f.largest = f.nan - 1
	f.overflow = info.NaN
	return f
}

func (f *float) isNaN(x uint32) bool       { return x&^f.sign >= f.nan }
func (f *float) isInfinite(x uint32) bool  { return x&^f.sign == f.infinite }
func (f *float) isNonfinite(x uint32) bool { return x&^f.sign > f.largest }
func (f *float) isNegative(x uint32) bool  { return x&f.sign != 0 }

// canonical returns x, or the canonical NaN.
func (f *float) canonical(x uint32) uint32 {
	if f.isNaN(x) {
		return f.NaN
	}
	return x
}

// place returns the power of two of a finite number's last bit.
func (f *float) place(x uint32) int {
	return max(int(x&^f.sign>>f.Frac), 1) - 1
}

// significand returns a finite number's sig, with the number's sign.
func (f *float) significand(x uint32) int64 {
	sig := x & (f.hidden - 1)
	if x&^f.sign >= f.hidden {
		sig |= f.hidden
	}
	if f.isNegative(x) {
		return -int64(sig)
	}
	return int64(sig)
}

// round returns the encoding nearest to magnitude * 2^place units with the given sign; ties go to
// even. If more is set, the exact magnitude is slightly larger. magnitude is not zero; place may be
// negative. If more is set, magnitude must have at least one bit below the result's last place.
func (f *float) round(negative bool, magnitude uint64, place int, more bool) uint32 {
	last := max(place+bits.Len64(magnitude)-(f.Frac+1), 0) // place of the result's last bit
	var sig uint64
	if shift := last - place; shift <= 0 {
		sig = magnitude << -shift
	} else {
		sig = magnitude >> shift
		rest, half := magnitude&(1<<shift-1), uint64(1)<<(shift-1)
		if rest > half || rest == half && (more || sig&1 == 1) {
			sig++
		}
	}
	// The leading bit of a normal significand adds one to the exponent's field. So does the carry of a
	// significand that was rounded up to the next power of two.
	encoding := uint64(last)<<f.Frac + sig
	result := uint32(encoding)
	if encoding > uint64(f.largest) {
		result = f.overflow
		if !f.Infinity {
			return result // the NaN, whatever the sign
		}
	}
	if negative {
		result |= f.sign
	}
	return result
}

// roundSigned rounds a nonzero whole number that is exact.
func (f *float) roundSigned(number int64, place int) uint32 {
	if number < 0 {
		return f.round(true, uint64(-number), place, false)
	}
	return f.round(false, uint64(number), place, false)
}

// special returns the sum of x if signs, NaNs and infinities alone decide it. Any NaN, or
// infinities of both signs, give NaN; an infinity gives itself; all -0 give -0.
func (f *float) special(x []uint32) (sum uint32, ok bool) {
	var infinity uint32
	zeros := true
	for _, e := range x {
		if f.isNonfinite(e) {
			if f.isNaN(e) || infinity != 0 && infinity != e {
				return f.NaN, true
			}
			infinity = e
		}
		zeros = zeros && e == f.sign
	}
	if infinity != 0 {
		return infinity, true
	}
	return f.sign, zeros
}

// widening returns, for every encoding, its equal in format to, which must be able to represent it.
// The format has 16 bits at most, since no format is wider than 32.
func (f *float) widening(to *float) []uint32 {
	table := make([]uint32, 1<<f.Bits)
	up := to.placeOfOne() - f.placeOfOne() // units of to in one of f, as a power of two
	for i := range table {
		x := uint32(i)
		switch {
		case f.isNaN(x):
			table[i] = to.NaN
			continue
		case f.isInfinite(x):
			table[i] = to.infinite
		case x&^f.sign == 0:
		default:
			sig := f.significand(x &^ f.sign)
			table[i] = to.round(false, uint64(sig), f.place(x)+up, false)
		}
		if f.isNegative(x) {
			table[i] |= to.sign
		}
	}
	return table
}

// placeOfOne returns the power of two that 1 is in units of the format.
func (f *float) placeOfOne() int {
	bias := 1<<(f.Exp-1) - 1
	return bias - 1 + f.Frac
}
