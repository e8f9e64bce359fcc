// Collectives simulates all-reduces of 16 to 4,096 workers in SimGrid: rings, Rina, parameter servers with sums in the
// style of ATP, and trees of cards, with cards in some racks. It compares each with its closed form, and the ring with
// those of SMPI.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"tributary/verify/scale/archive"
)

//go:embed configuration.json
var committed []byte

const usage = `Collectives simulates all-reduces over racks of which some have a card, and prints tables.

Usage:
  collectives [flags]

Flags:
  -workers N       simulate N workers alone: 16, 64, 256, 1024 or 4096 (default all)
  -alpha DURATION  the fixed cost of a step (default measured by a ping-pong on the loopback)
  -record DIR      put the results of all workers into DIR/results.json, and draw RESULT.md and result.svg there
  -help            print this text (also -h)

Needs Debian's libsimgrid-dev and a C++ compiler.

Examples:
  go run ./verify/scale/collectives -workers 256
  make scale-collectives                            all; records them in verify/scale/collectives

Exit status: 0 done, 1 failed or interrupted, 2 usage.
`

// The exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command executes the command line and returns the exit status.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("collectives", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	workers := flags.Int("workers", 0, "")
	alpha := flags.Duration("alpha", 0, "")
	into := flags.String("record", "", "")
	answer := flags.Bool("echo", false, "") // the other process of the ping-pong
	fail := func(status int, err error) int {
		fmt.Fprintln(stderr, "collectives:", err)
		if status == exitUsage {
			fmt.Fprintln(stderr, "collectives: nothing was run; collectives -h lists the flags")
		}
		return status
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return exitDone
	case err != nil:
		return fail(exitUsage, err)
	case flags.NArg() > 0:
		return fail(exitUsage, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	case *alpha < 0:
		return fail(exitUsage, fmt.Errorf("-alpha %s: a step takes time", *alpha))
	case *workers != 0 && *into != "":
		return fail(exitUsage, errors.New("-record is for all workers; leave -workers or -record out"))
	case *answer:
		if err := echo(stdout); err != nil {
			return fail(exitFailed, err)
		}
		return exitDone
	}
	c, err := parse(committed)
	if err != nil {
		return fail(exitFailed, err)
	}
	list := c.chosen(*workers)
	if len(list) == 0 {
		return fail(exitUsage, fmt.Errorf("-workers %d: no cluster has so many", *workers))
	}
	r, err := run(ctx, c, list, alpha.Seconds(), stderr)
	if err != nil {
		return fail(exitFailed, err)
	}
	if *into != "" {
		err = record(c, r, *into)
	} else {
		_, err = io.WriteString(stdout, page(c, r))
	}
	if err != nil {
		return fail(exitFailed, err)
	}
	return exitDone
}

// chosen returns the experiments of so many workers, or all for 0.
func (c *configuration) chosen(workers int) (list []experiment) {
	for _, x := range c.experiments() {
		if workers == 0 || x.cluster.workers() == workers {
			list = append(list, x)
		}
	}
	return list
}

// run simulates everything, with a measured fixed cost of a step unless alpha, in seconds, is given.
func run(ctx context.Context, c configuration, list []experiment, alpha float64, stderr io.Writer) (r results, err error) {
	from, err := root()
	if err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "collectives")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	r.Configuration, r.Given = archive.Digest(committed), alpha > 0
	if alpha == 0 {
		if alpha, err = measureAlpha(ctx); err != nil {
			return r, err
		}
	}
	r.Alpha = alpha
	s := simulator{c: c, alpha: alpha}
	here := filepath.Join(from, "verify", "scale", "collectives")
	if s.path, err = build(ctx, filepath.Join(here, "simulator"), dir); err != nil {
		return r, err
	}
	version, err := exec.CommandContext(ctx, "pkg-config", "--modversion", "simgrid").Output()
	if err != nil {
		return r, err
	}
	r.SimGrid = strings.TrimSpace(string(version))
	progress := bar(len(list), stderr)
	if r.Cells, err = s.all(ctx, list, progress); err != nil {
		return r, err
	}
	r.Judgements, err = s.judge(ctx, filepath.Join(here, "judge"), dir)
	return r, err
}

// bar returns a function that counts simulations, and shows them on a terminal.
func bar(total int, stderr io.Writer) func() {
	file, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return func() {}
	}
	b := progressbar.NewOptions(total, progressbar.OptionSetWriter(file), progressbar.OptionSetDescription("simulations"),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
	return func() { _ = b.Add(1) } // a closed terminal must not end the runs
}
