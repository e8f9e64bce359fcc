// Package element processes a card's elements on the host: it divides sums into means,
// and finds NaNs, infinities and overflows in arrays.
//
// Arrays are encodings of a format, little-endian, one after another. SPEC.md, section 7,
// in driver/wire defines the formats and their rounding.
package element

import (
	"encoding/binary"
	"math"

	"tributary/driver/wire"
)

// Size returns the bytes of an element, 0 for a format that is not in the table.
func Size(f wire.Format) int {
	info, _ := f.Info()
	return info.Bits / 8
}

// At returns the encoding of element i.
func At(f wire.Format, elements []byte, i int) uint32 { return load(elements, Size(f), i) }

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

// store is load's other direction.
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

// Value returns the number that an encoding stands for; float64 holds every one
// of every format.
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

// Round returns the encoding of the number of format f nearest to x, ties to
// even, as section 7.1 rounds. f is a floating-point format.
func Round(f wire.Format, x float64) uint32 {
	if f == wire.FP32 && x == x {
		return math.Float32bits(float32(x))
	}
	l := newLayout(f)
	return l.round(x)
}

// layout is where the parts of a floating-point format's encodings stand.
type layout struct {
	wire.FormatInfo
	bias     int
	sign     uint32 // the sign bit
	exponent uint32 // the exponent's bits: infinity, where there is one
	limit    uint32 // the first magnitude that is no finite number
}

func newLayout(f wire.Format) layout {
	info, _ := f.Info()
	l := layout{FormatInfo: info, bias: 1<<(info.Exp-1) - 1, sign: 1 << (info.Bits - 1)}
	l.exponent = l.sign - 1<<info.Frac
	l.limit = l.exponent
	if !l.Infinity {
		l.limit = l.NaN // fp8e4m3: all ones alone
	}
	return l
}

// finite tells whether an encoding is neither a NaN nor an infinity.
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
	case x > math.MaxFloat32: // an infinity among them; no format reaches further
		return l.overflow(sign)
	}
	_, exp := math.Frexp(x) // x < 2^exp
	exp = max(exp-1, 1-l.bias)
	sig := uint32(math.RoundToEven(math.Ldexp(x, l.Frac-exp)))
	// The significand's hidden bit adds one to the exponent field, a carry out
	// of the rounding another; a subnormal has neither.
	bits := uint32(exp+l.bias-1)<<l.Frac + sig
	if bits >= l.limit {
		return l.overflow(sign)
	}
	return sign | bits
}

// overflow returns what a number beyond the largest one becomes.
func (l *layout) overflow(sign uint32) uint32 {
	if l.Infinity {
		return sign | l.exponent
	}
	return l.NaN
}

// Finite tells whether an encoding is neither a NaN nor an infinity.
func Finite(f wire.Format, bits uint32) bool {
	if f == wire.Int32 {
		return true
	}
	l := newLayout(f)
	return l.finite(bits)
}

// Nonfinite returns the place of the first NaN or infinity, -1 when there is
// none.
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

// Overflow returns the place of the first sum that overflowed, as section 7.7
// says when one did; -1 when none did. inputs are the members' contributions of
// format f, each with as many elements as there are sums of format result.
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

// overflowInt32 adds up what the card had to: its sum does not tell.
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
