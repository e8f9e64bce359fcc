// Package element processes a card's elements on the host. It divides sums into means, and
// finds NaNs, infinities and overflows in arrays.
//
// Arrays are little-endian encodings of a format, one after another. SPEC.md, section 7, in
// driver/wire defines the formats and their rounding.
package element

import (
	"encoding/binary"
	"math"

	"tributary/driver/wire"
)

// Size returns the bytes of an element, or 0 for an unknown format.
func Size(f wire.Format) int {
	info, _ := f.Info()
	return info.Bits / 8
}

// At returns the encoding of element i.
func At(f wire.Format, elements []byte, i int) uint32 { return load(elements, Size(f), i) }

// Put sets element i of an array to an encoding.
func Put(f wire.Format, elements []byte, i int, bits uint32) { store(elements, Size(f), i, bits) }

// load returns the encoding of element i of a given size in bytes.
func load(elements []byte, size, i int) uint32 {
	switch size {
	case 1:
		return uint32(elements[i])
	case 2:
		return uint32(binary.LittleEndian.Uint16(elements[2*i:]))
	}
	return binary.LittleEndian.Uint32(elements[4*i:])
}

// store writes the encoding of element i of a given size in bytes.
func store(elements []byte, size, i int, bits uint32) {
	switch size {
	case 1:
		elements[i] = byte(bits)
	case 2:
		binary.LittleEndian.PutUint16(elements[2*i:], uint16(bits))
	default:
		binary.LittleEndian.PutUint32(elements[4*i:], bits)
	}
}

// Value returns the number of an encoding. float64 holds every number of every format.
func Value(f wire.Format, bits uint32) float64 {
	switch f {
	case wire.FP32:
		return float64(math.Float32frombits(bits))
	case wire.Int32:
		return float64(int32(bits))
	}
	l := newLayout(f)
	return l.value(bits)
}

// Round returns the encoding of the number of format f nearest to x, ties to even, as in
// section 7.1. f is a floating-point format.
func Round(f wire.Format, x float64) uint32 {
	if f == wire.FP32 && x == x {
		return math.Float32bits(float32(x))
	}
	l := newLayout(f)
	return l.round(x)
}

// layout is the position of the fields of a floating-point encoding.
type layout struct {
	wire.FormatInfo
	bias     int
	sign     uint32 // the sign bit
	exponent uint32 // all bits of the exponent: infinity, if the format has one
	limit    uint32 // the first magnitude that is not finite
}

func newLayout(f wire.Format) layout {
	info, _ := f.Info()
	l := layout{FormatInfo: info, bias: 1<<(info.Exp-1) - 1, sign: 1 << (info.Bits - 1)}
	l.exponent = l.sign - 1<<info.Frac
	l.limit = l.exponent
	if !l.Infinity {
		l.limit = l.NaN // fp8e4m3: the only NaN has all bits set
	}
	return l
}

// finite reports whether an encoding is neither a NaN nor an infinity.
func (l *layout) finite(bits uint32) bool { return bits&^l.sign < l.limit }

func (l *layout) value(bits uint32) float64 {
	magnitude := bits &^ l.sign
	exp, sig := int(magnitude>>l.Frac), magnitude&(1<<l.Frac-1)
	var x float64
	switch {
	case magnitude >= l.limit && !(l.Infinity && magnitude == l.limit):
		return math.NaN()
	case magnitude >= l.limit:
		x = math.Inf(1)
	case exp == 0:
		x = math.Ldexp(float64(sig), 1-l.bias-l.Frac)
	default:
		x = math.Ldexp(float64(sig|1<<l.Frac), exp-l.bias-l.Frac)
	}
	if bits&l.sign != 0 {
		return -x
	}
	return x
}

func (l *layout) round(x float64) uint32 {
	var sign uint32
	if math.Signbit(x) {
		sign = l.sign
	}
	x = math.Abs(x)
	switch {
	case x != x:
		return l.NaN
	case x == 0:
		return sign
	case x > math.MaxFloat32: // includes infinities; no format has a larger range
		return l.overflow(sign)
	}
	_, exp := math.Frexp(x) // x < 2^exp
	exp = max(exp-1, 1-l.bias)
	sig := uint32(math.RoundToEven(math.Ldexp(x, l.Frac-exp)))
	// The significand's hidden bit adds one to the exponent field. A carry of the rounding adds
	// another. A subnormal has neither.
	bits := uint32(exp+l.bias-1)<<l.Frac + sig
	if bits >= l.limit {
		return l.overflow(sign)
	}
	return sign | bits
}

// overflow returns the encoding of a number beyond the largest finite one.
func (l *layout) overflow(sign uint32) uint32 {
	if l.Infinity {
		return sign | l.exponent
	}
	return l.NaN
}

// Finite reports whether an encoding is neither a NaN nor an infinity.
func Finite(f wire.Format, bits uint32) bool {
	if f == wire.Int32 {
		return true
	}
	l := newLayout(f)
	return l.finite(bits)
}

// Nonfinite returns the index of the first NaN or infinity, or -1.
func Nonfinite(f wire.Format, elements []byte) int {
	if f == wire.Int32 {
		return -1
	}
	l, size := newLayout(f), Size(f)
	for i := range len(elements) / size {
		if !l.finite(load(elements, size, i)) {
			return i
		}
	}
	return -1
}

// Overflow returns the index of the first sum that overflowed as defined in section 7.7, or -1.
// inputs are the members' contributions of format f, each with as many elements as there are
// sums of format result.
func Overflow(f, result wire.Format, sums []byte, inputs [][]byte) int {
	if f == wire.Int32 {
		return overflowInt32(len(sums)/4, inputs)
	}
	in, out, size := newLayout(f), newLayout(result), Size(f)
	for i := range len(sums) / Size(result) {
		if out.finite(load(sums, Size(result), i)) {
			continue
		}
		finite := true
		for _, input := range inputs {
			finite = finite && in.finite(load(input, size, i))
		}
		if finite {
			return i
		}
	}
	return -1
}

// overflowInt32 repeats the card's additions, because an int32 sum does not show its overflow.
func overflowInt32(n int, inputs [][]byte) int {
	for i := range n {
		var sum int64
		for _, input := range inputs {
			sum += int64(int32(load(input, 4, i)))
		}
		if sum != int64(int32(sum)) {
			return i
		}
	}
	return -1
}
