package ethernet

import "encoding/binary"

// checksum is a ones' complement sum of 16-bit words (RFC 1071), not folded and not inverted.
type checksum uint32

// add adds bytes, the first of a word highest; an odd last one is followed by a zero. The sum holds
// several packets of 64 KiB without an overflow.
func (c checksum) add(b []byte) checksum {
	for ; len(b) >= 2; b = b[2:] {
		c += checksum(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		c += checksum(b[0]) << 8
	}
	return c
}

// fold returns the sum in 16 bits. It is 0xffff for data that includes its correct checksum.
func (c checksum) fold() uint16 {
	for c > 0xffff {
		c = c&0xffff + c>>16
	}
	return uint16(c)
}

// pseudoHeader returns the sum over UDP's pseudo-header (RFC 768): addresses, protocol, length.
func pseudoHeader(from, to []byte, length int) checksum {
	return (protocolUDP + checksum(length)).add(from).add(to)
}
