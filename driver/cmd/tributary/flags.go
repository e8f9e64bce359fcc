package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver"
)

// bothStyles returns a command line in which every flag stands as the flag
// package below wants it, whether it was written -flag or --flag: names with two
// dashes, single letters (-o, -h) with one. That package would read -card as four
// flags. Numbers (-5) and all that follows a lone -- stay as they are.
func bothStyles(args []string) []string {
	styled := make([]string, len(args))
	for i, a := range args {
		if a == "--" {
			copy(styled[i:], args[i:])
			break
		}
		styled[i] = oneStyle(a)
	}
	return styled
}

func oneStyle(a string) string {
	flag := strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-")
	name, _, _ := strings.Cut(flag, "=")
	switch {
	case flag == a || name == "" || name[0] >= '0' && name[0] <= '9':
		return a
	case len(name) == 1:
		return "-" + flag
	}
	return "--" + flag
}

// cardFlags are the flags of every command that opens a card.
type cardFlags struct {
	card    string
	timeout time.Duration
	record  string
}

func (f *cardFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.card, "card", "model:", "the `CARD`, see tributary -h")
	cmd.Flags().DurationVar(&f.timeout, "timeout", driver.DefaultTimeout, "give up when nothing moves for this `TIME`")
	cmd.Flags().StringVar(&f.record, "record", "", "write everything that passes over the link to `FILE`, for tributary decode")
}

// check refuses values that no card can make right.
func (f *cardFlags) check() error {
	if f.timeout <= 0 {
		return usagef("-timeout %s: it must be more than zero", f.timeout)
	}
	return nil
}

// jobFlags are the flags of every command that sets up a job.
type jobFlags struct {
	ports  []int
	chunk  int
	window int
}

func (f *jobFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntSliceVar(&f.ports, "ports", nil, "the workers' `PORTS`, ascending, as in 0,2,3 (default the first ones)")
	cmd.Flags().IntVar(&f.chunk, "chunk", 0, "`ELEMENTS` in a chunk (default the most that the card takes)")
	cmd.Flags().IntVar(&f.window, "window", 0, "`CHUNKS` in flight, a power of two (default the most that the card takes)")
}

// maxPorts is how many ports a card has at most.
const maxPorts = 64

// check refuses values that no card can make right for that many workers, 0
// when that is left open.
func (f *jobFlags) check(workers int) error {
	switch {
	case workers > maxPorts:
		return usagef("%d workers; a card has at most %d ports", workers, maxPorts)
	case workers > 0 && len(f.ports) > 0 && len(f.ports) != workers:
		return usagef("-ports names %d ports for %d workers", len(f.ports), workers)
	case f.chunk < 0:
		return usagef("-chunk %d: it must be more than zero", f.chunk)
	case f.window < 0 || f.window&(f.window-1) != 0:
		return usagef("-window %d: it must be a power of two", f.window)
	}
	for i, p := range f.ports {
		if p < 0 || p >= maxPorts {
			return usagef("-ports: %d is no port; ports are 0 to %d", p, maxPorts-1)
		}
		if i > 0 && p <= f.ports[i-1] {
			return usagef("-ports: they must ascend, but %d follows %d", p, f.ports[i-1])
		}
	}
	return nil
}

// config returns the set-up of a job of that many workers.
func (f *jobFlags) config(workers int) driver.JobConfig {
	return driver.JobConfig{Workers: workers, Ports: f.ports, Chunk: f.chunk, Window: f.window}
}

// portsNeeded returns how many ports a card needs for that many workers.
func (f *jobFlags) portsNeeded(workers int) int {
	if len(f.ports) > 0 {
		return f.ports[len(f.ports)-1] + 1
	}
	return workers
}
