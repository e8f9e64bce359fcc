package boards

import (
	"errors"
	"fmt"
	"math"
)

// UART is a link by a serial line: two pins of the FPGA, with a chip at the other end that makes
// it a serial port of the host.
type UART struct {
	Chip string `json:"chip"` // as people call it
	Baud int    `json:"baud"` // of the line, either way: bytes of 8 bits, no parity, one stop bit
	IO   string `json:"io"`
	RX   string `json:"rx"` // from the host
	TX   string `json:"tx"` // to the host
}

// uartMHz is the clock of the UART: 20 cycles a bit at 3,000,000 baud, and whole ones at 1 and 2
// million.
const uartMHz = 60

// What a UART's rate must keep.
const (
	minDivide  = 8     // cycles a bit, of agg_uart_rx
	maxDivide  = 65535 // that it counts to
	maxBaudOff = 0.5   // per cent: with 8 cycles a bit, all that is off may be 2.5
)

// Divide returns the cycles of the link's clock that a bit lasts.
func (u *UART) Divide() int { return int(math.Round(uartMHz * 1e6 / float64(u.Baud))) }

// off returns by how many per cent the line's rate is another than what the file has.
func (u *UART) off() float64 {
	return 100 * math.Abs(uartMHz*1e6/float64(u.Divide())/float64(u.Baud)-1)
}

// UART is a Link.
func (u *UART) Title() string     { return fmt.Sprintf("UART, %s baud", thousands(u.Baud)) }
func (u *UART) Nets() string      { return "uart" }
func (u *UART) MHz() int          { return uartMHz }
func (u *UART) ClockPort() string { return "" }
func (u *UART) USBDevice() string { return "" }
func (u *UART) PHY() string       { return "" }
func (u *UART) Timing() *Timing   { return nil }

func (u *UART) Words(b Board) Words {
	return Words{
		Find:        fmt.Sprintf("tributary info -card serial:/dev/ttyUSB1@%d   # asks the card what it is", u.Baud),
		On:          fmt.Sprintf("a serial line to the board's %s, %s baud each way", u.Chip, thousands(u.Baud)),
		Clocks:      fmt.Sprintf("`uart_clk`, %d MHz, and `clk` come from the %d MHz of the board, by a PLL. A bit on the line is %d cycles of `uart_clk`.", u.MHz(), b.Clock.MHz, u.Divide()),
		Constrained: "the oscillator",
		Pads:        fmt.Sprintf("A bit on\nthe line takes %.0f ns, and is sampled without regard to its edges: the two lines need no constraint.", 1e9/float64(u.Baud)),
		Reset:       "after a millisecond `uart_rst` falls, then `rst`.",
		LED:         "the link is up, which is always but for a moment when a host begins",
	}
}

func (u *UART) pins() []Pin {
	// A line that nobody drives is at rest.
	return []Pin{
		{Port: "uart_rx", Site: u.RX, IO: u.IO, Pull: "UP"},
		{Port: "uart_tx", Site: u.TX, IO: u.IO},
	}
}

func (u *UART) check() error {
	if u.Baud <= 0 || u.Divide() < minDivide || u.Divide() > maxDivide {
		return fmt.Errorf("uart.baud is %d: must be %d to %d, which is %d to %d cycles of %d MHz a bit",
			u.Baud, uartMHz*1_000_000/maxDivide+1, uartMHz*1_000_000/minDivide, minDivide, maxDivide, uartMHz)
	}
	if u.off() > maxBaudOff {
		return fmt.Errorf("uart.baud is %d: %d MHz make %.0f of it, which is off by %.1f %%; must be %.1f %% at most",
			u.Baud, uartMHz, uartMHz*1e6/float64(u.Divide()), u.off(), maxBaudOff)
	}
	if u.Chip == "" {
		return errors.New("uart.chip must say what is at the other end of the lines")
	}
	return nil
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
