package model

// CRC-16/CCITT-FALSE (section 3 of the specification), eight bytes at a time (slicing by 8). The
// register is linear in the input bytes. So each of the eight bytes has a table of its effect on
// the register, and the lookups are added.

import "tributary/driver/wire"

// crcSlice is the number of bytes per step.
const crcSlice = 8

// crcTables[n][b] is the register after byte b and n zero bytes, from zero.
var crcTables = makeCRCTables()

func makeCRCTables() (tables [crcSlice][256]uint16) {
	for b := range 256 {
		r := crcBitwise(0, []byte{byte(b)})
		for n := range tables {
			tables[n][b] = r
			r = crcBitwise(r, []byte{0})
		}
	}
	return tables
}

// crcBitwise is the definition: a bit enters at the low end, and the bit that leaves at the high
// end adds the polynomial.
func crcBitwise(r uint16, data []byte) uint16 {
	for _, b := range data {
		r ^= uint16(b) << 8
		for range 8 {
			leaves := r&0x8000 != 0
			r <<= 1
			if leaves {
				r ^= wire.CRCPoly
			}
		}
	}
	return r
}

// updateCRC returns the register r after data. r is wire.CRCInit before a header, and the header's
// CRC before a payload.
func updateCRC(r uint16, data []byte) uint16 {
	t := &crcTables
	for ; len(data) >= crcSlice; data = data[crcSlice:] {
		d := (*[crcSlice]byte)(data)
		r = t[7][d[0]^byte(r>>8)] ^ t[6][d[1]^byte(r)] ^
			t[5][d[2]] ^ t[4][d[3]] ^ t[3][d[4]] ^ t[2][d[5]] ^ t[1][d[6]] ^ t[0][d[7]]
	}
	for _, b := range data {
		r = r<<8 ^ t[0][b^byte(r>>8)]
	}
	return r
}
