package leaf_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/leaf"
	"tributary/hwgen/netlist"
)

const sections = "module agg_s (\n    input wire clk,\n" +
	"`ifdef AGG_PARENT\n    input wire [63:0] mask\n`else\n    input wire mask\n`endif\n);\n" +
	"`ifdef AGG_PARENT\n`ifdef FORMAL\n  a;\n`else\n  b;\n`endif\n`endif\n" +
	"`ifdef FORMAL\n  c;\n  `ifdef AGG_PARENT\n  d;\n  `endif\n`else\n  e;\n`endif\nendmodule\n"

func TestResolve(t *testing.T) {
	without, err := leaf.Resolve(sections, leaf.Parent, false)
	require.NoError(t, err)
	assert.Equal(t, "module agg_s (\n    input wire clk,\n    input wire mask\n);\n"+
		"`ifdef FORMAL\n  c;\n`else\n  e;\n`endif\nendmodule\n", without)
	with, err := leaf.Resolve(sections, leaf.Parent, true)
	require.NoError(t, err)
	assert.Equal(t, "module agg_s (\n    input wire clk,\n    input wire [63:0] mask\n);\n"+
		"`ifdef FORMAL\n  a;\n`else\n  b;\n`endif\n"+
		"`ifdef FORMAL\n  c;\n  d;\n`else\n  e;\n`endif\nendmodule\n", with)

	for text, want := range map[string]string{
		"`ifdef AGG_PARENT\n":                                     "a section of AGG_PARENT has no `endif",
		"`ifdef AGG_PARENT\n`ifdef FORMAL\n`endif\n":              "a section of AGG_PARENT has no `endif",
		"`ifdef AGG_PARENT\n`ifdef AGG_PARENT // again\n`endif\n": "a section of AGG_PARENT holds another",
		"`ifdef AGG_PARENT\n`elsif FORMAL\n`endif\n":              "a section of AGG_PARENT has an `elsif",
		"`ifndef AGG_PARENT\n`endif\n":                            "a section begins with `ifndef AGG_PARENT; use `ifdef and `else",
	} {
		_, err := leaf.Resolve(text, leaf.Parent, true)
		assert.EqualError(t, err, want, text)
	}
}

// Both libraries of a card, and the name of the file with a mistake.
func TestLibraryResolves(t *testing.T) {
	files := fstest.MapFS{
		"core/agg_s.v":   {Data: []byte(sections)},
		"core/agg_bad.v": {Data: []byte("`ifdef AGG_PARENT\n")},
	}
	for _, l := range []struct {
		*leaf.Library
		width int
	}{{leaf.NewLibrary(files, ""), 1}, {leaf.NewParentLibrary(files), 64}} {
		ports, err := l.Ports("agg_s", nil)
		require.NoError(t, err)
		assert.Equal(t, []netlist.Port{{Name: "clk", Width: 1}, {Name: "mask", Width: l.width}}, ports)
		text, err := l.Read("agg_s")
		require.NoError(t, err)
		assert.NotContains(t, string(text), leaf.Parent)
		_, err = l.Read("agg_bad")
		assert.EqualError(t, err, "core/agg_bad.v: a section of AGG_PARENT has no `endif")
	}
}
