// The definition of a tree's node: one IEEE 754 binary32 addition, in
// integers.

package model

import "math/bits"

// Binary32 encodings that the specification names.
const (
	canonicalNaN uint32 = 0x7fc00000 // every NaN result
	negativeZero uint32 = 0x80000000 // what an absent port contributes

	signBit      uint32 = 0x80000000
	exponentMask uint32 = 0x7f800000
	fractionMask uint32 = 0x007fffff
	hiddenBit    uint32 = 0x00800000
	maxExponent         = 255
)

// guardBits is how far Add widens the significands below their last place.
// Alignment shifts a bit out only past a distance of 32, where the smaller
// operand is less than 2^-8 of the larger one's last place: too little to
// change how the sum is rounded, with or without the bits lost.
const guardBits = 32

// Add returns the sum of two binary32 numbers, given and returned as their
// encodings: rounded to nearest, ties to even, subnormals kept. An exact zero
// is +0 unless both operands are -0. Every NaN is 0x7fc00000.
func Add(a, b uint32) uint32 {
	switch {
	case isNaN(a) || isNaN(b):
		return canonicalNaN
	case isInfinite(a) && isInfinite(b) && a != b:
		return canonicalNaN
	case isInfinite(a):
		return a
	case isInfinite(b):
		return b
	case a == negativeZero && b == negativeZero:
		return negativeZero
	}
	expA, sigA := unpack(a)
	expB, sigB := unpack(b)
	if expA < expB {
		a, b, expA, expB, sigA, sigB = b, a, expB, expA, sigB, sigA
	}
	sum := signed(a, int64(sigA)<<guardBits) + signed(b, int64(sigB)<<guardBits>>(expA-expB))
	switch {
	case sum == 0:
		return 0
	case sum < 0:
		return signBit | round(expA, uint64(-sum))
	}
	return round(expA, uint64(sum))
}

// unpack returns the biased exponent and the significand of a finite number:
// its magnitude is sig * 2^(exp-150). Subnormals have the exponent of the
// smallest normal number and no hidden bit.
func unpack(x uint32) (exp int, sig uint32) {
	exp, sig = int(x&exponentMask>>23), x&fractionMask
	if exp == 0 {
		return 1, sig
	}
	return exp, sig | hiddenBit
}

// signed gives magnitude the sign of the number encoded by x.
func signed(x uint32, magnitude int64) int64 {
	if x&signBit != 0 {
		return -magnitude
	}
	return magnitude
}

// round encodes the positive number sum * 2^(exp-150-guardBits).
func round(exp int, sum uint64) uint32 {
	shift := bits.Len64(sum) - 24 // leaves 24 bits: a normal significand
	exp += shift - guardBits
	if exp < 1 { // a subnormal: its last place is that of the smallest exponent
		shift += 1 - exp
		exp = 1
	}
	sig := uint32(sum >> shift)
	rest, half := sum&(1<<shift-1), uint64(1)<<(shift-1)
	if rest > half || rest == half && sig&1 == 1 {
		sig++
	}
	if sig == hiddenBit<<1 {
		sig >>= 1
		exp++
	}
	switch {
	case sig < hiddenBit:
		return sig
	case exp >= maxExponent:
		return exponentMask // infinity
	}
	return uint32(exp)<<23 | sig&fractionMask
}

func isNaN(x uint32) bool       { return x&^signBit > exponentMask }
func isInfinite(x uint32) bool  { return x&^signBit == exponentMask }
func isNonfinite(x uint32) bool { return x&exponentMask == exponentMask }
