package simulator

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Card is a card in a simulator's process. It is for calls from one goroutine at a time. Its methods do
// nothing any more when Err has an error.
type Card struct {
	wait  func() error // ends the process
	in    *bufio.Writer
	out   *bufio.Reader
	ports int

	now    uint64 // the card's clock, when it was last heard
	moved  uint64 // when a frame came or left last
	moving bool   // since it was heard it was given a frame
	given  int    // bytes of frames since it was heard
	freely bool   // RunFreely was called
	left   []leaving
	err    error
}

// leaving is a frame that has left the card, at a port.
type leaving struct {
	frame []byte
	port  int
}

// stopGrace is the time for a card whose input has ended to end as well.
const stopGrace = 5 * time.Second

// Start runs a program that simulates a card with Ethernet ports, until ctx ends or Close. What the
// program writes to its standard error goes to errs.
func Start(ctx context.Context, program string, ports int, errs io.Writer) (*Card, error) {
	process := exec.CommandContext(ctx, program)
	process.Stderr = errs
	process.WaitDelay = stopGrace
	in, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	c := newCard(in, out, ports)
	c.wait = func() error {
		in.Close()
		return process.Wait()
	}
	if c.run(idle, nil); c.err != nil {
		return nil, errors.Join(c.err, c.Close())
	}
	return c, nil
}

// newCard returns the card behind two streams.
func newCard(in io.Writer, out io.Reader, ports int) *Card {
	return &Card{wait: func() error { return nil }, in: bufio.NewWriter(in), out: bufio.NewReader(out), ports: ports}
}

// Close ends the process, and returns its error.
func (c *Card) Close() error { return c.wait() }

// Err returns why the card can do nothing any more.
func (c *Card) Err() error { return c.err }

// Cycles returns the card's clock when it was last heard.
func (c *Card) Cycles() uint64 { return c.now }

// Advance lets the card run for that many cycles at least.
func (c *Card) Advance(cycles uint64) {
	c.run(advance, binary.LittleEndian.AppendUint64(nil, c.now+cycles))
}

// Receive gives the card a frame with its FCS. One of more than 65,535 bytes is more than a record
// holds; the card gets it without its end. One that runs freely gets it at once.
func (c *Card) Receive(port int, frame []byte) {
	c.write(frameRecord, port, frame[:min(len(frame), 1<<16-1)])
	c.moving, c.moved = true, c.now
	c.given += len(frame)
	if c.freely {
		c.flush()
	}
}

// Send lets the card run until nothing moves any more, unless it runs freely. It appends the next frame that has left to dst,
// with its FCS, and returns its port. ok is false, and dst unchanged, if there is none.
func (c *Card) Send(dst []byte) (frame []byte, port int, ok bool) {
	if c.moving && !c.freely {
		c.run(idle, nil)
	}
	if len(c.left) == 0 {
		return dst, 0, false
	}
	first := c.left[0]
	c.left = append(c.left[:0], c.left[1:]...)
	return append(dst, first.frame...), first.port, true
}

// write writes a record, unless the card has failed.
func (c *Card) write(kind byte, port int, body []byte) {
	if c.err == nil && writeRecord(c.in, kind, port, body) != nil {
		c.err = errEnded
	}
}

// flush passes on what was written, unless the card has failed.
func (c *Card) flush() {
	if c.err == nil && c.in.Flush() != nil {
		c.err = errEnded
	}
}

// run writes a record that the card answers with its clock, and reads until the answer.
func (c *Card) run(kind byte, body []byte) {
	c.write(kind, 0, body)
	c.flush()
	for c.moving = true; c.moving && c.err == nil; {
		c.err = c.read()
	}
	c.moving, c.given = false, 0
}

// errEnded is the error of a process that takes or writes no record any more.
var errEnded = errors.New("the card's simulator has ended")

// read reads a record.
func (c *Card) read() error {
	kind, port, body, err := readRecord(c.out)
	switch {
	case errors.Is(err, io.EOF):
		return errEnded
	case err != nil:
		return fmt.Errorf("the card's simulator: %w", err)
	case kind == frameRecord && port < c.ports && len(body) >= fcsBytes:
		c.left, c.moved = append(c.left, leaving{body, port}), c.now
	case kind == idle && len(body) == 8:
		c.now, c.moving = binary.LittleEndian.Uint64(body), false
	default:
		return fmt.Errorf("the card's simulator wrote a record of type %q, port %d and %d bytes, which a card with %d Ethernet ports does not", kind, port, len(body), c.ports)
	}
	return nil
}
