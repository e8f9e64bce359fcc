package element

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"tributary/driver/wire"
)

var floats = []wire.Format{wire.FP32, wire.BF16, wire.FP16, wire.FP8E4M3, wire.FP8E5M2}

// rational returns the number of a finite encoding, from its fields, as SPEC.md, section 7.1,
// defines it.
func rational(f wire.FormatInfo, bits uint32) *big.Rat {
	sig := int64(bits & (1<<f.Frac - 1))
	exp := int(bits >> f.Frac & (1<<f.Exp - 1))
	if exp != 0 {
		sig += 1 << f.Frac
	} else {
		exp = 1
	}
	if bits>>(f.Bits-1) != 0 {
		sig = -sig
	}
	return scaled(sig, exp-(1<<(f.Exp-1)-1)-f.Frac)
}

// scaled returns sig * 2^place.
func scaled(sig int64, place int) *big.Rat {
	x := new(big.Rat).SetInt64(sig)
	power := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(place, -place))))
	if place < 0 {
		return x.Quo(x, power)
	}
	return x.Mul(x, power)
}

// largest returns the magnitude of the format's largest finite number.
func largest(f wire.FormatInfo) uint32 {
	if f.Infinity {
		return (1<<f.Exp-1)<<f.Frac - 1
	}
	return f.NaN - 1
}

// wantNearest checks that got is the finite encoding nearest to x, ties to even.
func wantNearest(t *testing.T, f wire.FormatInfo, what string, got uint32, x *big.Rat) {
	t.Helper()
	sign := uint32(1) << (f.Bits - 1)
	magnitude := got &^ sign
	if magnitude > largest(f) || x.Sign() < 0 != (got&sign != 0) {
		t.Fatalf("%s: %s gives %#x", f.Name, what, got)
	}
	distance := func(m uint32) *big.Rat {
		d := new(big.Rat).Sub(rational(f, m), new(big.Rat).Abs(x))
		return d.Abs(d)
	}
	off := distance(magnitude)
	for _, other := range []uint32{magnitude - 1, magnitude + 1} {
		if other > largest(f) {
			continue
		}
		if c := distance(other).Cmp(off); c < 0 || c == 0 && magnitude&1 != 0 {
			t.Fatalf("%s: %s gives %#x, but %#x is nearer, or as near and even", f.Name, what, got, other)
		}
	}
}

// encodings returns all encodings of an 8-bit format and one in 23 of a 16-bit format. For fp32
// it returns those near the boundaries and random ones.
func encodings(f wire.FormatInfo) []uint32 {
	var all []uint32
	if f.Bits < 32 {
		for bits := uint32(0); bits < 1<<f.Bits; bits += map[int]uint32{8: 1, 16: 23}[f.Bits] {
			all = append(all, bits)
		}
		return all
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, exp := range []uint32{0, 1, 2, 3, 7, 24, 127, 200, 250, 254, 255} {
		for _, frac := range []uint32{0, 1, 2, 3, 5, 0x3fffff, 0x400000, 0x400001, 0x7ffffe, 0x7fffff} {
			all = append(all, exp<<23|frac, 1<<31|exp<<23|frac)
		}
	}
	for range 4_000 {
		all = append(all, rng.Uint32(), rng.Uint32()&0x80ffffff)
	}
	return all
}

func TestValueAndRound(t *testing.T) {
	for _, format := range floats {
		f, _ := format.Info()
		for _, bits := range encodings(f) {
			x := Value(format, bits)
			magnitude := bits &^ (1 << (f.Bits - 1))
			switch {
			case f.Infinity && magnitude == largest(f)+1:
				if !math.IsInf(x, 0) || math.Signbit(x) != (magnitude != bits) || Finite(format, bits) {
					t.Fatalf("%s: %#x is read as %v", f.Name, bits, x)
				}
			case magnitude > largest(f):
				if x == x || Finite(format, bits) {
					t.Fatalf("%s: %#x is read as %v", f.Name, bits, x)
				}
				bits = f.NaN
			default:
				if new(big.Rat).SetFloat64(x).Cmp(rational(f, bits)) != 0 || math.Signbit(x) != (magnitude != bits) || !Finite(format, bits) {
					t.Fatalf("%s: %#x is read as %v", f.Name, bits, x)
				}
			}
			if got := Round(format, x); got != bits {
				t.Fatalf("%s: %v, read from %#x, is written as %#x", f.Name, x, bits, got)
			}
		}
	}
}

// TestRoundBetween rounds numbers halfway between two neighbours, and just beside.
func TestRoundBetween(t *testing.T) {
	for _, format := range floats {
		f, _ := format.Info()
		for _, bits := range encodings(f) {
			if bits >= largest(f) { // includes negative ones
				continue
			}
			half := (Value(format, bits) + Value(format, bits+1)) / 2
			for _, x := range []float64{half, math.Nextafter(half, 0), math.Nextafter(half, math.Inf(1)), -half} {
				wantNearest(t, f, fmt.Sprint(x), Round(format, x), new(big.Rat).SetFloat64(x))
			}
		}
	}
}

// TestRoundOverflows checks that overflow begins half a place above the largest number.
func TestRoundOverflows(t *testing.T) {
	for format, c := range map[wire.Format]struct {
		limit float64 // the first number that overflows; the largest is odd except in fp8e4m3
		below uint32
		at    uint32
	}{
		wire.FP32:    {0x1.ffffffp127, 0x7f7fffff, 0x7f800000},
		wire.BF16:    {0x1.ffp127, 0x7f7f, 0x7f80},
		wire.FP16:    {65520, 0x7bff, 0x7c00},
		wire.FP8E5M2: {61440, 0x7b, 0x7c},
		wire.FP8E4M3: {math.Nextafter(464, 1000), 0x7e, 0x7f}, // 448 is even: a tie rounds down
	} {
		f, _ := format.Info()
		sign := uint32(1) << (f.Bits - 1)
		for x, want := range map[float64]uint32{math.Nextafter(c.limit, 0): c.below, c.limit: c.at, 1e300: c.at, math.Inf(1): c.at} {
			if got := Round(format, x); got != want {
				t.Errorf("%s: %v gives %#x, want %#x", f.Name, x, got, want)
			}
			if want == f.NaN {
				want &^= sign // the only NaN
			} else {
				want |= sign
			}
			if got := Round(format, -x); got != want {
				t.Errorf("%s: %v gives %#x, want %#x", f.Name, -x, got, want)
			}
		}
	}
}

// pack returns encodings as an array.
func pack(f wire.Format, encodings ...uint32) []byte {
	b := make([]byte, Size(f)*len(encodings))
	for i, bits := range encodings {
		store(b, Size(f), i, bits)
	}
	return b
}

func TestMeanIsRoundedOnce(t *testing.T) {
	for _, format := range floats {
		f, _ := format.Info()
		all := encodings(f)
		members := []int{1, 2, 3, 5, 7, 8, 11, 24, 49, 63, 64}
		if f.Bits > 8 {
			members = []int{3, 7, 24, 63}
		}
		for _, n := range members {
			mean := pack(format, all...)
			Mean(format, mean, n)
			for i, sum := range all {
				got := At(format, mean, i)
				if !Finite(format, sum) {
					if Value(format, sum) == Value(format, sum) && got != sum || Finite(format, got) {
						t.Fatalf("%s: %#x / %d is %#x", f.Name, sum, n, got)
					}
					continue
				}
				q := rational(f, sum)
				if q.Sign() == 0 {
					if got != sum {
						t.Fatalf("%s: %#x / %d is %#x", f.Name, sum, n, got)
					}
					continue
				}
				q.Quo(q, big.NewRat(int64(n), 1))
				wantNearest(t, f, fmt.Sprintf("%#x / %d", sum, n), got, q)
			}
		}
	}
}

func TestMeanOfIntegers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sums := []int32{0, 1, -1, 2, 3, -3, 5, -5, math.MaxInt32, math.MaxInt32 - 1, math.MinInt32, math.MinInt32 + 1}
	for range 1_000 {
		sums = append(sums, int32(rng.Uint32()), int32(rng.Uint32())>>20)
	}
	for n := 1; n <= 64; n++ {
		b := make([]byte, 4*len(sums))
		for i, x := range sums {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
		}
		Mean(wire.Int32, b, n)
		for i, sum := range sums {
			got := int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
			// n*got is within n/2 of the sum. When it is exactly n/2 off, got is even.
			off := 2 * (n64(n)*got - int64(sum))
			if off > n64(n) || off < -n64(n) || (off == n64(n) || off == -n64(n)) && got%2 != 0 {
				t.Fatalf("%d / %d is %d", sum, n, got)
			}
		}
	}
}

func n64(n int) int64 { return int64(n) }

func TestNonfinite(t *testing.T) {
	for _, c := range []struct {
		f        wire.Format
		elements []uint32
		want     int
	}{
		{wire.FP32, []uint32{0, 0x7f7fffff, 0xff7fffff, 0x80000000}, -1},
		{wire.FP32, []uint32{0, 0x7f7fffff, 0xff800000, 0x7fc00000}, 2},
		{wire.BF16, []uint32{0x7f7f, 0x7f81}, 1},
		{wire.FP16, []uint32{0x7c00}, 0},
		{wire.FP16, []uint32{0x7bff, 0xfbff, 0xfc00}, 2},
		{wire.FP8E4M3, []uint32{0x7e, 0xfe, 0x78, 0xff}, 3},
		{wire.FP8E5M2, []uint32{0x7b, 0xfb, 0x7c}, 2},
		{wire.Int32, []uint32{0x7fc00000, 0xffffffff}, -1},
		{wire.FP32, nil, -1},
	} {
		if got := Nonfinite(c.f, pack(c.f, c.elements...)); got != c.want {
			t.Errorf("%s %#x: %d, want %d", c.f, c.elements, got, c.want)
		}
	}
}

func TestOverflow(t *testing.T) {
	const inf, nan, big = 0x7c00, 0x7e00, 0x7bff
	for _, c := range []struct {
		f, result wire.Format
		sums      []uint32
		inputs    [][]uint32
		want      int
	}{
		{wire.FP16, wire.FP16, []uint32{0, inf, nan, inf}, [][]uint32{{0, inf, nan, big}, {0, 0, 0, big}}, 3},
		{wire.FP16, wire.FP16, []uint32{inf}, [][]uint32{{inf}, {0}}, -1},
		{wire.FP16, wire.FP32, []uint32{0x47ffc000, 0x7f800000}, [][]uint32{{big, inf}, {big, 0}}, -1},
		{wire.FP8E4M3, wire.FP8E4M3, []uint32{0x7e, 0x7f}, [][]uint32{{0, 0x7e}, {0x7e, 0x7e}}, 1},
		{wire.Int32, wire.Int32, []uint32{0, 0x7fffffff, 0x80000000}, [][]uint32{{0, 0x7ffffffe, 0x7fffffff}, {0, 1, 1}}, 2},
		{wire.Int32, wire.Int32, []uint32{0x7fffffff}, [][]uint32{{0x7fffffff}, {1}}, 0}, // a card that saturates
		{wire.Int32, wire.Int32, []uint32{0x80000000}, [][]uint32{{0xffffffff}, {0x80000001}}, -1},
	} {
		var inputs [][]byte
		for _, in := range c.inputs {
			inputs = append(inputs, pack(c.f, in...))
		}
		if got := Overflow(c.f, c.result, pack(c.result, c.sums...), inputs); got != c.want {
			t.Errorf("%s into %s %#x: %d, want %d", c.f, c.result, c.sums, got, c.want)
		}
	}
}
