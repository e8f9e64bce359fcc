package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStoppedBeforeTheWriter checks that a FIFO without a writer prevents no command from ending.
func TestStoppedBeforeTheWriter(t *testing.T) {
	card, err := filepath.Abs(goldenCard)
	require.NoError(t, err)
	workFolder(t)
	tracedCard(t, card)
	require.NoError(t, syscall.Mkfifo("fifo", 0o600))
	before := files(t)
	for line, want := range map[string]string{
		"reduce -o sum.npy w0.npy fifo":  "tributary reduce: stopped, a signal; no output file was written\n",
		"trace made -o out fifo fifo w0": "tributary trace: stopped, a signal; no output file was written\n",
		"decode fifo":                    "tributary decode: stopped, a signal\n",
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errors.New("a signal"))
		s := tributary(ctx, strings.Fields(line)...)
		require.Equal(t, said{1, "", want}, s)
		requireNoNewFiles(t, before)
	}
}

// TestStoppedByASignal sends signals to commands that wait for a stalled writer. A goroutine that a
// test before it left may still open a file of that test's name: here it would be the FIFO's reader.
func TestStoppedByASignal(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, line := range []string{"reduce -o sum.npy w0.npy stalled", "decode stalled"} {
			t.Run(signal.String()+" "+line, func(t *testing.T) {
				workFolder(t)
				require.NoError(t, syscall.Mkfifo("stalled", 0o600))
				before := files(t)
				command := exec.Command(os.Args[0], strings.Fields(line)...)
				command.Env = append(os.Environ(), asCommand+"=1")
				var errs bytes.Buffer
				command.Stderr = &errs
				require.NoError(t, command.Start())
				writer, err := os.OpenFile("stalled", os.O_WRONLY, 0) // the command waits by now
				require.NoError(t, err)
				defer writer.Close()
				require.NoError(t, command.Process.Signal(signal))
				ended := command.Wait()
				require.Equal(t, 1, command.ProcessState.ExitCode(), "%v: %s", ended, errs.String())
				require.Regexp(t, `^tributary [a-z]+: stopped, [a-z]+ signal received(; no output file was written)?\n$`, errs.String())
				requireNoNewFiles(t, before)
			})
		}
	}
}

// stuck is a pipe without a reader; it calls entered at a write.
type stuck struct {
	entered func()
	leave   chan struct{}
}

func (s stuck) Write([]byte) (int, error) {
	s.entered()
	<-s.leave
	return 0, io.ErrClosedPipe
}

// TestStoppedInAWrite checks that a command ends in time although an action without a context, such
// as printing, hangs.
func TestStoppedInAWrite(t *testing.T) {
	defer func(was time.Duration) { stopTime = was }(stopTime)
	stopTime = 0
	workFolder(t)
	for _, line := range []string{"info", "list", "config", "reset", "selftest -card model:", "top -count 1", "bench -elements 1", "reduce -stats -o sum.npy w0.npy", "sim -h"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		out := stuck{func() { cancel(errors.New("a signal")) }, make(chan struct{})}
		var errs bytes.Buffer
		require.Equal(t, 1, run(ctx, strings.Fields(line), out, &errs), line)
		require.Regexp(t, `^tributary( [a-z]+)?: stopped, a signal`, errs.String())
		close(out.leave)
	}
}
