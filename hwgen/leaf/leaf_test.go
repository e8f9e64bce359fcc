package leaf_test

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/leaf"
	"tributary/hwgen/netlist"
	"tributary/rtl"
)

// Parse reads every leaf, including the FPGA families' own, and its ports have widths with the
// default parameters.
func TestAllLeaves(t *testing.T) {
	read := 0
	require.NoError(t, fs.WalkDir(rtl.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".v" {
			return err
		}
		read++
		t.Run(name, func(t *testing.T) {
			raw, err := fs.ReadFile(rtl.Files, name)
			require.NoError(t, err)
			for _, parent := range []bool{false, true} {
				text, err := leaf.Resolve(string(raw), leaf.Parent, parent)
				require.NoError(t, err)
				parses(t, name, text)
			}
		})
		return nil
	}))
	assert.Greater(t, read, 60)
}

// parses checks that Parse reads every declaration in the text of a leaf.
func parses(t *testing.T, name, text string) {
	l, err := leaf.Parse(text)
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSuffix(path.Base(name), ".v"), l.Name)
	ports, err := l.Bind(nil)
	require.NoError(t, err)
	require.NotEmpty(t, ports)
	head, _, _ := strings.Cut(text[strings.Index(text, "\nmodule "):], ");\n")
	assert.Equal(t, strings.Count(head, "\n    input ")+strings.Count(head, "\n    output ")+strings.Count(head, "\n    inout "), len(ports))
	assert.Equal(t, strings.Count(head, "\n    parameter "), len(l.Params))
}

const sample = `// A module (with, commas).
module agg_sample #(
    parameter integer EXP = 8,  // bits
    parameter [63:0] WORD = 64'h8000_0000,
    parameter integer TWICE = 2 * EXP
) (
    input  wire clk,  // module agg_other (
    output reg  [EXP+TWICE:0] y,
    input  wire [(EXP > 8 ? 2 : $clog2(WORD))-1:0] z,
    inout  wire [(1 << EXP) / 2 - 1:0] pads
);
endmodule
`

func TestBind(t *testing.T) {
	l, err := leaf.Parse(sample)
	require.NoError(t, err)
	widths := func(params ...netlist.Pair) string {
		ports, err := l.Bind(params)
		require.NoError(t, err)
		text := ""
		for _, p := range ports {
			text += fmt.Sprintf("%s %d %d, ", p.Name, p.Direction, p.Width)
		}
		return text
	}
	assert.Equal(t, "clk 0 1, y 1 25, z 0 31, pads 2 128, ", widths())
	assert.Equal(t, "clk 0 1, y 1 31, z 0 2, pads 2 512, ", widths(netlist.Pair{Name: "EXP", Expr: "4'd10"}))
	for _, c := range []struct{ name, value, want string }{
		{"DEPTH", "3", "agg_sample has no parameter DEPTH"},
		{"EXP", "other", "parameter EXP: other is not a parameter"},
		{"EXP", "1 +", `parameter EXP: cannot read "1 +"`},
		{"EXP", "-30", "port y of agg_sample: its bits are [-90:0]"},
		{"WORD", "0", "port z of agg_sample: an expression of this kind has no value here"},
	} {
		_, err := l.Bind([]netlist.Pair{{Name: c.name, Expr: c.value}})
		assert.ErrorContains(t, err, c.want)
	}
}

// An unknown construct is an error, never a missing port.
func TestParseFailsLoudly(t *testing.T) {
	for from, to := range map[string]struct{ text, want string }{
		"input  wire clk":  {"input logic clk", `cannot read the port "input logic clk"`},
		"output reg  [EXP": {"output reg signed [EXP", `cannot read the port "output reg signed [EXP+TWICE:0] y"`},
		"output reg":       {"reg", `cannot read the port "reg [EXP+TWICE:0] y"`},
		"integer EXP = 8":  {"real EXP = 8", `cannot read the parameter "parameter real EXP = 8"`},
		"2 * EXP":          {"2 ** EXP", "cannot read \"2 ** EXP\""},
		"[EXP+TWICE:0]":    {"[EXP+TWICE]", `cannot read "[EXP+TWICE]"`},
		");":               {"", "ports of agg_sample: a parenthesis is not closed"},
		"endmodule":        {"endmodule\nmodule b (input wire c);", "2 modules in a file, want 1"},
		"module agg":       {"package agg", "0 modules in a file, want 1"},
	} {
		require.Contains(t, sample, from)
		_, err := leaf.Parse(strings.Replace(sample, from, to.text, 1))
		assert.ErrorContains(t, err, to.want, from)
	}
}

func TestLibrary(t *testing.T) {
	own := leaf.NewLibrary(rtl.Files, leaf.VendorFolder("ecp5"))
	_, err := own.Ports("agg_pads", nil)
	assert.NoError(t, err)
	portable := leaf.NewLibrary(rtl.Files, "")
	_, err = portable.Ports("agg_pads", nil)
	assert.EqualError(t, err, "no leaf agg_pads in rtl")
	ports, err := portable.Ports("agg_delay", []netlist.Pair{{Name: "WIDTH", Expr: "5"}})
	require.NoError(t, err)
	assert.Equal(t, []netlist.Port{{Name: "clk", Width: 1}, {Name: "d", Width: 5}, {Direction: netlist.Out, Name: "q", Width: 5}}, ports)
}
