package selftest

import (
	"fmt"

	"tributary/driver"
	"tributary/driver/wire"
)

// expectedSums holds the correct answers of one sum.
type expectedSums struct {
	edges      func(*arithmetic) [][3]uint32 // two inputs and their sum
	triples    func(*arithmetic) []triple
	quadruples func(*arithmetic) []quadruple
	whole      func(x, y int) int // the sum of two whole numbers

	ordered   bool // the order of floating-point inputs matters
	overflows bool // a sum may be beyond the format
}

// triple is a sum of three inputs, with answers for an even and for an odd first port.
type triple struct {
	inputs    [3]uint32
	even, odd uint32
}

// answer returns the correct sum for inputs at port and the two ports after it.
func (t *triple) answer(port int) uint32 {
	if port%2 == 0 {
		return t.even
	}
	return t.odd
}

// quadruple is a sum of four inputs, the first at an even port.
type quadruple struct {
	inputs [4]uint32
	sum    uint32
}

// expected has the correct answers of every sum that the self-test supports.
var expected = map[wire.Sum]expectedSums{
	wire.SumTree: {
		edges:      addedEdges,
		triples:    addedTriples(func(t addedTriple) triple { return triple{t.inputs, t.even, t.odd} }),
		quadruples: addedQuadruples(func(q addedQuadruple) uint32 { return q.tree }),
		whole:      add,
		ordered:    true,
		overflows:  true,
	},
	wire.SumFused: {
		edges:      fusedEdgesOf,
		triples:    addedTriples(func(t addedTriple) triple { return triple{t.inputs, t.fused, t.fused} }),
		quadruples: addedQuadruples(func(q addedQuadruple) uint32 { return q.fused }),
		whole:      add,
		overflows:  true,
	},
	wire.SumExact: {
		edges:      addedEdges,
		triples:    addedTriples(func(t addedTriple) triple { return triple{t.inputs, t.exact, t.exact} }),
		quadruples: addedQuadruples(func(q addedQuadruple) uint32 { return q.exact }),
		whole:      add,
		overflows:  true,
	},
	wire.SumMax: {
		edges:      maxEdgesOf,
		triples:    maxTriples,
		quadruples: maxQuadruples,
		whole:      func(x, y int) int { return max(x, y) },
	},
}

func add(x, y int) int { return x + y }

// Knows reports whether the self-test has answers for a sum.
func Knows(sum wire.Sum) bool {
	_, known := expected[sum]
	return known
}

// checkSum rejects a card whose sum has no answers here.
func checkSum(i driver.Info) error {
	if Knows(i.Sum) {
		return nil
	}
	return &driver.NoCardError{Name: i.Name, Reason: fmt.Sprintf("the self-test has no answers for %v; use the tributary that came with the card's hwgen", i.Sum)}
}
