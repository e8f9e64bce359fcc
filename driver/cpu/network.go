package cpu

import (
	"math/bits"

	"tributary/driver/wire"
)

// network is what a card on a network has besides (driver/wire/NETWORK.md, sections 3 to 5). The
// engine of a card with another shell has none, and its methods here then do nothing.
type network struct {
	ethernet int            // Ethernet ports
	own      wire.Address   // the card's
	sender   wire.Address   // of the current register access
	owner    wire.Address   // of the process that owns the card
	lease    uint64         // the register LEASE
	expires  uint64         // clock at which the owner loses the card
	staged   []wire.Address // the MEMBER registers, by port
	table    []wire.Address // the address table: of each job, by port; zero: none
	ports    int            // of the card
}

// leaseCycles is the default of LEASE: the clock makes a cycle in 10 ns.
const leaseCycles = wire.LeaseSeconds * uint64(1e9/cycle)

// What the registers of an address mean.
const (
	stationMask = 1<<48 - 1
	macMask     = 1<<56 - 1
)

// newNetwork returns the network of a card after its hard reset; nil if its shell is another.
func newNetwork(cfg Config) *network {
	if cfg.Shell != wire.ShellUDP {
		return nil
	}
	return &network{
		ethernet: cfg.Ethernet, lease: leaseCycles, ports: cfg.Ports,
		staged: make([]wire.Address, cfg.Ports), table: make([]wire.Address, cfg.Jobs*cfg.Ports),
	}
}

// job returns the address table's entries of a job, by port.
func (n *network) job(number uint8) []wire.Address {
	return n.table[int(number)*n.ports:][:n.ports]
}

// who is what identifies a sender: its MAC address does not, because routers change.
type who struct {
	station  uint64
	ethernet uint8
}

func whoIs(a wire.Address) who { return who{a.Station, uint8(a.MAC >> 48)} }

// access notes who makes the register access of this cycle. An access of the owner restarts the
// lease.
func (n *network) access(from wire.Address, now uint64) {
	if n == nil {
		return
	}
	n.sender = from
	if whoIs(from) == whoIs(n.owner) {
		n.expires = now + n.lease
	}
}

// allows reports whether the sender may write a register of a card with this OWNER.
func (n *network) allows(addr uint32, owner uint64) bool {
	switch {
	case n == nil:
		return true
	case owner != 0:
		return whoIs(n.sender) == whoIs(n.owner)
	}
	return addr == wire.RegOwner || addr == wire.RegRelease || addr == wire.RegReset
}

// owned makes the sender the owner. Nothing that others have staged stays.
func (n *network) owned(now uint64) {
	if n != nil {
		n.owner, n.lease, n.expires = n.sender, leaseCycles, now+leaseCycles
		clear(n.staged)
	}
}

// expire ends the lease of an owner that has been silent for too long.
func (e *engine) expire() {
	if n := e.network; n != nil && e.owner != 0 && e.now >= n.expires {
		e.counters[countLease]++
		e.owner = 0
		e.endAll()
	}
}

// reset is what RESET does here.
func (n *network) reset() {
	if n != nil {
		n.lease = leaseCycles
		clear(n.staged)
	}
}

// networkAccesses is what a host may do with a register of shell udp, by its address for port 0 and
// job 0.
var networkAccesses = func() map[uint32]wire.Access {
	m := map[uint32]wire.Access{}
	for _, r := range wire.NetworkRegisters {
		m[r.Addr] = r.Access
	}
	return m
}()

// find returns the register pair that a register belongs to, as two values in one address, and
// whether it is the pair's second. It returns nil where the card has none.
func (n *network) find(addr uint32) (pair *wire.Address, second bool) {
	if of0, port, ok := wire.SplitMemberAddr(addr); ok && port < n.ports {
		return &n.staged[port], of0 == wire.RegMemberMAC
	}
	if of0, job, port, ok := wire.SplitTableAddr(addr); ok && port < n.ports && job < len(n.table)/n.ports {
		return &n.job(uint8(job))[port], of0 == wire.RegJobMAC
	}
	switch addr {
	case wire.RegSource, wire.RegSourceMAC:
		return &n.sender, addr == wire.RegSourceMAC
	case wire.RegCardAddress, wire.RegCardMAC:
		return &n.own, addr == wire.RegCardMAC
	}
	return nil, false
}

// may returns what a host may do with a register of shell udp, and whether the card has it.
func (n *network) may(addr uint32) (wire.Access, bool) {
	if n == nil {
		return 0, false
	}
	if addr == wire.RegLease {
		return wire.ReadWrite, true
	}
	pair, _ := n.find(addr)
	if of0, _, ok := wire.SplitMemberAddr(addr); ok {
		addr = of0
	}
	if of0, _, _, ok := wire.SplitTableAddr(addr); ok {
		addr = of0
	}
	return networkAccesses[addr], pair != nil
}

// read reads a register of shell udp.
func (n *network) read(addr uint32) uint64 {
	pair, second := n.find(addr)
	switch {
	case addr == wire.RegLease:
		return n.lease
	case second:
		return pair.MAC
	}
	return pair.Station
}

// write writes a register of shell udp. The bits of the card's own address that mean nothing are 0.
func (n *network) write(addr uint32, value, now uint64) wire.Code {
	pair, second := n.find(addr)
	switch {
	case addr == wire.RegLease && (value == 0 || value > wire.MaxLease):
		return wire.CodeBadDeadline
	case addr == wire.RegLease:
		n.lease, n.expires = value, now+value
	case second:
		pair.MAC = value
	default:
		pair.Station = value
	}
	if pair == &n.own {
		n.own = meaning(n.own)
	}
	return wire.CodeDone
}

// meaning returns an address without the bits that mean nothing.
func meaning(a wire.Address) wire.Address {
	return wire.Address{Station: a.Station & stationMask, MAC: a.MAC & macMask}
}

// checkMembers returns bad_member if the staged addresses of ports cannot be those of members.
func (n *network) checkMembers(ports uint64) wire.Code {
	if n == nil {
		return wire.CodeDone
	}
	for rest := ports; rest != 0; rest &= rest - 1 {
		a := meaning(n.staged[bits.TrailingZeros64(rest)])
		if !usable(a) || int(whoIs(a).ethernet) >= n.ethernet {
			return wire.CodeBadMember
		}
	}
	return wire.CodeDone
}

// usable reports whether an address has an IPv4 address and a UDP port.
func usable(a wire.Address) bool { return a.Station<<32 != 0 && a.Station<<16>>48 != 0 }

// unchanged reports whether the staged addresses of a running job's ports are those in the table.
func (n *network) unchanged(j *job) bool {
	if n == nil {
		return true
	}
	for ports := j.ports; ports != 0; ports &= ports - 1 {
		if port := bits.TrailingZeros64(ports); meaning(n.staged[port]) != n.job(j.number)[port] {
			return false
		}
	}
	return true
}

// begin makes the staged addresses those of a new job, for its ports alone.
func (n *network) begin(j *job) {
	if n == nil {
		return
	}
	for port := range n.ports {
		entry := &n.job(j.number)[port]
		if *entry = (wire.Address{}); j.ports>>port&1 != 0 {
			*entry = meaning(n.staged[port])
		}
	}
}

// member reports whether a packet of a rank may come from an address, and returns the rank's port.
func (e *engine) member(from wire.Address, number, rank uint8) (port int, ok bool) {
	if int(number) >= len(e.jobs) {
		return 0, false
	}
	port, ok = e.port(number, rank)
	if !ok {
		return 0, false
	}
	entry := e.network.job(number)[port]
	return port, usable(entry) && whoIs(entry) == whoIs(from)
}
