// Command synth synthesizes every node and lane for an FPGA, places and routes them, and records
// their cells, frequency and latency. `make synth` runs it; `make synth-full` adds wide lanes and
// whole cores.
//
// It works in the root of the repository, after `make setup build`. It writes the table to
// hwgen/cells/recorded.json, which hwgen embeds for its datasheets, and to
// verify/gateware/synth/TABLE.md. It keeps a row while its Verilog, recipe and tools are
// unchanged, so a second run has nothing to do. It saves the table after every row, and keeps every
// seed in seeds.json until its row is complete: an interrupted run resumes there.
//
// All circuits share one recipe, in recipe.go and place.go, so rows are comparable. The tests in
// this folder count the cells again and fail if the table differs.
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
	// folder has a subfolder for each circuit.
	folder = "build/synth"

	recordedFile = "hwgen/cells/recorded.json"
	pageFile     = "verify/gateware/synth/TABLE.md"
)

func main() {
	rows := flag.String("rows", "", "record the rows whose names match this `regexp` alone")
	full := flag.Bool("full", false, "record wide lanes, whole cores and boards too: a core of 4 lanes takes half an hour, one of 16 two hours, a board the same")
	jobs := flag.Int("jobs", runtime.NumCPU(), "circuits, seeds of a circuit, or boards at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *rows, *full, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "synth:", err)
		os.Exit(1)
	}
}

// run records the selected rows, and prints the table.
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
	if err := r.updateBoards(ctx, whole, jobs); err != nil {
		return err
	}
	text, err := os.ReadFile(pageFile)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// progress reports a finished step on standard error.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "synth: "+format+"\n", args...)
}
