// Package config parses the flags of hwgen into a complete and valid Config, or reports
// all errors at once.
package config

import (
	"fmt"
	"strings"

	"tributary/driver/wire"
)

// Config is the configuration of a card. Parse returns only valid values; the zero value
// is not valid.
type Config struct {
	Lanes    int    // elements in a beat: a power of two, 1..64
	Workers  int    // ports of the card, 1..64
	Format   string // of the contributions' elements, by name
	Result   string // of the sums' elements, by name
	Sum      string // arithmetic of the lanes, by name
	Shell    string // logic around the core, by name
	RegPort  string // kind of the register port, by name; "" for a shell without one
	Chunk    int    // maximum number of elements in a chunk, a multiple of Lanes
	Window   int    // maximum number of chunks in a job's window, a power of two
	Jobs     int    // maximum number of jobs at a time
	Link     int    // width of the link, or of each Ethernet port, in bits a cycle; 0 for a shell without
	Ethernet int    // Ethernet ports; 0 for a shell without
	Parent   bool   // an up port, for trees of cards
	MAC      uint64 // the card's own address on the network when it is new, first byte highest;
	IP       uint32 // 0 for a shell without Ethernet ports
	UDPPort  int    // the same
	Board    string // target board, by name; "" for none
	Clock    int    // MHz of the card's clock on the board; 0 without a board
	Prefix   string // of every module's name
	Saturate bool   // int32 sums saturate instead of wrapping around
	DSP      bool   // lanes may use multiplier blocks to save cells
	Bundle   bool   // one Verilog file instead of one per module

	StripFormal bool // leaves without their properties
}

// Dir returns the default name of the card's folder.
func (c Config) Dir() string {
	formats := c.Format
	if c.Result != c.Format {
		formats += "_" + c.Result
	}
	board := ""
	if c.Board != "" {
		board = c.Board + "_"
	}
	return fmt.Sprintf("tributary_%sl%d_w%d_%s_%s", board, c.Lanes, c.Workers, formats, c.Sum)
}

// Command returns the command line that makes this card. It names every setting, so a
// generator with other defaults makes the same bytes. It omits the folder, which does not
// change the card.
func (c Config) Command() string {
	words := []string{"hwgen"}
	add := func(name string, value any) { words = append(words, "-"+name, fmt.Sprint(value)) }
	set := func(name string, on bool) {
		if on {
			words = append(words, "-"+name)
		}
	}
	add("lanes", c.Lanes)
	add("workers", c.Workers)
	add("format", c.Format)
	add("result", c.Result)
	add("sum", c.Sum)
	set("saturate", c.Saturate)
	set("dsp", c.DSP)
	add("chunk", c.Chunk)
	add("window", c.Window)
	add("jobs", c.Jobs)
	add("shell", c.Shell)
	if c.RegPort != "" {
		add("registers", c.RegPort)
	}
	if c.Link != 0 {
		add("link", c.Link)
	}
	if c.Ethernet != 0 {
		add("ethernet", c.Ethernet)
		add("mac", wire.MACText(c.MAC))
		add("ip", wire.IPText(c.IP))
		add("udp-port", c.UDPPort)
	}
	set("parent", c.Parent)
	if c.Board != "" {
		add("board", c.Board)
		add("clock", c.Clock)
	}
	if c.Prefix != DefaultPrefix {
		add("prefix", c.Prefix)
	}
	set("bundle", c.Bundle)
	set("strip-formal", c.StripFormal)
	return strings.Join(words, " ")
}
