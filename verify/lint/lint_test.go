package lint

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
)

const root = "../.." // of the repository

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

// TestLeavesAreFormatted holds rtl/ to the style also where no golden uses a
// leaf; the goldens show the rest of what the tools think of it.
func TestLeavesAreFormatted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "rtl", "*.v"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no leaves in rtl: %v", err)
	}
	leaves := []Card{{Dir: filepath.Join(root, "rtl"), Files: files}}
	for _, name := range []string{"verible-lint", "verible-format"} {
		i := slices.IndexFunc(Tools, func(t Tool) bool { return t.Name == name })
		if err := Tools[i].Run(context.Background(), leaves); err != nil {
			t.Error(err)
		}
	}
}
