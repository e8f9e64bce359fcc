package plan

import (
	"tributary/hwgen/boards"
	"tributary/hwgen/netlist"
)

// usbWires declares the nets that every USB device has besides its pins.
func usbWires(m *netlist.Module) {
	linkStream(m, "usb")
	m.Wire("unused_configured", 1, "")
	m.Wire("unused_suspended", 1, "")
	m.Wire("traffic", 1, "")
}

// Texts about a USB device: the title above its instance, and parts of the top's comment.
const (
	usbDeviceTitle    = "-- USB --"
	usbDeviceSentence = "usb_device.py beside this file writes the USB device."
	usbDeviceLED      = "a host has the card"
)

// usbDevice instantiates a USB device, which a script beside the board's top writes. Its
// pins connect to nets of the same names.
func usbDevice(m *netlist.Module, module string) *netlist.Instance {
	return m.Instance(module, "u_usb", "").
		Connect("clk", "usb_clk").
		Connect("rst", "usb_rst").
		Connect("link_up", "usb_link_up").
		Connect("link_clear", "usb_link_clear").
		Connect("rx_tdata", "usb_rx_tdata").
		Connect("rx_tvalid", "usb_rx_tvalid").
		Connect("rx_tready", "usb_rx_tready").
		Connect("tx_tdata", "usb_tx_tdata").
		Connect("tx_tvalid", "usb_tx_tvalid").
		Connect("tx_tready", "usb_tx_tready").
		Connect("configured", "unused_configured").
		Connect("suspended", "unused_suspended")
}

// usbScripted returns the ports of a USB device, the pins first.
func usbScripted(module string, pins func(*netlist.Module)) *netlist.Module {
	m := netlist.New(module, "")
	m.Input("clk", 1)
	m.Input("rst", 1)
	pins(m)
	m.Output("link_up", 1)
	m.Input("link_clear", 1)
	m.Output("rx_tdata", 8)
	m.Output("rx_tvalid", 1)
	m.Input("rx_tready", 1)
	m.Input("tx_tdata", 8)
	m.Input("tx_tvalid", 1)
	m.Output("tx_tready", 1)
	m.Output("configured", 1)
	m.Output("traffic", 1)
	m.Output("suspended", 1)
	return m
}

// ulpiLink is a USB device behind a PHY's ULPI pins.
type ulpiLink struct {
	*Plan
	ulpi *boards.ULPI
}

func (l ulpiLink) way() (picture, sentence, led string) {
	return "PHY pins <-> USB device", usbDeviceSentence, usbDeviceLED
}

func (l ulpiLink) ports(m *netlist.Module) {
	m.PortComment("USB PHY")
	m.Output("ulpi_rst", 1)
	if l.ulpi.Clock == boards.FromPHY {
		m.Input("ulpi_clk", 1)
	} else {
		m.Output("ulpi_clk", 1)
	}
	m.Input("ulpi_dir", 1)
	m.Input("ulpi_nxt", 1)
	m.Output("ulpi_stp", 1)
	m.InOut("ulpi_data", 8)
}

func (l ulpiLink) wires(m *netlist.Module) {
	m.Comment("USB device, on usb_clk")
	m.Wire("ulpi_data_in", 8, "")
	m.Wire("ulpi_data_out", 8, "")
	m.Wire("ulpi_data_oe", 1, "")
	m.Wire("unused_ulpi_rst", 1, "would stop the device's own clock")
	usbWires(m)
}

func (ulpiLink) domains() []linkDomain { return []linkDomain{{"usb", "phy_reset"}} }

func (l ulpiLink) clock(m *netlist.Module) {
	if l.ulpi.Clock == boards.FromPHY {
		m.Assign("usb_clk", "ulpi_clk")
	}
	m.Assign("ulpi_rst", lit("phy_reset", l.ulpi.Reset))
}

func (l ulpiLink) device(m *netlist.Module) {
	m.Comment(usbDeviceTitle)
	if l.ulpi.Clock == boards.ToPHY {
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
	usbDevice(m, l.ulpi.USBDevice()).Connect("ulpi_rst", "unused_ulpi_rst")
}

func (l ulpiLink) scripted() *netlist.Module {
	return usbScripted(l.ulpi.USBDevice(), func(m *netlist.Module) {
		m.Input("ulpi_data_in", 8)
		m.Output("ulpi_data_out", 8)
		m.Output("ulpi_data_oe", 1)
		m.Input("ulpi_dir", 1)
		m.Input("ulpi_nxt", 1)
		m.Output("ulpi_stp", 1)
		m.Output("ulpi_rst", 1)
	})
}

// usbPinsLink is a USB device at full speed, on pins of the FPGA.
type usbPinsLink struct{ pins *boards.USBPins }

func (usbPinsLink) way() (picture, sentence, led string) {
	return "USB pins <-> USB device", usbDeviceSentence, usbDeviceLED
}

func (usbPinsLink) ports(m *netlist.Module) {
	m.PortComment("USB")
	m.InOut("usb_d_p", 1)
	m.InOut("usb_d_n", 1)
	m.Output("usb_pull_up", 1)
}

func (usbPinsLink) wires(m *netlist.Module) {
	m.Comment("USB device, on usb_clk")
	m.Wire("usb_d_p_in", 1, "")
	m.Wire("usb_d_p_out", 1, "")
	m.Wire("usb_d_n_in", 1, "")
	m.Wire("usb_d_n_out", 1, "")
	m.Wire("usb_d_oe", 1, "")
	m.Wire("usb_connects", 1, "")
	usbWires(m)
}

func (usbPinsLink) domains() []linkDomain { return []linkDomain{{"usb", "phy_reset"}} }

func (usbPinsLink) clock(m *netlist.Module) {
	m.Assign("usb_pull_up", "usb_connects && !phy_reset")
}

func (l usbPinsLink) device(m *netlist.Module) {
	m.Comment(usbDeviceTitle)
	for _, pad := range []string{"usb_d_p", "usb_d_n"} {
		m.Instance("agg_pads", "u_"+pad, "").
			Param("WIDTH", "1").
			Connect("pads", pad).
			Connect("drive", "usb_d_oe").
			Connect("out", pad+"_out").
			Connect("in", pad+"_in")
	}
	usbDevice(m, l.pins.USBDevice()).Connect("usb_pull_up", "usb_connects")
}

func (l usbPinsLink) scripted() *netlist.Module {
	return usbScripted(l.pins.USBDevice(), func(m *netlist.Module) {
		m.Input("usb_d_p_in", 1)
		m.Output("usb_d_p_out", 1)
		m.Input("usb_d_n_in", 1)
		m.Output("usb_d_n_out", 1)
		m.Output("usb_d_oe", 1)
		m.Output("usb_pull_up", 1)
	})
}
