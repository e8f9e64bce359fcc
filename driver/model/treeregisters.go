// The registers of trees of cards, and what JOB_COMMIT checks there (TREES.md, section 3).

package model

import (
	"math/bits"

	"tributary/driver/wire"
)

// upward holds what a job has of a tree of cards, as in the registers.
type upward struct {
	parent  uint64           // JOB_PARENT
	repeat  uint64           // JOB_REPEAT
	tree    uint64           // TREE_RANKS
	address wire.Address     // PARENT_ADDRESS and PARENT_MAC
	ranks   [maxPorts]uint64 // MEMBER_RANKS, by port
}

// of returns what a job with these ports has: nothing of other ports, and none of the bits without a
// meaning of an address.
func (u upward) of(ports uint64) upward {
	u.address.Station &= stationBits
	u.address.MAC &= macBits
	for port := range u.ranks {
		if ports>>port&1 == 0 {
			u.ranks[port] = 0
		}
	}
	return u
}

// isTree reports whether the job uses the up port.
func (u *upward) isTree() bool { return u.parent&wire.ParentTree != 0 }

// rank returns the card's rank at its parent.
func (u *upward) rank() uint8 { return uint8(u.parent >> wire.ParentRankShift) }

// port returns the upward UDP port.
func (u *upward) port() uint16 { return uint16(u.parent >> wire.ParentPortShift) }

// isNested reports whether results of the job are sums of more than one level.
func (u *upward) isNested() bool {
	for _, ranks := range u.ranks {
		if bits.OnesCount64(ranks) > 1 {
			return true
		}
	}
	return u.isTree()
}

// ranksOf appends the global ranks that the member at each of the ports stands for. Where no
// MEMBER_RANKS are set, each member stands for its own rank.
func (u *upward) ranksOf(dst []uint64, ports []int) []uint64 {
	for rank, port := range ports {
		ranks := u.ranks[port]
		if ranks == 0 {
			ranks = 1 << rank
		}
		dst = append(dst, ranks)
	}
	return dst
}

// badParent reports whether JOB_PARENT and what goes with it cannot be those of job j.
func (c *Card) badParent(j *job, u *upward) bool {
	known := wire.ParentTree | wire.ParentRankBits<<wire.ParentRankShift
	if c.network != nil {
		known |= wire.ParentPortBits << wire.ParentPortShift
	}
	switch {
	case u.parent&^known != 0:
		return true
	case !u.isTree():
		return false
	case u.repeat == 0 || u.repeat > wire.MaxRepeat:
		return true
	}
	return c.network != nil && (c.network.badParent(u, c.cfg.Ethernet) || c.usesUpwardPort(j, u.port()))
}

// badParent reports whether packets cannot go from the upward UDP port to the parent's address.
func (n *network) badParent(u *upward, ethernetPorts int) bool {
	return !isWhole(u.address) || u.address.Station == n.card.Station || ethernetPort(u.address) >= ethernetPorts ||
		u.port() == 0 || u.port() == uint16(n.card.Station>>32)
}

// usesUpwardPort reports whether a running tree job other than but has that upward UDP port.
func (c *Card) usesUpwardPort(but *job, port uint16) bool {
	j := c.jobAt(port)
	return j != nil && j != but
}

// jobAt returns the running tree job with that upward UDP port, or nil.
func (c *Card) jobAt(port uint16) *job {
	for number := range c.jobs {
		if j := &c.jobs[number]; j.running && j.isTree() && j.setup.upward.port() == port {
			return j
		}
	}
	return nil
}

// badRanks reports whether the members' global ranks contradict one another, or the tree's.
func (s *setup) badRanks() bool {
	var all uint64
	named, members := 0, 0
	for ports := s.ports; ports != 0; ports &= ports - 1 {
		ranks := s.upward.ranks[bits.TrailingZeros64(ports)]
		if ranks&all != 0 {
			return true
		}
		all |= ranks
		members++
		if ranks != 0 {
			named++
		}
	}
	if s.upward.isTree() {
		return named != members || all&^s.upward.tree != 0
	}
	return named != 0 && named != members
}

// treeAccessOf returns the allowed accesses of a register of trees of cards, and whether the card has
// it.
func (c *Card) treeAccessOf(addr uint32) (wire.Access, bool) {
	ok := c.cfg.Parent
	if job, port, is := wire.SplitJobRanksAddr(addr); is {
		return wire.ReadOnly, ok && job < len(c.jobs) && port < c.cfg.Ports
	}
	if port, is := wire.SplitRanksAddr(addr); is {
		return wire.ReadWrite, ok && port < c.cfg.Ports
	}
	if _, is := upCounter(addr); is {
		return wire.ReadOnly, ok
	}
	if addr == wire.RegParentAddress || addr == wire.RegParentMAC {
		ok = ok && c.network != nil
	}
	addr, number := wire.SplitJobAddr(addr)
	return tableAccess(wire.TreeRegisters, addr, ok && number < len(c.jobs))
}

// upCounter returns the index of the counter of the up port at a register address.
func upCounter(addr uint32) (index int, ok bool) {
	if addr < wire.UpCounterBase || addr >= wire.UpCounterAddr(len(wire.UpCounters)) || addr%8 != 0 {
		return 0, false
	}
	return int(addr-wire.UpCounterBase) / 8, true
}

// upwardAt returns the staged register of trees of cards at an address; nil if it is another register.
func (c *Card) upwardAt(addr uint32) *uint64 {
	if port, ok := wire.SplitRanksAddr(addr); ok {
		return &c.upward.ranks[port]
	}
	switch addr {
	case wire.RegParentAddress:
		return &c.upward.address.Station
	case wire.RegParentMAC:
		return &c.upward.address.MAC
	case wire.RegJobParent:
		return &c.upward.parent
	case wire.RegJobRepeat:
		return &c.upward.repeat
	case wire.RegTreeRanks:
		return &c.upward.tree
	}
	return nil
}

// readTree returns the value of a register of trees of cards that the card has; ok is false for another
// register.
func (c *Card) readTree(addr uint32) (value uint64, ok bool) {
	if staged := c.upwardAt(addr); staged != nil {
		return *staged, true
	}
	if index, is := upCounter(addr); is {
		return uint64(c.up[index]), true
	}
	if job, port, is := wire.SplitJobRanksAddr(addr); is {
		return c.jobs[job].setup.upward.ranks[port], true
	}
	of0, number := wire.SplitJobAddr(addr)
	switch of0 {
	case wire.RegJobUp:
		return c.jobs[number].setup.upward.parent, true
	case wire.RegJobTree:
		return c.jobs[number].setup.upward.tree, true
	case wire.RegJobUpRefusal:
		return c.jobs[number].upRefusal, true
	}
	return 0, false
}
