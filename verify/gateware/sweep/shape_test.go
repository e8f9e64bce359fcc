// Package sweep tests cards of all shapes. It generates them with hwgen, and lints a set that
// contains every pair of choices. It builds some virtual cards, sums random data through
// the driver, and compares every bit with the model. It also tests cards with faulty links and
// hosts.
package sweep

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tributary/driver/wire"
)

const root = "../../.." // of the repository

// hwgen and tributary are the commands under test, built by TestMain.
var hwgen, tributary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "sweep")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		build := exec.Command("go", "build", "-o", dir+"/", "./hwgen", "./driver/cmd/tributary")
		build.Dir = root
		if said, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, said)
			return 1
		}
		hwgen, tributary = filepath.Join(dir, "hwgen"), filepath.Join(dir, "tributary")
		return m.Run()
	}())
}

// shape is a card to generate. Zero fields take the default.
type shape struct {
	lanes, workers int
	chunk, window  int
	atOnce         int // jobs
	shell          string
	registers      string // the port of shell none
	link           int
	prefix         string
	bundle         bool
	arithmetic
}

// arithmetic is a card's formats and sum. Zero fields take the default.
type arithmetic struct {
	format, result, sum string
	saturate, dsp       bool
}

// arithmetics lists all combinations of format, result format and sum that hwgen's flags offer.
func arithmetics(t *testing.T) []arithmetic {
	var all []arithmetic
	takesDSP := strings.Contains(run(t, time.Minute, hwgen, "-h"), "-dsp")
	for _, format := range wire.Formats {
		for _, result := range wire.Formats {
			for _, sum := range wire.Sums {
				a := arithmetic{format: format.Name, result: result.Name, sum: sum.Name}
				if !format.FitsIn(result) {
					continue
				}
				all = append(all, a)
				switch {
				case format.Exp == 0 && sum.Adds:
					a.saturate = true
					all = append(all, a)
				case sum.Sum == wire.SumFused && takesDSP:
					a.dsp = true
					all = append(all, a)
				}
			}
		}
	}
	return all
}

// everyCard: the environment has CARDS=all.
var everyCard = os.Getenv("CARDS") == "all"

// also returns the cards if everyCard, else none.
func also[Card any](cards ...Card) []Card {
	if everyCard {
		return cards
	}
	return nil
}

// String returns the flags as one word, for test names.
func (s shape) String() string {
	name := fmt.Sprintf("l%d_w%d", s.lanes, s.workers)
	if s.chunk != 0 {
		name += fmt.Sprintf("_c%d", s.chunk)
	}
	if s.window != 0 {
		name += fmt.Sprintf("_win%d", s.window)
	}
	if s.atOnce != 0 {
		name += fmt.Sprintf("_j%d", s.atOnce)
	}
	if s.shell != "" {
		name += "_" + s.shell
	}
	if s.registers != "" {
		name += "_" + s.registers
	}
	if s.link != 0 {
		name += fmt.Sprintf("_link%d", s.link)
	}
	for _, word := range []string{s.format, s.result, s.sum} {
		if word != "" {
			name += "_" + word
		}
	}
	if s.saturate {
		name += "_saturate"
	}
	if s.dsp {
		name += "_dsp"
	}
	return name
}

func (s shape) flags() []string {
	args := []string{"-lanes", strconv.Itoa(s.lanes), "-workers", strconv.Itoa(s.workers)}
	number := func(flag string, value int) {
		if value != 0 {
			args = append(args, flag, strconv.Itoa(value))
		}
	}
	number("-chunk", s.chunk)
	number("-window", s.window)
	number("-jobs", s.atOnce)
	number("-link", s.link)
	name := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	name("-shell", s.shell)
	name("-registers", s.registers)
	name("-prefix", s.prefix)
	name("-format", s.format)
	name("-result", s.result)
	name("-sum", s.sum)
	for flag, on := range map[string]bool{"-bundle": s.bundle, "-saturate": s.saturate, "-dsp": s.dsp} {
		if on {
			args = append(args, flag)
		}
	}
	return args
}

// generate runs hwgen into a new folder and returns it. The folder is below build/, because Yosys
// runs in a sandbox with its own /tmp.
func (s shape) generate(t *testing.T) string {
	t.Helper()
	scratch := filepath.Join(root, "build", "sweep")
	if err := os.MkdirAll(scratch, 0o777); err != nil {
		t.Fatal(err)
	}
	scratch, err := os.MkdirTemp(scratch, s.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(scratch) })
	dir := filepath.Join(scratch, "card")
	run(t, time.Minute, hwgen, append(s.flags(), "-o", dir)...)
	return dir
}

// build generates the card and compiles it to a virtual card. It returns the folder, which
// sim:FOLDER opens.
func (s shape) build(t *testing.T) string {
	t.Helper()
	dir := s.generate(t)
	compile(t, dir)
	return dir
}

// compile makes targets in the simulation of a card. These cards run for a second, so fast
// compilation matters more than fast simulation: without optimization, and in one piece, because
// every piece reads Verilator's headers.
func compile(t *testing.T, dir string, targets ...string) {
	t.Helper()
	run(t, 10*time.Minute, "make", append(targets, "-C", filepath.Join(dir, "sim"), "OPT=-O0", "VM_PARALLEL_BUILDS=0")...)
}

// run runs a program, and fails the test with its output if it fails.
func run(t *testing.T, limit time.Duration, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	said, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, said)
	}
	return string(said)
}
