// Kinds of floating-point operands.

package operands

import "math"

// floats are the kinds of floating-point operands.
var floats = []kind{
	{"bits", anyBits},
	{"normal distribution", normal},
	{"logarithmic normal distribution", logarithmic},
	{"every distance", distances},
	{"patterns", patterns},
	{"subnormals", subnormals},
	{"ties", ties},
	{"broken ties", brokenTies},
	{"cancelling pairs", cancelling},
	{"ladders", ladders},
	{"zeros", zeros},
	{"NaNs and infinities", nonfinite},
	{"edge of overflow", overflow},
	{"one number", oneNumber},
	{"near ones", near},
	{"beside a half", besideHalf},
}

// Numbers consist of a sign, an exponent field and a fraction.

// top is the highest exponent field of a finite number.
func (s *Source) top() int {
	top := 1<<s.format.Exp - 1
	if s.format.Infinity {
		top--
	}
	return top
}

// sign is a random sign.
func (s *Source) sign() uint32 { return uint32(s.IntN(2)) << (s.format.Bits - 1) }

// minus inverts a sign.
func (s *Source) minus(x uint32) uint32 { return x ^ 1<<(s.format.Bits-1) }

// number is a positive number. It clamps the exponent field to the format's range, and replaces a
// NaN by the largest number.
func (s *Source) number(field int, fraction uint32) uint32 {
	x := uint32(min(max(field, 0), s.top()))<<s.format.Frac | fraction
	return min(x, s.largest())
}

// largest is the largest number.
func (s *Source) largest() uint32 {
	x := uint32(1)<<(s.format.Bits-1) - 1
	if s.format.Infinity {
		return x - 1<<s.format.Frac
	}
	return x - 1
}

// power is 2^k times the format's least positive number, or the nearest power of two in the
// format.
func (s *Source) power(k int) uint32 {
	k = max(k, 0)
	if k < s.format.Frac {
		return 1 << k
	}
	return s.number(k-s.format.Frac+1, 0)
}

// fraction is a fraction at an edge of carries and borrows, or a random one.
func (s *Source) fraction() uint32 {
	ones := uint32(1)<<s.format.Frac - 1
	bit := uint32(1) << s.IntN(s.format.Frac)
	switch s.IntN(8) {
	case 0:
		return 0
	case 1:
		return 1
	case 2:
		return ones
	case 3:
		return bit
	case 4:
		return ones ^ bit
	case 5:
		return bit - 1 // low ones
	case 6:
		return ones &^ (bit - 1) // high ones
	}
	return s.Uint32() & ones
}

// field is the exponent field of any finite number.
func (s *Source) field() int { return s.IntN(s.top() + 1) }

// rest fills x with zeros of either sign.
func (s *Source) rest(x []uint32) { s.fill(x, s.sign) }

// encode rounds v down to a number in the format.
func (s *Source) encode(v float64) uint32 {
	sign := uint32(0)
	if math.Signbit(v) {
		sign = 1 << (s.format.Bits - 1)
	}
	mantissa, exponent := math.Frexp(math.Abs(v))
	bias := 1<<(s.format.Exp-1) - 1
	field := exponent - 1 + bias
	if field < 1 {
		return sign
	}
	fraction := uint32(math.Ldexp(mantissa, s.format.Frac+1)) & (1<<s.format.Frac - 1)
	return sign | s.number(field, fraction)
}

func anyBits(s *Source, x []uint32, _ int) {
	s.fill(x, func() uint32 { return s.Uint32() >> (32 - s.format.Bits) })
}

func normal(s *Source, x []uint32, _ int) {
	s.fill(x, func() uint32 { return s.encode(s.NormFloat64()) })
}

// logarithmic uses a wider range of exponents from set to set, and zeros in some.
func logarithmic(s *Source, x []uint32, n int) {
	spread := float64(1 + n%8)
	s.fill(x, func() uint32 {
		if n%3 == 0 && s.IntN(10) < 3 {
			return s.sign()
		}
		return s.encode(math.Exp(spread*s.NormFloat64())) | s.sign()
	})
}

// distances covers all pairs of exponent fields once in (top+1)^2 sets. In every other set the
// two operands are adjacent.
func distances(s *Source, x []uint32, n int) {
	s.rest(x)
	fields := s.top() + 1
	x[0] = s.number(n/fields%fields, s.fraction()) | s.sign()
	if len(x) > 1 {
		x[1] = s.number(n%fields, s.fraction()) | s.sign()
	}
	if s.IntN(2) == 0 {
		s.shuffle(x)
	}
}

// patterns are significands with long carries and borrows, at exponents that are close or far
// apart.
func patterns(s *Source, x []uint32, _ int) {
	base, spread := s.field(), 1+s.IntN(s.top())>>s.IntN(s.format.Exp)
	s.fill(x, func() uint32 { return s.number(base-s.IntN(spread), s.fraction()) | s.sign() })
}

func subnormals(s *Source, x []uint32, _ int) {
	s.fill(x, func() uint32 { return s.number(s.IntN(1+s.IntN(3)), s.fraction()) | s.sign() })
}

// tie writes a number and half its last place to the start of x; the half may be split into
// parts. The number belongs to the result's format if the operands are precise enough. It returns
// the number of operands used, and the place of the half.
func (s *Source) tie(x []uint32) (used, half int) {
	field := max(s.field(), 1)
	sign := s.sign()
	x[0] = s.number(field, s.fraction()) | sign
	half = field - 1 + s.format.Frac - s.result - 1
	if half < 0 || len(x) == 1 {
		return 1, half
	}
	away := sign
	if s.IntN(2) == 0 {
		away = s.minus(sign)
	}
	parts := 1 + s.IntN(min(3, len(x)-1)) // one half; two quarters; one quarter and two eighths
	k := half
	for i := 1; i < parts; i++ {
		k--
		x[i] = s.power(k) | away
	}
	x[parts] = s.power(k) | away
	return parts + 1, half
}

func ties(s *Source, x []uint32, _ int) {
	s.rest(x)
	s.tie(x)
	s.shuffle(x)
}

// brokenTies are ties with a term that breaks the tie, however small; sometimes another term
// cancels it.
func brokenTies(s *Source, x []uint32, _ int) {
	s.rest(x)
	used, half := s.tie(x)
	if used < len(x) && half > 0 {
		term := s.power(half-1-s.IntN(half)) | s.sign()
		x[used] = term
		used++
		if used < len(x) && s.IntN(4) == 0 {
			x[used] = s.minus(term)
		}
	}
	s.shuffle(x)
}

// cancelling pairs leave nothing, or their last places, besides the other operands.
func cancelling(s *Source, x []uint32, n int) {
	base := s.field()
	for i := 0; i < len(x); i += 2 {
		x[i] = s.number(base-s.IntN(1+n%40), s.fraction()) | s.sign()
		if i+1 == len(x) {
			break
		}
		x[i+1] = s.minus(x[i])
		switch s.IntN(6) {
		case 0:
			x[i+1] ^= 1 // adjacent
		case 1:
			x[i+1] = s.number(s.IntN(base+1), s.fraction()) | s.sign() // no pair
		}
	}
	s.shuffle(x)
}

// ladders are numbers at equal distances.
func ladders(s *Source, x []uint32, n int) {
	step := n%(2*s.format.Frac+6) + 1
	field := s.field()
	fraction := s.fraction()
	sign, turn := s.sign(), uint32(0)
	if s.IntN(2) == 0 {
		turn = 1 << (s.format.Bits - 1)
	}
	for i := range x {
		x[i] = s.number(field-i*step, fraction) | sign
		sign ^= turn
		if s.IntN(4) == 0 {
			fraction = s.fraction()
		}
	}
	if s.IntN(2) == 0 {
		s.shuffle(x)
	}
}

// zeros are zeros of both signs or of one, sometimes with one number.
func zeros(s *Source, x []uint32, n int) {
	switch n % 4 {
	case 0:
		s.fill(x, func() uint32 { return 1 << (s.format.Bits - 1) })
	case 1:
		s.fill(x, func() uint32 { return 1 << (s.format.Bits - 1) })
		x[s.IntN(len(x))] = 0
	case 2:
		s.rest(x)
	case 3:
		s.rest(x)
		x[s.IntN(len(x))] = s.number(s.field(), s.fraction()) | s.sign()
	}
}

// nonfinite mixes numbers with NaNs, infinities of one sign or both, and adjacent encodings.
func nonfinite(s *Source, x []uint32, n int) {
	patterns(s, x, n)
	edge := s.largest()
	for range 1 + s.IntN(3) {
		e := edge + uint32(s.IntN(3)) // the largest number, an infinity, or a NaN
		if s.IntN(4) == 0 {
			e = edge + 1 + s.fraction()
		}
		x[s.IntN(len(x))] = min(e, 1<<(s.format.Bits-1)-1) | s.sign()
	}
}

// overflow makes sums near the largest number, from its multiples, fractions and last places.
func overflow(s *Source, x []uint32, _ int) {
	s.rest(x)
	sign := s.sign()
	top := s.top()
	for i := range x {
		switch s.IntN(6) {
		case 0:
			x[i] = s.largest() | sign
		case 1:
			x[i] = s.number(top-s.IntN(4), s.fraction()) | sign
		case 2:
			x[i] = s.power(top-2-s.IntN(3)) | s.sign() // about half the last place of the largest
		case 3:
			x[i] = s.number(top-s.IntN(s.format.Frac+3), s.fraction()) | s.minus(sign)
		case 4:
			x[i] = s.minus(s.largest() | sign)
		}
	}
	s.shuffle(x)
}

// oneNumber is the same number on every port.
func oneNumber(s *Source, x []uint32, _ int) {
	one := s.number(s.field(), s.fraction()) | s.sign()
	s.fill(x, func() uint32 { return one })
}

// near operands have equal or adjacent exponents.
func near(s *Source, x []uint32, _ int) {
	base := s.field()
	s.fill(x, func() uint32 { return s.number(base-s.IntN(3), s.Uint32()&(1<<s.format.Frac-1)) | s.sign() })
}
