package inart

import (
	"context"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner/network"
	"tributary/driver/planner/topology"
)

// TestReroute: alone, the way by A is fastest to both servers, 10 Gb/s. Together they get 10. When T's tree
// goes by B, whose links have 8, half of the model each gives 16.
func TestReroute(t *testing.T) {
	topo, err := topology.Parse("x", []byte(`{"nodes": [{"id": "A"}, {"id": "B"}, {"id": "S", "kind": "server"}, {"id": "T", "kind": "server"}, {"id": "W", "kind": "worker"}],
"links": [{"source": "W", "target": "A", "capacity": 10}, {"source": "A", "target": "S", "capacity": 10}, {"source": "A", "target": "T", "capacity": 10},
{"source": "W", "target": "B", "capacity": 8}, {"source": "B", "target": "T", "capacity": 8}]}`), topology.Defaults{Summing: -1})
	require.NoError(t, err)
	n, err := network.New(topo)
	require.NoError(t, err)
	shares := []*big.Rat{big.NewRat(1, 2), big.NewRat(1, 2)}
	trees, rate, err := Reroute(t.Context(), n, n.Servers, shares, 1)
	require.NoError(t, err)
	assert.Equal(t, "16", rate.RatString())
	r := &rerouter{net: n, trees: trees, shares: shares}
	assert.Equal(t, "16", r.rate().RatString())

	// Beside T's tree at a total of 16, S's share of 8 has room once on A's links, and not on B's.
	l := r.limits(0, 16)
	assert.Equal(t, int64(1), l.Arcs[n.Out[4][0]])
	assert.Equal(t, int64(0), l.Arcs[n.Out[4][1]])
	assert.Equal(t, int64(0), l.Nodes[0], "A only forwards")
	assert.Equal(t, int64(1), r.limits(0, 20).Arcs[n.Out[4][0]], "a link that is exactly full")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = Reroute(ctx, n, n.Servers, shares, 1)
	assert.ErrorIs(t, err, context.Canceled)
}
