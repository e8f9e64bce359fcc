// Package boards reads the board files in constraints/: part, pins, clocks, link and LEDs.
// A new board needs a new file, and no code.
package boards

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"tributary/constraints"
)

// Board is a board that a card can be made for.
type Board struct {
	Name       string            `json:"-"`                 // of its file
	Title      string            `json:"title"`             // name for people
	Part       string            `json:"part"`              // the FPGA's complete order number
	Nextpnr    []string          `json:"nextpnr,omitempty"` // the part, as nextpnr-ecp5's arguments
	Vivado     *Vivado           `json:"vivado,omitempty"`  // or the part in Vivado
	Programmer string            `json:"programmer"`        // the board's name in openFPGALoader; "": it needs a JTAG cable
	Clock      Clock             `json:"clock"`
	CoreMHz    int               `json:"core_mhz"`       // the card's default clock
	SmallMHz   int               `json:"small_mhz"`      // clock of a card of 4 lanes x 4 workers; absent: CoreMHz
	ULPI       *ULPI             `json:"ulpi,omitempty"` // exactly one link: ULPI, USBPins, UART or FIFO
	USBPins    *USBPins          `json:"usb_pins,omitempty"`
	UART       *UART             `json:"uart,omitempty"`
	FIFO       *FIFO             `json:"fifo,omitempty"`
	Ethernet   *Ethernet         `json:"ethernet,omitempty"` // the link of a card of shell udp; nil: the board has none that is known
	LEDs       LEDs              `json:"leds"`
	Supply     *Supply           `json:"supply,omitempty"` // supply of the PHY's pins that the FPGA must enable; nil: none
	Sources    map[string]string `json:"sources"`          // sources of the pins: package and version, to its file
	Notes      []string          `json:"notes,omitempty"`  // for the owner, one sentence each

	onEthernet bool // its link is Ethernet
}

// Clock is the board's oscillator.
type Clock struct {
	MHz int    `json:"mhz"`
	Pin string `json:"pin"`
	IO  string `json:"io"`
}

// LEDs are the LEDs that the card uses, and the level that lights them.
type LEDs struct {
	IO      string `json:"io"`
	Lit     string `json:"lit"` // "high" or "low"
	Link    string `json:"link"`
	Traffic string `json:"traffic"`
	Error   string `json:"error"`

	// Pins that all LEDs share, by level.
	HeldHigh []string `json:"held_high,omitempty"`
	HeldLow  []string `json:"held_low,omitempty"`
}

// Supply is a supply of the FPGA's pins. The FPGA sets its voltage by a pin's duty cycle,
// then enables it.
type Supply struct {
	IO      string   `json:"io"`
	Set     []string `json:"set"`     // pins that set the voltage, one per rail
	Enable  string   `json:"enable"`  // pin that enables all rails, active high
	Percent float64  `json:"percent"` // duty cycle of the pins in Set
}

// usbMHz is the clock of the USB devices, of ULPI and of FTDI's chips.
const usbMHz = 60

// Values of fields for levels.
const (
	High = "high"
	Low  = "low"
)

var (
	all = mustLoad(constraints.Files)
	pin = regexp.MustCompile(`^[A-Z]{1,2}[0-9]{1,2}$`)
)

// All returns every board, by name.
func All() []Board { return all }

// Names returns the names of all boards.
func Names() []string {
	var names []string
	for _, b := range all {
		names = append(names, b.Name)
	}
	return names
}

// Find returns the board with a name.
func Find(name string) (Board, bool) {
	i := slices.IndexFunc(all, func(b Board) bool { return b.Name == name })
	if i < 0 {
		return Board{}, false
	}
	return all[i], true
}

// load reads the boards of a folder, by name.
func load(files fs.FS) ([]Board, error) {
	names, err := fs.Glob(files, "*.json")
	if err != nil {
		return nil, err
	}
	var boards []Board
	var errs []error
	for _, name := range names {
		b, err := read(files, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		boards = append(boards, b)
	}
	return boards, errors.Join(errs...)
}

func mustLoad(files fs.FS) []Board {
	boards, err := load(files)
	if err != nil {
		panic("constraints/, which is embedded: " + err.Error())
	}
	return boards
}

// read reads and checks one board.
func read(files fs.FS, name string) (Board, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return Board{}, err
	}
	b := Board{Name: strings.TrimSuffix(name, ".json")}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&b); err != nil {
		return b, err
	}
	if b.SmallMHz == 0 {
		b.SmallMHz = b.CoreMHz
	}
	return b, b.check()
}

// check returns all mistakes in a board's file.
func (b Board) check() error {
	var errs []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	must(b.Title != "" && b.Part != "", "title or part is empty")
	if err := oneOf("leds.lit", b.LEDs.Lit, High, Low); err != nil {
		errs = append(errs, err)
	}
	must(len(b.Sources) >= 2, "sources has %d entries: every pin is read in two places", len(b.Sources))
	if b.Supply != nil {
		must(b.Supply.Percent > 0 && b.Supply.Percent < 100, "supply.percent is %g", b.Supply.Percent)
	}
	if err := errors.Join(b.checkLink(), b.checkFamily()); err != nil {
		return errors.Join(append(errs, err)...) // the remaining checks need the link
	}
	if err := b.Family().check(b); err != nil {
		errs = append(errs, err)
	}
	for _, mhz := range []int{b.CoreMHz, b.SmallMHz} {
		if _, err := b.PLL(mhz); err != nil {
			errs = append(errs, err)
		}
	}
	if err := b.checkEthernet(); err != nil {
		errs = append(errs, err)
	} else if err := checkPins(b.Pins()); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkPins returns the pins that are no pins, lack a type, or are given twice.
func checkPins(pins []Pin) error {
	var errs []error
	seen := map[string]string{}
	for _, p := range pins {
		if !pin.MatchString(p.Site) {
			errs = append(errs, fmt.Errorf("%s: %q is not a pin", p.Port, p.Site))
		}
		if p.IO == "" {
			errs = append(errs, fmt.Errorf("%s has no io", p.Port))
		}
		if seen[p.Site] != "" {
			errs = append(errs, fmt.Errorf("pin %s is given to %s and %s", p.Site, seen[p.Site], p.Port))
		}
		seen[p.Site] = p.Port
	}
	return errors.Join(errs...)
}
