// Sums next to a half, for windows that cut operands off.

package operands

import "math/bits"

// usualSpare is how many places the window of the sum exact has below the last
// one of its largest operand, where results have the operands' format.
const usualSpare = 20

// window is one that sums are aimed at; its last place is worth 1.
type window struct {
	format, result int // bits of the operands' fraction, and of the result's
	width          int
	field          int    // of operands whose leading bit is the window's first
	ones           bool   // what is cut off is all ones; else its last bit alone is one
	turn           uint32 // sign of a positive sum
}

// besideHalf aims at the tight side of a window: the sum of what is kept of the
// operands lies within 20 last places of a half of the result's, and what all of
// them lose together is as much as it can be, or as little.
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

// nearHalf chooses a sum whose leading bit is the window's first, or one of the
// next on either side, puts its largest operand into x, and returns what is left.
func (s *Source) nearHalf(w window, x []uint32) (rest int64, next int) {
	above := []int{2, 1, 0, -1, -2, -2, -2, -3, -4, -5, -6, -6}
	leading := w.width - 1 + above[s.IntN(12)]
	cancelled := max(w.width-1-leading, 0)
	significand := 1<<w.format | int64(s.fraction())
	few := s.IntN(4) != 0 // operands suffice, a power of two among them that cancels
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

// nearest is the number that is nearest to v, has no bit below the window, and
// none above.
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

// inWindow is the operand of which the window keeps v, and cuts off whatever
// places an operand has below it; sign is that of one of which nothing is kept.
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
