package driver

import (
	"time"

	"tributary/driver/daemon/protocol"
)

// Parameters returns the parameters that all members of a job share, as a daemon and its clients
// send them. It has every field.
func (cfg JobConfig) Parameters() *protocol.Parameters {
	p := &protocol.Parameters{
		Workers: new(uint32(cfg.Workers)), Chunk: new(uint32(cfg.Chunk)), Window: new(uint32(cfg.Window)),
		FirstVid: &cfg.FirstVID, DeadlineNs: new(uint64(cfg.Deadline)), DeadlineCycles: &cfg.DeadlineCycles,
		Partial: &cfg.Partial, CarryOnNs: new(uint64(cfg.CarryOn)),
	}
	for _, port := range cfg.Ports {
		p.Ports = append(p.Ports, uint32(port))
	}
	return p
}

// expectation returns the parameters that are not 0, for a member that does not know all.
func (cfg JobConfig) expectation() *protocol.Parameters {
	p := cfg.Parameters()
	for _, field := range []**uint32{&p.Workers, &p.Chunk, &p.Window, &p.FirstVid, &p.DeadlineCycles} {
		if **field == 0 {
			*field = nil
		}
	}
	for _, field := range []**uint64{&p.DeadlineNs, &p.CarryOnNs} {
		if **field == 0 {
			*field = nil
		}
	}
	if !cfg.Partial {
		p.Partial = nil
	}
	return p
}

// ConfigOf is the inverse of Parameters.
func ConfigOf(p *protocol.Parameters) JobConfig {
	cfg := JobConfig{
		Workers: int(p.GetWorkers()), Chunk: int(p.GetChunk()), Window: int(p.GetWindow()), FirstVID: p.GetFirstVid(),
		Deadline: time.Duration(p.GetDeadlineNs()), DeadlineCycles: p.GetDeadlineCycles(), Partial: p.GetPartial(),
		CarryOn: time.Duration(p.GetCarryOnNs()),
	}
	for _, port := range p.GetPorts() {
		cfg.Ports = append(cfg.Ports, int(port))
	}
	return cfg
}
