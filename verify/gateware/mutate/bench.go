package main

// Benches of a leaf with its mutants. A bench lists its builds. Each build gets a copy of
// its sources in which Yosys has elaborated the leaf and inserted the mutants; a plusarg
// selects one.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	leaves "tributary/hwgen/leaf"
)

// build is a simulation that a bench compiles.
type build struct {
	Name       string
	Toplevel   string
	Sources    []string
	Parameters map[string]string
	Includes   []string

	dir     string // of the build
	source  string // of the leaf, as the build has it but for included files
	parent  bool   // the leaf is one of a card with an up port
	modules []*module
}

// benches are cocotb benches, prepared for a leaf's mutants.
type benches struct {
	leaf   leaf
	dir    string
	nodes  []string // pytest's names
	builds []*build
	used   time.Duration // processor time with the unmodified leaf
}

// openBenches asks the benches for their builds.
func openBenches(ctx context.Context, c *campaign, l leaf, dir string, nodes []string) (*benches, error) {
	b := &benches{leaf: l, dir: dir, nodes: nodes}
	if len(nodes) == 0 {
		return b, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	list := filepath.Join(dir, "builds.json")
	if err := os.Remove(list); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := b.list(ctx, c, list); err != nil {
		return nil, err
	}
	for _, one := range b.builds {
		if err := one.elaborate(ctx, l.name); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// list collects the builds of the benches and copies their sources. Only one leaf at a time
// writes cards.
func (b *benches) list(ctx context.Context, c *campaign, file string) error {
	c.cards.Lock()
	defer c.cards.Unlock()
	if said, _, err := b.pytest(ctx, c, "BUILDS="+file); err != nil {
		return fmt.Errorf("%v: %w\n%s", b.nodes, err, tail(said))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		one := &build{}
		if err := json.Unmarshal(lines.Bytes(), one); err != nil {
			return err
		}
		if slices.ContainsFunc(b.builds, func(other *build) bool { return other.Name == one.Name }) {
			continue // another bench uses the same build
		}
		one.dir = filepath.Join(b.dir, one.Name)
		if err := one.copySources(c, b.leaf.name); err != nil {
			return err
		}
		b.builds = append(b.builds, one)
	}
	return nil
}

// copySources copies the bench's sources into the build's folder; of the leaf, the text in rtl/, in
// whose lines mutants have their places.
func (b *build) copySources(c *campaign, leaf string) error {
	found, err := filepath.Glob(filepath.Join(c.root, "rtl", "*", leaf+".v"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("rtl/ has %d files of %s", len(found), leaf)
	}
	if err != nil {
		return err
	}
	source, err := os.ReadFile(found[0]) // with its sections for an up port, as in proofs
	if err != nil {
		return err
	}
	files := slices.Clone(b.Sources)
	for _, folder := range append([]string{filepath.Join(c.root, "rtl")}, b.Includes...) {
		headers, err := filepath.Glob(filepath.Join(folder, "*.vh"))
		if err != nil {
			return err
		}
		files = append(files, headers...)
	}
	if err := os.MkdirAll(filepath.Join(b.dir, "sources"), 0o777); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if filepath.Base(file) == leaf+".v" {
			if b.parent, err = madeFrom(string(source), string(text)); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			text = source
			if b.source, err = leaves.Resolve(string(source), leaves.Parent, b.parent); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		if err := os.WriteFile(filepath.Join(b.dir, "sources", filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// madeFrom checks that text is a leaf's source as it is, or as hwgen writes it into a card: with
// constants in place of their headers. It reports whether that card has an up port.
func madeFrom(source, text string) (parent bool, err error) {
	if text == source {
		return false, nil
	}
	for _, parent := range []bool{false, true} {
		card, err := leaves.Resolve(source, leaves.Parent, parent)
		if err != nil {
			return false, err
		}
		if hasLines(text, card) {
			return parent, nil
		}
	}
	return false, errors.New("is not made from the leaf in rtl/")
}

// hasLines reports whether text has all lines of part in their order, but those that include a file.
func hasLines(text, part string) bool {
	next, stop := iter.Pull(strings.Lines(text))
	defer stop()
	for line := range strings.Lines(part) {
		if strings.HasPrefix(strings.TrimSpace(line), "`include ") {
			continue
		}
		for {
			found, ok := next()
			if !ok {
				return false
			}
			if found == line {
				break
			}
		}
	}
	return true
}

// pytest runs the benches. A mutant may use three times the processor time of the unmodified
// leaf, and a minute more.
func (b *benches) pytest(ctx context.Context, c *campaign, env ...string) (string, time.Duration, error) {
	args := []string{"-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=short"}
	for _, node := range b.nodes {
		args = append(args, "cocotb/"+node)
	}
	limit := patience
	if b.used > 0 {
		limit = 3*b.used + time.Minute
	}
	return limited(ctx, c.root, append(env, "CARDS=all"), limit, "python", args...) // also cards that `make test` leaves out
}

// elaborate finds the leaf in the bench's build, with its parameters there.
func (b *build) elaborate(ctx context.Context, leaf string) error {
	read := []string{"read_verilog", "-Isources"}
	if b.parent {
		read = append(read, "-D"+leaves.Parent)
	}
	for _, file := range b.Sources {
		read = append(read, "sources/"+filepath.Base(file))
	}
	script := []string{strings.Join(read, " ")}
	for name, value := range b.Parameters {
		script = append(script, fmt.Sprintf("chparam -set %s %s %s", name, value, b.Toplevel))
	}
	script = append(script, "hierarchy -top "+b.Toplevel, "select "+ofLeaf(leaf))
	script = append(script, elaborated...)
	script = append(script, "select -clear", "write_rtlil design.il")
	if err := yosys(ctx, b.dir, "elaborate", script...); err != nil {
		return err
	}
	var err error
	b.modules, err = readDesign(filepath.Join(b.dir, "design.il"), leaf)
	return err
}

func ofLeaf(leaf string) string { return "A:hdlname=" + leaf + " " + leaf + " %u" }

// with writes the sources with the mutants, and runs the benches without choosing one: they must
// pass.
func (b *benches) with(ctx context.Context, c *campaign, mutants []mutant) error {
	for _, one := range b.builds {
		if err := one.write(ctx, b.leaf.name, mutants); err != nil {
			return err
		}
	}
	if said, _, err := b.pytest(ctx, c, "MUTANTS="+b.dir, "MUTANT="); err != nil {
		return fmt.Errorf("%v with mutants of %s: %w\n%s", b.nodes, b.leaf.name, err, tail(said))
	}
	no, said, err := b.fails(ctx, c, 0)
	if err == nil && no {
		err = fmt.Errorf("%v fails for %s without a mutant:\n%s", b.nodes, b.leaf.name, tail(said))
	}
	return err
}

// broken matches the output of failed benches: tests failed, or the simulation ended early. The
// status -9 (SIGKILL) means that it used up its time. Other errors are not caused by the mutant.
var broken = regexp.MustCompile(`Failed \d+ of \d+ tests|Simulation terminated abnormally|Simulation failed|failed with return code: -9`)

// fails reports whether the benches fail with a mutant.
func (b *benches) fails(ctx context.Context, c *campaign, number int) (bool, string, error) {
	// Stop at the first failure: with a mutant that never answers, each test would wait for its
	// timeout.
	said, used, err := b.pytest(ctx, c, "MUTANTS="+b.dir, fmt.Sprint("MUTANT=", number), "COCOTB_MAX_FAILURES=1")
	if number == 0 {
		b.used = used
	}
	no, err := failed(err)
	if no && !broken.MatchString(said) {
		return false, said, fmt.Errorf("%v of mutant %d of %s:\n%s", b.nodes, number, b.leaf.name, tail(said))
	}
	return no, said, err
}

// write inserts the mutants into the leaf.
func (b *build) write(ctx context.Context, leaf string, mutants []mutant) error {
	if len(b.modules) == 0 {
		return nil // this build does not use the leaf
	}
	script := []string{"read_rtlil design.il", "design -save all"}
	for i, m := range b.modules {
		file := filepath.Join(b.dir, fmt.Sprintf("mutants_%d.ys", i))
		if err := writeMutants(file, m, leaf, mutants, "add -input %s %d "+trim(m.name)); err != nil {
			return err
		}
		script = append(script, "design -load all", "hierarchy -top "+trim(m.name), "script "+filepath.Base(file),
			"proc", "flatten", fmt.Sprintf("rename %s %s", trim(m.name), b.nameOf(leaf, i)),
			fmt.Sprintf("write_verilog -noattr elaborated_%d.v", i))
	}
	if err := yosys(ctx, b.dir, "mutants", script...); err != nil {
		return err
	}
	text, err := b.assemble(leaf, len(mutants))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, "sources", leaf+".v"), []byte(text), 0o644)
}

// nameOf returns the name of the i-th elaboration. A single one keeps the leaf's name.
func (b *build) nameOf(leaf string, i int) string {
	if len(b.modules) == 1 {
		return leaf
	}
	return fmt.Sprintf("%s_%d", leaf, i)
}

// assemble writes the leaf's elaborations to one file. If there are several, a wrapper module
// selects one by its parameters.
func (b *build) assemble(leaf string, mutants int) (string, error) {
	var text strings.Builder
	text.WriteString("// verilator lint_off WIDTH\n// verilator lint_off UNOPTFLAT\n// verilator lint_off UNUSED\n// verilator lint_off CASEX\n// verilator lint_off CASEOVERLAP\n")
	for i, m := range b.modules {
		verilog, err := os.ReadFile(filepath.Join(b.dir, fmt.Sprintf("elaborated_%d.v", i)))
		if err != nil {
			return "", err
		}
		alone := ""
		if len(b.modules) == 1 {
			for name, value := range m.parameters {
				alone += fmt.Sprintf("  parameter %s = %s;\n", name, verilogValue(value))
			}
		}
		chosen, err := choosing(string(verilog), mutants, alone)
		if err != nil {
			return "", fmt.Errorf("%s: %w", b.dir, err)
		}
		text.WriteString(chosen)
	}
	if len(b.modules) == 1 {
		return text.String(), nil
	}
	head := regexp.MustCompile(`(?s)\nmodule ` + leaf + `\b.*?\n\);\n`).FindString(b.source)
	if head == "" {
		return "", fmt.Errorf("%s has no module header that can be copied", leaf)
	}
	text.WriteString(head + "  generate\n")
	for i, m := range b.modules {
		var conditions, ports []string
		for name, value := range m.parameters {
			conditions = append(conditions, fmt.Sprintf("%s == %s", name, verilogValue(value)))
		}
		for _, port := range slices.Concat(m.inputs, m.outputs) {
			ports = append(ports, fmt.Sprintf(".%s(%s)", port, port))
		}
		fmt.Fprintf(&text, "    if (%s) begin : g_%d\n      %s u_leaf (%s);\n    end\n",
			strings.Join(conditions, " && "), i, b.nameOf(leaf, i), strings.Join(ports, ", "))
	}
	text.WriteString("  endgenerate\nendmodule\n")
	return text.String(), nil
}

// verilogValue converts a parameter of RTLIL, such as 3 or 8'00000011, to Verilog.
func verilogValue(value string) string {
	width, digits, ok := strings.Cut(value, "'")
	if !ok {
		return value
	}
	return width + "'b" + digits
}

// choosing replaces the input that selects a mutant by a register that a plusarg sets.
func choosing(verilog string, mutants int, more string) (string, error) {
	width := bits.Len(uint(mutants))
	bounds := ""
	if width > 1 {
		bounds = fmt.Sprintf("[%d:0] ", width-1)
	}
	declared := fmt.Sprintf("  input %s%s;\n  wire %s%s;\n", bounds, sel, bounds, sel)
	port := regexp.MustCompile(`(,\s+)?\b` + sel + `\s*\);\n`) // Yosys ends a line after 20 ports
	if strings.Count(verilog, declared) != 1 || len(port.FindAllString(verilog, -1)) != 1 {
		return "", fmt.Errorf("the written Verilog has no input %s", sel)
	}
	verilog = port.ReplaceAllString(verilog, ");\n"+more)
	return strings.Replace(verilog, declared, fmt.Sprintf(
		"  reg %s%s;\n  initial if (!$value$plusargs(\"mutant=%%d\", %s)) %s = 0;\n", bounds, sel, sel, sel), 1), nil
}
