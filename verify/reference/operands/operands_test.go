package operands

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"tributary/driver/wire"
	"tributary/verify/reference/oracle"
)

func TestSameSeedSameSets(t *testing.T) {
	for _, f := range wire.Formats {
		a, b, other := New(f.Format, f.Format, 1), New(f.Format, f.Format, 1), New(f.Format, f.Format, 2)
		x, y, z := make([]uint32, 5), make([]uint32, 5), make([]uint32, 5)
		differ := 0
		for range 300 {
			if a.Next(x) != b.Next(y) || !slices.Equal(x, y) {
				t.Fatalf("%v: %x and %x", f.Name, x, y)
			}
			other.Next(z)
			if !slices.Equal(x, z) {
				differ++
			}
		}
		if differ < 150 {
			t.Errorf("%v: another seed gives %d other sets of 300", f.Name, differ)
		}
	}
}

func TestOperandsHaveTheirFormatsBits(t *testing.T) {
	for _, f := range wire.Formats {
		s := New(f.Format, f.Format, 1)
		for _, ports := range []int{1, 2, 3, 64} {
			x := make([]uint32, ports)
			for range 3000 {
				kind := s.Next(x)
				for _, e := range x {
					if uint64(e)>>f.Bits != 0 {
						t.Fatalf("%v, %s: %x", f.Name, kind, x)
					}
				}
			}
		}
	}
}

// TestEveryDistance: every pair of exponent fields occurs.
func TestEveryDistance(t *testing.T) {
	info, _ := wire.FP16.Info()
	s := New(wire.FP16, wire.FP16, 1)
	fields := s.top() + 1
	seen := map[[2]uint32]bool{}
	x := make([]uint32, 2)
	for n := range fields * fields {
		distances(s, x, n)
		a, b := x[0]>>info.Frac&31, x[1]>>info.Frac&31
		seen[[2]uint32{a, b}] = true
		seen[[2]uint32{b, a}] = true
	}
	if len(seen) != fields*fields {
		t.Errorf("%d pairs of %d", len(seen), fields*fields)
	}
}

// TestKindsDoWhatTheirNamesSay counts the effects of each kind by the oracle's exact sums:
// another sum without the smallest operand, or no sum at all.
func TestKindsDoWhatTheirNamesSay(t *testing.T) {
	counts := map[string]int{}
	for _, format := range []wire.Format{wire.FP32, wire.BF16, wire.FP16, wire.FP8E4M3, wire.FP8E5M2, wire.Int32} {
		info, _ := format.Info()
		o := oracle.New(wire.SumExact, format, format, false)
		fused := oracle.New(wire.SumFused, format, format, false)
		s := New(format, format, 3)
		x := make([]uint32, 8)
		for range 16 * 800 {
			kind := s.Next(x)
			y, over := o.Sum(x)
			z, _ := fused.Sum(x)
			is := func(what string, yes bool) {
				if yes {
					counts[fmt.Sprintf("%v %s: %s", info.Name, kind, what)]++
				}
			}
			is("overflow", over)
			is("fused differs", y != z)
			is("zero", y&^(1<<(info.Bits-1)) == 0)
			is("NaN", info.NaN != 0 && y == info.NaN)
			is("subnormal", y&^(1<<(info.Bits-1)) < 1<<info.Frac)
			if info.Exp > 0 {
				least := slices.IndexFunc(x, func(e uint32) bool { return e&^(1<<(info.Bits-1)) == smallest(x, info) })
				kept := x[least]
				x[least] = 0
				without, _ := o.Sum(x)
				x[least] = kept
				is("smallest decides", without != y)
			}
		}
	}
	for _, what := range []string{
		"fp32 broken ties: smallest decides", "bf16 broken ties: smallest decides", "fp16 broken ties: smallest decides",
		"fp32 broken ties: fused differs", "bf16 broken ties: fused differs", "fp16 broken ties: fused differs",
		"fp32 cancelling pairs: zero", "fp16 cancelling pairs: zero", "fp8e4m3 cancelling pairs: zero",
		"fp32 cancelling pairs: fused differs", "bf16 ladders: fused differs",
		"fp32 subnormals: subnormal", "bf16 subnormals: subnormal", "fp8e5m2 subnormals: subnormal",
		"fp32 edge of overflow: overflow", "bf16 edge of overflow: overflow", "fp8e4m3 edge of overflow: overflow",
		"fp32 NaNs and infinities: NaN", "fp16 NaNs and infinities: NaN", "fp8e5m2 zeros: zero",
		"fp32 beside a half: smallest decides", "bf16 beside a half: smallest decides", "fp32 beside a half: fused differs",
		"fp32 one number: overflow", "int32 sums about a limit: overflow", "int32 one number: overflow",
	} {
		if counts[what] < 5 {
			t.Errorf("%s: %d times", what, counts[what])
		}
	}
}

// smallest returns the least nonzero magnitude in x, if there is one.
func smallest(x []uint32, info wire.FormatInfo) uint32 {
	least := uint32(0)
	for _, e := range x {
		if m := e &^ (1 << (info.Bits - 1)); m != 0 && (least == 0 || m < least) {
			least = m
		}
	}
	return least
}

// TestSumsAboutALimit: sums reach int32's limits exactly, from both sides.
func TestSumsAboutALimit(t *testing.T) {
	s := New(wire.Int32, wire.Int32, 1)
	seen := map[int64]int{}
	for _, ports := range []int{1, 2, 3, 8, 64} {
		x := make([]uint32, ports)
		for range 500 {
			aboutLimit(s, x, 0)
			sum := int64(0)
			for _, e := range x {
				sum += int64(int32(e))
			}
			seen[sum]++
		}
	}
	for _, limit := range []int64{1<<31 - 1, 1 << 31, -1 << 31, -1<<31 - 1, 1 << 32} {
		if seen[limit] < 100 {
			t.Errorf("%d comes %d times", limit, seen[limit])
		}
	}
}

func TestPermutationsAreAll(t *testing.T) {
	seen := map[[4]uint32]bool{}
	for x := range Permutations([]uint32{1, 2, 3, 4}) {
		seen[[4]uint32(x)] = true
	}
	if len(seen) != 24 {
		t.Errorf("%d orders of 4, not 24", len(seen))
	}
}

// TestDamagingKinds: every kind that Hurts names exists, for floats or integers.
func TestDamagingKinds(t *testing.T) {
	hurt := map[string]bool{}
	for _, format := range []wire.Format{wire.FP32, wire.Int32} {
		source, x := New(format, format, 1), make([]uint32, 8)
		for range 3000 {
			if kind := source.Next(x); Hurts(kind) {
				hurt[kind] = true
			}
		}
	}
	if len(hurt) != 6 {
		t.Errorf("kinds that hurt: %v, not 6", hurt)
	}
}

// TestBesideAHalf counts sums that distinguish a window of fp32 from one that is a place
// narrower. Cancellation removes the leading place, the rest is close to a half, and six operands
// or more have lost all ones.
func TestBesideAHalf(t *testing.T) {
	s := New(wire.FP32, wire.FP32, 1)
	x := make([]uint32, 8)
	tight := 0
	const sets = 10_000
	for range sets {
		besideHalf(s, x, 0)
		sum, ones := inUsualWindow(x)
		leading := bits.Len64(uint64(max(sum, -sum))) - 1
		half := int64(1) << max(leading-24, 0)
		below := max(sum, -sum) & (2*half - 1)
		if leading < 43 && max(below-half, half-below) <= 20 && ones >= 6 {
			tight++
		}
	}
	if tight < sets/20 {
		t.Errorf("%d sets of %d", tight, sets)
	}
}

// inUsualWindow sums the parts of the operands in a window of 44 places below the largest, and
// counts the operands that lost only ones.
func inUsualWindow(x []uint32) (sum int64, ones int) {
	field := func(e uint32) int { return max(int(e>>23&255), 1) }
	top := 0
	for _, e := range x {
		top = max(top, field(e))
	}
	for _, e := range x {
		significand := int64(e & (1<<23 - 1))
		if e>>23&255 != 0 {
			significand |= 1 << 23
		}
		cut := top - field(e) - usualSpare
		kept := significand << max(-cut, 0) >> max(cut, 0)
		if cut > 0 && significand != 0 && significand|-1<<cut == -1 {
			ones++
		}
		if e>>31 != 0 {
			kept = -kept
		}
		sum += kept
	}
	return sum, ones
}
