package plan

import (
	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// none is the bare core: an AXI4-Stream port a worker, and a register port.
var none = Shell{
	Name:    "none",
	Code:    wire.ShellNone,
	Doc:     "AXI4-Stream ports, one in and one out a worker, and a register port.",
	modules: noneModules,
}

func noneModules(p *Plan) []*netlist.Module {
	return []*netlist.Module{netlist.New("agg_top", "The card with bare ports.")}
}
