package plan

import (
	"fmt"
	"math"
	"slices"

	"tributary/hwgen/boards"
	"tributary/hwgen/config"
	"tributary/hwgen/leaf"
	"tributary/hwgen/netlist"
	"tributary/rtl"
)

const (
	// BoardTop is the top module of a board's FPGA.
	BoardTop = "board_top"

	// Times of a board, in microseconds.
	phyResetTime     = 1000   // length of the PHY's reset
	lightTime        = 100000 // an LED stays lit this long after an event
	supplySettleTime = 30000  // until a supply's setting is stable
	supplyRiseTime   = 5000   // until a supply has risen
)

// knownBoard returns what a configuration may request of a board.
func knownBoard(b boards.Board) config.Board {
	return config.Board{
		Name:  b.Name,
		Shell: stream.Name,
		Link:  8, // bits: every kind of link carries bytes
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

// matches reports whether a recorded card equals the configuration in its arithmetic and in the
// fixed settings.
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

// board plans the board's top module around the card, and its leaves.
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
	link, err := p.linkOnBoard()
	if err != nil {
		return err
	}
	top := p.boardTop(link)
	p.BoardModule = top
	others, leaves := p.Modules, leaf.NewLibrary(rtl.Files, leaf.VendorFolder(b.Family().Name()))
	if device := link.scripted(); device != nil {
		others = append(slices.Clone(others), device)
	}
	if err := netlist.Link([]*netlist.Module{top}, others, leaves); err != nil {
		return err
	}
	for _, name := range p.BoardModule.Leaves() {
		if name != b.Link().USBDevice() && name != p.Top().Name { // neither is a leaf
			p.BoardLeaves = append(p.BoardLeaves, name)
		}
	}
	return nil
}

// boardLink plans the logic between the pins of a board's link and agg_link_cross. Each
// kind of link is one type.
//
// Its outputs are the stream NETS_rx and NETS_tx, NETS_link_up and NETS_link_clear, and
// traffic, which is high while bytes move. All are synchronous to NETS_clk; NETS is the Nets
// of the board's link.
type boardLink interface {
	// way returns texts for the top's comment: the chain of modules between the host and
	// agg_link_cross, a sentence about it, and the condition that lights the link's LED.
	way() (picture, sentence, led string)

	// ports declares the pins.
	ports(m *netlist.Module)

	// wires declares all nets with NETS_clk, including those of linkStream.
	wires(m *netlist.Module)

	// reset returns the net that resets the chip at the pins. It is high from power-up
	// until a while after the PLL has locked.
	reset() string

	// clock drives NETS_clk, unless the PLL does, and the reset of the chip at the pins.
	clock(m *netlist.Module)

	// device instantiates the link's modules, below a title.
	device(m *netlist.Module)

	// scripted returns the name and ports of the module that a script beside the board's
	// top writes, or nil.
	scripted() *netlist.Module
}

// linkOnBoard returns the plan of the board's link.
func (p *Plan) linkOnBoard() (boardLink, error) {
	switch l := p.OnBoard.Link().(type) {
	case *boards.ULPI:
		return ulpiLink{p, l}, nil
	case *boards.USBPins:
		return usbPinsLink{l}, nil
	case *boards.UART:
		return uartLink{l}, nil
	case *boards.FIFO:
		return fifoLink{}, nil
	default:
		return nil, fmt.Errorf("no plan for the link of %s, %s", p.OnBoard.Name, l.Title())
	}
}

// boardTop builds board_top: clocks and resets, the link, the clock crossing, the card
// and the LEDs.
func (p *Plan) boardTop(link boardLink) *netlist.Module {
	b := p.OnBoard
	way, sentence, led := link.way()
	m := netlist.New(BoardTop, fmt.Sprintf(`A card on the board %s: the whole FPGA.

%s <-> agg_link_cross <-> card
%-*s|       clk, %d MHz

%s LEDs: link while %s,
traffic while bytes move, error for a while after a damaged frame. %s%s
constrains pins and clocks. agg_pll and the modules at the pins contain the vendor's cells.`,
		b.Title, way, len(way)+10, fmt.Sprintf("          %s, %d MHz", p.linkNet("clk"), b.Link().MHz()), p.Clock, sentence, led, b.Name, b.Family().Constraints()))
	p.boardPorts(m, link)
	p.boardWires(m, link)
	p.boardClocks(m, link)
	link.device(m)
	p.boardCard(m)
	p.boardLEDs(m)
	return m
}

// linkNet returns the name of a net on the link's side.
func (p *Plan) linkNet(name string) string { return p.OnBoard.Link().Nets() + "_" + name }

func (p *Plan) boardPorts(m *netlist.Module, link boardLink) {
	m.PortComment(fmt.Sprintf("Oscillator, %d MHz", p.OnBoard.Clock.MHz))
	m.Input("clk_in", 1)
	link.ports(m)
	m.PortComment("LEDs")
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

func (p *Plan) boardWires(m *netlist.Module, link boardLink) {
	m.Comment("Clocks and resets")
	m.Wire("clk", 1, "the card's clock")
	m.Wire("rst", 1, "")
	m.Wire(p.linkNet("clk"), 1, "the link's clock")
	m.Wire(p.linkNet("rst"), 1, "")
	m.Wire("locked", 1, "")
	m.Wire("started", 1, "clk runs and all supplies are up")
	m.Wire(link.reset(), 1, "")
	if p.OnBoard.Link().ClockPorts() != nil {
		m.Wire("unused_clock", 1, "the PLL's second output")
	}
	if p.OnBoard.Supply != nil {
		m.Wire("supply_level", 1, "its duty cycle sets the voltage of all rails")
	}

	link.wires(m)

	m.Comment("Card, on clk")
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

	m.Comment("LEDs")
	m.Wire("traffic_lit", 1, "")
	m.Wire("error_lit", 1, "")
}

// linkStream declares the nets between a link and agg_link_cross.
func linkStream(m *netlist.Module, nets string) {
	m.Wire(nets+"_link_up", 1, "")
	m.Wire(nets+"_link_clear", 1, "")
	m.Wire(nets+"_rx_tdata", 8, "")
	m.Wire(nets+"_rx_tvalid", 1, "")
	m.Wire(nets+"_rx_tready", 1, "")
	m.Wire(nets+"_tx_tdata", 8, "")
	m.Wire(nets+"_tx_tvalid", 1, "")
	m.Wire(nets+"_tx_tready", 1, "")
}

// linkBreak instantiates agg_link_break between the bytes from the host and the nets of
// linkStream. It takes the link down and up at a host's break.
func linkBreak(m *netlist.Module, nets, from string) {
	m.Instance("agg_link_break", "u_break", "").
		Connect("clk", nets+"_clk").
		Connect("rst", nets+"_rst").
		Connect("link_up", nets+"_link_up").
		Connect("link_clear", nets+"_link_clear").
		Connect("s_axis_tdata", from+"_tdata").
		Connect("s_axis_tkeep", "1'b1").
		Connect("s_axis_tvalid", from+"_tvalid").
		Connect("s_axis_tready", from+"_tready").
		Connect("m_axis_tdata", nets+"_rx_tdata").
		Connect("m_axis_tkeep", "unused_rx_tkeep").
		Connect("m_axis_tvalid", nets+"_rx_tvalid").
		Connect("m_axis_tready", nets+"_rx_tready")
}

func (p *Plan) boardClocks(m *netlist.Module, link boardLink) {
	b := p.OnBoard
	m.Comment("-- Clocks and resets --")
	primary, secondary := "clk", p.linkNet("clk")
	if b.Link().ClockPorts() != nil {
		secondary = "unused_clock"
	} else if !p.PLL.CorePrimary {
		primary, secondary = secondary, primary
	}
	pll := m.Instance("agg_pll", "u_pll", "")
	if p.PLL.InputPS > 0 {
		pll.Param("INPUT_PS", fmt.Sprint(p.PLL.InputPS))
	}
	pll.Param("INPUT", fmt.Sprint(p.PLL.Input)).
		Param("FEEDBACK", fmt.Sprint(p.PLL.Feedback)).
		Param("PRIMARY", fmt.Sprint(p.PLL.Primary)).
		Param("SECONDARY", fmt.Sprint(p.PLL.Secondary)).
		Connect("clk_primary", primary).
		Connect("clk_secondary", secondary)
	if s := b.Supply; s != nil {
		m.Instance("agg_supply", "u_supply", "").
			Param("HIGH", fmt.Sprint(int(math.Round(1024*s.Percent/100)))).
			Param("SETTLE_CYCLES", p.cycles(supplySettleTime)).
			Param("RISE_CYCLES", p.cycles(supplyRiseTime)).
			Connect("started", "locked").
			Connect("set", "supply_level").
			Connect("enable", "supply_enable").
			Connect("good", "started")
	}
	m.Instance("agg_board_reset", "u_reset", "").
		Param("PHY_CYCLES", p.cycles(phyResetTime)).
		Connect("phy_clk", p.linkNet("clk")).
		Connect("phy_reset", link.reset()).
		Connect("phy_rst", p.linkNet("rst"))
	if b.Supply != nil {
		m.Assign("supply_set", fmt.Sprintf("{%d{supply_level}}", len(b.Supply.Set)))
	} else {
		m.Assign("started", "locked")
	}
	link.clock(m)
}

func (p *Plan) boardCard(m *netlist.Module) {
	m.Comment("-- Clock crossing --")
	m.Instance("agg_link_cross", "u_cross", "").
		Connect("phy_clk", p.linkNet("clk")).
		Connect("phy_rst", p.linkNet("rst")).
		Connect("phy_link_up", p.linkNet("link_up")).
		Connect("phy_link_clear", p.linkNet("link_clear")).
		Connect("s_axis_rx_tdata", p.linkNet("rx_tdata")).
		Connect("s_axis_rx_tvalid", p.linkNet("rx_tvalid")).
		Connect("s_axis_rx_tready", p.linkNet("rx_tready")).
		Connect("m_axis_tx_tdata", p.linkNet("tx_tdata")).
		Connect("m_axis_tx_tvalid", p.linkNet("tx_tvalid")).
		Connect("m_axis_tx_tready", p.linkNet("tx_tready")).
		Connect("m_axis_rx_tdata", "rx_tdata").
		Connect("m_axis_rx_tvalid", "rx_tvalid").
		Connect("m_axis_rx_tready", "rx_tready").
		Connect("s_axis_tx_tdata", "tx_tdata").
		Connect("s_axis_tx_tvalid", "tx_tvalid").
		Connect("s_axis_tx_tready", "tx_tready")

	m.Comment("-- Card --")
	m.Instance(p.Top().Name, "u_card", "").
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

func (p *Plan) boardLEDs(m *netlist.Module) {
	m.Comment("-- LEDs --")
	m.Instance("agg_led", "u_traffic", "").
		Param("CYCLES", fmt.Sprint(lightTime*p.OnBoard.Link().MHz())).
		Connect("clk", p.linkNet("clk")).
		Connect("rst", p.linkNet("rst")).
		Connect("strobe", "traffic").
		Connect("lit", "traffic_lit")
	m.Instance("agg_led", "u_error", "").
		Param("CYCLES", p.cycles(lightTime)).
		Connect("strobe", "error").
		Connect("lit", "error_lit")
	level := p.OnBoard.LEDs.Lit
	m.Assign("led_link", lit(p.linkNet("link_up"), level))
	m.Assign("led_traffic", lit("traffic_lit", level))
	m.Assign("led_error", lit("error_lit", level))
	if held := p.held(); held > 0 {
		ones := 1<<len(p.OnBoard.LEDs.HeldHigh) - 1
		m.Comment("Common pins of the LEDs")
		m.Assign("led_held", fmt.Sprintf("%d'b%0*b", held, held, ones))
	}
}

// held returns the number of pins that all LEDs share.
func (p *Plan) held() int { return len(p.OnBoard.LEDs.HeldHigh) + len(p.OnBoard.LEDs.HeldLow) }

// cycles converts microseconds to cycles of the card's clock.
func (p *Plan) cycles(microseconds int) string { return fmt.Sprint(microseconds * p.Clock) }

// lit returns the expression of a pin that has the level while the signal is high.
func lit(signal, level string) string {
	if level == boards.Low {
		return "!" + signal
	}
	return signal
}
