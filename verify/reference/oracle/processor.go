// Additions and roundings by the processor.

package oracle

import (
	"math"

	"tributary/driver/wire"
)

// processor adds two numbers of a format.
//
// For fp32 it uses the processor's own addition. It adds the other formats in float64 and rounds
// once more. The second rounding is innocuous: a format of p bits gets the right sum by way of
// one of P >= 2p+2 bits (Figueroa, "When is double rounding innocuous?", 1995), and the widest
// here, fp16, has p = 11. If the sum is subnormal in the format, below 2^p of its least number,
// the first rounding is exact: both operands are multiples of that number, and their sum has
// fewer than 53 bits.
type processor struct {
	*format
	values   []float64 // of every encoding, unless there are too many; NaN for every NaN
	smallest float64   // the smallest normal number
	largest  float64
}

func newProcessor(f *format) processor {
	p := processor{format: f, smallest: math.Ldexp(1, 1-f.bias())}
	if f.Format == wire.FP32 {
		return p
	}
	p.largest = f.float64(f.largest())
	p.values = make([]float64, 1<<f.Bits)
	for x := range p.values {
		x := uint32(x)
		switch f.class(x) {
		case nan:
			p.values[x] = math.NaN()
		case infinity:
			p.values[x] = math.Copysign(math.Inf(1), f.float64(x))
		case zero:
			if x == f.sign {
				p.values[x] = math.Copysign(0, -1)
			}
		default:
			p.values[x] = f.float64(x)
		}
	}
	return p
}

// add returns the sum of two numbers, each of them any encoding.
func (p *processor) add(a, b uint32) uint32 {
	if p.values == nil {
		sum := math.Float32frombits(a) + math.Float32frombits(b)
		if sum != sum {
			return p.NaN
		}
		return math.Float32bits(sum)
	}
	sum := p.values[a] + p.values[b]
	if sum != sum {
		return p.NaN
	}
	if !math.IsInf(sum, 0) {
		sum = p.nearest(sum)
	}
	if math.Abs(sum) > p.largest {
		if !p.Infinity {
			return p.NaN
		}
		return p.encodeInfinity(sum)
	}
	return p.encode(sum)
}

func (p *processor) encodeInfinity(sum float64) uint32 {
	if sum < 0 {
		return p.sign | p.infinity()
	}
	return p.infinity()
}

// nearest rounds to p's places, without a largest number. It adds 1.5 * 2^52 last places, so that
// the processor rounds to a multiple of the last place, to nearest, ties to even.
func (p *processor) nearest(x float64) float64 {
	bits := math.Float64bits(math.Max(math.Abs(x), p.smallest))
	exponent := int(bits>>52) - 1023 - p.Frac // of the last place
	pusher := math.Float64frombits(uint64(exponent+52+1023)<<52 | 1<<51)
	return math.Copysign((x+pusher)-pusher, x)
}
