// The sum "fused" (section 7.4 of the specification).

package arithmetic

import "math"

// guard is the number of places kept below the last place of the largest member.
const guard = 4

// fused cuts the members to multiples of a unit, adds these as integers and rounds once. The
// exponents are fp32's here, also for numbers that are subnormal in a narrower format: E is at
// least the exponent of that format's least normal number, so the unit is the same.
//
// The integer sum has at most 28 bits of each of 64 members, so a float64 holds it, and every
// multiple of the unit that it counts.
func (a *Arithmetic) fused(w *Workspace, from, to int) {
	sums := w.sums[from:to]
	for i := range sums {
		largest, negative := a.out.least, uint32(signBit)
		for k := range w.used {
			x := w.wide[k][from+i]
			largest = max(largest, x&^signBit)
			negative &= x
		}
		if largest >= infinity {
			sums[i] = w.nonfinite(from + i)
			continue
		}
		field := largest >> fp32Frac
		var sum int64
		for k := range w.used {
			sum += cutMember(w.wide[k][from+i], field, a.out.cut)
		}
		unit := math.Float64frombits(uint64(int(field)-fp32Bias-a.out.Frac-guard+1023) << 52)
		sums[i] = a.out.roundOnce(float64(sum)*unit) | negative
	}
}

// cutMember returns a member in units of fused, cut towards zero. field is the exponent of the
// largest member, cut the number of fp32's places that the format lacks.
func cutMember(x, field uint32, cut int) int64 {
	own := max(x>>fp32Frac&fp32Highest, 1)
	significand := x&^signBit - (own-1)<<fp32Frac
	units := int64(significand) << guard >> min(int(field-own)+cut, 63)
	if x&signBit != 0 {
		return -units
	}
	return units
}
