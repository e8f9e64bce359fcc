package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/hwgen/cells"
)

func TestCellTypes(t *testing.T) {
	types, err := cellTypes([]byte(`{"modules": {}, "design": {"num_cells": 3, "num_cells_by_type": {"LUT4": 2, "TRELLIS_FF": 1}}}`))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"LUT4": 2, "TRELLIS_FF": 1}, types)
	for _, bad := range []string{`{`, `{}`, `{"design": {"num_cells_by_type": {}}}`} {
		_, err := cellTypes([]byte(bad))
		require.Error(t, err, bad)
	}
}

// TestCount: a carry cell counts as two tables, and an unknown cell is an error.
func TestCount(t *testing.T) {
	have, err := countECP5(map[string]int{"LUT4": 10, "CCU2C": 3, "TRELLIS_DPR16X4": 2, "PFUMX": 5, "L6MUX21": 1, "TRELLIS_FF": 7,
		"DP16KD": 1, "PDPW16KD": 1, "MULT18X18D": 4, "$scopeinfo": 9})
	require.NoError(t, err)
	require.Equal(t, cells.Cells{COMB: 24, FF: 7, BRAM: 2, DSP: 4}, have)

	xilinx, err := countXilinx(map[string]int{"LUT2": 1, "LUT6": 2, "SRL16E": 3, "RAM32M": 1, "CARRY4": 9, "FDRE": 4, "FDSE": 1,
		"RAMB36E1": 1, "RAMB18E1": 1, "DSP48E1": 2, "INV": 1})
	require.NoError(t, err)
	require.Equal(t, cells.Xilinx{LUT: 10, FF: 5, BRAM: 3, DSP: 2}, xilinx)

	_, err = countECP5(map[string]int{"LUT4": 1, "ALU54B": 1})
	require.ErrorContains(t, err, "ALU54B")
	_, err = countXilinx(map[string]int{"URAM288": 1})
	require.ErrorContains(t, err, "URAM288")
}

func TestParsePorts(t *testing.T) {
	ports, err := parsePorts("module m\ninput [0:0] clk\ninput [4:0] a\noutput [15:0] y\nendmodule\n")
	require.NoError(t, err)
	require.Equal(t, []port{{"clk", 1, true}, {"a", 5, true}, {"y", 16, false}}, ports)
	for _, bad := range []string{"", "input [0:0] clock", "input clk [0:0]", "input [0:0] clk\ninout [3:0] pad"} {
		_, err := parsePorts(bad)
		require.Error(t, err, bad)
	}
}

// TestWrapper: every bit of every port except the clock has its own register.
func TestWrapper(t *testing.T) {
	require.Equal(t, `module wrapper (
  input wire clk,
  input wire [0:0] d,
  output wire [0:0] q
);
  reg  [6:0] in_reg;
  wire [16:0] out;
  reg  [16:0] out_reg, fold_reg;
  always @(posedge clk) begin
    in_reg <= {in_reg, 1'b0};
    out_reg <= out;
    fold_reg <= {fold_reg, 1'b0} ^ out_reg;
    in_reg[0] <= d[0];
    fold_reg[0] <= out_reg[0];
  end
  assign q[0] = fold_reg[16];
  m #(.EXP(5), .FRAC(2)) dut (
    .clk(clk),
    .a(in_reg[0+:5]),
    .b(in_reg[5+:2]),
    .y(out[0+:16]),
    .over(out[16+:1])
  );
endmodule
`, wrapper("m", []param{{"EXP", "5"}, {"FRAC", "2"}}, []port{{"clk", 1, true}, {"a", 5, true}, {"b", 2, true}, {"y", 16, false}, {"over", 1, false}}))

	text := wrapper("m", nil, []port{{"clk", 1, true}, {"a", chain + 1, true}, {"y", 2 * chain, false}})
	require.Contains(t, text, fmt.Sprintf("in_reg[%[1]d] <= d[1];\n    fold_reg[0] <= out_reg[0];\n    fold_reg[%[1]d] <= out_reg[%[1]d];\n  end\n", chain))
	require.Contains(t, text, fmt.Sprintf("assign q[0] = fold_reg[%d];\n  assign q[1] = fold_reg[%d];\n", chain-1, 2*chain-1))
}

func TestParseFrequency(t *testing.T) {
	mhz, err := parseFrequency([]byte(`{"fmax": {"$glbnet$clk": {"achieved": 211.2345, "constraint": 250}}, "utilization": {}}`))
	require.NoError(t, err)
	require.InDelta(t, 211.2, mhz, 0)
	for _, bad := range []string{`{`, `{}`, `{"fmax": {"a": {"achieved": 1}, "b": {"achieved": 1}}}`, `{"fmax": {"a": {}}}`} {
		_, err := parseFrequency([]byte(bad))
		require.Error(t, err, bad)
	}
}

// TestKeptSeeds: a seed that an earlier run placed is not placed again, another one is. Seeds go
// when their circuit changes or its row is recorded, and others stay.
func TestKeptSeeds(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PATH", "")
	require.NoError(t, os.MkdirAll(filepath.Dir(seedsFile), 0o777))
	c, s := circuit{name: "core", part: part85F, seeds: threeSeeds}, source{dir: t.TempDir(), hash: "0123"}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "wrapper.json"), nil, 0o666))
	placesAnew := func(seed int) {
		t.Helper()
		_, err := placeSeed(t.Context(), c, s, seed)
		require.ErrorContains(t, err, "nextpnr")
	}
	placesAnew(2)
	other := placement{Circuit: "other", Source: "89ab", Seed: 2, MHz: 94.5}
	require.NoError(t, errors.Join(
		keepSeed(placement{Circuit: "core", Source: "4567", Seed: 1, MHz: 90}), keepSeed(other),
		keepSeed(placement{Circuit: "core", Source: "0123", Seed: 2, MHz: 107.7})))
	mhz, err := placeSeed(t.Context(), c, s, 2)
	require.NoError(t, err)
	require.InDelta(t, 107.7, mhz, 0)
	placesAnew(1)
	placed, err := readSeeds()
	require.NoError(t, err)
	require.Equal(t, []placement{other, {Circuit: "core", Source: "0123", Seed: 2, MHz: 107.7}}, placed)

	require.NoError(t, dropSeeds("core"))
	placesAnew(2)
	placed, err = readSeeds()
	require.NoError(t, err)
	require.Equal(t, []placement{other}, placed)

	require.NoError(t, os.WriteFile(seedsFile, []byte("["), 0o666))
	_, err = placeSeed(t.Context(), c, s, 2)
	require.ErrorContains(t, err, seedsFile)
	require.Error(t, keepSeed(other))
}

func TestMedianOfSeeds(t *testing.T) {
	require.InDelta(t, 201, median([]float64{150, 230, 201}), 0)
	require.InDelta(t, 90, median([]float64{90}), 0)
}

// TestCollect: a circuit consists of its modules and those below them, without regard to
// comments.
func TestCollect(t *testing.T) {
	card := t.TempDir()
	for name, text := range map[string]string{
		"top.v":    "`include \"zwire.vh\"\nmodule top; below u (); // not like other\nendmodule",
		"below.v":  "module below; lowest u (); endmodule",
		"lowest.v": "module lowest; endmodule",
		"other.v":  "module other; endmodule",
		"zwire.vh": "`define A 1",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(card, name), []byte(text), 0o666))
	}
	s := source{dir: t.TempDir()}
	require.NoError(t, s.collect(card, "top"))
	require.Equal(t, []string{"top.v", "zwire.vh", "below.v", "lowest.v"}, s.files)
	for _, name := range s.files {
		require.FileExists(t, filepath.Join(s.dir, name))
	}
	require.ErrorContains(t, (&source{dir: t.TempDir()}).collect(card, "none"), "no module none")
}

// TestSum: the hash of a row changes with the circuit and its measurement, but not with comments.
func TestSum(t *testing.T) {
	hash := func(text string, c circuit, params []param, tools ...string) string {
		t.Helper()
		s := source{dir: t.TempDir(), files: []string{"a.v"}, params: params}
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "a.v"), []byte(text), 0o666))
		require.NoError(t, s.sum(c, tools))
		return s.hash
	}
	c := circuit{top: "a", part: part25F, seeds: threeSeeds}
	first := hash("module a; // one\n\n  wire b;\nendmodule\n", c, nil, "yosys")
	require.Equal(t, first, hash("// Made by me.\nmodule a;\n  /* verilator lint_off */\n  wire b;  // two\nendmodule\n", c, nil, "yosys"))
	slow := c
	slow.seeds = []int{1}
	for _, changed := range []string{
		hash("module a;\n  wire c;\nendmodule\n", c, nil, "yosys"),
		hash("module a;\n  wire b;\nendmodule\n", c, nil, "yosys 2"),
		hash("module a;\n  wire b;\nendmodule\n", c, []param{{"WIDTH", "3"}}, "yosys"),
		hash("module a;\n  wire b;\nendmodule\n", slow, nil, "yosys"),
	} {
		require.NotEqual(t, first, changed)
	}
}

// TestNames: no two circuits share a row or a folder.
func TestNames(t *testing.T) {
	names, folders := map[string]bool{}, map[string]bool{}
	for _, c := range circuits() {
		require.False(t, names[c.name], c.name)
		require.False(t, folders[folderOf(c)], c.name)
		names[c.name], folders[folderOf(c)] = true, true
	}
}

// TestEncode: a row is one line, and reading the written table gives the same table.
func TestEncode(t *testing.T) {
	lane := cells.Lane{Sum: "fused", Format: "bf16", Result: "fp32", Workers: 8, DSP: true}
	table := cells.Table{Schema: cells.Schema, Tools: []string{"yosys"}, Rows: []cells.Row{
		{Name: "one", Of: &lane, Cells: cells.Cells{COMB: 1, FF: 2, DSP: 16}, MHz: 200.5, Seeds: []float64{200.5}, Source: "a"},
		{Name: "two", Node: "fp32"},
	}}
	text, err := encode(cells.Schema, table.Tools, table.Rows)
	require.NoError(t, err)
	require.True(t, json.Valid(text))
	read, err := cells.Parse(text)
	require.NoError(t, err)
	require.Equal(t, table, read)
	require.Regexp(t, `(?m)^    \{"name":"one".*\},\n    \{"name":"two".*\}$`, string(text))
}

func TestRate(t *testing.T) {
	row := cells.Row{Cells: cells.Cells{COMB: 953}, MHz: 90.7}
	require.Equal(t, "95", rate(circuit{additions: 1}, row), "design's peer")
	require.Empty(t, rate(circuit{}, row))
}

func TestVerdict(t *testing.T) {
	c := circuit{mostCOMB: 500, leastMHz: 200}
	for want, row := range map[string]cells.Row{
		"≤ 500, ≥ 200 MHz":                  {Cells: cells.Cells{COMB: 490}, MHz: 200},
		"≤ 500, ≥ 200 MHz: **falls short**": {Cells: cells.Cells{COMB: 491}, MHz: 200},
	} {
		require.Equal(t, want, verdict(c, row, 10, nil))
	}
	require.Contains(t, verdict(c, cells.Row{Cells: cells.Cells{COMB: 500}, MHz: 199.9}, 0, nil), "falls short")
	require.Equal(t, "≤ 500, ≥ 200 MHz: no", verdict(c, cells.Row{}, 0, errors.New("no")))
	require.Empty(t, verdict(circuit{}, cells.Row{}, 0, nil))
}

func TestShare(t *testing.T) {
	table := cells.Table{Rows: []cells.Row{{Name: "unit", Cells: cells.Cells{COMB: 900}}, {Name: "queue", Cells: cells.Cells{COMB: 101}}}}
	have, err := share(circuit{shared: []string{"unit", "queue"}, sharedBy: 16}, table)
	require.NoError(t, err)
	require.Equal(t, 63, have) // 62.56, rounded up
	have, err = share(circuit{}, table)
	require.NoError(t, err)
	require.Zero(t, have)
	_, err = share(circuit{shared: []string{"select"}, sharedBy: 16}, table)
	require.ErrorContains(t, err, "select is not recorded")
}

func TestReadParams(t *testing.T) {
	card := t.TempDir()
	text := "  agg_add u_a (\n);\n  agg_other_add #(\n .A(1)) u ();\n  agg_add #(\n      .EXP (8),\n      .MASK(64'h8000)\n  ) u_b (\n      .clk(clk)\n);\n" +
		"  agg_add #(.EXP(9)) u_c (.clk(clk));\n"
	require.NoError(t, os.WriteFile(filepath.Join(card, "core.v"), []byte(text), 0o666))
	var s source
	require.NoError(t, s.readParams(card, circuit{top: "agg_add", parent: "core"}))
	require.Equal(t, []param{{"EXP", "8"}, {"MASK", "64'h8000"}}, s.params)
	require.Error(t, s.readParams(card, circuit{top: "agg_other", parent: "core"}))
	s = source{}
	require.NoError(t, s.readParams(card, circuit{top: "agg_add"}))
	require.Empty(t, s.params)
}
