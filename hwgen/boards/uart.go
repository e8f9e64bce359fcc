package boards

import (
	"errors"
	"fmt"
	"math"
)

// UART is a link by a serial line: two pins of the FPGA, and a chip at the other end that the
// host sees as a serial port.
type UART struct {
	Chip string `json:"chip"` // name of the chip, for people
	Baud int    `json:"baud"` // in both directions: 8 data bits, no parity, one stop bit
	IO   string `json:"io"`
	RX   string `json:"rx"` // from the host
	TX   string `json:"tx"` // to the host
}

// uartMHz is the UART's clock: 20 cycles a bit at 3,000,000 baud, and a whole number at 1 and 2
// million.
const uartMHz = 60

// Limits of a UART's rate.
const (
	minDivide  = 8     // cycles a bit, for agg_uart_rx
	maxDivide  = 65535 // limit of its counter
	maxBaudOff = 0.5   // percent; with 8 cycles a bit, the sum of all errors may be 2.5
)

// Divide returns the length of a bit in cycles of the link's clock.
func (u *UART) Divide() int { return int(math.Round(uartMHz * 1e6 / float64(u.Baud))) }

// off returns the error of the line's rate in percent.
func (u *UART) off() float64 {
	return 100 * math.Abs(uartMHz*1e6/float64(u.Divide())/float64(u.Baud)-1)
}

// UART is a Link.
func (u *UART) Title() string        { return fmt.Sprintf("UART, %s baud", thousands(u.Baud)) }
func (u *UART) Nets() []string       { return []string{"uart"} }
func (u *UART) MHz() int             { return uartMHz }
func (u *UART) ClockPorts() []string { return nil }
func (u *UART) USBDevice() string    { return "" }
func (u *UART) PHY() string          { return "" }
func (u *UART) ResetUS() int         { return defaultResetUS }
func (u *UART) Timing() *Timing      { return nil }

func (u *UART) Words(b Board) Words {
	return Words{
		Find:        fmt.Sprintf("tributary info -card serial:/dev/ttyUSB1@%d   # prints the card's configuration", u.Baud),
		On:          fmt.Sprintf("a serial line to the board's %s, %s baud each way", u.Chip, thousands(u.Baud)),
		Clocks:      fmt.Sprintf("A PLL makes `uart_clk`, %d MHz, and `clk` from the board's %d MHz. A bit on the line lasts %d cycles of `uart_clk`.", u.MHz(), b.Clock.MHz, u.Divide()),
		Constrained: "the oscillator",
		Pads:        fmt.Sprintf("A bit on\nthe line lasts %.0f ns, and the FPGA samples the line asynchronously: the two lines need no constraint.", 1e9/float64(u.Baud)),
		Reset:       "a millisecond later, `uart_rst` falls, then `rst`.",
		LED:         "the link is up; it goes down only for a moment, when a new host sends a break",
	}
}

func (u *UART) pins() []Pin {
	// The pull-up keeps an undriven line idle.
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
		return errors.New("uart.chip is empty: must name the chip at the other end of the lines")
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
