package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/leaf"
	"tributary/hwgen/netlist"
	"tributary/rtl"
)

// The in-path switch links in a shell that has the nets of udpSwitch's comment, and its stores have
// room for two of the largest frames.
func TestUDPSwitchLinks(t *testing.T) {
	for ports := 2; ports <= 16; ports++ {
		for link, words := range map[int]int{8: 32768, 64: 4096, 512: 512} {
			t.Run(fmt.Sprint(ports, "_", link), func(t *testing.T) {
				p := &Plan{}
				p.Ethernet, p.Link, p.Clock = ports, link, 125
				m := netlist.New("agg_top", "A shell around the switch alone.")
				m.Input("clk", 1)
				m.Input("rst", 1)
				m.Input("eth_rx_tvalid", ports)
				m.Input("eth_rx_tdata", ports*link)
				m.Input("eth_rx_tkeep", ports*link/8)
				m.Input("eth_rx_tlast", ports)
				m.Input("verdict_valid", ports)
				m.Input("verdict_kind", 3*ports)
				m.Input("verdict_reason", 4*ports)
				m.Input("eth_tx_tready", ports)
				p.udpSwitch(m)
				m.Assign("pass_tready", "eth_tx_tready")
				require.NoError(t, netlist.Link([]*netlist.Module{m}, nil, leaf.NewLibrary(rtl.Files, "")))
				assert.Equal(t, words, p.Memories[0].Words)
				assert.GreaterOrEqual(t, words*link/8, 2*9018)
			})
		}
	}
}

// A period of the table is 300 s of the card's clock. A card without a board has no slower one.
func TestUDPSwitchKnowsTheClock(t *testing.T) {
	for mhz, khz := range map[int]string{125: "125000", 0: "400000"} {
		p := &Plan{}
		p.Ethernet, p.Link, p.Clock = 2, 64, mhz
		m := netlist.New("agg_top", "")
		p.udpSwitch(m)
		params := map[string]string{}
		for _, param := range m.Instances()[0].Params {
			params[param.Name] = param.Expr
		}
		assert.Equal(t, khz, params["CLOCK_KHZ"])
	}
}
