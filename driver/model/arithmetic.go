// Elements and chunks: the formats of contributions and results, what counts as
// nonfinite and as overflow (sections 7.2 and 7.7 of the specification), and
// the choice of the sum.

package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"tributary/driver/wire"
)

// sum sums numbers of one floating-point format. An implementation may keep scratch space.
type sum interface {
	// element returns the sum of x, an element of every port, at least one. It may change x.
	element(x []uint32) uint32
	// chunk sums whole chunks into y: rows[p] holds port p's elements. The row of a port that is no
	// member is empty; the others, at least one, have y's length. It may change the rows and their
	// order.
	chunk(y []uint32, rows [][]uint32)
}

// integerSum sums integers like sum. element also returns whether the result overflowed, chunk how
// many did.
type integerSum interface {
	element(x []uint32) (y uint32, overflowed bool)
	chunk(y []uint32, rows [][]uint32) (overflowed int)
}

// sums lists the sums that the model supports, for floating-point formats and for integers.
var sums = map[wire.Sum]struct {
	floats   func(f *float) sum
	integers func(saturate bool) integerSum
}{
	wire.SumTree:  {newTree, newIntegers},
	wire.SumFused: {func(f *float) sum { return &fused{float: f} }, newIntegers},
	wire.SumExact: {func(f *float) sum { return &exact{float: f} }, newIntegers},
	wire.SumMax:   {func(f *float) sum { return &largest{float: f} }, func(bool) integerSum { return largestInteger{} }},
}

// Arithmetic computes a card's sums. It keeps scratch space, so it must not be used concurrently.
type Arithmetic struct {
	format, result wire.FormatInfo
	identity       uint32 // of a port that is no member, as an encoding of format

	// For floating-point formats:
	in, out *float
	widened []uint32 // by contribution: its equal in the result format; nil if the formats are the same
	sum     sum

	integers integerSum // for int32

	memory  [][]uint32 // scratch: a row a port, cap >= chunk
	rows    [][]uint32 // scratch: the rows of a sum
	column  []uint32   // scratch: an element of every port
	results []uint32   // scratch
}

// NewArithmetic returns the arithmetic of cards with the given sum, formats of contributions and of
// results, and, for int32, saturation.
func NewArithmetic(which wire.Sum, format, result wire.Format, saturate bool) (*Arithmetic, error) {
	in, known := format.Info()
	out, knownToo := result.Info()
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	row, knownSum := sums[which]
	sumRow, _ := which.Info()
	refuse(!knownSum, "sum: there is no %v", which)
	refuse(!known, "format: there is no %v", format)
	refuse(!knownToo, "result: there is no %v", result)
	refuse(known && knownToo && !in.FitsIn(out), "result: %v does not hold every %v", result, format)
	refuse(saturate && format != wire.Int32, "saturate: %v does not, int32 alone does", format)
	refuse(saturate && knownSum && !sumRow.Adds, "saturate: %v never overflows", which)
	if errs != nil {
		return nil, errors.Join(errs...)
	}

	a := &Arithmetic{format: in, result: out, identity: which.Identity(format)}
	if in.Exp == 0 {
		a.integers = row.integers(saturate)
		return a, nil
	}
	a.in, a.out = newFloat(in), newFloat(out)
	if in.Format != out.Format {
		a.widened = a.in.widening(a.out)
	}
	a.sum = row.floats(a.out)
	return a, nil
}

// Element returns the sum of one element, as an encoding of the results' format, and whether it
// counts as an overflow. ports[p] is port p's contribution, as an encoding of the contributions'
// format, or the sum's identity if the port is no member. There must be a port.
func (a *Arithmetic) Element(ports []uint32) (result uint32, overflowed bool) {
	a.column = append(a.column[:0], ports...)
	if a.integers != nil {
		return a.integers.element(a.column)
	}
	a.widen(a.column)
	result = a.sum.element(a.column)
	return result, a.out.isNonfinite(result) && !slices.ContainsFunc(ports, a.in.isNonfinite)
}

// chunk writes the sum of the contributions to result; all are whole payloads as on the wire.
// Contribution p is port p's, nil where the port is no member. There is at least one, and all have
// as many elements as result. It returns how many elements of the result are NaNs or infinities,
// and how many overflowed.
func (a *Arithmetic) chunk(result []byte, contributions [][]byte) (nonfinite, overflowed int) {
	for len(a.memory) < len(contributions) {
		a.memory = append(a.memory, nil)
	}
	a.rows = a.rows[:0]
	for p, c := range contributions {
		a.memory[p] = load(a.memory[p], c, a.format.Bits)
		a.widen(a.memory[p])
		a.rows = append(a.rows, a.memory[p])
	}
	n := len(result) / (a.result.Bits / 8)
	a.results = slices.Grow(a.results[:0], n)[:n]
	if a.integers != nil {
		overflowed = a.integers.chunk(a.results, a.rows)
	} else {
		a.sum.chunk(a.results, a.rows)
		nonfinite, overflowed = a.count(a.results, contributions)
	}
	store(result, a.results, a.result.Bits)
	return nonfinite, overflowed
}

// count returns how many sums are NaNs or infinities, and how many of these
// have no contribution that is one.
func (a *Arithmetic) count(sums []uint32, contributions [][]byte) (nonfinite, overflowed int) {
	for i, y := range sums {
		if !a.out.isNonfinite(y) {
			continue
		}
		nonfinite++
		size := a.format.Bits / 8
		if !slices.ContainsFunc(contributions, func(c []byte) bool {
			return c != nil && a.holdsNonfinite(c[i*size:(i+1)*size])
		}) {
			overflowed++
		}
	}
	return nonfinite, overflowed
}

// holdsNonfinite reports whether an element of a contribution is a NaN or an
// infinity.
func (a *Arithmetic) holdsNonfinite(contribution []byte) bool {
	if a.integers != nil {
		return false
	}
	switch a.format.Bits {
	case 8:
		for _, x := range contribution {
			if a.in.isNonfinite(uint32(x)) {
				return true
			}
		}
	case 16:
		for ; len(contribution) >= 2; contribution = contribution[2:] {
			if a.in.isNonfinite(uint32(binary.LittleEndian.Uint16(contribution))) {
				return true
			}
		}
	case 32:
		for ; len(contribution) >= 4; contribution = contribution[4:] {
			if a.in.isNonfinite(binary.LittleEndian.Uint32(contribution)) {
				return true
			}
		}
	}
	return false
}

// widen converts elements from the contributions' format to the results'.
func (a *Arithmetic) widen(elements []uint32) {
	if a.widened != nil {
		for i, x := range elements {
			elements[i] = a.widened[x]
		}
	}
}

// load reads the elements of a payload into row, which it returns, grown if
// need be.
func load(row []uint32, payload []byte, bits int) []uint32 {
	n := len(payload) / (bits / 8)
	row = slices.Grow(row[:0], n)[:n]
	switch bits {
	case 8:
		for i, x := range payload {
			row[i] = uint32(x)
		}
	case 16:
		for i := range row {
			row[i] = uint32(binary.LittleEndian.Uint16(payload[2*i:]))
		}
	case 32:
		for i := range row {
			row[i] = binary.LittleEndian.Uint32(payload[4*i:])
		}
	}
	return row
}

// store writes elements to a payload of their size.
func store(payload []byte, row []uint32, bits int) {
	switch bits {
	case 8:
		for i, x := range row {
			payload[i] = uint8(x)
		}
	case 16:
		for i, x := range row {
			binary.LittleEndian.PutUint16(payload[2*i:], uint16(x))
		}
	case 32:
		for i, x := range row {
			binary.LittleEndian.PutUint32(payload[4*i:], x)
		}
	}
}

// columns sums chunks element by element.
type columns struct {
	column []uint32 // scratch
}

// chunk writes element's sum of every column of rows to y. It skips the empty rows, which the sum
// must allow.
func (c *columns) chunk(y []uint32, rows [][]uint32, element func([]uint32) uint32) {
	rows = slices.DeleteFunc(rows, func(row []uint32) bool { return len(row) == 0 })
	c.column = slices.Grow(c.column[:0], len(rows))[:len(rows)]
	for i := range y {
		for r, row := range rows {
			c.column[r] = row[i]
		}
		y[i] = element(c.column)
	}
}
