package plan

import (
	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// stream is the byte-stream link that all workers of a host share.
var stream = Shell{
	Name:    "stream",
	Code:    wire.ShellStream,
	Doc:     "One full-duplex byte stream for all workers of a host, framed and with CRCs.",
	Link:    true,
	modules: streamModules,
}

func streamModules(p *Plan) []*netlist.Module {
	return []*netlist.Module{netlist.New("agg_top", "The card on a byte stream.")}
}
