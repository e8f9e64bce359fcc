package cells

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

var some = Table{
	Schema: Schema,
	Rows: []Row{
		{Name: "node fp32", Node: "fp32", Cells: Cells{COMB: 400, FF: 300}, MHz: 210, Latency: 14, Part: "a part"},
		{Name: "node int32", Node: "int32", Cells: Cells{COMB: 32, FF: 32}, MHz: 300},
		{Name: "a", Of: &Lane{Sum: "fused", Format: "fp32", Result: "fp32", Workers: 8}, Cells: Cells{COMB: 1800}},
		{Name: "b", Of: &Lane{Sum: "tree", Format: "int32", Result: "int32", Workers: 8}, Cells: Cells{COMB: 230}},
	},
}

func TestRecordedLane(t *testing.T) {
	r, ok := some.find(Lane{Sum: "fused", Format: "fp32", Result: "fp32", Workers: 8})
	require.True(t, ok)
	require.Equal(t, some.Rows[2], r)
}

// TestIntegerLanesAreOne: the circuit does not depend on the sum.
func TestIntegerLanesAreOne(t *testing.T) {
	for _, sum := range []string{"tree", "fused", "exact"} {
		r, ok := some.find(Lane{Sum: sum, Format: "int32", Result: "int32", Workers: 8, DSP: true})
		require.True(t, ok)
		require.Equal(t, 230, r.COMB)
	}
}

// TestLaneOfNodes: a lane's Basis names its nodes.
func TestLaneOfNodes(t *testing.T) {
	r, ok := some.find(Lane{Sum: "tree", Format: "bf16", Result: "fp32", Workers: 5})
	require.True(t, ok)
	require.Equal(t, Cells{COMB: 1600, FF: 1200}, r.Cells)
	require.InDelta(t, 210, r.MHz, 0)
	require.Equal(t, "4 x the recorded node; what joins them is not counted", r.Basis)
	require.Zero(t, r.Latency, "the card knows it better")
}

func TestUnknownLane(t *testing.T) {
	for _, l := range []Lane{
		{Sum: "fused", Format: "fp32", Result: "fp32", Workers: 7},
		{Sum: "fused", Format: "fp32", Result: "fp32", Workers: 8, DSP: true},
		{Sum: "tree", Format: "fp16", Result: "fp16", Workers: 8},
		{Sum: "tree", Format: "fp32", Result: "fp32", Workers: 1}, // no node
	} {
		_, ok := some.find(l)
		require.False(t, ok, l.String())
	}
}

func TestNames(t *testing.T) {
	for want, l := range map[string]Lane{
		"tree fp32, 8 inputs":               {Sum: "tree", Format: "fp32", Result: "fp32", Workers: 8},
		"fused bf16 to fp32 -dsp, 4 inputs": {Sum: "fused", Format: "bf16", Result: "fp32", Workers: 4, DSP: true},
		"int32 saturating, 8 inputs":        {Sum: "exact", Format: "int32", Result: "int32", Workers: 8, Saturate: true},
	} {
		require.Equal(t, want, l.String())
	}
}

func TestParse(t *testing.T) {
	text, err := json.Marshal(some)
	require.NoError(t, err)
	read, err := Parse(text)
	require.NoError(t, err)
	require.Equal(t, some, read)
	_, err = Parse([]byte(`{"schema": 2}`))
	require.ErrorContains(t, err, "schema 2")
	_, err = Parse([]byte(`[`))
	require.Error(t, err)
}

// TestRecordedTable: names in the embedded table are unique.
func TestRecordedTable(t *testing.T) {
	names := map[string]bool{}
	lanes := map[Lane]bool{}
	for _, r := range Recorded().Rows {
		require.False(t, names[r.Name], r.Name)
		names[r.Name] = true
		if r.Of != nil {
			require.Equal(t, r.Of.circuit(), *r.Of, "recorded under a name that is never looked for")
			require.False(t, lanes[*r.Of], r.Name)
			lanes[*r.Of] = true
		}
	}
}
