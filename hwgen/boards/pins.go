package boards

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Pin is a bit of a port of the board's top module, and its location.
type Pin struct {
	Port  string // with the index of a bit of a vector
	Site  string
	IO    string
	Slew  string // of outputs; "" keeps the tool's default
	Drive int    // of outputs, in mA; 0 keeps the tool's default
	Pull  string // internal pull-up or pull-down; "" keeps the tool's default
}

// Pins lists all pins of the board's top module.
func (b Board) Pins() []Pin {
	l := b.LEDs
	pins := []Pin{{Port: "clk_in", Site: b.Clock.Pin, IO: b.Clock.IO}}
	pins = append(pins, b.Link().pins()...)
	pins = append(pins,
		Pin{Port: "led_link", Site: l.Link, IO: l.IO},
		Pin{Port: "led_traffic", Site: l.Traffic, IO: l.IO},
		Pin{Port: "led_error", Site: l.Error, IO: l.IO})
	for i, site := range slices.Concat(l.HeldHigh, l.HeldLow) {
		pins = append(pins, Pin{Port: fmt.Sprintf("led_held[%d]", i), Site: site, IO: l.IO})
	}
	if s := b.Supply; s != nil {
		for i, site := range s.Set {
			pins = append(pins, Pin{Port: fmt.Sprintf("supply_set[%d]", i), Site: site, IO: s.IO})
		}
		pins = append(pins, Pin{Port: "supply_enable", Site: s.Enable, IO: s.IO})
	}
	return pins
}

// writeSources writes the head of a constraints file: the board, and the sources of its pins.
func (b Board) writeSources(t *strings.Builder) {
	fmt.Fprintf(t, "# %s: pins and clocks. Pins as in\n", b.Title)
	for _, s := range slices.Sorted(maps.Keys(b.Sources)) {
		fmt.Fprintf(t, "#   %s (%s)\n", b.Sources[s], s)
	}
}
