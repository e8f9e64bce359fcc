package plan

import "tributary/hwgen/netlist"

// streamCard is a card with a byte-stream link, behind agg_link_cross.
type streamCard struct{ *Plan }

func (streamCard) way() string { return "agg_link_cross" }

func (streamCard) wires(m *netlist.Module) {
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
}

func (s streamCard) traffic() (clk, rst string, mhz int) {
	return s.linkNet("clk"), s.linkNet("rst"), s.OnBoard.Link().MHz()
}

func (s streamCard) card(m *netlist.Module) {
	m.Comment("-- Clock crossing --")
	m.Instance("agg_link_cross", "u_cross", "").
		Connect("phy_clk", s.linkNet("clk")).
		Connect("phy_rst", s.linkNet("rst")).
		Connect("phy_link_up", s.linkNet("link_up")).
		Connect("phy_link_clear", s.linkNet("link_clear")).
		Connect("s_axis_rx_tdata", s.linkNet("rx_tdata")).
		Connect("s_axis_rx_tvalid", s.linkNet("rx_tvalid")).
		Connect("s_axis_rx_tready", s.linkNet("rx_tready")).
		Connect("m_axis_tx_tdata", s.linkNet("tx_tdata")).
		Connect("m_axis_tx_tvalid", s.linkNet("tx_tvalid")).
		Connect("m_axis_tx_tready", s.linkNet("tx_tready")).
		Connect("m_axis_rx_tdata", "rx_tdata").
		Connect("m_axis_rx_tvalid", "rx_tvalid").
		Connect("m_axis_rx_tready", "rx_tready").
		Connect("s_axis_tx_tdata", "tx_tdata").
		Connect("s_axis_tx_tvalid", "tx_tvalid").
		Connect("s_axis_tx_tready", "tx_tready")

	m.Comment("-- Card --")
	m.Instance(s.Top().Name, "u_card", "").
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
