// What a card on a network has besides: the registers of shell udp, the owner's lease, and the
// addresses of the members (NETWORK.md, sections 3 to 5). A card with another shell has no network,
// and each method here then changes nothing and refuses nothing.

package model

import (
	"math/bits"

	"tributary/driver/wire"
)

// network is the state of a card on a network, apart from the datagrams (Endpoint).
type network struct {
	source wire.Address // the sender of the register access that is being performed
	card   wire.Address // CARD_ADDRESS and CARD_MAC

	owner wire.Address // while OWNER is not zero
	lease uint64       // clock cycles
	heard uint64       // clock of the owner's last access

	members []wire.Address   // staged, by port
	table   [][]wire.Address // by job and port; an entry that is zero is empty
}

// defaultLease is the default of LEASE.
const defaultLease = wire.LeaseSeconds * clockRate

// The bits of an address that have a meaning.
const (
	stationBits = 1<<48 - 1
	macBits     = 1<<56 - 1
)

func newNetwork(cfg Config) *network {
	n := &network{lease: defaultLease, members: make([]wire.Address, cfg.Ports)}
	for range cfg.Jobs {
		n.table = append(n.table, make([]wire.Address, cfg.Ports))
	}
	return n
}

// sameSender reports whether packets from a and b have one sender: the same IPv4 address, UDP port
// and Ethernet port. MAC addresses are not compared, because routers change.
func sameSender(a, b wire.Address) bool {
	return a.Station == b.Station && ethernetPort(a) == ethernetPort(b)
}

// ethernetPort returns the number of an address's Ethernet port.
func ethernetPort(a wire.Address) int { return int(uint8(a.MAC >> 48)) }

// isWhole reports whether neither the IPv4 address nor the UDP port is zero.
func isWhole(a wire.Address) bool { return uint32(a.Station) != 0 && uint16(a.Station>>32) != 0 }

// hear notes the sender of the register access that begins now. That of the owner restarts the lease.
func (c *Card) hear(from wire.Address) {
	if n := c.network; n != nil {
		n.source = from
		if sameSender(from, n.owner) {
			n.heard = c.cycles
		}
	}
}

// fromStranger reports whether a write is refused because of its sender. While nobody owns the card,
// everybody may write the three registers that take and reset it, and nobody another one.
func (c *Card) fromStranger(addr uint32) bool {
	switch {
	case c.network == nil:
		return false
	case c.owner != 0:
		return !sameSender(c.network.source, c.network.owner)
	}
	return addr != wire.RegOwner && addr != wire.RegRelease && addr != wire.RegReset
}

// beginLease makes the sender of the current access the owner. Nothing that others have staged stays.
func (c *Card) beginLease() {
	if n := c.network; n != nil {
		c.clearNetwork()
		c.staged = staged{}
		n.owner, n.heard = n.source, c.cycles
	}
}

// lookAtLease takes the card from an owner that was silent for LEASE cycles.
func (c *Card) lookAtLease() {
	n := c.network
	if n == nil || c.owner == 0 || c.cycles-n.heard < n.lease {
		return
	}
	c.counters.add(countLease, 1)
	c.release(c.owner)
}

// clearNetwork does what RESET and a new owner do to the registers of shell udp. The card's own address
// and the address table stay.
func (c *Card) clearNetwork() {
	if n := c.network; n != nil {
		n.lease = defaultLease
		clear(n.members)
	}
}

// networkAccessOf returns the allowed accesses of a register of shell udp, and whether the card has
// it.
func (c *Card) networkAccessOf(addr uint32) (wire.Access, bool) {
	ok := c.network != nil
	if of0, port, is := wire.SplitMemberAddr(addr); is {
		addr, ok = of0, ok && port < c.cfg.Ports
	}
	if of0, job, port, is := wire.SplitTableAddr(addr); is {
		addr, ok = of0, ok && job < len(c.jobs) && port < c.cfg.Ports
	}
	return tableAccess(wire.NetworkRegisters, addr, ok)
}

// readNetwork returns the value of a register of shell udp that the card has; ok is false for
// another register.
func (c *Card) readNetwork(addr uint32) (value uint64, ok bool) {
	n := c.network
	if n == nil {
		return 0, false
	}
	if of0, port, is := wire.SplitMemberAddr(addr); is {
		return half(n.members[port], of0 == wire.RegMemberMAC), true
	}
	if of0, job, port, is := wire.SplitTableAddr(addr); is {
		return half(n.table[job][port], of0 == wire.RegJobMAC), true
	}
	switch addr {
	case wire.RegLease:
		return n.lease, true
	case wire.RegSource, wire.RegSourceMAC:
		return half(n.source, addr == wire.RegSourceMAC), true
	case wire.RegCardAddress, wire.RegCardMAC:
		return half(n.card, addr == wire.RegCardMAC), true
	}
	return 0, false
}

// half returns one of the two registers of an address.
func half(a wire.Address, mac bool) uint64 {
	if mac {
		return a.MAC
	}
	return a.Station
}

// writeNetwork performs a write to a writable register of shell udp.
func (c *Card) writeNetwork(addr uint32, value uint64) wire.Code {
	n := c.network
	of0, port, _ := wire.SplitMemberAddr(addr)
	switch {
	case addr == wire.RegLease && (value == 0 || value > wire.MaxLease):
		return wire.CodeBadDeadline
	case addr == wire.RegLease:
		n.lease = value
	case addr == wire.RegCardAddress:
		n.card.Station = value & stationBits
	case addr == wire.RegCardMAC:
		n.card.MAC = value & macBits
	case of0 == wire.RegMemberAddress:
		n.members[port].Station = value
	case of0 == wire.RegMemberMAC:
		n.members[port].MAC = value
	default:
		panic("model: a register that can be written does nothing")
	}
	return wire.CodeDone
}

// staged returns the address that is staged for a port, without the bits that have no meaning.
func (n *network) staged(port int) wire.Address {
	return wire.Address{Station: n.members[port].Station & stationBits, MAC: n.members[port].MAC & macBits}
}

// badMember reports whether the staged address of one of the ports cannot be a member's.
func (c *Card) badMember(ports uint64) bool {
	n := c.network
	if n == nil {
		return false
	}
	for ; ports != 0; ports &= ports - 1 {
		member := n.staged(bits.TrailingZeros64(ports))
		if !isWhole(member) || ethernetPort(member) >= c.cfg.Ethernet {
			return true
		}
	}
	return false
}

// membersAreThoseOf reports whether the staged addresses of a running job's ports are those that it
// was set up with.
func (c *Card) membersAreThoseOf(j *job) bool {
	n := c.network
	if n == nil {
		return true
	}
	for _, port := range j.portOf {
		if n.staged(port) != n.table[j.number][port] {
			return false
		}
	}
	return true
}

// bindMembers copies the staged addresses of a new job's ports into the address table. The number's
// other ports have no member.
func (c *Card) bindMembers(j *job) {
	n := c.network
	if n == nil {
		return
	}
	clear(n.table[j.number])
	for _, port := range j.portOf {
		n.table[j.number][port] = n.staged(port)
	}
}

// isMember reports whether a packet from an address may be that of a rank. The table is empty where
// there is no job or no rank.
func (c *Card) isMember(from wire.Address, number, rank uint8) bool {
	if int(number) >= len(c.jobs) {
		return false
	}
	port, ok := c.PortOf(number, rank)
	entry := c.network.table[number]
	return ok && isWhole(entry[port]) && sameSender(from, entry[port])
}
