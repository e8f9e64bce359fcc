// Command asm writes the AVX2 kernels of package arithmetic, with avo.
//
// A kernel sums n elements of a tile, a multiple of eight, from rows of fp32 or int32 numbers. It
// handles vectors of eight elements in order, and stops before the first one that holds an element
// that it cannot decide or that is to be reported. It returns the number of elements before. It
// reads all rows of a vector before it writes the sums, so dst may be a row.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!purego")
	for _, r := range roundings {
		for _, rows := range []int{2, 4, 8} {
			tree(rows, r)
		}
	}
	fusedFP32()
	fusedFP32Many()
	for _, r := range roundings {
		if r.narrow {
			fusedNarrow(r)
		}
		exact(r)
		exactHard(r)
	}
	largest()
	largestInteger()
	integers()
	widen("widen8", 8, false)
	widen("widen16", 16, false)
	widen("widenBF16", 16, true)
	narrow("narrow8", 8, false)
	narrow("narrow16", 16, false)
	narrow("narrowBF16", 16, true)
	Generate()
}

// lanes is the number of elements in a vector.
const lanes = 8

// Bits of fp32.
const (
	sign      = 0x80000000
	magnitude = 0x7fffffff
	exponent  = 0x7f800000
	hidden    = 0x00800000
	fraction  = 23
)

// kernel is a kernel in the making.
type kernel struct {
	dst, rows, used, end Register // addresses; number of rows; end of the tile in bytes
	at                   Register // the vector, in bytes
	label                string   // of the current loop over the vectors
}

// function declares an assembly function.
func function(name, doc, signature string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " " + doc)
	fills = map[any]VecVirtual{}
}

// begin declares a kernel of sums.
func begin(name, doc string) *kernel {
	function(name, doc, "func(dst *byte, rows **byte, used, n int, c *uint32) (done int)")
	k := &kernel{dst: load("dst"), rows: load("rows"), used: load("used"), end: load("n"), at: GP64()}
	SHLQ(Imm(2), k.end)
	XORQ(k.at, k.at)
	return k
}

func load(parameter string) Register { return Load(Param(parameter), GP64()) }

// vectors writes the loops over all vectors: the first takes unroll vectors at a time, the second
// one. sum writes the code for the vectors at some offsets in bytes from k.at. It returns their
// sums, and a register that is 0 if all of them are decided, or nil.
func (k *kernel) vectors(unroll int, sum func(offsets []int) (sums []VecVirtual, undecided VecVirtual)) {
	if unroll > 1 {
		k.loop("many", unroll, "one", sum)
	}
	k.loop("one", 1, "end", sum)
	Label("end")
	SHRQ(Imm(2), k.at)
	Store(k.at, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// loop writes a loop that takes some vectors at a time, and leaves it for a label.
func (k *kernel) loop(label string, vectors int, leave string, sum func(offsets []int) (sums []VecVirtual, undecided VecVirtual)) {
	next := GP64()
	k.label = label
	Label(label)
	LEAQ(Mem{Base: k.at, Disp: 4 * lanes * vectors}, next)
	CMPQ(next, k.end)
	JG(LabelRef(leave))
	var offsets []int
	for v := range vectors {
		offsets = append(offsets, 4*lanes*v)
	}
	sums, undecided := sum(offsets)
	if undecided != nil {
		VPTEST(undecided, undecided)
		JNZ(LabelRef(leave))
	}
	for v, y := range sums {
		VMOVDQU(y, Mem{Base: k.dst, Index: k.at, Scale: 1, Disp: offsets[v]})
	}
	MOVQ(next, k.at)
	JMP(LabelRef(label))
}

// ahead is the distance in bytes at which kernels prefetch rows. The processor does so by itself,
// but not early enough for kernels with many instructions for a vector: with this distance, fused of
// 8 arrays in memory is a quarter faster, and with half or twice of it less so. tree gains nothing.
const ahead = 2048

// prefetch fetches what a later pass of a loop over many vectors reads.
func (k *kernel) prefetch(vector Mem, offsets []int) {
	if len(offsets) > 1 {
		PREFETCHT0(vector.Offset(ahead))
	}
}

// either returns a register that is 0 if both are, of which the first may be nil.
func either(x, y VecVirtual) VecVirtual {
	if x == nil {
		return y
	}
	VPOR(y, x, x)
	return x
}

// pointers loads the addresses of the first rows.
func (k *kernel) pointers(n int) (rows []Register) {
	for i := range n {
		row := GP64()
		MOVQ(Mem{Base: k.rows, Disp: 8 * i}, row)
		rows = append(rows, row)
	}
	return rows
}

// eachRow writes a loop over the rows. body gets the address of the vector at offset 0.
func (k *kernel) eachRow(label string, body func(vector Mem)) {
	row, left, address := GP64(), GP64(), GP64()
	MOVQ(k.rows, row)
	MOVQ(k.used, left)
	label += "_" + k.label
	Label(label)
	MOVQ(Mem{Base: row}, address)
	body(Mem{Base: address, Index: k.at, Scale: 1})
	ADDQ(Imm(8), row)
	DECQ(left)
	JNZ(LabelRef(label))
}

// fills are the vectors that hold a constant in the current kernel.
var fills map[any]VecVirtual

// everywhere returns a vector full of a constant, which must not change.
func everywhere(bits uint32) VecVirtual {
	if x, ok := fills[bits]; ok {
		return x
	}
	x, word := YMM(), GP32()
	MOVL(U32(bits), word)
	VMOVD(word, x.AsX())
	VPBROADCASTD(x.AsX(), x)
	fills[bits] = x
	return x
}

// ones sets all bits.
func ones() VecVirtual {
	x := YMM()
	VPCMPEQD(x, x, x)
	return x
}

// zeros clears all bits.
func zeros() VecVirtual {
	x := YMM()
	VPXOR(x, x, x)
	return x
}

// constant returns a vector full of a constant of the table, which must not change.
func constant(index int) VecVirtual {
	if x, ok := fills[index]; ok {
		return x
	}
	x := YMM()
	VPBROADCASTD(Mem{Base: load("c"), Disp: 4 * index}, x)
	fills[index] = x
	return x
}

// read loads a vector.
func read(address Mem) VecVirtual {
	x := YMM()
	VMOVDQU(address, x)
	return x
}
