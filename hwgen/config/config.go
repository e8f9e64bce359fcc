// Package config parses the flags of hwgen into a complete and valid Config, or reports
// all errors at once.
package config

import (
	"fmt"
	"strings"
)

// Config is what the user of the generator chooses. Parse returns only valid
// ones; the zero value is not.
type Config struct {
	Lanes    int    // elements in a beat: a power of two, 1..64
	Workers  int    // ports of the card, 1..64
	Format   string // of the contributions' elements, by name
	Result   string // of the sums' elements, by name
	Sum      string // arithmetic of the lanes, by name
	Shell    string // what stands around the core, by name
	Chunk    int    // most elements in a chunk, a multiple of Lanes
	Window   int    // most chunks in a job's window, a power of two
	Jobs     int    // jobs that can be set up at once
	Link     int    // bits that the link moves in a cycle; 0 for a shell without a link
	Board    string // that the card is for, by name; "" for none
	Clock    int    // MHz of the card's clock on the board; 0 without one
	Prefix   string // of every module's name
	Saturate bool   // int32 sums stop at the format's ends instead of wrapping
	DSP      bool   // lanes may use multiplier blocks for what they save
	Bundle   bool   // one Verilog file instead of one a module
}

// Dir returns the name of the folder that a card goes to unless told
// otherwise.
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

// Command returns the command line that makes this card, the same bytes
// whatever the defaults of the generator that reads it. It leaves out where
// the card goes, which changes nothing in it.
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
	if c.Link != 0 {
		add("link", c.Link)
	}
	if c.Board != "" {
		add("board", c.Board)
		add("clock", c.Clock)
	}
	if c.Prefix != DefaultPrefix {
		add("prefix", c.Prefix)
	}
	set("bundle", c.Bundle)
	return strings.Join(words, " ")
}
