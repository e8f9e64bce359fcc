package boards

import (
	"errors"
	"fmt"
)

// FIFO is a USB link through an FTDI chip in synchronous FIFO mode (synchronous 245).
// Fields for pins have the names of the chip's datasheet.
type FIFO struct {
	Chip  string   `json:"chip"` // "FT232H" or "FT2232H"
	IO    string   `json:"io"`
	Slew  string   `json:"slew"`
	Drive int      `json:"drive_ma,omitempty"` // of outputs, in mA; 0 keeps the tool's default
	Clk   string   `json:"clkout"`
	RXF   string   `json:"rxf_n"`
	TXE   string   `json:"txe_n"`
	RD    string   `json:"rd_n"`
	WR    string   `json:"wr_n"`
	OE    string   `json:"oe_n"`
	SIWU  string   `json:"siwu_n"`
	Data  []string `json:"data"` // bit 0 first
}

// The values of FIFO.Chip.
const (
	FT232H  = "FT232H"
	FT2232H = "FT2232H"
)

// fifoTimes is the chips' timing. SIWU# has no times: agg_fifo_bus holds it for cycles.
var fifoTimes = Timing{
	Source:    "FTDI, DS_FT232H 2.1, table 4.1: t4, t5, t11; t7, t9, t12, t14; t8, t10, t13, t15",
	Gives:     []string{"fifo_rxf_n", "fifo_txe_n", "fifo_data[*]"},
	GivesFrom: 0, GivesBy: 9,
	Takes: []string{"fifo_rd_n", "fifo_wr_n", "fifo_oe_n", "fifo_siwu_n", "fifo_data[*]"},
	Setup: 7.5, Hold: 0,
}

// FIFO is a Link.
func (f *FIFO) Title() string        { return fmt.Sprintf("USB 2.0 high speed (%s)", f.Chip) }
func (f *FIFO) Nets() []string       { return []string{"usb"} }
func (f *FIFO) MHz() int             { return usbMHz }
func (f *FIFO) ClockPorts() []string { return []string{"fifo_clk"} }
func (f *FIFO) USBDevice() string    { return "" }
func (f *FIFO) PHY() string          { return "" }
func (f *FIFO) ResetUS() int         { return defaultResetUS }
func (f *FIFO) Timing() *Timing      { return &fifoTimes }

func (f *FIFO) Words(b Board) Words {
	return Words{
		Find: "tributary info -card ftdi:      # prints the card's configuration",
		On:   fmt.Sprintf("USB 2.0 at high speed, through the board's %s", f.Chip),
		Clocks: fmt.Sprintf("The chip drives `usb_clk`, %d MHz, while it is in synchronous FIFO mode. A PLL makes `clk` from the board's %d MHz.",
			f.MHz(), b.Clock.MHz),
		Constrained: "the oscillator and the chip's clock",
		Pads: fmt.Sprintf("Of a\nperiod of %.2f ns, the chip leaves %.2f ns for signals from the chip and %.2f ns for signals to it. All except TXE# have registers at the pins.",
			1000/float64(f.MHz()), 1000/float64(f.MHz())-fifoTimes.GivesBy, 1000/float64(f.MHz())-fifoTimes.Setup),
		Reset: "everything is in reset for a millisecond; then `usb_rst` falls with the chip's clock, then `rst`. The chip\ndrives no clock until a host selects synchronous FIFO mode; until then, the card stays in reset.",
		LED:   "the chip's clock has run since the FPGA was loaded, and no host sends a break",
	}
}

func (f *FIFO) pins() []Pin {
	pins := []Pin{
		{Port: "fifo_clk", Site: f.Clk, IO: f.IO},
		{Port: "fifo_rxf_n", Site: f.RXF, IO: f.IO},
		{Port: "fifo_txe_n", Site: f.TXE, IO: f.IO},
	}
	out := func(port, site string) {
		pins = append(pins, Pin{Port: port, Site: site, IO: f.IO, Slew: f.Slew, Drive: f.Drive})
	}
	out("fifo_rd_n", f.RD)
	out("fifo_wr_n", f.WR)
	out("fifo_oe_n", f.OE)
	out("fifo_siwu_n", f.SIWU)
	for i, site := range f.Data {
		out(fmt.Sprintf("fifo_data[%d]", i), site)
	}
	return pins
}

func (f *FIFO) check() error {
	return errors.Join(
		counted("fifo.data", f.Data, 8),
		oneOf("fifo.chip", f.Chip, FT232H, FT2232H))
}
