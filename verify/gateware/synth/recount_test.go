package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/hwgen/boards"
	"tributary/hwgen/cells"
)

// TestMain changes to the root of the repository, to which the command's paths are relative.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestTable compares the table with the current circuits. Each row must come from the current
// Verilog. The cells of circuits with a fast synthesis are counted again.
func TestTable(t *testing.T) {
	r, err := openRecord(context.Background())
	require.NoError(t, err)
	table, err := read()
	require.NoError(t, err)
	for _, c := range circuits() {
		if c.full {
			continue // the hash in its row suffices
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			row, ok := find(table, c.name)
			s, err := prepare(context.Background(), c, r.tools)
			require.NoError(t, err)
			var counted *cells.Cells
			if c.recount {
				now, err := count(context.Background(), c, s)
				require.NoError(t, err)
				counted = &now
			}
			if complaint := compare(c.name, row, ok, s.hash, counted); complaint != "" {
				t.Error(complaint)
			}
		})
	}
}

// compare describes what is wrong with a row, for the author of a change, or returns "". counted
// are the circuit's cells now, if they were counted.
func compare(name string, row cells.Row, recorded bool, hash string, counted *cells.Cells) string {
	remedy := fmt.Sprintf("If that is meant: make synth ROWS='^%s$', make a new golden of hwgen (go test ./hwgen -update), and commit both.",
		regexp.QuoteMeta(name))
	switch {
	case !recorded:
		return fmt.Sprintf("%s has no row in %s.\n%s", name, recordedFile, remedy)
	case counted != nil && *counted != row.Cells:
		return fmt.Sprintf("the cells of %s have changed:\n- %s (recorded)\n+ %s (counted)\n%s",
			name, describeCells(row.Cells), describeCells(*counted), remedy)
	case row.Source != hash:
		return fmt.Sprintf("%s has changed since its row was recorded (%s).\n%s", name, describe(row), remedy)
	}
	return ""
}

func TestCompare(t *testing.T) {
	row := cells.Row{Cells: cells.Cells{COMB: 400, FF: 300}, MHz: 210, Source: "a"}
	same, more := row.Cells, cells.Cells{COMB: 401, FF: 300}
	require.Empty(t, compare("node", row, true, "a", &same))
	require.Empty(t, compare("node", row, true, "a", nil))
	require.Contains(t, compare("node", row, false, "a", &same), "has no row")
	require.Contains(t, compare("node", row, true, "b", nil), "has changed since")
	require.Contains(t, compare("node", row, true, "b", &same), "has changed since", "its frequency may be another")
	require.Equal(t, `the cells of node (1) have changed:
- 400 COMB, 300 FF, 0 BRAM, 0 DSP (recorded)
+ 401 COMB, 300 FF, 0 BRAM, 0 DSP (counted)
If that is meant: make synth ROWS='^node \(1\)$', make a new golden of hwgen (go test ./hwgen -update), and commit both.`,
		compare("node (1)", row, true, "b", &more))
}

// TestPage: the page matches the table.
func TestPage(t *testing.T) {
	table, err := read()
	require.NoError(t, err)
	have, err := os.ReadFile(pageFile)
	require.NoError(t, err)
	if string(have) != page(table, boards.Recorded()) {
		t.Errorf("%s is not the page of %s; make synth writes both", pageFile, recordedFile)
	}
}

// TestKnownCircuit counts and places a circuit with known cells.
func TestKnownCircuit(t *testing.T) {
	t.Parallel()
	c := circuit{top: "known", part: part25F, seeds: []int{1}}
	s := testSource(t, "known")
	s.params = []param{{"WIDTH", "8"}}

	ctx := context.Background()
	lattice, err := count(ctx, c, s)
	require.NoError(t, err)
	require.Equal(t, cells.Cells{COMB: 1, FF: 8, BRAM: 1, DSP: 1}, lattice)
	xilinx, err := countArea(ctx, c, s)
	require.NoError(t, err)
	require.Equal(t, cells.Xilinx{LUT: 1, FF: 8, BRAM: 1, DSP: 1}, xilinx)
	speeds, err := place(ctx, c, s, nil)
	require.NoError(t, err)
	require.Len(t, speeds, 1)
	require.InDelta(t, 200, speeds[0], 150)
}

// TestLogicResets: a card with many additions keeps resets of 100 flip-flops alone.
func TestLogicResets(t *testing.T) {
	t.Parallel()
	for additions, resets := range map[int]int{31: 199, 32: 100} {
		c := circuit{top: "resets", whole: true, additions: additions}
		s := testSource(t, "resets")
		script := fmt.Sprintf("%s; %s -top resets; select -assert-count 199 t:TRELLIS_FF; "+
			"select -assert-count %d t:TRELLIS_FF r:SRMODE=LSR_OVER_CE %%i", elaborate(c, s), c.synth(), resets)
		require.NoError(t, yosys(context.Background(), s, script))
	}
}

// testSource returns a circuit of testdata in a folder of its own.
func testSource(t *testing.T, name string) source {
	s := source{dir: filepath.Join(folder, name)}
	require.NoError(t, os.RemoveAll(s.dir))
	require.NoError(t, os.MkdirAll(s.dir, 0o777))
	text, err := os.ReadFile(filepath.Join("verify/gateware/synth/testdata", name+".v"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, name+".v"), text, 0o666))
	return s
}
