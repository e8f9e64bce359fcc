package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"tributary/driver/cpu/arithmetic/constants"
)

// rounding rounds fp32 numbers to a result format, and finds those that become a NaN or an
// infinity.
type rounding struct {
	name   string
	narrow bool
	unroll int // vectors of a tree at a time, for which there are registers
	// constants loads what round needs; the result is its argument.
	constants func() []VecVirtual
	// begin returns the state of one vector, if round keeps one.
	begin func() VecVirtual
	// round rounds x in place.
	round func(table []VecVirtual, state, x VecVirtual)
	// undecided is 0 if x, the last number rounded, and all those before it are finite.
	undecided func(table []VecVirtual, state, x VecVirtual) VecVirtual
}

func none() VecVirtual { return nil }

// difference is 0 for finite numbers, and NaN for others. A sum of a NaN or an infinity is one
// again, so it is enough to look at the last number.
func difference(_ []VecVirtual, _, x VecVirtual) VecVirtual {
	d := YMM()
	VSUBPS(x, x, d)
	return d
}

var roundings = []rounding{
	{
		name: "FP32", unroll: 4,
		constants: func() []VecVirtual { return nil },
		begin:     none,
		round:     func([]VecVirtual, VecVirtual, VecVirtual) {},
		undecided: difference,
	},
	{
		// bf16 is the upper half of fp32: add half a last place, less where the even neighbour is
		// below, and cut. NaNs and infinities stay, as their lower half is 0.
		name: "BF16", narrow: true, unroll: 2,
		constants: func() []VecVirtual {
			return []VecVirtual{everywhere(1), everywhere(0x7fff), everywhere(0xffff0000)}
		},
		begin: none,
		round: func(c []VecVirtual, _, x VecVirtual) {
			up := YMM()
			VPSRLD(Imm(16), x, up)
			VPAND(c[0], up, up)
			VPADDD(c[1], up, up)
			VPADDD(up, x, x)
			VPAND(c[2], x, x)
		},
		undecided: difference,
	},
	{
		// fp16 and fp8: x + m - m rounds x to the last place of m. m is 1.5 times the power of two
		// that has the last place of x in the format, or of the least normal number. It takes the
		// sign of a zero, which x gives back. The state is the largest magnitude so far, doubled.
		name: "Small", narrow: true, unroll: 1,
		constants: func() []VecVirtual {
			return []VecVirtual{everywhere(exponent), constant(constants.Least), constant(constants.Magic), everywhere(sign), constant(constants.Beyond)}
		},
		begin: zeros,
		round: func(c []VecVirtual, largest, x VecVirtual) {
			m, s := YMM(), YMM()
			VPAND(c[0], x, m)
			VPMAXSD(c[1], m, m)
			VPADDD(c[2], m, m)
			VPAND(c[3], x, s)
			VADDPS(m, x, x)
			VSUBPS(m, x, x)
			VPOR(s, x, x)
			VPADDD(x, x, m)
			VPMAXUD(m, largest, largest)
		},
		undecided: func(c []VecVirtual, largest, _ VecVirtual) VecVirtual {
			most := YMM()
			VPMAXUD(c[4], largest, most)
			VPCMPEQD(largest, most, most) // largest is at least the first number beyond the format
			return most
		},
	},
}
