// Rounding of integers of any length.

package oracle

import "math/big"

// rounding rounds to a format.
type rounding struct {
	*format
	largest               big.Int // value of the largest number
	magnitude, down, rest big.Int // scratch
}

func (r *rounding) init(f *format) {
	r.format = f
	f.value(&r.largest, f.largest())
}

// round returns the encoding nearest to v, which is not zero, in units of the least positive
// number / 2^scale. Of two equally near multiples of the last place it takes the even one.
func (r *rounding) round(v *big.Int) uint32 {
	m := r.magnitude.Abs(v)
	last := max(m.BitLen()-(r.Frac+1), scale) // place of the result's last bit
	down := r.down.Rsh(m, uint(last))
	rest := r.rest.Sub(m, r.rest.Lsh(down, uint(last)))
	multiple := uint32(down.Uint64())
	if rest.Sign() != 0 {
		switch toHalf := rest.BitLen() - last; { // rest is below 2^last
		case toHalf < 0: // below a half
		case rest.TrailingZeroBits() != uint(last-1), multiple%2 == 1:
			multiple++
		}
	}
	sign := uint32(0)
	if v.Sign() < 0 {
		sign = r.sign
	}
	m.Lsh(m.SetUint64(uint64(multiple)), uint(last))
	if m.Cmp(&r.largest) > 0 {
		if !r.Infinity {
			return r.NaN
		}
		return sign | r.infinity()
	}
	if multiple == 2<<r.Frac { // rounding reached the next power of two
		multiple /= 2
		last++
	}
	if multiple < 1<<r.Frac { // subnormal
		return sign | multiple
	}
	return sign | uint32(last-scale+1)<<r.Frac | multiple&(1<<r.Frac-1)
}
