package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"tributary/driver/cpu/arithmetic/constants"
)

// tree writes the kernel of a tree of some rows, a power of two.
func tree(rows int, r rounding) {
	k := begin(fmt.Sprintf("tree%d%s", rows, r.name), fmt.Sprintf("adds %d rows by a tree. used is not read.", rows))
	from := k.pointers(rows)
	table := r.constants()
	k.vectors(r.unroll, func(offsets []int) (sums []VecVirtual, undecided VecVirtual) {
		for _, offset := range offsets {
			state := r.begin()
			var node func(rows []Register) VecVirtual
			node = func(rows []Register) VecVirtual {
				if len(rows) == 1 {
					return read(Mem{Base: rows[0], Index: k.at, Scale: 1, Disp: offset})
				}
				half := len(rows) / 2
				x := node(rows[:half])
				if half == 1 {
					VADDPS(Mem{Base: rows[1], Index: k.at, Scale: 1, Disp: offset}, x, x)
				} else {
					VADDPS(node(rows[half:]), x, x)
				}
				r.round(table, state, x)
				return x
			}
			sum := node(from)
			sums = append(sums, sum)
			undecided = either(undecided, r.undecided(table, state, sum))
		}
		return sums, undecided
	})
}

// The sum "fused". The largest magnitude of the members gives E, as the bits of 2^(E - 127). An
// infinite E, of a NaN or an infinity, makes the last product a NaN or an infinity.

// guard is the number of places that fused keeps below the last place of its largest member.
const guard = 4

// member is the code for one member.
type member struct {
	magnitude, exponent VecVirtual // constants
	up                  VecVirtual // half the units in 2^(E - 127)
}

func newMember(up VecVirtual) member {
	return member{magnitude: everywhere(magnitude), exponent: everywhere(exponent), up: up}
}

// fp32Up is up for fp32.
func fp32Up() VecVirtual { return everywhere(float32Bits(fraction + guard - 1)) }

// float32Bits returns the bits of a power of two.
func float32Bits(of int) uint32 { return math.Float32bits(float32(math.Ldexp(1, of))) }

// scaling is what scan finds for a vector.
type scaling struct{ e, scale, signs VecVirtual }

// scan writes a loop that finds E, the scale of the members, and the sign that all of them have.
func (m member) scan(k *kernel, offsets []int, least VecVirtual) (all []scaling) {
	for range offsets {
		s := scaling{YMM(), YMM(), ones()}
		VMOVDQA(least, s.e)
		all = append(all, s)
	}
	k.eachRow("scan", func(vector Mem) {
		k.prefetch(vector, offsets)
		for i, s := range all {
			a := YMM()
			VPAND(vector.Offset(offsets[i]), s.signs, s.signs)
			VPAND(vector.Offset(offsets[i]), m.magnitude, a)
			VPMAXSD(a, s.e, s.e)
		}
	})
	for _, s := range all {
		VPAND(m.exponent, s.e, s.e)
		VPSUBD(s.e, m.exponent, s.scale) // 2^(128 - E)
		VPANDN(s.signs, m.magnitude, s.signs)
	}
	return all
}

// add writes a loop that adds the members, as integers in units.
func (m member) add(k *kernel, offsets []int, all []scaling) (sums []VecVirtual) {
	for range offsets {
		sums = append(sums, zeros())
	}
	k.eachRow("add", func(vector Mem) {
		for i, sum := range sums {
			VPADDD(m.units(vector.Offset(offsets[i]), all[i].scale), sum, sum)
		}
	})
	return sums
}

// units returns the member in units, cut towards zero: x * 2^(128 - E) * up. Powers of two scale
// exactly, except to subnormal numbers, which are far below a unit and cut to 0 all the same.
func (m member) units(vector Mem, scale VecVirtual) VecVirtual {
	x := YMM()
	VMULPS(vector, scale, x)
	VMULPS(m.up, x, x)
	VCVTTPS2DQ(x, x)
	return x
}

// fusedFP32 writes the kernel for at most eight rows, whose sum fits into an int32: each is below
// 2^28.
//
// The conversion rounds once. Both products are exact: a sum that was rounded is at least 2^24, so
// with its unit it is normal; and a smaller one is a multiple of the least positive number.
func fusedFP32() {
	k := begin("fusedFP32", "adds at most 8 rows by fused.")
	m := newMember(fp32Up())
	least, unit := everywhere(hidden), everywhere(float32Bits(-fraction-guard))
	k.vectors(2, func(offsets []int) (sums []VecVirtual, undecided VecVirtual) {
		all := m.scan(k, offsets, least)
		sums = m.add(k, offsets, all)
		for i, sum := range sums {
			VCVTDQ2PS(sum, sum)
			VMULPS(unit, sum, sum)
			VMULPS(all[i].e, sum, sum)
			VPOR(all[i].signs, sum, sum)
			undecided = either(undecided, difference(nil, nil, sum))
		}
		return sums, undecided
	})
}

// fusedFP32Many writes the kernel for any number of rows. It adds the upper and the lower 16 bits
// of the members apart. float64 holds their sum, of 34 bits, and its product with the unit.
func fusedFP32Many() {
	k := begin("fusedFP32Many", "adds any number of rows by fused.")
	m := newMember(fp32Up())
	least, lower := everywhere(hidden), everywhere(0xffff)
	upper, unit := YMM(), YMM()
	VCVTPS2PD(everywhere(float32Bits(16)).AsX(), upper)
	VCVTPS2PD(everywhere(float32Bits(-fraction-guard)).AsX(), unit)
	k.vectors(1, func(offsets []int) (sums []VecVirtual, undecided VecVirtual) {
		all := m.scan(k, offsets, least)[0]
		e := all.e
		low, high := zeros(), zeros()
		k.eachRow("add", func(vector Mem) {
			units, part := m.units(vector, all.scale), YMM()
			VPAND(units, lower, part)
			VPADDD(part, low, low)
			VPSRAD(Imm(16), units, units)
			VPADDD(units, high, high)
		})
		half := func() VecVirtual { // of the vector: its first four elements
			x, y := YMM(), YMM()
			VCVTDQ2PD(high.AsX(), x)
			VMULPD(upper, x, x)
			VCVTDQ2PD(low.AsX(), y)
			VADDPD(y, x, x)
			VMULPD(unit, x, x)
			VCVTPS2PD(e.AsX(), y)
			VMULPD(y, x, x)
			VCVTPD2PSY(x, x.AsX())
			return x
		}
		sum := half()
		for _, x := range []VecVirtual{high, low, e} {
			VEXTRACTF128(Imm(1), x, x.AsX())
		}
		VINSERTF128(Imm(1), half().AsX(), sum, sum)
		VPOR(all.signs, sum, sum)
		return []VecVirtual{sum}, difference(nil, nil, sum)
	})
}

// fusedNarrow writes the kernel for a narrow result format. The sum has at most 21 bits, so it and
// its product with the unit are exact.
func fusedNarrow(r rounding) {
	k := begin("fused"+r.name, "adds rows by fused, for a narrow result format.")
	m := newMember(constant(constants.Up))
	least, unit := constant(constants.Least), constant(constants.Unit)
	table := r.constants()
	k.vectors(1, func(offsets []int) (sums []VecVirtual, undecided VecVirtual) {
		all := m.scan(k, offsets, least)
		sums = m.add(k, offsets, all)
		for i, sum := range sums {
			VCVTDQ2PS(sum, sum)
			VMULPS(unit, sum, sum)
			VMULPS(all[i].e, sum, sum)
			VPOR(all[i].signs, sum, sum)
			state := r.begin()
			r.round(table, state, sum)
			undecided = either(undecided, r.undecided(table, state, sum))
		}
		return sums, undecided
	})
}

// exact writes the kernel of exact for members whose exponents are close enough to add them in
// float64: see Arithmetic.spread. It rounds the sum once. A narrow result format takes the way
// through fp32, rounded to odd: see format.roundOnce.
func exact(r rounding) {
	k := begin("exact"+r.name, "adds rows by exact.")
	abs, minusOne, spread := everywhere(magnitude), everywhere(0xffffffff), constant(constants.Spread)
	table := r.constants()
	minusZero := everywhere(sign)
	unroll := 1
	if !r.narrow { // there are registers for two vectors
		unroll = 2
	}
	k.vectors(unroll, func(offsets []int) (sums []VecVirtual, undecided VecVirtual) {
		type state struct{ low, high, largest, least VecVirtual } // low: elements 0..3, high: 4..7
		var all []state
		for range offsets {
			s := state{YMM(), YMM(), zeros(), ones()}
			VCVTPS2PD(minusZero.AsX(), s.low)
			VMOVDQA(s.low, s.high)
			all = append(all, s)
		}
		k.eachRow("add", func(vector Mem) {
			k.prefetch(vector, offsets)
			for i, s := range all {
				a, x := YMM(), YMM()
				vector := vector.Offset(offsets[i])
				VPAND(vector, abs, a)
				VPMAXSD(a, s.largest, s.largest)
				VPADDD(minusOne, a, a) // 0 becomes the largest
				VPMINUD(a, s.least, s.least)
				VCVTPS2PD(vector, x)
				VADDPD(x, s.low, s.low)
				VCVTPS2PD(vector.Offset(16), x)
				VADDPD(x, s.high, s.high)
			}
		})
		for _, s := range all {
			toFP32(r, s.low)
			toFP32(r, s.high)
			VINSERTF128(Imm(1), s.high.AsX(), s.low, s.low)
			state := r.begin()
			r.round(table, state, s.low)
			sums = append(sums, s.low)
			undecided = either(undecided, r.undecided(table, state, s.low))
			VPSRLD(Imm(fraction), s.largest, s.largest)
			VPSRLD(Imm(fraction), s.least, s.least)
			VPSUBD(s.least, s.largest, s.largest)
			VPCMPGTD(spread, s.largest, s.largest)
			undecided = either(undecided, s.largest)
		}
		return sums, undecided
	})
}

// largest writes the kernel of max, for floating-point numbers. It orders integers that are ordered
// like the numbers. It stops at NaNs and infinities, which are to be reported.
func largest() {
	k := begin("largestFloat", "picks the largest number of rows.")
	abs, finite := everywhere(magnitude), everywhere(exponent-1)
	key := func(x VecVirtual) {
		flip := YMM()
		VPSRAD(Imm(31), x, flip)
		VPSRLD(Imm(1), flip, flip)
		VPXOR(flip, x, x)
	}
	least := everywhere(sign)
	k.vectors(1, func([]int) (sums []VecVirtual, undecided VecVirtual) {
		most, largest := YMM(), zeros()
		VMOVDQA(least, most)
		k.eachRow("pick", func(vector Mem) {
			x, a := read(vector), YMM()
			VPAND(abs, x, a)
			VPMAXSD(a, largest, largest)
			key(x)
			VPMAXSD(x, most, most)
		})
		key(most)
		VPCMPGTD(finite, largest, largest)
		return []VecVirtual{most}, largest
	})
}

// largestInteger writes the kernel of max, for integers.
func largestInteger() {
	k := begin("largestInteger", "picks the largest integer of rows.")
	least := everywhere(sign)
	k.vectors(1, func([]int) (sums []VecVirtual, undecided VecVirtual) {
		most := YMM()
		VMOVDQA(least, most)
		k.eachRow("pick", func(vector Mem) { VPMAXSD(vector, most, most) })
		return []VecVirtual{most}, nil
	})
}

// integers writes the kernel of sums of int32. It adds the upper and the lower 16 bits apart, and
// stops where the sum does not fit.
func integers() {
	k := begin("addIntegers", "adds rows of integers.")
	lower := everywhere(0xffff)
	k.vectors(1, func([]int) (sums []VecVirtual, undecided VecVirtual) {
		sum, low, high := zeros(), zeros(), zeros()
		k.eachRow("add", func(vector Mem) {
			x, part := read(vector), YMM()
			VPADDD(x, sum, sum)
			VPAND(lower, x, part)
			VPADDD(part, low, low)
			VPSRAD(Imm(16), x, x)
			VPADDD(x, high, high)
		})
		// The upper 16 bits with what the lower ones carry must fit into 16 bits again.
		VPSRLD(Imm(16), low, low)
		VPADDD(low, high, high)
		VPSLLD(Imm(16), high, low)
		VPSRAD(Imm(16), low, low)
		VPXOR(high, low, low)
		return []VecVirtual{sum}, low
	})
}
