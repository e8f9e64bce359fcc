// Command hwgen writes the Verilog of a gradient aggregator into a self-contained folder,
// with its datasheet, simulation and tests.
//
// The packages in this folder are its pipeline: config (flags to a valid configuration),
// plan (sizes, latency, structure), netlist (modules), verilog (text), emit (the folder).
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"tributary/driver/wire"
	"tributary/hwgen/boards"
	"tributary/hwgen/config"
	"tributary/hwgen/emit"
	"tributary/hwgen/plan"
	"tributary/rtl"
)

// The exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	known := plan.Known()
	options, err := config.Parse(args, known)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "%s\nhwgen: nothing was written; hwgen -h lists the flags\n", lines(err))
		return exitUsage
	case options.Help:
		return say(stdout, stderr, config.Help(known))
	case options.Boards:
		return say(stdout, stderr, boards.List(known.Sums))
	case options.Version:
		return say(stdout, stderr, fmt.Sprintf("hwgen, protocol version %d, manifest schema %d\n", wire.Version, wire.ManifestSchema))
	}
	if err := generate(ctx, options, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "%s\n", lines(err))
		return exitFailed
	}
	return exitDone
}

// say prints a text and returns the exit status.
func say(stdout, stderr io.Writer, text string) int {
	if _, err := io.WriteString(stdout, text); err != nil {
		fmt.Fprintf(stderr, "%s\n", lines(err))
		return exitFailed
	}
	return exitDone
}

// generate plans the card, writes it unless this is a dry run, and describes it.
func generate(ctx context.Context, o config.Options, stdout, stderr io.Writer) error {
	p, err := plan.Build(o.Config)
	if err != nil {
		return err
	}
	files, err := emit.Files(p, rtl.Files)
	if err != nil {
		return err
	}
	if !o.DryRun {
		if err := emit.Write(ctx, o.Dir, files, o.Force); err != nil {
			return err
		}
	}
	if p.Huge() {
		fmt.Fprintf(stderr, "hwgen: warning: the card's memories have %d Mbit; the largest FPGA has %d. "+
			"Set a smaller -window or -chunk\n", p.MemoryBits()/1_000_000, plan.HugeBits/1_000_000)
	}
	if o.JSON {
		_, err = stdout.Write(files.Manifest())
		return err
	}
	if _, err := io.WriteString(stdout, emit.Summary(p)); err != nil || o.DryRun {
		return err
	}
	next := "make -C " + quoted(filepath.Join(o.Dir, "sim"))
	if p.HasSelftest() {
		next += " test"
	}
	if o.Board != "" {
		next += ", make -C " + quoted(filepath.Join(o.Dir, "board"))
	}
	_, err = fmt.Fprintf(stdout, "\nwritten to %s; next: %s\n", o.Dir, next)
	return err
}

// plainWord matches a word that needs no quotes in a shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted returns a path, quoted for a shell if necessary.
func quoted(path string) string {
	if plainWord.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// lines formats joined errors, one per line, each after the program's name.
func lines(err error) string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return "hwgen: " + err.Error()
	}
	text := ""
	for i, e := range joined.Unwrap() {
		if i > 0 {
			text += "\n"
		}
		text += lines(e)
	}
	return text
}
