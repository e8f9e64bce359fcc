package collective

// Additions on a host (SPEC.md, section 3).

import (
	"encoding/binary"
	"math"
	"sync"

	"tributary/driver/element"
	"tributary/driver/wire"
)

// add computes dst = a + b, element by element: int32 wraps around, other formats round the exact
// sum once, to the nearest, ties to even. The three arrays have the same length; dst may be a or b.
// Addition is commutative in every bit, because a NaN sum is always the format's NaN.
func add(f wire.Format, dst, a, b []byte) {
	switch f {
	case wire.FP32:
		addFP32(dst, a, b)
	case wire.Int32:
		addInt32(dst, a, b)
	case wire.BF16:
		addBF16(dst, a, b)
	case wire.FP8E4M3, wire.FP8E5M2:
		table := sums8[f]()
		for i := range dst {
			dst[i] = table[int(a[i])<<8|int(b[i])]
		}
	default:
		for i := range len(dst) / element.Size(f) {
			element.Put(f, dst, i, sum(f, element.At(f, a, i), element.At(f, b, i)))
		}
	}
}

// sum adds two floating-point elements. float64 may round their exact sum, but two roundings give the
// bits of one where the wider format has at least 2p+2 bits for the narrower one's p: 53 >= 2·24+2.
//
// Source: S. A. Figueroa, "When is double rounding innocuous?" (SIGNUM Newsletter 30, 1995). The
// theorem covers subnormal results too: sums of that size are exact.
func sum(f wire.Format, a, b uint32) uint32 {
	return element.Round(f, element.Value(f, a)+element.Value(f, b))
}

func addInt32(dst, a, b []byte) {
	for len(dst) >= 4 {
		binary.LittleEndian.PutUint32(dst, binary.LittleEndian.Uint32(a)+binary.LittleEndian.Uint32(b))
		dst, a, b = dst[4:], a[4:], b[4:]
	}
}

func addFP32(dst, a, b []byte) {
	for len(dst) >= 4 {
		s := math.Float32frombits(binary.LittleEndian.Uint32(a)) + math.Float32frombits(binary.LittleEndian.Uint32(b))
		bits := math.Float32bits(s)
		if s != s { // processors differ in the bits
			bits = nanFP32
		}
		binary.LittleEndian.PutUint32(dst, bits)
		dst, a, b = dst[4:], a[4:], b[4:]
	}
}

// nanFP32 and nanBF16 are the NaNs of sums.
const nanFP32, nanBF16 = 0x7fc00000, 0x7fc0

// addBF16 adds in fp32, which has the exponents of bf16 and 24 >= 2·8+2 bits, and rounds once more.
func addBF16(dst, a, b []byte) {
	for len(dst) >= 2 {
		s := math.Float32frombits(uint32(binary.LittleEndian.Uint16(a))<<16) + math.Float32frombits(uint32(binary.LittleEndian.Uint16(b))<<16)
		bits := math.Float32bits(s)
		bits = (bits + 0x7fff + bits>>16&1) >> 16
		if s != s {
			bits = nanBF16
		}
		binary.LittleEndian.PutUint16(dst, uint16(bits))
		dst, a, b = dst[2:], a[2:], b[2:]
	}
}

// sums8 has the tables of all sums of two elements of 8 bits.
var sums8 = map[wire.Format]func() *[1 << 16]byte{
	wire.FP8E4M3: sync.OnceValue(func() *[1 << 16]byte { return newSums8(wire.FP8E4M3) }),
	wire.FP8E5M2: sync.OnceValue(func() *[1 << 16]byte { return newSums8(wire.FP8E5M2) }),
}

func newSums8(f wire.Format) *[1 << 16]byte {
	table := new([1 << 16]byte)
	for i := range table {
		table[i] = byte(sum(f, uint32(i>>8), uint32(i&0xff)))
	}
	return table
}

// pass computes dst = src with NaNs replaced by the format's NaN: the sum of a single contribution.
func pass(f wire.Format, dst, src []byte) {
	copy(dst, src)
	if f == wire.Int32 {
		return
	}
	for from := 0; ; {
		size := element.Size(f)
		i := element.Nonfinite(f, dst[from*size:])
		if i < 0 {
			return
		}
		from += i
		if v := element.Value(f, element.At(f, dst, from)); v != v {
			info, _ := f.Info()
			element.Put(f, dst, from, info.NaN)
		}
		from++
	}
}
