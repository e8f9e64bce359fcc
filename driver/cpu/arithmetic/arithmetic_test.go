package arithmetic

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
	"tributary/verify/reference/operands"
	"tributary/verify/reference/oracle"
)

// kind is what New takes.
type kind struct {
	sum            wire.Sum
	format, result wire.Format
	saturate       bool
}

func (k kind) String() string {
	name := fmt.Sprintf("%v_%v_%v", k.sum, k.format, k.result)
	if k.saturate {
		name += "_saturate"
	}
	return name
}

// kinds are all that a card may have.
func kinds() (all []kind) {
	for _, sum := range wire.Sums {
		for _, in := range wire.Formats {
			for _, out := range wire.Formats {
				if in.FitsIn(out) {
					all = append(all, kind{sum.Sum, in.Format, out.Format, false})
				}
			}
		}
		if sum.Adds {
			all = append(all, kind{sum.Sum, wire.Int32, wire.Int32, true})
		}
	}
	return all
}

// onBothPaths runs a test with the kernels, where the processor has them, and without.
func onBothPaths(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	for _, kernels := range []bool{true, false} {
		if kernels && !useKernels {
			continue
		}
		t.Run(map[bool]string{true: "kernels", false: "portable"}[kernels], func(t *testing.T) {
			defer func(before bool) { useKernels = before }(useKernels)
			useKernels = kernels
			test(t)
		})
	}
}

func newArithmetic(t testing.TB, k kind) *Arithmetic {
	t.Helper()
	a, err := New(k.sum, k.format, k.result, k.saturate)
	require.NoError(t, err)
	return a
}

// put writes an element to a payload.
func put(payload []byte, size, i int, x uint32) {
	switch size {
	case 1:
		payload[i] = byte(x)
	case 2:
		binary.LittleEndian.PutUint16(payload[2*i:], uint16(x))
	default:
		binary.LittleEndian.PutUint32(payload[4*i:], x)
	}
}

func get(payload []byte, size, i int) uint32 {
	switch size {
	case 1:
		return uint32(payload[i])
	case 2:
		return uint32(binary.LittleEndian.Uint16(payload[2*i:]))
	}
	return binary.LittleEndian.Uint32(payload[4*i:])
}

// expected is what a sum must give.
type expected struct {
	sums    []uint32
	reports map[int]Exceptions
}

// expect computes sums by the oracle. columns[i] has an element of every port; absent ports are
// false in present.
func expect(k kind, columns [][]uint32, present []bool, chunk int) expected {
	e := expected{reports: map[int]Exceptions{}}
	right := oracle.New(k.sum, k.format, k.result, k.saturate)
	out, _ := k.result.Info()
	for i, column := range columns {
		x := slices.Clone(column)
		var r Exceptions
		for p, here := range present {
			if !here {
				x[p] = k.sum.Identity(k.format)
			} else if isNonfinite(k.format, x[p]) {
				r.In |= 1 << p
			}
		}
		y, over := right.Sum(x)
		if k.format == wire.Int32 && k.sum == wire.SumMax {
			over = false
		}
		if isNonfinite(out.Format, y) {
			r.Out = 1
		}
		if over {
			r.Overflow = 1
		}
		e.sums = append(e.sums, y)
		if r != (Exceptions{}) {
			all := e.reports[i/chunk]
			e.reports[i/chunk] = Exceptions{all.In | r.In, all.Out + r.Out, all.Overflow + r.Overflow}
		}
	}
	return e
}

// isNonfinite is written from the table of section 7.1.
func isNonfinite(f wire.Format, x uint32) bool {
	switch f {
	case wire.FP32:
		return x&0x7f800000 == 0x7f800000
	case wire.BF16:
		return x&0x7f80 == 0x7f80
	case wire.FP16:
		return x&0x7c00 == 0x7c00
	case wire.FP8E5M2:
		return x&0x7c == 0x7c
	case wire.FP8E4M3:
		return x&0x7f == 0x7f
	}
	return false
}

// check compares a sum with what it must give. Rows and the result begin at odd addresses if skew
// is odd. If inPlace is a port, the result is its row.
func check(t testing.TB, k kind, columns [][]uint32, present []bool, chunk, skew, inPlace int, w *Workspace) {
	t.Helper()
	a := newArithmetic(t, k)
	n, in, out := len(columns), a.in.size, a.out.size
	rows := make([][]byte, len(present))
	for p, here := range present {
		if !here {
			continue
		}
		rows[p] = make([]byte, n*in+2*skew)[skew*(1+p%2):][:n*in]
		for i, column := range columns {
			put(rows[p], in, i, column[p])
		}
	}
	before := make([][]byte, len(rows))
	for p := range rows {
		before[p] = slices.Clone(rows[p])
	}
	memory := make([]byte, n*out+64)
	for i := range memory {
		memory[i] = 0xa5
	}
	dst := memory[16+skew:][:n*out]
	if inPlace >= 0 {
		dst = rows[inPlace]
	}
	reports := map[int]Exceptions{}
	last := -1
	a.Sum(dst, rows, chunk, w, func(chunk int, e Exceptions) {
		require.Greater(t, chunk, last, "chunks in order")
		last = chunk
		reports[chunk] = e
	})
	want := expect(k, columns, present, chunk)
	for i, y := range want.sums {
		if got := get(dst, out, i); got != y {
			require.Failf(t, "wrong sum", "%v: element %d of %d, ports %v: %x gives %x, want %x", k, i, n, present, columns[i], got, y)
		}
	}
	require.Equal(t, want.reports, reports, "%v", k)
	for p := range rows {
		if p != inPlace {
			require.Equal(t, before[p], rows[p], "%v: row %d has changed", k, p)
		}
	}
	if inPlace < 0 {
		for i, b := range memory {
			if (i < 16+skew || i >= 16+skew+n*out) && b != 0xa5 {
				t.Fatalf("%v: wrote beyond the result", k)
			}
		}
	}
	for p, row := range before {
		holds := false
		for i := range len(row) / in {
			holds = holds || isNonfinite(k.format, get(row, in, i))
		}
		require.Equal(t, holds, a.HoldsNonfinite(row), "%v: row %d", k, p)
	}
}

func all(ports int) []bool { return slices.Repeat([]bool{true}, ports) }

// hostile returns columns of hostile operands.
func hostile(k kind, ports, n int, seed uint64) (columns [][]uint32) {
	source := operands.New(k.format, k.result, seed)
	for range n {
		x := make([]uint32, ports)
		source.Next(x)
		columns = append(columns, x)
	}
	return columns
}

func TestHostileOperands(t *testing.T) {
	onBothPaths(t, func(t *testing.T) {
		var w Workspace
		for _, k := range kinds() {
			for _, ports := range []int{8, 4} {
				check(t, k, hostile(k, ports, 2000, uint64(ports)), all(ports), 7, 0, -1, &w)
			}
		}
	})
}

func TestEveryNumberOfRows(t *testing.T) {
	onBothPaths(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		var w Workspace
		for _, k := range kinds() {
			for ports := 1; ports <= MaxRows; ports++ {
				present := all(ports)
				if ports%2 == 0 {
					for p := range present {
						present[p] = random.IntN(3) > 0
					}
					present[random.IntN(ports)] = true
				}
				check(t, k, hostile(k, ports, 33, uint64(ports)), present, 16, ports%2, -1, &w)
			}
		}
	})
}
