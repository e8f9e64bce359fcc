package plan

import "tributary/hwgen/netlist"

// coreLatency is what the core adds to the adder trees' latency.
const coreLatency = 6

// core builds agg_core.
func (p *Plan) core() *netlist.Module {
	return netlist.New("agg_core", "The aggregator between AXI4-Stream ports.")
}
