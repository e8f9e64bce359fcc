package selftest

import (
	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// arithmetic is a card's arithmetic as its registers describe it.
type arithmetic struct {
	format, result wire.FormatInfo
	expected       expectedSums
	saturate       bool
}

func newArithmetic(i driver.Info) arithmetic {
	a := arithmetic{expected: expected[i.Sum], saturate: i.Saturate}
	a.format, _ = i.Format.Info()
	a.result, _ = i.Result.Info()
	return a
}

// inBytes and outBytes are the sizes of an element of an input and of a sum.
func (a *arithmetic) inBytes() int  { return a.format.Bits / 8 }
func (a *arithmetic) outBytes() int { return a.result.Bits / 8 }

func (a *arithmetic) integers() bool { return a.format.Format == wire.Int32 }

// pack returns an input whose element i is encoding(i).
func (a *arithmetic) pack(n int, encoding func(i int) uint32) []byte {
	b := make([]byte, 0, n*a.inBytes())
	for i := range n {
		for bits, k := encoding(i), 0; k < a.inBytes(); k++ {
			b = append(b, byte(bits>>(8*k)))
		}
	}
	return b
}

// widen returns the encoding of an input's number in the format of the sums. It is exact.
func (a *arithmetic) widen(bits uint32) uint32 {
	if a.format.Format == a.result.Format {
		return bits
	}
	return element.Round(a.result.Format, element.Value(a.format.Format, bits))
}

// power returns the encoding of 2^e, or of its negative, in the format of the inputs. ok is
// false if the format lacks it.
func (a *arithmetic) power(e int, negative bool) (bits uint32, ok bool) {
	bias := 1<<(a.format.Exp-1) - 1
	switch {
	case e < 1-bias-a.format.Frac || e > bias:
		return 0, false
	case e < 1-bias:
		bits = 1 << (e - (1 - bias - a.format.Frac))
	default:
		bits = uint32(e+bias) << a.format.Frac
	}
	if negative {
		bits |= 1 << (a.format.Bits - 1)
	}
	return bits, true
}

// largest returns the encoding of the format's largest number.
func largest(f wire.FormatInfo) uint32 {
	switch {
	case f.Exp == 0:
		return 0x7fffffff
	case f.Infinity:
		return (1<<f.Exp-1)<<f.Frac - 1
	}
	return f.NaN - 1
}

// infinity returns the encoding of a number beyond the largest.
func infinity(f wire.FormatInfo) uint32 {
	if f.Infinity {
		return (1<<f.Exp - 1) << f.Frac
	}
	return f.NaN
}

// overflows reports whether twice the largest input overflows the format of the sums.
func (a *arithmetic) overflows() bool {
	if !a.expected.overflows {
		return false
	}
	top := element.Value(a.format.Format, largest(a.format))
	return a.integers() || !element.Finite(a.result.Format, element.Round(a.result.Format, 2*top))
}

// pattern returns an input that varies by element and port, as far as the format allows, so
// that a misplaced element shows. For floating-point formats it is a positive normal number.
func (a *arithmetic) pattern(i, port int) uint32 {
	hash := uint32(i*64+port) * 2654435761
	if a.integers() {
		return hash
	}
	least := uint32(1) << a.format.Frac
	return least + uint32(uint64(hash)*uint64(largest(a.format)-least)>>32)
}

// whole returns a port's whole number for element i. The format holds every whole number up to
// the sum of the magnitudes, so no order of additions rounds. With too many ports for that,
// some contribute 0.
func (a *arithmetic) whole(ports, port, i int) int {
	most := 1 << 24 // the limit for that sum
	if !a.integers() {
		most = 1 << (a.format.Frac + 1)
	}
	stride := (ports + most - 1) / most
	if (port+i)%stride != 0 {
		return 0
	}
	share := min(most/((ports+stride-1)/stride), 1021)
	n := 1 + (i*37+port*101)%share
	if (i*13+port*7)>>2&1 != 0 {
		return -n
	}
	return n
}

// wholeInput returns a port's array of n whole numbers.
func (a *arithmetic) wholeInput(ports, port, n int) []byte {
	return a.pack(n, func(i int) uint32 { return encode(a.format.Format, a.whole(ports, port, i)) })
}

// wholeInputs returns the arrays of all ports.
func (a *arithmetic) wholeInputs(ports, n int) [][]byte {
	inputs := make([][]byte, ports)
	for p := range inputs {
		inputs[p] = a.wholeInput(ports, p, n)
	}
	return inputs
}

// wholeSum returns element i of the sum of wholeInputs.
func (a *arithmetic) wholeSum(ports, i int) uint32 {
	sum := a.whole(ports, 0, i)
	for p := 1; p < ports; p++ {
		sum = a.expected.whole(sum, a.whole(ports, p, i))
	}
	return encode(a.result.Format, sum)
}

// encode returns the encoding of a whole number. The format must have that number.
func encode(f wire.Format, n int) uint32 {
	if f == wire.Int32 {
		return uint32(n)
	}
	return element.Round(f, float64(n))
}
