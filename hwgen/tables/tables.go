// Package tables prints the tables of package wire: as Verilog for the gateware, Python
// for the benches, C and JSON for users of a generated card, and Markdown for people.
//
// Committed lists the printed files in the repository. A test compares them with the
// tables, and rewrites them with -update.
package tables

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tributary/driver/wire"
)

// Committed maps the path of each printed file in the repository, relative to
// its root, to the function that prints it.
var Committed = map[string]func() []byte{
	"rtl/zwire.vh":             Verilog,
	"rtl/znetwork.vh":          NetworkVerilog,
	"rtl/ztrees.vh":            TreeVerilog,
	"rtl/zroce.vh":             RoCEVerilog,
	"cocotb/zwire.py":          Python,
	"driver/wire/PACKET.md":    Packet,
	"driver/wire/REGISTERS.md": Registers,
}

// constant is an integer constant.
type constant struct {
	name  string
	value uint64
	width int // bits, for languages that need it
	doc   string
}

// section is a group of constants under a heading.
type section struct {
	title     string
	constants []constant
}

// sections lists the constants shared by gateware and benches.
func sections() []section {
	header := section{title: "Header: place and width of each field, in bits"}
	for _, f := range wire.Fields {
		name := "HDR_" + strings.ToUpper(f.Name)
		header.constants = append(header.constants,
			constant{name + "_LSB", uint64(f.Bit), 32, ""},
			constant{name + "_BITS", uint64(f.Bits), 32, ""})
	}
	header.constants = append(header.constants,
		constant{"HDR_BASE_BYTES", wire.BaseHeaderBytes, 32, "every kind"},
		constant{"HDR_MASK_BYTES", wire.MaskHeaderBytes, 32, "with a mask"},
		constant{"HDR_MAX_BYTES", wire.MaxHeaderBytes, 32, "with a mask and receivers"})

	kinds := section{title: "Kinds", constants: []constant{{"VERSION", wire.Version, 4, "of the protocol"}}}
	for _, k := range wire.Kinds {
		kinds.constants = append(kinds.constants, constant{"KIND_" + strings.ToUpper(k.Name), uint64(k.Kind), 4, ""})
	}

	flags := section{title: "Flags and ECN", constants: []constant{
		{"FLAG_PARTIAL", wire.FlagPartial, 8, ""},
		{"FLAG_NONFINITE", wire.FlagNonfinite, 8, ""},
		{"ECN_NOT_ECT", uint64(wire.NotECT), 2, ""},
		{"ECN_ECT1", uint64(wire.ECT1), 2, ""},
		{"ECN_ECT0", uint64(wire.ECT0), 2, ""},
		{"ECN_CE", uint64(wire.CE), 2, ""},
	}}

	codes := section{title: "Codes"}
	for _, c := range wire.Codes {
		codes.constants = append(codes.constants, constant{"CODE_" + strings.ToUpper(c.Name), uint64(c.Code), 8, ""})
	}

	formats := section{title: "Formats, sums, shells"}
	for _, f := range wire.Formats {
		formats.constants = append(formats.constants, constant{"FORMAT_" + strings.ToUpper(f.Name), uint64(f.Format), 8, ""})
	}
	for _, sum := range wire.Sums {
		formats.constants = append(formats.constants, constant{"SUM_" + strings.ToUpper(sum.Name), uint64(sum.Sum), 8, ""})
	}
	for _, shell := range wire.Shells {
		formats.constants = append(formats.constants, constant{"SHELL_" + strings.ToUpper(shell.Name), uint64(shell.Shell), 8, ""})
	}

	link := section{title: "Byte-stream link", constants: []constant{
		{"SYNC", syncWord(), 32, "first byte on the link in the lowest byte"},
		{"CRC_POLY", wire.CRCPoly, 16, ""},
		{"CRC_INIT", wire.CRCInit, 16, ""},
		{"MAX_FRAME_BYTES", wire.MaxFrameBytes, 32, ""},
	}}

	registers := section{title: "Registers: byte addresses", constants: []constant{{"MAGIC", wire.Magic, 64, ""}}}
	registers.addRegisters(wire.Registers)
	registers.constants = append(registers.constants, constant{"REG_COUNTERS", uint64(wire.CounterBase), 32, "first counter; the next is 8 further"},
		constant{"REG_JOBS_BASE", uint64(wire.JobBase), 32, "first register of job 0"},
		constant{"REG_JOB_LAG", uint64(wire.LagBase), 32, "first count of job 0, rank 0"},
		constant{"REG_JOB_STRIDE", uint64(wire.JobStride), 32, "from one job's registers to the next one's"})

	counters := section{title: "Counters: index from REG_COUNTERS, in registers"}
	counters.addCounters(wire.Counters)
	counters.constants = append(counters.constants, constant{"COUNTERS", uint64(len(wire.Counters)), 32, "how many there are"})

	return []section{header, kinds, flags, codes, formats, link, registers, counters}
}

// networkSections lists the constants of cards on a network that gateware and benches share besides.
func networkSections() []section {
	registers := section{title: "Registers on a network: byte addresses"}
	registers.addRegisters(wire.NetworkRegisters)
	registers.constants = append(registers.constants,
		constant{"REG_MEMBER_STRIDE", uint64(wire.MemberStride), 32, "from one port's registers to the next one's"},
		constant{"REG_TABLE_STRIDE", uint64(wire.TableStride), 32, "from one job's entries to the next one's"},
		constant{"MAX_LEASE", wire.MaxLease, 64, "of LEASE"},
		constant{"NETWORK_PORT", uint64(wire.NetworkPort), 16, "the UDP port of a card, unless it is given another"})

	counters := section{title: "Counters on a network: index from the first of them, in registers"}
	counters.addCounters(wire.NetworkCounters)
	counters.constants = append(counters.constants,
		constant{"REG_NETWORK_COUNTERS", uint64(wire.CounterAddr(len(wire.Counters))), 32, "first of them"},
		constant{"NETWORK_COUNTERS", uint64(len(wire.NetworkCounters)), 32, "how many there are"})
	return []section{registers, counters}
}

// treeSections lists the constants of cards with an up port, and of the ranks of their members, that
// gateware and benches share besides.
func treeSections() []section {
	registers := section{title: "Registers of trees of cards: byte addresses"}
	registers.addRegisters(wire.TreeRegisters)
	registers.constants = append(registers.constants,
		constant{"REG_RANKS_STRIDE", uint64(wire.RanksStride), 32, "from one port's MEMBER_RANKS or JOB_RANKS to the next one's"},
		constant{"REG_RANKS_TABLE_STRIDE", uint64(wire.RanksTableStride), 32, "from one job's JOB_RANKS to the next one's"},
		constant{"MAX_REPEAT", wire.MaxRepeat, 32, "of JOB_REPEAT"},
		constant{"SHELL_PARENT", wire.ShellParentFlag, 16, "the bit of SHELL: the card has an up port"})

	counters := section{title: "Counters of the up port: index from the first of them, in registers"}
	counters.addCounters(wire.UpCounters)
	counters.constants = append(counters.constants,
		constant{"REG_UP_COUNTERS", uint64(wire.UpCounterBase), 32, "first of them, for every shell"},
		constant{"UP_COUNTERS", uint64(len(wire.UpCounters)), 32, "how many there are"})
	return []section{registers, counters}
}

// roceSections lists the constants of shell roce that gateware and benches share besides.
func roceSections() []section {
	registers := section{title: "Registers of shell roce: byte addresses"}
	registers.addRegisters(wire.ConnectionRegisters)
	registers.constants = append(registers.constants,
		constant{"REG_CONNECTION_STRIDE", uint64(wire.ConnectionStride), 32, "from one port's connection to the next one's"},
		constant{"REG_CONNECTION_TABLE_STRIDE", uint64(wire.ConnectionTableStride), 32, "from one job's connections to the next one's"},
		constant{"REG_NEIGHBOUR_STRIDE", uint64(wire.NeighbourStride), 32, "from one neighbour's registers to the next one's"})

	counters := section{title: "Counters of shell roce: index from the first of them, in registers"}
	counters.addCounters(wire.ConnectionCounters)
	counters.constants = append(counters.constants,
		constant{"REG_CONNECTION_COUNTERS", uint64(wire.CounterAddr(len(wire.Counters) + len(wire.NetworkCounters))), 32, "first of them"},
		constant{"CONNECTION_COUNTERS", uint64(len(wire.ConnectionCounters)), 32, "how many there are"})
	return []section{registers, counters}
}

// addRegisters adds the addresses of registers.
func (s *section) addRegisters(table []wire.Register) {
	for _, r := range table {
		s.constants = append(s.constants, constant{"REG_" + r.Name, uint64(r.Addr), 32, ""})
	}
}

// addCounters adds the indices of counters in their table.
func (s *section) addCounters(table []wire.CounterInfo) {
	for i, c := range table {
		s.constants = append(s.constants, constant{"COUNT_" + strings.ToUpper(c.Name), uint64(i), 32, ""})
	}
}

// syncWord returns the sync word as a number, first byte lowest.
func syncWord() uint64 {
	var v uint64
	for i, b := range wire.Sync {
		v |= uint64(b) << (8 * i)
	}
	return v
}

const origin = "Printed from the tables in driver/wire; change them, then run: go test ./hwgen/tables -update"

// Verilog prints the constants of all cards as localparams, for inclusion in a module body.
func Verilog() []byte { return verilog("Protocol constants", sections()) }

// NetworkVerilog prints likewise what cards on a network have besides.
func NetworkVerilog() []byte {
	return verilog("Protocol constants of cards on a network", networkSections())
}

// TreeVerilog prints likewise what trees of cards have besides.
func TreeVerilog() []byte { return verilog("Protocol constants of trees of cards", treeSections()) }

// RoCEVerilog prints likewise what cards under RoCEv2 have besides.
func RoCEVerilog() []byte { return verilog("Protocol constants of cards under RoCEv2", roceSections()) }

func verilog(title string, list []section) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s, to be included inside a module body.\n// %s\n\n", title, origin)
	fmt.Fprintf(&b, "/* verilator lint_off UNUSEDPARAM */  // no module uses them all\n")
	for _, s := range list {
		fmt.Fprintf(&b, "\n// %s\n", s.title)
		for _, c := range s.constants {
			text := fmt.Sprintf("localparam [%d:0] %s = %s;", c.width-1, c.name, verilogNumber(c))
			if c.width == 32 {
				text = fmt.Sprintf("localparam integer %s = %s;", c.name, verilogNumber(c))
			}
			if c.doc != "" {
				text += "  // " + c.doc
			}
			fmt.Fprintln(&b, text)
		}
	}
	fmt.Fprintf(&b, "/* verilator lint_on UNUSEDPARAM */\n")
	return b.Bytes()
}

func verilogNumber(c constant) string {
	switch {
	case c.width == 32 && c.value < 1<<31 && c.value < 256:
		return fmt.Sprint(c.value)
	case c.width >= 16:
		return fmt.Sprintf("%d'h%x", c.width, c.value)
	default:
		return fmt.Sprintf("%d'd%d", c.width, c.value)
	}
}

// Python prints the constants as a module of the benches, and the fields, kinds, formats,
// codes, registers and counters as dictionaries and a list.
func Python() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\"\"\"Protocol constants.\n\n%s\n\"\"\"\n", origin)
	for _, s := range slices.Concat(sections(), networkSections(), treeSections(), roceSections()) {
		fmt.Fprintf(&b, "\n# %s\n", s.title)
		for _, c := range s.constants {
			fmt.Fprintf(&b, "%s = 0x%X\n", c.name, c.value)
		}
	}
	fmt.Fprintf(&b, "\n# Name of a field: (lowest bit, bits)\nFIELDS = {\n")
	for _, f := range wire.Fields {
		fmt.Fprintf(&b, "    %q: (%d, %d),\n", f.Name, f.Bit, f.Bits)
	}
	fmt.Fprintf(&b, "}\n\n# Kind: (name, has mask, has receivers on a shared link, has payload, from the card)\nKINDS = {\n")
	for _, k := range wire.Kinds {
		fmt.Fprintf(&b, "    %d: (%q, %s, %s, %s, %s),\n", k.Kind, k.Name, pyBool(k.Mask), pyBool(k.Receivers), pyBool(k.Payload), pyBool(k.FromCard))
	}
	fmt.Fprintf(&b, "}\n\n# Name: (number, bits, bits of the exponent, of the fraction, has infinities, NaN result)\nFORMATS = {\n")
	for _, f := range wire.Formats {
		fmt.Fprintf(&b, "    %q: (%d, %d, %d, %d, %s, 0x%X),\n", f.Name, f.Format, f.Bits, f.Exp, f.Frac, pyBool(f.Infinity), f.NaN)
	}
	fmt.Fprintf(&b, "}\n\n# Sum: what a port that is no member contributes, in each format\nIDENTITIES = {\n")
	for _, sum := range wire.Sums {
		fmt.Fprintf(&b, "    %q: {", sum.Name)
		for i, f := range wire.Formats {
			fmt.Fprintf(&b, "%s%q: 0x%X", []string{"", ", "}[min(i, 1)], f.Name, sum.Sum.Identity(f.Format))
		}
		fmt.Fprintf(&b, "},\n")
	}
	fmt.Fprintf(&b, "}\n\nCODES = {\n")
	for _, c := range wire.Codes {
		fmt.Fprintf(&b, "    %d: %q,\n", c.Code, c.Name)
	}
	fmt.Fprintf(&b, "}\n\n# Name: (address, access, covered by CONFIG_HASH)\nREGISTERS = {\n")
	for _, r := range wire.Registers {
		fmt.Fprintf(&b, "    %q: (0x%X, %q, %s),\n", r.Name, r.Addr, r.Access, pyBool(r.Ident))
	}
	fmt.Fprintf(&b, "}\n\n# The same for cards on a network; those of the first port and job\nNETWORK_REGISTERS = {\n")
	for _, r := range wire.NetworkRegisters {
		fmt.Fprintf(&b, "    %q: (0x%X, %q, %s),\n", r.Name, r.Addr, r.Access, pyBool(r.Ident))
	}
	fmt.Fprintf(&b, "}\n\n# The same of trees of cards; those of the first port and job\nTREE_REGISTERS = {\n")
	for _, r := range wire.TreeRegisters {
		fmt.Fprintf(&b, "    %q: (0x%X, %q, %s),\n", r.Name, r.Addr, r.Access, pyBool(r.Ident))
	}
	fmt.Fprintf(&b, "}\n\n# The same for shell roce; those of the first port and job\nCONNECTION_REGISTERS = {\n")
	for _, r := range wire.ConnectionRegisters {
		fmt.Fprintf(&b, "    %q: (0x%X, %q, %s),\n", r.Name, r.Addr, r.Access, pyBool(r.Ident))
	}
	fmt.Fprintf(&b, "}\n\n# Counters in order: (name, code of the refusal it counts, or 0)\nCOUNTER_NAMES = [\n")
	for _, c := range wire.Counters {
		fmt.Fprintf(&b, "    (%q, %d),\n", c.Name, c.Refuse)
	}
	fmt.Fprintf(&b, "]\n\n# Counters on a network, in order\nNETWORK_COUNTER_NAMES = [\n")
	for _, c := range wire.NetworkCounters {
		fmt.Fprintf(&b, "    %q,\n", c.Name)
	}
	fmt.Fprintf(&b, "]\n\n# Counters of the up port, in order\nUP_COUNTER_NAMES = [\n")
	for _, c := range wire.UpCounters {
		fmt.Fprintf(&b, "    %q,\n", c.Name)
	}
	fmt.Fprintf(&b, "]\n\n# Counters of shell roce, in order, after those on a network\nCONNECTION_COUNTER_NAMES = [\n")
	for _, c := range wire.ConnectionCounters {
		fmt.Fprintf(&b, "    %q,\n", c.Name)
	}
	fmt.Fprintf(&b, "]\n")
	return b.Bytes()
}

func pyBool(v bool) string {
	if v {
		return "True"
	}
	return "False"
}

// C prints the constants as a C header. All names start with prefix in upper case.
func C(prefix string, shell wire.Shell, parent bool) []byte {
	all := sections()
	if shell.Network() {
		all = append(all, networkSections()...)
	}
	if shell == wire.ShellRoCE {
		all = append(all, roceSections()...)
	}
	if parent {
		all = append(all, treeSections()...)
	}
	p := strings.ToUpper(prefix)
	var b bytes.Buffer
	fmt.Fprintf(&b, "/* Registers, codes and header constants of the card. */\n#ifndef %s_REGS_H\n#define %s_REGS_H\n", p, p)
	for _, s := range all {
		fmt.Fprintf(&b, "\n/* %s */\n", s.title)
		for _, c := range s.constants {
			suffix := ""
			if c.width == 64 {
				suffix = "ull"
			}
			fmt.Fprintf(&b, "#define %s_%s 0x%x%s\n", p, c.name, c.value, suffix)
		}
	}
	fmt.Fprintf(&b, "\n#endif\n")
	return b.Bytes()
}

// JSONRegister is one register as regs.json and manifest.json show it.
type JSONRegister struct {
	Name   string `json:"name"`
	Addr   string `json:"address"`
	Access string `json:"access"`
	Stride string `json:"stride,omitempty"`        // from a job's register to the next job's
	Port   string `json:"port_stride,omitempty"`   // from a port's register to the next port's
	Rank   string `json:"rank_stride,omitempty"`   // from a rank's count to the next rank's
	Bucket string `json:"bucket_stride,omitempty"` // from a bucket to the next
	Doc    string `json:"doc"`
}

// RegisterList returns every register of a card with that shell, and with or without an up port,
// including the counters, by address.
func RegisterList(shell wire.Shell, parent bool) []JSONRegister {
	var rows, others []JSONRegister
	jobs := slices.IndexFunc(wire.Registers, wire.Register.PerJob)
	for _, r := range wire.Registers[:jobs] {
		rows = append(rows, registerRow(r))
	}
	rows = append(rows, counterRows(wire.CounterBase, wire.Counters)...)
	if shell.Network() {
		others = networkRows()
	}
	if shell == wire.ShellRoCE {
		others = append(others, connectionRows()...)
	}
	if parent {
		for _, row := range treeRows() {
			if shell.Network() || !strings.HasPrefix(row.Name, "PARENT_") {
				others = append(others, row)
			}
		}
	}
	for _, r := range wire.Registers[jobs:] {
		row := registerRow(r)
		row.Stride = fmt.Sprintf("0x%x", wire.JobStride)
		rows = append(rows, row)
	}
	rows = append(rows, JSONRegister{
		Name:   "JOB_LAG",
		Addr:   fmt.Sprintf("0x%x", wire.LagBase),
		Access: wire.ReadOnly.String(),
		Stride: fmt.Sprintf("0x%x", wire.LagJobStride),
		Rank:   fmt.Sprintf("0x%x", wire.LagRankStride),
		Bucket: fmt.Sprintf("0x%x", wire.LagBucketStride),
		Doc:    wire.LagDoc,
	})
	return byAddress(append(rows, others...))
}

// networkRows returns the registers and counters that cards on a network have besides.
func networkRows() []JSONRegister {
	var rows []JSONRegister
	for _, r := range wire.NetworkRegisters {
		row := registerRow(r)
		if r.Addr >= wire.RegMemberAddress {
			row.Port = fmt.Sprintf("0x%x", wire.MemberStride)
		}
		if r.Addr >= wire.RegJobAddress {
			row.Stride = fmt.Sprintf("0x%x", wire.TableStride)
		}
		rows = append(rows, row)
	}
	return append(rows, counterRows(wire.CounterAddr(len(wire.Counters)), wire.NetworkCounters)...)
}

// connectionRows returns the registers and counters that cards under RoCEv2 have besides.
func connectionRows() []JSONRegister {
	var rows []JSONRegister
	for _, r := range wire.ConnectionRegisters {
		row := registerRow(r)
		switch {
		case r.Addr == wire.RegJobConnection:
			row.Stride, row.Port = fmt.Sprintf("0x%x", wire.ConnectionTableStride), fmt.Sprintf("0x%x", wire.ConnectionStride)
		case r.Addr == wire.RegMemberConnection:
			row.Port = fmt.Sprintf("0x%x", wire.ConnectionStride)
		case r.Addr >= wire.RegNeighbourAddress:
			row.Port = fmt.Sprintf("0x%x", wire.NeighbourStride)
		}
		rows = append(rows, row)
	}
	first := wire.CounterAddr(len(wire.Counters) + len(wire.NetworkCounters))
	return byAddress(append(rows, counterRows(first, wire.ConnectionCounters)...))
}

// treeRows returns the registers and counters of trees of cards.
func treeRows() []JSONRegister {
	var rows []JSONRegister
	for _, r := range wire.TreeRegisters {
		row := registerRow(r)
		switch {
		case r.Addr == wire.RegMemberRanks:
			row.Port = fmt.Sprintf("0x%x", wire.RanksStride)
		case r.Addr == wire.RegJobRanks:
			row.Stride, row.Port = fmt.Sprintf("0x%x", wire.RanksTableStride), fmt.Sprintf("0x%x", wire.RanksStride)
		case r.PerJob():
			row.Stride = fmt.Sprintf("0x%x", wire.JobStride)
		}
		rows = append(rows, row)
	}
	return byAddress(append(rows, counterRows(wire.UpCounterBase, wire.UpCounters)...))
}

func registerRow(r wire.Register) JSONRegister {
	return JSONRegister{Name: r.Name, Addr: fmt.Sprintf("0x%03x", r.Addr), Access: r.Access.String(), Doc: r.Doc}
}

// counterRows returns the registers of counters, given the address of the first.
func counterRows(first uint32, counters []wire.CounterInfo) (rows []JSONRegister) {
	for i, c := range counters {
		rows = append(rows, JSONRegister{
			Name:   "COUNT_" + strings.ToUpper(c.Name),
			Addr:   fmt.Sprintf("0x%03x", first+8*uint32(i)),
			Access: wire.ReadOnly.String(),
			Doc:    counterDoc(c),
		})
	}
	return rows
}

// byAddress sorts rows; longer addresses are higher.
func byAddress(rows []JSONRegister) []JSONRegister {
	slices.SortStableFunc(rows, func(a, b JSONRegister) int {
		return cmp.Or(cmp.Compare(len(a.Addr), len(b.Addr)), cmp.Compare(a.Addr, b.Addr))
	})
	return rows
}

// JSON prints the registers of RegisterList as regs.json.
func JSON(shell wire.Shell, parent bool) []byte {
	text, err := json.MarshalIndent(struct {
		Schema    int            `json:"schema"`
		Registers []JSONRegister `json:"registers"`
	}{1, RegisterList(shell, parent)}, "", "  ")
	if err != nil {
		panic(err) // cannot happen: only strings and integers
	}
	return append(text, '\n')
}

func counterDoc(c wire.CounterInfo) string {
	if c.Refuse != 0 {
		return "Packets refused with `" + c.Refuse.String() + "`."
	}
	return c.Doc
}

// RegisterTable prints the registers of RegisterList as a Markdown table.
func RegisterTable(shell wire.Shell, parent bool) string {
	return registerTable(RegisterList(shell, parent))
}

func registerTable(rows []JSONRegister) string {
	var b strings.Builder
	b.WriteString("| address | register | access | meaning |\n|---|---|---|---|\n")
	for _, r := range rows {
		each := ""
		for _, stride := range []struct{ bytes, of string }{{r.Stride, "job"}, {r.Port, "port"}, {r.Rank, "rank"}, {r.Bucket, "bucket"}} {
			if stride.bytes != "" {
				each += fmt.Sprintf(" + %s·%s", stride.bytes, stride.of)
			}
		}
		fmt.Fprintf(&b, "| `%s`%s | `%s` | %s | %s |\n", r.Addr, each, r.Name, r.Access, r.Doc)
	}
	return b.String()
}

// Registers prints the page REGISTERS.md.
func Registers() []byte {
	return []byte("# Registers\n\n" + origin + "\n\nAll registers are 64 bits wide, at byte addresses that are multiples of 8. Counters have 32 bits\nand wrap around; a soft reset clears them. Section 4 of [SPEC.md](SPEC.md) defines the effect of a write.\n\n" + RegisterTable(wire.ShellStream, false) + networkTable() + treeTable() + connectionTable() + boundTable())
}

// connectionTable prints the registers and counters that cards under RoCEv2 have besides.
func connectionTable() string {
	return "\n## Registers of a card under RoCEv2\n\nThey exist with shell roce alone, beside those of a card on a network. ROCE.md defines the effect of\na write.\n\n" +
		registerTable(connectionRows())
}

// networkTable prints the registers and counters that cards on a network have besides.
func networkTable() string {
	return "\n## Registers of a card on a network\n\nThey exist with the shells udp and roce alone. NETWORK.md defines the effect of a write.\n\n" +
		registerTable(networkRows())
}

// treeTable prints the registers and counters of trees of cards.
func treeTable() string {
	return "\n## Registers of trees of cards\n\nThese registers exist on cards with an up port alone, which set bit 8 of `SHELL`. `PARENT_ADDRESS`\nand `PARENT_MAC` need shell udp, too. TREES.md defines the effect of a write.\n\n" +
		registerTable(treeRows())
}

// boundTable prints the range of each register of the identification block.
func boundTable() string {
	var b strings.Builder
	b.WriteString("\n## Bounds of the identification block\n\nA host refuses a card whose register is out of its bound. Section 4 of [SPEC.md](SPEC.md) has the\nrules between registers.\n\n| register | bound |\n|---|---|\n")
	for _, bound := range wire.Bounds {
		fmt.Fprintf(&b, "| `%s` | %s |\n", bound.Name(), bound)
	}
	return b.String()
}

// HeaderTable prints the fields of the header as a Markdown table.
func HeaderTable() string {
	var b strings.Builder
	b.WriteString("| field | bytes | bits | meaning |\n|---|---|---|---|\n")
	for _, f := range wire.Fields {
		first, last := f.Bit/8, (f.Bit+f.Bits-1)/8
		bytes := fmt.Sprint(first)
		if last > first {
			bytes = fmt.Sprintf("%d–%d", first, last)
		}
		if f.Bits < 8 {
			bytes += fmt.Sprintf(", bits %d–%d", f.Bit%8, f.Bit%8+f.Bits-1)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s |\n", f.Name, bytes, f.Bits, f.Doc)
	}
	return b.String()
}

// CodeTable prints the codes of statuses and replies as a Markdown table.
func CodeTable() string {
	var b strings.Builder
	b.WriteString("| number | code | meaning |\n|---|---|---|\n")
	for _, c := range wire.Codes {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", c.Code, c.Name, c.Doc)
	}
	return b.String()
}

// Packet prints the page PACKET.md.
func Packet() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The packet\n\n%s\n\n[SPEC.md](SPEC.md) defines what a card does with the fields.\n\n## Header\n\n%s", origin, HeaderTable())
	b.WriteString("\n## Kinds\n\n| number | kind | from | header | frame on a byte stream | meaning |\n|---|---|---|---|---|---|\n")
	for _, k := range wire.Kinds {
		from := "host"
		if k.FromCard {
			from = "card"
		}
		frame := fmt.Sprint(k.FrameBytes(0))
		if k.Payload {
			frame += " + payload"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %d | %s | %s |\n", k.Kind, k.Name, from, k.HeaderBytes(true), frame, k.Doc)
	}
	fmt.Fprintf(&b, "\nHeader: bytes without its CRC, on a shared link. Frame: bytes with sync word and CRCs.\n\n## Codes\n\n%s", CodeTable())
	b.WriteString("\n## Formats\n\n| number | format | bits |\n|---|---|---|\n")
	for _, f := range wire.Formats {
		fmt.Fprintf(&b, "| %d | %s | %d |\n", f.Format, f.Name, f.Bits)
	}
	return b.Bytes()
}
