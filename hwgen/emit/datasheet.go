package emit

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tributary/driver/wire"
	"tributary/hwgen/cells"
	"tributary/hwgen/netlist"
	"tributary/hwgen/plan"
	"tributary/hwgen/tables"
)

//go:embed datasheet.md.tmpl
var datasheetText string

//go:embed datasheet_roce.md.tmpl
var roceText string

// datasheet returns the card's README.md.
func datasheet(p *plan.Plan, m Manifest) ([]byte, error) {
	ports, err := portTable(p.Top(), p.Shell)
	if err != nil {
		return nil, err
	}
	return execute("datasheet.md.tmpl", datasheetText+roceText, struct {
		Manifest
		SumDoc, ShellDoc string
		Bound            string // maximum error of a result
		Cells            string // recorded cells of a lane; "" if not recorded
		ResultElemBits   int
		HasLink          bool
		HasPorts         bool // the top has a stream for each port of the core, and a register port
		LastPort         int
		ElemBits         int
		PortTable        string
		Instance         string
		RegisterTable    string
		HeaderTable      string
		CodeTable        string
		Recipe           string
		SumRules         string
		Zero             []string // sentences about counters that stay zero
		RateWindow       int      // smallest window with which the largest chunks pass at their rate
		WindowCycles     int      // cycles that such a chunk takes with a smaller one
	}{m, p.SumDoc(), p.Shell.Doc, p.Bound(), laneCells(p), p.ResultBits, p.Shell.Link, p.RegPort != "", p.Workers - 1, p.ElemBits,
		ports, instance(p.Top(), p.Prefix), tables.RegisterTable(p.Shell.Code, p.Parent),
		tables.HeaderTable(), tables.CodeTable(), newRecipe(p), sumRules(p), zeroCounters(p), p.RateWindow(), p.WindowCycles()})
}

// sumRules returns the order of a sum, the contribution of absent ports, and the NaNs.
func sumRules(p *plan.Plan) string {
	identity := fmt.Sprintf("%0*x", p.ElemBits/4, p.Sum.Code.Identity(p.Format.Format))
	text := fmt.Sprintf("A port that is no member of a job contributes %s to its sums, which changes none of them", identity)
	switch {
	case !p.Format.Float():
		return text + ". The order of ports does not matter."
	case p.Sum.Code == wire.SumTree:
		text += fmt.Sprintf(".\nThe tree is that of all ports of the card, also for a job of fewer members: %s", treeOrder(p.Workers))
	default:
		text += ". The order of ports does not matter"
	}
	return text + fmt.Sprintf(".\nA result that is NaN has the bits %0*x. A contribution may have any NaN.", p.ResultBits/4, p.Result.NaN)
}

// treeOrder writes the additions of a tree with parentheses: neighbours pair up level by level, and
// an unpaired operand passes.
func treeOrder(ports int) string {
	var level []string
	for port := range ports {
		level = append(level, fmt.Sprintf("p%d", port))
	}
	for len(level) > 1 {
		var above []string
		for pair := range slices.Chunk(level, 2) {
			text := strings.Join(pair, "+")
			if len(pair) == 2 && len(level) > 2 {
				text = "(" + text + ")"
			}
			above = append(above, text)
		}
		level = above
	}
	return level[0]
}

// zeroCounters returns a sentence for each group of counters that stay zero on this card.
func zeroCounters(p *plan.Plan) (texts []string) {
	add := func(names, why string) { texts = append(texts, names+" stay zero: "+why+".") }
	switch {
	case p.Shell.Ethernet:
		add("`COUNT_HUNTED`, `COUNT_HEADER_CRC`, `COUNT_PAYLOAD_CRC` and `COUNT_LINK_DOWN`", "datagrams have one CRC, and no link falls")
	case !p.Shell.Link:
		add("`COUNT_FRAMES`, `COUNT_HUNTED` and `COUNT_HEADER_CRC`", "ports have no frames")
	}
	if p.Shell.Code == wire.ShellRoCE {
		add("`COUNT_ASKS`, `COUNT_FINISHES`, `COUNT_STATUSES` and `COUNT_STRANGER`", "workers send RoCEv2 alone, and the card answers none of it")
		add("`COUNT_PARTIAL`, `COUNT_EVICTIONS` and `COUNT_EVICTED`", "there are no partial sums")
		if p.Ethernet > 1 {
			texts = append(texts, "`COUNT_RELAYED` stays zero: the card is in path, and passes frames on.")
		}
	}
	if p.Ethernet == 1 {
		texts = append(texts, "`COUNT_PASSED` stays zero: the card has no other Ethernet port to pass frames on to.")
	}
	if p.Lane.Shared == nil {
		add("`COUNT_UNDECIDED` and `COUNT_STALLED`", "one pass through the lanes decides every beat")
	}
	if p.Sum.Code == wire.SumMax {
		add("`COUNT_OVERFLOW`, `JOB_OVERFLOW` and `JOB_FIRST_OVERFLOW`", "a largest element never overflows")
	}
	if !p.Format.Float() {
		add("`COUNT_NONFINITE_IN`, `COUNT_NONFINITE_OUT` and those of jobs", "integers have no NaN and no infinity")
	}
	return texts
}

// laneCells returns the recorded FPGA resources of one lane, or "" without a record.
func laneCells(p *plan.Plan) string {
	row, ok := cells.Find(cells.Lane{
		Sum: p.Sum.Name, Format: p.Format.Name, Result: p.Result.Name,
		Workers: p.Inputs(), DSP: p.DSP, Saturate: p.Saturate,
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

// portDoc describes a port of a card with that shell; ok is false for an unknown port.
func portDoc(name string, shell plan.Shell) (doc string, ok bool) {
	doc, ok = portDocs[name]
	switch {
	case name == "link_up":
		doc += " " + shell.Down
	case name == "rst" && shell.Ethernet:
		doc += " Restores the card's own address."
	case name == "error_strobe" && shell.Ethernet:
		return "High for one cycle for each frame that is dropped because it is damaged or not for this card.", true
	case name == "error_strobe":
		return "High for one cycle for each damaged frame from the host.", true
	}
	return doc, ok
}

// portDocs describes the ports of a card; _p{n} means _p0, _p1, ...
var portDocs = map[string]string{
	"clk":         "The only clock.",
	"rst":         "Synchronous reset, active high: hold it for at least three cycles. Ends all jobs, clears counters, OWNER and the last epochs.",
	"link_up":     "The host's link is up; synchronous to clk. One cycle of low suffices: all jobs end, and OWNER is cleared; counters remain. The card accepts a new host's packets after link_up is high again and the jobs have drained.",
	"beat_strobe": "High in each cycle in which a beat enters the lanes.",

	"link_rx_tdata":  "Bytes from the host, the first in the lowest bits.",
	"link_rx_tkeep":  "Valid bytes: contiguous from bit 0, at least one; any number in any word.",
	"link_rx_tvalid": "The word is valid.",
	"link_rx_tready": "The word is accepted.",
	"link_tx_tdata":  "Bytes to the host, the first in the lowest bits.",
	"link_tx_tkeep":  "Valid bytes: contiguous from bit 0, at least one; any number in any word.",
	"link_tx_tvalid": "The word is valid, and stable until accepted.",
	"link_tx_tready": "The word is accepted.",

	"eth_rx_p{n}_tdata":  "Bytes from the MAC of Ethernet port n, the first in the lowest bits: a frame from the destination's MAC address on, without FCS.",
	"eth_rx_p{n}_tkeep":  "Valid bytes: contiguous from bit 0; all but in a frame's last word.",
	"eth_rx_p{n}_tvalid": "The word is valid. The card takes every word.",
	"eth_rx_p{n}_tlast":  "Last word of the frame.",
	"eth_rx_p{n}_tuser":  "With the last word: the FCS was wrong, or the frame is bad for another reason.",
	"eth_tx_p{n}_tdata":  "Bytes to the MAC of Ethernet port n, likewise. A frame has 60 bytes or more; the MAC adds preamble, FCS and gap.",
	"eth_tx_p{n}_tkeep":  "Valid bytes: contiguous from bit 0; all but in a frame's last word.",
	"eth_tx_p{n}_tvalid": "The word is valid, and stable until accepted. A frame has no pause inside.",
	"eth_tx_p{n}_tready": "The MAC accepts the word.",
	"eth_tx_p{n}_tlast":  "Last word of the frame.",

	"s_axis_p{n}_tdata":  "A beat from worker n, lane 0 in the lowest bits.",
	"s_axis_p{n}_tkeep":  "All ones in a payload beat; 0 in the single beat of a packet without payload.",
	"s_axis_p{n}_tvalid": "The beat is valid.",
	"s_axis_p{n}_tready": "The card accepts the beat; does not depend on other ports or on results.",
	"s_axis_p{n}_tlast":  "Last beat of the packet.",
	"s_axis_p{n}_tuser":  "Bits 111:0: the header on the first beat, byte k in bits 8k+7..8k. Bit 112: on the last beat of data, the payload is damaged, and the packet has no effect; ignored with an ask or a finish.",
	"m_axis_p{n}_tdata":  "A beat to worker n, lane 0 in the lowest bits.",
	"m_axis_p{n}_tkeep":  "All ones in a payload beat; 0 in a status, which is a single beat.",
	"m_axis_p{n}_tvalid": "The beat is valid, and stable until accepted.",
	"m_axis_p{n}_tready": "The worker accepts the beat. A slow worker never delays other ports.",
	"m_axis_p{n}_tlast":  "Last beat of the packet.",
	"m_axis_p{n}_tuser":  "The header with its mask, byte k in bits 8k+7..8k, stable during the packet.",

	"s_axis_up_tdata":  "A beat from the parent, lane 0 in the lowest bits.",
	"s_axis_up_tkeep":  "All ones in a payload beat; 0 in a status, which is a single beat.",
	"s_axis_up_tvalid": "The beat is valid.",
	"s_axis_up_tready": "The card accepts the beat; does not depend on other ports or on results.",
	"s_axis_up_tlast":  "Last beat of the packet.",
	"s_axis_up_tuser":  "Bits 175:0: the header with its mask on the first beat, byte k in bits 8k+7..8k. Bit 176: on the last beat, the payload is damaged, and the packet has no effect.",
	"m_axis_up_tdata":  "A beat to the parent, lane 0 in the lowest bits.",
	"m_axis_up_tkeep":  "All ones in a payload beat; 0 in a finish, which is a single beat.",
	"m_axis_up_tvalid": "The beat is valid, and stable until accepted.",
	"m_axis_up_tready": "The parent accepts the beat. A slow parent never delays other ports.",
	"m_axis_up_tlast":  "Last beat of the packet.",
	"m_axis_up_tuser":  "The header, byte k in bits 8k+7..8k, stable during the packet. Its mask, in bits 175:112, is 0.",

	"s_axil_awaddr":  "Byte address of a write; bits 2:0 are ignored.",
	"s_axil_awprot":  "Ignored.",
	"s_axil_awvalid": "A write's address is pending.",
	"s_axil_awready": "The write is accepted: address and data in the same cycle, in whichever order they came.",
	"s_axil_wdata":   "Value to write.",
	"s_axil_wstrb":   "All ones; the card refuses any other write.",
	"s_axil_wvalid":  "A write's data is pending.",
	"s_axil_wready":  "As s_axil_awready.",
	"s_axil_bresp":   "OKAY, SLVERR for a refused write, DECERR for an unknown address.",
	"s_axil_bvalid":  "The response of a write; stable until accepted.",
	"s_axil_bready":  "The response is accepted. The next write is accepted only afterwards.",
	"s_axil_araddr":  "Byte address of a read; bits 2:0 are ignored.",
	"s_axil_arprot":  "Ignored.",
	"s_axil_arvalid": "A read is pending.",
	"s_axil_arready": "The read is accepted.",
	"s_axil_rdata":   "The register's value; 0 with DECERR.",
	"s_axil_rresp":   "OKAY, or DECERR for an unknown address.",
	"s_axil_rvalid":  "The response of a read; stable until accepted.",
	"s_axil_rready":  "The response is accepted. The next read is accepted only afterwards.",

	"s_reg_valid": "A register access is pending.",
	"s_reg_write": "1: write; 0: read.",
	"s_reg_addr":  "Byte address, a multiple of 8.",
	"s_reg_wdata": "Value to write.",
	"s_reg_ready": "The access is accepted.",
	"m_reg_valid": "A reply; replies follow the order of accesses.",
	"m_reg_ready": "The reply is accepted.",
	"m_reg_code":  "0: done; otherwise the reason.",
	"m_reg_value": "The register's new value; 0 for a refusal without a value.",

	"verdict_valid":  "One cycle for each data packet that entered at a worker's port: what became of it.",
	"verdict_port":   "Its port.",
	"verdict_slot":   "Its slot; 0 if its job is not set up.",
	"verdict_vid":    "Its VID.",
	"verdict_result": "0 stored, 1 duplicate, 2 owed (a duplicate whose sender is sent the result), 3 refused, 4 flushed (judged by no job: its job ended, or the link went down).",
	"verdict_code":   "Why it was not stored; 0 if it was.",
}

var numbered = regexp.MustCompile(`_p[0-9]+_`)

// portTable returns the ports of the top as a Markdown table. It describes the ports of
// all workers once.
func portTable(top *netlist.Module, shell plan.Shell) (string, error) {
	var b strings.Builder
	b.WriteString("| port | | bits | meaning |\n|---|---|---|---|\n")
	seen := map[string]bool{}
	for _, port := range ports(top) {
		name := numbered.ReplaceAllString(port.Name, "_p{n}_")
		if seen[name] {
			continue
		}
		seen[name] = true
		doc, ok := portDoc(name, shell)
		if !ok {
			return "", fmt.Errorf("the datasheet does not describe port %s", name)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s |\n", name, directionWord(port.Direction), port.Width, doc)
	}
	return b.String(), nil
}

// ports returns the ports of a module in their order.
func ports(m *netlist.Module) (list []*netlist.Port) {
	for _, it := range m.Ports {
		if port, ok := it.(*netlist.Port); ok {
			list = append(list, port)
		}
	}
	return list
}

func directionWord(d netlist.Direction) string {
	if d == netlist.In {
		return "in"
	}
	return "out"
}

// instance returns Verilog that instantiates the top, with every port on a wire of the
// same name.
func instance(top *netlist.Module, prefix string) string {
	var connections []string
	width := 0
	for _, port := range ports(top) {
		width = max(width, len(port.Name))
	}
	for _, port := range ports(top) {
		connections = append(connections, fmt.Sprintf("    .%-*s(%s)", width, port.Name, port.Name))
	}
	return fmt.Sprintf("%s u_%s (\n%s\n);", rename(top.Name, prefix), prefix, strings.Join(connections, ",\n"))
}
