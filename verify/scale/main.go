// Scale simulates reductions of 64 and 1,024 workers in a folded Clos, packet by packet, beside
// flows of other hosts. It compares DCTCP on merged marks with a fixed window, several trees with
// one and with hashed paths, and all of them with a ring.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"tributary/verify/scale/sim"
)

//go:embed configuration.json
var committed []byte

const usage = `Scale simulates reductions in a folded Clos, packet by packet, and prints tables.

Usage:
  scale [flags]

Flags:
  -suite NAMES     run these suites, separated by commas (default all)
  -config FILE     read networks, traffic and suites from FILE (default the recorded configuration)
  -parallel N      run N simulations at once (default one for each processor)
  -json            print JSON
  -record DIR      put the results into DIR/results.json, and draw RESULT.md and result.svg there anew;
                   results of other suites stay if they are of the same configuration
  -list            list the suites, and run nothing
  -help            print this text (also -h)

Examples:
  go run ./verify/scale -list
  go run ./verify/scale -suite quiet                    half a minute
  go run ./verify/scale -suite 64,1024 -json >out.json
  go run ./verify/scale -config my.json -parallel 1
  make scale                                            all suites; records them in verify/scale

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

// options are the parsed flags.
type options struct {
	suites, config, record string
	parallel               int
	json, list             bool
}

// command executes the command line and returns the exit status.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.suites, "suite", "", "")
	flags.StringVar(&o.config, "config", "", "")
	flags.StringVar(&o.record, "record", "", "")
	flags.IntVar(&o.parallel, "parallel", runtime.NumCPU(), "")
	flags.BoolVar(&o.json, "json", false, "")
	flags.BoolVar(&o.list, "list", false, "")
	fail := func(status int, err error) int {
		for _, line := range strings.Split(err.Error(), "\n") {
			fmt.Fprintln(stderr, "scale:", line)
		}
		if status == exitUsage {
			fmt.Fprintln(stderr, "scale: nothing was run; scale -h lists the flags")
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
	case o.parallel < 1:
		return fail(exitUsage, fmt.Errorf("-parallel %d: at least one simulation must run", o.parallel))
	case o.record != "" && o.config != "":
		return fail(exitUsage, errors.New("-record is for the recorded configuration; leave -config or -record out"))
	}
	c, suites, err := o.load()
	if err != nil {
		return fail(exitUsage, err)
	}
	if o.list {
		for _, s := range suites {
			fmt.Fprintf(stdout, "%-12s %s: %d runs\n", s.Name, s.Title, len(s.Loads)*len(s.Seeds)*len(s.Transports))
		}
		return exitDone
	}
	if err := o.run(ctx, c, suites, stdout, stderr); errors.Is(err, context.Canceled) {
		return fail(exitFailed, fmt.Errorf("interrupted in suite %w; earlier suites are recorded if -record was given", err))
	} else if err != nil {
		return fail(exitFailed, err)
	}
	return exitDone
}

// load reads the configuration and chooses the suites.
func (o *options) load() (c configuration, chosen []suite, err error) {
	text := committed
	if o.config != "" {
		if text, err = os.ReadFile(o.config); err != nil {
			return c, nil, err
		}
	}
	if c, err = parse(text); err != nil {
		return c, nil, err
	}
	if o.suites == "" {
		return c, c.Suites, nil
	}
	for name := range strings.SplitSeq(o.suites, ",") {
		found := false
		for _, s := range c.Suites {
			if s.Name == name {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			var names []string
			for _, s := range c.Suites {
				names = append(names, s.Name)
			}
			return c, nil, fmt.Errorf("-suite: there is no suite %q; there are: %s", name, strings.Join(names, ", "))
		}
	}
	return c, chosen, nil
}

// run simulates suite by suite. It records each when it has ended, so an interrupt loses one alone.
func (o *options) run(ctx context.Context, c configuration, suites []suite, stdout, stderr io.Writer) error {
	progress := bar(c.length(suites), stderr)
	var all []cell
	for _, s := range suites {
		cells, err := c.runAll(ctx, []suite{s}, o.parallel, progress)
		if err != nil {
			return err
		}
		all = append(all, cells...)
		if o.record != "" {
			if err := record(c, cells, o.record); err != nil {
				return err
			}
		}
	}
	if o.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(all)
	}
	_, err := io.WriteString(stdout, tables(c, all))
	return err
}

// length returns the time that the suites simulate.
func (c *configuration) length(suites []suite) (total sim.Time) {
	for _, x := range c.experiments(suites) {
		total += milli(x.suite.WarmUpMS) + milli(x.suite.MeasuredMS) + milli(x.suite.DrainMS)
	}
	return total
}

// bar returns a function that counts simulated time, and shows it on a terminal.
func bar(total sim.Time, stderr io.Writer) func(sim.Time) {
	file, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return func(sim.Time) {}
	}
	b := progressbar.NewOptions64(int64(total/sim.Microsecond), progressbar.OptionSetWriter(file),
		progressbar.OptionSetDescription("simulated µs"), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	var lock sync.Mutex
	var done sim.Time
	return func(step sim.Time) {
		lock.Lock()
		defer lock.Unlock()
		done += step
		_ = b.Set64(int64(done / sim.Microsecond)) // a closed terminal must not end the runs
	}
}
