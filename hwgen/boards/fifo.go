package boards

import (
	"errors"
	"fmt"
)

// FIFO is a link by USB with one of FTDI's chips in synchronous FIFO mode (synchronous
// 245): its pins, by their names in the data sheet.
type FIFO struct {
	Chip  string   `json:"chip"` // "FT232H" or "FT2232H"
	IO    string   `json:"io"`
	Slew  string   `json:"slew"`
	Drive int      `json:"drive_ma,omitempty"` // of outputs, in mA; 0 leaves it as it is
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

// fifoTimes is when such a chip gives and takes. SIWU# has no times: it is held for cycles.
var fifoTimes = Timing{
	Source:    "FTDI, DS_FT232H 2.1, table 4.1: t4, t5, t11; t7, t9, t12, t14; t8, t10, t13, t15",
	Gives:     []string{"fifo_rxf_n", "fifo_txe_n", "fifo_data[*]"},
	GivesFrom: 0, GivesBy: 9,
	Takes: []string{"fifo_rd_n", "fifo_wr_n", "fifo_oe_n", "fifo_siwu_n", "fifo_data[*]"},
	Setup: 7.5, Hold: 0,
}

// FIFO is a Link.
func (f *FIFO) Title() string     { return fmt.Sprintf("USB 2.0 high speed (%s)", f.Chip) }
func (f *FIFO) Nets() string      { return "usb" }
func (f *FIFO) MHz() int          { return usbMHz }
func (f *FIFO) ClockPort() string { return "fifo_clk" }
func (f *FIFO) USBDevice() string { return "" }
func (f *FIFO) PHY() string       { return "" }
func (f *FIFO) Timing() *Timing   { return &fifoTimes }

func (f *FIFO) Words(b Board) Words {
	return Words{
		Find: "tributary info -card ftdi:      # asks the card what it is",
		On:   fmt.Sprintf("USB 2.0 at high speed, behind the board's %s", f.Chip),
		Clocks: fmt.Sprintf("`usb_clk`, %d MHz, comes from the chip, while it is in synchronous FIFO mode; `clk` comes from the %d MHz of the board, by a PLL.",
			f.MHz(), b.Clock.MHz),
		Constrained: "the oscillator and the chip's clock",
		Pads: fmt.Sprintf("The chip\nleaves %.2f of %.2f ns for what comes from it, and %.2f for what goes to it: all but TXE# stand in registers at the pins.",
			1000/float64(f.MHz())-fifoTimes.GivesBy, 1000/float64(f.MHz()), 1000/float64(f.MHz())-fifoTimes.Setup),
		Reset: "for a millisecond everything is in reset; then `usb_rst` falls with the chip's clock, then `rst`. Until a host\nbrings the chip into synchronous FIFO mode it gives no clock, and the card stays in reset.",
		LED:   "the chip has had a clock since the FPGA was loaded, and no host is beginning anew",
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
