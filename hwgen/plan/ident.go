package plan

import "tributary/driver/wire"

// identify computes the card's constant registers.
func (p *Plan) identify() {
	sum := uint64(p.Sum.Code)
	if p.Saturate {
		sum |= 1 << 8
	}
	shell := uint64(p.Shell.Code)
	if p.Parent {
		shell |= wire.ShellParentFlag
	}
	p.values = map[uint32]uint64{
		wire.RegMagic:   wire.Magic,
		wire.RegVersion: wire.Version,
		wire.RegLanes:   uint64(p.Lanes),
		wire.RegPorts:   uint64(p.Workers),
		wire.RegFormat:  uint64(p.Format.Format) | uint64(p.Result.Format)<<8,
		wire.RegSum:     sum,
		wire.RegShell:   shell,
		wire.RegChunk:   uint64(p.Chunk),
		wire.RegWindow:  uint64(p.Window),
		wire.RegJobs:    uint64(p.Jobs),
		wire.RegLink:    uint64(p.Link),
		wire.RegLatency: uint64(p.Latency),
	}
	p.values[wire.RegConfigHash] = wire.ConfigHash(func(addr uint32) uint64 { return p.values[addr] })
}

// Constant returns the value of the constant register at addr, or false if the register
// is not constant.
func (p *Plan) Constant(addr uint32) (uint64, bool) {
	v, ok := p.values[addr]
	return v, ok
}

// ConfigHash returns the value of the register CONFIG_HASH.
func (p *Plan) ConfigHash() uint64 { return p.values[wire.RegConfigHash] }
