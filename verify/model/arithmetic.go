// What a card needs of its sum and formats. A new one is a file that
// implements the interface and a line in newArithmetic.

package model

import (
	"fmt"

	"tributary/driver/wire"
)

// arithmetic sums chunks. Payloads are bytes as they travel: elements in
// order, little-endian. An implementation may keep scratch space, so it serves
// one card.
type arithmetic interface {
	// reduce writes the sum of the contributions to result. Contribution p is
	// port p's, nil where the port is no member; all have the same number of
	// elements, result too.
	reduce(result []byte, contributions [][]byte)
	// nonfiniteIn returns how many elements of a contribution are a NaN or an
	// infinity.
	nonfiniteIn(contribution []byte) int
	// nonfiniteOut does so for a result.
	nonfiniteOut(result []byte) int
}

// newArithmetic returns the arithmetic of a card.
func newArithmetic(sum wire.Sum, format, result wire.Format) (arithmetic, error) {
	if sum == wire.SumTree && format == wire.FP32 && result == wire.FP32 {
		return &treeFP32{}, nil
	}
	return nil, fmt.Errorf("sum %d of format %d with results of format %d is not modelled", sum, format, result)
}
