// The sum "tree": additions and the tree's shape, worked out by hand, and compared with the
// processor's binary32.

package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// f returns the encoding of x.
func f(x float32) uint32 { return math.Float32bits(x) }

const (
	minus0   = 0x80000000
	quietNaN = 0x7fc00000
)

// binary32 is the format fp32.
func binary32(t testing.TB) *float {
	t.Helper()
	info, ok := wire.FP32.Info()
	require.True(t, ok)
	return newFloat(info)
}

func TestAddByHand(t *testing.T) {
	const (
		one     = 0x3f800000
		maximum = 0x7f7fffff
		inf     = 0x7f800000
		ulp     = 0x34000000 // 2^-23, the last place of 1
		half    = 0x33800000 // 2^-24
	)
	fp32 := binary32(t)
	for name, c := range map[string]struct{ a, b, sum uint32 }{
		"1 + 1":                           {one, one, 0x40000000},
		"1 + -2.5":                        {one, 0xc0200000, 0xbfc00000},
		"0 + 0":                           {0, 0, 0},
		"-0 + -0":                         {minus0, minus0, minus0},
		"0 + -0":                          {0, minus0, 0},
		"x + -x":                          {0x40490fdb, 0xc0490fdb, 0},
		"-0 is the identity":              {minus0, 0x00000001, 0x00000001},
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
		"inf - inf":                       {inf, 0xff800000, quietNaN},
		"NaN + 1":                         {0x7fc12345, one, quietNaN},
		"1 + signalling NaN":              {one, 0xff800001, quietNaN},
		"NaN + inf":                       {0xffffffff, inf, quietNaN},
	} {
		assert.Equalf(t, c.sum, fp32.add(c.a, c.b), "%s: %#x + %#x", name, c.a, c.b)
		assert.Equalf(t, c.sum, fp32.add(c.b, c.a), "%s, the other way: %#x + %#x", name, c.b, c.a)
	}
}

// corners are the encodings at which roundings and ranges change.
var corners = func() []uint32 {
	var all []uint32
	for _, exponent := range []uint32{0, 1, 2, 23, 24, 25, 26, 100, 126, 127, 128, 150, 151, 152, 229, 230, 231, 252, 253, 254, 255} {
		for _, fraction := range []uint32{0, 1, 2, 3, 0x200000, 0x3fffff, 0x400000, 0x400001, 0x555555, 0x7ffffc, 0x7ffffd, 0x7ffffe, 0x7fffff} {
			all = append(all, exponent<<23|fraction, minus0|exponent<<23|fraction)
		}
	}
	return all
}()

// twoNumbers returns two numbers: any bits; close numbers, which cancel; or numbers 20 to 45 binary
// places apart. The last are rounded, or lie at the limit of exact addition.
func twoNumbers(r *rand.Rand) (a, b uint32) {
	a, b = r.Uint32(), r.Uint32()
	switch r.IntN(3) {
	case 0:
		b = a ^ minus0 ^ r.Uint32()>>(8+r.IntN(24))
	case 1:
		distance := uint32(20 + r.IntN(26))
		b = b&^0x7f800000 | (a&0x7f800000>>23-distance)&0xff<<23
	}
	return a, b
}

// hardware returns the processor's sum, with the canonical NaN.
func hardware(a, b uint32) uint32 {
	sum := math.Float32frombits(a) + math.Float32frombits(b)
	if sum != sum {
		return quietNaN
	}
	return math.Float32bits(sum)
}

func TestAddAgreesWithTheProcessor(t *testing.T) {
	fp32 := binary32(t)
	check := func(a, b uint32) {
		if got, want := fp32.add(a, b), hardware(a, b); got != want {
			require.Failf(t, "another sum", "%#08x + %#08x = %#08x, not %#08x", a, b, want, got)
		}
	}
	for _, a := range corners {
		for _, b := range corners {
			check(a, b)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 400_000 {
		check(twoNumbers(r))
	}
}

func TestTreeByHand(t *testing.T) {
	const big = 1 << 24 // its last place is 2: adding 1 is a tie and gives big back
	tree, err := NewArithmetic(wire.SumTree, wire.FP32, wire.FP32, false)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		ports []uint32
		sum   uint32
	}{
		"one port passes":                      {[]uint32{f(1.5)}, f(1.5)},
		"one port, NaN":                        {[]uint32{0xffc00001}, quietNaN},
		"one port, -0":                         {[]uint32{minus0}, minus0},
		"two":                                  {[]uint32{f(1), f(2)}, f(3)},
		"three: (p0+p1)+p2":                    {[]uint32{f(big), f(1), f(1)}, f(big)},
		"three: p1+p2 is not first":            {[]uint32{f(1), f(1), f(big)}, f(big + 2)},
		"four: (p0+p1)+(p2+p3)":                {[]uint32{f(big), f(0), f(1), f(1)}, f(big + 2)},
		"four: not a chain":                    {[]uint32{f(big), f(1), f(1), f(-big)}, f(1)},
		"five: ((p0+p1)+(p2+p3))+p4":           {[]uint32{f(1), f(1), f(1), f(1), f(big)}, f(big + 4)},
		"five: p4 passes up twice":             {[]uint32{f(big), f(0), f(0), f(1), f(1)}, f(big)},
		"six: ((01)(23))(45)":                  {[]uint32{f(big), f(0), f(0), f(0), f(1), f(1)}, f(big + 2)},
		"seven: ((01)(23))((45)6)":             {[]uint32{f(big), f(0), f(0), f(0), f(0), f(1), f(1)}, f(big + 2)},
		"absent ports leave -0":                {[]uint32{minus0, minus0, minus0, minus0}, minus0},
		"an absent port beside 0":              {[]uint32{minus0, 0, minus0}, 0},
		"NaN through an odd one out":           {[]uint32{f(1), f(2), 0x7f800001}, quietNaN},
		"infinities of both signs meet on top": {[]uint32{0x7f800000, f(1), 0xff800000, f(1)}, quietNaN},
	} {
		before := append([]uint32(nil), c.ports...)
		sum, _ := tree.Element(c.ports)
		assert.Equalf(t, c.sum, sum, "%s: %#x", name, c.ports)
		assert.Equal(t, before, c.ports, "the argument is left alone")
	}
}
