// The card's registers (section 4 of the specification).

package model

import "tributary/driver/wire"

// staged holds the registers that JOB_COMMIT and JOB_ABORT take.
type staged struct {
	token, ports, chunk, window uint64
}

// Register carries out one access on the register bus: it returns the reply's
// code and its value, which is what the register holds after the access, or 0
// with a refusal.
func (c *Card) Register(write bool, addr uint32, value uint64) (wire.Code, uint64) {
	c.cycles++
	access, ok := accessOf(addr)
	if !ok {
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
	return code, c.read(addr)
}

// accessOf returns what may be done with the register at addr, and whether
// there is one.
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

// read returns what a register that can be read holds.
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
	case wire.RegJobToken:
		return c.staged.token
	case wire.RegJobPorts:
		return c.staged.ports
	case wire.RegJobChunk:
		return c.staged.chunk
	case wire.RegJobWindow:
		return c.staged.window
	case wire.RegJobState:
		return c.job.state()
	case wire.RegJobFinished:
		return c.job.finished
	case wire.RegJobNonfiniteIn:
		return uint64(c.job.nonfiniteIn.count)
	case wire.RegJobNonfiniteOut:
		return uint64(c.job.nonfiniteOut.count)
	case wire.RegJobOverflow:
		return uint64(c.job.overflow.count)
	case wire.RegJobFirstIn:
		return c.job.nonfiniteIn.first
	case wire.RegJobFirstOut:
		return c.job.nonfiniteOut.first
	case wire.RegJobFirstOverflow:
		return c.job.overflow.first
	}
	panic("model: a register that can be read has no value")
}

// state returns what JOB_STATE holds.
func (j *job) state() uint64 {
	value := uint64(j.epoch) << 16
	if j.running {
		value |= 1
	}
	if j.everSet {
		value |= 2
	}
	return value
}

// write carries out a write to a register that can be written.
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
	case wire.RegJobCommit:
		return c.commit(commandOf(value))
	case wire.RegJobAbort:
		return c.abort(commandOf(value))
	default:
		panic("model: a register that can be written does nothing")
	}
	return wire.CodeDone
}

// command is what JOB_COMMIT and JOB_ABORT are given.
type command struct {
	first uint32
	epoch uint16
	job   uint8
}

func commandOf(value uint64) command {
	return command{first: uint32(value), epoch: uint16(value >> 32), job: uint8(value >> 48)}
}

// release gives the card back.
func (c *Card) release(token uint64) wire.Code {
	switch c.owner {
	case 0:
		return wire.CodeDone
	case token:
		c.owner = 0
		c.endJob()
		return wire.CodeDone
	}
	return wire.CodeBusy
}

// reset is the soft reset.
func (c *Card) reset(token uint64) wire.Code {
	if c.owner != 0 && c.owner != token {
		return wire.CodeBusy
	}
	c.owner = 0
	c.staged = staged{}
	clear(c.counters)
	c.endJob()
	return wire.CodeDone
}

// owned reports whether the staged token is the owner's.
func (c *Card) owned() bool { return c.owner != 0 && c.staged.token == c.owner }

// commit sets a job up, or refuses to and changes nothing.
func (c *Card) commit(cmd command) wire.Code {
	wanted := setup{ports: c.staged.ports, chunk: c.staged.chunk, window: c.staged.window, first: cmd.first}
	age := cmd.epoch - c.job.epoch
	switch {
	case !c.owned():
		return wire.CodeBusy
	case cmd.job >= jobs:
		return wire.CodeBadJob
	case c.job.running && age == 0 && wanted == c.job.setup:
		return wire.CodeDone
	case c.job.running && age == 0:
		return wire.CodeEpochInUse
	case c.job.everSet && (age == 0 || age >= 1<<15):
		return wire.CodeStaleEpoch
	case wanted.ports == 0 || wanted.ports&^lowBits(c.cfg.Ports) != 0:
		return wire.CodeBadPorts
	case wanted.chunk == 0 || wanted.chunk%uint64(c.cfg.Lanes) != 0 || wanted.chunk > uint64(c.cfg.Chunk):
		return wire.CodeBadChunk
	case wanted.window == 0 || wanted.window&(wanted.window-1) != 0 || wanted.window > uint64(c.cfg.Window):
		return wire.CodeBadWindow
	}
	c.endJob()
	c.job.start(wanted, cmd.epoch)
	c.table.setUp(uint32(wanted.window), cmd.first, c.job.all)
	return wire.CodeDone
}

// abort ends the job of an epoch.
func (c *Card) abort(cmd command) wire.Code {
	switch {
	case !c.owned():
		return wire.CodeBusy
	case cmd.job >= jobs:
		return wire.CodeBadJob
	case !c.job.running:
		return wire.CodeDone
	case cmd.epoch != c.job.epoch:
		return wire.CodeBadEpoch
	}
	c.endJob()
	return wire.CodeDone
}
