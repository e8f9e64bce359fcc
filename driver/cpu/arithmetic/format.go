// The formats of section 7.1, and their numbers as fp32.

package arithmetic

import (
	"encoding/binary"
	"math"

	"tributary/driver/wire"
)

// Bits of fp32.
const (
	signBit     = 0x80000000
	infinity    = 0x7f800000
	nan         = 0x7fc00000
	hiddenBit   = 0x00800000 // also the least normal number
	fp32Frac    = 23
	fp32Bias    = 127
	fp32Highest = 0xff // exponent field of infinities and NaNs
)

// format is a row of the table of formats, and how its numbers look as fp32.
type format struct {
	wire.FormatInfo
	size int // bytes of an element

	// For floating-point formats:
	sign    uint32   // the sign bit
	cut     int      // places of an fp32 fraction below the format's last
	rebias  uint32   // fp32's exponent field less the format's, in its place in fp32
	least   uint32   // least normal number, as fp32
	largest uint32   // largest finite number, as fp32
	unit    float64  // least positive number
	numbers []uint32 // of a format of 8 bits, by encoding
}

func newFormat(info wire.FormatInfo) *format {
	f := &format{FormatInfo: info, size: info.Bits / 8}
	if f.integer() {
		return f
	}
	bias := 1<<(info.Exp-1) - 1
	f.sign = 1 << (info.Bits - 1)
	f.cut = fp32Frac - info.Frac
	f.rebias = uint32(fp32Bias-bias) << fp32Frac
	f.least = f.rebias + hiddenBit
	f.unit = math.Ldexp(1, 1-bias-info.Frac)
	f.largest = (f.sign-1)<<f.cut + f.rebias - 1<<f.cut // below NaN, the only code of all ones
	if info.Infinity {
		f.largest = (1<<info.Exp-1)<<fp32Frac + f.rebias - 1<<f.cut
	}
	if f.size == 1 {
		f.numbers = make([]uint32, 1<<8)
		for x := range f.numbers {
			f.numbers[x] = f.widen(uint32(x))
		}
	}
	return f
}

func (f *format) integer() bool { return f.Exp == 0 }

// nonfinite reports whether an fp32 number is a NaN or an infinity.
func nonfinite(x uint32) bool { return x&^signBit >= infinity }

// canonical replaces a NaN by the one that results have.
func canonical(x uint32) uint32 {
	if x&^signBit > infinity {
		return nan
	}
	return x
}

// nonfiniteCode returns the least magnitude of an encoding that is not finite.
func (f *format) nonfiniteCode() uint32 {
	if f.Infinity {
		return f.sign - 1<<f.Frac
	}
	return f.sign - 1
}

// widen returns the fp32 number of an encoding. Every NaN becomes one NaN.
func (f *format) widen(x uint32) uint32 {
	magnitude := x &^ f.sign
	sign := x & f.sign << (32 - f.Bits)
	switch limit := f.nonfiniteCode(); {
	case magnitude > limit, magnitude == limit && !f.Infinity:
		return nan
	case magnitude == limit:
		return sign | infinity
	case magnitude >= 1<<f.Frac:
		return sign | magnitude<<f.cut + f.rebias
	}
	return sign | math.Float32bits(float32(float64(magnitude)*f.unit))
}

// encode returns the encoding of an fp32 number that the format holds.
func (f *format) encode(x uint32) uint32 {
	magnitude := x &^ signBit
	sign := x & signBit >> (32 - f.Bits)
	switch {
	case magnitude > infinity:
		return f.NaN
	case magnitude == infinity:
		return sign | f.nonfiniteCode()
	case magnitude >= f.least:
		return sign | (magnitude-f.rebias)>>f.cut
	}
	return sign | uint32(float64(math.Float32frombits(magnitude))/f.unit)
}

// round returns the number of the format nearest to an fp32 number, ties to even. A number that
// overflows becomes an infinity, or NaN.
func (f *format) round(x uint32) uint32 {
	magnitude, sign := x&^signBit, x&signBit
	switch {
	case magnitude > infinity:
		return nan
	case f.cut == 0:
		return x
	case magnitude < f.least: // a multiple of the unit
		return sign | math.Float32bits(float32(math.RoundToEven(float64(math.Float32frombits(magnitude))/f.unit)*f.unit))
	}
	half := uint32(1)<<(f.cut-1) - 1
	magnitude = (magnitude + half + magnitude>>f.cut&1) &^ (1<<f.cut - 1)
	switch {
	case magnitude <= f.largest:
		return sign | magnitude
	case f.Infinity:
		return sign | infinity
	}
	return nan
}

// roundOnce returns the number of the format nearest to a float64, as if rounded once.
//
// A narrow format takes the way through fp32, rounded to odd: the truncated number, with its last
// bit set where something was cut. Rounding that again to at least two places less is rounding
// once (S. Boldo, G. Melquiond, Emulation of FMA and correctly rounded sums, IEEE Transactions on
// Computers 57(4), 2008). fp32 has 24 places, the widest narrow format 11. Sums are multiples of
// the format's least positive number, so fp32's own subnormals cut nothing.
func (f *format) roundOnce(v float64) uint32 {
	if f.cut > 0 {
		v = roundToOdd(v, 52-fp32Frac)
	}
	return f.round(math.Float32bits(float32(v)))
}

// roundToOdd cuts the last places of a number, and sets the last remaining bit where they were not
// all zero.
func roundToOdd(v float64, places int) float64 {
	bits, below := math.Float64bits(v), uint64(1)<<places-1
	if bits&below != 0 {
		bits |= below + 1
	}
	return math.Float64frombits(bits &^ below)
}

// load widens the elements of a payload. NaNs of fp32 and bf16 keep their payload.
func (f *format) load(to []uint32, payload []byte) {
	switch {
	case f.size == 1:
		for i, x := range payload[:len(to)] {
			to[i] = f.numbers[x]
		}
	case f.size == 2 && f.rebias == 0: // bf16
		for i := range to {
			to[i] = uint32(binary.LittleEndian.Uint16(payload[2*i:])) << 16
		}
	case f.size == 2:
		for i := range to {
			to[i] = f.widen(uint32(binary.LittleEndian.Uint16(payload[2*i:])))
		}
	default:
		for i := range to {
			to[i] = binary.LittleEndian.Uint32(payload[4*i:])
		}
	}
}

// store encodes numbers into a payload.
func (f *format) store(payload []byte, from []uint32) {
	switch {
	case f.size == 1:
		for i, x := range from {
			payload[i] = byte(f.encode(x))
		}
	case f.size == 2:
		for i, x := range from {
			binary.LittleEndian.PutUint16(payload[2*i:], uint16(f.encode(x)))
		}
	default:
		for i, x := range from {
			binary.LittleEndian.PutUint32(payload[4*i:], x)
		}
	}
}

// holdsNonfinite reports whether an element of a payload is a NaN or an infinity.
func (f *format) holdsNonfinite(payload []byte) bool {
	if f.integer() {
		return false
	}
	// Eight bytes at a time. Each element's magnitude is at most its sign bit less 1. Adding what the
	// least nonfinite one lacks to the sign bit sets that bit for nonfinite elements alone, and
	// carries into no other element.
	signs := repeat(f.sign, f.Bits)
	lack := repeat(f.sign-f.nonfiniteCode(), f.Bits)
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(payload[at:])&^signs + lack }
	for ; len(payload) >= 32; payload = payload[32:] {
		if (word(0)|word(8)|word(16)|word(24))&signs != 0 {
			return true
		}
	}
	var last [32]byte // the rest, and zeros
	copy(last[:], payload)
	payload = last[:]
	return (word(0)|word(8)|word(16)|word(24))&signs != 0
}

// repeat fills a word with an element.
func repeat(x uint32, bits int) (word uint64) {
	for at := 0; at < 64; at += bits {
		word |= uint64(x) << at
	}
	return word
}
