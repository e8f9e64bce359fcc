package plan

import (
	"fmt"
	"strings"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// stream is the shell with one byte-stream link for all workers of a host.
var stream = Shell{
	Name:    wire.ShellStream.String(),
	Code:    wire.ShellStream,
	Doc:     "One full-duplex byte stream for all workers of a host, with frames and CRCs.",
	Down:    "The card drops incomplete frames in both directions, and all packets that it has not started to send.",
	Link:    true,
	modules: streamModules,
}

// linkWidths are the widths between link and core, in bytes a cycle.
type linkWidths struct {
	link   int // moved by the link
	window int // of a frame that receiver and transmitter look at
	rx, tx int // of payload moved by receiver and transmitter
}

// minWindow is the minimum window in bytes. It holds a sync word, and divides the length of
// every header with its CRC.
const minWindow = 4

func (p *Plan) linkWidths() linkWidths {
	w := linkWidths{link: p.Link / 8}
	w.window = max(minWindow, w.link)
	w.rx = min(w.window, p.KeepBits)
	w.tx = min(w.window, p.ResultKeepBits)
	return w
}

// streamModules builds agg_top: link, receiver, core and transmitter.
func streamModules(p *Plan) []*netlist.Module {
	m := netlist.New("agg_top", fmt.Sprintf(`The card on a byte-stream link of %d bits: %d ports, %d lanes.

link_rx -> FIFO -> frame parser -> beats -> rank's port -> core -> words -> frames -> link_tx

Both directions: tkeep is contiguous from bit 0, with at least one byte; a word may end anywhere
in a frame. link_up is synchronous to clk. While it is low, and until the last host's work has
drained, link_rx accepts nothing and link_tx offers nothing, not even a word already offered. rst
is synchronous. beat_strobe is high in each cycle in which a beat enters the lanes, error_strobe
for one cycle for each damaged frame from the host.`,
		p.Link, p.Workers, p.Lanes))
	p.streamPorts(m)
	p.streamWires(m)
	p.streamReceiver(m)
	p.streamRegisters(m)
	p.streamCore(m)
	p.streamTransmitter(m)
	return []*netlist.Module{m}
}

func (p *Plan) streamPorts(m *netlist.Module) {
	m.Input("clk", 1)
	m.Input("rst", 1)
	m.Input("link_up", 1)
	m.PortComment("From the host")
	m.Input("link_rx_tdata", p.Link)
	m.Input("link_rx_tkeep", p.Link/8)
	m.Input("link_rx_tvalid", 1)
	m.Output("link_rx_tready", 1)
	m.PortComment("To the host")
	m.Output("link_tx_tdata", p.Link)
	m.Output("link_tx_tkeep", p.Link/8)
	m.Output("link_tx_tvalid", 1)
	m.Input("link_tx_tready", 1)
	m.PortComment("Strobes for counters and LEDs")
	m.Output("beat_strobe", 1)
	m.Output("error_strobe", 1)
}

func (p *Plan) streamWires(m *netlist.Module) {
	includeHeader(m)
	w := p.linkWidths()

	m.Comment("Link")
	m.Wire("down", 1, "the link is down, or the last host's work has not drained")
	m.Wire("link_rst", 1, "")
	m.Wire("hold", 1, "the core ends a job or sets one up")
	m.Wire("unjudged", 1, "packets wait in the core for the commit")
	m.Wire("window", 8*w.window, "the next bytes from the link")
	m.Wire("window_valid", w.window, "")
	m.Wire("window_sync_bytes", 4, "bytes of the sync word, at their places")
	m.Wire("window_take", 4, "")
	m.Wire("window_commit", 1, "")
	m.Wire("window_rewind", 1, "")

	m.Comment("Receive: a header and payload words, then whole beats")
	m.Wire("rx_header", 8*wire.MaskHeaderBytes, "")
	m.Wire("rx_tdata", 8*w.rx, "")
	m.Wire("rx_tkeep", w.rx, "")
	m.Wire("rx_tvalid", 1, "")
	m.Wire("rx_tready", 1, "")
	m.Wire("rx_tlast", 1, "")
	m.Wire("rx_bad", 1, "the payload's CRC failed")
	m.Wire("rx_dest", p.Workers, "the packet's port")
	p.packetWires(m, "ingress", p.BeatBits, coreHeaderBits)
	m.Wire("ingress_tdest", p.Workers, "")
	m.Wire("ingress_busy", 1, "")
	m.Wire("port_tvalid", p.Workers, "the beat is for this port")
	m.Wire("port_tready", p.Workers, "")
	m.Wire("rank_of_port", 8*p.Workers*p.Jobs, "")
	m.Wire("member", p.Workers*p.Jobs, "the port has a rank")
	for _, e := range shellEvents {
		m.Wire("event_"+e.leaf, 1, "")
	}

	m.Comment("Registers: access, answer, reply")
	m.Wire("access_valid", 1, "")
	m.Wire("access_ready", 1, "")
	m.Wire("access_write", 1, "")
	m.Wire("reg_valid", 1, "")
	m.Wire("reg_ready", 1, "")
	m.Wire("reg_write", 1, "")
	m.Wire("reg_addr", 32, "")
	m.Wire("reg_wdata", 64, "")
	m.Wire("answer_valid", 1, "")
	m.Wire("answer_ready", 1, "")
	m.Wire("answer_code", 8, "")
	m.Wire("answer_value", 64, "")
	m.Wire("reply_valid", 1, "")
	m.Wire("reply_ready", 1, "")
	m.Wire("reply_header", 8*wire.MaskHeaderBytes, "")
	unusedNetwork(m)

	m.Comment("Transmit: whole beats, then payload words, then steps of a frame")
	p.packetWires(m, "egress", p.ResultBeatBits, 8*wire.MaxHeaderBytes)
	m.Wire("unused_tdest", p.Workers, "headers name the ranks")
	for _, w := range p.verdict() {
		m.Wire("unused_"+w.name, w.width, "")
	}
	m.Wire("unused_start", p.Workers, "the transmitter takes each packet as it comes")
	m.Wire("egress_busy", 1, "")
	m.Wire("tx_tdata", 8*w.tx, "")
	m.Wire("tx_tvalid", 1, "")
	m.Wire("tx_tready", 1, "")
	m.Wire("tx_tlast", 1, "")
	m.Wire("tx_header", 8*wire.MaxHeaderBytes, "")
	m.Wire("step_data", 8*w.window, "")
	m.Wire("step_bytes", 4, "")
	m.Wire("step_valid", 1, "")
	m.Wire("step_ready", 1, "")
	m.Wire("step_idle", 1, "no step is ready to follow")

	m.Assign("link_rst", "rst || down")
	m.Assign("error_strobe", "event_header_crc || (rx_tvalid && rx_tready && rx_tlast && rx_bad)")
}

// coreHeaderBits is the width of tuser at an input of the core: the header
// without mask, and a bit for a damaged payload.
const coreHeaderBits = 8*wire.BaseHeaderBytes + 1

// packetWires declares a stream of beats.
func (p *Plan) packetWires(m *netlist.Module, prefix string, beat, user int) {
	m.Wire(prefix+"_tdata", beat, "")
	m.Wire(prefix+"_tkeep", beat/8, "")
	m.Wire(prefix+"_tvalid", 1, "")
	m.Wire(prefix+"_tready", 1, "")
	m.Wire(prefix+"_tlast", 1, "")
	m.Wire(prefix+"_tuser", user, "")
}

// shellEvent is an event of a receiver.
type shellEvent struct {
	leaf    string // name of the receiver's output
	core    string // and of the core's input
	several bool   // each of a card's Ethernet ports may have one in a cycle
}

// shellEvents lists the receiver's events.
var shellEvents = []shellEvent{
	{"frame", "shell_frames", true},
	{"hunted", "shell_hunted", false},
	{"header_crc", "shell_header_crc", false},
	{"bad_version", "shell_bad_version", true},
	{"bad_kind", "shell_bad_kind", true},
	{"bad_length", "shell_bad_length", true},
}

func (p *Plan) streamReceiver(m *netlist.Module) {
	w := p.linkWidths()
	m.Comment("-- Receiver --")
	m.Instance("agg_link_session", "u_session", "").
		Connect("busy", "ingress_busy || unjudged || hold || egress_busy")

	m.Instance("agg_byte_fifo", "u_fifo", "").
		Param("LINK_BYTES", fmt.Sprint(w.link)).
		Param("WINDOW", fmt.Sprint(w.window)).
		Connect("rst", "link_rst").
		Connect("s_axis_tdata", "link_rx_tdata").
		Connect("s_axis_tkeep", "link_rx_tkeep").
		Connect("s_axis_tvalid", "link_rx_tvalid").
		Connect("s_axis_tready", "link_rx_tready").
		Connect("valid", "window_valid").
		Connect("sync_bytes", "window_sync_bytes").
		Connect("take", "window_take").
		Connect("commit", "window_commit").
		Connect("rewind", "window_rewind")

	rx := m.Instance("agg_frame_rx", "u_rx", "").
		Param("WINDOW", fmt.Sprint(w.window)).
		Param("STEP", fmt.Sprint(w.rx)).
		Param("CHUNK", fmt.Sprint(p.Chunk)).
		Param("ELEM_BYTES", fmt.Sprint(p.ElemBits/8)).
		Connect("rst", "link_rst").
		Connect("valid", "window_valid").
		Connect("sync_bytes", "window_sync_bytes").
		Connect("take", "window_take").
		Connect("commit", "window_commit").
		Connect("rewind", "window_rewind").
		Connect("header", "rx_header").
		Connect("m_axis_tdata", "rx_tdata").
		Connect("m_axis_tkeep", "rx_tkeep").
		Connect("m_axis_tvalid", "rx_tvalid").
		Connect("m_axis_tready", "rx_tready").
		Connect("m_axis_tlast", "rx_tlast").
		Connect("m_axis_tuser", "rx_bad").
		Connect("m_register_valid", "access_valid").
		Connect("m_register_write", "access_write").
		Connect("m_register_ready", "access_ready")
	for _, e := range shellEvents {
		rx.Connect("event_"+e.leaf, "event_"+e.leaf)
	}

	m.Instance("agg_beat_pack", "u_pack", "").
		Param("STEP", fmt.Sprint(w.rx)).
		Param("BEAT_BYTES", fmt.Sprint(p.KeepBits)).
		Param("PORTS", fmt.Sprint(p.Workers)).
		Connect("close", "down").
		Connect("busy", "ingress_busy").
		Connect("header", "rx_header[8*HDR_BASE_BYTES-1:0]").
		Connect("dest", "rx_dest").
		Connect("s_axis_tdata", "rx_tdata").
		Connect("s_axis_tkeep", "rx_tkeep").
		Connect("s_axis_tvalid", "rx_tvalid").
		Connect("s_axis_tready", "rx_tready").
		Connect("s_axis_tlast", "rx_tlast").
		Connect("s_axis_tuser", "rx_bad").
		Connect("m_axis_tdata", "ingress_tdata").
		Connect("m_axis_tkeep", "ingress_tkeep").
		Connect("m_axis_tvalid", "ingress_tvalid").
		Connect("m_axis_tready", "ingress_tready").
		Connect("m_axis_tlast", "ingress_tlast").
		Connect("m_axis_tdest", "ingress_tdest").
		Connect("m_axis_tuser", "ingress_tuser")

	m.Instance("agg_route", "u_route", "").
		Param("PORTS", fmt.Sprint(p.Workers)).
		Param("JOBS", fmt.Sprint(p.Jobs)).
		Param("JOB_BITS", fmt.Sprint(indexWidth(p.Jobs))).
		Connect("job", headerField("rx_header", "job")).
		Connect("rank", headerField("rx_header", "rank")).
		Connect("dest", "rx_dest").
		Connect("s_axis_tdest", "ingress_tdest").
		Connect("s_axis_tvalid", "ingress_tvalid").
		Connect("s_axis_tready", "ingress_tready").
		Connect("m_axis_tvalid", "port_tvalid").
		Connect("m_axis_tready", "port_tready")
}

func (p *Plan) streamRegisters(m *netlist.Module) {
	m.Comment("-- Register accesses --")
	m.Instance("agg_register_link", "u_registers", "").
		Connect("link_down", "down").
		Connect("hold", "ingress_busy").
		Connect("s_register_valid", "access_valid").
		Connect("s_register_ready", "access_ready").
		Connect("s_register_write", "access_write").
		Connect("s_register_addr", headerField("rx_header", "vid")).
		Connect("s_register_tag", headerField("rx_header", "length")).
		Connect("s_register_wdata", headerField("rx_header", "mask")).
		Connect("m_reg_valid", "reg_valid").
		Connect("m_reg_ready", "reg_ready").
		Connect("m_reg_write", "reg_write").
		Connect("m_reg_addr", "reg_addr").
		Connect("m_reg_wdata", "reg_wdata").
		Connect("s_reg_valid", "answer_valid").
		Connect("s_reg_ready", "answer_ready").
		Connect("s_reg_code", "answer_code").
		Connect("s_reg_value", "answer_value").
		Connect("m_reply_valid", "reply_valid").
		Connect("m_reply_ready", "reply_ready").
		Connect("m_reply_header", "reply_header")
}

func (p *Plan) streamCore(m *netlist.Module) {
	m.Comment("-- Core --")
	core := m.Instance("agg_core", "u_core", "").
		Connect("link_down", "down")
	core.Connect("s_axis_tdata", repeat(p.Workers, "ingress_tdata")).
		Connect("s_axis_tkeep", repeat(p.Workers, "ingress_tkeep")).
		Connect("s_axis_tvalid", "port_tvalid").
		Connect("s_axis_tready", "port_tready").
		Connect("s_axis_tlast", repeat(p.Workers, "ingress_tlast")).
		Connect("s_axis_tuser", repeat(p.Workers, "ingress_tuser"))
	core.Connect("m_axis_tdata", "egress_tdata").
		Connect("m_axis_tkeep", "egress_tkeep").
		Connect("m_axis_tvalid", "egress_tvalid").
		Connect("m_axis_tready", "egress_tready").
		Connect("m_axis_tlast", "egress_tlast").
		Connect("m_axis_tuser", "egress_tuser").
		Connect("m_axis_tdest", "unused_tdest").
		Connect("port_ready", repeat(p.Workers, "1'b1")).
		Connect("port_start", "unused_start").
		Connect("s_reg_valid", "reg_valid").
		Connect("s_reg_ready", "reg_ready").
		Connect("s_reg_write", "reg_write").
		Connect("s_reg_addr", "reg_addr").
		Connect("s_reg_wdata", "reg_wdata").
		Connect("s_reg_partial", "1'b0").
		Connect("m_reg_valid", "answer_valid").
		Connect("m_reg_ready", "answer_ready").
		Connect("m_reg_code", "answer_code").
		Connect("m_reg_value", "answer_value")
	for _, e := range shellEvents {
		core.Connect(e.core, "event_"+e.leaf)
	}
	p.withoutNetwork(core)
	for _, w := range p.verdict() {
		core.Connect(w.name, "unused_"+w.name)
	}
}

func (p *Plan) streamTransmitter(m *netlist.Module) {
	w := p.linkWidths()
	m.Comment("-- Transmitter --")
	m.Instance("agg_beat_unpack", "u_unpack", "").
		Param("STEP", fmt.Sprint(w.tx)).
		Param("BEAT_BYTES", fmt.Sprint(p.ResultKeepBits)).
		Connect("drop", "down").
		Connect("busy", "egress_busy").
		Connect("s_axis_tdata", "egress_tdata").
		Connect("s_axis_tkeep", "egress_tkeep").
		Connect("s_axis_tvalid", "egress_tvalid").
		Connect("s_axis_tready", "egress_tready").
		Connect("s_axis_tlast", "egress_tlast").
		Connect("s_axis_tuser", "egress_tuser").
		Connect("m_axis_tdata", "tx_tdata").
		Connect("m_axis_tvalid", "tx_tvalid").
		Connect("m_axis_tready", "tx_tready").
		Connect("m_axis_tlast", "tx_tlast").
		Connect("m_axis_tuser", "tx_header")

	m.Instance("agg_frame_tx", "u_tx", "").
		Param("WINDOW", fmt.Sprint(w.window)).
		Param("STEP", fmt.Sprint(w.tx)).
		Connect("rst", "link_rst").
		Connect("s_reply_valid", "reply_valid").
		Connect("s_reply_ready", "reply_ready").
		Connect("s_reply_header", "reply_header").
		Connect("s_axis_tdata", "tx_tdata").
		Connect("s_axis_tvalid", "tx_tvalid").
		Connect("s_axis_tready", "tx_tready").
		Connect("s_axis_tlast", "tx_tlast").
		Connect("s_axis_tuser", "tx_header").
		Connect("m_step_data", "step_data").
		Connect("m_step_bytes", "step_bytes").
		Connect("m_step_valid", "step_valid").
		Connect("m_step_ready", "step_ready").
		Connect("m_step_idle", "step_idle")

	m.Instance("agg_byte_pack", "u_link", "").
		Param("STEP", fmt.Sprint(w.window)).
		Param("LINK_BYTES", fmt.Sprint(w.link)).
		Connect("rst", "link_rst").
		Connect("s_step_data", "step_data").
		Connect("s_step_bytes", "step_bytes").
		Connect("s_step_valid", "step_valid").
		Connect("s_step_ready", "step_ready").
		Connect("s_step_idle", "step_idle").
		Connect("m_axis_tdata", "link_tx_tdata").
		Connect("m_axis_tkeep", "link_tx_tkeep").
		Connect("m_axis_tvalid", "link_tx_tvalid").
		Connect("m_axis_tready", "link_tx_tready")
}

// includeHeader reads the constants of the packet's header into a module.
func includeHeader(m *netlist.Module) {
	constants := map[string]int{"HDR_BASE_BYTES": wire.BaseHeaderBytes, "HDR_MASK_BYTES": wire.MaskHeaderBytes, "HDR_MAX_BYTES": wire.MaxHeaderBytes}
	for _, f := range wire.Fields {
		constants["HDR_"+strings.ToUpper(f.Name)+"_LSB"] = f.Bit
		constants["HDR_"+strings.ToUpper(f.Name)+"_BITS"] = f.Bits
	}
	m.Include("zwire.vh", constants)
}

// headerField selects a header field from a vector that starts with the header.
func headerField(vector, field string) string {
	return fmt.Sprintf("%s[HDR_%[2]s_LSB+:HDR_%[2]s_BITS]", vector, strings.ToUpper(field))
}
