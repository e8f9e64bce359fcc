package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver"
)

// simFlags is the command line of tributary sim.
type simFlags struct {
	listen string
	trace  string
	once   bool
}

func newSim() *cobra.Command {
	f := &simFlags{}
	cmd := &cobra.Command{
		Use:   "sim DIR",
		Short: "Keep a virtual card up",
		Long: `Starts the virtual card that is built in DIR, prints where it listens, and keeps
it up until Ctrl-C. Hosts use it one after another. At the end the card prints
its cycles, beats and bytes.

Build it first: make -C DIR/sim (with -trace: make -C DIR/sim trace)`,
		Example: `  tributary sim tributary_l16_w4_fp32_tree
  tributary sim tributary_l16_w4_fp32_tree -listen tcp:127.0.0.1:7000
  tributary sim tributary_l16_w4_fp32_tree -once -trace card.fst`,
		Args: exactly("DIR, the card's folder,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "", "listen at this `ADDRESS`, unix:PATH or tcp:HOST:PORT (default unix:DIR/sim/build/card.sock)")
	cmd.Flags().StringVar(&f.trace, "trace", "", "write a waveform to `FILE`, in FST, for GTKWave or Surfer")
	cmd.Flags().BoolVar(&f.once, "once", false, "end with the first host")
	return cmd
}

// stopGrace is how long a card that was asked to stop may take to say what it
// did and go.
const stopGrace = 5 * time.Second

// check refuses an address that is none.
func (f *simFlags) check() error {
	scheme, address, _ := strings.Cut(f.listen, ":")
	switch {
	case f.listen == "", scheme == "unix" && address != "", scheme == "tcp" && strings.Contains(address, ":"):
		return nil
	}
	return usagef("-listen %s: it must be unix:PATH or tcp:HOST:PORT", f.listen)
}

func (f *simFlags) run(ctx context.Context, dir string, out, errs io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	program, err := f.program(dir)
	if err != nil {
		return &driver.NoCardError{Name: "sim:" + dir, Err: err}
	}
	listen := f.listen
	if listen == "" {
		listen = "unix:" + filepath.Join(dir, "sim", "build", "card.sock")
	}
	card := exec.CommandContext(ctx, program, f.arguments(listen)...)
	card.Cancel = func() error { return card.Process.Signal(syscall.SIGTERM) }
	card.WaitDelay = stopGrace
	card.Stderr = errs
	said, err := card.StdoutPipe()
	if err != nil {
		return err
	}
	if err := card.Start(); err != nil {
		return &driver.NoCardError{Name: "sim:" + dir, Err: err}
	}
	follow(said, out, errs, dir)
	err = card.Wait()
	if ctx.Err() != nil {
		return nil // Ctrl-C is how it ends
	}
	if err != nil {
		return fmt.Errorf("the card in %s ended: %w", dir, err)
	}
	return nil
}

// program returns the program to start, or says how to build it.
func (f *simFlags) program(dir string) (string, error) {
	folder, err := openFolder(dir)
	if err != nil {
		return "", err
	}
	if err := folder.CheckLink(); err != nil {
		return "", err
	}
	name, target := "card", ""
	if f.trace != "" {
		name, target = "card_trace", " trace"
	}
	if !folder.built(name) {
		return "", fmt.Errorf("it is not built; build it with: make -C %s/sim%s", dir, target)
	}
	return folder.program(name), nil
}

func (f *simFlags) arguments(listen string) []string {
	args := []string{"--listen", listen}
	if f.once {
		args = append(args, "--once")
	}
	if f.trace != "" {
		args = append(args, "--trace", f.trace)
	}
	return args
}

// follow passes on what a card says until it ends, and notes where it listens
// for tributary list.
func follow(said io.Reader, out, errs io.Writer, dir string) {
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		fmt.Fprintln(out, lines.Text())
		name, ok := strings.CutPrefix(lines.Text(), "listening ")
		if !ok {
			continue
		}
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		remove, err := noteRunning(runningCard{Card: absoluteCard(name), Dir: dir})
		if err != nil {
			fmt.Fprintf(errs, "tributary list will not show this card: %v\n", err)
			continue
		}
		defer remove()
	}
}
