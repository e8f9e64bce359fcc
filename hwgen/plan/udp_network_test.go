package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"tributary/hwgen/config"
	"tributary/hwgen/leaf"
	"tributary/hwgen/netlist"
	"tributary/rtl"
)

// The leaves of registers and addresses link for every number of ports, jobs and Ethernet ports: every
// wire that udpNetwork names is in its table, with the width of the port there.
func TestUDPNetworkLinks(t *testing.T) {
	for _, shape := range []struct{ workers, jobs, ethernet int }{{1, 1, 1}, {4, 2, 1}, {5, 16, 4}, {64, 4, 2}} {
		p := &Plan{Config: config.Config{
			Workers: shape.workers, Jobs: shape.jobs, Ethernet: shape.ethernet,
			MAC: 0x0254_5242_0001, IP: 0x0a00_0001, UDPPort: 0x5442,
		}}
		m := netlist.New("agg_network", "")
		m.Input("clk", 1)
		m.Input("rst", 1)
		driven := map[string]bool{}
		for _, name := range drivenByNetwork {
			driven[name] = true
		}
		for _, w := range p.networkWires() {
			if driven[w.name] {
				m.Output(w.name, w.width)
			} else {
				m.Input(w.name, w.width)
			}
		}
		p.udpNetwork(m)
		assert.NoError(t, netlist.Link([]*netlist.Module{m}, nil, leaf.NewLibrary(rtl.Files, "")), fmt.Sprint(shape))
	}
}

// drivenByNetwork are the wires of networkWires that udpNetwork drives.
var drivenByNetwork = []string{
	"access_ready", "reg_valid", "reg_write", "reg_addr", "reg_wdata", "answer_ready",
	"reply_valid", "reply_header", "reply_mac", "reply_ip", "reply_port", "reply_ethernet",
	"own_mac", "own_ip", "own_port", "lease_over", "hold_packets",
	"from_valid", "from_ip", "from_port", "from_ethernet", "from_dest",
	"to_mac", "to_ip", "to_udp_port", "to_ethernet", "to_same",
	"s_reg_stranger", "s_code_valid", "s_code", "clear_staged", "members_whole", "members_same",
}
