// The shell "roce": data packets of registered connections (ROCE.md, section 3).

package model

import (
	"encoding/binary"

	"tributary/driver/wire"
)

// Offsets in a frame whose IPv4 header has no options, in bytes.
const (
	atEtherType  = 12
	atIP         = 14
	atTOS        = atIP + 1
	atIPLength   = atIP + 2
	atFragment   = atIP + 6
	atProtocol   = atIP + 9
	atIPChecksum = atIP + 10
	atFromIP     = atIP + 12
	atToIP       = atIP + 16
	atUDP        = atIP + ipv4Header
	atToPort     = atUDP + 2
	atUDPLength  = atUDP + 4
	atUDPSum     = atUDP + 6
	atBTH        = atUDP + udpHeader
	atExtended   = atBTH + wire.BTHBytes
)

// Values of fields.
const (
	etherTypeIPv4 = 0x0800
	etherTypeVLAN = 0x8100
	etherTypeQinQ = 0x88a8
	vlanTag       = 4
	noOptions     = 0x45
	fragmentBits  = 0x3fff
	protocolUDP   = 17
)

// roceFrame is a frame without its FCS, of 60 bytes or more.
type roceFrame []byte

func (f roceFrame) word(at int) int    { return int(binary.BigEndian.Uint16(f[at:])) }
func (f roceFrame) long(at int) uint32 { return binary.BigEndian.Uint32(f[at:]) }

// bth returns the base transport header.
func (f roceFrame) bth() wire.BTH {
	h, _ := wire.ParseBTH(f[atBTH:])
	return h
}

// hides returns the destination's IPv4 address of a UDP packet whose transport header is not where the
// card looks: with a VLAN tag or IP options. ok is false for other frames.
func (f roceFrame) hides() (to uint32, ok bool) {
	at := 0
	switch f.word(atEtherType) {
	case etherTypeVLAN, etherTypeQinQ:
		at = vlanTag
	case etherTypeIPv4:
		if f[atIP]&15 <= noOptions&15 {
			return 0, false
		}
	default:
		return 0, false
	}
	ok = f.word(atEtherType+at) == etherTypeIPv4 && f[atProtocol+at] == protocolUDP
	return f.long(atToIP + at), ok
}

// isRoCE reports whether the frame has the UDP port of RoCEv2.
func (f roceFrame) isRoCE() bool {
	return f.word(atEtherType) == etherTypeIPv4 && f[atProtocol] == protocolUDP && f.word(atToPort) == int(wire.RoCEPort)
}

// isSound reports whether the headers are right, and the frame has all bytes that they announce.
func (f roceFrame) isSound() bool {
	length := f.word(atIPLength)
	return f[atIP] == noOptions && onesSum(f[atIP:atUDP]) == 0xffff && f.word(atFragment)&fragmentBits == 0 &&
		length >= atExtended-atIP+wire.ICRCBytes && f.word(atUDPLength) == length-ipv4Header &&
		atIP+length <= len(f) && f.bth().Version == 0
}

// packet returns the IP packet, without the frame's padding.
func (f roceFrame) packet() []byte { return f[atIP : atIP+f.word(atIPLength)] }

// onesSum returns the ones' complement sum of 16-bit words (RFC 1071).
func onesSum(b []byte) (sum uint32) {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return sum
}

// TakeFrame takes a frame that came at an Ethernet port: without its FCS, which held, of 60 to 9,018 bytes.
// toCard means that it came to the card's MAC address. The card keeps no reference to it. taken is false
// for a frame that goes on as any other; every frame does so on a card with another shell than roce.
func (e *Endpoint) TakeFrame(port int, frame []byte, toCard bool) (taken bool) {
	c := e.card
	if c.connections == nil {
		return false
	}
	f := roceFrame(frame)
	if to, ok := f.hides(); ok {
		if !c.receives(to) {
			return false
		}
		c.counters.add(countRoCEHidden, 1)
		return true
	}
	if !f.isRoCE() {
		return false
	}
	j, rank, ok := c.connectionOf(destination{f.long(atToIP), f.bth().DestQP})
	if !ok {
		return false
	}
	switch f.bth().Opcode {
	case wire.OpAcknowledge, wire.OpCNP:
		return false
	}
	c.takeRoCE(j, rank, port, f, toCard)
	return true
}

// receives reports whether an IPv4 address is that of the receiver of a registered connection.
func (c *Card) receives(ip uint32) bool {
	for number, table := range c.connections.table {
		for port, v := range table {
			if v.isRegistered() && c.destinationOf(number, port).ip == ip {
				return true
			}
		}
	}
	return false
}

// connectionOf returns the registered connection to a destination: the job, and the rank that sends.
func (c *Card) connectionOf(to destination) (j *job, rank int, ok bool) {
	for number := range c.jobs {
		j := &c.jobs[number]
		for rank, port := range j.portOf {
			if c.connections.table[number][port].isRegistered() && c.destinationOf(number, port) == to {
				return j, rank, true
			}
		}
	}
	return nil, 0, false
}

// takeRoCE checks a packet of a registered connection, and sums or drops it.
func (c *Card) takeRoCE(j *job, rank, at int, f roceFrame, toCard bool) {
	payload, wrong := c.checkRoCE(j, rank, at, f)
	if wrong != accurate {
		c.counters.add(int(wrong), 1)
		return
	}
	c.Advance(c.beats(payload))
	if !j.running {
		c.counters.refused(wire.CodeBadJob)
		return
	}
	h := header{bytes: f[:len(f.packet())+atIP-wire.ICRCBytes-len(payload)], toCard: toCard}
	c.contribute(j, uint8(rank), f.bth().PSN, payload, wire.ECN(f[atTOS]&wire.FlagECN), h)
}

// accurate is what checkRoCE returns instead of a counter.
const accurate = -1

// checkRoCE applies the checks of a packet, in their order. It returns the payload, or the counter of the
// first check that fails.
func (c *Card) checkRoCE(j *job, rank, at int, f roceFrame) (payload []byte, wrong int) {
	if !f.isSound() {
		return nil, countRoCEHeader
	}
	body, whole := wire.CutICRC(f.packet())
	if !whole {
		return nil, countRoCEICRC
	}
	member := c.network.table[j.number][j.portOf[rank]]
	if f.long(atFromIP) != uint32(member.Station) || at != ethernetPort(member) {
		return nil, countRoCESource
	}
	info, known := f.bth().Opcode.Info()
	if !known || !info.Data() {
		return nil, countRoCEOpcode
	}
	mtu := int(j.setup.chunk) * elementBytes(c.cfg.Format)
	start := atExtended - atIP + info.Extra
	if len(body) != start+mtu || f.bth().Pad != 0 {
		return nil, countRoCELength
	}
	return body[start:], accurate
}

// contribute applies the slot rules to the payload of a data packet.
func (c *Card) contribute(j *job, rank uint8, psn uint32, payload []byte, mark wire.ECN, h header) {
	vid := j.vidOf(psn - c.connections.table[j.number][j.portOf[rank]].firstPSN())
	slot, code, owed := j.table.offer(rank, vid, c.cycles)
	s := j.streams[rank]
	switch {
	case code == accepted:
		if slot.held == 0 {
			j.turnedOver(vid - j.table.count)
		}
		c.store(j, slot, &Packet{Header: Header{Flags: uint8(mark), Rank: rank, VID: vid}, Payload: payload})
		if isAfter(vid, j.newest) {
			j.newest = vid
		}
		s.keep(vid, h)
	case code == wire.CodeDuplicate:
		c.counters.refused(code)
		s.keep(vid, h)
		if owed && isAfter(s.next, vid) && !s.ended {
			s.answer(vid)
		}
	default:
		c.counters.refused(code)
	}
}

// vidOf returns the VID with these 24 low bits that is the nearest to the newest stored one.
func (j *job) vidOf(low uint32) uint32 {
	return j.newest + uint32(wire.PSNsFrom(j.newest, low))
}

// isAfter reports whether VID v follows u.
func isAfter(v, u uint32) bool { return int32(v-u) > 0 }
