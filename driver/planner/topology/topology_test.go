package topology

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// small is two workers, a switch and a server; A is replaced in tests.
const small = `{"nodes": [{"id": "S", "ports": 4, "rate": 50}, {"id": "P", "kind": "server"}, {"id": 1, "kind": "worker"}, {"id": 2, "kind": "worker"}],
"edges": [{"source": "S", "target": "P", "capacity": 100}, {"source": 1, "target": "S", "capacity": 10}, {"source": "S", "target": 2, "capacity": 20.5}]}`

func TestNodeLink(t *testing.T) {
	for _, text := range []string{small, strings.Replace(small, "edges", "links", 1)} {
		topo, err := Parse("small.json", []byte(text), Defaults{Summing: -1})
		require.NoError(t, err)
		assert.Equal(t, []Node{
			{ID: ID{Text: "S"}, Rate: big.NewRat(50, 1), Ports: 4}, {ID: ID{Text: "P"}, Kind: Server},
			{ID: ID{"1", true}, Kind: Worker}, {ID: ID{"2", true}, Kind: Worker},
		}, topo.Nodes)
		require.Len(t, topo.Links, 3)
		assert.Equal(t, [2]int{0, 3}, topo.Links[2].Ends)
		assert.Equal(t, "41/2", topo.Links[2].Capacity[1].RatString())
	}
}

const graphML1 = `<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
 <key id="d0" for="node" attr.name="kind" attr.type="string"><default>switch</default></key>
 <key id="d1" for="node" attr.name="ports" attr.type="int"/>
 <key id="d2" for="edge" attr.name="capacity" attr.type="double"/>
 <graph edgedefault="undirected">
  <node id="S"><data key="d1">4</data></node>
  <node id="P"><data key="d0">server</data></node>
  <node id="W"><data key="d0">worker</data></node>
  <edge source="S" target="P"><data key="d2">100</data></edge>
  <edge source="W" target="S"><data key="d2">10</data></edge>
 </graph>
</graphml>`

func TestGraphML(t *testing.T) {
	topo, err := Parse("small.graphml", []byte(graphML1), Defaults{Summing: -1})
	require.NoError(t, err)
	assert.Equal(t, []Node{{ID: ID{Text: "S"}, Ports: 4}, {ID: ID{Text: "P"}, Kind: Server}, {ID: ID{Text: "W"}, Kind: Worker}}, topo.Nodes)
	require.Len(t, topo.Links, 2)
	assert.Equal(t, "10", topo.Links[1].Capacity[0].RatString())
}

// TestGraphMLDefaults: a key's default holds where an element has no data of its own, for nodes or edges, or both.
func TestGraphMLDefaults(t *testing.T) {
	text := strings.NewReplacer(`attr.name="capacity" attr.type="double"/>`, `attr.name="capacity"><default>7</default></key><key id="d3" for="all" attr.name="rate"><default>5</default></key>`,
		`<data key="d2">10</data>`, ``, `<node id="S">`, `<node id="S"><data key="d3">6</data>`, `for="node" attr.name="ports" attr.type="int"/>`, `for="edge" attr.name="ports"><default>9</default></key>`).Replace(graphML1)
	topo, err := Parse("small.graphml", []byte(text), Defaults{Summing: -1})
	require.NoError(t, err)
	assert.Equal(t, "100", topo.Links[0].Capacity[0].RatString())
	assert.Equal(t, "7", topo.Links[1].Capacity[0].RatString())
	assert.Equal(t, []string{"6", "5", "5"}, []string{topo.Nodes[0].Rate.RatString(), topo.Nodes[1].Rate.RatString(), topo.Nodes[2].Rate.RatString()})
	assert.Equal(t, []int{4, 0, 0}, []int{topo.Nodes[0].Ports, topo.Nodes[1].Ports, topo.Nodes[2].Ports}, "a default of edges is none of nodes")
}

// TestUnits: all quantities of a file may have units.
func TestUnits(t *testing.T) {
	text := strings.NewReplacer(`"capacity": 100`, `"capacity": "100G"`, `"capacity": 10}`, `"capacity": "10Gbps"}`, `"capacity": 20.5`, `"capacity": "500M"`, `"rate": 50`, `"rate": "1 T"`).Replace(small)
	topo, err := Parse("x", []byte(text), Defaults{Summing: -1})
	require.NoError(t, err)
	var got []string
	for _, l := range topo.Links {
		got = append(got, l.Capacity[0].RatString())
	}
	assert.Equal(t, []string{"100", "10", "1/2"}, got)
	assert.Equal(t, "1000", topo.Nodes[0].Rate.RatString())
}

// TestDirected: links of a directed graph lead one way.
func TestDirected(t *testing.T) {
	topo, err := Parse("small.json", []byte(strings.Replace(strings.Replace(small, `{"nodes"`, `{"directed": true, "nodes"`, 1), `"source": "S", "target": 2`, `"source": 2, "target": "S"`, 1)), Defaults{Summing: -1})
	require.NoError(t, err)
	assert.Zero(t, topo.Links[0].Capacity[1].Sign())
	assert.Equal(t, [2]int{0, 2}, topo.Links[1].Ends)
	assert.Zero(t, topo.Links[1].Capacity[0].Sign())
	assert.Equal(t, "10", topo.Links[1].Capacity[1].RatString())
}

// TestParallel: parallel links are added up, and a note names them.
func TestParallel(t *testing.T) {
	topo, err := Parse("small.json", []byte(strings.Replace(small, `"edges": [`, `"edges": [{"source": "P", "target": "S", "capacity": 11},`, 1)), Defaults{Summing: -1})
	require.NoError(t, err)
	assert.Equal(t, "111", topo.Links[0].Capacity[0].RatString())
	assert.Equal(t, "111", topo.Links[0].Capacity[1].RatString())
	assert.Equal(t, []string{`parallel links between "S" and "P" are one link of their capacities together`}, topo.Notes)
}

// apart is two workers with a server each.
const apart = `{"nodes": [{"id": "P", "kind": "server"}, {"id": "Q", "kind": "server"}, {"id": "W", "kind": "worker"}, {"id": "V", "kind": "worker"}],
"links": [{"source": "W", "target": "P", "capacity": 5}, {"source": "V", "target": "Q", "capacity": 5}]}`

// TestErrors: each bad input gets a sentence with file and place.
func TestErrors(t *testing.T) {
	replace := func(old, with string) string {
		require.Contains(t, small, old)
		return strings.Replace(small, old, with, 1)
	}
	for name, test := range map[string]struct{ text, says string }{
		"empty":           {"", `x: line 1, column 1: this is no node-link JSON: it ends too early`},
		"syntax":          {`{"nodes": [}`, `x: line 1, column 12: this is no node-link JSON: invalid character '}' looking for beginning of value`},
		"more":            {small + "{}", `x: line 2, column 154: this is no node-link JSON: more text follows`},
		"no nodes":        {`{"edges": []}`, `x: it has no "nodes"; write the graph with networkx.node_link_data`},
		"no edges":        {`{"nodes": []}`, `x: it has neither "edges" nor "links"; write the graph with networkx.node_link_data`},
		"both":            {`{"nodes": [], "edges": [], "links": []}`, `x: it has both "edges" and "links"; keep the one that holds the graph's links`},
		"no id":           {replace(`"id": "S", `, ""), `x: nodes[0]: "id" is missing`},
		"bad id":          {replace(`"id": "S"`, `"id": ["S"]`), `x: nodes[0]: "id" is neither a string nor a number`},
		"twice":           {replace(`"id": "P"`, `"id": "S"`), `x: nodes[1] ("S"): it has the id of nodes[0] ("S")`},
		"kind":            {replace(`"kind": "server"`, `"kind": "sever"`), `x: nodes[1] ("P"): "kind" is "sever"; it must be switch, worker or server`},
		"unknown end":     {replace(`"target": "P"`, `"target": "Q"`), `x: edges[0] ("S" to "Q"): no node has the id "Q"`},
		"self-loop":       {replace(`"target": "P"`, `"target": "S"`), `x: edges[0] ("S" to "S"): it leads from a node to itself`},
		"number or text":  {replace(`"source": 1`, `"source": "1"`), `x: edges[1] ("1" to "S"): no node has the id "1"`},
		"negative":        {replace(`"capacity": 10}`, `"capacity": -10}`), `x: edges[1] ("1" to "S"): "capacity" is -10; it must be more than 0`},
		"zero":            {replace(`"capacity": 10}`, `"capacity": 0}`), `x: edges[1] ("1" to "S"): "capacity" is 0; it must be more than 0`},
		"NaN":             {replace(`"capacity": 10}`, `"capacity": "NaN"}`), `x: edges[1] ("1" to "S"): "capacity": "NaN" is no number; write 100 (Gb/s), 100G or 400M`},
		"infinite":        {replace(`"capacity": 10}`, `"capacity": "inf"}`), `x: edges[1] ("1" to "S"): "capacity": "inf" is no number; write 100 (Gb/s), 100G or 400M`},
		"huge":            {replace(`"capacity": 10}`, `"capacity": 1e999999999}`), `x: edges[1] ("1" to "S"): "capacity": "1e999999999" is no number; write 100 (Gb/s), 100G or 400M`},
		"a list":          {replace(`"capacity": 10}`, `"capacity": [10]}`), `x: edges[1] ("1" to "S"): "capacity": "[...]" is no number; write 100 (Gb/s), 100G or 400M`},
		"an object":       {replace(`"rate": 50`, `"rate": {"Gb/s": 50}`), `x: nodes[0] ("S"): "rate": "{...}" is no number; write 100 (Gb/s), 100G or 400M`},
		"null":            {replace(`"ports": 4`, `"ports": null`), `x: nodes[0] ("S"): "ports" is "null"; it must be a whole number, 0 or more`},
		"no list":         {`{"nodes": 3}`, `x: line 1, column 11: this is no node-link JSON: "nodes" has a value of a wrong kind or size: number`},
		"no object":       {`[]`, `x: line 1, column 1: this is no node-link JSON: it is of the kind array instead of an object`},
		"member twice":    {replace(`"capacity": 10}`, `"capacity": 10, "capacity": 11}`), `x: line 2, column 114: this is no node-link JSON: "capacity" occurs twice in one object`},
		"control":         {replace(`"id": "P"`, `"id": "P\u0000"`), `x: nodes[1] ("P\x00"): its id has a control character`},
		"JSON's NaN":      {replace(`"capacity": 10}`, `"capacity": NaN}`), `x: line 2, column 101: this is no node-link JSON: invalid character 'N' looking for beginning of value`},
		"mixed units":     {replace(`"capacity": 10}`, `"capacity": "10G"}`), `x: nodes[0] ("S"): a quantity has no unit, but one of edges[1] ("1" to "S") has; give all of them units, or none (Gb/s)`},
		"no capacity":     {replace(`, "capacity": 10}`, `}`), `x: edges[1] ("1" to "S"): it has no "capacity"; give it one, or use -capacity for all links without`},
		"ports":           {replace(`"ports": 4`, `"ports": 1.5`), `x: nodes[0] ("S"): "ports" is "1.5"; it must be a whole number, 0 or more`},
		"ports of server": {replace(`"kind": "server"`, `"kind": "server", "ports": 3`), `x: nodes[1] ("P"): a server has no "ports"`},
		"no worker":       {strings.ReplaceAll(small, "worker", "switch"), `x: no node is a worker; set "kind" of some nodes to "worker", or use -workers to place some`},
		"no server":       {replace("server", "switch"), `x: no node is a server; set "kind" of a node to "server", or use -servers to place one`},
		"unconnected":     {replace(`{"id": 2,`, `{"id": 3, "kind": "worker"}, {"id": 2,`), `x: nodes[3] ("3"): no path leads from this worker to a server; workers and servers forward nothing`},
		"apart":           {apart, `x: no server is reached by all workers, and a tree takes in all of them: server "P" gets no tree: worker "V" does not reach it`},
		"lone server":     {replace(`{"id": 2,`, `{"id": 3, "kind": "server"}, {"id": 2,`), `x: nodes[3] ("3"): no worker reaches this server`},
		"no forwarding":   {replace(`"source": "S", "target": 2`, `"source": 1, "target": 2`), `x: nodes[3] ("2"): no path leads from this worker to a server; workers and servers forward nothing`},
		"XML":             {"<graphml><graph>", `x: line 1: this is no GraphML: unexpected EOF`},
		"other XML":       {"<html></html>", `x: this is no GraphML: expected element type <graphml> but have <html>`},
		"no graph":        {"<graphml></graphml>", `x: it has 0 graphs; keep one`},
		"mixed edges":     {strings.Replace(graphML1, `<edge source="W"`, `<edge directed="true" source="W"`, 1), `x: edges[1] ("W" to "S"): it is directed and other edges are not, or the reverse; use one kind`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x", []byte(test.text), Defaults{Summing: -1})
			require.EqualError(t, err, test.says)
		})
	}
}

// TestQuantity: numbers are Gb/s, prefixes are decimal, and values are exact.
func TestQuantity(t *testing.T) {
	for text, want := range map[string]string{"100": "100", "0.1": "1/10", "1e3": "1000", "100G": "100", "400M": "2/5", "2.5Gb/s": "5/2", "1T": "1000", "1 Tbps": "1000", "1500K": "3/2000", "10gbit/s": "10"} {
		value, unit, err := Quantity(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, value.RatString(), text)
		assert.Equal(t, strings.ContainsAny(text, "GMTKg"), unit, text)
	}
	for _, text := range []string{"", "G", "10b/s", "1/3", "0x10", "1_000", "--1", "1e100"} {
		_, _, err := Quantity(text)
		assert.Error(t, err, text)
	}
}

// TestPlaced: flags place workers and servers by a seed, and give switches what they lack.
func TestPlaced(t *testing.T) {
	text := `{"nodes": [{"id": 0}, {"id": 1}, {"id": 2, "ports": 2}], "links": [{"source": 0, "target": 1}, {"source": 1, "target": 2}]}`
	fill := Defaults{Capacity: big.NewRat(10, 1), SwitchRate: big.NewRat(40, 1), Ports: 8, Summing: 1, Workers: 5, Servers: 2, Seed: 3}
	a, err := Parse("a", []byte(text), fill)
	require.NoError(t, err)
	b, err := Parse("a", []byte(text), fill)
	require.NoError(t, err)
	assert.Equal(t, a, b)
	assert.Len(t, a.Of(Worker), 5)
	assert.Len(t, a.Of(Server), 2)
	assert.Equal(t, 8, a.Nodes[0].Ports+a.Nodes[1].Ports)
	assert.Equal(t, 2, a.Nodes[2].Ports)
	assert.Equal(t, "40", a.Nodes[2].Rate.RatString())
	fill.Seed++
	c, err := Parse("a", []byte(text), fill)
	require.NoError(t, err)
	assert.NotEqual(t, a.Links, c.Links)
	fill.Capacity = nil
	_, err = Parse("a", []byte(text), fill)
	assert.ErrorContains(t, err, `it has no "capacity"`)
}

// TestGenerate counts nodes and links of the regular shapes.
func TestGenerate(t *testing.T) {
	for name, want := range map[string]string{
		"fat-tree:k=4":                                     "20 switches, 15 workers, 1 servers, 48 links",
		"fat-tree:k=8,hosts=2,servers=3":                   "80 switches, 61 workers, 3 servers, 320 links",
		"leaf-spine:leaves=3,spines=2,hosts=4,over=2":      "5 switches, 11 workers, 1 servers, 18 links",
		"leaf-spine:capacity=400M,ports=8,rate=2G,hosts=1": "6 switches, 3 workers, 1 servers, 12 links",
	} {
		topo, err := Generate(name)
		require.NoError(t, err, name)
		assert.Equal(t, want, fmt.Sprintf("%d switches, %d workers, %d servers, %d links", len(topo.Of(Switch)), len(topo.Of(Worker)), len(topo.Of(Server)), len(topo.Links)), name)
		assert.True(t, Generated(name))
	}
	a, err := Generate("random:seed=5,workers=9,servers=2")
	require.NoError(t, err)
	b, err := Generate("random:seed=5,workers=9,servers=2")
	require.NoError(t, err)
	assert.Equal(t, a, b)
	assert.Len(t, a.Of(Worker), 9)
	for name, says := range map[string]string{
		"ring:k=4":             "there is no such shape; there are fat-tree, leaf-spine and random",
		"fat-tree:k=3":         "k=3: it must be even",
		"fat-tree:k":           `"k" is no parameter; write fat-tree:NAME=VALUE,...`,
		"fat-tree:leaves=3":    `fat-tree has no parameter "leaves"`,
		"leaf-spine:hosts=0":   "hosts=0: it must be a whole number from 1 to 4096",
		"leaf-spine:rate=-1":   "rate=-1: it must be a rate above 0, such as 100",
		"fat-tree:servers=100": "servers=100: there are only 16 hosts",
	} {
		_, err := Generate(name)
		require.EqualError(t, err, name+": "+says)
	}
}
