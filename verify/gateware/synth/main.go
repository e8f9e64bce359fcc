// Command synth synthesizes every node and lane for an FPGA, places and routes
// them, and records what they cost: cells, frequency, latency. `make synth` runs
// it, `make synth-full` also for wide lanes and whole cores.
//
// It works in the root of the repository, after `make setup build`. The
// table is hwgen/cells/recorded.json, which hwgen embeds for the datasheets of
// its cards, and verify/gateware/synth/TABLE.md, for people. A row whose Verilog, recipe
// and tools have not changed since it was recorded stays as it is; so a second
// run has nothing to do. What was measured is written after every row.
//
// The recipe is the same for all, so that rows can be compared: recipe.go and
// place.go have it. The test beside this counts cells again and fails where the
// table says otherwise.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
)

const (
	// folder holds what is generated and synthesized: a folder for each circuit.
	folder = "build/synth"

	recordedFile = "hwgen/cells/recorded.json"
	pageFile     = "verify/gateware/synth/TABLE.md"
)

func main() {
	rows := flag.String("rows", "", "record the rows whose names match this `regexp` alone")
	full := flag.Bool("full", false, "record wide lanes, whole cores and boards too: a core takes ten minutes, a board twenty")
	jobs := flag.Int("jobs", runtime.NumCPU(), "circuits at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *rows, *full, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "synth:", err)
		os.Exit(1)
	}
}

// run records what is to be recorded, and prints the table.
func run(ctx context.Context, rows string, full bool, jobs int) error {
	match, err := regexp.Compile(rows)
	if err != nil {
		return err
	}
	r, err := openRecord(ctx)
	if err != nil {
		return err
	}
	var wanted []circuit
	for _, c := range circuits() {
		if match.MatchString(c.name) && (full || !c.full) {
			wanted = append(wanted, c)
		}
	}
	var whole []build
	for _, b := range builds() {
		if full && match.MatchString(b.name) {
			whole = append(whole, b)
		}
	}
	if len(wanted) == 0 && len(whole) == 0 {
		return fmt.Errorf("no row's name matches %q", rows)
	}
	if err := r.update(ctx, wanted, jobs); err != nil {
		return err
	}
	for _, b := range whole {
		if err := r.updateBoard(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	text, err := os.ReadFile(pageFile)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// progress says on standard error what was done.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "synth: "+format+"\n", args...)
}
