package ethernet

import (
	"encoding/binary"

	"tributary/driver/wire"
)

// appendEther appends an Ethernet header.
func appendEther(dst []byte, to, from mac, etherType uint16) []byte {
	dst = append(dst, to[:]...)
	dst = append(dst, from[:]...)
	return binary.BigEndian.AppendUint16(dst, etherType)
}

// appendIPv4 appends the header of an IP packet that carries length bytes: identification 0, which an
// atomic datagram may have (RFC 6864), and don't fragment.
func appendIPv4(dst []byte, protocol, tos byte, length int, from, to ip) []byte {
	start := len(dst)
	dst = append(dst, withoutOptions, tos)
	dst = binary.BigEndian.AppendUint16(dst, uint16(ipBytes+length))
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = binary.BigEndian.AppendUint16(dst, dontFragment)
	dst = append(dst, ttl, protocol, 0, 0)
	dst = append(dst, from[:]...)
	dst = append(dst, to[:]...)
	header := dst[start:]
	binary.BigEndian.PutUint16(header[atIPChecksum-etherBytes:], ^checksum(0).add(header).fold())
	return dst
}

// appendDatagram appends the frame of a datagram. A checksum of 0 leaves as 0xffff, because 0 is none
// (RFC 768).
func appendDatagram(dst, datagram []byte, own, to station, mark wire.ECN) []byte {
	length := udpBytes + len(datagram)
	dst = appendEther(dst, to.mac, own.mac, etherTypeIPv4)
	dst = appendIPv4(dst, protocolUDP, byte(mark), length, own.ip, to.ip)
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, own.port)
	dst = binary.BigEndian.AppendUint16(dst, to.port)
	dst = binary.BigEndian.AppendUint16(dst, uint16(length))
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = append(dst, datagram...)
	sum := ^pseudoHeader(own.ip[:], to.ip[:], length).add(dst[start:]).fold()
	if sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(dst[start+atUDPChecksum-atIPData:], sum)
	return dst
}
