//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
)

// program is a process that runs until its context ends.
type program struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs bytes.Buffer // complete when the process has ended
}

// command returns a command that ends with its context, and with this process if that is killed. Ctrl-C
// on the terminal reaches this process alone.
func command(ctx context.Context, words []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// start starts a program. The caller sets what else its process needs.
func start(name string, cmd *exec.Cmd) (p *program, err error) {
	p = &program{name: name, cmd: cmd}
	cmd.Stderr = &p.errs
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// await reads the program's output until a line begins with the given text.
func (p *program) await(beginning string) error {
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			return p.ended()
		}
		if strings.HasPrefix(line, beginning) {
			return nil
		}
	}
}

// ended waits for the end of a program that should go on, and returns its last words.
func (p *program) ended() error {
	err := p.cmd.Wait()
	if err == nil {
		err = errors.New("too early")
	}
	if words := strings.TrimSpace(p.errs.String()); words != "" {
		return fmt.Errorf("%s ended: %w: %s", p.name, err, words)
	}
	return fmt.Errorf("%s ended: %w", p.name, err)
}

// runAll runs commands one after another.
func runAll(ctx context.Context, commands [][]string) error {
	for _, words := range commands {
		if out, err := command(ctx, words).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out)
		}
	}
	return nil
}
