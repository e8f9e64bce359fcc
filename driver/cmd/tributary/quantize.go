package main

// reduce -quantize: float32 files that travel as int32.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"tributary/driver/quant"
)

// scaled is every worker's float32 array as integers.
type scaled struct {
	integers [][]byte
	scales   *quant.Scales
	block    int // elements
	bound    float64
}

// scale makes integers of all files, in blocks of that many elements, or of the
// job's chunk when it is 0. It is an error if one holds a NaN or an infinity.
func scale(files []gradients, block, chunk int) (*scaled, error) {
	if block == 0 {
		block = chunk
	}
	arrays := make([][]float32, len(files))
	var merged []quant.Exponent
	for w, f := range files {
		arrays[w] = numbers(f.data)
		exponents, err := quant.Exponents(nil, arrays[w], block)
		if err != nil {
			return nil, refusedBy(f, err)
		}
		if w == 0 {
			merged = exponents
		}
		quant.Merge(merged, exponents)
	}
	scales, err := quant.NewScales(len(files), block, merged)
	if err != nil {
		return nil, err
	}
	s := &scaled{scales: scales, block: block}
	for b := range merged {
		s.bound = max(s.bound, scales.Bound(b))
	}
	integers := make([]int32, len(arrays[0]))
	for w, x := range arrays {
		if err := scales.Quantize(integers, x); err != nil {
			return nil, refusedBy(files[w], err)
		}
		s.integers = append(s.integers, bytesOf(integers, func(i int32) uint32 { return uint32(i) }))
		arrays[w] = nil
	}
	return s, nil
}

// refusedBy says of which worker's file an element was refused.
func refusedBy(f gradients, err error) error {
	e := (*quant.NonfiniteError)(nil)
	if !errors.As(err, &e) {
		return fmt.Errorf("-quantize: %s: %w", f.path, err)
	}
	return fmt.Errorf("-quantize: %s: %s is %g, which no integer can stand for; leave -quantize out, with a card that sums fp32", f.path, f.place(e.Element), e.Value)
}

// restore returns the float32 that sums, divided by n, stand for.
func (s *scaled) restore(sums []byte, n int) []byte {
	integers := make([]int32, len(sums)/4)
	for i := range integers {
		integers[i] = int32(binary.LittleEndian.Uint32(sums[4*i:]))
	}
	result := make([]float32, len(integers))
	s.scales.Mean(result, integers, n)
	return bytesOf(result, math.Float32bits)
}

// numbers returns the float32 of a file.
func numbers(data []byte) []float32 {
	x := make([]float32, len(data)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return x
}

// bytesOf returns elements as files keep them.
func bytesOf[E any](elements []E, bits func(E) uint32) []byte {
	b := make([]byte, 0, 4*len(elements))
	for _, e := range elements {
		b = binary.LittleEndian.AppendUint32(b, bits(e))
	}
	return b
}

// quantizedReport is what -quantize did.
type quantizedReport struct {
	Block int     `json:"block"` // elements that share an exponent
	Bound float64 `json:"bound"` // how far an element may be off before its rounding to float32, in the block where that is most
}

// report says so of sums divided by n.
func (s *scaled) report(n int) *quantizedReport {
	return &quantizedReport{Block: s.block, Bound: s.bound / float64(n)}
}

func (q *quantizedReport) String() string {
	return fmt.Sprintf("an exponent for each %d elements, off by at most %.2g", q.Block, q.Bound)
}
