package lint

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tributary/hwgen/leaf"
)

const root = "../../.." // of the repository

// TestToolsFindWhatIsWrong: each tool finds its kind of error, and accepts good code.
func TestToolsFindWhatIsWrong(t *testing.T) {
	finds := map[string][]string{
		"verilator":      {"width", "systemverilog", "latch", "missing"},
		"iverilog":       {"systemverilog", "missing"},
		"yosys":          {"latch", "missing"},
		"slang":          {"width", "systemverilog", "missing"},
		"verible-lint":   {"style"},
		"verible-format": {"style"},
	}
	for _, tool := range Tools {
		t.Run(tool.Name, func(t *testing.T) {
			if len(finds[tool.Name]) == 0 {
				t.Fatal("nothing here shows that this tool finds anything")
			}
			for _, name := range append([]string{"good"}, finds[tool.Name]...) {
				card := Card{Dir: "testdata", Top: name, Files: []string{filepath.Join("testdata", name+".v")}}
				err := tool.Run(context.Background(), []Card{card})
				if name == "good" && err != nil {
					t.Errorf("good code: %v", err)
				}
				if name != "good" && err == nil {
					t.Errorf("nothing found in %s.v", name)
				}
			}
		})
	}
}

// TestGoldens lints the card of every golden folder of the generator. It runs the command in the
// manifest again, because a golden folder has no leaves.
func TestGoldens(t *testing.T) {
	manifests, err := filepath.Glob(filepath.Join(root, "hwgen", "testdata", "golden", "*", "manifest.json"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no golden folder under hwgen: %v", err)
	}
	hwgen := buildGenerator(t)
	var cards []Card
	for _, path := range manifests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var manifest struct {
			Command string `json:"command"`
		}
		if err := json.Unmarshal(text, &manifest); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		args, found := strings.CutPrefix(manifest.Command, "hwgen ")
		if !found {
			t.Fatalf("%s: the command is %q", path, manifest.Command)
		}
		card, err := Open(generate(t, hwgen, filepath.Base(filepath.Dir(path)), strings.Fields(args)...))
		if err != nil {
			t.Fatal(err)
		}
		cards = append(cards, card)
	}
	if err := Check(context.Background(), cards...); err != nil {
		t.Error(err)
	}
}

// buildGenerator builds hwgen and returns its path.
func buildGenerator(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hwgen")
	command(t, "go", "build", "-o", path, "tributary/hwgen")
	return path
}

// generate makes the card of these flags in a folder that Yosys may read from its sandbox, and
// returns the folder.
func generate(t *testing.T, hwgen, name string, flags ...string) string {
	t.Helper()
	dir := filepath.Join(root, "build", "lint", name)
	command(t, hwgen, append(flags, "-force", "-o", dir)...)
	return dir
}

// TestBoards lints the whole FPGA of every board, with a card of every shell that it may have.
// testdata/board_cells.v has the ports of the modules that the vendor and the scripts provide.
func TestBoards(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "constraints", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no boards in constraints: %v", err)
	}
	hwgen := buildGenerator(t)
	var written, whole []Card
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		shells := []string{"stream"}
		if strings.Contains(readText(t, file), `"ethernet"`) {
			shells = append(shells, "udp")
		}
		for _, shell := range shells {
			card, err := OpenBoard(generate(t, hwgen, name+"_"+shell, "-board", name, "-shell", shell, "-lanes", "2", "-workers", "2", "-chunk", "4", "-window", "1"))
			if err != nil {
				t.Fatal(err)
			}
			written = append(written, card)
			card.Files = append(slices.Clone(card.Files), filepath.Join("testdata", "board_cells.v"))
			whole = append(whole, card)
		}
	}
	if err := Names(t.Context(), written...); err != nil {
		t.Error(err)
	}
	err = runTools(t.Context(), func(tool Tool) []Card {
		if strings.HasPrefix(tool.Name, "verible") {
			return written
		}
		return whole
	})
	if err != nil {
		t.Error(err)
	}
}

// TestStrippedCards: cards without properties differ from others only in what a preprocessor without
// FORMAL drops, and pass the lints.
func TestStrippedCards(t *testing.T) {
	hwgen := buildGenerator(t)
	var cards []Card
	for name, flags := range map[string][]string{
		"stripped_exact": {"-lanes", "2", "-workers", "3", "-sum", "exact", "-jobs", "2", "-shell", "none"},
		"stripped_board": {"-board", "ulx3s", "-lanes", "1", "-workers", "2", "-chunk", "4", "-window", "1"},
	} {
		whole := generate(t, hwgen, name+"_whole", flags...)
		dir := generate(t, hwgen, name, append(flags, "-strip-formal")...)
		files, err := filepath.Glob(filepath.Join(dir, "*.v"))
		board, err2 := filepath.Glob(filepath.Join(dir, "board", "*.v"))
		if err != nil || err2 != nil || len(files) == 0 {
			t.Fatalf("no Verilog in %s", dir)
		}
		dropped := 0
		for _, file := range append(files, board...) {
			path, _ := filepath.Rel(dir, file)
			stripped, full := readText(t, file), readText(t, filepath.Join(whole, path))
			if strings.Contains(stripped, "`ifdef FORMAL") {
				t.Errorf("%s has properties", file)
			}
			dropped += strings.Count(full, "\n") - strings.Count(stripped, "\n")
			if preprocessed(t, whole, file) != preprocessed(t, whole, filepath.Join(whole, path)) {
				t.Errorf("%s differs from the file with properties", file)
			}
		}
		if dropped < 1000 {
			t.Errorf("%s lacks only %d lines of properties", dir, dropped)
		}
		card, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		cards = append(cards, card)
	}
	if err := Check(t.Context(), cards...); err != nil {
		t.Error(err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// preprocessed returns the lines of a file after Icarus's preprocessor, without blank lines and
// without the command that made the file.
func preprocessed(t *testing.T, headers, file string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.v")
	command(t, "iverilog", "-g2005", "-E", "-I", headers, "-o", out, file)
	var lines []string
	_, text, found := strings.Cut(readText(t, out), "`default_nettype none")
	if !found {
		t.Fatalf("%s has no `default_nettype none", file)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "`line") && strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// command runs a command and fails the test if the command fails.
func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if said, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
}

// TestNames: a parameter was once named INFINITY, and a wire far. Names in comments and strings, and
// keywords of both languages, are no finding.
func TestNames(t *testing.T) {
	card := Card{Dir: "testdata", Files: []string{filepath.Join("testdata", "names.v")}}
	err := Names(t.Context(), card)
	if err == nil || !strings.HasSuffix(err.Error(), ": EOF INFINITY NAN far new this") {
		t.Errorf("found %v", err)
	}
	card.Files = []string{filepath.Join("testdata", "good.v")}
	if err := Names(t.Context(), card); err != nil {
		t.Error(err)
	}
}

// TestLeaves checks the style and the names of all of rtl/, including leaves that no golden uses. It
// checks a leaf with sections as cards have it, without an up port and with one. The goldens cover
// the other checks.
func TestLeaves(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "rtl", "*", "*.v"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no leaves in rtl: %v", err)
	}
	vendor, err := filepath.Glob(filepath.Join(root, "rtl", "*", "*", "*.v"))
	if err != nil || len(vendor) == 0 {
		t.Fatalf("no leaves out of a vendor's cells in rtl: %v", err)
	}
	leaves := []Card{{Dir: filepath.Join(root, "rtl"), Files: resolved(t, append(files, vendor...))}}
	if err := Names(t.Context(), leaves...); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"verible-lint", "verible-format"} {
		i := slices.IndexFunc(Tools, func(t Tool) bool { return t.Name == name })
		if err := Tools[i].Run(context.Background(), leaves); err != nil {
			t.Error(err)
		}
	}
}

// resolved returns the files, with two in the place of each that has sections for cards with an up port.
func resolved(t *testing.T, files []string) []string {
	t.Helper()
	var all []string
	sections := 0
	for _, file := range files {
		text := readText(t, file)
		if !strings.Contains(text, "`ifdef "+leaf.Parent) {
			all = append(all, file)
			continue
		}
		sections++
		for folder, parent := range map[string]bool{"plain": false, "parent": true} {
			text, err := leaf.Resolve(text, leaf.Parent, parent)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			to := filepath.Join(root, "build", "lint", "leaves", folder, filepath.Base(file))
			if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			all = append(all, to)
		}
	}
	if sections == 0 {
		t.Error("no leaf has a section for cards with an up port")
	}
	return all
}
