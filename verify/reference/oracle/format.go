// Values of encodings.

package oracle

import (
	"fmt"
	"math"
	"math/big"

	"tributary/driver/wire"
)

// class is the kind of a value. Classes from infinity on are nonfinite.
type class int

const (
	zero class = iota
	number
	infinity
	nan
)

// scale is the number of binary places that values have below a format's least positive number.
// The fused sum keeps as many of each member.
const scale = 4

// format is a row of the table of formats.
type format struct {
	wire.FormatInfo
	sign uint32 // the sign's bit
	ones int    // exponent field of all ones
}

func newFormat(f wire.Format) *format {
	info, ok := f.Info()
	if !ok {
		panic(fmt.Sprintf("oracle: %v", f))
	}
	return &format{FormatInfo: info, sign: 1 << (info.Bits - 1), ones: 1<<info.Exp - 1}
}

func (f *format) integer() bool { return f.Exp == 0 }
func (f *format) bias() int     { return f.ones / 2 }

// fields splits an encoding.
func (f *format) fields(x uint32) (negative bool, exponent int, fraction uint32) {
	return x>>(f.Bits-1) == 1, int(x>>f.Frac) & f.ones, x & (1<<f.Frac - 1)
}

// infinity returns the encoding of the positive infinity.
func (f *format) infinity() uint32 { return uint32(f.ones) << f.Frac }

// largest returns the encoding of the largest number.
func (f *format) largest() uint32 {
	if f.Infinity {
		return f.infinity() - 1
	}
	return 1<<(f.Bits-1) - 2 // all ones are NaN
}

// class returns the class of x.
func (f *format) class(x uint32) class {
	_, exponent, fraction := f.fields(x)
	allOnes := uint32(1)<<f.Frac - 1
	switch {
	case exponent == 0 && fraction == 0:
		return zero
	case exponent < f.ones, !f.Infinity && fraction != allOnes:
		return number
	case f.Infinity && fraction == 0:
		return infinity
	}
	return nan
}

// value sets v to the value of a finite encoding, in units of the least
// positive number / 2^scale.
func (f *format) value(v *big.Int, x uint32) *big.Int {
	negative, exponent, fraction := f.fields(x)
	if exponent == 0 {
		exponent = 1
	} else {
		fraction |= 1 << f.Frac
	}
	v.SetUint64(uint64(fraction))
	v.Lsh(v, uint(exponent-1+scale))
	if negative {
		v.Neg(v)
	}
	return v
}

// float64 returns the value of a finite encoding.
func (f *format) float64(x uint32) float64 {
	negative, exponent, fraction := f.fields(x)
	if exponent == 0 {
		exponent = 1
	} else {
		fraction |= 1 << f.Frac
	}
	v := math.Ldexp(float64(fraction), exponent-f.bias()-f.Frac)
	if negative {
		return -v
	}
	return v
}

// encode returns the encoding of a number that the format can represent.
func (f *format) encode(v float64) uint32 {
	sign := uint32(0)
	if math.Signbit(v) {
		sign, v = f.sign, -v
	}
	bits := math.Float64bits(v)
	exponent := int(bits>>52) - 1023 + f.bias()
	if exponent < 1 { // a multiple of the least positive number
		return sign | uint32(math.Ldexp(v, f.bias()-1+f.Frac))
	}
	return sign | uint32(exponent)<<f.Frac | uint32(bits<<12>>(64-f.Frac))
}
