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
	lightTime        = 100000 // an LED stays lit this long after an event
	supplySettleTime = 30000  // until a supply's setting is stable
	supplyRiseTime   = 5000   // until a supply has risen
)

// knownBoard returns what a configuration may request of a board.
func knownBoard(b boards.Board) config.Board {
	return config.Board{
		Name:  b.Name,
		Links: boardLinks(b),
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

// boardLinks lists the links of a board by the shells of their cards.
func boardLinks(b boards.Board) []config.BoardLink {
	links := []config.BoardLink{{Shell: stream.Name, Bits: 8, Clock: b.CoreMHz}} // every kind of link carries bytes
	if b.Ethernet != nil {
		links = append(links, config.BoardLink{Shell: udp.Name, Bits: boards.EthernetBits, Ethernet: len(b.Ethernet.Ports),
			Clock: b.Ethernet.CoreMHz})
	}
	return links
}

// matches reports whether a recorded card equals the configuration in its arithmetic and in the
// fixed settings.
func matches(r boards.Row, c config.Config, fixed map[string]bool) bool {
	result := c.Result
	if result == "" {
		result = c.Format
	}
	if r.Shell != c.Shell || r.Ethernet > 0 && r.Ethernet != c.Ethernet {
		return false
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

// board puts the card on the board of its configuration, if there is one.
func (p *Plan) board() error {
	if p.Config.Board == "" {
		return nil
	}
	b, ok := boards.Find(p.Config.Board)
	if !ok {
		return fmt.Errorf("no board %q", p.Config.Board)
	}
	if p.Shell.Ethernet {
		var err error
		if b, err = b.OnEthernet(p.Ethernet); err != nil {
			return err
		}
	}
	return p.PutOn(b)
}

// PutOn plans the top module of a board around the card, and its leaves.
func (p *Plan) PutOn(b boards.Board) error {
	pll, err := b.PLL(p.Clock)
	if err != nil {
		return err
	}
	p.OnBoard, p.PLL = &b, pll
	link, card, err := p.linkOnBoard()
	if err != nil {
		return err
	}
	top := p.boardTop(link, card)
	p.BoardModule = top
	others, leaves := p.Modules, leaf.NewLibrary(rtl.Files, leaf.VendorFolder(b.Family().Name()))
	if device := link.scripted(); device != nil {
		others = append(slices.Clone(others), device)
	}
	if err := netlist.Link([]*netlist.Module{top}, others, leaves); err != nil {
		return err
	}
	for _, name := range p.BoardModule.Leaves() {
		if isOther := func(m *netlist.Module) bool { return m.Name == name }; !slices.ContainsFunc(others, isOther) {
			p.BoardLeaves = append(p.BoardLeaves, name)
		}
	}
	return nil
}

// linkDomain is a clock of a link: NETS_clk and its reset NETS_rst. The net reset is that of the chip
// at the pins, high from power-up until a while after the PLL has locked.
type linkDomain struct{ nets, reset string }

// boardCard plans a card and the logic between it and the link's clocks. Each kind of link that
// cards have is one type.
type boardCard interface {
	// way returns the picture's end: the chain of modules from the link's clocks to the card.
	way() string

	// wires declares the nets of the card's ports.
	wires(m *netlist.Module)

	// card instantiates the clock crossing and the card.
	card(m *netlist.Module)

	// traffic returns the clock of the net traffic, its reset, and its frequency in MHz.
	traffic() (clk, rst string, mhz int)
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

	// domains lists the link's clocks. Each PHY is reset for a while after the PLL has locked,
	// one after the other.
	domains() []linkDomain

	// clock drives NETS_clk, unless the PLL does, and the reset of the chip at the pins.
	clock(m *netlist.Module)

	// device instantiates the link's modules, below a title.
	device(m *netlist.Module)

	// scripted returns the name and ports of the module that a script beside the board's
	// top writes, or nil.
	scripted() *netlist.Module
}

// linkOnBoard returns the plans of the board's link, and of the card behind it.
func (p *Plan) linkOnBoard() (boardLink, boardCard, error) {
	bytes := streamCard{p}
	switch l := p.OnBoard.Link().(type) {
	case *boards.ULPI:
		return ulpiLink{p, l}, bytes, nil
	case *boards.USBPins:
		return usbPinsLink{l}, bytes, nil
	case *boards.UART:
		return uartLink{l}, bytes, nil
	case *boards.FIFO:
		return fifoLink{}, bytes, nil
	case *boards.Ethernet:
		return ethernetLink{p, l}, ethernetCard{p, l}, nil
	default:
		return nil, nil, fmt.Errorf("no plan for the link of %s, %s", p.OnBoard.Name, l.Title())
	}
}

// boardTop builds board_top: clocks and resets, the link, the clock crossing, the card
// and the LEDs.
func (p *Plan) boardTop(link boardLink, card boardCard) *netlist.Module {
	b := p.OnBoard
	way, sentence, led := link.way()
	m := netlist.New(BoardTop, fmt.Sprintf(`A card on the board %s: the whole FPGA.

%s <-> %s <-> card
%-*s|       clk, %d MHz

%s LEDs: link while %s,
traffic while bytes move, error for a while after a damaged frame. %s%s
constrains pins and clocks. agg_pll and the modules at the pins contain the vendor's cells.`,
		b.Title, way, card.way(), len(way)+10, fmt.Sprintf("          %s, %d MHz", p.linkNet("clk"), b.Link().MHz()), p.Clock, sentence, led, b.Name, b.Family().Constraints()))
	p.boardPorts(m, link)
	p.boardWires(m, link, card)
	p.boardClocks(m, link)
	link.device(m)
	card.card(m)
	p.boardLEDs(m, card)
	return m
}

// linkNet returns the name of a net on the link's side, in its first clock.
func (p *Plan) linkNet(name string) string { return p.OnBoard.Link().Nets()[0] + "_" + name }

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

func (p *Plan) boardWires(m *netlist.Module, link boardLink, card boardCard) {
	m.Comment("Clocks and resets")
	m.Wire("clk", 1, "the card's clock")
	m.Wire("rst", 1, "")
	for _, d := range link.domains() {
		m.Wire(d.nets+"_clk", 1, "the link's clock")
		m.Wire(d.nets+"_rst", 1, "")
	}
	m.Wire("locked", 1, "")
	m.Wire("started", 1, "clk runs and all supplies are up")
	for i, d := range link.domains() {
		m.Wire(d.reset, 1, "")
		if i > 0 {
			m.Wire("rst_before_"+d.nets, 1, "until the clock before runs")
		}
	}
	if p.OnBoard.Link().ClockPorts() != nil {
		m.Wire("unused_clock", 1, "the PLL's second output")
	}
	if p.OnBoard.Supply != nil {
		m.Wire("supply_level", 1, "its duty cycle sets the voltage of all rails")
	}

	link.wires(m)

	card.wires(m)

	m.Comment("LEDs")
	m.Wire("traffic_lit", 1, "")
	m.Wire("error_lit", 1, "")
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
	p.boardResets(m, link.domains())
	if b.Supply != nil {
		m.Assign("supply_set", fmt.Sprintf("{%d{supply_level}}", len(b.Supply.Set)))
	} else {
		m.Assign("started", "locked")
	}
	link.clock(m)
}

// boardResets releases the resets of the link's clocks, one after the other, and then the card's.
func (p *Plan) boardResets(m *netlist.Module, domains []linkDomain) {
	for i, d := range domains {
		name := "u_reset"
		if len(domains) > 1 {
			name += "_" + d.nets
		}
		reset := m.Instance("agg_board_reset", name, "").
			Param("PHY_CYCLES", p.cycles(p.OnBoard.Link().ResetUS())).
			Connect("phy_clk", d.nets+"_clk").
			Connect("phy_reset", d.reset).
			Connect("phy_rst", d.nets+"_rst")
		if i > 0 {
			reset.Connect("started", "!rst_before_"+d.nets)
		}
		if i+1 < len(domains) {
			reset.Connect("rst", "rst_before_"+domains[i+1].nets)
		}
	}
}

func (p *Plan) boardLEDs(m *netlist.Module, card boardCard) {
	m.Comment("-- LEDs --")
	clk, rst, mhz := card.traffic()
	m.Instance("agg_led", "u_traffic", "").
		Param("CYCLES", fmt.Sprint(lightTime*mhz)).
		Connect("clk", clk).
		Connect("rst", rst).
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
