// Command bench measures the emitted gateware and the driver, and prints one table. Each value
// has a peer measured in the same run. Run it in the root of the repository after `make setup
// build`, or use `make bench`.
//
// It keeps its builds under build/bench, and rebuilds a program when its sources have changed. It
// also writes the table to build/bench/bench.json. A row that misses its target is marked, but the
// exit status stays 0: speeds depend on the machine and its load.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// folder holds the builds and the results.
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
	for _, measure := range []func(context.Context) ([]Row, error){cardRows, stallRows, linkRows, lossRows, driverRows, softwareRows, usbRows} {
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

// progress prints the current measurement on standard error.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}
