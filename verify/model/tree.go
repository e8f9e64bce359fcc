// The sum "tree" of fp32: the definition in integers, and the same in the
// processor's binary32 additions for whole chunks.

package model

import (
	"encoding/binary"
	"math"
)

// Tree returns the sum of one element of every port, as encodings: neighbours
// pair up level by level, an odd one out passes up unchanged. An absent port
// is -0 (0x80000000). It returns 0x7fc00000 for every NaN, also with a single
// port, and -0 for no ports.
func Tree(ports []uint32) uint32 {
	level := append([]uint32(nil), ports...)
	if len(level) == 0 {
		return negativeZero
	}
	for len(level) > 1 {
		above := level[:0]
		for i := 0; i+1 < len(level); i += 2 {
			above = append(above, Add(level[i], level[i+1]))
		}
		if len(level)%2 == 1 {
			above = append(above, level[len(level)-1])
		}
		level = above
	}
	if isNaN(level[0]) {
		return canonicalNaN
	}
	return level[0]
}

// ReduceTree returns the sum of whole arrays, element by element, by Tree.
// contributions[p] is port p's array, nil when the port is absent; the others
// must be of one length, which is the result's. It returns nil when all are
// absent.
func ReduceTree(contributions [][]uint32) []uint32 {
	var result []uint32
	for _, c := range contributions {
		if c != nil {
			result = make([]uint32, len(c))
			break
		}
	}
	element := make([]uint32, len(contributions))
	for i := range result {
		for p, c := range contributions {
			element[p] = negativeZero
			if c != nil {
				element[p] = c[i]
			}
		}
		result[i] = Tree(element)
	}
	return result
}

// fp32Bytes is the size of an fp32 element.
const fp32Bytes = 4

// treeFP32 is the arithmetic of sum tree, fp32 in and out. It adds with the
// processor, which rounds to nearest even and keeps subnormals; that it gives
// the bits of ReduceTree is tested.
type treeFP32 struct {
	rows [][]float32 // scratch: one row a port that is present, cap >= chunk
}

func (t *treeFP32) reduce(result []byte, contributions [][]byte) {
	for len(t.rows) < len(contributions) {
		t.rows = append(t.rows, nil)
	}
	level := t.rows[:len(contributions)]
	// A row of length 0 is an absent operand: -0 is the identity of Add.
	for p, c := range contributions {
		level[p] = unpackFP32(level[p], c)
	}
	for len(level) > 1 {
		pairs := len(level) / 2
		for i := range pairs {
			addRows(level, i, 2*i, 2*i+1)
		}
		if len(level)%2 == 1 {
			level[pairs], level[len(level)-1] = level[len(level)-1], level[pairs]
			pairs++
		}
		level = level[:pairs]
	}
	packFP32(result, level[0])
}

// addRows leaves the sum of rows a and b in row node; the rows change places,
// none is lost, so that their memory is used again.
func addRows(rows [][]float32, node, a, b int) {
	x, y := rows[a], rows[b]
	switch {
	case len(x) == 0:
		rows[b], rows[a] = x, y
	case len(y) != 0:
		y = y[:len(x)]
		for i := range x {
			x[i] += y[i]
		}
	}
	rows[node], rows[a] = rows[a], rows[node]
}

// unpackFP32 reads a payload into row, which it returns, grown if need be.
func unpackFP32(row []float32, payload []byte) []float32 {
	n := len(payload) / fp32Bytes
	if cap(row) < n {
		row = make([]float32, n)
	}
	row = row[:n]
	for i := range row {
		row[i] = math.Float32frombits(binary.LittleEndian.Uint32(payload[fp32Bytes*i:]))
	}
	return row
}

// packFP32 writes row to a payload of its size, every NaN as the canonical
// one.
func packFP32(payload []byte, row []float32) {
	for i, x := range row {
		encoding := math.Float32bits(x)
		if x != x {
			encoding = canonicalNaN
		}
		binary.LittleEndian.PutUint32(payload[fp32Bytes*i:], encoding)
	}
}

func (t *treeFP32) nonfiniteIn(contribution []byte) int { return nonfiniteFP32(contribution) }
func (t *treeFP32) nonfiniteOut(result []byte) int      { return nonfiniteFP32(result) }

// nonfiniteFP32 counts the NaNs and infinities of a payload.
func nonfiniteFP32(payload []byte) int {
	n := 0
	for ; len(payload) >= fp32Bytes; payload = payload[fp32Bytes:] {
		if isNonfinite(binary.LittleEndian.Uint32(payload)) {
			n++
		}
	}
	return n
}
