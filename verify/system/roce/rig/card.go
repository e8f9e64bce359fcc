package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"tributary/driver/frame"
	"tributary/verify/system/roce/cable"
)

// Card is a running card with a cable to each host.
type Card struct {
	Losses *cable.Losses

	program  *exec.Cmd
	stop     context.CancelFunc
	ended    chan error
	said     bytes.Buffer
	cables   []*cable.Cable
	recorder atomic.Pointer[cable.Recorder]
	spare    string // the path of the port that no host has
	arm      *arm   // of a one-armed card
}

// startTime is how long a card may take until it listens at its ports.
const startTime = time.Minute

// Connect starts a card and connects its Ethernet ports with the hosts, port i with host i. One port
// more is for the card's owner. The card is any program that serves Ethernet ports by package frameport:
// the flags -port unix:PATH are added to its command line, one for each port.
func (h *Hosts) Connect(command []string) (*Card, error) {
	var ports []string
	for i := range len(h.Guests) + 1 {
		ports = append(ports, h.port(i))
	}
	c, err := start(command, ports)
	if err != nil {
		return nil, err
	}
	return h.plugAll(c, ports)
}

// port is the path of an Ethernet port of a card, or of the switch before it.
func (h *Hosts) port(i int) string { return filepath.Join(h.folder, fmt.Sprintf("card%d", i)) }

// start starts a card with those ports.
func start(command, ports []string) (*Card, error) {
	ctx, stop := context.WithCancel(context.Background())
	for _, port := range ports {
		command = append(command, "-port", "unix:"+port)
	}
	c := &Card{Losses: new(cable.Losses), stop: stop, ended: make(chan error, 1)}
	c.program = exec.CommandContext(ctx, command[0], command[1:]...)
	c.program.Cancel = func() error { return c.program.Process.Signal(os.Interrupt) }
	c.program.WaitDelay = 10 * time.Second
	c.program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.program.Stdout, c.program.Stderr = &c.said, &c.said
	if err := c.program.Start(); err != nil {
		stop()
		return nil, err
	}
	go func() { c.ended <- c.program.Wait() }()
	return c, nil
}

// plugAll lays the cables between ports and hosts; the last port is the spare one. After an error the card has ended.
func (h *Hosts) plugAll(c *Card, ports []string) (*Card, error) {
	for i := range h.Guests {
		if err := c.untilListening(func() error {
			one, err := cable.Open(h.socket(i), ports[i], c.pass(i))
			if err == nil {
				c.cables = append(c.cables, one)
			}
			return err
		}); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	c.spare = ports[len(h.Guests)]
	return c, nil
}

// pass records what enters the cable of a port, and loses some of it.
func (c *Card) pass(port int) cable.Pass {
	arrives := c.Losses.Pass(port)
	return func(d frame.Direction, bytes []byte) bool {
		if r := c.recorder.Load(); r != nil {
			r.Record(cable.Place{Port: port, Direction: d}, bytes)
		}
		return arrives(d, bytes)
	}
}

// Record writes a pcapng of all frames on the cables to out, until the card is closed or another recording
// begins. The recorder's Flush ends it.
func (c *Card) Record(out io.Writer) (r *cable.Recorder, err error) {
	if r, err = cable.NewRecorder(out, len(c.cables)); err == nil {
		c.recorder.Store(r)
	}
	return r, err
}

// untilListening calls connect until the card listens at the port.
func (c *Card) untilListening(connect func() error) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := connect()
		var refused *net.OpError
		if err == nil || !errors.As(err, &refused) || time.Since(began) > startTime {
			return err
		}
		select {
		case err := <-c.ended:
			c.ended <- err
			return errors.New("the card has ended")
		default:
		}
	}
}

// Close ends the card. It returns an error if the card or a cable had ended before.
func (c *Card) Close() error {
	var errs []error
	for _, one := range c.cables {
		errs = append(errs, one.Close())
	}
	if c.arm != nil {
		errs = append(errs, c.arm.Close())
	}
	select {
	case err := <-c.ended:
		return errors.Join(append(errs, fmt.Errorf("the card ended too early: %v: %s", err, strings.TrimSpace(c.said.String())))...)
	default:
	}
	c.stop()
	if err := <-c.ended; err != nil && !errors.Is(err, context.Canceled) {
		errs = append(errs, fmt.Errorf("the card: %w: %s", err, strings.TrimSpace(c.said.String())))
	}
	return errors.Join(errs...)
}
