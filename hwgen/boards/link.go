package boards

import (
	"fmt"
	"slices"
)

// Link is the connection of a board to a host. A board's file has exactly one, and may have
// Ethernet ports besides, for cards of shell udp.
//
// A new kind of link needs a type in this package, a field of Board that links returns,
// and a boardLink in hwgen/plan.
type Link interface {
	// Title is the link's name in tables.
	Title() string

	// Nets are the prefixes of the nets on the link's side, one for each of its clocks: the
	// clock is NETS_clk.
	Nets() []string

	// MHz is the frequency of the link's clocks.
	MHz() int

	// ClockPorts are the board top's inputs for the link's clocks; empty if the board's PLL
	// makes its one clock.
	ClockPorts() []string

	// USBDevice is the module that usb_device.py writes, without the card's prefix; "" for
	// a link without one.
	USBDevice() string

	// PHY is the value of usb_device.py's flag --phy; "" for a link without a USBDevice.
	PHY() string

	// ResetUS is the length of the reset of the chip at the pins, in microseconds.
	ResetUS() int

	// Timing is the timing of the chip at the pins; nil if it is unknown or irrelevant.
	Timing() *Timing

	// Words are the texts about the link in the README beside the board's top.
	Words(Board) Words

	// pins lists the link's pins.
	pins() []Pin

	// check returns all mistakes of the link in a board's file.
	check() error
}

// Words are texts about a link: sentences, and ends of sentences.
type Words struct {
	Find        string // a command with which a host finds the card, and its effect
	On          string // the link
	Clocks      string // sources of the link's and the card's clocks
	Constrained string // the constrained clocks, besides the PLL's outputs
	Pads        string // timing of the pins
	Reset       string // the steps after the PLL's lock
	LED         string // the condition that lights the link's LED
}

// Timing is the timing of the chip at a link's pins, in nanoseconds from a rising edge of
// the clock at ClockPorts, at the chip's own pins.
type Timing struct {
	Source             string   // document, table, rows
	Gives, Takes       []string // ports that the chip drives, and that it samples
	GivesFrom, GivesBy float64  // the chip's outputs change this long after the edge
	Setup, Hold        float64  // of the chip's inputs
}

// Link returns the board's link.
func (b Board) Link() Link { return b.links()[0] }

// links returns the links in the board's file, or Ethernet alone for a card of shell udp.
func (b Board) links() (given []Link) {
	if b.onEthernet {
		return []Link{b.Ethernet}
	}
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

// linkKinds lists the fields of a board's file that are links.
const linkKinds = "ulpi, usb_pins, uart, fifo"

// checkLink returns all mistakes of the board's link.
func (b Board) checkLink() error {
	given := b.links()
	if len(given) != 1 {
		return fmt.Errorf("%d links: must have exactly one of %s", len(given), linkKinds)
	}
	return given[0].check()
}

// defaultResetUS is enough for USB PHYs, and as long as the pins without a chip's reset are idle.
const defaultResetUS = 1000

// Texts for every USB device.
const (
	findUSB = "tributary list      # finds the card on USB"
	ledUSB  = "a host has claimed the card"
)

// oneOf checks that a field has one of two values.
func oneOf(field, value string, choices ...string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("%s is %q: must be %q or %q", field, value, choices[0], choices[1])
}

// counted checks the number of pins in a field.
func counted(field string, pins []string, want int) error {
	if len(pins) == want {
		return nil
	}
	return fmt.Errorf("%s has %d pins, not %d", field, len(pins), want)
}
