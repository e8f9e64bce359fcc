// The integer addition against sums worked out by hand, the processor's
// binary32 and math/big's exact numbers.

package model

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAddByHand(t *testing.T) {
	const (
		one     = 0x3f800000
		maximum = 0x7f7fffff
		inf     = 0x7f800000
		ulp     = 0x34000000 // 2^-23, the last place of 1
		half    = 0x33800000 // 2^-24
	)
	for name, c := range map[string]struct{ a, b, sum uint32 }{
		"1 + 1":                           {one, one, 0x40000000},
		"1 + -2.5":                        {one, 0xc0200000, 0xbfc00000},
		"0 + 0":                           {0, 0, 0},
		"-0 + -0":                         {negativeZero, negativeZero, negativeZero},
		"0 + -0":                          {0, negativeZero, 0},
		"x + -x":                          {0x40490fdb, 0xc0490fdb, 0},
		"-0 is the identity":              {negativeZero, 0x00000001, 0x00000001},
		"1 + half a place: tie to even":   {one, half, one},
		"odd + half a place: tie to even": {one + 1, half, one + 2},
		"1 + just over half a place":      {one, half + 1, one + 1},
		"1 + 1 place":                     {one, ulp, one + 1},
		"1 - a quarter place: tie":        {one, 0xb3000000, one},
		"1 - half a place is exact":       {one, 0xb3800000, 0x3f7fffff},
		"1 + the least subnormal":         {one, 1, one},
		"subnormals add as integers":      {0x00400000, 0x00300001, 0x00700001},
		"subnormals reach the normals":    {0x007fffff, 0x00000001, 0x00800000},
		"normals fall to a subnormal":     {0x00800000, 0x80000001, 0x007fffff},
		"cancellation is exact":           {0x00800001, 0x80800000, 0x00000001},
		"overflow":                        {maximum, maximum, inf},
		"overflow by rounding":            {maximum, 0x73000000, inf},
		"no overflow below half a place":  {maximum, 0x72ffffff, maximum},
		"negative overflow":               {0xff7fffff, 0xff7fffff, 0xff800000},
		"inf + finite":                    {inf, 0xff7fffff, inf},
		"inf + inf":                       {inf, inf, inf},
		"inf - inf":                       {inf, 0xff800000, canonicalNaN},
		"NaN + 1":                         {0x7fc12345, one, canonicalNaN},
		"1 + signalling NaN":              {one, 0xff800001, canonicalNaN},
		"NaN + inf":                       {0xffffffff, inf, canonicalNaN},
	} {
		assert.Equalf(t, c.sum, Add(c.a, c.b), "%s: %#x + %#x", name, c.a, c.b)
		assert.Equalf(t, c.sum, Add(c.b, c.a), "%s, the other way: %#x + %#x", name, c.b, c.a)
	}
}

// corners are the encodings about which roundings and ranges change.
var corners = func() []uint32 {
	var all []uint32
	for _, exponent := range []uint32{0, 1, 2, 23, 24, 25, 26, 100, 126, 127, 128, 150, 151, 152, 229, 230, 231, 252, 253, 254, 255} {
		for _, fraction := range []uint32{0, 1, 2, 3, 0x200000, 0x3fffff, 0x400000, 0x400001, 0x555555, 0x7ffffc, 0x7ffffd, 0x7ffffe, 0x7fffff} {
			all = append(all, exponent<<23|fraction, signBit|exponent<<23|fraction)
		}
	}
	return all
}()

// operands gives pairs: any bits; numbers near to one another, which cancel;
// numbers 20 to 30 binary places apart, which round.
func operands(r *rand.Rand) (a, b uint32) {
	a, b = r.Uint32(), r.Uint32()
	switch r.IntN(4) {
	case 0:
		b = a ^ signBit ^ r.Uint32()>>(8+r.IntN(24))
	case 1:
		distance := uint32(20 + r.IntN(11))
		b = b&^exponentMask | (a&exponentMask>>23-distance)&0xff<<23
	case 2:
		a, b = corners[r.IntN(len(corners))], corners[r.IntN(len(corners))]
	}
	return a, b
}

// hardware is the processor's sum, with the canonical NaN.
func hardware(a, b uint32) uint32 {
	sum := math.Float32frombits(a) + math.Float32frombits(b)
	if sum != sum {
		return canonicalNaN
	}
	return math.Float32bits(sum)
}

func TestAddAgreesWithTheProcessor(t *testing.T) {
	for _, a := range corners {
		for _, b := range corners {
			if got, want := Add(a, b), hardware(a, b); got != want {
				require.Failf(t, "another sum", "%#08x + %#08x = %#08x, not %#08x", a, b, want, got)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 4_000_000 {
		a, b := operands(r)
		if got, want := Add(a, b), hardware(a, b); got != want {
			require.Failf(t, "another sum", "%#08x + %#08x = %#08x, not %#08x", a, b, want, got)
		}
	}
}

// exact is the sum of two finite numbers by math/big, rounded once, and
// whether it is defined there: an exact zero's sign is not.
func exact(a, b uint32) (sum uint32, defined bool) {
	const precision = 300 // enough for 2^127 + 2^-149
	x := new(big.Float).SetPrec(precision).SetFloat64(float64(math.Float32frombits(a)))
	y := new(big.Float).SetPrec(precision).SetFloat64(float64(math.Float32frombits(b)))
	x.Add(x, y)
	if x.Sign() == 0 {
		return 0, false
	}
	rounded, _ := x.Float32()
	return math.Float32bits(rounded), true
}

func TestAddAgreesWithExactNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 400_000 {
		a, b := operands(r)
		if isNonfinite(a) || isNonfinite(b) {
			continue
		}
		want, defined := exact(a, b)
		if got := Add(a, b); defined && got != want {
			require.Failf(t, "another sum", "%#08x + %#08x = %#08x, not %#08x", a, b, want, got)
		}
	}
}
