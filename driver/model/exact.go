// The sum "exact" (section 7.5 of the specification).

package model

// exact adds all members without error and rounds once.
type exact struct {
	*float
	columns
}

// The accumulator of an exact sum is a number in base 2^32. Its digits may have either sign, and
// exceed the base until they are carried.
const (
	digitBits = 32
	digits    = 10 // a place is 253 at most, in digit 7; two more hold all carries
)

func (s *exact) chunk(y []uint32, rows [][]uint32) { s.columns.chunk(y, rows, s.element) }

func (s *exact) element(x []uint32) uint32 {
	if sum, ok := s.special(x); ok {
		return sum
	}
	var sum [digits]int64
	top := 0 // the highest digit in use
	for _, e := range x {
		place := s.place(e)
		digit := place / digitBits
		// 24 bits, shifted by 31 at most; 64 of them: less than 2^61.
		sum[digit] += s.significand(e) << (place % digitBits)
		top = max(top, digit)
	}
	top += 2 // for the carries
	negative := carry(sum[:top+1])
	for top > 0 && sum[top] == 0 {
		top--
	}
	if top == 0 {
		if sum[0] == 0 {
			return 0
		}
		return s.round(negative, uint64(sum[0]), 0, false)
	}
	// Two digits hold at least 33 bits, more than the 25 that rounding needs. Of the rest, only
	// whether it is zero matters.
	more := false
	for _, digit := range sum[:top-1] {
		more = more || digit != 0
	}
	return s.round(negative, uint64(sum[top])<<digitBits|uint64(sum[top-1]), (top-1)*digitBits, more)
}

// carry brings all digits of a number into 0..2^32-1, and reports whether it was negative. The
// digits are then its magnitude.
func carry(number []int64) (negative bool) {
	if propagate(number) >= 0 {
		return false
	}
	for i := range number {
		number[i] = -number[i]
	}
	propagate(number)
	return true
}

// propagate brings all digits but the last into 0..2^32-1, and returns the last, which has the
// number's sign.
func propagate(number []int64) int64 {
	last := len(number) - 1
	for i := range last {
		number[i+1] += number[i] >> digitBits
		number[i] &= 1<<digitBits - 1
	}
	return number[last]
}
