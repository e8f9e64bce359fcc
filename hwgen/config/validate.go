package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"tributary/driver/wire"
)

// Limits and defaults of the flags.
const (
	maxLanes   = wire.MaxLanes
	maxWorkers = wire.MaxPorts
	maxWindow  = wire.MaxWindow
	maxJobs    = wire.MaxJobs
	maxPrefix  = 24 // characters, so that lines of Verilog stay readable

	defaultLanes   = 16
	defaultWorkers = 4
	defaultChunk   = 256
	defaultWindow  = 8
	defaultLink    = 32

	maxEthernet         = 16
	defaultEthernetLink = 64

	// DefaultPrefix is the default prefix of module names.
	DefaultPrefix = "agg"

	// RegPortAXIL and RegPortBus are the kinds of a register port: AXI4-Lite, and a bus of
	// one access at a time.
	RegPortAXIL = "axil"
	RegPortBus  = "bus"
)

var (
	links      = []int{8, 16, 32, 64}
	macWidths  = []int{8, 64, 512}
	regPorts   = []string{RegPortAXIL, RegPortBus}
	prefixText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
)

// complete sets the defaults that depend on other values, and returns all mistakes. given
// has the flags on the command line, bad those with an unreadable value, which are already
// reported.
func (c *Config) complete(known Known, given, bad map[string]bool) error {
	var errs []error
	check := func(flag string, ok bool, format string, args ...any) bool {
		if bad[flag] {
			return false
		}
		if !ok {
			errs = append(errs, fmt.Errorf("-"+flag+" "+format, args...))
		}
		return ok
	}
	name := func(flag, value string, list []string) bool {
		err := choice(flag, value, list)
		if err != nil {
			errs = append(errs, err)
		}
		return err == nil
	}

	errs = append(errs, c.onBoard(known, given, bad)...)
	lanes := check("lanes", powerOfTwo(c.Lanes) && c.Lanes <= maxLanes,
		"%d: must be a power of two, 1 to %d", c.Lanes, maxLanes)
	workers := check("workers", c.Workers >= 1 && c.Workers <= maxWorkers,
		"%d: must be 1 to %d", c.Workers, maxWorkers)
	format := name("format", c.Format, known.Formats)
	result := format
	switch {
	case !given["result"]:
		c.Result = c.Format
	case format:
		fits := known.results(c.Format)
		result = check("result", slices.Contains(fits, c.Result), "%s: must hold every value of %s: %s",
			c.Result, c.Format, orList(fits))
	case !bad["result"]:
		result = name("result", c.Result, known.Formats)
	}
	sum := name("sum", c.Sum, known.Sums)
	if format {
		check("saturate", !c.Saturate || row(c.Format).Exp == 0, "is for int32 alone; leave it out with %s", c.Format)
	}
	if sum {
		check("saturate", !c.Saturate || slices.Contains(known.Saturating, c.Sum), "changes nothing for sum %s, which never overflows; leave it out", c.Sum)
	}
	if format && sum {
		check("dsp", !c.DSP || slices.Contains(known.DSP, c.Sum) && row(c.Format).Exp > 0,
			"saves nothing for sum %s of %s; leave it out", c.Sum, c.Format)
	}
	shell := name("shell", c.Shell, known.Shells)
	check("window", powerOfTwo(c.Window) && c.Window <= maxWindow,
		"%d: must be a power of two, 1 to %d", c.Window, maxWindow)
	check("jobs", powerOfTwo(c.Jobs) && c.Jobs <= maxJobs, "%d: must be a power of two, 1 to %d", c.Jobs, maxJobs)
	check("prefix", prefixText.MatchString(c.Prefix) && len(c.Prefix) <= maxPrefix,
		"%q: must be a letter and then letters, digits or _, at most %d in all", c.Prefix, maxPrefix)

	if shell {
		linked, networked := slices.Contains(known.Linked, c.Shell), slices.Contains(known.Networked, c.Shell)
		if linked || networked {
			check("registers", !given["registers"], "%s: shell %s has no register port, packets access its registers; leave -registers out", c.RegPort, c.Shell)
			c.RegPort = ""
		}
		switch {
		case linked:
			check("link", slices.Contains(links, c.Link), "%d: must be 8, 16, 32 or 64 bits", c.Link)
		case networked:
			ok := check("link", slices.Contains(macWidths, c.Link), "%d: an Ethernet port has 8, 64 or 512 bits", c.Link)
			if ok && lanes && format && result {
				narrow := c.Lanes * min(row(c.Format).Bits, row(c.Result).Bits)
				check("link", c.Link <= narrow, "%d: an Ethernet port cannot be wider than a beat, which has %d bits; use more lanes or a smaller -link", c.Link, narrow)
			}
		default:
			check("link", !given["link"], "%d: shell %s has no link; leave -link out", c.Link, c.Shell)
			c.Link = 0
			name("registers", c.RegPort, regPorts)
		}
	}
	if c.Parent && shell {
		check("parent", !slices.Contains(known.Linked, c.Shell), "needs shell none or udp: a card on a byte stream has no up port; leave it out")
		check("parent", !slices.Contains(known.Connected, c.Shell), "needs shell none or udp: a card with shell %s has no up port; leave it out", c.Shell)
	}
	if c.Parent && format && result {
		check("parent", c.Result == c.Format, "needs results of the format of contributions, %s: cards of a tree have one format; leave -result out", c.Format)
	}
	connected := shell && slices.Contains(known.Connected, c.Shell)
	if connected && format && result {
		check("result", c.Result == c.Format, "needs the format of contributions, %s: sums take their place in packets; leave it out", c.Format)
	}
	if connected && workers {
		check("jobs", c.Workers*c.Jobs <= wire.MaxConnections, "%d: %d workers have %d connections then, of %d at most; use fewer",
			c.Jobs, c.Workers, c.Workers*c.Jobs, wire.MaxConnections)
	}
	if lanes && format && result && shell {
		most := known.maxChunk(*c) / c.Lanes * c.Lanes
		if !given["chunk"] && workers && !c.recorded(given) {
			c.Chunk = chunkFor(c.Lanes, c.Workers, most)
		}
		check("chunk", c.Chunk >= 1 && c.Chunk <= most && c.Chunk%c.Lanes == 0,
			"%d: must be a multiple of %d lanes, %d to %d elements with shell %s",
			c.Chunk, c.Lanes, c.Lanes, most, c.Shell)
		if connected && c.Chunk <= most {
			bytes := c.Chunk * row(c.Format).Bits / 8
			check("chunk", slices.Contains(wire.ConnectionMTUs, bytes), "%d: has %d bytes; with shell %s it is the largest MTU, 256, 512, 1024, 2048 or 4096 bytes", c.Chunk, bytes, c.Shell)
		}
	}
	return errors.Join(errs...)
}

// onBoard sets what a board decides, except flags on the command line, and returns all
// mistakes.
func (c *Config) onBoard(known Known, given, bad map[string]bool) (errs []error) {
	if !given["board"] {
		if given["clock"] {
			errs = append(errs, fmt.Errorf("-clock %d: needs a -board; leave it out", c.Clock))
		}
		return errs
	}
	b, ok := known.board(c.Board)
	if !ok {
		return []error{choice("board", c.Board, known.boardNames())}
	}
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	link := b.Links[0]
	if given["shell"] {
		if asked, ok := b.link(c.Shell); ok {
			link = asked
		} else {
			fail("-shell %s: the link of %s needs shell %s", c.Shell, b.Name, orList(b.shells()))
		}
	}
	if given["link"] && c.Link != link.Bits && !bad["link"] {
		fail("-link %d: the link of %s has %d bits", c.Link, b.Name, link.Bits)
	}
	if c.Ethernet > link.Ethernet && link.Ethernet > 0 && !bad["ethernet"] {
		fail("-ethernet %d: %s has no more than %d", c.Ethernet, b.Name, link.Ethernet)
	}
	if c.Bundle {
		fail("-bundle: files for a board hold one module each; leave it out")
	}
	c.Shell, c.Link = link.Shell, link.Bits
	if given["clock"] && !bad["clock"] {
		if err := b.CheckClock(c.Clock); err != nil {
			fail("-clock %w", err)
			return errs // no card of this board can have that clock
		}
	}
	if !given["lanes"] {
		largest, ok := b.Largest(*c, given)
		if !ok && len(bad) > 0 {
			return errs // an unreadable flag, already reported, may select another card
		}
		if !ok {
			fail("-board %s: no card like this is recorded for it; set the size with -lanes", b.Name)
		} else {
			*c = largest
		}
	}
	if c.Clock == 0 && !given["clock"] {
		c.Clock = link.Clock
	}
	return errs
}

// onNetwork sets the card's own address and its Ethernet ports, or nothing for a shell without, and
// returns all mistakes.
func (o *Options) onNetwork(known Known, given, bad map[string]bool) (errs []error) {
	fail := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("-%s %w", flag, err))
		}
	}
	if !slices.Contains(known.Networked, o.Shell) {
		advice := "leave it out"
		if !given["board"] { // a board decides the shell
			advice += ", or use -shell " + orList(known.Networked)
		}
		for _, flag := range []string{"ethernet", "mac", "ip", "udp-port"} {
			if given[flag] && slices.Contains(known.Shells, o.Shell) {
				errs = append(errs, fmt.Errorf("-%s: shell %s has no Ethernet ports; %s", flag, o.Shell, advice))
			}
		}
		o.Ethernet, o.UDPPort = 0, 0
		return errs
	}
	if !given["link"] {
		o.Link = defaultEthernetLink
	}
	var err error
	if o.MAC, err = wire.ParseMAC(o.mac); err != nil {
		fail("mac", fmt.Errorf("%s: %w", o.mac, err))
	}
	if o.IP, err = wire.ParseIP(o.ip); err != nil {
		fail("ip", fmt.Errorf("%s: %w", o.ip, err))
	}
	if (o.Ethernet < 1 || o.Ethernet > maxEthernet) && !bad["ethernet"] {
		fail("ethernet", fmt.Errorf("%d: must be 1 to %d", o.Ethernet, maxEthernet))
	}
	if (o.UDPPort < 1 || o.UDPPort > 65535) && !bad["udp-port"] {
		fail("udp-port", fmt.Errorf("%d: must be 1 to 65535", o.UDPPort))
	}
	return errs
}

// recorded reports whether a recorded card sets the sizes.
func (c *Config) recorded(given map[string]bool) bool { return c.Board != "" && !given["lanes"] }

// chunkFor returns the default chunk: the usual one, doubled until it has two beats for each
// worker and eight in all, or a packet cannot carry more. Fewer beats would leave bubbles between
// chunks.
func chunkFor(lanes, workers, most int) int {
	chunk := defaultChunk
	for chunk < lanes*max(2*workers, 8) && 2*chunk <= most {
		chunk *= 2
	}
	return chunk
}

func powerOfTwo(n int) bool { return n > 0 && n&(n-1) == 0 }
