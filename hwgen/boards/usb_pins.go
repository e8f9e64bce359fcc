package boards

import "fmt"

// USBPins is a full-speed USB link on two pins of the FPGA.
type USBPins struct {
	IO     string `json:"io"`
	DP     string `json:"d_p"`
	DN     string `json:"d_n"`
	PullUp string `json:"pull_up"` // pulls D+ up when high
}

// USBPins is a Link.
func (u *USBPins) Title() string        { return "USB 2.0 full speed (pins)" }
func (u *USBPins) Nets() []string       { return []string{"usb"} }
func (u *USBPins) MHz() int             { return usbMHz }
func (u *USBPins) ClockPorts() []string { return nil }
func (u *USBPins) PHY() string          { return "pins" }
func (u *USBPins) ResetUS() int         { return defaultResetUS }
func (u *USBPins) Timing() *Timing      { return nil }

// USBDevice differs from a PHY's device in its ports, so it has a name of its own.
func (u *USBPins) USBDevice() string { return "agg_usb_pins_device" }

func (u *USBPins) Words(b Board) Words {
	return Words{
		Find:        findUSB,
		LED:         ledUSB,
		On:          "USB 2.0 at full speed, 12 Mbit/s",
		Clocks:      fmt.Sprintf("A PLL makes `usb_clk`, %d MHz, and `clk` from the board's %d MHz. A bit on USB lasts five cycles of `usb_clk`.", u.MHz(), b.Clock.MHz),
		Constrained: "the oscillator",
		Pads:        "A bit on\nUSB lasts 83 ns, and the FPGA samples the lines asynchronously: D+ and D- need no constraint.",
		Reset:       "D+ has no pull-up for a millisecond, so that a host sees no device; `usb_rst` falls, then `rst`.",
	}
}

func (u *USBPins) pins() []Pin {
	// No internal pull-ups: the host detects a device by the lines' levels.
	return []Pin{
		{Port: "usb_d_p", Site: u.DP, IO: u.IO, Pull: "NONE"},
		{Port: "usb_d_n", Site: u.DN, IO: u.IO, Pull: "NONE"},
		{Port: "usb_pull_up", Site: u.PullUp, IO: u.IO, Pull: "NONE"},
	}
}

func (u *USBPins) check() error { return nil }
