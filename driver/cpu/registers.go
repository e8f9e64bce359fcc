package cpu

import "tributary/driver/wire"

// accesses is what a host may do with a register, by its address in job 0's block.
var accesses = func() map[uint32]wire.Access {
	m := map[uint32]wire.Access{}
	for _, r := range wire.Registers {
		m[r.Addr] = r.Access
	}
	return m
}()

// register performs one access, which takes a cycle. It returns the reply's code and value.
func (e *engine) register(write bool, addr uint32, value uint64) (wire.Code, uint64) {
	return e.registerFrom(wire.Address{}, write, addr, value)
}

// registerFrom is register for a host with an address, which a card on a network looks at.
func (e *engine) registerFrom(from wire.Address, write bool, addr uint32, value uint64) (wire.Code, uint64) {
	e.advance(1)
	e.network.access(from, e.now)
	code, after := e.perform(write, addr, value)
	if write {
		e.lastCode = code
	}
	return code, after
}

// perform is register without its cycle and LAST_CODE.
func (e *engine) perform(write bool, addr uint32, value uint64) (wire.Code, uint64) {
	may, ok := e.access(addr)
	switch {
	case !ok:
		return wire.CodeBadAddress, 0
	case write && may == wire.ReadOnly:
		return wire.CodeReadOnly, 0
	case write && !e.network.allows(addr, e.owner):
		return wire.CodeBusy, 0
	case write:
		if code := e.write(addr, value); code != wire.CodeDone {
			return code, 0
		}
	}
	if may == wire.WriteOnly {
		return wire.CodeDone, 0
	}
	return wire.CodeDone, e.read(addr)
}

// access returns what a host may do with a register, and whether the card has it.
func (e *engine) access(addr uint32) (wire.Access, bool) {
	if job, rank, _, ok := wire.SplitLagAddr(addr); ok {
		return wire.ReadOnly, job < e.cfg.Jobs && rank < e.cfg.Ports
	}
	if may, ok := e.network.may(addr); ok {
		return may, true
	}
	if may, ok := e.treeAccess(addr); ok {
		return may, true
	}
	if addr >= wire.CounterBase && addr < wire.CounterAddr(len(e.counters)) {
		return wire.ReadOnly, addr%8 == 0
	}
	addr, job := wire.SplitJobAddr(addr)
	may, ok := accesses[addr]
	return may, ok && job < e.cfg.Jobs
}

// write writes a register that may be written.
func (e *engine) write(addr uint32, value uint64) wire.Code {
	switch addr {
	case wire.RegOwner:
		if e.owner == 0 && value != 0 {
			e.owner = value
			e.uplink.clear()
			if e.network != nil {
				e.token, e.staged = 0, setup{}
				e.network.owned(e.now)
			}
		}
	case wire.RegRelease:
		return e.release(value)
	case wire.RegReset:
		return e.reset(value)
	case wire.RegJobToken:
		e.token = value
	case wire.RegJobPorts:
		e.staged.ports = value
	case wire.RegJobChunk:
		e.staged.chunk = value
	case wire.RegJobWindow:
		e.staged.window = value
	case wire.RegJobDeadline:
		e.staged.deadline = value
	case wire.RegJobCommit:
		return e.commit(value)
	case wire.RegJobAbort:
		return e.abort(value)
	default:
		if staged := e.uplink.stagedAt(addr); staged != nil {
			*staged = value
			return wire.CodeDone
		}
		return e.network.write(addr, value, e.now)
	}
	return wire.CodeDone
}

// release performs RELEASE.
func (e *engine) release(token uint64) wire.Code {
	switch e.owner {
	case 0:
		return wire.CodeDone
	case token:
		e.owner = 0
		e.endAll()
		return wire.CodeDone
	}
	return wire.CodeBusy
}

// reset performs RESET.
func (e *engine) reset(token uint64) wire.Code {
	if e.owner != 0 && e.owner != token {
		return wire.CodeBusy
	}
	e.endAll()
	clear(e.counters)
	e.owner, e.token, e.staged = 0, 0, setup{}
	e.network.reset()
	e.uplink.reset()
	return wire.CodeDone
}

// read reads a register that the card has and that may be read.
func (e *engine) read(addr uint32) uint64 {
	if job, rank, bucket, ok := wire.SplitLagAddr(addr); ok {
		return uint64(e.jobs[job].lags[rank][bucket])
	}
	if _, ok := e.network.may(addr); ok {
		return e.network.read(addr)
	}
	if _, ok := e.treeAccess(addr); ok {
		return e.readTree(addr)
	}
	if addr >= wire.JobBase {
		of0, job := wire.SplitJobAddr(addr)
		return e.jobs[job].read(of0)
	}
	if addr >= wire.CounterBase {
		return uint64(e.counters[(addr-wire.CounterBase)/8])
	}
	switch addr {
	case wire.RegMagic:
		return wire.Magic
	case wire.RegVersion:
		return wire.Version
	case wire.RegConfigHash:
		return e.cfg.Hash()
	case wire.RegOwner:
		return e.owner
	case wire.RegCycles:
		return e.now
	case wire.RegLastCode:
		return uint64(e.lastCode)
	case wire.RegJobToken:
		return e.token
	case wire.RegJobPorts:
		return e.staged.ports
	case wire.RegJobChunk:
		return e.staged.chunk
	case wire.RegJobWindow:
		return e.staged.window
	case wire.RegJobDeadline:
		return e.staged.deadline
	}
	return e.cfg.ident(addr)
}

// read reads a register of the job's block, by its address in job 0's.
func (j *job) read(of0 uint32) uint64 {
	switch of0 {
	case wire.RegJobState:
		return oneAt(0, j.running) | oneAt(1, j.known) | uint64(j.epoch)<<16 | uint64(j.number)<<32
	case wire.RegJobFinished:
		return j.finished
	case wire.RegJobMembers:
		return j.ports
	case wire.RegJobSlots:
		if len(j.slots) == 0 {
			return 0
		}
		return uint64(j.slots[0].number) | uint64(len(j.slots))<<16
	case wire.RegJobNonfiniteIn:
		return j.in.count
	case wire.RegJobNonfiniteOut:
		return j.out.count
	case wire.RegJobOverflow:
		return j.overflow.count
	case wire.RegJobFirstIn:
		return j.in.first
	case wire.RegJobFirstOut:
		return j.out.first
	case wire.RegJobFirstOverflow:
		return j.overflow.first
	}
	return j.evicted // JOB_EVICTED
}

// oneAt returns 1 in a bit if it is set, otherwise 0.
func oneAt(bit int, set bool) uint64 {
	if set {
		return 1 << bit
	}
	return 0
}
