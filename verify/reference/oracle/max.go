package oracle

import "math"

// largest is section 7.10, with the processor's floats.
func (o *Oracle) largest(x []uint32, _ bool) uint32 {
	top := math.Inf(-1)
	for _, e := range x {
		top = max(top, o.real(e)) // a NaN wins, and -0 is below +0
	}
	switch {
	case math.IsNaN(top):
		return o.result.NaN
	case math.IsInf(top, 1):
		return o.result.infinity()
	case math.IsInf(top, -1):
		return o.result.sign | o.result.infinity()
	}
	return o.result.encode(top)
}

// real returns the value of any encoding in the results' format.
func (o *Oracle) real(x uint32) float64 {
	negative, _, _ := o.result.fields(x)
	switch o.result.class(x) {
	case nan:
		return math.NaN()
	case infinity:
		if negative {
			return math.Inf(-1)
		}
		return math.Inf(1)
	}
	return o.result.float64(x)
}

// largestInteger is section 7.10 for int32.
func (o *Oracle) largestInteger(x []uint32) (y uint32, overflowed bool) {
	top := math.Inf(-1)
	for _, e := range x {
		top = max(top, float64(int32(e)))
	}
	return uint32(int32(top)), false
}
