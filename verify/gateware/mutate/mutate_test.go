package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.." // of the repository, from this folder

// TestEveryLeafIsNamed: every leaf is in the campaign or has a reason in leftOut.
func TestEveryLeafIsNamed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "rtl", "*", "agg_*.v"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no leaves: %v", err)
	}
	known := map[string]int{}
	for _, l := range campaignLeaves {
		known[l.name]++
	}
	for name := range leftOut {
		known[name]++
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".v")
		if known[name] != 1 {
			t.Errorf("%s is named %d times in campaignLeaves and leftOut, want once", name, known[name])
		}
		delete(known, name)
	}
	for name := range known {
		t.Errorf("%s is no file of rtl/", name)
	}
}

// TestChecksAreThere: the proofs and benches in the table exist.
func TestChecksAreThere(t *testing.T) {
	for _, l := range campaignLeaves {
		if l.proof != "" {
			text, err := os.ReadFile(filepath.Join(root, proofs, l.proof+".sby"))
			if err != nil {
				t.Error(err)
			} else if !strings.Contains(string(text), l.name+".v\n") {
				t.Errorf("%s.sby is no proof of %s", l.proof, l.name)
			}
		}
		if (len(l.benches) == 0 && l.proof == "") || (len(l.cards) == 0) != withoutCard[l.name] {
			t.Errorf("%s has %d benches and %d of cards", l.name, len(l.benches), len(l.cards))
		}
		for _, node := range slices.Concat(l.benches, l.cards) {
			file, function, _ := strings.Cut(node, "::")
			function, card, _ := strings.Cut(function, "[")
			text, err := os.ReadFile(filepath.Join(root, "cocotb", file))
			if err != nil || !strings.Contains(string(text), "\ndef "+function+"(") {
				t.Errorf("%s: there is no bench %s (%v)", l.name, node, err)
			}
			card = `    "` + strings.TrimSuffix(card, "]") + `":`
			if strings.Contains(string(text), "\nCARDS = {") && !strings.Contains(string(text), card) {
				t.Errorf("%s: there is no card of %s", l.name, node)
			}
		}
	}
	proved, err := filepath.Glob(filepath.Join(root, "rtl", "*", "*.v"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range proved {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".v")
		i := slices.IndexFunc(campaignLeaves, func(l leaf) bool { return l.name == name })
		if strings.Contains(string(text), "`ifdef FORMAL") && (i < 0 || campaignLeaves[i].proof == "") {
			t.Errorf("%s has properties, and no proof in the table", name)
		}
	}
}

// TestRecorded: the page matches the record of every leaf, and exactly the survivors have
// explanations.
func TestRecorded(t *testing.T) {
	records, err := read[record]("recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	noticed, err := read[weakened]("weakenings.json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("survivors.txt")
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := parseReasons(string(text))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile("RESULT.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(shown) != page(records, reasons, noticed) {
		t.Error("RESULT.md is not what recorded.json, weakenings.json and survivors.txt make: make mutate writes it")
	}
	for _, l := range campaignLeaves {
		if _, ok := records[l.name]; !ok {
			t.Errorf("%s is not recorded: make mutate", l.name)
		}
	}
	survive := map[string]bool{}
	for name, r := range records {
		if !slices.ContainsFunc(campaignLeaves, func(l leaf) bool { return l.name == name }) {
			t.Errorf("%s is recorded, and not in the campaign", name)
		}
		for _, f := range r.Mutants {
			if f.By == survivor {
				survive[name+" "+f.Mutant.String()] = true
			}
		}
	}
	for leaf, names := range unexplained(records, reasons) {
		t.Errorf("survivors.txt does not say why these of %s survive: %q", leaf, names)
	}
	for name := range reasons {
		if !survive[name] {
			t.Errorf("survivors.txt explains %s, which does not survive", name)
		}
	}
}

// TestWeakenings: each weakening changes its leaf as it is, has a check, and was noticed by all of
// its checks.
func TestWeakenings(t *testing.T) {
	noticed, err := read[weakened]("weakenings.json")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, x := range weakenings {
		verilog, err := x.library(root).Read(x.leaf)
		if err != nil {
			t.Errorf("weakening %s: %v", x.name, err)
			continue
		}
		if _, err := x.apply(verilog); err != nil {
			t.Error(err)
		}
		var checks []string
		if x.proof != "" {
			checks = append(checks, "proof "+x.proof)
		}
		if x.bench != "" {
			checks = append(checks, x.bench)
		}
		if len(checks) == 0 || !slices.Equal(noticed[x.name].By, checks) {
			t.Errorf("weakening %s is recorded as noticed by %q, want %q: make mutate LEAVES='%s$'",
				x.name, noticed[x.name].By, checks, x.leaf)
		}
		if names[x.name] {
			t.Errorf("two weakenings are called %s", x.name)
		}
		names[x.name] = true
	}
	for name := range noticed {
		if !names[name] {
			t.Errorf("weakenings.json has %s, which is no weakening", name)
		}
	}
}

// TestApply: a weakening changes one place, or none and fails.
func TestApply(t *testing.T) {
	x := weakening{name: "loose", leaf: "agg_x", old: "a && b", new: "a"}
	if text, err := x.apply([]byte("if (a && b) c <= a;")); err != nil || text != "if (a) c <= a;" {
		t.Errorf("it becomes %q, %v", text, err)
	}
	for _, text := range []string{"if (a || b) c <= a;", "if (a && b) c <= a && b;"} {
		if got, err := x.apply([]byte(text)); err == nil {
			t.Errorf("%q becomes %q, want an error", text, got)
		}
	}
}

func TestParseReasons(t *testing.T) {
	reasons, err := parseReasons("# For who reads.\n\na 1.2-1.3 $or#0 Y[0] inv\na 2.2-2.3 $or#0 Y[0] inv\n  Because\n  of this.\nb 1.2-1.3 $or#0 Y[0] inv\n  That.\n")
	want := map[string]string{
		"a 1.2-1.3 $or#0 Y[0] inv": "Because of this.",
		"a 2.2-2.3 $or#0 Y[0] inv": "Because of this.",
		"b 1.2-1.3 $or#0 Y[0] inv": "That.",
	}
	if err != nil || len(reasons) != len(want) {
		t.Fatalf("%q, %v; want %q", reasons, err, want)
	}
	for name, text := range want {
		if reasons[name] != text {
			t.Errorf("of %s it says %q, want %q", name, reasons[name], text)
		}
	}
	for _, wrong := range []string{"  a text alone\n", "a 1.2-1.3 $or#0 Y[0] inv\n\n", "a\n b\na\n b\n"} {
		if _, err := parseReasons(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// TestMadeFrom: the leaf of a card is known, with and without an up port, and another text is not.
func TestMadeFrom(t *testing.T) {
	const source = "// A leaf\n`ifdef AGG_PARENT\n  with;\n`else\n  without;\n`endif\n  `include \"zwire.vh\"\n  more;\n"
	const made = "// Made by: hwgen\n\n// A leaf\n"
	for text, want := range map[string]bool{
		source: false,
		made + "  without;\n  localparam A = 1;\n  more;\n": false,
		made + "  with;\n  localparam A = 1;\n  more;\n":    true,
	} {
		if parent, err := madeFrom(source, text); err != nil || parent != want {
			t.Errorf("%q: %v, %v", text, parent, err)
		}
	}
	for _, text := range []string{"", made + "  without;\n", made + "  more;\n  with;\n", made + "  more;\n"} {
		if parent, err := madeFrom(source, text); err == nil {
			t.Errorf("%q: %v", text, parent)
		}
	}
}

// TestPlaces: a mutant is found again in an elaboration with more ports and wider words.
func TestPlaces(t *testing.T) {
	small := elaboration(2, 1)
	large := elaboration(5, 3)
	line := `mutate -mode cnot0 -module agg_x -cell $and$agg_x.v:7$12 -port A -portbit 1 -ctrlbit 0`
	m, err := small.parse(line, small.spots())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.String(), "7.3-7.9 $and#1 A[1] cnot0:0"; got != want {
		t.Errorf("the mutant is %q, want %q", got, want)
	}
	if got := small.command("agg_x", m, small.spots()); got != line {
		t.Errorf("in its own elaboration: %q, want %q", got, line)
	}
	if got := large.command("agg_x", m, large.spots()); got != line {
		t.Errorf("in a larger one: %q, want %q", got, line)
	}
	m.Bit, m.Other = 4, 2
	want := `mutate -mode cnot0 -module agg_x -cell $and$agg_x.v:7$12 -port A -portbit 1 -ctrlbit 0`
	if got := small.command("agg_x", m, small.spots()); got != want {
		t.Errorf("in a smaller one: %q, want %q", got, want)
	}
	m.Target = "other_name"
	if got := small.command("agg_x", m, small.spots()); got != want {
		t.Errorf("of a net with another name: %q, want %q", got, want)
	}
	m.Where = "8.3-8.9"
	if got := small.command("agg_x", m, small.spots()); got != "" {
		t.Errorf("of a place that is not there: %q", got)
	}
}

// elaboration is a leaf with some cells in one place.
func elaboration(width, more int) *module {
	m := &module{name: `\agg_x`, wires: map[string]int{`\a`: width, "$y": width}}
	for i := range 1 + more {
		name := "$and$agg_x.v:7$" + string(rune('1'+i/10)) + string(rune('1'+i%10))
		m.cells = append(m.cells, &cell{name: name, kind: "$and", source: "agg_x.v:7.3-7.9",
			ports: map[string]string{`\A`: `\a`, `\B`: `\a`, `\Y`: "$y"}})
	}
	return m
}

// TestChoosing: the input that selects a mutant is found as Yosys writes it: among the ports, with a line's end after each 20.
func TestChoosing(t *testing.T) {
	const declared = "  input [1:0] mutant_select;\n  wire [1:0] mutant_select;\n"
	for ports, want := range map[string]string{
		"m(mutant_select);\n":       "m();\n",
		"m(a, mutant_select);\n":    "m(a);\n",
		"m(a, mutant_select\n);\n":  "m(a);\n",
		"m(a, \nmutant_select);\n":  "m(a);\n",
		"m(a, my_mutant_select);\n": "",
		"m(a, mutant_select, b);\n": "",
		"m(a, mutant_select_a);\n":  "",
		"m(a, b);\n":                "",
	} {
		got, err := choosing("module "+ports+declared, 3, "")
		if want == "" {
			if err == nil {
				t.Errorf("%q has the input", ports)
			}
			continue
		}
		if err != nil || !strings.HasPrefix(got, "module "+want+"  reg [1:0] mutant_select;\n") {
			t.Errorf("%q becomes %q, %v", ports, got, err)
		}
	}
}
