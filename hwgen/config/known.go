package config

import (
	"fmt"
	"slices"
	"strings"

	"tributary/driver/wire"
)

// Known is what a configuration may name: what this build of the generator can
// plan.
type Known struct {
	Formats, Sums, Shells []string
	DSP                   []string // the sums that may use multiplier blocks for floating-point formats
	Saturating            []string // the sums that may saturate for int32
	Linked                []string // the shells that have a link
	Boards                []Board
}

// Board is a board that a card can be for.
type Board struct {
	Name  string
	Shell string // that its link needs
	Link  int    // bits of it
	Clock int    // MHz that the card runs at, unless told otherwise

	// CheckClock says why the board cannot run a card at so many MHz.
	CheckClock func(mhz int) error

	// Largest returns the largest card like the given one that is recorded to fit and to
	// keep its clocks. It sets what fixed does not name among lanes, workers, chunk,
	// window, jobs and clock.
	Largest func(c Config, fixed map[string]bool) (Config, bool)
}

// board returns the board of a name.
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

// choice reports a name that is not among those that exist.
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

// results returns the formats that sums of the given one may have: those that
// hold every value of it.
func (k Known) results(format string) []string {
	var all []string
	for _, name := range k.Formats {
		if row(format).FitsIn(row(name)) {
			all = append(all, name)
		}
	}
	return all
}

// maxChunk returns the largest chunk, in elements, that a packet of the shell
// can carry: the length field's range, and on a link the longest frame of data
// or result, each in its own format.
func (k Known) maxChunk(c Config) int {
	most := 1<<16 - 1
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

// row returns what the wire table says of a format that exists.
func row(name string) wire.FormatInfo {
	return wire.Formats[slices.IndexFunc(wire.Formats, func(f wire.FormatInfo) bool { return f.Name == name })]
}
