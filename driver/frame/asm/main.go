// Command asm writes the kernel of package frame that folds bytes for a CRC, with avo.
//
// Source: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction"
// (Intel, 2009), for a register that shifts left. A register of 128 bits is a polynomial A = H x^64 + L.
// Followed by n bits, it is congruent to H (x^(n+64) mod P) + L (x^n mod P), which has less than 128
// bits. Four registers take turns, since a multiplication takes several cycles.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Where fold's constants are, in bytes: see constants in fold_amd64.go.
const (
	far     = 0  // x^512 mod P, x^576 mod P
	near    = 16 // x^128 mod P, x^192 mod P
	reverse = 32 // the order of bytes for PSHUFB
)

const (
	lanes = 4
	width = 16 // bytes of a register
)

func main() {
	ConstraintExpr("amd64,!purego,!race")
	TEXT("fold", NOSPLIT, "func(to *[16]byte, data *byte, n int, init uint16, c *[6]uint64)")
	Pragma("noescape")
	Doc("fold stores 16 bytes whose CRC from 0 is that of n bytes from init. n is a multiple of 64, and not 0.")
	data := Mem{Base: Load(Param("data"), GP64())}
	n := Load(Param("n"), GP64())
	c := Mem{Base: Load(Param("c"), GP64())}
	order, constant, first := XMM(), XMM(), XMM()
	MOVOU(c.Offset(reverse), order)
	MOVOU(c.Offset(far), constant)

	init := GP64()
	Load(Param("init"), init)
	SHLQ(Imm(48), init)
	MOVQ(init, first)
	PSLLDQ(Imm(8), first)
	var sums [lanes]VecVirtual
	for i := range sums {
		sums[i] = XMM()
		load(data.Offset(i*width), order, sums[i])
	}
	PXOR(first, sums[0])

	Label("next")
	SUBQ(Imm(lanes*width), n)
	JZ(LabelRef("last"))
	ADDQ(Imm(lanes*width), data.Base)
	for i, sum := range sums {
		next := XMM()
		load(data.Offset(i*width), order, next)
		advance(sum, constant)
		PXOR(next, sum)
	}
	JMP(LabelRef("next"))

	Label("last")
	MOVOU(c.Offset(near), constant)
	for i := range lanes - 1 {
		advance(sums[i], constant)
		PXOR(sums[i], sums[i+1])
	}
	sum := sums[lanes-1]
	PSHUFB(order, sum)
	MOVOU(sum, Mem{Base: Load(Param("to"), GP64())})
	RET()
	Generate()
}

// load loads 16 bytes, of which the first one has the highest powers.
func load(from Mem, order, to VecVirtual) {
	MOVOU(from, to)
	PSHUFB(order, to)
}

// advance multiplies a register by the power of its constants.
func advance(sum, constant VecVirtual) {
	high := XMM()
	MOVOU(sum, high)
	PCLMULQDQ(Imm(0x11), constant, high)
	PCLMULQDQ(Imm(0x00), constant, sum)
	PXOR(high, sum)
}
