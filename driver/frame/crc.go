package frame

// CRC-16/CCITT-FALSE, sixteen bytes at a time. Processors that multiply polynomials fold longer data
// first (fold_amd64.go).
//
// Source: M. E. Kounavis and F. L. Berry, "A Systematic Approach to Building High Performance
// Software-Based CRC Generators" (2005): slicing by N, for a register that shifts left. The
// tests compare it with github.com/sigurn/crc16, which goes byte by byte.

import (
	"encoding/binary"

	"tributary/driver/wire"
)

// slices is the number of bytes in one step of slice.
const slices = 16

// tables[k][b] is the effect of byte b on the register when k more bytes follow.
var tables = func() (t [slices][256]uint16) {
	for b := range 256 {
		r := uint16(b) << 8
		for range 8 {
			if carry := r&0x8000 != 0; carry {
				r = r<<1 ^ wire.CRCPoly
			} else {
				r <<= 1
			}
		}
		t[0][b] = r
	}
	for k := 1; k < slices; k++ {
		for b := range 256 {
			r := t[k-1][b]
			t[k][b] = r<<8 ^ t[0][r>>8]
		}
	}
	return t
}()

// CRC returns the CRC-16/CCITT-FALSE of data from the initial value init: wire.CRCInit for a
// header, the header's CRC for a payload.
func CRC(init uint16, data []byte) uint16 {
	r, n := folded(init, data)
	return slice(r, data[n:])
}

// slice is CRC by tables.
func slice(r uint16, data []byte) uint16 {
	t := &tables
	for len(data) >= slices {
		lo := binary.LittleEndian.Uint64(data) ^ uint64(r>>8) ^ uint64(r&0xff)<<8
		hi := binary.LittleEndian.Uint64(data[8:])
		r = t[15][byte(lo)] ^ t[14][byte(lo>>8)] ^ t[13][byte(lo>>16)] ^ t[12][byte(lo>>24)] ^
			t[11][byte(lo>>32)] ^ t[10][byte(lo>>40)] ^ t[9][byte(lo>>48)] ^ t[8][byte(lo>>56)] ^
			t[7][byte(hi)] ^ t[6][byte(hi>>8)] ^ t[5][byte(hi>>16)] ^ t[4][byte(hi>>24)] ^
			t[3][byte(hi>>32)] ^ t[2][byte(hi>>40)] ^ t[1][byte(hi>>48)] ^ t[0][byte(hi>>56)]
		data = data[slices:]
	}
	for _, b := range data {
		r = r<<8 ^ t[0][byte(r>>8)^b]
	}
	return r
}
