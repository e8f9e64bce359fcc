package faults

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// Where the fields of a frame with a UDP datagram are, in bytes.
const (
	atEtherType   = 12
	atIP          = 14
	atTOS         = 15
	atIPLength    = 16
	atFragment    = 20
	atProtocol    = 23
	atIPChecksum  = 24
	atFromIP      = 26
	atToIP        = 30
	atUDP         = 34
	atToPort      = 36
	atUDPLength   = 38
	atUDPChecksum = 40
	atDatagram    = 42
	fcsBytes      = 4

	shortestFrame, longestFrame = 60, 9018 // without FCS
)

// isDatagram reports whether a frame has an IPv4 packet without options with a UDP datagram. Another cable may
// have damaged it before.
func isDatagram(b []byte) bool {
	if len(b) < shortestFrame+fcsBytes || binary.BigEndian.Uint16(b[atEtherType:]) != 0x0800 || b[atIP] != 0x45 || b[atProtocol] != 17 {
		return false
	}
	end := atIP + int(binary.BigEndian.Uint16(b[atIPLength:]))
	return end >= atDatagram && end <= len(b)-fcsBytes
}

// dataOf returns what the UDP datagram of a frame carries.
func dataOf(b []byte) []byte {
	return b[atDatagram : atIP+int(binary.BigEndian.Uint16(b[atIPLength:]))]
}

// closed returns a frame without FCS with the right one.
func closed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, crc32.ChecksumIEEE(body))
}

// opened returns a frame without its FCS. Appending to it copies.
func opened(b []byte) []byte { return slices.Clip(b[:len(b)-fcsBytes]) }

// sum16 adds up big-endian words for the Internet checksum (RFC 1071).
func sum16(sum uint32, b []byte) uint32 {
	for i, x := range b {
		sum += uint32(x) << (8 * (1 - i%2))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return sum
}

// checksummed makes the checksums of IP and UDP in a frame without FCS right.
func checksummed(body []byte) []byte {
	binary.BigEndian.PutUint16(body[atIPChecksum:], 0)
	binary.BigEndian.PutUint16(body[atIPChecksum:], ^uint16(sum16(0, body[atIP:atUDP])))
	binary.BigEndian.PutUint16(body[atUDPChecksum:], 0)
	udp := body[atUDP : atIP+int(binary.BigEndian.Uint16(body[atIPLength:]))]
	sum := ^uint16(sum16(sum16(uint32(body[atProtocol])+uint32(len(udp)), body[atFromIP:atUDP]), udp))
	if sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(body[atUDPChecksum:], sum)
	return body
}

// harms are the kinds that replace a frame. They own b, and return the frame, and the card's counter in
// which NETWORK.md, section 2, puts it; "" for none.
var harms = map[FrameKind]func(b []byte, rng *rand.Rand) (harmed []byte, counter string){
	Damaged: func(b []byte, rng *rand.Rand) ([]byte, string) {
		if rng.IntN(2) == 0 {
			flips(b, rng)
		} else {
			burstOf(b, 2+rng.IntN(31), rng)
		}
		return b, "fcs"
	},
	CutOff: func(b []byte, rng *rand.Rand) ([]byte, string) {
		// A MAC drops what is too short for an FCS without a word.
		return b[:fcsBytes+1+rng.IntN(len(b)-fcsBytes-1)], "fcs"
	},
	Flipped: func(b []byte, rng *rand.Rand) ([]byte, string) {
		body, end := opened(b), atDatagram+len(dataOf(b))
		at := rng.IntN(len(body))
		body[at] ^= 1 << rng.IntN(8)
		return closed(body), flippedAt(at, end)
	},
	Swapped: func(b []byte, rng *rand.Rand) ([]byte, string) {
		swap(dataOf(b), rng)
		return closed(opened(b)), "datagram_crc"
	},
	Shortened: func(b []byte, rng *rand.Rand) ([]byte, string) {
		body := opened(b)
		n := 1 + rng.IntN(atDatagram+len(dataOf(b))-1)
		if n < shortestFrame {
			return closed(body[:n:n]), "runt"
		}
		return closed(body[:n:n]), "ip_length"
	},
	Padded: func(b []byte, rng *rand.Rand) ([]byte, string) {
		return closed(appendNoise(opened(b), 1+rng.IntN(60), rng)), ""
	},
	Oversized: func(b []byte, rng *rand.Rand) ([]byte, string) {
		return closed(appendNoise(opened(b), longestFrame+1+rng.IntN(40)-len(b)+fcsBytes, rng)), "oversize"
	},
	Tagged: func(b []byte, rng *rand.Rand) ([]byte, string) {
		return closed(slices.Insert(opened(b), atEtherType, 0x81, 0, byte(rng.Uint32()), byte(rng.Uint32()))), ""
	},
	WithOptions: func(b []byte, rng *rand.Rand) ([]byte, string) {
		body := opened(b)
		body[atIP]++
		binary.BigEndian.PutUint16(body[atIPLength:], binary.BigEndian.Uint16(body[atIPLength:])+4)
		body = slices.Insert(body, atUDP, 0x94, 4, 0, 0) // router alert (RFC 2113)
		binary.BigEndian.PutUint16(body[atIPChecksum:], 0)
		binary.BigEndian.PutUint16(body[atIPChecksum:], ^uint16(sum16(0, body[atIP:atUDP+4])))
		return closed(body), "ip_header"
	},
	Fragment: func(b []byte, rng *rand.Rand) ([]byte, string) {
		fragment := uint16(0x2000) // more come
		if rng.IntN(2) == 0 {
			fragment = uint16(1 + rng.IntN(1<<13-1))
		}
		binary.BigEndian.PutUint16(b[atFragment:], fragment)
		return closed(checksummed(opened(b))), "fragment"
	},
	OtherMAC: func(b []byte, rng *rand.Rand) ([]byte, string) {
		copy(b, strangerMAC)
		b[5] = byte(rng.Uint32())
		return closed(opened(b)), ""
	},
	OtherIP: func(b []byte, rng *rand.Rand) ([]byte, string) {
		b[atToIP+rng.IntN(4)] ^= 1 << rng.IntN(8)
		return closed(checksummed(opened(b))), "ip_address"
	},
	OtherProtocol: func(b []byte, rng *rand.Rand) ([]byte, string) {
		for b[atProtocol] == 17 || b[atProtocol] == 1 { // an ICMP echo request has its own checks
			b[atProtocol] = byte(rng.Uint32())
		}
		return closed(checksummed(opened(b))), "protocol"
	},
	OtherPort: func(b []byte, rng *rand.Rand) ([]byte, string) {
		b[atToPort+rng.IntN(2)] ^= 1 << rng.IntN(8)
		return closed(checksummed(opened(b))), "udp_port"
	},
	NoChecksum: func(b []byte, _ *rand.Rand) ([]byte, string) {
		b[atUDPChecksum], b[atUDPChecksum+1] = 0, 0
		return closed(opened(b)), "checksum"
	},
	Marked: func(b []byte, _ *rand.Rand) ([]byte, string) {
		b[atTOS] |= uint8(wire.CE)
		return closed(checksummed(opened(b))), ""
	},
}

// flippedAt returns the counter of a frame with a datagram in which one bit of a byte flipped; end is
// where its padding begins.
func flippedAt(at, end int) string {
	switch {
	case at < atIP, at >= end: // passed on, or a MAC address that no card compares, or padding
		return ""
	case at == atIP:
		return "ip_header"
	case at < atUDP:
		return "ip_checksum"
	case at == atUDPLength, at == atUDPLength+1:
		return "udp_length"
	}
	return "checksum"
}

// swap flips two bits of the same weight in words of the Internet checksum, one up and one down. The
// checksum does not see it, and CRC-32C sees any two bits of a datagram.
func swap(data []byte, rng *rand.Rand) {
	for {
		i, j, bit := rng.IntN(len(data)), rng.IntN(len(data)), byte(1)<<rng.IntN(8)
		if i%2 == j%2 && (data[i]^data[j])&bit != 0 {
			data[i] ^= bit
			data[j] ^= bit
			return
		}
	}
}

func appendNoise(b []byte, n int, rng *rand.Rand) []byte {
	for range n {
		b = append(b, byte(rng.Uint32()))
	}
	return b
}

// A stranger, which is no member of any job.
var (
	strangerMAC = []byte{0x06, 0, 0, 0, 0xff, 0xfe}
	strangerIP  = []byte{192, 168, 84, 250}
)

const strangerPort = 9

// isStrangers reports whether a datagram's frame is for the stranger.
func isStrangers(b []byte) bool { return slices.Equal(b[atToIP:atUDP], strangerIP) }

// strangers are the registers that a stranger writes, and what. The card must refuse each, whether it has
// an owner or not.
var strangers = []struct {
	addr  uint32
	value uint64
}{
	{wire.RegLease, 1}, {wire.RegJobAbort, 0}, {wire.RegJobPorts, 1}, {wire.RegJobChunk, 1}, {wire.RegJobCommit, 1 << 32},
	{wire.RegMemberAddress, 0x9_c0a854fa}, {wire.RegCardAddress, 0x5442_c0a854fa}, {wire.RegCardMAC, 0x0600_0000fffe},
}

// strangersWrite returns the frame of a stranger that writes a register of the card to which a frame goes.
func strangersWrite(b []byte, rng *rand.Rand) []byte {
	write := strangers[rng.IntN(len(strangers))]
	h := frame.Header{Kind: wire.KindRegWrite, VID: write.addr, Mask: write.value}
	return fromStranger(b, frame.AppendDatagram(nil, &h, nil))
}

// strangersCopy returns a stranger's copy of a packet with another payload, or mask, and the right CRC.
func strangersCopy(b []byte, rng *rand.Rand) []byte {
	data := slices.Clone(dataOf(b))
	body := data[:len(data)-wire.DatagramCRCBytes]
	if payload := body[wire.BaseHeaderBytes:]; len(payload) > 0 {
		payload[rng.IntN(len(payload))] ^= 1 << rng.IntN(8)
	}
	return fromStranger(b, binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli)))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fromStranger returns a frame of the stranger to the receiver of b, with a datagram.
func fromStranger(b, data []byte) []byte {
	body := append(slices.Clone(b[:atDatagram]), data...)
	copy(body[6:], strangerMAC)
	copy(body[atFromIP:], strangerIP)
	binary.BigEndian.PutUint16(body[atUDP:], strangerPort)
	binary.BigEndian.PutUint16(body[atIPLength:], uint16(28+len(data)))
	binary.BigEndian.PutUint16(body[atUDPLength:], uint16(8+len(data)))
	return closed(checksummed(append(body, make([]byte, max(0, shortestFrame-len(body)))...)))
}
