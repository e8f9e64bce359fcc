package boards

import (
	"errors"
	"fmt"
)

// ULPI is a USB link through a PHY. Fields for pins have the names of the ULPI specification.
type ULPI struct {
	Clock string   `json:"clock"` // "from PHY" or "to PHY": the direction of the 60 MHz clock
	Reset string   `json:"reset"` // "high" or "low": the level at rst that resets the PHY
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
func (u *ULPI) Nets() []string    { return []string{"usb"} }
func (u *ULPI) MHz() int          { return usbMHz }
func (u *ULPI) USBDevice() string { return "agg_usb_device" }
func (u *ULPI) PHY() string       { return "ulpi" }
func (u *ULPI) ResetUS() int      { return defaultResetUS }
func (u *ULPI) Timing() *Timing   { return nil }

func (u *ULPI) ClockPorts() []string {
	if u.Clock == FromPHY {
		return []string{"ulpi_clk"}
	}
	return nil
}

func (u *ULPI) Words(b Board) Words {
	w := Words{
		Find: findUSB,
		LED:  ledUSB,
		On:   "USB 2.0 at high speed",
		Pads: fmt.Sprintf("A PHY\nleaves them less than a period, %.1f ns at %d MHz; its datasheet has the setup and hold times.",
			1000/float64(u.MHz()), u.MHz()),
		Reset: "the PHY is in reset for a millisecond; its clock starts; `usb_rst` falls, then `rst`. Without the\nPHY's clock, the card stays in reset.",
	}
	if u.Clock == FromPHY {
		w.Clocks = fmt.Sprintf("The PHY drives `usb_clk`, %d MHz. A PLL makes `clk` from the board's %d MHz.", u.MHz(), b.Clock.MHz)
		w.Constrained = "the oscillator and the PHY's clock"
	} else {
		w.Clocks = fmt.Sprintf("A PLL makes `usb_clk`, %d MHz, and `clk` from the board's %d MHz; the FPGA drives the PHY with `usb_clk`.", u.MHz(), b.Clock.MHz)
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
