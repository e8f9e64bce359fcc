package ethernet

import (
	"encoding/binary"

	"tributary/driver/wire"
)

// station is a wire.Address, in the bytes of a frame.
type station struct {
	mac  mac
	ip   ip
	port uint16 // UDP
	at   int    // Ethernet port
}

// stationOf returns the station at an address of the registers.
func stationOf(a wire.Address) (s station) {
	var m [8]byte
	binary.BigEndian.PutUint64(m[:], a.MAC)
	copy(s.mac[:], m[2:])
	binary.BigEndian.PutUint32(s.ip[:], uint32(a.Station))
	s.port, s.at = uint16(a.Station>>32), int(m[1])
	return s
}

// address is the inverse of stationOf.
func (s station) address() wire.Address {
	m := [8]byte{1: byte(s.at)}
	copy(m[2:], s.mac[:])
	return wire.Address{
		Station: uint64(s.port)<<32 | uint64(binary.BigEndian.Uint32(s.ip[:])),
		MAC:     binary.BigEndian.Uint64(m[:]),
	}
}
