package boards

import (
	"errors"
	"fmt"
	"slices"
)

// Ethernet is the link of a card of shell udp: one or more ports of 1 Gbit/s in full duplex, each
// behind a PHY with RGMII pins.
type Ethernet struct {
	Chip    string  `json:"chip"` // name of the PHYs, for people
	IO      string  `json:"io"`
	Slew    string  `json:"slew"`
	CoreMHz int     `json:"core_mhz"`    // the card's default clock
	TXDelay int     `json:"tx_delay_ps"` // of TXC in the FPGA; 0 if the PHY delays it
	RXDelay int     `json:"rx_delay_ps"` // of RXD and RX_CTL in the FPGA; 0 if the PHY delays RXC
	Reset   int     `json:"reset_us"`    // length of the PHY's reset, in microseconds
	Straps  string  `json:"straps"`      // what the PHYs delay by themselves after a reset, for people
	Ports   []RGMII `json:"ports"`
}

// RGMII are the pins of an Ethernet port's PHY. Fields have the names of the RGMII specification.
type RGMII struct {
	Rst    string   `json:"rst_n"`
	RXClk  string   `json:"rx_clk"`
	RXCtl  string   `json:"rx_ctl"`
	RXData []string `json:"rx_data"` // bit 0 first
	TXClk  string   `json:"tx_clk"`
	TXCtl  string   `json:"tx_ctl"`
	TXData []string `json:"tx_data"`
}

const (
	// EthernetMAC is the module that ethernet_mac.py writes, without the card's prefix.
	EthernetMAC = "agg_eth_mac"

	// EthernetBits is the width of a card's Ethernet ports on a board. A port of 8 bits would need a
	// card of 125 MHz.
	EthernetBits = 64

	ethernetMHz = 125  // a byte a cycle
	maxDelayPS  = 3175 // of an ECP5's DELAYG: 127 taps of 25 ps
)

// OnEthernet returns the board for a card of shell udp: its first Ethernet ports are its link, and
// its clock is the one for such cards. It fails if the board's file has fewer.
func (b Board) OnEthernet(ports int) (Board, error) {
	if b.Ethernet == nil || ports < 1 || ports > len(b.Ethernet.Ports) {
		return b, fmt.Errorf("%s has no %d Ethernet ports that are known", b.Name, ports)
	}
	used := *b.Ethernet
	used.Ports = used.Ports[:ports]
	b.Ethernet, b.onEthernet = &used, true
	b.CoreMHz, b.SmallMHz = used.CoreMHz, used.CoreMHz
	return b, nil
}

// Ethernet is a Link.
func (e *Ethernet) Title() string     { return fmt.Sprintf("%d x Gigabit Ethernet (RGMII)", len(e.Ports)) }
func (e *Ethernet) MHz() int          { return ethernetMHz }
func (e *Ethernet) USBDevice() string { return "" }
func (e *Ethernet) PHY() string       { return "" }
func (e *Ethernet) ResetUS() int      { return e.Reset }
func (e *Ethernet) Timing() *Timing   { return nil }

func (e *Ethernet) Nets() (nets []string) {
	for i := range e.Ports {
		nets = append(nets, fmt.Sprintf("eth_p%d", i))
	}
	return nets
}

func (e *Ethernet) ClockPorts() (ports []string) {
	for i := range e.Ports {
		ports = append(ports, fmt.Sprintf("rgmii_p%d_rx_clk", i))
	}
	return ports
}

func (e *Ethernet) Words(b Board) Words {
	return Words{
		Find: "tributary info -card udp:ADDRESS   # prints the card's configuration",
		LED:  "the first port has a partner at 1 Gbit/s in full duplex",
		On:   "Ethernet of 1 Gbit/s, full duplex",
		Clocks: fmt.Sprintf("Each PHY (%s) drives a clock of %d MHz, RXC, in which its MAC receives and sends. A PLL makes `clk` from the board's %d MHz.",
			e.Chip, e.MHz(), b.Clock.MHz),
		Constrained: "the oscillator and the PHYs' clocks",
		Pads: fmt.Sprintf("RGMII\nsamples both edges, 4 ns apart. The FPGA delays TXC by %.1f ns, and what it receives by %.1f ns. By their straps, %s; MDIO is unused.",
			float64(e.TXDelay)/1000, float64(e.RXDelay)/1000, e.Straps),
		Reset: fmt.Sprintf("the PHY is in reset for %d ms; its clock starts; its MAC's reset falls, and the same for the next port;\nthen `rst`. Without a PHY's clock, the card stays in reset.", e.Reset/1000),
	}
}

func (e *Ethernet) pins() (pins []Pin) {
	for i, port := range e.Ports {
		in := func(name, site string) {
			pins = append(pins, Pin{Port: fmt.Sprintf("rgmii_p%d_%s", i, name), Site: site, IO: e.IO})
		}
		out := func(name, site string) {
			in(name, site)
			pins[len(pins)-1].Slew = e.Slew
		}
		in("rst_n", port.Rst)
		in("rx_clk", port.RXClk)
		in("rx_ctl", port.RXCtl)
		for bit, site := range port.RXData {
			in(fmt.Sprintf("rx_data[%d]", bit), site)
		}
		out("tx_clk", port.TXClk)
		out("tx_ctl", port.TXCtl)
		for bit, site := range port.TXData {
			out(fmt.Sprintf("tx_data[%d]", bit), site)
		}
	}
	return pins
}

func (e *Ethernet) check() error {
	errs := []error{delayed("ethernet.tx_delay_ps", e.TXDelay), delayed("ethernet.rx_delay_ps", e.RXDelay)}
	if e.Reset < 1 {
		errs = append(errs, fmt.Errorf("ethernet.reset_us is %d: must be 1 or more", e.Reset))
	}
	if len(e.Ports) == 0 {
		errs = append(errs, errors.New("ethernet.ports is empty"))
	}
	for _, port := range e.Ports {
		errs = append(errs, counted("ethernet.ports.rx_data", port.RXData, 4), counted("ethernet.ports.tx_data", port.TXData, 4))
	}
	return errors.Join(errs...)
}

// delayed checks a delay of pins.
func delayed(field string, ps int) error {
	if ps < 0 || ps > maxDelayPS {
		return fmt.Errorf("%s is %d: must be 0 to %d", field, ps, maxDelayPS)
	}
	return nil
}

// checkEthernet returns all mistakes of a board's Ethernet ports. They may share pins with nothing
// that a card of shell udp uses.
func (b Board) checkEthernet() error {
	if b.Ethernet == nil {
		return nil
	}
	if err := b.Ethernet.check(); err != nil {
		return err
	}
	on, err := b.OnEthernet(len(b.Ethernet.Ports))
	if err != nil {
		return err
	}
	if err := on.Family().check(on); err != nil {
		return err
	}
	if _, err := on.PLL(on.CoreMHz); err != nil {
		return err
	}
	return checkPins(slices.Concat(b.Pins(), b.Ethernet.pins()))
}
