// What a card under RoCEv2 has besides: its connections, their registers and their set-up, and the
// neighbours of a one-armed card (ROCE.md, sections 2 and 6). A card with another shell has no
// connections, and each method here then changes nothing and refuses nothing.

package model

import (
	"math/bits"

	"tributary/driver/wire"
)

// connections is what a card with shell roce knows of its connections and neighbours.
type connections struct {
	members    []connection   // staged, by port
	table      [][]connection // by job and port; no QPN: not registered
	neighbours []wire.Address // MAC addresses without Ethernet port; nil on a card with several
}

// connection is the value of a MEMBER_CONNECTION or JOB_CONNECTION register: the connection from the
// member at a port.
type connection uint64

const (
	connectionBits = 1<<56 - 1
	qpnBits        = 1<<24 - 1
	psnShift       = 24
	receiverShift  = 48
	lowestQPN      = 2 // 0 and 1 are those of management
)

// qpn returns the receiver's queue pair.
func (v connection) qpn() uint32 { return uint32(v & qpnBits) }

// firstPSN returns the PSN of VID 0.
func (v connection) firstPSN() uint32 { return uint32(v>>psnShift) & qpnBits }

// receiver returns the receiver's port of the core.
func (v connection) receiver() int { return int(uint8(v >> receiverShift)) }

// isRegistered reports whether an entry of the table is a connection.
func (v connection) isRegistered() bool { return v.qpn() != 0 }

func newConnections(cfg Config) *connections {
	n := &connections{members: make([]connection, cfg.Ports)}
	for range cfg.Jobs {
		n.table = append(n.table, make([]connection, cfg.Ports))
	}
	if cfg.Ethernet == 1 {
		n.neighbours = make([]wire.Address, cfg.Ports)
	}
	return n
}

// chunkMTUs are the sizes of chunks that connections carry, in bytes.
var chunkMTUs = wire.MTUs

// badConnection reports whether the job cannot be one of connections.
func (c *Card) badConnection(number uint8, wanted *setup) bool {
	n := c.connections
	if n == nil {
		return false
	}
	if wanted.first != 0 || wanted.partial() || !c.isMTU(wanted.chunk) {
		return true
	}
	taken := c.destinations(number)
	for ports := wanted.ports & lowBits(c.cfg.Ports); ports != 0; ports &= ports - 1 {
		v := n.members[bits.TrailingZeros64(ports)]
		if v.qpn() < lowestQPN || v.receiver() >= c.cfg.Ports || wanted.ports>>v.receiver()&1 == 0 {
			return true
		}
		to := destination{uint32(c.network.members[v.receiver()].Station), v.qpn()}
		if taken[to] {
			return true
		}
		taken[to] = true
	}
	return false
}

// isMTU reports whether chunks of so many elements are a payload of RoCEv2.
func (c *Card) isMTU(chunk uint64) bool {
	for _, mtu := range chunkMTUs {
		if chunk == uint64(mtu/elementBytes(c.cfg.Format)) {
			return true
		}
	}
	return false
}

// destination is what a packet's headers name of a connection.
type destination struct {
	ip  uint32
	qpn uint32
}

// destinations returns those of all registered connections, except those of one job number.
func (c *Card) destinations(except uint8) map[destination]bool {
	taken := map[destination]bool{}
	for number, table := range c.connections.table {
		for port, v := range table {
			if number != int(except) && v.isRegistered() {
				taken[c.destinationOf(number, port)] = true
			}
		}
	}
	return taken
}

// destinationOf returns what the packets name of the connection in the table's entry.
func (c *Card) destinationOf(number, port int) destination {
	v := c.connections.table[number][port]
	return destination{uint32(c.network.table[number][v.receiver()].Station), v.qpn()}
}

// bindConnections registers the staged connections of a new job. The number's old ones go.
func (c *Card) bindConnections(j *job) {
	n := c.connections
	if n == nil {
		return
	}
	clear(n.table[j.number])
	j.newest, j.streams = 0, nil
	for _, port := range j.portOf {
		n.table[j.number][port] = n.members[port]
		j.streams = append(j.streams, &stream{headers: make([]header, j.table.count)})
	}
}

// disconnect removes the connections of a job number.
func (c *Card) disconnect(number uint64) wire.Code {
	switch {
	case number >= uint64(len(c.jobs)):
		return wire.CodeBadJob
	case c.jobs[number].running:
		return wire.CodeBusy
	}
	clear(c.connections.table[number])
	return wire.CodeDone
}

// stageNoConnections forgets what an owner has staged.
func (c *Card) stageNoConnections() {
	if c.connections != nil {
		clear(c.connections.members)
	}
}

// resetConnections does what RESET does to connections and neighbours.
func (c *Card) resetConnections() {
	n := c.connections
	if n == nil {
		return
	}
	clear(n.neighbours)
	for _, table := range n.table {
		clear(table)
	}
}

// connectionAccessOf returns the allowed accesses of a register of shell roce, and whether the card has
// it.
func (c *Card) connectionAccessOf(addr uint32) (wire.Access, bool) {
	n := c.connections
	ok := n != nil
	if port, is := wire.SplitConnectionAddr(addr); is {
		addr, ok = wire.RegMemberConnection, ok && port < len(n.members)
	}
	if job, port, is := wire.SplitJobConnectionAddr(addr); is {
		addr, ok = wire.RegJobConnection, ok && job < len(n.table) && port < len(n.members)
	}
	if of0, number, is := wire.SplitNeighbourAddr(addr); is {
		addr, ok = of0, ok && number < len(n.neighbours)
	}
	return tableAccess(wire.ConnectionRegisters, addr, ok)
}

// readConnections returns the value of a register of shell roce that the card has; ok is false for
// another register.
func (c *Card) readConnections(addr uint32) (value uint64, ok bool) {
	n := c.connections
	if n == nil {
		return 0, false
	}
	if port, is := wire.SplitConnectionAddr(addr); is {
		return uint64(n.members[port]), true
	}
	if job, port, is := wire.SplitJobConnectionAddr(addr); is {
		return uint64(n.table[job][port]), true
	}
	if of0, number, is := wire.SplitNeighbourAddr(addr); is {
		return half(n.neighbours[number], of0 == wire.RegNeighbourMAC), true
	}
	return 0, false
}

// writeConnections performs a write to a register of shell roce; ok is false for another register.
func (c *Card) writeConnections(addr uint32, value uint64) (code wire.Code, ok bool) {
	n := c.connections
	if n == nil {
		return 0, false
	}
	if addr == wire.RegJobDisconnect {
		return c.disconnect(value), true
	}
	if port, is := wire.SplitConnectionAddr(addr); is {
		n.members[port] = connection(value) & connectionBits
		return wire.CodeDone, true
	}
	of0, number, is := wire.SplitNeighbourAddr(addr)
	switch {
	case !is:
		return 0, false
	case of0 == wire.RegNeighbourMAC:
		n.neighbours[number].MAC = value & stationBits
	default:
		n.neighbours[number].Station = value & ipBits
	}
	return wire.CodeDone, true
}

// ipBits are the bits of an IPv4 address in a register.
const ipBits = 1<<32 - 1

// neighbour returns the MAC address of the neighbour with that IPv4 address: of several, the first.
func (c *Card) neighbour(ip uint32) (mac uint64, ok bool) {
	if c.connections == nil || ip == 0 {
		return 0, false
	}
	for _, a := range c.connections.neighbours {
		if a.Station == uint64(ip) {
			return a.MAC, true
		}
	}
	return 0, false
}
