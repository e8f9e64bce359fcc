package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// roceReceiver adds what is behind each Ethernet port, up to the core's ports.
func (p *Plan) roceReceiver(m *netlist.Module) {
	m.Comment("-- Receiver --")
	p.receiverWires(m)
	b := p.perEthernet(m, "g_receive")
	p.receiveFrames(b)
	p.refuseDatagrams(b)
	p.queueAccesses(b)
	p.receivePackets(b)
	p.queueConnections(b)
	p.checkConnections(b)
	p.packBeats(b)
	if p.Ethernet == 1 {
		p.relay(b)
	}
	p.mergeAccesses(m)
	p.toPorts(m)
	p.keepHeaders(m)
	if p.Ethernet == 1 {
		m.Assign("passed", "1'b0")
	}
}

// refuseDatagrams adds the checks of datagrams, of which only register accesses are taken.
func (p *Plan) refuseDatagrams(b *netlist.Body) {
	b.Wire("refused_kind", 1, "a datagram of an unknown kind")
	b.Wire("accepted_valid", 1, "a verdict on a datagram")
	b.Wire("accepted_keep", 1, "it is a member's")
	b.Wire("unused_accepted_tdata", p.Link, "members send no datagrams")
	b.Wire("unused_accepted_tvalid", 1, "")
	b.Wire("unused_accepted_tlast", 1, "")
	b.Wire("unused_accepted_descriptor", descriptorBits, "")
	p.acceptDatagramsAs(b, "unused_accepted_", "refused_kind")
	b.Assign(p.ofEthernet("event_bad_kind", 1), "refused_kind || (accepted_valid && accepted_keep)")
}

// receivePackets adds the receiver of packets of connections, and decides on frames that both receivers
// take.
func (p *Plan) receivePackets(b *netlist.Body) {
	b.Wire("packet_tdata", p.Link, "payload")
	b.Wire("packet_tvalid", 1, "")
	b.Wire("packet_tlast", 1, "")
	b.Wire("packet_verdict", 1, "on a frame, in the cycle of the other verdict")
	b.Wire("packet_kind", 2, "")
	b.Wire("packet_descriptor", p.connectionBits(), "")
	receive := b.Instance("agg_roce_receive", "u_roce_receive", "").
		Param("BYTES", fmt.Sprint(p.Link/8)).
		Param("FRAME_BYTES", fmt.Sprint(largestFrame)).
		Param("JOB_BITS", fmt.Sprint(indexWidth(p.Jobs))).
		Param("PORT_BITS", fmt.Sprint(indexWidth(p.Workers))).
		Connect("ethernet_port", p.ofEthernet("ethernet_number", 8))
	for _, signal := range p.frameSignals() {
		receive.Connect("s_axis_"+signal.name, p.ofEthernet("rx_"+signal.name, signal.width))
	}
	for _, w := range p.connectionWires() {
		receive.Connect(w.name, p.ofEthernet(w.name, w.width))
	}
	for _, signal := range []string{"tdata", "tvalid", "tlast"} {
		receive.Connect("m_axis_"+signal, "packet_"+signal)
	}
	receive.Connect("m_verdict_valid", "packet_verdict").
		Connect("m_verdict_kind", "packet_kind").
		Connect("m_verdict_reason", p.ofEthernet("roce_reason", 3)).
		Connect("m_verdict_descriptor", "packet_descriptor")
	claimed := fmt.Sprintf("packet_kind != 2'd%d", roceNone)
	if p.Ethernet == 1 {
		claimed += " || relay_claims"
		b.Wire("relay_claims", 1, "the frame is for a neighbour")
	}
	b.Wire("claimed", 1, "")
	b.Assign("claimed", claimed)
	b.Assign(p.ofEthernet("received_kind", 3), fmt.Sprintf("claimed ? 3'd%d : judged_kind", kindIgnored))
	b.Assign(p.ofEthernet("roce_dropped", 1), fmt.Sprintf("packet_verdict && packet_kind == 2'd%d", roceDropped))
}

// queueConnections adds the queue of packets for the core.
func (p *Plan) queueConnections(b *netlist.Body) {
	for _, s := range p.connectionSignals() {
		b.Wire("queued_"+s.name, s.width, "")
	}
	depth := p.receiveDepthBits()
	p.memory("packets behind an Ethernet port", p.Ethernet, 1<<depth, p.Link+1)
	p.memory("their headers", p.Ethernet, 1<<receiveQueueFrames, p.connectionBits()+1)
	queue := b.Instance("agg_frame_queue", "u_queue", "").
		Param("WORD_BITS", fmt.Sprint(p.Link)).
		Param("DESCRIPTOR_BITS", fmt.Sprint(p.connectionBits())).
		Param("DEPTH_BITS", fmt.Sprint(depth)).
		Param("FRAME_BITS", fmt.Sprint(receiveQueueFrames)).
		Connect("s_axis_tvalid", "packet_tvalid").
		Connect("s_axis_tdata", "packet_tdata").
		Connect("s_axis_tlast", "packet_tlast").
		Connect("s_verdict_valid", "packet_verdict").
		Connect("s_verdict_keep", "packet_kind == 2'd1").
		Connect("s_verdict_descriptor", "packet_descriptor").
		Connect("event_dropped", p.ofEthernet("event_queue_full", 1))
	for _, s := range p.connectionSignals() {
		queue.Connect("m_axis_"+s.name, "queued_"+s.name)
	}
}

// connectionSignals lists the signals of the packets that wait behind an Ethernet port.
func (p *Plan) connectionSignals() []jobWire {
	return []jobWire{
		{"tdata", p.Link, ""}, {"tpayload", 1, ""}, {"tvalid", 1, ""}, {"tready", 1, ""}, {"tlast", 1, ""},
		{"tuser", p.connectionBits(), ""},
	}
}

// checkConnections adds what makes data of packets.
func (p *Plan) checkConnections(b *netlist.Body) {
	p.checkedWires(b)
	check := b.Instance("agg_connection_check", "u_check", "").
		Param("PORTS", fmt.Sprint(p.Workers)).
		Param("PORT_BITS", fmt.Sprint(indexWidth(p.Workers))).
		Param("JOBS", fmt.Sprint(p.Jobs)).
		Param("JOB_BITS", fmt.Sprint(indexWidth(p.Jobs))).
		Param("BYTES", fmt.Sprint(p.Link/8)).
		Param("ELEM_BYTES", fmt.Sprint(p.ElemBits/8)).
		Param("FORMAT", fmt.Sprint(int(p.Format.Format))).
		Param("PLACE_BITS", fmt.Sprint(p.placeBits())).
		Connect("hold", "hold_packets").
		Connect("busy", p.ofEthernet("check_busy", 1)).
		Connect("m_record_valid", p.ofEthernet("record_valid", 1)).
		Connect("m_record_ready", p.ofEthernet("record_ready", 1)).
		Connect("m_record", p.ofEthernet("record", p.tagBits()+headerRecordBits)).
		Connect("record_place", p.ofEthernet("record_place", p.placeBits()))
	for _, s := range p.connectionSignals() {
		check.Connect("s_axis_"+s.name, "queued_"+s.name)
	}
	for _, signal := range []string{"tvalid", "tready", "tdata", "tkeep", "tlast"} {
		check.Connect("m_axis_"+signal, "checked_"+signal)
	}
	check.Connect("m_axis_theader", "checked_header").Connect("m_axis_tdest", "checked_dest")
}

// relay adds the relay between neighbours of a one-armed card.
func (p *Plan) relay(b *netlist.Body) {
	for _, s := range p.streamSignals() {
		b.Wire("relay_"+s.name, s.width, "")
	}
	bytes := p.Link / 8
	words := indexWidth(2 * ((largestFrame + bytes - 1) / bytes)) // log2
	p.memory("frames for neighbours", 1, 1<<words, 9*bytes+1)
	i := b.Instance("agg_relay", "u_relay", "").
		Param("BYTES", fmt.Sprint(bytes)).
		Param("FRAME_BYTES", fmt.Sprint(largestFrame)).
		Param("NEIGHBOURS", fmt.Sprint(p.Workers)).
		Param("DEPTH_BITS", fmt.Sprint(words)).
		Param("FRAME_BITS", fmt.Sprint(switchFrameBits)).
		Connect("claims", "relay_claims").
		Connect("refuse", fmt.Sprintf("packet_kind != 2'd%d", roceNone)).
		Connect("event_relayed", "relayed").
		Connect("event_dropped", "event_unpassed")
	for _, s := range p.frameSignals() {
		i.Connect("s_axis_"+s.name, "rx_"+s.name)
	}
	for _, s := range p.streamSignals() {
		i.Connect("m_axis_"+s.name, "relay_"+s.name)
	}
}

// keepHeaders adds the memory of headers.
func (p *Plan) keepHeaders(m *netlist.Module) {
	p.memory("headers of connections", 1, 1<<(indexWidth(p.Workers)+indexWidth(p.Slots)), p.tagBits()+headerRecordBits)
	i := m.Instance("agg_roce_headers", "u_headers", "").
		Param("PORTS", fmt.Sprint(p.Workers)).
		Param("PORT_BITS", fmt.Sprint(indexWidth(p.Workers))).
		Param("SLOT_BITS", fmt.Sprint(indexWidth(p.Slots))).
		Param("JOBS", fmt.Sprint(p.Jobs)).
		Param("JOB_BITS", fmt.Sprint(indexWidth(p.Jobs))).
		Param("ETHERNET", fmt.Sprint(p.Ethernet)).
		Param("PLACE_BITS", fmt.Sprint(p.placeBits()))
	for _, name := range []string{"valid", "ready", "place"} {
		i.Connect("s_record_"+name, "record_"+name)
	}
	i.Connect("s_record", "record").
		Connect("enter_tvalid", "ingress_tvalid").
		Connect("enter_tready", "ingress_tready").
		Connect("enter_tlast", "ingress_tlast").
		Connect("enter_place", join(p.Workers, func(port int) string {
			return fmt.Sprintf("ingress_tuser[%d+HDR_CODE_LSB+:%d]", port*coreHeaderBits, p.placeBits())
		})).
		Connect("job_epoch", "job_epochs")
}
