package plan

import (
	"fmt"

	"tributary/hwgen/boards"
	"tributary/hwgen/netlist"
)

// uartPlaces is the base-2 logarithm of the UART's queue size in bytes. The line has no flow
// control, and the card accepts nothing while a register access waits for a frame to leave. A
// frame has up to 4,095 bytes, and as many bytes arrive meanwhile.
const uartPlaces = 13

// uartLink is a UART at two pins of the FPGA.
type uartLink struct{ uart *boards.UART }

func (uartLink) way() (picture, sentence, led string) {
	return "UART pins <-> UART, queue, break", "A new host sends a break, which takes the link down for a moment.", "it is up"
}

func (l uartLink) ports(m *netlist.Module) {
	m.PortComment(fmt.Sprintf("UART, %d baud", l.uart.Baud))
	m.Input("uart_rx", 1)
	m.Output("uart_tx", 1)
}

func (uartLink) wires(m *netlist.Module) {
	m.Comment("UART, on uart_clk")
	m.Wire("byte_data", 8, "")
	m.Wire("byte_valid", 1, "")
	m.Wire("queue_tdata", 8, "")
	m.Wire("queue_tvalid", 1, "")
	m.Wire("queue_tready", 1, "")
	linkStream(m, "uart")
	m.Wire("unused_rx_tkeep", 1, "")
	m.Wire("traffic", 1, "")
}

func (uartLink) domains() []linkDomain { return []linkDomain{{"uart", "unused_phy_reset"}} }

func (uartLink) clock(*netlist.Module) {}

func (l uartLink) device(m *netlist.Module) {
	divide := fmt.Sprint(l.uart.Divide())
	m.Comment("-- UART --")
	m.Instance("agg_uart_rx", "u_uart_rx", "").
		Param("DIVIDE", divide).
		Connect("clk", "uart_clk").
		Connect("rst", "uart_rst").
		Connect("line", "uart_rx").
		Connect("m_byte_data", "byte_data").
		Connect("m_byte_valid", "byte_valid")
	m.Instance("agg_uart_queue", "u_uart_queue", "").
		Param("DEPTH_BITS", fmt.Sprint(uartPlaces)).
		Connect("clk", "uart_clk").
		Connect("rst", "uart_rst").
		Connect("s_byte_data", "byte_data").
		Connect("s_byte_valid", "byte_valid").
		Connect("m_axis_tdata", "queue_tdata").
		Connect("m_axis_tvalid", "queue_tvalid").
		Connect("m_axis_tready", "queue_tready")
	linkBreak(m, "uart", "queue")
	m.Instance("agg_uart_tx", "u_uart_tx", "").
		Param("DIVIDE", divide).
		Connect("clk", "uart_clk").
		Connect("rst", "uart_rst").
		Connect("s_axis_tdata", "uart_tx_tdata").
		Connect("s_axis_tvalid", "uart_tx_tvalid").
		Connect("s_axis_tready", "uart_tx_tready").
		Connect("line", "uart_tx")
	m.Assign("traffic", "byte_valid || (uart_tx_tvalid && uart_tx_tready)")
}

func (uartLink) scripted() *netlist.Module { return nil }
