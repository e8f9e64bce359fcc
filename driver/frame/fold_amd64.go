//go:build amd64 && !purego && !race

package frame

import (
	"golang.org/x/sys/cpu"

	"tributary/driver/wire"
)

//go:generate go run ./asm -out zfold_amd64.s -stubs zfold_amd64.go -pkg frame

// constants are what fold multiplies by, far and near, and the order of bytes in its registers: see
// asm/main.go.
var constants = [6]uint64{power(512), power(576), power(128), power(192), 0x08090a0b0c0d0e0f, 0x0001020304050607}

// power returns x^n modulo the CRC's polynomial.
func power(n int) uint64 {
	r := uint64(1)
	for range n {
		if r <<= 1; r>>16 != 0 {
			r ^= 1<<16 | wire.CRCPoly
		}
	}
	return r
}

// folds reports whether this processor has the instructions of fold.
var folds = cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSSE3

// foldBytes is what fold takes: a multiple of it.
const foldBytes = 64

// folded returns the CRC of the first n bytes of data. n is 0 where fold does not pay.
func folded(init uint16, data []byte) (crc uint16, n int) {
	n = len(data) / foldBytes * foldBytes
	if !folds || n < 2*foldBytes {
		return init, 0
	}
	var rest [16]byte
	fold(&rest, &data[0], n, init, &constants)
	return slice(0, rest[:]), n
}
