package cpu

import (
	"math/bits"

	"tributary/driver/wire"
)

// This file has the registers of trees of cards, and what JOB_COMMIT checks there (driver/wire/TREES.md,
// section 3).

// uplink is what a card with an up port has besides. The engine of another card has none, and its
// methods then do nothing.
type uplink struct {
	staged   upward
	counters [upRefused + 1]uint32 // of wire.UpCounters
	sending  turns
}

// The counters of wire.UpCounters, in their order.
const (
	upSent = iota
	upRepeats
	upTaken
	upDropped
	upRefused
)

// newUplink returns a card's uplink after its hard reset; nil if it has no up port.
func newUplink(cfg Config) *uplink {
	if !cfg.Parent {
		return nil
	}
	return &uplink{}
}

// upward is what a job is committed with for a tree of cards, as in the registers.
type upward struct {
	parent  uint64                // JOB_PARENT
	repeat  uint64                // JOB_REPEAT, in clock cycles
	tree    uint64                // TREE_RANKS
	address wire.Address          // PARENT_ADDRESS and PARENT_MAC
	ranks   [wire.MaxPorts]uint64 // MEMBER_RANKS, by port
}

func (u *upward) isTree() bool { return u.parent&wire.ParentTree != 0 }

// rank returns the card's rank at its parent.
func (u *upward) rank() uint8 { return uint8(u.parent >> wire.ParentRankShift) }

// port returns the upward UDP port.
func (u *upward) port() uint16 { return uint16(u.parent >> wire.ParentPortShift) }

// all returns the global ranks of all members.
func (u *upward) all() (ranks uint64) {
	for _, of := range u.ranks {
		ranks |= of
	}
	return ranks
}

// clear clears what is staged.
func (l *uplink) clear() {
	if l != nil {
		l.staged = upward{}
	}
}

// reset is what RESET does here.
func (l *uplink) reset() {
	l.clear()
	if l != nil {
		clear(l.counters[:])
	}
}

// wanted returns what is staged for a job's ports: nothing of other ports, and of the address what has a
// meaning.
func (l *uplink) wanted(ports uint64) (u upward) {
	if l == nil {
		return u
	}
	u = l.staged
	u.address = meaning(u.address)
	for port := range u.ranks {
		if ports>>port&1 == 0 {
			u.ranks[port] = 0
		}
	}
	return u
}

// checkTree checks what a job has of a tree of cards.
func (e *engine) checkTree(j *job, s *setup, u *upward) wire.Code {
	if e.uplink == nil {
		return wire.CodeDone
	}
	if code := e.checkParent(j, u); code != wire.CodeDone {
		return code
	}
	return s.checkRanks(u)
}

// checkParent returns bad_parent if the parent cannot be that of job j.
func (e *engine) checkParent(j *job, u *upward) wire.Code {
	known := uint64(wire.ParentTree | wire.ParentRankBits<<wire.ParentRankShift)
	if e.network != nil {
		known |= wire.ParentPortBits << wire.ParentPortShift
	}
	bad := u.parent&^known != 0
	if u.isTree() {
		bad = bad || u.repeat == 0 || u.repeat > wire.MaxRepeat || e.network != nil && !e.reaches(j, u)
	}
	if bad {
		return wire.CodeBadParent
	}
	return wire.CodeDone
}

// reaches reports whether the packets of job j can go to the parent, and its packets to the job.
func (e *engine) reaches(j *job, u *upward) bool {
	n := e.network
	other := e.jobUnder(u.port())
	return usable(u.address) && u.address.Station != n.own.Station && int(whoIs(u.address).ethernet) < n.ethernet &&
		u.port() != 0 && u.port() != uint16(n.own.Station>>32) && (other == nil || other == j)
}

// jobUnder returns the running tree job with an upward UDP port, or nil.
func (e *engine) jobUnder(port uint16) *job {
	for i := range e.jobs {
		if j := &e.jobs[i]; j.running && j.isTree() && j.branch.port() == port {
			return j
		}
	}
	return nil
}

// checkRanks returns bad_ranks if the global ranks of the members contradict one another, or those of
// the tree; and bad_deadline if partial sums are requested of a job of several levels.
func (s *setup) checkRanks(u *upward) wire.Code {
	var all uint64
	unnamed, overlap, several := 0, false, u.isTree()
	for ports := s.ports; ports != 0; ports &= ports - 1 {
		of := u.ranks[bits.TrailingZeros64(ports)]
		if of == 0 {
			unnamed++
		}
		overlap = overlap || all&of != 0
		several = several || bits.OnesCount64(of) > 1
		all |= of
	}
	switch {
	case overlap || unnamed > 0 && (all != 0 || u.isTree()) || u.isTree() && all&^u.tree != 0:
		return wire.CodeBadRanks
	case s.partial() && several:
		return wire.CodeBadDeadline
	}
	return wire.CodeDone
}

// treeAccesses is what a host may do with a register of trees, by its address for port 0 and job 0.
var treeAccesses = func() map[uint32]wire.Access {
	m := map[uint32]wire.Access{}
	for _, r := range wire.TreeRegisters {
		m[r.Addr] = r.Access
	}
	return m
}()

// treeAccess returns what a host may do with a register of trees of cards, and whether the card has it.
func (e *engine) treeAccess(addr uint32) (wire.Access, bool) {
	if e.uplink == nil {
		return 0, false
	}
	if job, port, ok := wire.SplitJobRanksAddr(addr); ok {
		return wire.ReadOnly, job < e.cfg.Jobs && port < e.cfg.Ports
	}
	if port, ok := wire.SplitRanksAddr(addr); ok {
		return wire.ReadWrite, port < e.cfg.Ports
	}
	if _, ok := upCounter(addr); ok {
		return wire.ReadOnly, true
	}
	of0, job := wire.SplitJobAddr(addr)
	may, ok := treeAccesses[of0]
	return may, ok && job < e.cfg.Jobs && (e.network != nil || of0 != wire.RegParentAddress && of0 != wire.RegParentMAC)
}

// upCounter returns the index in wire.UpCounters of the counter at an address.
func upCounter(addr uint32) (index int, ok bool) {
	return int(addr-wire.UpCounterBase) / 8, addr >= wire.UpCounterBase && addr < wire.UpCounterAddr(len(wire.UpCounters)) && addr%8 == 0
}

// stagedAt returns the staged register at an address of the card; nil if it is another register.
func (l *uplink) stagedAt(addr uint32) *uint64 {
	if l == nil {
		return nil
	}
	if port, ok := wire.SplitRanksAddr(addr); ok {
		return &l.staged.ranks[port]
	}
	switch addr {
	case wire.RegJobParent:
		return &l.staged.parent
	case wire.RegJobRepeat:
		return &l.staged.repeat
	case wire.RegTreeRanks:
		return &l.staged.tree
	case wire.RegParentAddress:
		return &l.staged.address.Station
	case wire.RegParentMAC:
		return &l.staged.address.MAC
	}
	return nil
}

// readTree reads a register of trees of cards that the card has.
func (e *engine) readTree(addr uint32) uint64 {
	if staged := e.uplink.stagedAt(addr); staged != nil {
		return *staged
	}
	if index, ok := upCounter(addr); ok {
		return uint64(e.uplink.counters[index])
	}
	if job, port, ok := wire.SplitJobRanksAddr(addr); ok {
		return e.jobs[job].branch.ranks[port]
	}
	of0, job := wire.SplitJobAddr(addr)
	b := &e.jobs[job].branch
	switch of0 {
	case wire.RegJobUp:
		return b.parent
	case wire.RegJobTree:
		return b.tree
	}
	return b.refusal // JOB_UP_REFUSAL
}
