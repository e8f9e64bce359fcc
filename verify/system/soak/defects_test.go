package main

// Cards with Ethernet ports that lack a check.

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"tributary/driver/virtual/ethernet"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// blind is a card that lacks a check: it repairs what the check would have found.
type blind struct {
	*ethernet.Card
	repair  func(body []byte) // of a frame without FCS
	always  bool              // also of a frame with a wrong FCS
	members map[uint16][]byte // addresses of senders: of data by job and rank, of results by their UDP port
}

func (b *blind) Receive(port int, f []byte) {
	body, whole := ethernet.CutFCS(slices.Clone(f))
	if (whole || b.always) && len(body) >= ethernet.Shortest {
		b.repair(body)
		f = frames.Closed(body)
	}
	b.Card.Receive(port, f)
}

// repairSums makes the checksums of IP and UDP right.
func repairSums(body []byte) {
	clear(body[24:26])
	binary.BigEndian.PutUint16(body[24:], ^sum(0, body[14:34]))
	end := 14 + int(binary.BigEndian.Uint16(body[16:]))
	if binary.BigEndian.Uint16(body[12:]) != 0x0800 || end > len(body) || end < 42 {
		return
	}
	clear(body[40:42])
	binary.BigEndian.PutUint16(body[40:], ^udpSum(body[:end]))
}

// udpSum adds up the UDP datagram of a packet and its pseudo header.
func udpSum(packet []byte) uint16 {
	n := len(packet) - 34
	return sum(sum(sum(17, packet[26:34]), []byte{byte(n >> 8), byte(n)}), packet[34:])
}

// sum adds words up as the Internet checksum does.
func sum(start uint16, b []byte) uint16 {
	s := uint32(start)
	for i := 0; i < len(b); i += 2 {
		s += uint32(b[i]) << 8
		if i+1 < len(b) {
			s += uint32(b[i+1])
		}
	}
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// defects are checks of NETWORK.md that a card lacks.
var defects = map[string]func(*blind) ethernet.Device{
	"no FCS": func(b *blind) ethernet.Device {
		b.repair, b.always = func([]byte) {}, true
		return b
	},
	"no UDP checksum": func(b *blind) ethernet.Device {
		b.repair = func(body []byte) {
			if body[42]>>4 == byte(wire.KindData) && sum(0, body[14:34]) == 0xffff {
				repairSums(body)
			}
		}
		return b
	},
	"no CRC": func(b *blind) ethernet.Device {
		b.repair = func(body []byte) {
			end := 14 + int(binary.BigEndian.Uint16(body[16:]))
			if binary.BigEndian.Uint16(body[12:]) == 0x0800 && end <= len(body) && end >= 46 && wasRight(body[:end]) {
				data := body[42 : end-wire.DatagramCRCBytes]
				binary.LittleEndian.PutUint32(body[end-wire.DatagramCRCBytes:], crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
				repairSums(body)
			}
		}
		return b
	},
	"no addresses": func(b *blind) ethernet.Device {
		b.repair = func(body []byte) { b.renameStranger(body) }
		return b
	},
}

// wasRight reports whether the UDP checksum of a packet holds.
func wasRight(body []byte) bool {
	return body[14] == 0x45 && body[23] == 17 && udpSum(body) == 0xffff
}

// renameStranger gives a stranger's data the address of the member whose rank it has.
func (b *blind) renameStranger(body []byte) {
	if isIPv4(body) && body[42]>>4 == byte(wire.KindData) {
		b.rename(body, uint16(body[44])<<8|uint16(body[48]))
	}
}

// renameParent gives a stranger's results and statuses the address of the parent, which sends to the same UDP
// port.
func (b *blind) renameParent(body []byte) {
	switch wire.Kind(body[42] >> 4) {
	case wire.KindResult, wire.KindReplay, wire.KindStatus:
		if isIPv4(body) {
			b.rename(body, binary.BigEndian.Uint16(body[36:]))
		}
	}
}

func isIPv4(body []byte) bool { return binary.BigEndian.Uint16(body[12:]) == 0x0800 }

// rename gives a stranger's packet the address from which others like it came.
func (b *blind) rename(body []byte, who uint16) {
	if binary.BigEndian.Uint16(body[34:]) != 9 {
		b.members[who] = slices.Concat(body[6:12], body[26:30], body[34:36])
		return
	}
	if m := b.members[who]; m != nil {
		copy(body[6:], m[:6])
		copy(body[26:], m[6:10])
		copy(body[34:], m[10:])
		repairSums(body)
	}
}
