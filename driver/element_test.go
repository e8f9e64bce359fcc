package driver

import (
	"encoding/binary"
	"math"
	"testing"

	"tributary/driver/wire"
)

// TestOtherByteOrder checks a machine with the other byte order. The encoding must still be
// little-endian, and results must be in the machine's order.
func TestOtherByteOrder(t *testing.T) {
	little := hostLittle
	t.Cleanup(func() { hostLittle = little })
	array := []float32{1, -2.5}
	want := []byte{0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0}
	native := memory(array)
	for _, hostLittle = range []bool{true, false} {
		order := binary.ByteOrder(binary.LittleEndian)
		if !hostLittle {
			order = binary.BigEndian
		}
		for i, x := range []float32{1, -2.5} {
			order.PutUint32(native[4*i:], math.Float32bits(x))
		}
		got := travelling(array)
		if string(got) != string(want) {
			t.Errorf("little-endian: %t: % x travels", hostLittle, got)
		}
		copy(native, want)
		arrived(array)
		for i, x := range []float32{1, -2.5} {
			if order.Uint32(native[4*i:]) != math.Float32bits(x) {
				t.Errorf("little-endian: %t: % x arrived", hostLittle, native)
			}
		}
	}
}

func TestElementTypes(t *testing.T) {
	type bf16 uint16
	for _, f := range wire.Formats {
		for name, carried := range map[string]bool{
			"float32": carries[float32](f.Format), "int32": carries[int32](f.Format), "uint8": carries[uint8](f.Format),
			"uint16": carries[uint16](f.Format) && carries[bf16](f.Format),
		} {
			if carried != (name == goType(f.Format)) {
				t.Errorf("%s is carried in arrays of %s: %t; its type is %s", f.Name, name, carried, goType(f.Format))
			}
		}
	}
}
