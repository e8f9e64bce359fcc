package quant

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// random returns finite numbers. The range of their exponents varies by array: all of float32,
// a few binades, or subnormals.
func random(rng *rand.Rand, n int) []float32 {
	low := rng.IntN(255)
	high := low + rng.IntN(255-low)
	if rng.IntN(4) == 0 {
		high = min(high, low+3)
	}
	x := make([]float32, n)
	for i := range x {
		exp := uint32(low + rng.IntN(high-low+1))
		frac := rng.Uint32() & 0x7fffff
		switch rng.IntN(6) {
		case 0:
			frac = 0x7fffff
		case 1:
			frac = 0
		case 2:
			exp = 0
		}
		x[i] = math.Float32frombits(rng.Uint32()&(1<<31) | exp<<23 | frac)
	}
	return x
}

// exact returns x without rounding.
func exact(x float32) *big.Float { return new(big.Float).SetPrec(600).SetFloat64(float64(x)) }

// quantized is one reduction with its inputs and results.
type quantized struct {
	inputs   [][]float32
	integers [][]int32
	sums     []int64 // of the integers, without wrap-around
	scales   *Scales
	block    int
}

func quantize(t *testing.T, block int, inputs [][]float32) quantized {
	t.Helper()
	q := quantized{inputs: inputs, block: block, sums: make([]int64, len(inputs[0]))}
	var merged []Exponent
	for w, in := range inputs {
		mine, err := Exponents(nil, in, block)
		if err != nil {
			t.Fatal(err)
		}
		if w == 0 {
			merged = mine
		} else {
			Merge(merged, mine)
		}
	}
	var err error
	if q.scales, err = NewScales(len(inputs), block, merged); err != nil {
		t.Fatal(err)
	}
	for _, in := range inputs {
		integers := make([]int32, len(in))
		if err := q.scales.Quantize(integers, in); err != nil {
			t.Fatal(err)
		}
		for i, x := range integers {
			q.sums[i] += int64(x)
		}
		q.integers = append(q.integers, integers)
	}
	return q
}

// k returns the specification's k of a block: 30 - c - e, or 0 for zeros.
func (q *quantized) k(b int) int {
	largest := new(big.Float)
	for _, in := range q.inputs {
		for _, x := range in[b*q.block : min((b+1)*q.block, len(in))] {
			if m := exact(x); m.Abs(m).Cmp(largest) > 0 {
				largest = m
			}
		}
	}
	if largest.Sign() == 0 {
		return 0
	}
	e := largest.MantExp(nil) - 1
	c := int(math.Ceil(math.Log2(float64(len(q.inputs)))))
	return 30 - c - e
}

func cases(t *testing.T, check func(t *testing.T, q quantized)) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 120 {
		workers := 1 + rng.IntN(64)
		block, n := 1+rng.IntN(20), 1+rng.IntN(40)
		inputs := make([][]float32, workers)
		for w := range inputs {
			inputs[w] = random(rng, n)
		}
		if round%10 == 0 { // a block of zeros of both signs
			for _, in := range inputs {
				for i := range in[:min(block, n)] {
					in[i] = float32(math.Copysign(0, float64(i%2)-0.5))
				}
			}
		}
		check(t, quantize(t, block, inputs))
	}
	for _, workers := range []int{1, 2, 3, 4, 5, 8, 9, 33, 63, 64} { // all as large as can be
		for _, x := range []float32{math.MaxFloat32, -math.MaxFloat32, 0x1.fffffep0, -0x1.fffffep-100, math.SmallestNonzeroFloat32} {
			inputs := slices.Repeat([][]float32{slices.Repeat([]float32{x}, 7)}, workers)
			check(t, quantize(t, 3, inputs))
		}
	}
}

// TestNoOverflow checks that no sum of integers comes nearer to 2^31 than 2^7, and that every
// integer is the nearest, ties to even.
func TestNoOverflow(t *testing.T) {
	reached := false
	cases(t, func(t *testing.T, q quantized) {
		for i, sum := range q.sums {
			if sum > 1<<31-1<<7 || sum < -(1<<31-1<<7) {
				t.Fatalf("%d workers, element %d: the sum of integers is %d", len(q.inputs), i, sum)
			}
			reached = reached || sum == 1<<31-1<<7
			k := q.k(i / q.block)
			for w, in := range q.inputs {
				x := exact(in[i])
				x.SetMantExp(x, k)
				have := new(big.Float).SetPrec(600).SetInt64(int64(q.integers[w][i]))
				off := new(big.Float).Sub(x, have)
				c := off.Abs(off).Cmp(big.NewFloat(0.5))
				if c > 0 || c == 0 && q.integers[w][i]%2 != 0 {
					t.Fatalf("%d workers, element %d of worker %d: %g * 2^%d became %d", len(q.inputs), i, w, in[i], k, q.integers[w][i])
				}
			}
		}
	})
	if !reached {
		t.Error("no sum was as large as can be: this tested less than it says")
	}
}

// TestErrorBound checks that the scaled sum of integers is within n*2^-(k+1) of the exact sum.
// It checks that this bound is less than n^2*M*2^-30, and that the float32 is the nearest one.
func TestErrorBound(t *testing.T) {
	cases(t, func(t *testing.T, q quantized) {
		sums := make([]int32, len(q.sums))
		for i, s := range q.sums {
			sums[i] = int32(s)
		}
		got := make([]float32, len(sums))
		q.scales.Dequantize(got, sums)
		n := len(q.inputs)
		for i := range sums {
			b := i / q.block
			k := q.k(b)
			stands := new(big.Float).SetPrec(600).SetInt64(q.sums[i])
			stands.SetMantExp(stands, -k)
			real := new(big.Float).SetPrec(600)
			for _, in := range q.inputs {
				real.Add(real, exact(in[i]))
			}
			off := new(big.Float).Sub(stands, real)
			bound := new(big.Float).SetFloat64(q.scales.Bound(b))
			if off.Abs(off).Cmp(bound) > 0 {
				t.Fatalf("%d workers, element %d: off by %g, the bound is %g", n, i, off, bound)
			}
			if want := math.Ldexp(float64(n), -k-1); q.k(b) != 0 && q.scales.Bound(b) != want {
				t.Fatalf("the bound is %g, want %g", q.scales.Bound(b), want)
			}
			if want, _ := stands.Float32(); got[i] != want {
				t.Fatalf("%d * 2^%d gives %g, want %g", q.sums[i], -k, got[i], want)
			}
		}
	})
}

// TestBoundInWords checks n*2^(e+c-31) < n^2*M*2^-30 for the smallest M of each exponent.
func TestBoundInWords(t *testing.T) {
	for n := 1; n <= MaxWorkers; n++ {
		for e := -149; e <= 127; e++ {
			s, err := NewScales(n, 1, []Exponent{Exponent(e)})
			if err != nil {
				t.Fatal(err)
			}
			if words := math.Ldexp(float64(n*n), e-30); s.Bound(0) >= words {
				t.Fatalf("%d workers, M = 2^%d: the bound is %g, not less than %g", n, e, s.Bound(0), words)
			}
		}
	}
}

// TestMeanIsRoundedOnce compares Mean with the exact quotient, rounded by math/big.
func TestMeanIsRoundedOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for n := 1; n <= MaxWorkers; n++ {
		for _, e := range []Exponent{127, 100, 0, -100, -120, -126, -130, -149, Zeros} {
			s, err := NewScales(n, 64, []Exponent{e})
			if err != nil {
				t.Fatal(err)
			}
			sums := []int32{0, 1, -1, n32(n), math.MaxInt32 - 127, -math.MaxInt32}
			for len(sums) < 40 {
				x := int32(rng.Uint32()) >> rng.IntN(31)
				if rng.IntN(2) == 0 { // a quotient halfway between two float32, or near it
					x = n32(n)*(x/n32(64)&^0xf|8) + rng.Int32N(3) - 1
				}
				sums = append(sums, x)
			}
			got := make([]float32, len(sums))
			s.Mean(got, sums, n)
			c, k := 0, 0
			for ; 1<<c < n; c++ {
			}
			if e != Zeros {
				k = 30 - c - int(e)
			}
			for i, sum := range sums {
				q := new(big.Rat).SetFrac64(int64(sum), int64(n))
				scale := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(k, -k))))
				if k > 0 {
					scale.Inv(scale)
				}
				want, _ := q.Mul(q, scale).Float32()
				if got[i] != want {
					t.Fatalf("%d * 2^%d / %d is %g, want %g", sum, -k, n, got[i], want)
				}
			}
		}
	}
}

func n32(n int) int32 { return int32(n) }

func TestExponents(t *testing.T) {
	x := []float32{0, -0.75, 0.5, 1, 1.999, -2, 0, 0, 0, 1e-45, math.MaxFloat32}
	got, err := Exponents([]Exponent{99}, x, 3)
	if want := []Exponent{99, -1, 1, Zeros, 127}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	got, err = Exponents(nil, x[9:10], 3)
	if want := []Exponent{-149}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	Merge(got, []Exponent{Zeros})
	Merge(got, []Exponent{-3})
	if got[0] != -3 {
		t.Errorf("merged into %d", got[0])
	}
}

func TestRefuses(t *testing.T) {
	inf := float32(math.Inf(-1))
	nan := float32(math.NaN())
	for _, c := range []struct {
		x    []float32
		want string
	}{
		{[]float32{1, 2, 3, inf, nan}, "element 3 is an infinity, which no integer represents"},
		{[]float32{1, nan, inf}, "element 1 is a NaN, which no integer represents"},
	} {
		_, err := Exponents(nil, c.x, 2)
		var e *NonfiniteError
		if !errors.As(err, &e) || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.x, err, c.want)
		}
		s, err := NewScales(2, len(c.x), []Exponent{5})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Quantize(make([]int32, len(c.x)), c.x); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.x, err, c.want)
		}
	}
	s, err := NewScales(2, 2, []Exponent{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Quantize(make([]int32, 3), []float32{1.5, 2, 2})
	if want := "element 1 is 2, more than the exponent of its block allows; it was not merged"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, c := range [][2]int{{0, 1}, {65, 1}, {1, 0}} {
		if _, err := NewScales(c[0], c[1], nil); err == nil {
			t.Errorf("%d workers, blocks of %d: no error", c[0], c[1])
		}
	}
}

func Example() {
	gradients := [][]float32{{0.5, -0.25, 1e-3}, {0.125, 0.25, 2e-3}}
	const block = 2
	var merged []Exponent
	for _, g := range gradients {
		e, err := Exponents(nil, g, block)
		if err != nil {
			fmt.Println(err)
			return
		}
		if merged == nil {
			merged = e
		}
		Merge(merged, e)
	}
	scales, err := NewScales(len(gradients), block, merged)
	if err != nil {
		fmt.Println(err)
		return
	}
	sums := make([]int32, 3) // stands for the card
	for _, g := range gradients {
		integers := make([]int32, 3)
		if err := scales.Quantize(integers, g); err != nil {
			fmt.Println(err)
			return
		}
		for i, x := range integers {
			sums[i] += x
		}
	}
	result := make([]float32, 3)
	scales.Dequantize(result, sums)
	fmt.Println(result)
	// Output: [0.625 0 0.003]
}

// BenchmarkQuantize measures a host's work on each element.
func BenchmarkQuantize(b *testing.B) {
	x := random(rand.New(rand.NewPCG(1, 1)), 1<<16)
	y := make([]int32, len(x))
	b.SetBytes(int64(4 * len(x)))
	for range b.N {
		e, err := Exponents(nil, x, 1024)
		if err != nil {
			b.Fatal(err)
		}
		s, err := NewScales(8, 1024, e)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Quantize(y, x); err != nil {
			b.Fatal(err)
		}
		s.Dequantize(x, y)
	}
}
