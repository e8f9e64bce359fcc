package plan

import (
	"fmt"
	"strings"

	"tributary/hwgen/boards"
	"tributary/hwgen/netlist"
)

// ethernetLink is one or more Ethernet ports behind PHYs with RGMII pins. Each has a clock of its
// own, from its PHY.
type ethernetLink struct {
	*Plan
	ethernet *boards.Ethernet
}

// ethernetNets are the beginnings of the names of a port's nets: at the pins, of its MAC, and of the
// card's two streams.
type ethernetNets struct{ pins, mac, rx, tx string }

// netsOf returns the names of each port's nets.
func netsOf(e *boards.Ethernet) (nets []ethernetNets) {
	for i, mac := range e.Nets() {
		nets = append(nets, ethernetNets{fmt.Sprintf("rgmii_p%d", i), mac, fmt.Sprintf("eth_rx_p%d", i), fmt.Sprintf("eth_tx_p%d", i)})
	}
	return nets
}

func (l ethernetLink) way() (picture, sentence, led string) {
	return "PHY pins <-> MAC", "ethernet_mac.py beside this file writes the MAC.", "the first port has a partner at 1 Gbit/s"
}

func (l ethernetLink) ports(m *netlist.Module) {
	for _, n := range netsOf(l.ethernet) {
		m.PortComment("Ethernet PHY")
		m.Output(n.pins+"_rst_n", 1)
		m.Input(n.pins+"_rx_clk", 1)
		m.Input(n.pins+"_rx_ctl", 1)
		m.Input(n.pins+"_rx_data", 4)
		m.Output(n.pins+"_tx_clk", 1)
		m.Output(n.pins+"_tx_ctl", 1)
		m.Output(n.pins+"_tx_data", 4)
	}
}

func (l ethernetLink) wires(m *netlist.Module) {
	for _, n := range netsOf(l.ethernet) {
		m.Comment("MAC, on " + n.mac + "_clk")
		m.Wire(n.mac+"_link_up", 1, "")
		for _, way := range []string{"rx", "tx"} {
			m.Wire(n.mac+"_"+way+"_tdata", 8, "")
			m.Wire(n.mac+"_"+way+"_tvalid", 1, "")
			m.Wire(n.mac+"_"+way+"_tlast", 1, "")
		}
		m.Wire(n.mac+"_rx_tuser", 1, "the frame's FCS is wrong")
		m.Wire(n.mac+"_tx_tready", 1, "")
	}
}

func (l ethernetLink) domains() (domains []linkDomain) {
	for _, n := range netsOf(l.ethernet) {
		domains = append(domains, linkDomain{n.mac, n.pins + "_rst"})
	}
	return domains
}

func (l ethernetLink) clock(m *netlist.Module) {
	for _, n := range netsOf(l.ethernet) {
		m.Assign(n.pins+"_rst_n", "!"+n.pins+"_rst")
	}
}

func (l ethernetLink) device(m *netlist.Module) {
	m.Comment("-- MACs --")
	for _, n := range netsOf(l.ethernet) {
		mac := m.Instance(boards.EthernetMAC, "u_mac_"+strings.TrimPrefix(n.mac, "eth_"), "").
			Connect("rst", n.mac+"_rst").
			Connect("eth_clk", n.mac+"_clk").
			Connect("link_up", n.mac+"_link_up")
		for _, pin := range []string{"rx_clk", "rx_ctl", "rx_data", "tx_clk", "tx_ctl", "tx_data"} {
			mac.Connect("rgmii_"+pin, n.pins+"_"+pin)
		}
		for _, name := range []string{"tdata", "tvalid", "tlast", "tuser"} {
			mac.Connect("m_axis_"+name, n.mac+"_rx_"+name)
		}
		for _, name := range []string{"tdata", "tvalid", "tready", "tlast"} {
			mac.Connect("s_axis_"+name, n.mac+"_tx_"+name)
		}
	}
}

// scripted has the ports of class Ports in ethernet_mac.py.
func (ethernetLink) scripted() *netlist.Module {
	m := netlist.New(boards.EthernetMAC, "")
	m.Input("rst", 1)
	m.Output("eth_clk", 1)
	m.Output("link_up", 1)
	m.Input("rgmii_rx_clk", 1)
	m.Input("rgmii_rx_ctl", 1)
	m.Input("rgmii_rx_data", 4)
	m.Output("rgmii_tx_clk", 1)
	m.Output("rgmii_tx_ctl", 1)
	m.Output("rgmii_tx_data", 4)
	m.Output("m_axis_tdata", 8)
	m.Output("m_axis_tvalid", 1)
	m.Output("m_axis_tlast", 1)
	m.Output("m_axis_tuser", 1)
	m.Input("s_axis_tdata", 8)
	m.Input("s_axis_tvalid", 1)
	m.Output("s_axis_tready", 1)
	m.Input("s_axis_tlast", 1)
	return m
}

// ethernetCard is a card of shell udp, with both directions of each port behind a clock crossing.
type ethernetCard struct {
	*Plan
	ethernet *boards.Ethernet
}

func (ethernetCard) way() string { return "agg_eth_rx_cross, agg_eth_tx_cross" }

func (c ethernetCard) wires(m *netlist.Module) {
	m.Comment("Card, on clk")
	for _, n := range netsOf(c.ethernet) {
		for _, stream := range []string{n.rx, n.tx} {
			m.Wire(stream+"_tdata", boards.EthernetBits, "")
			m.Wire(stream+"_tkeep", boards.EthernetBits/8, "")
			m.Wire(stream+"_tvalid", 1, "")
			m.Wire(stream+"_tlast", 1, "")
		}
		m.Wire(n.rx+"_tuser", 1, "the frame is bad")
		m.Wire(n.tx+"_tready", 1, "")
	}
	m.Wire("error", 1, "")
	m.Wire("unused_beat_strobe", 1, "")
	m.Wire("traffic", 1, "")
}

func (c ethernetCard) card(m *netlist.Module) {
	m.Comment("-- Clock crossings --")
	var moves []string
	for _, n := range netsOf(c.ethernet) {
		c.crossing(m, "rx", n.mac, n.rx, "s_axis_", "m_axis_", "tuser")
		c.crossing(m, "tx", n.mac, n.tx, "m_axis_", "s_axis_", "tready").
			Connect("link_up", n.mac+"_link_up")
		moves = append(moves, n.rx+"_tvalid", fmt.Sprintf("(%s_tvalid && %[1]s_tready)", n.tx))
	}
	m.Assign("traffic", strings.Join(moves, " || "))

	m.Comment("-- Card --")
	m.Instance(c.Top().Name, "u_card", "").
		Connect("beat_strobe", "unused_beat_strobe").
		Connect("error_strobe", "error")
}

// crossing instantiates one direction of a port. Its streams have the given prefixes of ports, and
// one signal besides data, valid and last; only the card's has tkeep.
func (c ethernetCard) crossing(m *netlist.Module, way, mac, card, macPorts, cardPorts, extra string) *netlist.Instance {
	cross := m.Instance("agg_eth_"+way+"_cross", fmt.Sprintf("u_%s_%s", way, strings.TrimPrefix(mac, "eth_")), "").
		Param("BYTES", fmt.Sprint(boards.EthernetBits/8)).
		Connect("eth_clk", mac+"_clk").
		Connect("eth_rst", mac+"_rst")
	for _, name := range []string{"tdata", "tvalid", "tlast", extra} {
		cross.Connect(macPorts+name, mac+"_"+way+"_"+name)
		cross.Connect(cardPorts+name, card+"_"+name)
	}
	return cross.Connect(cardPorts+"tkeep", card+"_tkeep")
}

func (c ethernetCard) traffic() (clk, rst string, mhz int) { return "clk", "rst", c.Clock }
