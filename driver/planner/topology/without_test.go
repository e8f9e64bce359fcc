package topology

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWithout removes links, nodes and cards of a leaf-spine, whose hosts have the names of Generate.
func TestWithout(t *testing.T) {
	whole, err := Generate("leaf-spine:leaves=2,hosts=2")
	require.NoError(t, err)
	id := func(name string) ID { return ID{Text: name} }
	rest, err := whole.Without(Removed{Nodes: []ID{id("spine-0"), id("worker-0")}, Cards: []ID{id("leaf-0")}})
	require.NoError(t, err)
	assert.Len(t, rest.Nodes, len(whole.Nodes)-2)
	assert.Len(t, rest.Links, len(whole.Links)-3)
	for _, l := range rest.Links {
		a, b := rest.Nodes[l.Ends[0]].ID.Text, rest.Nodes[l.Ends[1]].ID.Text
		assert.True(t, rest.linked(whole, a, b), "%s to %s", a, b)
	}
	leaf, _ := rest.Find(id("leaf-0"))
	assert.Zero(t, rest.Nodes[leaf].Ports)
	before, _ := whole.Find(id("leaf-0"))
	assert.Equal(t, 64, whole.Nodes[before].Ports, "the whole network is as before")

	rest, err = whole.Without(Removed{Links: [][2]ID{{id("spine-0"), id("leaf-1")}}})
	require.NoError(t, err)
	assert.Len(t, rest.Links, len(whole.Links)-1)
	assert.False(t, rest.linked(rest, "leaf-1", "spine-0"))

	// One of two servers fails: no error. Both: there is none left.
	two, err := Generate("leaf-spine:leaves=2,spines=2,hosts=2,servers=2")
	require.NoError(t, err)
	rest, err = two.Without(Removed{Links: [][2]ID{{id("leaf-1"), id("server-1")}}})
	require.NoError(t, err)
	serving, missed := rest.Serving()
	assert.Equal(t, "server-0", rest.Nodes[serving[0]].ID.Text)
	assert.Len(t, serving, 1)
	assert.Equal(t, []string{`server "server-1" gets no tree: worker "worker-0" does not reach it`}, missed)
	_, err = two.Without(Removed{Links: [][2]ID{{id("leaf-1"), id("server-1")}, {id("leaf-0"), id("server-0")}}})
	assert.ErrorContains(t, err, "no path leads from this worker to a server")

	for want, lost := range map[string]Removed{
		`no node has the id "x"`:                                {Nodes: []ID{id("x")}},
		`no node has the id "y"`:                                {Cards: []ID{id("y")}},
		`no node has the id "z"`:                                {Links: [][2]ID{{id("leaf-0"), id("z")}}},
		`no link joins "leaf-0" and "leaf-1"`:                   {Links: [][2]ID{{id("leaf-0"), id("leaf-1")}}},
		`no node is a server`:                                   {Nodes: []ID{id("server-0")}},
		`nodes[7] ("worker-2"): no path leads from this worker`: {Links: [][2]ID{{id("leaf-1"), id("worker-2")}}},
	} {
		_, err := whole.Without(lost)
		assert.ErrorContains(t, err, want)
	}
}

// linked tells whether a network has a link between nodes of these names, with the capacity that it has in
// another one.
func (t *Topology) linked(other *Topology, a, b string) bool {
	capacity := func(of *Topology) string {
		for _, l := range of.Links {
			if x, y := of.Nodes[l.Ends[0]].ID.Text, of.Nodes[l.Ends[1]].ID.Text; x == a && y == b || x == b && y == a {
				return l.Capacity[0].RatString()
			}
		}
		return ""
	}
	return capacity(t) != "" && capacity(t) == capacity(other)
}
