package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// card is the process of a virtual card, which a round kills and restarts while hosts use it.
type card struct {
	program, socket string

	mu  sync.Mutex
	cmd *exec.Cmd
}

// start starts the card and waits until it listens.
func (c *card) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.startLocked()
}

func (c *card) startLocked() error {
	_ = os.Remove(c.socket) // a killed card leaves it behind
	c.cmd = exec.Command(c.program, "--listen", "unix:"+c.socket)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("the card does not start: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if !strings.HasPrefix(line, "listening ") {
		return fmt.Errorf("the card printed %q instead of its address: %w", line, err)
	}
	return nil
}

func (c *card) stopLocked() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // it was killed
}

func (c *card) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopLocked()
}

// restart kills the card and starts it again.
func (c *card) restart() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopLocked()
	return c.startLocked()
}

func (c *card) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", c.socket)
}
