package wire

import "hash/crc32"

// ICRC is RoCEv2's invariant CRC (InfiniBand Architecture Specification, volume 1, section 7.8 and annex
// A17): the CRC-32 of IEEE 802.3, over what no switch changes. It covers 8 bytes of ones (in place of
// InfiniBand's local header), the IP header, the UDP header, BTH, the extended headers and the payload with
// its padding. Fields that change on the way are taken as ones: IP's TOS, TTL and checksum, UDP's
// checksum, and the BTH's byte 4 (FECN, BECN, reserved). It follows the payload, low byte first.
//
// The CRC is linear. With s the register after the headers, and p that of the payload alone, started from
// 0, the CRC of both is the inverse of (s advanced by the payload's bytes) XOR p. So the CRC of one payload
// serves any number of headers: ICRCHeaders, ICRCPayload and ICRCCombine.

// Offsets of the fields that ICRC takes as ones, in bytes. The last two count from the UDP header.
const (
	maskTOS         = 1
	maskTTL         = 8
	maskIPChecksum  = 10
	maskUDPChecksum = 6
	maskBTH         = 8 + 4

	ipv4HeaderBytes = 20
	udpHeaderBytes  = 8
)

// ICRC returns the ICRC of an IPv4 packet: from its IP header, which may have options, to the end of its
// payload and padding, without the ICRC itself. The packet is at least as long as its BTH's end, or ICRC
// panics.
func ICRC(packet []byte) uint32 {
	n := int(packet[0]&15)*4 + udpHeaderBytes + BTHBytes
	payload := packet[n:]
	return ICRCCombine(ICRCHeaders(packet[:n]), ICRCPayload(payload), len(payload))
}

// AppendICRC appends its ICRC to a packet as ICRC takes it.
func AppendICRC(packet []byte) []byte {
	c := ICRC(packet)
	return append(packet, byte(c), byte(c>>8), byte(c>>16), byte(c>>24))
}

// CutICRC returns an IPv4 packet without its ICRC. ok is false if the packet is too short for one, or the
// ICRC is not the packet's.
func CutICRC(packet []byte) (body []byte, ok bool) {
	if len(packet) < ipv4HeaderBytes {
		return nil, false
	}
	n := len(packet) - ICRCBytes
	if n < int(packet[0]&15)*4+udpHeaderBytes+BTHBytes || packet[0]&15 < 5 {
		return nil, false
	}
	c := ICRC(packet[:n])
	return packet[:n], packet[n] == byte(c) && packet[n+1] == byte(c>>8) && packet[n+2] == byte(c>>16) && packet[n+3] == byte(c>>24)
}

// ICRCHeaders returns the CRC's register, not inverted, after the 8 bytes of ones and the headers: from the
// IPv4 header to the BTH's end or beyond. It does not change headers.
func ICRCHeaders(headers []byte) uint32 {
	masked := make([]byte, 8, 8+len(headers))
	for i := range masked {
		masked[i] = 0xff
	}
	masked = append(masked, headers...)
	ip := masked[8:]
	udp := ip[int(ip[0]&15)*4:]
	ip[maskTOS], ip[maskTTL], ip[maskIPChecksum], ip[maskIPChecksum+1] = 0xff, 0xff, 0xff, 0xff
	udp[maskUDPChecksum], udp[maskUDPChecksum+1], udp[maskBTH] = 0xff, 0xff, 0xff
	return ^crc32.ChecksumIEEE(masked)
}

// ICRCPayload returns the CRC's register, not inverted, after bytes alone, started from 0.
func ICRCPayload(payload []byte) uint32 {
	return ^crc32.Update(^uint32(0), crc32.IEEETable, payload)
}

// ICRCAdvance returns the CRC's register after n more bytes of zeros.
func ICRCAdvance(register uint32, n int) uint32 {
	// The register times x^(8n), by squaring.
	for power := x8; n > 0; n >>= 1 {
		if n&1 == 1 {
			register = times(register, power)
		}
		power = times(power, power)
	}
	return register
}

// ICRCCombine returns the ICRC from the register after the headers, the register of the payload alone, and
// the payload's size in bytes.
func ICRCCombine(headers, payload uint32, n int) uint32 {
	return ^(ICRCAdvance(headers, n) ^ payload)
}

// x8 is the polynomial x^8; the highest bit is the coefficient of x^0.
const x8 uint32 = 1 << (31 - 8)

// times returns the product of two polynomials modulo the CRC's.
func times(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 == 1 {
			product ^= b
		}
		b = b>>1 ^ b&1*crc32.IEEE
	}
	return product
}
