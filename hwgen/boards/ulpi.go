package boards

import (
	"errors"
	"fmt"
)

// ULPI is a link by USB with a PHY: its pins, by their names in the ULPI specification.
type ULPI struct {
	Clock string   `json:"clock"` // "from PHY" or "to PHY": who drives the 60 MHz
	Reset string   `json:"reset"` // "high" or "low": the level at rst that resets it
	IO    string   `json:"io"`
	Slew  string   `json:"slew"`
	Clk   string   `json:"clk"`
	Dir   string   `json:"dir"`
	Nxt   string   `json:"nxt"`
	Stp   string   `json:"stp"`
	Rst   string   `json:"rst"`
	Data  []string `json:"data"` // bit 0 first
}

// The values of ULPI.Clock.
const (
	FromPHY = "from PHY"
	ToPHY   = "to PHY"
)

// ULPI is a Link.
func (u *ULPI) Title() string     { return "USB 2.0 high speed (ULPI)" }
func (u *ULPI) Nets() string      { return "usb" }
func (u *ULPI) MHz() int          { return usbMHz }
func (u *ULPI) USBDevice() string { return "agg_usb_device" }
func (u *ULPI) PHY() string       { return "ulpi" }
func (u *ULPI) Timing() *Timing   { return nil }

func (u *ULPI) ClockPort() string {
	if u.Clock == FromPHY {
		return "ulpi_clk"
	}
	return ""
}

func (u *ULPI) Words(b Board) Words {
	w := Words{
		Find: findUSB,
		LED:  ledUSB,
		On:   "USB 2.0 at high speed",
		Pads: fmt.Sprintf("A PHY\nleaves less than a period for them, %d MHz being %.1f ns: what it needs before and after its clock is in its datasheet.",
			u.MHz(), 1000/float64(u.MHz())),
		Reset: "the PHY is reset for a millisecond; its clock runs; `usb_rst` falls, then `rst`. Without the\nPHY's clock the card stays in reset.",
	}
	if u.Clock == FromPHY {
		w.Clocks = fmt.Sprintf("`usb_clk`, %d MHz, comes from the PHY; `clk` comes from the %d MHz of the board, by a PLL.", u.MHz(), b.Clock.MHz)
		w.Constrained = "the oscillator and the PHY's clock"
	} else {
		w.Clocks = fmt.Sprintf("`usb_clk`, %d MHz, and `clk` come from the %d MHz of the board, by a PLL; the PHY is given `usb_clk`.", u.MHz(), b.Clock.MHz)
		w.Constrained = "the oscillator"
	}
	return w
}

func (u *ULPI) pins() []Pin {
	pins := []Pin{
		{Port: "ulpi_rst", Site: u.Rst, IO: u.IO},
		{Port: "ulpi_clk", Site: u.Clk, IO: u.IO},
		{Port: "ulpi_dir", Site: u.Dir, IO: u.IO},
		{Port: "ulpi_nxt", Site: u.Nxt, IO: u.IO},
		{Port: "ulpi_stp", Site: u.Stp, IO: u.IO, Slew: u.Slew},
	}
	if u.Clock == ToPHY {
		pins[1].Slew = u.Slew
	}
	for i, site := range u.Data {
		pins = append(pins, Pin{Port: fmt.Sprintf("ulpi_data[%d]", i), Site: site, IO: u.IO, Slew: u.Slew})
	}
	return pins
}

func (u *ULPI) check() error {
	return errors.Join(
		counted("ulpi.data", u.Data, 8),
		oneOf("ulpi.clock", u.Clock, FromPHY, ToPHY),
		oneOf("ulpi.reset", u.Reset, High, Low))
}
