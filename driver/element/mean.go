package element

import (
	"encoding/binary"
	"math"

	"tributary/driver/wire"
)

// Mean divides sums of n members, n from 1 to 64, in place. Every element becomes the number of
// its format nearest to the quotient, ties to even (SPEC.md, section 7.8). NaNs and infinities
// stay.
//
// Mean rounds every element once. For fp32 one float32 division does that. For the smaller
// formats the quotient is rounded to float64 first, which does not change the result. Proof:
// let p be the format's significant bits, and a*2^i the sum, with a < 2^p. Let b*2^j be a
// number halfway between two neighbours of the format, with b < 2^(p+1). float64 holds the
// halfway number. If the quotient is another number, they differ by |a*2^i - n*b*2^j| / n. The
// numerator is a multiple of the smaller of 2^i and 2^j. For j <= i that is at least 2^-(p+1)/n
// of the halfway number. For i < j the two products are about equal and differ by at least 2^-p
// of either. As n <= 2^6 and p <= 11, both are far more than 2^-53. So the rounding to float64
// never reaches a halfway number, and the second rounding goes in the quotient's direction.
func Mean(f wire.Format, sums []byte, n int) {
	switch f {
	case wire.FP32:
		meanFP32(sums, n)
	case wire.Int32:
		meanInt32(sums, n)
	default:
		l, size := newLayout(f), Size(f)
		for i := range len(sums) / size {
			if bits := load(sums, size, i); l.finite(bits) {
				store(sums, size, i, l.round(l.value(bits)/float64(n)))
			}
		}
	}
}

func meanFP32(sums []byte, n int) {
	by := float32(n)
	for ; len(sums) >= 4; sums = sums[4:] {
		x := math.Float32frombits(binary.LittleEndian.Uint32(sums))
		binary.LittleEndian.PutUint32(sums, math.Float32bits(x/by))
	}
}

func meanInt32(sums []byte, n int) {
	for ; len(sums) >= 4; sums = sums[4:] {
		x := int32(binary.LittleEndian.Uint32(sums))
		binary.LittleEndian.PutUint32(sums, uint32(quotient(int64(x), int64(n))))
	}
}

// quotient returns the integer nearest to x/n, ties to even.
func quotient(x, n int64) int64 {
	q, rest := x/n, x%n
	if rest < 0 { // round down, not towards zero
		q, rest = q-1, rest+n
	}
	if 2*rest > n || 2*rest == n && q%2 != 0 {
		q++
	}
	return q
}
