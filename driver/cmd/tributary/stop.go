package main

// The end of commands at the first signal, whatever they wait for.

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

// stopTime limits the orderly end of a command after the first signal: the release of its card, the
// end of a virtual card, and the removal of incomplete files.
var stopTime = 10 * time.Second

// gaveUpError is the error of a command that did not end in time.
type gaveUpError struct {
	cause  error
	waited time.Duration
}

func (e *gaveUpError) Error() string {
	return fmt.Sprintf("stopped, %v; the command did not end within %s", e.cause, e.waited)
}

// execute runs a command line and returns the command and its error. It abandons a command that
// hangs, such as in a write to a pipe without a reader, once ctx is done.
func execute(ctx context.Context, root *cobra.Command) (*cobra.Command, error) {
	var running atomic.Pointer[cobra.Command]
	running.Store(root)
	var grace atomic.Int64 // the command has its flags to itself
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		running.Store(cmd)
		grace.Store(int64(graceOf(cmd)))
	}
	var cmd *cobra.Command
	more := func() time.Duration { return stopTime + time.Duration(grace.Load()) }
	ended, err := await(ctx, more, func() (err error) {
		cmd, err = root.ExecuteContextC(ctx)
		return err
	})
	if !ended {
		return running.Load(), &gaveUpError{context.Cause(ctx), more()}
	}
	return cmd, err
}

// graceOf returns how long a command may work on after the first signal, as its flag -grace sets it.
func graceOf(cmd *cobra.Command) time.Duration {
	grace, _ := cmd.Flags().GetDuration("grace") // other commands have none
	return grace
}

// await runs work. When ctx is done, it allows work some more time and then abandons it; ended is
// false.
func await(ctx context.Context, more func() time.Duration, work func() error) (ended bool, err error) {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return true, err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return true, err
	case <-time.After(more()):
		return false, nil
	}
}

// stoppable ends a command's work with its context at once. It is for work that has no context and
// leaves nothing incomplete.
func stoppable(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		atOnce := func() time.Duration { return 0 }
		ended, err := await(cmd.Context(), atOnce, func() error { return run(cmd, args) })
		if !ended {
			return context.Cause(cmd.Context())
		}
		return err
	}
}
