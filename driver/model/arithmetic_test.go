// Compares every sum in every format with the oracle, which shares neither this package's numbers
// nor its roundings; also tests chunks.

package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
	"tributary/verify/reference/operands"
	"tributary/verify/reference/oracle"
)

// card is the arithmetic of a possible card.
type card struct {
	which          wire.Sum
	format, result wire.Format
	saturate       bool
}

func (c card) String() string {
	name := fmt.Sprintf("%v_%v", c.which, c.format)
	if c.result != c.format {
		name += "_" + c.result.String()
	}
	if c.saturate {
		name += "_saturate"
	}
	return name
}

func (c card) arithmetic(t testing.TB) *Arithmetic {
	t.Helper()
	a, err := NewArithmetic(c.which, c.format, c.result, c.saturate)
	require.NoError(t, err)
	return a
}

// formats and results list the formats that section 7 of the specification allows.
var formats = []struct {
	format  wire.Format
	results []wire.Format
}{
	{wire.FP32, []wire.Format{wire.FP32}},
	{wire.BF16, []wire.Format{wire.BF16, wire.FP32}},
	{wire.FP16, []wire.Format{wire.FP16, wire.FP32}},
	{wire.FP8E4M3, []wire.Format{wire.FP8E4M3, wire.FP16, wire.BF16, wire.FP32}},
	{wire.FP8E5M2, []wire.Format{wire.FP8E5M2, wire.FP16, wire.BF16, wire.FP32}},
	{wire.Int32, []wire.Format{wire.Int32}},
}

// arithmetics lists the arithmetics of all possible cards.
func arithmetics() []card {
	var all []card
	for _, which := range wire.Sums {
		for _, f := range formats {
			for _, result := range f.results {
				all = append(all, card{which.Sum, f.format, result, false})
			}
		}
		if which.Adds {
			all = append(all, card{which.Sum, wire.Int32, wire.Int32, true})
		}
	}
	return all
}

func TestWhatACardMayHave(t *testing.T) {
	allowed := arithmetics()
	for which := wire.Sum(0); int(which) <= len(wire.Sums)+1; which++ {
		for format := wire.Format(0); format <= 7; format++ {
			for result := wire.Format(0); result <= 7; result++ {
				for _, saturate := range []bool{false, true} {
					c := card{which, format, result, saturate}
					_, err := NewArithmetic(which, format, result, saturate)
					assert.Equal(t, slices.Contains(allowed, c), err == nil, "%v: %v", c, err)
				}
			}
		}
	}
	for message, c := range map[string]card{
		"sum: there is no sum 9":                        {9, wire.FP32, wire.FP32, false},
		"format: there is no format 0":                  {wire.SumTree, 0, wire.FP32, false},
		"result: there is no format 9":                  {wire.SumTree, wire.FP32, 9, false},
		"result: bf16 does not hold every fp32":         {wire.SumTree, wire.FP32, wire.BF16, false},
		"result: fp8e5m2 does not hold every fp8e4m3":   {wire.SumTree, wire.FP8E4M3, wire.FP8E5M2, false},
		"saturate: fp32 does not, int32 alone does":     {wire.SumTree, wire.FP32, wire.FP32, true},
		"sum: there is no sum 0\nresult: fp32 does not": {0, wire.Int32, wire.FP32, false},
	} {
		_, err := NewArithmetic(c.which, c.format, c.result, c.saturate)
		assert.ErrorContains(t, err, message)
	}
}

func TestElementsAgreeWithTheOracle(t *testing.T) {
	for _, c := range arithmetics() {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			a, o := c.arithmetic(t), oracle.New(c.which, c.format, c.result, c.saturate)
			for _, ports := range []int{1, 2, 3, 5, 8, 17, 64} {
				source := operands.New(c.format, c.result, uint64(ports))
				x := make([]uint32, ports)
				for range 8000 / ports {
					kind := source.Next(x)
					y, over := a.Element(x)
					want, wantOver := o.Sum(x)
					if y != want || over != wantOver {
						require.Failf(t, "another sum", "%s %#x: %#x, overflow %v; not %#x, %v", kind, x, want, wantOver, y, over)
					}
				}
			}
		})
	}
}

// TestAllPairsOfSmallFormats sums all pairs of both fp8 formats.
func TestAllPairsOfSmallFormats(t *testing.T) {
	for _, c := range arithmetics() {
		if info, _ := c.format.Info(); info.Bits != 8 || c.result != c.format {
			continue
		}
		a, o := c.arithmetic(t), oracle.New(c.which, c.format, c.result, false)
		for pair := range uint32(1 << 16) {
			x := []uint32{pair >> 8, pair & 0xff}
			y, over := a.Element(x)
			want, wantOver := o.Sum(x)
			if y != want || over != wantOver {
				require.Failf(t, "another sum", "%v %#x: %#x, overflow %v; not %#x, %v", c, x, want, wantOver, y, over)
			}
		}
	}
}

// TestNumbersWidenToThemselves widens every number of the small formats to every wider one, alone,
// so that nothing is added.
func TestNumbersWidenToThemselves(t *testing.T) {
	for _, c := range arithmetics() {
		if info, _ := c.format.Info(); info.Bits > 16 {
			continue
		}
		a, o := c.arithmetic(t), oracle.New(c.which, c.format, c.result, false)
		info, _ := c.format.Info()
		for x := range uint32(1) << info.Bits {
			y, over := a.Element([]uint32{x})
			want, _ := o.Sum([]uint32{x})
			if y != want || over {
				require.Failf(t, "another number", "%v: %#x is %#x, not %#x; overflow %v", c, x, want, y, over)
			}
		}
	}
}

// TestOrderDoesNotMatter tries every order of eight workers, on difficult operands.
func TestOrderDoesNotMatter(t *testing.T) {
	for _, c := range arithmetics() {
		if c.which == wire.SumTree && c.format != wire.Int32 {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			a := c.arithmetic(t)
			source := operands.New(c.format, c.result, 8)
			x := make([]uint32, 8)
			for range 15 {
				kind := source.Next(x)
				if !operands.Hurts(kind) {
					continue
				}
				first, firstOver := a.Element(x)
				for x := range operands.Permutations(x) {
					if y, over := a.Element(x); y != first || over != firstOver {
						require.Failf(t, "another sum", "%s %#x: %#x, overflow %v; in another order %#x, %v", kind, x, y, over, first, firstOver)
					}
				}
			}
		})
	}
}

// TestFusedErrorBound checks the error bound in the specification.
func TestFusedErrorBound(t *testing.T) {
	for _, c := range arithmetics() {
		if c.which != wire.SumFused || c.format == wire.Int32 {
			continue
		}
		a, o := c.arithmetic(t), oracle.New(c.which, c.format, c.result, false)
		exact := oracle.New(wire.SumExact, c.format, c.result, false)
		checked, inexact := 0, 0
		for _, ports := range []int{1, 2, 8, 33} {
			source := operands.New(c.format, c.result, uint64(100+ports))
			x := make([]uint32, ports)
			for range 3000 {
				kind := source.Next(x)
				y, over := a.Element(x)
				if over || slices.ContainsFunc(x, a.in.isNonfinite) {
					continue
				}
				checked++
				if z, _ := exact.Sum(x); z != y {
					inexact++
				}
				off, bound := o.Error(x, y)
				if off.Cmp(bound) > 0 || off.Sign() > 0 && ports > 1 && off.Cmp(bound) == 0 {
					require.Failf(t, "beyond the bound", "%v %s %#x: %#x is off by %v of %v", c, kind, x, y, off, bound)
				}
			}
		}
		assert.Greater(t, checked, 6000, c)
		// Nothing is cut that fits into the guard places and the wider format.
		room := guardPlaces + a.out.Frac - a.in.Frac
		assert.Equal(t, a.in.place(a.in.largest) > room, inexact > 0, "%v: %d sums were not exact", c, inexact)
	}
}

// payload returns elements as on the wire.
func payload(elements []uint32, bits int) []byte {
	p := make([]byte, len(elements)*bits/8)
	store(p, elements, bits)
	return p
}

// TestChunksAgreeWithElements checks the sums of whole chunks, and their counts, against the sums
// of single elements. Chunks take other paths, and skip absent ports.
func TestChunksAgreeWithElements(t *testing.T) {
	for _, c := range arithmetics() {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			a, elements := c.arithmetic(t), c.arithmetic(t) // a sums all sizes, so it reuses its scratch space
			r := rand.New(rand.NewPCG(5, 6))
			for _, ports := range []int{1, 2, 3, 4, 5, 7, 8, 13, 33} {
				for round := range 6 {
					length := 1 + r.IntN(60)
					compareChunk(t, c, a, elements, randomContributions(r, c, ports, length, round == 0))
				}
			}
		})
	}
}

// randomContributions returns an array per port; nil for some ports, unless all are to be members.
// At least one is.
func randomContributions(r *rand.Rand, c card, ports, length int, all bool) [][]uint32 {
	contributions := make([][]uint32, ports)
	source := operands.New(c.format, c.result, r.Uint64())
	column := make([]uint32, ports)
	for p := range contributions {
		if all || r.IntN(3) > 0 {
			contributions[p] = make([]uint32, length)
		}
	}
	contributions[r.IntN(ports)] = make([]uint32, length)
	for i := range length {
		source.Next(column)
		for p, x := range contributions {
			if x != nil {
				x[i] = column[p]
			}
		}
	}
	return contributions
}

// compareChunk sums contributions as a chunk and as elements.
func compareChunk(t *testing.T, c card, chunks, elements *Arithmetic, contributions [][]uint32) {
	t.Helper()
	payloads := make([][]byte, len(contributions))
	var length, nonfinite, overflowed int
	for p, x := range contributions {
		if x != nil {
			payloads[p], length = payload(x, chunks.format.Bits), len(x)
		}
	}
	want := make([]uint32, length)
	ports := make([]uint32, len(contributions))
	for i := range want {
		for p, x := range contributions {
			ports[p] = c.which.Identity(c.format)
			if x != nil {
				ports[p] = x[i]
			}
		}
		var over bool
		if want[i], over = elements.Element(ports); over {
			overflowed++
		}
		if elements.out != nil && elements.out.isNonfinite(want[i]) {
			nonfinite++
		}
	}
	result := make([]byte, length*chunks.result.Bits/8)
	gotNonfinite, gotOverflowed := chunks.chunk(result, payloads)
	require.Equal(t, payload(want, chunks.result.Bits), result, "%d ports", len(contributions))
	require.Equal(t, []int{nonfinite, overflowed}, []int{gotNonfinite, gotOverflowed}, "%d ports", len(contributions))
}

// TestMorePortsChangeNothing checks that members 0..n-1 get the same bits on every card with n
// ports or more.
func TestMorePortsChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, c := range arithmetics() {
		a := c.arithmetic(t)
		for members := 1; members <= 9; members++ {
			var payloads [][]byte
			for _, x := range randomContributions(r, c, members, 60, true) {
				payloads = append(payloads, payload(x, a.format.Bits))
			}
			want, got := make([]byte, 60*a.result.Bits/8), make([]byte, 60*a.result.Bits/8)
			a.chunk(want, payloads)
			for range 8 {
				payloads = append(payloads, nil)
				a.chunk(got, payloads)
				require.Equal(t, want, got, "%v: %d members of %d ports", c, members, len(payloads))
			}
		}
	}
}

func TestNonfiniteContributions(t *testing.T) {
	for _, f := range []struct {
		format            wire.Format
		finite, nonfinite []uint32
	}{
		{wire.FP32, []uint32{0, 1, 0x7f7fffff, 0xff7fffff}, []uint32{0x7f800000, 0xff800000, 0x7f800001, 0xffffffff}},
		{wire.BF16, []uint32{0, 1, 0x7f7f, 0xff7f}, []uint32{0x7f80, 0xff80, 0x7f81, 0xffff}},
		{wire.FP16, []uint32{0, 1, 0x7bff, 0xfbff}, []uint32{0x7c00, 0xfc00, 0x7c01, 0xffff}},
		{wire.FP8E4M3, []uint32{0, 1, 0x7e, 0xfe, 0x78, 0xf8}, []uint32{0x7f, 0xff}},
		{wire.FP8E5M2, []uint32{0, 1, 0x7b, 0xfb}, []uint32{0x7c, 0xfc, 0x7d, 0xff}},
		{wire.Int32, []uint32{0, 0x7fffffff, 0x80000000, 0x7fc00000, 0xffffffff}, nil},
	} {
		a := card{wire.SumTree, f.format, f.format, false}.arithmetic(t)
		assert.False(t, a.holdsNonfinite(payload(f.finite, a.format.Bits)), f.format)
		for _, x := range f.nonfinite {
			assert.True(t, a.holdsNonfinite(payload(append(f.finite[:len(f.finite):len(f.finite)], x), a.format.Bits)), "%v %#x", f.format, x)
		}
	}
}

func BenchmarkReduceChunk(b *testing.B) {
	for _, c := range arithmetics() {
		for _, ports := range []int{2, 8} {
			b.Run(fmt.Sprintf("%v/ports=%d", c, ports), func(b *testing.B) {
				a := c.arithmetic(b)
				source := operands.New(c.format, c.result, 9)
				column := make([]uint32, ports)
				contributions, payloads := make([][]uint32, ports), make([][]byte, ports)
				for len(contributions[0]) < 1008 {
					if source.Next(column) != "normal distribution" && c.format != wire.Int32 {
						continue
					}
					for p := range contributions {
						contributions[p] = append(contributions[p], column[p])
					}
				}
				for p, x := range contributions {
					payloads[p] = payload(x, a.format.Bits)
				}
				result := make([]byte, 1008*a.result.Bits/8)
				b.SetBytes(int64(ports * len(payloads[0])))
				b.ReportAllocs()
				for b.Loop() {
					a.chunk(result, payloads)
				}
			})
		}
	}
}
