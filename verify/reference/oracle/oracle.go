// Package oracle computes the correct sum of a card independently of the model and the gateware.
// It computes exact and fused sums by math/big from their definitions in driver/wire/SPEC.md,
// section 7, and integer and tree sums by the processor's own additions of floats. It imports only
// the tables. It is slow, and written to be read.
package oracle

import (
	"fmt"
	"math"
	"math/big"

	"tributary/driver/wire"
)

// Oracle sums elements. It has scratch space, so it must not be used concurrently.
type Oracle struct {
	format, result *format
	which          wire.Sum
	saturate       bool

	x        []uint32  // the members, widened
	node     processor // additions of the tree
	sum      big.Int
	term     big.Int
	rounding rounding
}

// sums lists the sums of the oracle: how each sums floating-point numbers of the result's format,
// finite or not, and integers.
var sums = map[wire.Sum]struct {
	floats   func(o *Oracle, x []uint32, finite bool) uint32
	integers func(o *Oracle, x []uint32) (y uint32, overflowed bool)
}{
	wire.SumTree:  {(*Oracle).tree, (*Oracle).integers},
	wire.SumFused: {(*Oracle).fused, (*Oracle).integers},
	wire.SumExact: {(*Oracle).exact, (*Oracle).integers},
	wire.SumMax:   {(*Oracle).largest, (*Oracle).largestInteger},
}

// Knows reports whether the oracle knows a sum.
func Knows(which wire.Sum) bool {
	_, known := sums[which]
	return known
}

// New returns the oracle of a sum, the formats of contributions and results, and saturation. It
// panics for an unknown sum.
func New(which wire.Sum, contributions, result wire.Format, saturate bool) *Oracle {
	if !Knows(which) {
		panic(fmt.Sprintf("oracle: there is no %v", which))
	}
	o := &Oracle{format: newFormat(contributions), result: newFormat(result), which: which, saturate: saturate}
	if !o.result.integer() {
		o.node = newProcessor(o.result)
		o.rounding.init(o.result)
	}
	return o
}

// Sum returns the sum of one element and whether it counts as an overflow;
// ports[p] is the encoding that port p contributes.
func (o *Oracle) Sum(ports []uint32) (y uint32, overflowed bool) {
	if o.result.integer() {
		return sums[o.which].integers(o, ports)
	}
	o.x = o.x[:0]
	finite := true
	for _, e := range ports {
		finite = finite && o.format.class(e) < infinity
		o.x = append(o.x, o.widen(e))
	}
	y = sums[o.which].floats(o, o.x, finite)
	return y, finite && o.result.class(y) >= infinity
}

// Error returns the difference between a finite result and the real sum of the finite members,
// and the specification's bound for the fused sum. Both are in the result's units / 16. They are
// meaningless if the sum overflowed.
func (o *Oracle) Error(ports []uint32, y uint32) (off, bound *big.Int) {
	o.x = o.x[:0]
	for _, e := range ports {
		o.x = append(o.x, o.widen(e))
	}
	off = new(big.Int).Neg(o.result.value(new(big.Int), y))
	for _, e := range o.x {
		off.Add(off, o.result.value(&o.term, e))
	}
	unit := new(big.Int).Lsh(big.NewInt(1), o.unit(o.x))
	bound = unit.Mul(unit, big.NewInt(int64(len(ports)-1)))
	_, field, _ := o.result.fields(y)
	halfPlace := new(big.Int).Lsh(big.NewInt(1), uint(max(field, 1)-1)+scale-1)
	return off.Abs(off), bound.Add(bound, halfPlace)
}

// widen converts a contribution to the result's format; the value stays the same.
func (o *Oracle) widen(x uint32) uint32 {
	if o.format.Format == o.result.Format {
		return x
	}
	negative, _, _ := o.format.fields(x)
	sign := uint32(0)
	if negative {
		sign = o.result.sign
	}
	switch o.format.class(x) {
	case nan:
		return o.result.NaN
	case infinity:
		return sign | o.result.infinity()
	case zero:
		return sign
	}
	return o.result.encode(o.format.float64(x))
}

// integers is section 7.6. A float64 holds every sum of 64 ports, which needs 38 bits.
func (o *Oracle) integers(x []uint32) (y uint32, overflowed bool) {
	sum := 0.0
	for _, e := range x {
		sum += float64(int32(e))
	}
	overflowed = sum > math.MaxInt32 || sum < math.MinInt32
	if overflowed && o.saturate {
		if sum > 0 {
			return 0x7fffffff, true
		}
		return 0x80000000, true
	}
	return uint32(int64(sum)), overflowed
}

// tree is section 7.3.
func (o *Oracle) tree(x []uint32, finite bool) uint32 {
	if len(x) == 1 {
		if o.result.class(x[0]) == nan {
			return o.result.NaN
		}
		return x[0]
	}
	above := x[:0]
	for len(x) >= 2 {
		above = append(above, o.node.add(x[0], x[1]))
		x = x[2:]
	}
	return o.tree(append(above, x...), finite)
}

// fused is section 7.4.
func (o *Oracle) fused(x []uint32, finite bool) uint32 {
	if !finite {
		return o.nonfinite(x)
	}
	return o.finite(x, o.unit(x))
}

// exact is section 7.5.
func (o *Oracle) exact(x []uint32, finite bool) uint32 {
	if !finite {
		return o.nonfinite(x)
	}
	return o.finite(x, 0)
}

// nonfinite is the fused or exact sum of members that include a NaN or an infinity.
func (o *Oracle) nonfinite(x []uint32) uint32 {
	var positive, negative bool
	for _, e := range x {
		switch o.result.class(e) {
		case nan:
			return o.result.NaN
		case infinity:
			if below, _, _ := o.result.fields(e); below {
				negative = true
			} else {
				positive = true
			}
		}
	}
	switch {
	case positive && negative:
		return o.result.NaN
	case negative:
		return o.result.sign | o.result.infinity()
	}
	return o.result.infinity()
}

// unit returns the u of section 7.4 as a power of two of unit / 16: E - 1.
func (o *Oracle) unit(x []uint32) uint {
	largest := 1
	for _, e := range x {
		_, field, _ := o.result.fields(e)
		largest = max(largest, field)
	}
	return uint(largest - 1)
}

// finite is the sum of finite members, truncated to multiples of 2^cut, then rounded.
func (o *Oracle) finite(x []uint32, cut uint) uint32 {
	o.sum.SetInt64(0)
	negativeZeros := true
	for _, e := range x {
		negativeZeros = negativeZeros && e == o.result.sign
		value := o.result.value(&o.term, e)
		if cut > 0 {
			negative := value.Sign() < 0
			value.Abs(value) // rounds toward zero; Rsh rounds down
			value.Lsh(value.Rsh(value, cut), cut)
			if negative {
				value.Neg(value)
			}
		}
		o.sum.Add(&o.sum, value)
	}
	if o.sum.Sign() == 0 {
		if negativeZeros {
			return o.result.sign
		}
		return 0
	}
	return o.rounding.round(&o.sum)
}
