package plan

import "tributary/hwgen/netlist"

// fifoLink is the bus of a FIFO bridge, and the break by which its host restarts the link.
type fifoLink struct{}

func (fifoLink) way() (picture, sentence, led string) {
	return "FIFO pins <-> agg_fifo_bus <-> agg_link_break", "The chip drives usb_clk.", "that runs and no host sends a break"
}

func (fifoLink) ports(m *netlist.Module) {
	m.PortComment("FIFO bridge; its clock may stop, so agg_fifo_bus uses usb_rst as an asynchronous reset\n" +
		"verilator lint_off SYNCASYNCNET")
	m.Input("fifo_clk", 1)
	m.Input("fifo_rxf_n", 1)
	m.Input("fifo_txe_n", 1)
	m.Output("fifo_rd_n", 1)
	m.Output("fifo_wr_n", 1)
	m.Output("fifo_oe_n", 1)
	m.Output("fifo_siwu_n", 1)
	m.InOut("fifo_data", 8)
}

func (fifoLink) wires(m *netlist.Module) {
	m.Comment("FIFO bridge, on usb_clk")
	m.Wire("fifo_data_in", 8, "")
	m.Wire("fifo_data_out", 8, "")
	m.Wire("fifo_drive_n", 8, "")
	m.Wire("bus_rx_tdata", 8, "from the host, breaks included")
	m.Wire("bus_rx_tvalid", 1, "")
	m.Wire("bus_rx_tready", 1, "")
	m.Wire("unused_rx_tkeep", 1, "a word is a byte")
	linkStream(m, "usb")
	m.Wire("traffic", 1, "")
}

// domains names an unused net: the chip has no reset pin.
func (fifoLink) domains() []linkDomain { return []linkDomain{{"usb", "unused_phy_reset"}} }

func (fifoLink) clock(m *netlist.Module) { m.Assign("usb_clk", "fifo_clk") }

func (fifoLink) device(m *netlist.Module) {
	m.Comment("-- FIFO bridge --")
	m.Instance("agg_pads", "u_fifo_data", "").
		Param("WIDTH", "8").
		Connect("pads", "fifo_data").
		Connect("drive_n", "fifo_drive_n").
		Connect("out", "fifo_data_out").
		Connect("in", "fifo_data_in")
	m.Instance("agg_fifo_bus", "u_bus", "").
		Connect("clk", "usb_clk").
		Connect("rst", "usb_rst").
		Connect("rxf_n", "fifo_rxf_n").
		Connect("txe_n", "fifo_txe_n").
		Connect("rd_n", "fifo_rd_n").
		Connect("wr_n", "fifo_wr_n").
		Connect("oe_n", "fifo_oe_n").
		Connect("siwu_n", "fifo_siwu_n").
		Connect("data_in", "fifo_data_in").
		Connect("data_out", "fifo_data_out").
		Connect("drive_n", "fifo_drive_n").
		Connect("m_axis_rx_tdata", "bus_rx_tdata").
		Connect("m_axis_rx_tvalid", "bus_rx_tvalid").
		Connect("m_axis_rx_tready", "bus_rx_tready").
		Connect("s_axis_tx_tdata", "usb_tx_tdata").
		Connect("s_axis_tx_tlast", "1'b0").
		Connect("s_axis_tx_tvalid", "usb_tx_tvalid").
		Connect("s_axis_tx_tready", "usb_tx_tready")
	linkBreak(m, "usb", "bus_rx")
	m.Assign("traffic", "(bus_rx_tvalid && bus_rx_tready) || (usb_tx_tvalid && usb_tx_tready)")
}

func (fifoLink) scripted() *netlist.Module { return nil }
