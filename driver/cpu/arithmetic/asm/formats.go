package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"tributary/driver/cpu/arithmetic/constants"
)

// across writes the loop over the elements of a conversion, lanes at a time. body gets the number
// of the first.
func across(n Register, body func(at Register)) {
	at := GP64()
	XORQ(at, at)
	Label("next")
	CMPQ(at, n)
	JGE(LabelRef("end"))
	body(at)
	ADDQ(Imm(lanes), at)
	JMP(LabelRef("next"))
	Label("end")
}

// widen writes the conversion of elements of some bits to fp32. It returns 0 if one of them is a
// NaN or an infinity: these come out wrong, except from bf16.
func widen(name string, bits int, bf16 bool) {
	function(name, "converts n elements, a multiple of 8, to fp32. It returns 0 if one of them is a NaN or an infinity.",
		"func(to *uint32, from *byte, n int, c *uint32) (right int)")
	to, from, n := load("to"), load("from"), load("n")
	bad := zeros()
	extend := func(at Register) VecVirtual {
		x := YMM()
		if bits == 8 {
			VPMOVZXBD(Mem{Base: from, Index: at, Scale: 1}, x)
		} else {
			VPMOVZXWD(Mem{Base: from, Index: at, Scale: 2}, x)
		}
		return x
	}
	if bf16 {
		across(n, func(at Register) {
			x := extend(at)
			VPSLLD(Imm(16), x, x)
			VMOVDQU(x, Mem{Base: to, Index: at, Scale: 4})
		})
	} else {
		mask, limit := constant(constants.InMagnitude), constant(constants.InFinite)
		shift, rebias, least, signShift := constant(constants.InCut), constant(constants.InRebias), constant(constants.InLeast), constant(constants.InSign)
		hidden, minus := everywhere(hidden), everywhere(sign)
		across(n, func(at Register) {
			x, m, over := extend(at), YMM(), YMM()
			VPAND(mask, x, m)
			VPCMPGTD(limit, m, over)
			VPOR(over, bad, bad)
			VPSLLVD(shift, m, m)
			VPSLLVD(signShift, x, x)
			VPAND(minus, x, x)
			// A subnormal number is that of the least normal one's exponent, less that one.
			subnormal, less := over, YMM()
			VPCMPGTD(m, hidden, subnormal)
			VPADDD(rebias, m, m)
			VPAND(hidden, subnormal, less)
			VPADDD(less, m, m)
			VPAND(least, subnormal, less)
			VSUBPS(less, m, m)
			VPOR(x, m, m)
			VMOVDQU(m, Mem{Base: to, Index: at, Scale: 4})
		})
	}
	right := GP64()
	XORQ(right, right)
	VPTEST(bad, bad)
	SETEQ(right.As8())
	Store(right, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// narrow writes the conversion of fp32 numbers that a format of some bits holds, finite ones, to
// that format.
func narrow(name string, bits int, bf16 bool) {
	function(name, "converts n finite numbers, a multiple of 8, from fp32.",
		"func(to *byte, from *uint32, n int, c *uint32)")
	to, from, n := load("to"), load("from"), load("n")
	pack := func(x VecVirtual, at Register) {
		upper := XMM()
		VEXTRACTI128(Imm(1), x, upper)
		VPACKUSDW(upper, x.AsX(), x.AsX())
		if bits == 8 {
			VPACKUSWB(x.AsX(), x.AsX(), x.AsX())
			VMOVQ(x.AsX(), Mem{Base: to, Index: at, Scale: 1})
		} else {
			VMOVDQU(x.AsX(), Mem{Base: to, Index: at, Scale: 2})
		}
	}
	if bf16 {
		across(n, func(at Register) {
			x := read(Mem{Base: from, Index: at, Scale: 4})
			VPSRLD(Imm(16), x, x)
			pack(x, at)
		})
	} else {
		shift, rebias, least, perUnit, signShift := constant(constants.OutCut), constant(constants.OutRebias), constant(constants.Least), constant(constants.PerUnit), constant(constants.OutSign)
		abs := everywhere(magnitude)
		across(n, func(at Register) {
			x, m, units := read(Mem{Base: from, Index: at, Scale: 4}), YMM(), YMM()
			VPAND(abs, x, m)
			VMULPS(perUnit, m, units)
			VCVTTPS2DQ(units, units)
			VPANDN(x, abs, x)
			VPSRLVD(signShift, x, x)
			subnormal := YMM()
			VPCMPGTD(m, least, subnormal)
			VPSUBD(rebias, m, m)
			VPSRLVD(shift, m, m)
			VBLENDVPS(subnormal, units, m, m)
			VPOR(x, m, m)
			pack(m, at)
		})
	}
	VZEROUPPER()
	RET()
}
