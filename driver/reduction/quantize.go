package reduction

// Options.Quantize: float32 sent as int32.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"tributary/driver/quant"
)

// scaled holds every worker's float32 array as integers.
type scaled struct {
	integers [][]byte
	scales   *quant.Scales
	block    int // elements
	bound    float64
}

// scale converts all workers' arrays to integers, in blocks of the given number of elements. The
// error is a NonfiniteError for a NaN or an infinity.
func scale(workers []contribution, block int) (*scaled, error) {
	arrays := make([][]float32, len(workers))
	var merged []quant.Exponent
	for w, c := range workers {
		arrays[w] = numbers(c.data)
		exponents, err := quant.Exponents(nil, arrays[w], block)
		if err != nil {
			return nil, refused(w, c, err)
		}
		if w == 0 {
			merged = exponents
		}
		quant.Merge(merged, exponents)
	}
	scales, err := quant.NewScales(len(workers), block, merged)
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
			return nil, refused(w, workers[w], err)
		}
		s.integers = append(s.integers, bytesOf(integers, func(i int32) uint32 { return uint32(i) }))
		arrays[w] = nil
	}
	return s, nil
}

// refused returns the error for an element of a worker's array that has no integer.
func refused(worker int, c contribution, err error) error {
	e := (*quant.NonfiniteError)(nil)
	if !errors.As(err, &e) {
		return fmt.Errorf("quantize: %s: %w", c.name, err)
	}
	text := say("${quantize}: %s: %s is %g, which no integer represents; leave ${quantize} out, with a card that sums fp32", c.name, c.place(e.Element), e.Value)
	text.err = err
	return &NonfiniteError{Worker: worker, Element: e.Element, Value: float64(e.Value), words: text}
}

// restore returns the float32 values of sums, divided by n.
func (s *scaled) restore(sums []byte, n int) []byte {
	integers := make([]int32, len(sums)/4)
	for i := range integers {
		integers[i] = int32(binary.LittleEndian.Uint32(sums[4*i:]))
	}
	result := make([]float32, len(integers))
	s.scales.Mean(result, integers, n)
	return bytesOf(result, math.Float32bits)
}

// numbers decodes an array's little-endian float32 elements.
func numbers(data []byte) []float32 {
	x := make([]float32, len(data)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return x
}

// bytesOf encodes elements as little-endian bytes.
func bytesOf[E any](elements []E, bits func(E) uint32) []byte {
	b := make([]byte, 0, 4*len(elements))
	for _, e := range elements {
		b = binary.LittleEndian.AppendUint32(b, bits(e))
	}
	return b
}

// report describes sums divided by n.
func (s *scaled) report(n int) *Quantized {
	return &Quantized{Block: s.block, Bound: s.bound / float64(n)}
}
