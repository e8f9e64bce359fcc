package emit

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"tributary/hwgen/cells"
	"tributary/hwgen/netlist"
	"tributary/hwgen/plan"
	"tributary/hwgen/tables"
)

//go:embed datasheet.md.tmpl
var datasheetText string

// datasheet returns the card's README.md.
func datasheet(p *plan.Plan, m Manifest) ([]byte, error) {
	ports, err := portTable(p.Top(), p.Shell)
	if err != nil {
		return nil, err
	}
	return execute("datasheet.md.tmpl", datasheetText, struct {
		Manifest
		SumDoc, ShellDoc string
		Bound            string // how far a result may be off
		Cells            string // of a lane, as recorded
		ResultElemBits   int
		HasLink          bool
		LastPort         int
		ElemBits         int
		PortTable        string
		Instance         string
		RegisterTable    string
	}{m, p.SumDoc(), p.Shell.Doc, p.Bound(), laneCells(p), p.ResultBits, p.Shell.Link, p.Workers - 1, p.ElemBits,
		ports, instance(p.Top(), p.Prefix), tables.RegisterTable()})
}

// laneCells says what one lane takes of an FPGA, or nothing where that is not
// recorded.
func laneCells(p *plan.Plan) string {
	row, ok := cells.Find(cells.Lane{
		Sum: p.Sum.Name, Format: p.Format.Name, Result: p.Result.Name,
		Workers: p.Workers, DSP: p.DSP, Saturate: p.Saturate,
	})
	if !ok {
		return ""
	}
	text := fmt.Sprintf("%d COMB, %d FF", row.COMB, row.FF)
	if row.BRAM > 0 {
		text += fmt.Sprintf(", %d block RAMs", row.BRAM)
	}
	if row.DSP > 0 {
		text += fmt.Sprintf(", %d DSP blocks", row.DSP)
	}
	text += " of a Lattice ECP5"
	if row.MHz > 0 {
		text += fmt.Sprintf("; %.0f MHz on an %s", row.MHz, row.Part)
	}
	if row.Basis != "" {
		text += " (" + row.Basis + ")"
	}
	return text + ". Yosys: `" + cells.SynthECP5 + "`"
}

// portDocs says what the ports of a card are for; _p{n} stands for _p0, _p1, ...
var portDocs = map[string]string{
	"clk":          "Clock of everything.",
	"rst":          "Synchronous reset, active high: hold it for a cycle or more after power-up. Ends all jobs, clears counters, OWNER and the last epochs.",
	"link_up":      "The host's link is up; synchronous to clk, and a cycle of low is enough. When it falls all jobs end and OWNER is cleared; counters stay. Until it is high again and the jobs have drained, nothing of a new host is taken.",
	"beat_strobe":  "High in a cycle in which a beat enters the lanes.",
	"error_strobe": "High in a cycle in which a frame from the host proves damaged.",

	"link_rx_tdata":  "From the host: bytes, the first in the lowest bits.",
	"link_rx_tkeep":  "Which bytes count: contiguous from bit 0, at least one; any number in any word.",
	"link_rx_tvalid": "A word is there.",
	"link_rx_tready": "It is taken.",
	"link_tx_tdata":  "To the host: bytes, the first in the lowest bits.",
	"link_tx_tkeep":  "Which bytes count: contiguous from bit 0, at least one; any number in any word.",
	"link_tx_tvalid": "A word is there; it stays until it is taken.",
	"link_tx_tready": "It is taken.",

	"s_axis_p{n}_tdata":  "From worker n: one beat, lane 0 in the lowest bits.",
	"s_axis_p{n}_tkeep":  "All ones in a beat of payload; zero in a packet without payload, which is one beat.",
	"s_axis_p{n}_tvalid": "A beat is there.",
	"s_axis_p{n}_tready": "It is taken. Never waits for another port, nor for results.",
	"s_axis_p{n}_tlast":  "Last beat of the packet.",
	"s_axis_p{n}_tuser":  "Bits 111:0 the header, byte k in bits 8k+7..8k, on the first beat. Bit 112, on the last beat: the payload is damaged; the packet changes nothing.",
	"m_axis_p{n}_tdata":  "To worker n: one beat, lane 0 in the lowest bits.",
	"m_axis_p{n}_tkeep":  "All ones in a beat of payload; zero in a status, which is one beat.",
	"m_axis_p{n}_tvalid": "A beat is there; it stays until it is taken.",
	"m_axis_p{n}_tready": "It is taken. A port that does not take its results keeps no other waiting.",
	"m_axis_p{n}_tlast":  "Last beat of the packet.",
	"m_axis_p{n}_tuser":  "The header with its mask, byte k in bits 8k+7..8k, for the whole packet.",

	"s_reg_valid": "A register access is there.",
	"s_reg_write": "It is a write.",
	"s_reg_addr":  "Byte address, a multiple of 8.",
	"s_reg_wdata": "What is written.",
	"s_reg_ready": "The access is taken.",
	"m_reg_valid": "An access is answered; answers come in the order of the accesses.",
	"m_reg_ready": "The answer is taken.",
	"m_reg_code":  "0 done, else why not.",
	"m_reg_value": "What the register holds now; 0 for a refusal without a value.",
}

var numbered = regexp.MustCompile(`_p[0-9]+_`)

// portTable returns the ports of the top as a Markdown table. The ports of all
// workers are described once.
func portTable(top *netlist.Module, shell plan.Shell) (string, error) {
	var b strings.Builder
	b.WriteString("| port | | bits | meaning |\n|---|---|---|---|\n")
	seen := map[string]bool{}
	for _, it := range top.Ports {
		port, ok := it.(*netlist.Port)
		if !ok {
			continue
		}
		name := numbered.ReplaceAllString(port.Name, "_p{n}_")
		if seen[name] {
			continue
		}
		seen[name] = true
		doc, ok := portDocs[name]
		if !ok {
			return "", fmt.Errorf("the datasheet does not know port %s", name)
		}
		if name == "link_up" {
			doc += " " + shell.Down
		}
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s |\n", name, directionWord(port.Direction), port.Width, doc)
	}
	return b.String(), nil
}

func directionWord(d netlist.Direction) string {
	if d == netlist.In {
		return "in"
	}
	return "out"
}

// instance returns a text that instantiates the top, every port on a wire of
// its own name.
func instance(top *netlist.Module, prefix string) string {
	var connections []string
	width := 0
	for _, it := range top.Ports {
		if port, ok := it.(*netlist.Port); ok {
			width = max(width, len(port.Name))
		}
	}
	for _, it := range top.Ports {
		if port, ok := it.(*netlist.Port); ok {
			connections = append(connections, fmt.Sprintf("    .%-*s(%s)", width, port.Name, port.Name))
		}
	}
	return fmt.Sprintf("%s u_%s (\n%s\n);", rename(top.Name, prefix), prefix, strings.Join(connections, ",\n"))
}
