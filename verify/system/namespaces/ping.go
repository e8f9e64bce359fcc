//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"
)

// pings are the replies that a ping has printed. Replies come in the order of their requests, so a
// request below the highest answered one is lost if its own reply is missing. How long replies take does
// not matter: the simulated card shares its processors with others.
type pings struct {
	answered map[int]bool // by icmp_seq
	highest  int
}

// silence is how long no reply may come.
const silence = 30 * time.Second

// pingUntil pings from one host to another until enough requests were answered and over is closed.
func pingUntil(ctx context.Context, pid int, enough int, over <-chan struct{}, show func(answered int)) (*pings, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	patience := time.AfterFunc(silence, stop)
	ping, err := start("ping", command(ctx, within(pid, []string{"ping", "-n", "-i", "0.2", hostIP(pinged)})))
	if err != nil {
		return nil, err
	}
	p, err := readPings(ping.out, func(p *pings) (more bool) {
		patience.Reset(silence)
		show(len(p.answered))
		if p.highest < enough {
			return true
		}
		select {
		case <-over:
			return false
		default:
			return true
		}
	})
	if err != nil {
		return p, fmt.Errorf("%w: %w", ping.ended(), err)
	}
	stop()
	_ = ping.cmd.Wait() // killed
	return p, p.check()
}

// reply is a line of ping's output for a reply.
var reply = regexp.MustCompile(`^\d+ bytes from .*icmp_seq=(\d+) `)

// readPings reads ping's output. more runs after each reply, and ends it with false.
func readPings(out *bufio.Reader, more func(*pings) bool) (*pings, error) {
	p := &pings{answered: map[int]bool{}}
	for {
		line, err := out.ReadString('\n')
		if err == io.EOF {
			return p, fmt.Errorf("%s, then none for %s", p, silence)
		} else if err != nil {
			return p, err
		}
		found := reply.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		seq, err := strconv.Atoi(found[1])
		if err != nil {
			return p, err
		}
		p.answered[seq], p.highest = true, max(p.highest, seq)
		if !more(p) {
			return p, nil
		}
	}
}

// check refuses a lost ping.
func (p *pings) check() error {
	if len(p.answered) != p.highest {
		return fmt.Errorf("ping: %s", p)
	}
	return nil
}

func (p *pings) String() string {
	return fmt.Sprintf("%d of %d requests answered", len(p.answered), p.highest)
}
