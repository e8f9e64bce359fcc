package planner

import (
	"math/big"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner/topology"
)

// TestRealTopologies plans for all networks of SNDlib and of the Topology Zoo, as the Python package
// topohub has them. A third of their nodes can sum, and 24 workers and a server are placed.
func TestRealTopologies(t *testing.T) {
	out, err := exec.Command("python3", "-c", "import os, topohub; print(os.path.dirname(topohub.__file__))").Output()
	require.NoError(t, err, "make setup installs topohub")
	folder := strings.TrimSpace(string(out))
	planned, better := 0, 0
	for _, collection := range []string{"sndlib", "topozoo"} {
		files, err := filepath.Glob(filepath.Join(folder, "data", collection, "*.json"))
		require.NoError(t, err)
		for _, file := range files {
			fill := topology.Defaults{Capacity: big.NewRat(100, 1), SwitchRate: big.NewRat(400, 1), Ports: 8, Summing: 6, Workers: 24, Servers: 1, Seed: 1}
			topo, err := topology.Open(file, fill)
			require.NoError(t, err, file)
			p := makePlan(t, topo, Options{Planner: "grid"})
			nearest := makePlan(t, topo, Options{Planner: "nearest"})
			require.GreaterOrEqual(t, p.Rate.Cmp(nearest.Rate.Rat), 0, "%s: %s and %s", file, p.Rate, nearest.Rate)
			planned++
			if p.Rate.Cmp(nearest.Rate.Rat) > 0 {
				better++
			}
		}
	}
	assert.Equal(t, 229, planned, "networks; all of them are connected")
	assert.Greater(t, better, planned/2, "easy networks prove nothing")
}
