package ethernet

import "encoding/binary"

// connected is an Endpoint that may have shell roce: model.Endpoint. driver/wire/ROCE.md defines what it
// takes and sends. With another shell it takes and sends no frame here, and has no neighbours.
type connected interface {
	// TakeFrame takes a frame without its FCS, which held, of 60 to 9,018 bytes, that came at an
	// Ethernet port; toCard means to the card's MAC address. It keeps no reference to it. taken is false
	// for a frame that goes on as any other.
	TakeFrame(port int, frame []byte, toCard bool) (taken bool)

	// SendFrame appends the next frame on a connection to dst, without its FCS, and returns its Ethernet
	// port. ok is false if there is none. No reply may wait (Endpoint.Send).
	SendFrame(dst []byte) (frame []byte, port int, ok bool)

	// Neighbour returns the MAC address of a one-armed card's neighbour, as in the registers.
	Neighbour(ip uint32) (mac uint64, ok bool)
}

// take passes a frame that is whole and has a right size to the connections. It reports whether they have
// taken it.
func (c *Card) take(v *view, port int) bool {
	return c.connected != nil && c.connected.TakeFrame(port, v.frame, v.mac(atDestination) == c.own.mac)
}

// relay lets a frame that came to the card's MAC address leave to a neighbour. It reports whether that is
// the frame's way.
func (c *Card) relay(v *view, port int) bool {
	if c.connected == nil || v.mac(atDestination) != c.own.mac || v.word(atEtherType) != etherTypeIPv4 || v.ip(atToIP) == c.own.ip {
		return false
	}
	to, ok := c.connected.Neighbour(binary.BigEndian.Uint32(v.frame[atToIP:]))
	if !ok {
		return false
	}
	var m [8]byte
	binary.BigEndian.PutUint64(m[:], to)
	frame := append(append(append([]byte(nil), m[2:]...), c.own.mac[:]...), v.frame[atEtherType:]...)
	counter := "relayed"
	if !c.passing.push(AppendFCS(frame), []int{port}) {
		counter = "dropped"
	}
	c.endpoint.Count(counter)
	return true
}
