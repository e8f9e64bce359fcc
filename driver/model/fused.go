// The sum "fused" (section 7.4 of the specification).

package model

// guardPlaces is the number of places kept below the largest member's last place.
const guardPlaces = 4

// fused cuts all members to the places of the largest one and a few more, adds them without error
// and rounds once.
type fused struct {
	*float
	columns
}

func (f *fused) chunk(y []uint32, rows [][]uint32) { f.columns.chunk(y, rows, f.element) }

func (f *fused) element(x []uint32) uint32 {
	if sum, ok := f.special(x); ok {
		return sum
	}
	top := 0
	for _, e := range x {
		top = max(top, f.place(e))
	}
	var sum int64 // 64 members of 28 bits and a sign at most
	for _, e := range x {
		cut := f.significand(e&^f.sign) << guardPlaces >> (top - f.place(e))
		if f.isNegative(e) {
			cut = -cut
		}
		sum += cut
	}
	if sum == 0 {
		return 0
	}
	return f.roundSigned(sum, top-guardPlaces)
}
