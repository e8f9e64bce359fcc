package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
	"tributary/hwgen/leaf"
	"tributary/hwgen/netlist"
	"tributary/rtl"
)

// Each level takes a cycle and widens the sum by one bit, so no bit is lost. The clamp
// takes one more cycle; its input is as wide as the last level's sum.
func TestIntLane(t *testing.T) {
	row, ok := wire.Int32.Info()
	require.True(t, ok)
	for workers := 1; workers <= 64; workers++ {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			p := &Plan{Format: Format{row}, Result: Format{row}}
			p.Lanes, p.Workers = 1, workers
			p.size()
			lane := intLane(p)
			m := lane.Modules[0]
			linkLane(t, lane)
			levels, span := 0, 1
			for span < workers {
				levels, span = levels+1, 2*span
			}
			assert.Equal(t, levels+1, lane.Latency)
			clamp := last(m)
			require.Equal(t, "agg_int_clamp", clamp.Module)
			assert.Equal(t, "IN", clamp.Params[0].Name)
			assert.Equal(t, fmt.Sprint(32+levels), clamp.Params[0].Expr)
		})
	}
}

// linkLane links the modules of a lane, and fails if they have mistakes.
func linkLane(t *testing.T, lane Lane) {
	t.Helper()
	require.NoError(t, netlist.Link(lane.Modules, nil, leaf.NewLibrary(rtl.Files, "")))
}

// last returns the last instance of a module.
func last(m *netlist.Module) *netlist.Instance {
	for i := len(m.Items) - 1; i >= 0; i-- {
		if inst, ok := m.Items[i].(*netlist.Instance); ok {
			return inst
		}
	}
	return nil
}
