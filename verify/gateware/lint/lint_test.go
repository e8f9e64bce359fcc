package lint

import (
	"context"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.." // of the repository

// TestToolsFindWhatIsWrong: each tool must find what it is here for, and have
// nothing to say about good code.
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

// TestGoldens: every golden folder of the generator.
func TestGoldens(t *testing.T) {
	var cards []Card
	err := filepath.WalkDir(filepath.Join(root, "hwgen"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "manifest.json" {
			return err
		}
		card, err := Open(filepath.Dir(path))
		cards = append(cards, card)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(cards) == 0 {
		t.Fatal("no golden folder under hwgen")
	}
	if err := Check(context.Background(), cards...); err != nil {
		t.Error(err)
	}
}

// TestBoards: the whole FPGA of every board there is a file of, with the ports alone of what the
// vendor and a script bring. testdata/board_cells.v has these.
func TestBoards(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "constraints", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no boards in constraints: %v", err)
	}
	hwgen := filepath.Join(t.TempDir(), "hwgen")
	command(t, "go", "build", "-o", hwgen, "tributary/hwgen")
	var written, whole []Card
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		dir := filepath.Join(root, "build", "lint", name) // a folder that Yosys, which is confined, may read
		command(t, hwgen, "-board", name, "-lanes", "1", "-workers", "2", "-chunk", "4", "-window", "1", "-o", dir)
		card, err := OpenBoard(dir)
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, card)
		card.Files = append(slices.Clone(card.Files), filepath.Join("testdata", "board_cells.v"))
		whole = append(whole, card)
	}
	for _, tool := range Tools {
		cards := whole
		if strings.HasPrefix(tool.Name, "verible") {
			cards = written
		}
		for _, card := range cards {
			if err := tool.Run(t.Context(), []Card{card}); err != nil {
				t.Error(err)
			}
		}
	}
}

// command runs a command and fails the test when it fails.
func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if said, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
}

// TestLeavesAreFormatted holds rtl/ to the style also where no golden uses a
// leaf; the goldens show the rest of what the tools think of it.
func TestLeavesAreFormatted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "rtl", "*", "*.v"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no leaves in rtl: %v", err)
	}
	vendor, err := filepath.Glob(filepath.Join(root, "rtl", "*", "*", "*.v"))
	if err != nil || len(vendor) == 0 {
		t.Fatalf("no leaves out of a vendor's cells in rtl: %v", err)
	}
	files = append(files, vendor...)
	leaves := []Card{{Dir: filepath.Join(root, "rtl"), Files: files}}
	for _, name := range []string{"verible-lint", "verible-format"} {
		i := slices.IndexFunc(Tools, func(t Tool) bool { return t.Name == name })
		if err := Tools[i].Run(context.Background(), leaves); err != nil {
			t.Error(err)
		}
	}
}
