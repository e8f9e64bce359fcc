package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// twoSum returns x + y rounded, and the error of that, both as float64 (D. E. Knuth, The Art of
// Computer Programming, volume 2, section 4.2.2). It overwrites y.
func twoSum(x, y VecVirtual) (sum, err VecVirtual) {
	sum, err = YMM(), YMM()
	part := YMM()
	VADDPD(y, x, sum)
	VSUBPD(x, sum, part)   // what sum has of y
	VSUBPD(part, sum, err) // what sum has of x
	VSUBPD(err, x, err)
	VSUBPD(part, y, y)
	VADDPD(y, err, err)
	return sum, err
}

// exactHard writes the kernel of exact for members that are far apart. Three float64 numbers hold
// the sum: the rounded sum, the sum of the errors of that, and a bound of what the errors' sum
// lacks. The bound leaves an interval. The kernel decides elements for which both ends round to the
// same result, since rounding is monotonic.
func exactHard(r rounding) {
	k := begin("exactHard"+r.name, "adds rows of any exponents by exact.")
	table := r.constants()
	minusSign := everywhere(sign)
	k.vectors(1, func([]int) (sums []VecVirtual, undecided VecVirtual) {
		signs := ones()
		k.eachRow("signs", func(vector Mem) { VPAND(vector, signs, signs) })
		VPAND(minusSign, signs, signs) // of a sum of members with one sign
		low, high := half(r, k, "low", 0)
		l, h := half(r, k, "high", 16)
		VINSERTF128(Imm(1), l.AsX(), low, low)
		VINSERTF128(Imm(1), h.AsX(), high, high)
		for _, x := range []VecVirtual{low, high} {
			VPOR(signs, x, x)
			state := r.begin()
			r.round(table, state, x)
			undecided = either(undecided, r.undecided(table, state, x))
		}
		VPXOR(low, high, high)
		return []VecVirtual{low}, either(undecided, high)
	})
}

// half returns both ends of the sums of half a vector, as fp32 numbers. offset is that of the half,
// in bytes.
func half(r rounding, k *kernel, label string, offset int) (least, most VecVirtual) {
	sum, errors, bound := zeros(), zeros(), zeros()
	k.eachRow(label, func(vector Mem) {
		x := YMM()
		VCVTPS2PD(vector.Offset(offset), x)
		s, err := twoSum(sum, x)
		VMOVAPD(s, sum)
		s, err = twoSum(errors, err)
		VMOVAPD(s, errors)
		absolute(err)
		VADDPD(err, bound, bound)
	})
	sum, rest := twoSum(sum, errors)

	// The margin is more than the bound, its own roundings, and that of adding it; 0 without errors.
	margin, none := YMM(), zeros()
	VCMPPD(Imm(0), none, bound, none) // equal
	VMOVAPD(rest, margin)
	absolute(margin)
	VMULPD(relative(), margin, margin)
	VADDPD(bound, margin, margin)
	VADDPD(bound, margin, margin)
	VANDNPD(margin, none, margin)
	least, most = YMM(), YMM()
	VSUBPD(margin, rest, least)
	VADDPD(margin, rest, most)
	return end(r, sum, least), end(r, sum, most)
}

// end returns sum + rest as fp32 numbers, rounded to odd if the results' format is narrow.
func end(r rounding, sum, rest VecVirtual) VecVirtual {
	x, err := twoSum(sum, rest)
	// Round to odd: an even x with an error moves to its neighbour in the direction of the error.
	stay, odd, step := zeros(), zeros(), zeros()
	VCMPPD(Imm(0), stay, err, stay) // err is 0
	VPXOR(x, err, err)
	VPCMPGTQ(err, step, step) // -1 towards zero
	VPSLLQ(Imm(63), x, err)
	VPCMPGTQ(err, odd, odd)
	VPOR(odd, stay, stay)
	away := ones()
	VPSRLQ(Imm(63), away, away)
	VPOR(away, step, step) // or 1 away from it
	VPANDN(step, stay, step)
	VPADDQ(step, x, x)
	toFP32(r, x)
	return x
}

// absolute clears the signs of float64 numbers.
func absolute(x VecVirtual) {
	VPSLLQ(Imm(1), x, x)
	VPSRLQ(Imm(1), x, x)
}

// relative returns 2^-50, which is more than the roundings of the ends.
func relative() VecVirtual {
	x, word := YMM(), GP64()
	MOVQ(U64(math.Float64bits(math.Ldexp(1, -50))), word)
	VMOVQ(word, x.AsX())
	VPBROADCASTQ(x.AsX(), x)
	return x
}

// toFP32 converts float64 numbers in place: to the nearest fp32 numbers, or for a narrow format
// rounded to odd.
func toFP32(r rounding, x VecVirtual) {
	if r.narrow {
		below, rest := ones(), YMM() // the places of float64 below fp32's last
		VPSRLQ(Imm(64-(52-fraction)), below, below)
		VPAND(below, x, rest)
		VPADDQ(below, rest, rest)
		VPOR(rest, x, x)
		VPANDN(x, below, x)
	}
	VCVTPD2PSY(x, x.AsX())
}
