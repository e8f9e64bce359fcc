package boards

import "fmt"

// USBPins is a link by USB at full speed, of which two pins of the FPGA are the lines.
type USBPins struct {
	IO     string `json:"io"`
	DP     string `json:"d_p"`
	DN     string `json:"d_n"`
	PullUp string `json:"pull_up"` // of D+, when it is high
}

// USBPins is a Link.
func (u *USBPins) Title() string     { return "USB 2.0 full speed (pins)" }
func (u *USBPins) Nets() string      { return "usb" }
func (u *USBPins) MHz() int          { return usbMHz }
func (u *USBPins) ClockPort() string { return "" }
func (u *USBPins) PHY() string       { return "pins" }
func (u *USBPins) Timing() *Timing   { return nil }

// USBDevice has a name of its own: it has other ports than that behind a PHY.
func (u *USBPins) USBDevice() string { return "agg_usb_pins_device" }

func (u *USBPins) Words(b Board) Words {
	return Words{
		Find:        findUSB,
		LED:         ledUSB,
		On:          "USB 2.0 at full speed, 12 Mbit/s",
		Clocks:      fmt.Sprintf("`usb_clk`, %d MHz, and `clk` come from the %d MHz of the board, by a PLL. A bit on USB is five cycles of `usb_clk`.", u.MHz(), b.Clock.MHz),
		Constrained: "the oscillator",
		Pads:        "A bit on\nUSB takes 83 ns, and the lines are sampled without regard to their edges: D+ and D- need no constraint.",
		Reset:       "for a millisecond D+ is not pulled up, so that a host sees no device; `usb_rst` falls, then `rst`.",
	}
}

func (u *USBPins) pins() []Pin {
	// Nothing else may pull the lines: the host sees by their level that a device is there.
	return []Pin{
		{Port: "usb_d_p", Site: u.DP, IO: u.IO, Pull: "NONE"},
		{Port: "usb_d_n", Site: u.DN, IO: u.IO, Pull: "NONE"},
		{Port: "usb_pull_up", Site: u.PullUp, IO: u.IO, Pull: "NONE"},
	}
}

func (u *USBPins) check() error { return nil }
