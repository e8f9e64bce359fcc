// Package npy reads and writes NumPy's array files: one array (.npy) or several named arrays
// (.npz).
//
// It is small and strict, because a reduction must not start from half a file.
// github.com/sbinet/npyio v0.6.0, the Go package for these files, reads a truncated file as one
// that ends in zeros. It panics on a damaged header, and cannot write an array whose two or
// more dimensions are only known at run time.
//
// The package reads only the types of a card's formats (see Type). The error for another type
// names the conversion. It reads files in Fortran order and rearranges them. It writes files in
// C order.
package npy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Type is the type of an array's elements, as in a NumPy header.
type Type string

// The supported types.
const (
	Float32 Type = "<f4"
	Float16 Type = "<f2"
	Int32   Type = "<i4"
	Uint16  Type = "<u2" // also the encodings of bf16
	Uint8   Type = "|u1" // also the encodings of the two fp8
)

// Size returns the bytes of an element, or 0 for an unsupported type.
func (t Type) Size() int {
	switch t {
	case Float32, Int32:
		return 4
	case Float16, Uint16:
		return 2
	case Uint8:
		return 1
	}
	return 0
}

// String returns NumPy's name of the type: float32, uint16.
func (t Type) String() string {
	switch t {
	case Float32:
		return "float32"
	case Float16:
		return "float16"
	case Int32:
		return "int32"
	case Uint16:
		return "uint16"
	case Uint8:
		return "uint8"
	}
	return string(t)
}

// Array is an array of any shape.
type Array struct {
	Shape []int // length of each dimension; empty for a single number
	Type  Type
	Data  []byte // all elements, little-endian, in C order: the last index changes fastest
}

// maxElements limits a shape, so that no product of dimensions overflows.
const maxElements = 1 << 40

// maxDimensions is NumPy's own limit. It also limits the header that Write produces.
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

// Read reads one array, which must be all of r. Errors name the defect but not the file.
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
	data, err := readData(br, n*h.element.Size())
	if err != nil {
		return Array{}, err
	}
	switch _, err := br.ReadByte(); {
	case err == nil:
		return Array{}, fmt.Errorf("it holds more than the %d elements that its header announces", n)
	case err != io.EOF:
		return Array{}, err
	}
	if h.fortran {
		data = toCOrder(data, h.shape, h.element.Size())
	}
	return Array{Shape: h.shape, Type: h.element, Data: data}, nil
}

// blockBytes is the size of a read before the array is known to be larger.
const blockBytes = 1 << 16

// readData reads n bytes. Its memory grows with the bytes that arrive, not with n, which comes
// from a header that may be wrong.
func readData(r io.Reader, n int) ([]byte, error) {
	data := make([]byte, 0, min(n, blockBytes))
	for len(data) < n {
		if len(data) == cap(data) {
			grown := make([]byte, len(data), min(n, 4*len(data)))
			copy(grown, data)
			data = grown
		}
		k, err := io.ReadFull(r, data[len(data):cap(data)])
		data = data[:len(data)+k]
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("it is cut off: %d bytes of data, its header announces %d", len(data), n)
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// toCOrder rearranges an array from Fortran order (the first index changes fastest) to C order.
// size is the bytes of an element.
func toCOrder(data []byte, shape []int, size int) []byte {
	strides := make([]int, len(shape)) // distance in data between neighbours along a dimension
	step := size
	for i, d := range shape {
		strides[i] = step
		step *= d
	}
	out := make([]byte, len(data))
	index := make([]int, len(shape))
	from := 0
	for i := 0; i < len(out); i += size {
		copy(out[i:i+size], data[from:])
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

// Write writes an array in NumPy's format 1.0, in C order. The shape must match the number of
// elements in the data.
func Write(w io.Writer, a Array) error {
	size := a.Type.Size()
	if size == 0 {
		return fmt.Errorf("arrays of type %q cannot be written", string(a.Type))
	}
	n, err := Elements(a.Shape)
	if err != nil {
		return err
	}
	if n*size != len(a.Data) {
		return fmt.Errorf("shape %s of %s does not fit %d bytes", FormatShape(a.Shape), a.Type, len(a.Data))
	}
	if _, err := w.Write(header(a)); err != nil {
		return err
	}
	_, err = w.Write(a.Data)
	return err
}
