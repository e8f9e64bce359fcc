package driver

// Arrays of Go's types, as the bytes that travel: little-endian encodings.

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"tributary/driver/element"
	"tributary/driver/wire"
)

// Element is what an array may be made of: float32 for fp32, int32 for int32, and
// for the formats that Go has no type for the encodings: uint16 for bf16 and
// fp16, uint8 for the two fp8.
type Element interface {
	~float32 | ~int32 | ~uint16 | ~uint8
}

// carries tells whether elements of type E are of format f.
func carries[E Element](f wire.Format) bool {
	half := 0.5
	floating := E(half) != 0
	var zero E
	info, _ := f.Info()
	switch {
	case int(unsafe.Sizeof(zero))*8 != info.Bits:
		return false
	case info.Bits == 32:
		return floating == (f == wire.FP32)
	}
	return true
}

// goType names the type of Go whose arrays are of format f.
func goType(f wire.Format) string {
	switch f {
	case wire.FP32:
		return "float32"
	case wire.Int32:
		return "int32"
	}
	return fmt.Sprintf("uint%d", 8*element.Size(f))
}

// checkType refuses arrays of a type that the card does not take or give.
func checkType[E Element](what string, f wire.Format) error {
	if carries[E](f) {
		return nil
	}
	var zero E
	return &InputError{what, fmt.Sprintf("the card's format there is %s, whose arrays are []%s, not []%T", f, goType(f), zero)}
}

// hostLittle tells whether this machine's memory is little-endian, as the bytes
// that travel are.
var hostLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// memory returns the bytes of an array, in the order of this machine.
func memory[E Element](array []E) []byte {
	var zero E
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(array))), len(array)*int(unsafe.Sizeof(zero)))
}

// travelling returns the bytes that stand for an array: its own memory where
// that has their order, else a copy.
func travelling[E Element](array []E) []byte {
	b := memory(array)
	if hostLittle {
		return b
	}
	b = slices.Clone(b)
	swapElements[E](b)
	return b
}

// arrived brings an array that was written as bytes that travel into the order
// of this machine.
func arrived[E Element](array []E) {
	if !hostLittle {
		swapElements[E](memory(array))
	}
}

// swapElements turns the bytes of every element around.
func swapElements[E Element](b []byte) {
	var zero E
	for e := range slices.Chunk(b, int(unsafe.Sizeof(zero))) {
		slices.Reverse(e)
	}
}
