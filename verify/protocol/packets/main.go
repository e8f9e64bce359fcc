// Packets runs a card of the Go model for a program in another language, which compares it with its own: packets and
// register accesses come as lines on the standard input, and what they cause leaves on the standard output.
//
//	CYCLES packet PORT BAD HEADER PAYLOAD
//	CYCLES read ADDRESS
//	CYCLES write ADDRESS VALUE
//
// Numbers are decimal, bytes are hexadecimal, "-" for none. CYCLES pass before the line takes effect, and the card
// comes to rest after it. The answer to an access is its code and value. The answer to a packet has the card's clock
// before and after it, then PORTS HEADER PAYLOAD for each packet that the card sends; bit P of PORTS is the up port of
// a card of P ports. A line "." ends each answer.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"tributary/driver/model"
	"tributary/driver/wire"
)

func main() {
	cfg := model.Config{}
	pflag.IntVar(&cfg.Lanes, "lanes", 1, "elements of a beat")
	pflag.IntVar(&cfg.Ports, "workers", 2, "ports without the up port")
	pflag.IntVar(&cfg.Chunk, "chunk", 1, "most elements of a chunk")
	pflag.IntVar(&cfg.Window, "window", 1, "most chunks of a window")
	pflag.IntVar(&cfg.Jobs, "jobs", 1, "jobs at a time")
	format := pflag.Uint8("format", uint8(wire.FP32), "number of the format")
	sum := pflag.Uint8("sum", uint8(wire.SumTree), "number of the sum")
	pflag.Parse()
	cfg.Format, cfg.Sum, cfg.Parent = wire.Format(*format), wire.Sum(*sum), true
	if err := run(cfg); err != nil {
		fmt.Fprintln(os.Stderr, "packets:", err)
		os.Exit(1)
	}
}

// run answers every line.
func run(cfg model.Config) error {
	c, err := model.NewCard(cfg)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if err := answer(c, out, strings.Fields(in.Text())); err != nil {
			return fmt.Errorf("%q: %w", in.Text(), err)
		}
		fmt.Fprintln(out, ".")
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

// answer processes one line.
func answer(c *model.Card, out *bufio.Writer, words []string) error {
	var cycles uint64
	var what string
	if _, err := fmt.Sscan(strings.Join(words, " "), &cycles, &what); err != nil {
		return err
	}
	c.Advance(cycles)
	words = words[2:]
	switch what {
	case "packet":
		return packet(c, out, words)
	case "read", "write":
		var address uint32
		var value uint64
		if _, err := fmt.Sscan(strings.Join(append(words, "0"), " "), &address, &value); err != nil {
			return err
		}
		code, value := c.Register(what == "write", address, value)
		fmt.Fprintln(out, uint8(code), value)
		return nil
	}
	return fmt.Errorf("%q is neither packet, read nor write", what)
}

// packet commits a packet, and prints what the card sends until it is at rest.
func packet(c *model.Card, out *bufio.Writer, words []string) error {
	if len(words) != 4 {
		return fmt.Errorf("a packet of %d words, want 4", len(words))
	}
	var port, bad int
	if _, err := fmt.Sscan(words[0]+" "+words[1], &port, &bad); err != nil {
		return err
	}
	header, err := hex.DecodeString(strings.Trim(words[2], "-"))
	if err != nil {
		return err
	}
	payload, err := hex.DecodeString(strings.Trim(words[3], "-"))
	if err != nil {
		return err
	}
	before := clock(c)
	c.Handle(port, &model.Packet{Header: model.ParseHeader(header), Payload: payload, Bad: bad != 0})
	up, sent := uint64(1)<<c.Config().Ports, []string{}
	for p := new(model.Packet); ; {
		ports, ok := c.Next(up-1, p)
		if !ok {
			if ok = c.NextUp(p); !ok {
				break
			}
			ports = up
		}
		leaves := model.AppendHeader(nil, &p.Header, false)
		sent = append(sent, fmt.Sprintf("%d %x -%x", ports, leaves, p.Payload))
	}
	fmt.Fprintln(out, before, clock(c))
	for _, line := range sent {
		fmt.Fprintln(out, line)
	}
	return nil
}

// clock returns the card's clock.
func clock(c *model.Card) uint64 {
	_, cycles := c.Register(false, wire.RegCycles, 0)
	return cycles
}
