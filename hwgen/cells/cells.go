// Package cells returns the FPGA resources of a lane, from a table of synthesized
// circuits.
//
// `make synth` records the table in recorded.json by verify/gateware/synth; `make test`
// counts the cells again. The package estimates nothing: a lane is unknown if neither the
// lane nor its nodes are recorded.
package cells

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
)

// Table is the record of all circuits.
type Table struct {
	Schema int      `json:"schema"`
	Tools  []string `json:"tools"` // name and version
	Rows   []Row    `json:"rows"`
}

// Schema is the version of the table's format.
const Schema = 1

// Yosys commands, after a circuit is read.
const (
	// ShareAdders shares one adder between a sum and a difference of the same operands,
	// if the circuit selects one of them. It comes before flattening: later, operands may
	// be swapped, and an adder for swapped operands is larger than both.
	ShareAdders = "proc; alumacc t:$add t:$sub; share -aggressive; opt_clean"

	// SynthECP5 synthesizes the recorded nodes and lanes. It uses no tables of more than
	// four inputs: tables combined from smaller ones are often larger than the logic that
	// they replace.
	SynthECP5 = ShareAdders + "; synth_ecp5 -nowidelut"
)

// LogicResets reports whether SynthCard makes small synchronous resets of a card logic. additions is
// the number of additions that the card starts in a cycle: its lanes times its workers less one.
//
// nextpnr gives the eight flip-flops of an ECP5's tile one reset, and Yosys gives each fp32 adder eight
// resets of 4 to 30 flip-flops. It found no places for so many sets in a card of 16 lanes and 4
// workers: the last few flip-flops took each other's places for half an hour, with no end in sight.
func LogicResets(additions int) bool { return additions >= 32 }

// SynthCard returns the Yosys commands that synthesize a whole card or core for speed: ABC9 maps by
// timing, and wide tables are allowed. Resets of fewer than 100 flip-flops become logic if LogicResets
// says so. The circuit's top is set, and the last command may get more options.
func SynthCard(additions int) string {
	const synth = "synth_ecp5 -abc9"
	if !LogicResets(additions) {
		return synth
	}
	return synth + " -run begin:map_ffs; dfflegalize -minsrst 100" +
		" -cell $_DFF_?_ 01 -cell $_DFF_?P?_ r -cell $_SDFF_?P?_ r" +
		" -cell $_DFFE_??_ 01 -cell $_DFFE_?P??_ r -cell $_SDFFE_?P??_ r; " +
		synth + " -run map_ffs:"
}

// ShareAddersOf is ShareAdders for the modules whose names contain name.
func ShareAddersOf(name string) string {
	return fmt.Sprintf("proc; alumacc *%[1]s*/t:$add *%[1]s*/t:$sub; share -aggressive *%[1]s*; opt_clean", name)
}

// Row is one circuit, synthesized alone.
type Row struct {
	Name  string `json:"name"`
	Node  string `json:"node,omitempty"` // the format, of a node of tree
	Of    *Lane  `json:"lane,omitempty"` // of a lane
	Cells        // of a Lattice ECP5

	MHz     float64   `json:"mhz,omitempty"`   // the median of Seeds; 0: not placed and routed
	Seeds   []float64 `json:"seeds,omitempty"` // MHz of each run of place and route
	Part    string    `json:"part,omitempty"`  // FPGA of place and route
	Latency int       `json:"latency,omitempty"`
	Xilinx  Xilinx    `json:"xilinx,omitzero"`

	// Source is a hash of the row's Verilog and recipe.
	Source string `json:"source"`

	// Basis describes the basis of a result of Find: "" for a recorded lane, otherwise
	// the nodes whose cells it adds up.
	Basis string `json:"-"`
}

// Cells counts the cells of a Lattice ECP5.
type Cells struct {
	COMB int `json:"comb"` // four-input tables, including carry chains and small memories
	FF   int `json:"ff"`
	BRAM int `json:"bram"` // block RAMs of 18 kbit
	DSP  int `json:"dsp"`  // multipliers of 18 x 18 bits
}

// Xilinx is the area on a Xilinx 7 series.
type Xilinx struct {
	LUT  int `json:"lut"` // including small memories and shift registers
	FF   int `json:"ff"`
	BRAM int `json:"bram"` // of 18 kbit
	DSP  int `json:"dsp"`
}

// Lane identifies the circuit that sums one element of all workers. Names are those of
// hwgen's flags.
type Lane struct {
	Sum      string `json:"sum"`
	Format   string `json:"format"` // of the contributions
	Result   string `json:"result"` // format of the sum
	Workers  int    `json:"workers"`
	DSP      bool   `json:"dsp,omitempty"`
	Saturate bool   `json:"saturate,omitempty"`
}

//go:embed recorded.json
var recorded []byte

var table = mustParse(recorded)

// Find returns the row of a lane. If only the lane's node is recorded, it returns the cells
// of all the lane's nodes and the node's frequency, and sets Basis. It returns false if
// neither is recorded.
func Find(l Lane) (Row, bool) { return table.find(l) }

func (t Table) find(l Lane) (Row, bool) {
	l = l.circuit()
	for _, r := range t.Rows {
		if r.Of != nil && *r.Of == l {
			return r, true
		}
	}
	nodes := l.Workers - 1
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Node == l.Result })
	if i < 0 || l.Sum != "tree" || nodes < 1 {
		return Row{}, false
	}
	node := t.Rows[i]
	return Row{
		Name:  l.String(),
		Cells: Cells{COMB: nodes * node.COMB, FF: nodes * node.FF, BRAM: nodes * node.BRAM, DSP: nodes * node.DSP},
		MHz:   node.MHz,
		Part:  node.Part,
		Basis: fmt.Sprintf("%d x the recorded node; what joins them is not counted", nodes),
	}, true
}

// adding lists the sums with the same integer arithmetic.
var adding = []string{"tree", "fused", "exact"}

// addsIntegers reports whether the lane adds integers.
func (l Lane) addsIntegers() bool { return l.Format == "int32" && slices.Contains(adding, l.Sum) }

// circuit returns the lane that the table has for the same circuit.
func (l Lane) circuit() Lane {
	if l.addsIntegers() {
		l.Sum, l.DSP = "tree", false
	}
	return l
}

// String returns the lane's name in the table, like "fused bf16 to fp32, 8
// inputs".
func (l Lane) String() string {
	text := l.Sum + " " + l.Format
	if l.addsIntegers() {
		text = l.Format // whatever the sum
	}
	if l.Result != l.Format {
		text += " to " + l.Result
	}
	if l.Saturate {
		text += " saturating"
	}
	if l.DSP {
		text += " -dsp"
	}
	return fmt.Sprintf("%s, %d inputs", text, l.Workers)
}

// Parse reads a table.
func Parse(text []byte) (Table, error) {
	var t Table
	if err := json.Unmarshal(text, &t); err != nil {
		return t, err
	}
	if t.Schema != Schema {
		return t, fmt.Errorf("a table of schema %d; this program reads %d", t.Schema, Schema)
	}
	return t, nil
}

// Recorded returns the embedded table.
func Recorded() Table { return table }

func mustParse(text []byte) Table {
	t, err := Parse(text)
	if err != nil {
		panic("recorded.json, which is embedded: " + err.Error())
	}
	return t
}
