package driver

// Arrays of Go types as encoded bytes: little-endian.

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"tributary/driver/element"
	"tributary/driver/wire"
)

// Element is the type of an array's elements. float32 is for fp32 and int32 for int32. Go lacks
// the other formats, so their encodings are used: uint16 for bf16 and fp16, uint8 for the two
// fp8.
type Element interface {
	~float32 | ~int32 | ~uint16 | ~uint8
}

// carries reports whether elements of type E have the format f.
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

// goType returns the name of the Go type for format f.
func goType(f wire.Format) string {
	switch f {
	case wire.FP32:
		return "float32"
	case wire.Int32:
		return "int32"
	}
	return fmt.Sprintf("uint%d", 8*element.Size(f))
}

// wrongType returns why arrays of E are not those of format f; "" means that they are.
func wrongType[E Element](f wire.Format) (why string) {
	if carries[E](f) {
		return ""
	}
	var zero E
	return fmt.Sprintf("the card's format for it is %s, which takes []%s, not []%T", f, goType(f), zero)
}

// hostLittle reports whether this machine is little-endian, like the encoding.
var hostLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// memory returns the bytes of an array, in this machine's byte order.
func memory[E Element](array []E) []byte {
	var zero E
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(array))), len(array)*int(unsafe.Sizeof(zero)))
}

// travelling returns the encoding of an array: its own memory on a little-endian machine, else
// a copy.
func travelling[E Element](array []E) []byte {
	b := memory(array)
	if hostLittle {
		return b
	}
	b = slices.Clone(b)
	swapElements[E](b)
	return b
}

// arrived converts an array that was written as an encoding into this machine's byte order.
func arrived[E Element](array []E) {
	if !hostLittle {
		swapElements[E](memory(array))
	}
}

// swapElements reverses the bytes of every element.
func swapElements[E Element](b []byte) {
	var zero E
	for e := range slices.Chunk(b, int(unsafe.Sizeof(zero))) {
		slices.Reverse(e)
	}
}
