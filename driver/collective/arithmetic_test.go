package collective_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// numberOf returns the number of a finite encoding, by the definition of its fields. With fields beyond
// the largest finite number, it is the number that would follow.
func numberOf(i wire.FormatInfo, magnitude uint32) *big.Float {
	bias := 1<<(i.Exp-1) - 1
	exp, frac := int(magnitude>>i.Frac), int64(magnitude&(1<<i.Frac-1))
	if exp == 0 {
		exp = 1
	} else {
		frac += 1 << i.Frac
	}
	x := new(big.Float).SetPrec(600).SetInt64(frac)
	return x.SetMantExp(x, exp-bias-i.Frac)
}

// nearest adds exactly and searches all encodings for the nearest one, ties to even.
func nearest(f wire.Format, a, b uint32) uint32 {
	i, _ := f.Info()
	sign := uint32(1) << (i.Bits - 1)
	infinity := sign - 1<<i.Frac // of a format that has one
	limit := infinity            // the first magnitude that is not finite
	if !i.Infinity {
		limit = sign - 1
	}
	isNaN := func(x uint32) bool { return x&^sign > infinity && i.Infinity || x&^sign == limit && !i.Infinity }
	isInf := func(x uint32) bool { return i.Infinity && x&^sign == infinity }
	switch {
	case isNaN(a) || isNaN(b) || isInf(a) && isInf(b) && a != b:
		return i.NaN
	case isInf(a):
		return a
	case isInf(b):
		return b
	}
	signed := func(x uint32) *big.Float {
		n := numberOf(i, x&^sign)
		if x&sign != 0 {
			n.Neg(n)
		}
		return n
	}
	s := new(big.Float).SetPrec(600).Add(signed(a), signed(b))
	if s.Sign() == 0 {
		return a & b & sign
	}
	out := uint32(0)
	if s.Sign() < 0 {
		out = sign
		s.Neg(s)
	}
	low, high := uint32(0), limit // number(low) <= s, and s < number(high) or beyond
	for high-low > 1 {
		if mid := (low + high) / 2; numberOf(i, mid).Cmp(s) <= 0 {
			low = mid
		} else {
			high = mid
		}
	}
	below := new(big.Float).SetPrec(600).Sub(s, numberOf(i, low))
	above := new(big.Float).SetPrec(600).Sub(numberOf(i, high), s)
	if c := below.Cmp(above); c > 0 || c == 0 && low%2 == 1 {
		low = high
	}
	if low >= limit {
		if !i.Infinity {
			return i.NaN
		}
		return out | infinity
	}
	return out | low
}

// TestAddIsExactlyRounded compares sums of every format with an exact sum: every pair of fp8, and pairs
// of the others that are random, or close to each other, so that they cancel and tie.
func TestAddIsExactlyRounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, i := range wire.Formats {
		f := i.Format
		if f == wire.Int32 {
			continue
		}
		var pairs [][2]uint32
		mask := uint32(1<<i.Bits - 1)
		if i.Bits == 8 {
			for p := range uint32(1 << 16) {
				pairs = append(pairs, [2]uint32{p >> 8, p & 0xff})
			}
		}
		for range 5_000 {
			a := r.Uint32() & mask
			pairs = append(pairs, [2]uint32{a, r.Uint32() & mask})
			near := a + uint32(r.IntN(41)-20)<<r.IntN(i.Bits-4)
			if r.IntN(2) == 0 {
				near ^= 1 << (i.Bits - 1)
			}
			pairs = append(pairs, [2]uint32{a, near & mask})
		}
		size := element.Size(f)
		a, b, sum := make([]byte, size*len(pairs)), make([]byte, size*len(pairs)), make([]byte, size*len(pairs))
		for k, p := range pairs {
			element.Put(f, a, k, p[0])
			element.Put(f, b, k, p[1])
		}
		collective.Add(f, sum, a, b)
		for k, p := range pairs {
			if got, want := element.At(f, sum, k), nearest(f, p[0], p[1]); got != want {
				t.Fatalf("%s: %x + %x is %x, must be %x", f, p[0], p[1], got, want)
			}
		}
	}
}

// TestAddInt32 wraps around.
func TestAddInt32(t *testing.T) {
	sum := make([]byte, 4)
	a, b := make([]byte, 4), make([]byte, 4)
	element.Put(wire.Int32, a, 0, math.MaxInt32)
	element.Put(wire.Int32, b, 0, 2)
	collective.Add(wire.Int32, sum, a, b)
	require.EqualValues(t, 0x80000001, element.At(wire.Int32, sum, 0))
}
