package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tributary/driver"
	"tributary/driver/reduction"
	"tributary/driver/transport"
)

// bothStyles rewrites the flags of a command line, -flag or --flag, for the flag package: names
// with two dashes, single letters (-o, -h) with one. That package would read -card as four flags.
// Numbers (-5) and everything after a lone -- stay unchanged.
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

// flagError rewords an error of the flag package, which names flags with two dashes and mentions Go
// functions.
func flagError(err error) error {
	var unknown *pflag.NotExistError
	var lacking *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("-%s: no such flag", unknown.GetSpecifiedName())
	case errors.As(err, &lacking):
		return fmt.Errorf("-%s needs a value", lacking.GetSpecifiedName())
	case errors.As(err, &invalid):
		return fmt.Errorf("-%s %s: %s", invalid.GetFlag().Name, invalid.GetValue(), whyInvalid(invalid))
	}
	return err
}

func whyInvalid(err *pflag.InvalidValueError) string {
	switch err.GetFlag().Value.Type() {
	case "bool":
		return "it takes no value"
	case "duration":
		return "it must be a time, as in 10s"
	case "intSlice":
		return "it must be whole numbers, as in 0,2,3"
	case "int", "int64":
		return "it must be a whole number"
	case "uint32":
		return "it must be a whole number from 0 to 2^32 - 1"
	case "uint64":
		return "it must be a whole number from 0 to 2^64 - 1"
	case "float64":
		return "it must be a number"
	}
	return err.Unwrap().Error()
}

// count is the value of a flag for a number of things, at least one; 0 means that the flag was not
// given.
type count int

func (c *count) Set(s string) error {
	n, err := strconv.Atoi(s)
	switch {
	case err != nil:
		return errors.New("it must be a whole number")
	case n <= 0:
		return errors.New("it must be more than zero")
	}
	*c = count(n)
	return nil
}

func (c *count) String() string { return strconv.Itoa(int(*c)) }
func (c *count) Type() string   { return "count" }

// cardFlags are the flags of every command that opens a card.
type cardFlags struct {
	card    string
	timeout time.Duration
	record  string
	warn    func(text string)

	fixedWindow bool

	// dial opens the card's link if its name alone does not suffice.
	dial func(context.Context) (transport.Conn, error)
}

func (f *cardFlags) add(cmd *cobra.Command) {
	f.addCard(cmd)
	f.addRecord(cmd)
}

// addCard adds the flags for a command whose link needs no record.
func (f *cardFlags) addCard(cmd *cobra.Command) {
	f.warn = func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", cmd.CommandPath(), text) }
	cmd.Flags().StringVar(&f.card, "card", "cpu:", "use this `CARD`, see tributary -h")
	f.addTimeout(cmd)
}

func (f *cardFlags) addTimeout(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.timeout, "timeout", driver.DefaultTimeout, "give up when nothing moves for this `TIME`")
}

func (f *cardFlags) addRecord(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.record, "record", "", "write the link's bytes to `FILE`, for tributary decode")
}

// addFixedWindow adds the flag of commands that reduce.
func (f *cardFlags) addFixedWindow(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.fixedWindow, "fixed-window", false, "keep the whole window in flight, also in a congested network")
}

// check refuses values that are invalid for every card.
func (f *cardFlags) check() error {
	if f.timeout <= 0 {
		return usagef("-timeout %s: it must be more than zero", f.timeout)
	}
	if f.record == "" {
		return nil
	}
	return flagPath("-record", reduction.CheckFile(f.record))
}

// jobFlags are the flags of every command that sets up a job.
type jobFlags struct {
	ports  []int
	chunk  count
	window count
}

func (f *jobFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntSliceVar(&f.ports, "ports", nil, "use these `PORTS`, ascending, as in 0,2,3 (default the first ones)")
	cmd.Flags().Var(&f.chunk, "chunk", "send `ELEMENTS` in a chunk (default the card's maximum)")
	cmd.Flags().Var(&f.window, "window", "keep `CHUNKS` in flight, a power of two (default the card's maximum)")
}

// check refuses values that are invalid for that many workers on every card; workers is 0 if their
// number is open.
func (f *jobFlags) check(workers int) error {
	return asFlags(reduction.CheckJob(workers, f.ports, int(f.window)))
}

// configure sets up the job cfg with the flags' values. It is the card's only job, so it gets all
// slots. A value that the card cannot support is a usage error.
func (f *jobFlags) configure(ctx context.Context, card *driver.Card, cfg driver.JobConfig) (*driver.Job, error) {
	cfg.Ports, cfg.Chunk, cfg.Window = f.ports, int(f.chunk), cmp.Or(int(f.window), card.Info().Window)
	job, err := card.Configure(ctx, cfg)
	return job, asFlags(err)
}

// portsNeeded returns the number of ports that a card needs for that many workers.
func (f *jobFlags) portsNeeded(workers int) int { return reduction.PortsNeeded(workers, f.ports) }
