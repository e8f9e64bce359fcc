package main

// Search for mutants that are the same circuit. A leaf and its mutants form one netlist
// without registers, so a solver compares every output and every next state of one step,
// for all inputs and states. If the leaf has a proof, its assumptions and assertions restrict
// that state. Words of a memory are part of it; of a large one, any are read.

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// child matches the types of cells that are instances of modules.
var child = regexp.MustCompile(`^(\$paramod|\\agg_)`)

// theSame returns the numbers of the mutants that equal the leaf.
func theSame(ctx context.Context, dir string, r *reference, leaf string, mutants []mutant, numbers []int) (map[int]bool, error) {
	dir = filepath.Join(dir, "same")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	mutated := filepath.Join(dir, "mutants.ys")
	if err := writeMutants(mutated, r.module, leaf, mutants, "add -input %s %d "+trim(r.module.name)); err != nil {
		return nil, err
	}
	file, err := filepath.Rel(dir, r.file)
	if err != nil {
		return nil, err
	}
	width := bits.Len(uint(len(mutants)))
	script := []string{
		"read_rtlil " + file,
		"hierarchy -top " + trim(r.module.name),
		"script " + filepath.Base(mutated),
		"async2sync", "dffunmap -srst-only", // a reset becomes an input of the next state
		"autoname", // a mutated register output has lost its name
		// Both copies contain all mutants, so their registers have the same names; gold selects
		// none.
		fmt.Sprintf("copy %s gold", trim(r.module.name)),
		fmt.Sprintf("copy %s gate", trim(r.module.name)),
		"setattr -mod -unset top *",
		"delete " + trim(r.module.name),
		"cd gold", "rename " + sel + " none", "delete -input w:none",
		fmt.Sprintf("connect -nounset -set none %d'd0", width), "cd ..",
		fmt.Sprintf("add -input %s %d gold", sel, width),
		// The leaf's proved properties restrict its state.
		"chformal -lower",
		"chformal -assert2assume gold",
		"chformal -cover -live -fair -remove",
		"chformal -remove gate",
		"memory_collect",
		// A large memory is too much for the tools as registers. It stays outside: its addresses,
		// enables and words to write are outputs to compare, and the words read are inputs.
		"select -set memories t:$mem_v2 r:SIZE>=256 %i r:WIDTH>=64 %i",
		"expose -evert @memories",
		"memory_map",
		// Split registers into bits: a mutant can change a single bit.
		"simplemap t:$dff",
		"splitnets",
		"select -set registers t:$_DFF_P_ %co:+[Q]",
		"expose -evert-dff @registers",
		"select -set children gold/t:$paramod* gold/t:agg_* gate/t:$paramod* gate/t:agg_* %u %u %u",
		"expose -evert @children",
	}
	for _, name := range r.properties() {
		script = append(script, "delete -output gold/"+name+" gate/"+name)
	}
	script = append(script, "opt_clean", "miter -equiv gold gate miter", "flatten miter", "opt_clean miter", "design -save miter")
	for _, n := range append([]int{0}, numbers...) {
		script = append(script, fmt.Sprintf("log MUTANT %d", n),
			"design -load miter",
			"cd miter", "delete -input w:in_"+sel, fmt.Sprintf("connect -nounset -set in_%s %d'd%d", sel, width, n), "cd ..",
			// Nearly all of both copies is equal and found node by node; the rest is small for a
			// solver.
			"opt -full miter", "techmap miter", "abc -script +strash;ifraig;scorr;dc2;strash;ifraig miter", "opt_clean miter",
			"sat -prove trigger 0 -set-assumes miter")
	}
	if err := yosys(ctx, dir, "same", script...); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "same.log"))
	if err != nil {
		return nil, err
	}
	found := map[int]bool{}
	said := regexp.MustCompile(`(?m)^MUTANT (\d+)$|SAT proof finished - no model found: SUCCESS`)
	number := -1
	for _, line := range said.FindAllStringSubmatch(string(text), -1) {
		if line[1] != "" {
			number, _ = strconv.Atoi(line[1])
		} else {
			found[number] = true
		}
	}
	if !found[0] {
		return nil, fmt.Errorf("%s: the equivalence check fails for %s against itself", dir, leaf)
	}
	return found, nil
}

// properties returns patterns of registers and instance inputs that serve only the leaf's
// properties. Those need not be equal.
func (r *reference) properties() []string {
	var names []string
	for _, c := range r.module.cells {
		if child.MatchString(c.kind) && !r.ofDesign(c.source) {
			names = append(names, "w:"+strings.NewReplacer("[", "?", "]", "?").Replace(trim(c.name))+".*")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.module.sources)) {
		if !r.ofDesign(r.module.sources[name]) && strings.HasPrefix(name, `\`) {
			// A bit also has the name that autoname gives to what it drives.
			names = append(names, "w:"+trim(name)+".d", "w:"+trim(name)+"?[0123456789]*.d", "w:"+trim(name)+"_$*.d")
		}
	}
	return names
}
