package arithmetic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
	"tributary/verify/reference/operands"
)

func TestWhatACardMayHave(t *testing.T) {
	allowed := kinds()
	for sum := wire.Sum(0); int(sum) <= len(wire.Sums)+1; sum++ {
		for format := wire.Format(0); format <= 7; format++ {
			for result := wire.Format(0); result <= 7; result++ {
				for _, saturate := range []bool{false, true} {
					_, err := New(sum, format, result, saturate)
					assert.Equal(t, slices.Contains(allowed, kind{sum, format, result, saturate}), err == nil, "%v %v %v %v: %v", sum, format, result, saturate, err)
				}
			}
		}
	}
	for message, k := range map[string]kind{
		"sum: there is no sum 9":                             {9, wire.FP32, wire.FP32, false},
		"format: there is no format 0":                       {wire.SumTree, 0, wire.FP32, false},
		"result: there is no format 9":                       {wire.SumTree, wire.FP32, 9, false},
		"result: bf16 does not hold every fp32":              {wire.SumTree, wire.FP32, wire.BF16, false},
		"saturate: fp32 does not saturate":                   {wire.SumTree, wire.FP32, wire.FP32, true},
		"saturate: max never overflows":                      {wire.SumMax, wire.Int32, wire.Int32, true},
		"sum: there is no sum 0\nresult: fp32 does not hold": {0, wire.Int32, wire.FP32, false},
	} {
		_, err := New(k.sum, k.format, k.result, k.saturate)
		assert.ErrorContains(t, err, message)
	}
}

func TestHostileOperands(t *testing.T) {
	var w Workspace
	for _, k := range kinds() {
		for _, ports := range []int{4, 8} {
			call{k, hostile(k, ports, 4000/slow, uint64(ports)), everyPort(ports), 7, 0, -1}.check(t, &w)
		}
	}
}

// TestEveryNumberOfRows also has absent ports: with an even number of ports.
func TestEveryNumberOfRows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var w Workspace
	for _, k := range kinds() {
		for ports := 1; ports <= MaxRows; ports += 1 + random.IntN(slow) {
			present := everyPort(ports)
			if ports%2 == 0 {
				density := 1 + random.IntN(8)
				for p := range present {
					present[p] = random.IntN(8) < density
				}
				present[random.IntN(ports)] = true
			}
			call{k, hostile(k, ports, 33, uint64(ports)), present, 16, ports % 4, -1}.check(t, &w)
		}
	}
}

// TestEveryLength ends in every place of a vector and beside the end of a tile, on every alignment,
// with the result beside the rows and in place of each.
func TestEveryLength(t *testing.T) {
	const ports = 3
	lengths := []int{tile - 1, tile, tile + 1, 2*tile + 9}
	for n := range 70 / slow {
		lengths = append(lengths, n*slow)
	}
	var w Workspace
	for _, k := range kinds() {
		in, _ := k.format.Info()
		out, _ := k.result.Info()
		columns := hostile(k, ports, slices.Max(lengths), 5)
		for i, n := range lengths {
			c := call{k, columns[len(columns)-n:], everyPort(ports), 10, i % 5, -1}
			if in.Bits == out.Bits {
				c.inPlace = i%(ports+1) - 1
			}
			c.check(t, &w)
		}
	}
}

// TestEveryOrder sums every order of eight hostile operands.
func TestEveryOrder(t *testing.T) {
	const ports, orders = 8, 40320
	var w Workspace
	for _, k := range kinds() {
		if k.sum == wire.SumTree && k.format != wire.Int32 {
			continue // the only sum that depends on the order
		}
		source := operands.New(k.format, k.result, 3)
		x := make([]uint32, ports)
		for !operands.Hurts(source.Next(x)) {
		}
		first := call{k, [][]uint32{x}, everyPort(ports), 1, 0, -1}.expect()
		c := call{k, nil, everyPort(ports), 1, 0, -1}
		for order := range operands.Permutations(x) {
			if c.columns = append(c.columns, slices.Clone(order)); len(c.columns) == orders/slow {
				break
			}
		}
		a := k.arithmetic(t)
		for _, a := range []*Arithmetic{a, a.Portable()} {
			got := c.run(t, a, &w)
			for i, y := range got.sums {
				if y != first.sums[0] {
					require.Failf(t, "another sum", "%v: %x gives %x, in another order %x", k, c.columns[i], y, first.sums[0])
				}
				require.Equal(t, first.reports[0], got.reports[i])
			}
		}
	}
}

// TestAllPairsOfSmallFormats sums all pairs of both fp8 formats.
func TestAllPairsOfSmallFormats(t *testing.T) {
	var w Workspace
	for _, k := range kinds() {
		if info, _ := k.format.Info(); info.Bits != 8 || k.format != k.result {
			continue
		}
		var pairs [][]uint32
		for pair := uint32(0); pair < 1<<16; pair += slow {
			pairs = append(pairs, []uint32{pair >> 8, pair & 0xff})
		}
		call{k, pairs, everyPort(2), 100, 0, -1}.check(t, &w)
	}
}

// TestNumbersAlone passes every number of the small formats through every sum, alone: they widen
// to themselves.
func TestNumbersAlone(t *testing.T) {
	var w Workspace
	for _, k := range kinds() {
		info, _ := k.format.Info()
		if info.Bits == 32 {
			continue
		}
		var columns [][]uint32
		for x := uint32(0); x < 1<<info.Bits; x += max(1, uint32(slow)<<info.Bits>>16) {
			columns = append(columns, []uint32{x})
		}
		call{k, columns, everyPort(1), 100, 0, -1}.check(t, &w)
	}
}

// TestPairsOfFP32 adds structured pairs like those of Berkeley TestFloat: every exponent, and
// significands with a few ones at either end, or a few zeros. The processor's addition is the
// judge: for two members exact is tree.
func TestPairsOfFP32(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	significand := func() uint32 {
		ones := uint32(1)<<random.IntN(24) - 1
		switch random.IntN(4) {
		case 0:
			return ones
		case 1:
			return 0x7fffff &^ ones
		case 2:
			return 1 << random.IntN(23)
		}
		return 0x7fffff &^ (1 << random.IntN(23))
	}
	number := func(exponent uint32) uint32 { return random.Uint32N(2)<<31 | exponent<<23 | significand() }
	var columns [][]uint32
	for a := range uint32(256) {
		for b := uint32(0); b < 256; b += slow {
			columns = append(columns, []uint32{number(a), number(b)})
		}
	}
	random.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	var w Workspace
	for _, sum := range []wire.Sum{wire.SumTree, wire.SumExact} {
		c := call{kind{sum, wire.FP32, wire.FP32, false}, columns, everyPort(2), 100, 0, -1}
		a := c.arithmetic(t)
		for _, a := range []*Arithmetic{a, a.Portable()} {
			for i, y := range c.run(t, a, &w).sums {
				x := columns[i]
				want := math.Float32bits(math.Float32frombits(x[0]) + math.Float32frombits(x[1]))
				if want&0x7fffffff > 0x7f800000 {
					want = 0x7fc00000
				}
				if y != want {
					require.Failf(t, "wrong sum", "%v: %x gives %x, want %x", sum, x, y, want)
				}
			}
		}
	}
}

// TestWideSpreads has members so far apart that exact decides them by whole numbers, among others
// that it decides at once.
func TestWideSpreads(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	for _, format := range []wire.Format{wire.FP32, wire.BF16} {
		info, _ := format.Info()
		for _, ports := range []int{2, 3, 8, 9, 64} {
			var columns [][]uint32
			for range 2000 / slow {
				column := make([]uint32, ports)
				base, spread := random.IntN(255), 1+random.IntN(60)
				for p := range column {
					exponent := uint32(min(254, base+random.IntN(spread)))
					column[p] = (random.Uint32()&0x807fffff | exponent<<23) >> (32 - info.Bits)
				}
				columns = append(columns, column)
			}
			var w Workspace
			call{kind{wire.SumExact, format, format, false}, columns, everyPort(ports), 50, 0, -1}.check(t, &w)
		}
	}
}

// TestEdgeOfTheSpread has sums on which a float64 sum fails as soon as the members are one exponent
// further apart than the kernels of exact allow: large members that sum to a tie, and two small ones
// that leave one last place to break it.
func TestEdgeOfTheSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	for log := 3; log <= 6; log++ {
		ports := 1 << log
		var columns [][]uint32
		for range 6000 / slow {
			column := make([]uint32, ports)
			exponent := 60 + random.Uint32N(150)
			sum := uint64(0)
			for p := range ports - 2 {
				significand := uint64(0xfff000 + random.Uint32N(0x1000-64))
				if p == ports-3 { // the last place of the result is worth 2^log: leave half of it
					significand += (1<<log*3/2 - (sum+significand)%(1<<log)) % (1 << log)
				}
				sum += significand
				column[p] = exponent<<23 | uint32(significand)&0x7fffff
			}
			small := (exponent - uint32(53-24-log) + random.Uint32N(4) - 2) << 23
			column[ports-2], column[ports-1] = small|2, small|1|1<<31
			if random.IntN(2) == 0 {
				for p := range column {
					column[p] ^= 1 << 31
				}
			}
			random.Shuffle(ports, func(i, j int) { column[i], column[j] = column[j], column[i] })
			columns = append(columns, column)
		}
		var w Workspace
		call{kind{wire.SumExact, wire.FP32, wire.FP32, false}, columns, everyPort(ports), 50, 0, -1}.check(t, &w)
	}
}

// TestTiesBrokenFarBelow has sums beside a tie of the results: a far smaller member breaks it, or one
// near the last place of a float64, which another may cancel.
func TestTiesBrokenFarBelow(t *testing.T) {
	random := rand.New(rand.NewPCG(10, 10))
	for _, result := range []wire.Format{wire.FP32, wire.BF16} {
		info, _ := result.Info()
		var columns [][]uint32
		for range 20000 / slow {
			base := 140 + random.IntN(100)
			power := func(places int) uint32 { return uint32(base-places)<<23 | random.Uint32N(2)<<31 }
			column := make([]uint32, 8)
			column[0] = power(0) | random.Uint32N(1<<info.Frac)<<(23-info.Frac)
			column[1] = power(info.Frac + 1)
			column[2] = power(50 + random.IntN(20))
			column[3] = power(70 + random.IntN(60))
			switch random.IntN(3) {
			case 0:
				column[4] = column[2] ^ 1<<31
			case 1:
				column[4] = power(70 + random.IntN(60))
			}
			for p := range column {
				column[p] >>= 32 - info.Bits
			}
			random.Shuffle(len(column), func(i, j int) { column[i], column[j] = column[j], column[i] })
			columns = append(columns, column)
		}
		var w Workspace
		call{kind{wire.SumExact, result, result, false}, columns, everyPort(8), 50, 0, -1}.check(t, &w)
	}
}

// TestOneArithmeticForAll uses an Arithmetic from several goroutines at once.
func TestOneArithmeticForAll(t *testing.T) {
	for _, k := range kinds() {
		c := call{k, hostile(k, 5, 200, 9), everyPort(5), 16, 0, -1}
		a, want := c.arithmetic(t), c.expect()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				var w Workspace
				for range 2 {
					assert.Equal(t, want, c.run(t, a, &w), "%v", k)
				}
			})
		}
		all.Wait()
	}
}

func TestNoAllocations(t *testing.T) {
	for _, k := range kinds() {
		a := k.arithmetic(t)
		for _, a := range []*Arithmetic{a, a.Portable()} {
			rows := make([][]byte, 10)
			for p := range rows {
				rows[p] = make([]byte, 1000*a.in.size)
				for i, x := range hostile(k, 1, 1000, uint64(p)) {
					put(rows[p], a.in.size, i, x[0])
				}
			}
			rows[3] = nil
			dst := make([]byte, 1000*a.out.size)
			var w Workspace
			reports := 0
			once := func() {
				a.Sum(dst, rows, 100, &w, func(int, Exceptions) { reports++ })
				a.HoldsNonfinite(rows[0])
			}
			once()
			require.Zero(t, testing.AllocsPerRun(2, once), "%v", k)
		}
	}
}

func TestWrongCallsPanic(t *testing.T) {
	a := kind{wire.SumTree, wire.FP32, wire.FP32, false}.arithmetic(t)
	for message, rows := range map[string][][]byte{
		"arithmetic: no row is present":            {nil, nil},
		"arithmetic: row 1 has 7 bytes, want 8":    {nil, make([]byte, 7)},
		"arithmetic: row 0 has 12 bytes, want 8":   {make([]byte, 12)},
		"arithmetic: 65 rows, more than 64":        make([][]byte, 65),
		"arithmetic: a result of 7 bytes for fp32": {make([]byte, 8)},
	} {
		size := 8
		if message == "arithmetic: a result of 7 bytes for fp32" {
			size = 7
		}
		assert.PanicsWithValue(t, message, func() {
			a.Sum(make([]byte, size), rows, 1, new(Workspace), nil)
		}, fmt.Sprint(rows))
	}
}

// TestReleasesThePayloads: a workspace does not keep the memory of a call.
func TestReleasesThePayloads(t *testing.T) {
	var w Workspace
	for _, k := range kinds() {
		c := call{k, hostile(k, 20, 20, 1), everyPort(20), 16, 0, -1}
		c.run(t, c.arithmetic(t), &w)
		for i := range w.rows {
			require.Nil(t, w.rows[i])
			require.Nil(t, w.pointers[i])
		}
		require.Zero(t, w.partial)
		require.Zero(t, w.eight)
	}
}

// FuzzSum takes a kind, which ports are present, a skew and the elements.
func FuzzSum(f *testing.F) {
	f.Add(uint8(0), uint64(0xff), uint8(1), []byte("any bytes are elements of any format, and a few vectors of them"))
	f.Add(uint8(31), uint64(1)<<63|1<<40|6, uint8(0), make([]byte, 300))
	all := kinds()
	f.Fuzz(func(t *testing.T, which uint8, members uint64, skew uint8, elements []byte) {
		if members == 0 {
			return
		}
		c := call{kind: all[int(which)%len(all)], chunk: 1 + int(skew)%17, skew: int(skew) % 8, inPlace: -1}
		info, _ := c.format.Info()
		for ; members != 0; members >>= 1 {
			c.present = append(c.present, members&1 != 0)
		}
		ports, size := len(c.present), info.Bits/8
		for ; len(elements) >= ports*size; elements = elements[ports*size:] {
			column := make([]uint32, ports)
			for p := range column {
				column[p] = get(elements, size, p)
			}
			c.columns = append(c.columns, column)
		}
		c.check(t, new(Workspace))
	})
}
