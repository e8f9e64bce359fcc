package boards

import (
	"fmt"
	"slices"
)

// Link is the way from a board to a host. Its kind is what stands at the FPGA's pins; a
// board's file has exactly one.
//
// A further kind is one more type of this package, a field of Board that links returns,
// and in hwgen/plan what stands between its pins and the card.
type Link interface {
	// Title is what tables call the link.
	Title() string

	// Nets is what the names of nets on the link's side begin with: NETS_clk is the clock
	// that what stands at the pins has.
	Nets() string

	// MHz of that clock.
	MHz() int

	// ClockPort is the port of the board's top by which that clock comes in; "" where the
	// board's PLL makes it.
	ClockPort() string

	// USBDevice is the module that usb_device.py writes, before any prefix; "" where there
	// is none.
	USBDevice() string

	// PHY is what that stands behind, as the flag of usb_device.py has it.
	PHY() string

	// Timing is when what is behind the pins gives and takes; nil where that is not known,
	// or nothing has to be kept.
	Timing() *Timing

	// Words are what the README beside the board's top says of the link.
	Words(Board) Words

	// pins lists the link's pins.
	pins() []Pin

	// check returns all that is wrong with the link in a board's file.
	check() error
}

// Words are sentences about a link, and ends of sentences.
type Words struct {
	Find        string // how a host finds the card: a command, and what it does
	On          string // what the card is on
	Clocks      string // where the clocks of link and card come from
	Constrained string // the clocks that are, besides what the PLL makes
	Pads        string // what is to be known of the time at the pins
	Reset       string // what happens once the PLL has locked
	LED         string // what is so while the LED of the link is lit
}

// Timing is when what is behind a link's pins gives and takes, in nanoseconds from a
// rising edge of the clock that comes in by ClockPort, at its own pins.
type Timing struct {
	Source             string   // document, its table, and what there
	Gives, Takes       []string // ports
	GivesFrom, GivesBy float64  // it changes what it gives, after the edge
	Setup, Hold        float64  // what it takes must stand, before and after it
}

// Link returns the board's link.
func (b Board) Link() Link { return b.links()[0] }

// links returns what the board's file has of every kind of link.
func (b Board) links() (given []Link) {
	if b.ULPI != nil {
		given = append(given, b.ULPI)
	}
	if b.USBPins != nil {
		given = append(given, b.USBPins)
	}
	if b.UART != nil {
		given = append(given, b.UART)
	}
	if b.FIFO != nil {
		given = append(given, b.FIFO)
	}
	return given
}

// linkKinds are the fields of a board's file that are links.
const linkKinds = "ulpi, usb_pins, uart, fifo"

// checkLink returns all that is wrong with the board's link.
func (b Board) checkLink() error {
	given := b.links()
	if len(given) != 1 {
		return fmt.Errorf("%d links: must have exactly one of %s", len(given), linkKinds)
	}
	return given[0].check()
}

// Words of every USB device.
const (
	findUSB = "tributary list      # finds the card on USB"
	ledUSB  = "a host has claimed the card"
)

// oneOf checks a field that chooses.
func oneOf(field, value string, choices ...string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("%s is %q: must be %q or %q", field, value, choices[0], choices[1])
}

// counted checks how many pins a field has.
func counted(field string, pins []string, want int) error {
	if len(pins) == want {
		return nil
	}
	return fmt.Errorf("%s has %d pins, not %d", field, len(pins), want)
}
