// Command bench measures the emitted gateware and the driver, and prints one table. Each value
// has a peer measured in the same run. Run it in the root of the repository after `make setup
// build`, or use `make bench`.
//
// It keeps its builds under build/bench, and rebuilds a program when its sources have changed. It
// also writes the table to build/bench/bench.json. A row that misses its target is marked, but the
// exit status stays 0: speeds depend on the machine and its load.
//
// The flag -rows selects groups of rows: cards, stalls, links, losses, driver, packets, congestion, software,
// usb, roce, plans, collectives, and those of cards that a daemon shares: serve, tls, allreduce, fairness,
// rogue, lost.
//
// Rows of shared cards have real processes: bin/tributary is the daemon, and this program starts itself
// in other roles (roles.go): members of jobs, processes of a ring, a rogue client. Gloo is their peer if
// its headers are there (make gloo); otherwise its time is a recorded multiple of the ring's.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
)

// folder holds the builds and the results.
const folder = "build/bench"

// groups are the measurements, in the order of the table.
var groups = []struct {
	name    string
	measure func(context.Context) ([]Row, error)
}{
	{"cards", cardRows},
	{"stalls", stallRows},
	{"links", linkRows},
	{"losses", lossRows},
	{"driver", driverRows},
	{"packets", packetRows},
	{"congestion", congestionRows},
	{"software", softwareRows},
	{"usb", usbRows},
	{"serve", serveRows},
	{"tls", tlsRows},
	{"allreduce", allReduceRows},
	{"fairness", fairRows},
	{"rogue", rogueRows},
	{"lost", lostRows},
	{"roce", roceRows},
	{"plans", planRows},
	{"collectives", collectiveRows},
}

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
	}
	wanted := flag.String("rows", "", "measure only the groups of rows whose name matches `REGEXP`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *wanted); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the groups that are wanted, and prints their rows.
func run(ctx context.Context, wanted string) error {
	pattern, err := regexp.Compile(wanted)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	var rows []Row
	for _, g := range groups {
		if !pattern.MatchString(g.name) {
			continue
		}
		measured, err := g.measure(ctx)
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
