package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// End is what a rank tells of itself, in the words of driver/roce/README.md.
type End struct {
	IP         net.IP
	MAC        net.HardwareAddr
	SendQPN    uint32
	ReceiveQPN uint32
	PSN        uint32 // of its first packet
	MTU        int

	words string // all of it
}

// Coordinate introduces workers to each other over their channels, one for each rank, and waits until all
// have their sums. register registers the connections with the card, before any worker sends. The error
// of the first worker that failed is Coordinate's; all others are told to abort. If ctx ends, workers may not exist.
//
// A rank in late begins when its channel is closed, and others when all are ready. A rank whose channel is nil
// never begins.
func Coordinate(ctx context.Context, channels []net.Conn, register func([]End) error, late map[int]<-chan struct{}) error {
	c := &coordinator{channels: channels, late: late, said: make([]chan string, len(channels))}
	for rank, channel := range channels {
		c.said[rank] = make(chan string, mostLines)
		c.listening.Go(func() { c.listen(rank, channel) })
	}
	err := c.run(ctx, register)
	if err != nil {
		c.tellAll("ABORT " + err.Error())
	}
	return errors.Join(err, c.end(ctx))
}

// mostLines is more than a worker sends.
const mostLines = 8

// coordinator is one run of Coordinate.
type coordinator struct {
	channels  []net.Conn
	late      map[int]<-chan struct{}
	said      []chan string // lines of each rank
	listening sync.WaitGroup
}

// listen passes the lines of a rank on. It reads no further than to the last one: after it the
// channel is the next run's.
func (c *coordinator) listen(rank int, channel io.Reader) {
	for {
		line, err := nextLine(channel)
		if err != nil {
			line = "FAILED " + err.Error()
		}
		last := line == "DONE" || strings.HasPrefix(line, "FAILED")
		select {
		case c.said[rank] <- line:
		default: // more lines than a worker sends
		}
		if last {
			return
		}
	}
}

// nextLine reads a line byte by byte: it takes nothing of what follows.
func nextLine(in io.Reader) (string, error) {
	var text []byte
	for b := make([]byte, 1); ; {
		if _, err := io.ReadFull(in, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return string(text), nil
		}
		text = append(text, b[0])
	}
}

// end waits for the last line of each rank, until ctx ends.
func (c *coordinator) end(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		for _, channel := range c.channels {
			_ = channel.SetReadDeadline(time.Now())
		}
	})
	c.listening.Wait()
	if stop() {
		return nil
	}
	var errs []error
	for _, channel := range c.channels {
		errs = append(errs, channel.SetReadDeadline(time.Time{}))
	}
	return errors.Join(errs...)
}

func (c *coordinator) run(ctx context.Context, register func([]End) error) error {
	ends := make([]End, len(c.channels))
	if err := c.each(ctx, func(rank int, line string) (err error) {
		ends[rank], err = parseEnd(rank, len(ends), line)
		return err
	}); err != nil {
		return err
	}
	if err := register(ends); err != nil {
		return err
	}
	for rank, e := range ends {
		c.tellAll(fmt.Sprintf("PEER rank=%d %s", rank, e.words))
	}
	if err := c.meet(ctx, "READY"); err != nil {
		return err
	}
	over := c.begin()
	err := c.meet(ctx, "DONE")
	over()
	if err == nil {
		c.tellAll("GO")
	}
	return err
}

// meet waits until all ranks have come to a point.
func (c *coordinator) meet(ctx context.Context, point string) error {
	return c.each(ctx, func(_ int, line string) error {
		if line != point {
			return fmt.Errorf("%q instead of %s", line, point)
		}
		return nil
	})
}

// begin lets all ranks begin. Late ones do not any more after over.
func (c *coordinator) begin() (over func()) {
	ended := make(chan struct{})
	var waiting sync.WaitGroup
	for rank, channel := range c.channels {
		begins, late := c.late[rank]
		if !late {
			fmt.Fprintln(channel, "GO")
			continue
		}
		waiting.Go(func() {
			select {
			case <-begins:
				fmt.Fprintln(channel, "GO")
			case <-ended:
			}
		})
	}
	return func() {
		close(ended)
		waiting.Wait()
	}
}

// each takes a line of each rank, in any order.
func (c *coordinator) each(ctx context.Context, take func(rank int, line string) error) error {
	type spoken struct {
		rank int
		line string
	}
	all := make(chan spoken)
	over, cancel := context.WithCancel(ctx)
	defer cancel()
	for rank, said := range c.said {
		go func() {
			select {
			case line := <-said:
				select {
				case all <- spoken{rank, line}:
				case <-over.Done():
				}
			case <-over.Done():
			}
		}()
	}
	for range c.said {
		select {
		case s := <-all:
			if why, failed := strings.CutPrefix(s.line, "FAILED "); failed {
				return fmt.Errorf("rank %d: %s", s.rank, why)
			}
			if err := take(s.rank, s.line); err != nil {
				return fmt.Errorf("rank %d: %w", s.rank, err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// tellAll sends a line to each rank. One that has gone hears nothing.
func (c *coordinator) tellAll(line string) {
	for _, channel := range c.channels {
		fmt.Fprintln(channel, line)
	}
}

// parseEnd reads a worker's JOIN.
func parseEnd(rank, ranks int, line string) (e End, err error) {
	var r, n int
	var address, mac string
	words, found := strings.CutPrefix(line, "JOIN ")
	if !found {
		return e, fmt.Errorf("%q instead of JOIN", line)
	}
	if _, err := fmt.Sscanf(words, "rank=%d ranks=%d ip=%s mac=%s send_qpn=%d receive_qpn=%d psn=%d mtu=%d",
		&r, &n, &address, &mac, &e.SendQPN, &e.ReceiveQPN, &e.PSN, &e.MTU); err != nil {
		return e, fmt.Errorf("%q: %w", line, err)
	}
	if r != rank || n != ranks {
		return e, fmt.Errorf("it is rank %d of %d, not %d of %d", r, n, rank, ranks)
	}
	e.IP = net.ParseIP(address)
	e.MAC, err = net.ParseMAC(mac)
	_, e.words, _ = strings.Cut(words, "ranks="+fmt.Sprint(ranks)+" ")
	return e, err
}
