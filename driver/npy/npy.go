// Package npy reads and writes NumPy's files of float32 arrays: one array
// (.npy) or several under names (.npz).
//
// It is small and strict because a reduction must not start from half a file.
// github.com/sbinet/npyio, the Go package for these files, was tried at v0.6.0:
// it takes a file cut off for one that ends in zeros, panics on a damaged
// header, and cannot write an array of two or more dimensions that is only
// known at run time.
//
// Only the type '<f4' is read; another is an error that says how to convert
// it. Files in Fortran order are read, and rearranged; files are written in C
// order.
package npy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// An Array is an array of float32 of any shape.
type Array struct {
	Shape []int     // length of each dimension; empty for a single number
	Data  []float32 // all elements in C order: the last index changes fastest
}

// maxElements bounds a shape, so that no product of dimensions overflows.
const maxElements = 1 << 40

// maxDimensions is NumPy's own limit; it also bounds the header that is written.
const maxDimensions = 64

// Elements returns the number of elements of a shape. It is an error if there
// are more than 64 dimensions, one is negative, or the product exceeds 2^40.
func Elements(shape []int) (int, error) {
	if len(shape) > maxDimensions {
		return 0, fmt.Errorf("the shape has %d dimensions; NumPy allows %d", len(shape), maxDimensions)
	}
	n := 1
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %s has a negative dimension", FormatShape(shape))
		}
		if d > 0 && n > maxElements/d {
			return 0, fmt.Errorf("shape %s has more than 2^40 elements", FormatShape(shape))
		}
		n *= d
	}
	return n, nil
}

// FormatShape returns a shape as Python prints it: (), (5,), (2, 3).
func FormatShape(shape []int) string {
	var b strings.Builder
	for i, d := range shape {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, d)
	}
	if len(shape) == 1 {
		b.WriteByte(',')
	}
	return "(" + b.String() + ")"
}

// Read reads one array, which must be all that r holds. Errors say what is
// wrong with the file, not which file it is.
func Read(r io.Reader) (Array, error) {
	br := bufio.NewReaderSize(r, blockBytes)
	h, err := readHeader(br)
	if err != nil {
		return Array{}, err
	}
	n, err := Elements(h.shape)
	if err != nil {
		return Array{}, err
	}
	data, err := readElements(br, n)
	if err != nil {
		return Array{}, err
	}
	switch _, err := br.ReadByte(); {
	case err == nil:
		return Array{}, fmt.Errorf("there is more in it than the %d elements that its header announces", n)
	case err != io.EOF:
		return Array{}, err
	}
	if h.fortran {
		data = toCOrder(data, h.shape)
	}
	return Array{Shape: h.shape, Data: data}, nil
}

// blockBytes is how much is converted at a time.
const blockBytes = 1 << 16

// readElements reads n elements. Memory grows with what is there, not with n:
// n comes from a header that may be wrong.
func readElements(r io.Reader, n int) ([]float32, error) {
	data := make([]float32, 0, min(n, 1<<20))
	block := make([]byte, blockBytes)
	for len(data) < n {
		part := block[:min(blockBytes, 4*(n-len(data)))]
		k, err := io.ReadFull(r, part)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("it is cut off: %d bytes of data, its header announces %d", 4*len(data)+k, 4*n)
		}
		if err != nil {
			return nil, err
		}
		for ; len(part) > 0; part = part[4:] {
			data = append(data, math.Float32frombits(binary.LittleEndian.Uint32(part)))
		}
	}
	return data, nil
}

// toCOrder returns the elements of an array that is stored in Fortran order
// (the first index changes fastest) in C order.
func toCOrder(data []float32, shape []int) []float32 {
	strides := make([]int, len(shape)) // distance in data between neighbours along a dimension
	step := 1
	for i, d := range shape {
		strides[i] = step
		step *= d
	}
	out := make([]float32, len(data))
	index := make([]int, len(shape))
	from := 0
	for i := range out {
		out[i] = data[from]
		for d := len(shape) - 1; d >= 0; d-- {
			index[d]++
			from += strides[d]
			if index[d] < shape[d] {
				break
			}
			from -= index[d] * strides[d]
			index[d] = 0
		}
	}
	return out
}

// Write writes an array as NumPy's format 1.0, in C order. The shape must have
// as many elements as there are data.
func Write(w io.Writer, a Array) error {
	n, err := Elements(a.Shape)
	if err != nil {
		return err
	}
	if n != len(a.Data) {
		return fmt.Errorf("shape %s does not fit %d elements", FormatShape(a.Shape), len(a.Data))
	}
	if _, err := w.Write(header(a.Shape)); err != nil {
		return err
	}
	block := make([]byte, 0, blockBytes)
	for part := range slices.Chunk(a.Data, blockBytes/4) {
		block = block[:0]
		for _, x := range part {
			block = binary.LittleEndian.AppendUint32(block, math.Float32bits(x))
		}
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
	return nil
}
