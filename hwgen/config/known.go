package config

import (
	"fmt"
	"slices"
	"strings"

	"tributary/driver/wire"
)

// Known lists the names that a configuration may use: everything that the generator can
// plan.
type Known struct {
	Formats, Sums, Shells []string
	DSP                   []string // the sums that may use multiplier blocks for floating-point formats
	Saturating            []string // the sums that may saturate for int32
	Linked                []string // the shells that have a byte-stream link
	Networked             []string // the shells that have Ethernet ports
	Connected             []string // those of them whose members have connections of RoCEv2
	Boards                []Board
}

// Board is a target board.
type Board struct {
	Name  string
	Links []BoardLink // what a card may have there, the usual one first

	// CheckClock returns an error if the board cannot run a card at mhz.
	CheckClock func(mhz int) error

	// Largest returns the largest recorded card that is like c, fits the board and meets
	// its clocks. It sets lanes, workers, chunk, window, jobs and clock, except those
	// named in fixed.
	Largest func(c Config, fixed map[string]bool) (Config, bool)
}

// BoardLink is a board's connection for the cards of one shell.
type BoardLink struct {
	Shell    string
	Bits     int // width of the link, or of each Ethernet port
	Ethernet int // Ethernet ports that the board has for that shell
	Clock    int // default clock of the card, in MHz
}

// link returns the link for a shell.
func (b Board) link(shell string) (BoardLink, bool) {
	for _, l := range b.Links {
		if l.Shell == shell {
			return l, true
		}
	}
	return BoardLink{}, false
}

// shells returns the names of the shells that cards on the board may have.
func (b Board) shells() []string {
	var names []string
	for _, l := range b.Links {
		names = append(names, l.Shell)
	}
	return names
}

// board returns the board with a name.
func (k Known) board(name string) (Board, bool) {
	for _, b := range k.Boards {
		if b.Name == name {
			return b, true
		}
	}
	return Board{}, false
}

// boardNames returns the names of all boards.
func (k Known) boardNames() []string {
	var names []string
	for _, b := range k.Boards {
		names = append(names, b.Name)
	}
	return names
}

// choice returns an error for an unknown name.
func choice(flag, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("-%s %s: must be %s", flag, value, orList(known))
}

// orList returns "a", "a or b" or "a, b or c".
func orList(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// results returns the possible formats of sums of the given format: those that represent
// all its values.
func (k Known) results(format string) []string {
	var all []string
	for _, name := range k.Formats {
		if row(format).FitsIn(row(name)) {
			all = append(all, name)
		}
	}
	return all
}

// maxChunk returns the largest chunk, in elements, that fits into a packet of the shell.
// The length field limits it, and on a link the longest frame of data or result, or the largest
// payload of a datagram.
func (k Known) maxChunk(c Config) int {
	most := 1<<16 - 1
	if slices.Contains(k.Connected, c.Shell) {
		return wire.ConnectionMTUs[len(wire.ConnectionMTUs)-1] * 8 / row(c.Format).Bits
	}
	if slices.Contains(k.Networked, c.Shell) {
		return wire.MaxDatagramPayload * 8 / max(row(c.Format).Bits, row(c.Result).Bits)
	}
	if !slices.Contains(k.Linked, c.Shell) {
		return most
	}
	for _, kind := range wire.Kinds {
		format := c.Format
		if kind.FromCard {
			format = c.Result
		}
		if kind.Payload {
			most = min(most, (wire.MaxFrameBytes-kind.FrameBytes(0))*8/row(format).Bits)
		}
	}
	return most
}

// row returns the wire table's row for a known format.
func row(name string) wire.FormatInfo {
	return wire.Formats[slices.IndexFunc(wire.Formats, func(f wire.FormatInfo) bool { return f.Name == name })]
}
