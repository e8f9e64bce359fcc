package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/boards"
)

func TestReadReport(t *testing.T) {
	const cells = `"utilization": {"TRELLIS_COMB": {"used": 7, "available": 9}, "DP16KD": {"used": 2}, "TRELLIS_FF": {"used": 5}}`
	const paths = `"critical_paths": [{"from": "posedge link", "to": "posedge link", "path": [{"from": {"cell": "u_usb.x"}}, {"from": {"cell": "u_card.x"}}]},
		{"from": "posedge link", "to": "posedge x", "path": [{"from": {"cell": "u_card.x"}}]},
		{"from": "posedge x", "to": "posedge x", "path": [{"from": {"cell": "u_card.u_core.x"}}, {"from": {"cell": "u_usb.x"}}]}]`
	into := strings.Replace(paths, "u_card.u_core.x", "u_cross.x", 1) // the card's path ends there
	into = strings.Replace(into, `{"from": {"cell": "u_usb.x"}}]}]`, `{"from": {"cell": "u_usb.x"}, "to": {"cell": "u_card.x"}}]}]`, 1)
	report := func(paths, clocks string) []byte {
		return []byte(`{"fmax": ` + clocks + `, ` + paths + `, ` + cells + `}`)
	}
	for _, clocks := range []string{
		`{"link": {"achieved": 65.24, "constraint": 60.0024}, "x": {"achieved": 41, "constraint": 40}}`,
		`{"x": {"achieved": 41, "constraint": 60.0024}, "link": {"achieved": 65.24, "constraint": 60.0024}}`,
	} {
		for _, paths := range []string{paths, into} {
			row := boards.Row{Board: "ecpix5", ClockMHz: 40}
			require.NoError(t, readReport(report(paths, clocks), &row), clocks)
			assert.Equal(t, boards.Row{Board: "ecpix5", ClockMHz: 40, COMB: 7, BRAM: 2, FF: 5, CoreMHz: 41, LinkMHz: 65.2}, row, clocks)
		}
	}
	// The longest path of either clock may be in the crossing.
	crossing := strings.ReplaceAll(strings.ReplaceAll(paths, "u_card.", "u_cross."), "posedge x", "posedge $glbnet$u_card.u_core.clk")
	row := boards.Row{}
	require.NoError(t, readReport(report(crossing, `{"link": {"achieved": 65.24}, "$glbnet$u_card.u_core.clk": {"achieved": 41}}`), &row))
	assert.Equal(t, boards.Row{COMB: 7, BRAM: 2, FF: 5, CoreMHz: 41, LinkMHz: 65.2}, row)
	// Of two Ethernet ports, the slower clock counts.
	two := boards.Row{Board: "versa_ecp5", Ethernet: 2}
	require.NoError(t, readReport(report(paths, `{"x": {"achieved": 41}, "link": {"achieved": 130.04}, "other": {"achieved": 126.06}}`), &two))
	assert.Equal(t, boards.Row{Board: "versa_ecp5", Ethernet: 2, COMB: 7, BRAM: 2, FF: 5, CoreMHz: 41, LinkMHz: 126.1}, two)
	for _, clocks := range []string{
		`{}`, `{"x": {"achieved": 41, "constraint": 40}}`,
		`{"a": {"achieved": 41, "constraint": 40}, "b": {"achieved": 41, "constraint": 12}}`,
		`{"a": {"achieved": 41, "constraint": 40}, "link": {"achieved": 41, "constraint": 12}, "x": {"achieved": 41, "constraint": 12}}`,
	} {
		require.Error(t, readReport(report(paths, clocks), &boards.Row{Board: "ecpix5", ClockMHz: 40}), clocks)
	}
}

// TestBoardRow: a board's row depends on its Verilog, constraints and device, but not on comments
// and documentation.
func TestBoardRow(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	files := []string{"agg_top.v", "board/b.lpf", "board/usb_device.py", "README.md"}
	manifest, err := json.Marshal(map[string]any{"board": "b", "lanes": 2, "dsp": true, "clock_mhz": 40, "files": files})
	require.NoError(t, err)
	for _, name := range files {
		write(name, "text")
	}
	write("manifest.json", string(manifest))
	first, err := boardRow(dir, []string{"a tool"})
	require.NoError(t, err)
	assert.Equal(t, boards.Row{Board: "b", Lanes: 2, DSP: true, ClockMHz: 40, Seed: 1, Source: first.Source}, first)

	write("README.md", "other")
	write("agg_top.v", "text // and why")
	same, err := boardRow(dir, []string{"a tool"})
	require.NoError(t, err)
	assert.Equal(t, first.Source, same.Source)
	write("board/b.lpf", "other")
	other, err := boardRow(dir, []string{"a tool"})
	require.NoError(t, err)
	assert.NotEqual(t, first.Source, other.Source)
}

// TestEncodeBoards: reading the written table gives the same table.
func TestEncodeBoards(t *testing.T) {
	table := boards.Table{Schema: boards.Schema, Tools: []string{"a"}, Rows: []boards.Row{{Board: "b", Lanes: 1}, {Board: "b", Lanes: 2, DSP: true}}}
	text, err := encode(boards.Schema, table.Tools, table.Rows)
	require.NoError(t, err)
	read, err := boards.Parse(text)
	require.NoError(t, err)
	assert.Equal(t, table, read)
}

// A card has one row: a new target clock replaces the old one.
func TestReplaceRow(t *testing.T) {
	row := func(board string, lanes, clock int) boards.Row {
		return boards.Row{Board: board, Lanes: lanes, ClockMHz: clock}
	}
	old := []boards.Row{row("ecpix5", 4, 60), row("ecpix5", 16, 60), row("ulx3s", 16, 60)}
	assert.Equal(t, []boards.Row{row("ecpix5", 4, 60), row("ulx3s", 16, 60), row("ecpix5", 16, 110)},
		replaceRow(old, row("ecpix5", 16, 110)))
}
