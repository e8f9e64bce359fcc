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
	c.Advance(1)
	code, after := c.access(write, addr, value)
	if write {
		c.lastCode = code
	}
	return code, after
}

// access is Register without its clock and LAST_CODE.
func (c *Card) access(write bool, addr uint32, value uint64) (wire.Code, uint64) {
	if job, rank, bucket, ok := wire.SplitLagAddr(addr); ok {
		return c.lagRegister(write, job, rank, bucket)
	}
	addr, number := wire.SplitJobAddr(addr)
	access, ok := accessOf(addr)
	if !ok || number >= len(c.jobs) {
		return wire.CodeBadAddress, 0
	}
	code := wire.CodeDone
	switch {
	case write && access == wire.ReadOnly:
		code = wire.CodeReadOnly
	case write:
		code = c.write(addr, value)
	}
	if code != wire.CodeDone || access == wire.WriteOnly {
		return code, 0
	}
	if addr >= wire.JobBase {
		return code, c.jobs[number].read(addr)
	}
	return code, c.read(addr)
}

// lagRegister performs an access to a count of JOB_LAG.
func (c *Card) lagRegister(write bool, job, rank, bucket int) (wire.Code, uint64) {
	switch {
	case job >= len(c.jobs) || rank >= c.cfg.Ports:
		return wire.CodeBadAddress, 0
	case write:
		return wire.CodeReadOnly, 0
	}
	return wire.CodeDone, uint64(c.jobs[job].lags[rank][bucket])
}

// accessOf returns the allowed accesses of the register at addr, and whether there is one. A
// register that each job has is found by job 0's address.
func accessOf(addr uint32) (wire.Access, bool) {
	for i := range wire.Registers {
		if wire.Registers[i].Addr == addr {
			return wire.Registers[i].Access, true
		}
	}
	for i := range wire.Counters {
		if wire.CounterAddr(i) == addr {
			return wire.ReadOnly, true
		}
	}
	return 0, false
}

// read returns the value of a readable register of the card, not of a job.
func (c *Card) read(addr uint32) uint64 {
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
		if c.owner == 0 {
			c.owner = value
		}
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
		panic("model: a register that can be written does nothing")
	}
	return wire.CodeDone
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
	c.staged = staged{}
	clear(c.counters)
	c.endJobs()
	return wire.CodeDone
}

// owned reports whether the staged token is the owner's.
func (c *Card) owned() bool { return c.owner != 0 && c.staged.token == c.owner }

// commit sets a job up; if it refuses, it changes nothing.
func (c *Card) commit(cmd command) wire.Code {
	wanted := setup{
		ports: c.staged.ports, chunk: c.staged.chunk, window: c.staged.window, deadline: c.staged.deadline,
		first: cmd.first,
	}
	j := c.numbered(cmd.job)
	age := cmd.epoch - j.epoch
	switch {
	case !c.owned():
		return wire.CodeBusy
	case int(cmd.job) >= len(c.jobs):
		return wire.CodeBadJob
	case j.running && age == 0 && wanted == j.setup:
		return wire.CodeDone
	case j.running && age == 0:
		return wire.CodeEpochInUse
	case j.everSet && (age == 0 || age >= 1<<15):
		return wire.CodeStaleEpoch
	case wanted.ports == 0 || wanted.ports&^lowBits(c.cfg.Ports) != 0:
		return wire.CodeBadPorts
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
