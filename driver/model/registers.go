// The card's registers (section 4 of the specification).

package model

import "tributary/driver/wire"

// staged holds the registers that JOB_COMMIT and JOB_ABORT use.
type staged struct {
	token, ports, chunk, window, deadline uint64
}

// Register performs one access on the register bus. It returns the reply's code and its value: the
// register's value after the access, or 0 with a refusal.
func (c *Card) Register(write bool, addr uint32, value uint64) (wire.Code, uint64) {
	return c.registerFrom(wire.Address{}, write, addr, value)
}

// registerFrom is Register for a host with an address, which counts with shell udp alone.
func (c *Card) registerFrom(from wire.Address, write bool, addr uint32, value uint64) (wire.Code, uint64) {
	c.Advance(1)
	c.hear(from)
	code, after := c.access(write, addr, value)
	if write {
		c.lastCode = code
	}
	return code, after
}

// replyTo returns the header of the reply to a register access.
func replyTo(access *Header, code wire.Code, value uint64) Header {
	return Header{
		Version: wire.Version,
		Kind:    wire.KindReply,
		Code:    code,
		VID:     access.VID,
		Length:  access.Length,
		Mask:    value,
	}
}

// access is registerFrom without its clock and LAST_CODE.
func (c *Card) access(write bool, addr uint32, value uint64) (wire.Code, uint64) {
	access, ok := c.accessOf(addr)
	code := wire.CodeDone
	switch {
	case !ok:
		code = wire.CodeBadAddress
	case write && access == wire.ReadOnly:
		code = wire.CodeReadOnly
	case write && c.fromStranger(addr):
		code = wire.CodeBusy
	case write:
		code = c.write(addr, value)
	}
	if code != wire.CodeDone || access == wire.WriteOnly {
		return code, 0
	}
	return code, c.read(addr)
}

// accessOf returns the allowed accesses of the register at addr, and whether the card has it.
func (c *Card) accessOf(addr uint32) (wire.Access, bool) {
	if job, rank, _, ok := wire.SplitLagAddr(addr); ok {
		return wire.ReadOnly, job < len(c.jobs) && rank < c.cfg.Ports
	}
	if access, ok := c.networkAccessOf(addr); ok {
		return access, true
	}
	if access, ok := c.connectionAccessOf(addr); ok {
		return access, true
	}
	if access, ok := c.treeAccessOf(addr); ok {
		return access, true
	}
	if i := int(addr-wire.CounterBase) / 8; addr >= wire.CounterBase && addr%8 == 0 && i < len(c.counters) {
		return wire.ReadOnly, true
	}
	addr, number := wire.SplitJobAddr(addr)
	return tableAccess(wire.Registers, addr, number < len(c.jobs))
}

// tableAccess returns the allowed accesses of a register in a table, and whether the table and the
// card have it.
func tableAccess(table []wire.Register, addr uint32, ok bool) (wire.Access, bool) {
	for i := range table {
		if table[i].Addr == addr {
			return table[i].Access, ok
		}
	}
	return 0, false
}

// read returns the value of a register that the card has and that can be read.
func (c *Card) read(addr uint32) uint64 {
	if job, rank, bucket, ok := wire.SplitLagAddr(addr); ok {
		return uint64(c.jobs[job].lags[rank][bucket])
	}
	if value, ok := c.readNetwork(addr); ok {
		return value
	}
	if value, ok := c.readConnections(addr); ok {
		return value
	}
	if value, ok := c.readTree(addr); ok {
		return value
	}
	if of0, number := wire.SplitJobAddr(addr); of0 >= wire.JobBase {
		return c.jobs[number].read(of0)
	}
	if value, ok := c.cfg.identification(addr); ok {
		return value
	}
	if value, ok := c.counters.read(addr); ok {
		return value
	}
	switch addr {
	case wire.RegMagic:
		return wire.Magic
	case wire.RegVersion:
		return wire.Version
	case wire.RegConfigHash:
		return c.cfg.Hash()
	case wire.RegOwner:
		return c.owner
	case wire.RegCycles:
		return c.cycles
	case wire.RegLastCode:
		return uint64(c.lastCode)
	case wire.RegJobToken:
		return c.staged.token
	case wire.RegJobPorts:
		return c.staged.ports
	case wire.RegJobChunk:
		return c.staged.chunk
	case wire.RegJobWindow:
		return c.staged.window
	case wire.RegJobDeadline:
		return c.staged.deadline
	}
	panic("model: a register that can be read has no value")
}

// read returns the value of a register of the job's block, given its address in job 0's block.
func (j *job) read(addr uint32) uint64 {
	switch addr {
	case wire.RegJobState:
		return j.state()
	case wire.RegJobFinished:
		return j.finished
	case wire.RegJobMembers:
		return j.setup.ports
	case wire.RegJobEvicted:
		return j.evicted
	case wire.RegJobSlots:
		return uint64(j.slots.first) | uint64(j.slots.count)<<16
	case wire.RegJobNonfiniteIn:
		return uint64(j.nonfiniteIn.count)
	case wire.RegJobNonfiniteOut:
		return uint64(j.nonfiniteOut.count)
	case wire.RegJobOverflow:
		return uint64(j.overflow.count)
	case wire.RegJobFirstIn:
		return j.nonfiniteIn.first
	case wire.RegJobFirstOut:
		return j.nonfiniteOut.first
	case wire.RegJobFirstOverflow:
		return j.overflow.first
	}
	panic("model: a job's register has no value")
}

// state returns the value of JOB_STATE.
func (j *job) state() uint64 {
	value := uint64(j.number)<<32 | uint64(j.epoch)<<16
	if j.running {
		value |= 1
	}
	if j.everSet {
		value |= 2
	}
	return value
}

// write performs a write to a writable register.
func (c *Card) write(addr uint32, value uint64) wire.Code {
	switch addr {
	case wire.RegOwner:
		c.take(value)
	case wire.RegRelease:
		return c.release(value)
	case wire.RegReset:
		return c.reset(value)
	case wire.RegJobToken:
		c.staged.token = value
	case wire.RegJobPorts:
		c.staged.ports = value
	case wire.RegJobChunk:
		c.staged.chunk = value
	case wire.RegJobWindow:
		c.staged.window = value
	case wire.RegJobDeadline:
		c.staged.deadline = value
	case wire.RegJobCommit:
		return c.commit(commandOf(value))
	case wire.RegJobAbort:
		return c.abort(commandOf(value))
	default:
		if staged := c.upwardAt(addr); staged != nil {
			*staged = value
			return wire.CodeDone
		}
		if code, ok := c.writeConnections(addr, value); ok {
			return code
		}
		return c.writeNetwork(addr, value)
	}
	return wire.CodeDone
}

// take gives the card to the host that writes a token to OWNER while that is zero.
func (c *Card) take(token uint64) {
	if c.owner != 0 || token == 0 {
		return
	}
	c.owner = token
	c.upward = upward{}
	c.stageNoConnections()
	c.beginLease()
}

// command holds the parameters of JOB_COMMIT and JOB_ABORT.
type command struct {
	first uint32
	epoch uint16
	job   uint8
}

func commandOf(value uint64) command {
	return command{first: uint32(value), epoch: uint16(value >> 32), job: uint8(value >> 48)}
}

// release releases the card.
func (c *Card) release(token uint64) wire.Code {
	switch c.owner {
	case 0:
		return wire.CodeDone
	case token:
		c.owner = 0
		c.endJobs()
		return wire.CodeDone
	}
	return wire.CodeBusy
}

// reset performs the soft reset.
func (c *Card) reset(token uint64) wire.Code {
	if c.owner != 0 && c.owner != token {
		return wire.CodeBusy
	}
	c.owner = 0
	c.staged, c.upward = staged{}, upward{}
	clear(c.counters)
	clear(c.up)
	c.clearNetwork()
	c.stageNoConnections()
	c.resetConnections()
	c.endJobs()
	return wire.CodeDone
}

// owned reports whether the staged token is the owner's.
func (c *Card) owned() bool { return c.owner != 0 && c.staged.token == c.owner }

// commit sets a job up; if it refuses, it changes nothing.
func (c *Card) commit(cmd command) wire.Code {
	wanted := setup{
		ports: c.staged.ports, chunk: c.staged.chunk, window: c.staged.window, deadline: c.staged.deadline,
		first: cmd.first, upward: c.upward.of(c.staged.ports),
	}
	j := c.numbered(cmd.job)
	age := cmd.epoch - j.epoch
	switch {
	case int(cmd.job) < len(c.jobs) && c.badConnection(cmd.job, &wanted):
		return wire.CodeBadConnection
	case !c.owned():
		return wire.CodeBusy
	case int(cmd.job) >= len(c.jobs):
		return wire.CodeBadJob
	case j.running && age == 0 && wanted == j.setup && c.membersAreThoseOf(j):
		return wire.CodeDone
	case j.running && age == 0:
		return wire.CodeEpochInUse
	case j.everSet && (age == 0 || age >= 1<<15):
		return wire.CodeStaleEpoch
	case wanted.ports == 0 || wanted.ports&^lowBits(c.cfg.Ports) != 0:
		return wire.CodeBadPorts
	case c.badMember(wanted.ports):
		return wire.CodeBadMember
	case c.badParent(j, &wanted.upward):
		return wire.CodeBadParent
	case wanted.badRanks():
		return wire.CodeBadRanks
	case wanted.partial() && wanted.upward.isNested():
		return wire.CodeBadDeadline
	case wanted.chunk == 0 || wanted.chunk%uint64(c.cfg.Lanes) != 0 || wanted.chunk > uint64(c.cfg.Chunk):
		return wire.CodeBadChunk
	case wanted.window == 0 || wanted.window&(wanted.window-1) != 0 || wanted.window > uint64(c.cfg.Window):
		return wire.CodeBadWindow
	case wanted.badDeadline():
		return wire.CodeBadDeadline
	}
	slots, ok := c.allot(j, 2*int(wanted.window))
	if !ok {
		return wire.CodeNoSlots
	}
	c.endJob(j)
	j.start(wanted, cmd.epoch, slots)
	c.bindMembers(j)
	c.bindConnections(j)
	return wire.CodeDone
}

// abort ends the job with that epoch.
func (c *Card) abort(cmd command) wire.Code {
	j := c.numbered(cmd.job)
	switch {
	case !c.owned():
		return wire.CodeBusy
	case int(cmd.job) >= len(c.jobs):
		return wire.CodeBadJob
	case !j.running:
		return wire.CodeDone
	case cmd.epoch != j.epoch:
		return wire.CodeBadEpoch
	}
	c.endJob(j)
	return wire.CodeDone
}
