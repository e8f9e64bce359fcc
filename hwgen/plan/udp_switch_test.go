package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"tributary/hwgen/netlist"
)

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
