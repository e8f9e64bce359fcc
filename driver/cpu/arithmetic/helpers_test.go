package arithmetic

import (
	"encoding/binary"
	"fmt"
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

func (k kind) arithmetic(t testing.TB) *Arithmetic {
	t.Helper()
	a, err := New(k.sum, k.format, k.result, k.saturate)
	require.NoError(t, err)
	return a
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

// call is a sum to check.
type call struct {
	kind
	columns [][]uint32 // an element of every port
	present []bool     // by port
	chunk   int
	skew    int // rows and result begin at so many bytes from an aligned address, or twice as many
	inPlace int // the port whose row the result replaces; -1: none
}

// check computes the sum on both paths, and compares all of it with the oracle.
func (c call) check(t testing.TB, w *Workspace) {
	t.Helper()
	want := c.expect()
	a := c.arithmetic(t)
	for path, a := range map[string]*Arithmetic{"kernels": a, "portable": a.Portable()} {
		got := c.run(t, a, w)
		for i, y := range want.sums {
			if got.sums[i] != y {
				require.Failf(t, "wrong sum", "%v, %s: element %d of %d, ports %v: %x gives %x, want %x",
					c.kind, path, i, len(c.columns), c.present, c.columns[i], got.sums[i], y)
			}
		}
		require.Equal(t, want.reports, got.reports, "%v, %s", c.kind, path)
	}
}

// outcome is what a sum gives.
type outcome struct {
	sums    []uint32
	reports map[int]Exceptions // by chunk
}

// expect computes the outcome by the oracle.
func (c call) expect() outcome {
	o := outcome{reports: map[int]Exceptions{}}
	right := oracle.New(c.sum, c.format, c.result, c.saturate)
	x := make([]uint32, len(c.present))
	for i, column := range c.columns {
		e := o.reports[i/c.chunk]
		for p, here := range c.present {
			x[p] = c.sum.Identity(c.format)
			if here {
				x[p] = column[p]
				if isNonfinite(c.format, x[p]) {
					e.In |= 1 << p
				}
			}
		}
		y, over := right.Sum(x)
		if isNonfinite(c.result, y) {
			e.Out++
		}
		if over {
			e.Overflow++
		}
		if e != (Exceptions{}) {
			o.reports[i/c.chunk] = e
		}
		o.sums = append(o.sums, y)
	}
	return o
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

// run computes the outcome by a. It fails if a wrote to anything else than the result, or found
// NaNs and infinities where there are none.
func (c call) run(t testing.TB, a *Arithmetic, w *Workspace) outcome {
	t.Helper()
	const untouched = 0xa5
	n, in, out := len(c.columns), a.in.size, a.out.size
	rows := make([][]byte, len(c.present))
	for p, here := range c.present {
		if !here {
			continue
		}
		rows[p] = make([]byte, n*in+2*c.skew)[c.skew*(1+p%2):][:n*in]
		holds := false
		for i, column := range c.columns {
			put(rows[p], in, i, column[p])
			holds = holds || isNonfinite(c.format, column[p])
		}
		require.Equal(t, holds, a.HoldsNonfinite(rows[p]), "%v: row %d holds a NaN or an infinity", c.kind, p)
	}
	before := make([][]byte, len(rows))
	for p := range rows {
		before[p] = slices.Clone(rows[p])
	}
	const margin = 64
	memory := slices.Repeat([]byte{untouched}, margin+n*out+margin)
	dst := memory[margin-c.skew:][:n*out]
	if c.inPlace >= 0 {
		dst = rows[c.inPlace]
	}
	o := outcome{reports: map[int]Exceptions{}}
	last := -1
	a.Sum(dst, rows, c.chunk, w, func(chunk int, e Exceptions) {
		require.Greater(t, chunk, last, "%v: chunks in order", c.kind)
		last = chunk
		o.reports[chunk] = e
	})
	for i := range n {
		o.sums = append(o.sums, get(dst, out, i))
	}
	for p := range rows {
		if p != c.inPlace {
			require.Equal(t, before[p], rows[p], "%v: row %d has changed", c.kind, p)
		}
	}
	for i, b := range memory {
		if (i < margin-c.skew || i >= margin-c.skew+n*out) && b != untouched {
			require.Failf(t, "wrote beyond the result", "%v: %d elements, at %d", c.kind, n, i-margin+c.skew)
		}
	}
	return o
}

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

// everyPort are ports that are all present.
func everyPort(ports int) []bool { return slices.Repeat([]bool{true}, ports) }

// hostile returns sets of hostile operands. Sets of one kind are neighbours, so that kernels find
// whole vectors without a NaN.
func hostile(k kind, ports, n int, seed uint64) (columns [][]uint32) {
	source := operands.New(k.format, k.result, seed)
	byKind := map[string][][]uint32{}
	var names []string
	for range n {
		x := make([]uint32, ports)
		name := source.Next(x)
		if byKind[name] == nil {
			names = append(names, name)
		}
		byKind[name] = append(byKind[name], x)
	}
	for _, name := range names {
		columns = append(columns, byKind[name]...)
	}
	return columns
}
