// Command bench measures what the emitted gateware and the driver do, each
// beside a peer that is measured in the same run, and prints one table. Run it
// in the root of the repository, after `make setup build`; `make bench` does
// all that.
//
// What it builds it keeps under build/bench, and builds again when what
// it is made of has changed. The table is also written to
// build/bench/bench.json. A row that falls short of what it must hold is
// marked and is no failure: speeds depend on the machine and its load.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// folder holds what is built and measured.
const folder = "build/bench"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures everything and prints it.
func run(ctx context.Context) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	var rows []Row
	for _, measure := range []func(context.Context) ([]Row, error){cardRows, stallRows, linkRows, lossRows, driverRows, usbRows} {
		measured, err := measure(ctx)
		if err != nil {
			return err
		}
		rows = append(rows, measured...)
	}
	if err := printTable(os.Stdout, rows); err != nil {
		return err
	}
	return writeJSON(filepath.Join(folder, "bench.json"), rows)
}

// progress says on standard error what takes its time now.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}
