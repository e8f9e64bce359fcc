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

	"tributary/driver"
)

// site is where a round's card runs. A round kills the card and restarts it while hosts use it.
type site interface {
	start() error // returns when the card takes connections
	restart() error
	stop() error  // returns why the card ended before, if it did
	name() string // of the card, for the driver
	// account compares what the card has counted with what happened to its frames. It is called at the
	// end of a round whose card was never restarted.
	account(ctx context.Context, counters func() ([]driver.Counter, error)) error
}

// card is the process of a virtual card with a byte stream.
type card struct {
	program, socket string
	seed            uint64 // of the round

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

func (c *card) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopLocked()
	return nil
}

// restart kills the card and starts it again.
func (c *card) restart() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopLocked()
	return c.startLocked()
}

func (c *card) name() string { return fmt.Sprint("soak:", c.seed) }

// account has nothing to compare: a stream has no frames that end, and a fault may hide others.
func (c *card) account(context.Context, func() ([]driver.Counter, error)) error { return nil }

func (c *card) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", c.socket)
}
