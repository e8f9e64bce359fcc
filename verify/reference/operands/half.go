// Sums close to a half of the last place, for windows that truncate operands.

package operands

import "math/bits"

// usualSpare is the number of places that the exact sum's window has below the last place of its
// largest operand, if the results have the operands' format.
const usualSpare = 20

// window is the window that a set is made for; its last place is worth 1.
type window struct {
	format, result int // fraction bits of the operands and of the result
	width          int
	field          int    // exponent field of operands whose leading bit is the window's first
	ones           bool   // the truncated places are all ones; else only the last is one
	turn           uint32 // sign of a positive sum
}

// besideHalf aims at the worst case of a window. The kept parts of the operands sum to within 20
// last places of a half of the result's last place. The truncated parts are as large as possible,
// or as small.
func besideHalf(s *Source, x []uint32, _ int) {
	s.rest(x)
	w := s.window()
	rest, next := s.nearHalf(w, x)
	losers := len(x) - 2 - s.IntN(min(4, len(x)))
	away := int64(1 - 2*s.IntN(2))
	size := 1 + s.IntN(w.format)
	for ; next <= losers; next++ {
		v := away * s.Int64N(1<<s.IntN(size))
		x[next] = s.inWindow(w, v, away)
		rest -= v
	}
	for ; next < len(x) && rest != 0; next++ {
		v := w.nearest(rest)
		x[next] = s.inWindow(w, v, v)
		rest -= v
	}
	s.shuffle(x)
}

// window chooses a window somewhere in the format's range.
func (s *Source) window() window {
	spare := usualSpare
	if s.IntN(4) == 0 {
		spare = 8 + s.IntN(17)
	}
	w := window{format: s.format.Frac, result: s.result, width: s.result + 1 + spare, ones: s.IntN(4) != 0, turn: s.sign()}
	least := min(w.width+w.format+1, s.top())
	w.field = least + s.IntN(s.top()-least+1)
	return w
}

// nearHalf chooses a sum whose leading bit is at or next to the window's first. It writes the
// largest operand to x, and returns the rest of the sum.
func (s *Source) nearHalf(w window, x []uint32) (rest int64, next int) {
	above := []int{2, 1, 0, -1, -2, -2, -2, -3, -4, -5, -6, -6}
	leading := w.width - 1 + above[s.IntN(12)]
	cancelled := max(w.width-1-leading, 0)
	significand := 1<<w.format | int64(s.fraction())
	few := s.IntN(4) != 0 // few operands suffice, including a power of two that cancels
	if few {
		significand &^= 1<<cancelled - 1
	}
	sum := significand << (leading - w.format)
	largest := w.nearest(sum)
	if cancelled > 0 {
		largest = 1<<(w.width-1) | sum
		if !few {
			largest = (1<<w.format | int64(s.fraction())) << (w.width - 1 - w.format)
		}
	}
	sum += 1<<(leading-w.result-1) + int64(s.IntN(41)-20)>>s.IntN(3)
	x[0] = s.inWindow(w, largest, largest)
	return sum - largest, 1
}

// nearest is the number nearest to v with no bit outside of the window.
func (w window) nearest(v int64) int64 {
	if v < 0 {
		return -w.nearest(-v)
	}
	v = min(v, 1<<w.width-1)
	shift := max(bits.Len64(uint64(v))-w.format-1, 0)
	near := (v + 1<<shift>>1) >> shift << shift
	if near>>w.width != 0 {
		near -= 1 << shift
	}
	return near
}

// inWindow is the operand whose kept part in the window is v, with any places below truncated;
// sign is the sign of an operand with no kept part.
func (s *Source) inWindow(w window, v, sign int64) uint32 {
	bit := w.turn
	if sign < 0 {
		bit = s.minus(bit)
	}
	kept := uint64(max(v, -v))
	places := bits.Len64(kept)
	significand := kept >> max(places-w.format-1, 0)
	if cut := w.format + 1 - places; cut > 0 {
		significand <<= cut
		significand |= 1
		if w.ones {
			significand |= 1<<cut - 1
		}
	}
	fraction := uint32(significand) & (1<<w.format - 1)
	return s.number(w.field-w.width+places, fraction) | bit
}
