// The sum "exact" (section 7.5 of the specification).

package arithmetic

import (
	"math"
	"math/bits"
)

// exact adds the members in float64, if all these sums are exact, else in a whole number of 320
// bits, and rounds once.
func (a *Arithmetic) exact(w *Workspace, from, to int) {
	limit := a.spread(w.used)
	for i := from; i < to; i++ {
		negative, largest, least := uint32(signBit), uint32(0), uint32(math.MaxUint32)
		sum := 0.0
		for k := range w.used {
			x := w.wide[k][i]
			negative &= x
			largest = max(largest, x&^signBit)
			least = min(least, x&^signBit-1) // 0 becomes the largest
			sum += float64(math.Float32frombits(x))
		}
		switch {
		case largest >= infinity:
			w.sums[i] = w.nonfinite(i)
			continue
		case int(largest>>fp32Frac)-int(least>>fp32Frac) > limit:
			sum = w.whole(i)
		}
		w.sums[i] = a.out.roundOnce(sum) | negative
	}
}

// spread returns the largest distance of exponents of members whose sums are exact in float64.
//
// Let all members have p places, and exponents a..b; each is a multiple of 2^(a-p+1) and below
// 2^(b+1). So every sum of up to n of them is a multiple of 2^(a-p+1) and below n 2^(b+1). float64
// holds it if b - a + p + log2 n <= 53. A zero is a multiple of anything.
func (a *Arithmetic) spread(n int) int { return 53 - (a.in.Frac + 1) - bits.Len(uint(n-1)) }

// whole returns the sum of an element rounded to odd.
func (w *Workspace) whole(element int) float64 {
	var sum whole
	for k := range w.used {
		sum.add(w.wide[k][element])
	}
	return sum.odd()
}

// whole is a sum of fp32 numbers in two's complement, in units of the least positive one. A number
// has at most 277 bits, 64 of them 283.
type whole [5]uint64

// add adds a finite number.
func (s *whole) add(x uint32) {
	field := max(x>>fp32Frac&fp32Highest, 1)
	significand := uint64(x&^signBit - (field-1)<<fp32Frac)
	word, place := (field-1)/64, (field-1)%64
	low, high := significand<<place, significand>>1>>(63-place)
	var carry uint64
	if x&signBit == 0 {
		s[word], carry = bits.Add64(s[word], low, 0)
		s[word+1], carry = bits.Add64(s[word+1], high, carry)
		for word += 2; carry != 0 && word < uint32(len(s)); word++ {
			s[word], carry = bits.Add64(s[word], 0, carry)
		}
		return
	}
	s[word], carry = bits.Sub64(s[word], low, 0)
	s[word+1], carry = bits.Sub64(s[word+1], high, carry)
	for word += 2; carry != 0 && word < uint32(len(s)); word++ {
		s[word], carry = bits.Sub64(s[word], 0, carry)
	}
}

// odd returns the sum as a float64, rounded to odd.
func (s *whole) odd() float64 {
	sign := 1.0
	if s[len(s)-1]>>63 != 0 {
		sign = -1
		carry := uint64(1)
		for i := range s {
			s[i], carry = bits.Add64(^s[i], 0, carry)
		}
	}
	top := len(s) - 1
	for top > 0 && s[top] == 0 {
		top--
	}
	if s[top] == 0 {
		return 0
	}
	// The first 64 places; the last one is also set if any below is.
	shift := bits.LeadingZeros64(s[top])
	first, rest := s[top]<<shift, uint64(0)
	if top > 0 {
		first |= s[top-1] >> 1 >> (63 - shift)
		rest = s[top-1] << shift
		for _, word := range s[:top-1] {
			rest |= word
		}
	}
	if rest != 0 {
		first |= 1
	}
	kept := first >> 11 // a float64's 53 places
	if first&(1<<11-1) != 0 {
		kept |= 1
	}
	last := 64*top - shift + 11 - (fp32Bias - 1 + fp32Frac) // the place of its last bit
	return sign * float64(kept) * math.Float64frombits(uint64(1023+last)<<52)
}
