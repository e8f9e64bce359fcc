package plan

import (
	"fmt"
	"math"

	"tributary/hwgen/boards"
	"tributary/hwgen/config"
	"tributary/hwgen/netlist"
)

const (
	// usbDevice is the module of the USB device, which a script beside the board's
	// top writes; it is no leaf of ours.
	usbDevice = "agg_usb_device"

	// BoardTop is the module that a board's FPGA is.
	BoardTop = "board_top"

	// Times of a board, in microseconds.
	phyResetTime     = 1000   // for which its PHY is reset
	lightTime        = 100000 // for which a lamp shows what has happened
	supplySettleTime = 30000  // until a supply's setting stands
	supplyRiseTime   = 5000   // until a supply does
)

// knownBoard says what a configuration may ask of a board.
func knownBoard(b boards.Board) config.Board {
	return config.Board{
		Name:  b.Name,
		Shell: stream.Name,
		Link:  8, // a PHY's bytes
		Clock: b.CoreMHz,
		CheckClock: func(mhz int) error {
			_, err := b.PLL(mhz)
			return err
		},
		Largest: func(c config.Config, fixed map[string]bool) (config.Config, bool) {
			row, ok := boards.Largest(b.Name, func(r boards.Row) bool { return matches(r, c, fixed) })
			if !ok {
				return c, false
			}
			c.Lanes, c.Workers, c.Chunk, c.Window, c.Jobs, c.Clock = row.Lanes, row.Workers, row.Chunk, row.Window, row.Jobs, row.ClockMHz
			return c, true
		},
	}
}

// matches says whether a recorded card is like the configuration in what is fixed of it.
func matches(r boards.Row, c config.Config, fixed map[string]bool) bool {
	result := c.Result
	if result == "" {
		result = c.Format
	}
	if r.Sum != c.Sum || r.Format != c.Format || r.Result != result || r.Saturate != c.Saturate || r.DSP != c.DSP {
		return false
	}
	for name, same := range map[string]bool{
		"workers": r.Workers == c.Workers,
		"chunk":   r.Chunk == c.Chunk,
		"window":  r.Window == c.Window,
		"jobs":    r.Jobs == c.Jobs,
		"clock":   r.ClockMHz == c.Clock,
	} {
		if fixed[name] && !same {
			return false
		}
	}
	return true
}

// board plans what stands around the card on a board, and its leaves.
func (p *Plan) board() error {
	if p.Config.Board == "" {
		return nil
	}
	b, ok := boards.Find(p.Config.Board)
	if !ok {
		return fmt.Errorf("no board %q", p.Config.Board)
	}
	pll, err := b.PLL(p.Clock)
	if err != nil {
		return err
	}
	p.OnBoard, p.PLL = &b, pll
	p.BoardModule = p.boardTop()
	if err := p.BoardModule.Check(); err != nil {
		return err
	}
	if err := p.BoardModule.CheckInstances(p.Modules); err != nil {
		return err
	}
	for _, name := range p.BoardModule.Leaves() {
		if name != usbDevice && name != p.Top().Name {
			p.BoardLeaves = append(p.BoardLeaves, name)
		}
	}
	return nil
}

// boardTop builds board_top: clocks and resets, the USB PHY and device, the way between
// their clock and the card's, the card, the lamps.
func (p *Plan) boardTop() *netlist.Module {
	b := p.OnBoard
	m := netlist.New(BoardTop, fmt.Sprintf(`A card on the board %s: the whole FPGA.

PHY pins <-> USB device <-> agg_link_cross <-> card
          usb_clk, %d MHz        |       clk, %d MHz

The USB device is written by usb_device.py beside this file. Lamps: link while a host has the card,
traffic while bytes move, error for a while after a damaged frame. Pins and clocks are constrained in
%s.lpf; the vendor's cells are in agg_pll and what else here begins with a pin.`,
		b.Title, boards.USBMHz, p.Clock, b.Name))
	p.boardPorts(m)
	p.boardWires(m)
	p.boardClocks(m)
	p.boardUSB(m)
	p.boardCard(m)
	p.boardLamps(m)
	return m
}

func (p *Plan) boardPorts(m *netlist.Module) {
	m.PortComment(fmt.Sprintf("Oscillator, %d MHz", p.OnBoard.Clock.MHz))
	m.Input("clk_in", 1)
	m.PortComment("USB PHY")
	m.Output("ulpi_rst", 1)
	if p.OnBoard.ULPI.Clock == boards.FromPHY {
		m.Input("ulpi_clk", 1)
	} else {
		m.Output("ulpi_clk", 1)
	}
	m.Input("ulpi_dir", 1)
	m.Input("ulpi_nxt", 1)
	m.Output("ulpi_stp", 1)
	m.InOut("ulpi_data", 8)
	m.PortComment("Lamps")
	m.Output("led_link", 1)
	m.Output("led_traffic", 1)
	m.Output("led_error", 1)
	if held := p.held(); held > 0 {
		m.Output("led_held", held)
	}
	if s := p.OnBoard.Supply; s != nil {
		m.PortComment("Supply of the PHY's pins")
		m.Output("supply_set", len(s.Set))
		m.Output("supply_enable", 1)
	}
}

func (p *Plan) boardWires(m *netlist.Module) {
	m.Comment("Clocks and resets")
	m.Wire("clk", 1, "the card's")
	m.Wire("rst", 1, "")
	m.Wire("usb_clk", 1, "the PHY's and the USB device's")
	m.Wire("usb_rst", 1, "")
	m.Wire("locked", 1, "")
	m.Wire("started", 1, "clk runs, and the PHY has its supply")
	m.Wire("phy_reset", 1, "")
	if p.PLL.CorePrimary {
		m.Wire("unused_clock", 1, "the PLL has two")
	}
	if p.OnBoard.Supply != nil {
		m.Wire("supply_level", 1, "its mean is the setting of all rails")
	}

	m.Comment("USB device, with usb_clk")
	m.Wire("ulpi_data_in", 8, "")
	m.Wire("ulpi_data_out", 8, "")
	m.Wire("ulpi_data_oe", 1, "")
	m.Wire("unused_ulpi_rst", 1, "the device's own clock would stop with it")
	m.Wire("usb_link_up", 1, "")
	m.Wire("usb_link_clear", 1, "")
	m.Wire("usb_rx_tdata", 8, "")
	m.Wire("usb_rx_tvalid", 1, "")
	m.Wire("usb_rx_tready", 1, "")
	m.Wire("usb_tx_tdata", 8, "")
	m.Wire("usb_tx_tvalid", 1, "")
	m.Wire("usb_tx_tready", 1, "")
	m.Wire("unused_configured", 1, "")
	m.Wire("unused_suspended", 1, "")
	m.Wire("traffic", 1, "")

	m.Comment("Card, with clk")
	m.Wire("link_up", 1, "")
	m.Wire("rx_tdata", 8, "")
	m.Wire("rx_tvalid", 1, "")
	m.Wire("rx_tready", 1, "")
	m.Wire("tx_tdata", 8, "")
	m.Wire("unused_tx_tkeep", 1, "a word is a byte")
	m.Wire("tx_tvalid", 1, "")
	m.Wire("tx_tready", 1, "")
	m.Wire("error", 1, "")
	m.Wire("unused_beat_strobe", 1, "")

	m.Comment("Lamps")
	m.Wire("traffic_lit", 1, "")
	m.Wire("error_lit", 1, "")
}

func (p *Plan) boardClocks(m *netlist.Module) {
	b := p.OnBoard
	m.Comment("-- Clocks and resets --")
	primary, secondary := "clk", "unused_clock"
	if !p.PLL.CorePrimary {
		primary, secondary = "usb_clk", "clk"
	}
	m.Instance("agg_pll", "u_pll", "").
		Param("INPUT", fmt.Sprint(p.PLL.Input)).
		Param("FEEDBACK", fmt.Sprint(p.PLL.Feedback)).
		Param("PRIMARY", fmt.Sprint(p.PLL.Primary)).
		Param("SECONDARY", fmt.Sprint(p.PLL.Secondary)).
		Connect("clk_in", "clk_in").
		Connect("clk_primary", primary).
		Connect("clk_secondary", secondary).
		Connect("locked", "locked")
	if s := b.Supply; s != nil {
		m.Instance("agg_supply", "u_supply", "").
			Param("HIGH", fmt.Sprint(int(math.Round(1024*s.Percent/100)))).
			Param("SETTLE_CYCLES", p.cycles(supplySettleTime)).
			Param("RISE_CYCLES", p.cycles(supplyRiseTime)).
			Connect("clk", "clk").
			Connect("started", "locked").
			Connect("set", "supply_level").
			Connect("enable", "supply_enable").
			Connect("good", "started")
	}
	m.Instance("agg_board_reset", "u_reset", "").
		Param("PHY_CYCLES", p.cycles(phyResetTime)).
		Connect("clk", "clk").
		Connect("phy_clk", "usb_clk").
		Connect("started", "started").
		Connect("phy_reset", "phy_reset").
		Connect("phy_rst", "usb_rst").
		Connect("rst", "rst")
	if b.Supply != nil {
		m.Assign("supply_set", fmt.Sprintf("{%d{supply_level}}", len(b.Supply.Set)))
	} else {
		m.Assign("started", "locked")
	}
	if b.ULPI.Clock == boards.FromPHY {
		m.Assign("usb_clk", "ulpi_clk")
	}
	m.Assign("ulpi_rst", lit("phy_reset", b.ULPI.Reset))
}

func (p *Plan) boardUSB(m *netlist.Module) {
	m.Comment("-- USB --")
	if p.OnBoard.ULPI.Clock == boards.ToPHY {
		m.Instance("agg_clock_out", "u_ulpi_clk", "").
			Connect("clk", "usb_clk").
			Connect("pad", "ulpi_clk")
	}
	m.Instance("agg_pads", "u_ulpi_data", "").
		Param("WIDTH", "8").
		Connect("pads", "ulpi_data").
		Connect("drive", "ulpi_data_oe").
		Connect("out", "ulpi_data_out").
		Connect("in", "ulpi_data_in")
	m.Instance(usbDevice, "u_usb", "").
		Connect("clk", "usb_clk").
		Connect("rst", "usb_rst").
		Connect("ulpi_data_in", "ulpi_data_in").
		Connect("ulpi_data_out", "ulpi_data_out").
		Connect("ulpi_data_oe", "ulpi_data_oe").
		Connect("ulpi_dir", "ulpi_dir").
		Connect("ulpi_nxt", "ulpi_nxt").
		Connect("ulpi_stp", "ulpi_stp").
		Connect("ulpi_rst", "unused_ulpi_rst").
		Connect("link_up", "usb_link_up").
		Connect("link_clear", "usb_link_clear").
		Connect("rx_tdata", "usb_rx_tdata").
		Connect("rx_tvalid", "usb_rx_tvalid").
		Connect("rx_tready", "usb_rx_tready").
		Connect("tx_tdata", "usb_tx_tdata").
		Connect("tx_tvalid", "usb_tx_tvalid").
		Connect("tx_tready", "usb_tx_tready").
		Connect("configured", "unused_configured").
		Connect("traffic", "traffic").
		Connect("suspended", "unused_suspended")
}

func (p *Plan) boardCard(m *netlist.Module) {
	m.Comment("-- From one clock to the other --")
	m.Instance("agg_link_cross", "u_cross", "").
		Connect("phy_clk", "usb_clk").
		Connect("phy_rst", "usb_rst").
		Connect("phy_link_up", "usb_link_up").
		Connect("phy_link_clear", "usb_link_clear").
		Connect("s_axis_rx_tdata", "usb_rx_tdata").
		Connect("s_axis_rx_tvalid", "usb_rx_tvalid").
		Connect("s_axis_rx_tready", "usb_rx_tready").
		Connect("m_axis_tx_tdata", "usb_tx_tdata").
		Connect("m_axis_tx_tvalid", "usb_tx_tvalid").
		Connect("m_axis_tx_tready", "usb_tx_tready").
		Connect("clk", "clk").
		Connect("rst", "rst").
		Connect("link_up", "link_up").
		Connect("m_axis_rx_tdata", "rx_tdata").
		Connect("m_axis_rx_tvalid", "rx_tvalid").
		Connect("m_axis_rx_tready", "rx_tready").
		Connect("s_axis_tx_tdata", "tx_tdata").
		Connect("s_axis_tx_tvalid", "tx_tvalid").
		Connect("s_axis_tx_tready", "tx_tready")

	m.Comment("-- Card --")
	m.Instance(p.Top().Name, "u_card", "").
		Connect("clk", "clk").
		Connect("rst", "rst").
		Connect("link_up", "link_up").
		Connect("link_rx_tdata", "rx_tdata").
		Connect("link_rx_tkeep", "1'b1").
		Connect("link_rx_tvalid", "rx_tvalid").
		Connect("link_rx_tready", "rx_tready").
		Connect("link_tx_tdata", "tx_tdata").
		Connect("link_tx_tkeep", "unused_tx_tkeep").
		Connect("link_tx_tvalid", "tx_tvalid").
		Connect("link_tx_tready", "tx_tready").
		Connect("beat_strobe", "unused_beat_strobe").
		Connect("error_strobe", "error")
}

func (p *Plan) boardLamps(m *netlist.Module) {
	m.Comment("-- Lamps --")
	m.Instance("agg_light", "u_traffic", "").
		Param("CYCLES", fmt.Sprint(lightTime*boards.USBMHz)).
		Connect("clk", "usb_clk").
		Connect("rst", "usb_rst").
		Connect("strobe", "traffic").
		Connect("lit", "traffic_lit")
	m.Instance("agg_light", "u_error", "").
		Param("CYCLES", p.cycles(lightTime)).
		Connect("clk", "clk").
		Connect("rst", "rst").
		Connect("strobe", "error").
		Connect("lit", "error_lit")
	level := p.OnBoard.LEDs.Lit
	m.Assign("led_link", lit("usb_link_up", level))
	m.Assign("led_traffic", lit("traffic_lit", level))
	m.Assign("led_error", lit("error_lit", level))
	if held := p.held(); held > 0 {
		ones := 1<<len(p.OnBoard.LEDs.HeldHigh) - 1
		m.Comment("What all lamps have in common")
		m.Assign("led_held", fmt.Sprintf("%d'b%0*b", held, held, ones))
	}
}

// held returns how many pins all lamps have in common.
func (p *Plan) held() int { return len(p.OnBoard.LEDs.HeldHigh) + len(p.OnBoard.LEDs.HeldLow) }

// cycles returns how many cycles of the card's clock take some microseconds.
func (p *Plan) cycles(microseconds int) string { return fmt.Sprint(microseconds * p.Clock) }

// lit returns the expression of a pin that is at the level while the signal is
// high.
func lit(signal, level string) string {
	if level == boards.Low {
		return "!" + signal
	}
	return signal
}
