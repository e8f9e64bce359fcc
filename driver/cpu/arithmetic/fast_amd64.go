//go:build amd64 && !purego

package arithmetic

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"golang.org/x/sys/cpu"

	"tributary/driver/cpu/arithmetic/constants"
	"tributary/driver/wire"
)

//go:generate go run ./asm -out zkernels_amd64.s -stubs zkernels_amd64.go -pkg arithmetic

// kernel is a sum of zkernels_amd64.s: see asm/main.go.
type kernel func(dst *byte, rows **byte, used, n int, c *uint32) (done int)

// fastPath is the choice of kernels for an Arithmetic.
type fastPath struct {
	inPlace bool // kernels read payloads and write them
	tree    bool
	kernels []kernel // tree: of 2, 4 and 8 rows; else of few rows and of many
	hard    kernel   // for elements that the others cannot decide, or nil
	widen   func(to *uint32, from *byte, n int, c *uint32) (right int)
	narrow  func(to *byte, from *uint32, n int, c *uint32)
	// by the bits of the number of rows less 1
	tables [7]constants.Table
}

// Kernels by the format of results.
var (
	trees = map[wire.Format][]kernel{
		wire.FP32: {tree2FP32, tree4FP32, tree8FP32}, wire.BF16: {tree2BF16, tree4BF16, tree8BF16},
		wire.FP16: {tree2Small, tree4Small, tree8Small},
	}
	fuseds = map[wire.Format][]kernel{wire.FP32: {fusedFP32, fusedFP32Many}, wire.BF16: {fusedBF16}, wire.FP16: {fusedSmall}}
	exacts = map[wire.Format][]kernel{wire.FP32: {exactFP32}, wire.BF16: {exactBF16}, wire.FP16: {exactSmall}}
	hards  = map[wire.Format]kernel{wire.FP32: exactHardFP32, wire.BF16: exactHardBF16, wire.FP16: exactHardSmall}
)

// newFastPath returns the kernels of a, or nil.
func newFastPath(a *Arithmetic) *fastPath {
	if !cpu.X86.HasAVX2 {
		return nil
	}
	f := &fastPath{inPlace: a.in.size == 4}
	if a.out.integer() {
		f.kernels = []kernel{addIntegers}
		if !a.adds {
			f.kernels = []kernel{largestInteger}
		}
		return f
	}
	results := a.out.Format
	if a.out.size == 1 {
		results = wire.FP16 // the same kernels
	}
	switch a.which {
	case wire.SumTree:
		f.tree, f.kernels = true, trees[results]
	case wire.SumFused:
		f.kernels = fuseds[results]
	case wire.SumExact:
		f.kernels, f.hard = exacts[results], hards[results]
	case wire.SumMax:
		f.kernels = []kernel{largestFloat}
	default:
		return nil
	}
	switch {
	case a.in.Format == wire.BF16:
		f.widen = widenBF16
	case a.in.size == 2:
		f.widen = widen16
	case a.in.size == 1:
		f.widen = widen8
	}
	switch {
	case a.out.Format == wire.BF16:
		f.narrow = narrowBF16
	case a.out.size == 2:
		f.narrow = narrow16
	case a.out.size == 1:
		f.narrow = narrow8
	}
	for i := range f.tables {
		f.tables[i] = newTable(a.in, a.out, a.spread(1<<i))
	}
	return f
}

// newTable returns the constants of formats, with the spread for some number of rows.
func newTable(in, out *format, spread int) constants.Table {
	power := func(of int) uint32 { return math.Float32bits(float32(math.Ldexp(1, of))) }
	return constants.Table{
		constants.Spread: uint32(spread),

		constants.Least:     out.least,
		constants.Magic:     uint32(out.cut)<<fp32Frac + hiddenBit/2,
		constants.Beyond:    out.largest*2 + 1,
		constants.Up:        power(out.Frac + guard - 1),
		constants.Unit:      power(-out.Frac - guard),
		constants.PerUnit:   math.Float32bits(float32(1 / out.unit)),
		constants.OutRebias: out.rebias,
		constants.OutCut:    uint32(out.cut),
		constants.OutSign:   uint32(32 - out.Bits),

		constants.InMagnitude: in.sign - 1,
		constants.InFinite:    in.nonfiniteCode() - 1,
		constants.InLeast:     in.least,
		constants.InRebias:    in.rebias,
		constants.InCut:       uint32(in.cut),
		constants.InSign:      uint32(32 - in.Bits),
	}
}

// sum sums n elements, a multiple of lanes, from rows, absent ones nil. It returns how many it has
// done: it stops at elements for the portable path. It changes rows.
func (f *fastPath) sum(w *Workspace, rows *[MaxRows]*byte, dst *byte, n int) (done int) {
	c := &f.tables[bits.Len(uint(w.used-1))][0]
	switch {
	case f.tree:
		return f.sumTree(w, rows, dst, n, c)
	case f.hard != nil:
		return f.sumHard(w, rows, dst, n, c)
	case len(f.kernels) > 1 && w.used > 8:
		return f.kernels[1](dst, &rows[0], w.used, n, c)
	}
	return f.kernels[0](dst, &rows[0], w.used, n, c)
}

// sumHard passes elements that the first kernel cannot decide to the second, a few vectors at a
// time.
func (f *fastPath) sumHard(w *Workspace, rows *[MaxRows]*byte, dst *byte, n int, c *uint32) (done int) {
	for {
		easy := f.kernels[0](dst, &rows[0], w.used, n-done, c)
		if done += easy; done == n {
			return done
		}
		dst = advance(dst, rows[:w.used], easy)
		hard := f.hard(dst, &rows[0], w.used, min(n-done, 8*lanes), c)
		if done += hard; done == n || hard == 0 {
			return done
		}
		dst = advance(dst, rows[:w.used], hard)
	}
}

// advance moves the addresses of rows by some elements, and returns dst moved likewise.
func advance(dst *byte, rows []*byte, elements int) *byte {
	for i, row := range rows {
		if row != nil {
			rows[i] = (*byte)(unsafe.Add(unsafe.Pointer(row), 4*elements))
		}
	}
	return (*byte)(unsafe.Add(unsafe.Pointer(dst), 4*elements))
}

// sumTree sums by the tree. A kernel takes all elements if it takes all rows, else a tile: minusZeros
// and the workspace's rows are not longer.
func (f *fastPath) sumTree(w *Workspace, rows *[MaxRows]*byte, dst *byte, n int, c *uint32) (done int) {
	if level := bits.Len(uint(w.used - 1)); w.used > 1 && w.used == 1<<level && level <= len(f.kernels) && !slices.Contains(rows[:w.used], nil) {
		return f.kernels[level-1](dst, &rows[0], w.used, n, c)
	}
	for {
		asked := min(tile, n-done)
		sums := f.tileOfTree(w, rows, dst, asked, c)
		if done += sums; done == n || sums < asked {
			return done
		}
		dst = advance(dst, rows[:w.used], sums)
	}
}

// tileOfTree sums at most a tile by the tree.
func (f *fastPath) tileOfTree(w *Workspace, rows *[MaxRows]*byte, dst *byte, n int, c *uint32) (done int) {
	if w.used <= 8 {
		return f.node(w, dst, rows[:w.used], n, c)
	}
	// Eight ports from a multiple of eight on are a subtree.
	groups := (w.used + 7) / 8
	for g := range groups {
		members := rows[8*g : min(8*g+8, w.used)]
		present, last := 0, 0
		for i, row := range members {
			if row != nil {
				present, last = present+1, i
			}
		}
		switch present {
		case 0:
			w.partial[g] = nil
		case 1:
			w.partial[g] = members[last]
		default:
			w.partial[g] = bytesOf(w.groups[g])
			n = f.node(w, w.partial[g], members, n, c)
		}
	}
	return f.node(w, dst, w.partial[:groups], n, c)
}

// node adds up to eight rows by a tree.
func (f *fastPath) node(w *Workspace, dst *byte, rows []*byte, n int, c *uint32) (done int) {
	level := max(bits.Len(uint(len(rows)-1)), 1)
	for i := range 1 << level {
		w.eight[i] = &minusZeros[0]
		if i < len(rows) && rows[i] != nil {
			w.eight[i] = rows[i]
		}
	}
	return f.kernels[level-1](dst, &w.eight[0], 1<<level, n, c)
}

// minusZeros is the row of an absent port: -0, which changes no sum.
var minusZeros = func() (row [4 * tile]byte) {
	for i := 3; i < len(row); i += 4 {
		row[i] = signBit >> 24
	}
	return row
}()

// load widens n elements of every row from element from on.
func (f *fastPath) load(in *format, w *Workspace, from, n int) {
	whole := n / lanes * lanes
	for i, row := range w.rows[:w.used] {
		if row == nil {
			continue
		}
		row = row[from*in.size:]
		to := w.wide[i][:n]
		if whole == 0 || f.widen(&to[0], &row[0], whole, &f.tables[0][0]) == 0 {
			in.load(to, row)
			continue
		}
		in.load(to[whole:], row[whole*in.size:])
	}
}

// store encodes finite sums into a payload, and returns how many it has done.
func (f *fastPath) store(dst []byte, sums []uint32) (done int) {
	if f.narrow == nil { // the payload has the order of bytes of this processor
		return copy(dst, unsafe.Slice(bytesOf(sums), 4*len(sums))) / 4
	}
	if done = len(sums) / lanes * lanes; done > 0 {
		f.narrow(&dst[0], &sums[0], done, &f.tables[0][0])
	}
	return done
}
