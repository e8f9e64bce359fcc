package draw

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
)

var update = flag.Bool("update", false, "write the drawings to testdata")

// TestDrawings compares the drawings of a plan with those in testdata, which people have looked at.
func TestDrawings(t *testing.T) {
	topo, err := topology.Open("../testdata/authors.json", topology.Defaults{Summing: -1})
	require.NoError(t, err)
	p, err := plan.Read("testdata/plan.json")
	require.NoError(t, err)
	for name, drawing := range map[string][]byte{"plan.svg": SVG(topo, p), "plan.dot": Dot(topo, p)} {
		if *update {
			require.NoError(t, os.WriteFile("testdata/"+name, drawing, 0o644))
		}
		want, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(drawing))
	}
}

// TestNames: names of any characters give well-formed files.
func TestNames(t *testing.T) {
	topo, err := topology.Generate("random:seed=1,workers=5")
	require.NoError(t, err)
	for i := range topo.Nodes {
		topo.Nodes[i].ID.Text += `<&"'>` + "Ж\x00\ufffe"
	}
	p := &plan.Plan{Topology: "<&>", Rate: plan.Quantity{Rat: topo.Links[0].Capacity[0]}}
	d := xml.NewDecoder(strings.NewReader(string(SVG(topo, p))))
	for err == nil {
		_, err = d.Token()
	}
	assert.True(t, errors.Is(err, io.EOF), err)
	assert.Contains(t, string(Dot(topo, p)), `<&\"'>`)
}
