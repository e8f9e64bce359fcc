package oracle

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"tributary/driver/wire"
)

// byHand are sums computed by hand. No other check shows that the oracle is right about them.
var byHand = []struct {
	name           string
	which          wire.Sum
	format, result wire.Format
	x              []uint32
	y              uint32
	overflowed     bool
}{
	// 1 is 3f800000, its last place is 2^-23 (34000000); a unit of fused is 2^-27.
	{"a tie", wire.SumExact, wire.FP32, wire.FP32, []uint32{0x3f800000, 0x33800000}, 0x3f800000, false},
	{"a tie broken from afar", wire.SumExact, wire.FP32, wire.FP32, []uint32{0x3f800000, 0x33800000, 1}, 0x3f800001, false},
	{"which fused does not see", wire.SumFused, wire.FP32, wire.FP32, []uint32{0x3f800000, 0x33800000, 1}, 0x3f800000, false},
	{"but a unit it does", wire.SumFused, wire.FP32, wire.FP32, []uint32{0x3f800000, 0x33800000, 0x32000000}, 0x3f800001, false},
	{"and just less than one not", wire.SumFused, wire.FP32, wire.FP32, []uint32{0x3f800000, 0x33800000, 0x31ffffff}, 0x3f800000, false},
	{"nor if it is negative", wire.SumFused, wire.FP32, wire.FP32, []uint32{0x3f800001, 0x33800000, 0xb1ffffff}, 0x3f800002, false},
	{"to the even one below", wire.SumExact, wire.FP32, wire.FP32, []uint32{0x3f800001, 0xb3000000}, 0x3f800001, false},
	{"cancellation", wire.SumExact, wire.FP32, wire.FP32, []uint32{0x7f7fffff, 1, 0xff7fffff}, 1, false},
	{"which fused does not survive", wire.SumFused, wire.FP32, wire.FP32, []uint32{0x7f7fffff, 1, 0xff7fffff}, 0, false},
	{"nor does a tree", wire.SumTree, wire.FP32, wire.FP32, []uint32{0x7f7fffff, 1, 0xff7fffff}, 0, false},
	{"overflow on the way", wire.SumTree, wire.FP32, wire.FP32, []uint32{0x7f7fffff, 0x7f7fffff, 0xff7fffff}, 0x7f800000, true},
	{"is none at the end", wire.SumExact, wire.FP32, wire.FP32, []uint32{0x7f7fffff, 0x7f7fffff, 0xff7fffff}, 0x7f7fffff, false},
	{"halfway above the largest", wire.SumExact, wire.FP32, wire.FP32, []uint32{0x7f7fffff, 0x73000000}, 0x7f800000, true},
	{"and a little less", wire.SumExact, wire.FP32, wire.FP32, []uint32{0x7f7fffff, 0x73000000, 0x80000001}, 0x7f7fffff, false},
	{"-0", wire.SumExact, wire.FP32, wire.FP32, []uint32{0x80000000, 0x80000000}, 0x80000000, false},
	{"0", wire.SumFused, wire.FP32, wire.FP32, []uint32{0x80000000, 0}, 0, false},
	{"1 - 1", wire.SumTree, wire.BF16, wire.BF16, []uint32{0x3f80, 0xbf80}, 0, false},
	{"infinity", wire.SumFused, wire.FP16, wire.FP16, []uint32{0x7c00, 0xfbff}, 0x7c00, false},
	{"infinities", wire.SumExact, wire.FP16, wire.FP16, []uint32{0x7c00, 0xfc00}, 0x7e00, false},
	{"a NaN alone", wire.SumTree, wire.FP16, wire.FP16, []uint32{0xfc01}, 0x7e00, false},
	{"subnormals", wire.SumTree, wire.FP16, wire.FP16, []uint32{0x03ff, 1}, 0x0400, false},
	{"65504 and half its last place", wire.SumTree, wire.FP16, wire.FP16, []uint32{0x7bff, 0x4c00}, 0x7c00, true},
	{"a little less", wire.SumTree, wire.FP16, wire.FP16, []uint32{0x7bff, 0x4bff}, 0x7bff, false},

	// fp8e4m3: 448 is 7e, its last place 32; 480 would be 7f.
	{"448 + 16 is a tie", wire.SumExact, wire.FP8E4M3, wire.FP8E4M3, []uint32{0x7e, 0x58}, 0x7e, false},
	{"448 + 18 overflows", wire.SumExact, wire.FP8E4M3, wire.FP8E4M3, []uint32{0x7e, 0x59}, 0x7f, true},
	{"-448 - 18 too", wire.SumTree, wire.FP8E4M3, wire.FP8E4M3, []uint32{0xfe, 0xd9}, 0x7f, true},
	{"256 is no infinity", wire.SumTree, wire.FP8E4M3, wire.FP8E4M3, []uint32{0x70, 0x70}, 0x78, false},
	{"512 is none either", wire.SumTree, wire.FP8E4M3, wire.FP8E4M3, []uint32{0x78, 0x78}, 0x7f, true},
	{"ff is a NaN", wire.SumFused, wire.FP8E4M3, wire.FP8E4M3, []uint32{0xff, 0}, 0x7f, false},
	{"and widened", wire.SumFused, wire.FP8E4M3, wire.FP32, []uint32{0xff, 0}, 0x7fc00000, false},
	{"448 + 448 = 896", wire.SumTree, wire.FP8E4M3, wire.FP16, []uint32{0x7e, 0x7e}, 0x6300, false},
	{"2^-16 + 2^-16", wire.SumTree, wire.FP8E5M2, wire.BF16, []uint32{1, 1}, 0x3800, false},
	{"-0, widened", wire.SumExact, wire.FP8E5M2, wire.FP32, []uint32{0x80}, 0x80000000, false},
	{"-infinity, widened", wire.SumTree, wire.FP8E5M2, wire.FP16, []uint32{0xfc, 0x7b}, 0xfc00, false},
	{"-3, widened", wire.SumExact, wire.BF16, wire.FP32, []uint32{0xc040}, 0xc0400000, false},

	{"the larger", wire.SumMax, wire.FP32, wire.FP32, []uint32{0x3f800000, 0x3f800001, 0xc0000000}, 0x3f800001, false},
	{"the smaller of negatives", wire.SumMax, wire.FP16, wire.FP16, []uint32{0xbc01, 0xbc00}, 0xbc00, false},
	{"+0 is above -0", wire.SumMax, wire.BF16, wire.BF16, []uint32{0x8000, 0, 0x8000}, 0, false},
	{"-0 is above subnormals", wire.SumMax, wire.FP8E5M2, wire.FP8E5M2, []uint32{0x81, 0x80}, 0x80, false},
	{"NaN is above infinity", wire.SumMax, wire.FP16, wire.FP16, []uint32{0x7c00, 0xfe01}, 0x7e00, false},
	{"-infinity alone", wire.SumMax, wire.FP32, wire.FP32, []uint32{0xff800000, 0xff800000}, 0xff800000, false},
	{"-448 alone", wire.SumMax, wire.FP8E4M3, wire.FP8E4M3, []uint32{0xfe, 0xfe}, 0xfe, false},
	{"ff is still a NaN", wire.SumMax, wire.FP8E4M3, wire.FP32, []uint32{0xff, 0x7e}, 0x7fc00000, false},
	{"signed", wire.SumMax, wire.Int32, wire.Int32, []uint32{0x80000000, 0xffffffff, 0xfffffffe}, 0xffffffff, false},
	{"never overflows", wire.SumMax, wire.Int32, wire.Int32, []uint32{0x7fffffff, 0x7fffffff}, 0x7fffffff, false},
	{"wrapped", wire.SumTree, wire.Int32, wire.Int32, []uint32{0x7fffffff, 2}, 0x80000001, true},
	{"wrapped below", wire.SumExact, wire.Int32, wire.Int32, []uint32{0x80000000, 0x80000000, 0xffffffff}, 0xffffffff, true},
	{"back again", wire.SumFused, wire.Int32, wire.Int32, []uint32{0x7fffffff, 2, 0xffffffff, 0xffffffff}, 0x7fffffff, false},
}

func TestByHand(t *testing.T) {
	for _, c := range byHand {
		if y, over := New(c.which, c.format, c.result, false).Sum(c.x); y != c.y || over != c.overflowed {
			t.Errorf("%s: %v of %v %x: %x, overflow %v; want %x, %v", c.name, c.which, c.format, c.x, y, over, c.y, c.overflowed)
		}
	}
	for sum, x := range map[uint32][]uint32{
		0x7fffffff: {0x7fffffff, 1},
		0x80000000: {0x80000000, 0xffffffff},
		0x7ffffffe: {0x7fffffff, 1, 0xfffffffe}, // once, at the end
	} {
		if y, over := New(wire.SumTree, wire.Int32, wire.Int32, true).Sum(x); y != sum || over != (sum != 0x7ffffffe) {
			t.Errorf("%x saturates to %x, overflow %v; want %x", x, y, over, sum)
		}
	}
}

// TestRoundingsAgree compares three roundings: of integers, by the processor's addition of a
// constant, and by the processor's conversion.
func TestRoundingsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, info := range wire.Formats {
		if info.Exp == 0 {
			continue
		}
		f := newFormat(info.Format)
		var whole rounding
		whole.init(f)
		p := newProcessor(f)
		least := math.Ldexp(1, 1-f.bias()-f.Frac)
		for range 100_000 {
			// Some more bits than the format has, at any place in its range.
			bits := r.Uint64N(1<<(f.Frac+1+r.IntN(8))) + 1
			place := r.IntN(min(f.ones+2, 60)) // in whole units below
			v := new(big.Int).Lsh(new(big.Int).SetUint64(bits), uint(place))
			negative := r.IntN(2) == 0
			x := math.Ldexp(float64(bits), place-scale) * least
			if negative {
				v.Neg(v)
				x = -x
			}
			got := whole.round(v)
			want := uint32(0)
			switch {
			case f.Format == wire.FP32:
				want = math.Float32bits(float32(x))
			case math.Abs(p.nearest(x)) <= p.largest:
				want = f.encode(p.nearest(x))
			case f.Infinity:
				want = p.encodeInfinity(x)
			default:
				want = f.NaN
			}
			if got != want {
				t.Fatalf("%v: %g is rounded to %x by big numbers, to %x by the processor", f.Format, x, got, want)
			}
		}
	}
}

// TestError measures a known error.
func TestError(t *testing.T) {
	o := New(wire.SumFused, wire.FP32, wire.FP32, false)
	x := []uint32{0x3f800000, 0x33800000, 1}
	y, _ := o.Sum(x)
	off, bound := o.Error(x, y)
	// 2^-24 + 2^-149 in units of 2^-153; two units of 2^-27 and half of 2^-23.
	want := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 129), big.NewInt(16))
	if off.Cmp(want) != 0 {
		t.Errorf("off by %v, want %v", off, want)
	}
	want.Add(new(big.Int).Lsh(big.NewInt(2), 126), new(big.Int).Lsh(big.NewInt(1), 129))
	if bound.Cmp(want) != 0 {
		t.Errorf("bound %v, want %v", bound, want)
	}
}
