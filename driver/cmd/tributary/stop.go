package main

// How commands end at the first signal, whatever they wait for.

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

// stopTime is how long a command may take to end in good order after the first signal:
// to give the card back, to end a virtual one, to remove what is half done.
var stopTime = 10 * time.Second

// gaveUpError is answered for a command that did not end within stopTime.
type gaveUpError struct{ cause error }

func (e *gaveUpError) Error() string {
	return fmt.Sprintf("stopped, %v; the command was left where it hung, after %s", e.cause, stopTime)
}

// execute carries a command line out and returns the command and its error. A command that
// hangs, such as in a write to a pipe that nobody reads, is left behind when ctx is done.
func execute(ctx context.Context, root *cobra.Command) (*cobra.Command, error) {
	var running atomic.Pointer[cobra.Command]
	running.Store(root)
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { running.Store(cmd) }
	var cmd *cobra.Command
	ended, err := await(ctx, stopTime, func() (err error) {
		cmd, err = root.ExecuteContextC(ctx)
		return err
	})
	if !ended {
		return running.Load(), &gaveUpError{context.Cause(ctx)}
	}
	return cmd, err
}

// await carries work out. When ctx is done it allows work some more time, and leaves it
// behind then; ended is false.
func await(ctx context.Context, more time.Duration, work func() error) (ended bool, err error) {
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
	case <-time.After(more):
		return false, nil
	}
}

// stoppable makes a command's work end with its context at once. It is for work that knows
// no context and leaves nothing half done.
func stoppable(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ended, err := await(cmd.Context(), 0, func() error { return run(cmd, args) })
		if !ended {
			return context.Cause(cmd.Context())
		}
		return err
	}
}
