package plan

import (
	"fmt"
	"math/bits"
	"slices"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// roceTransmitter adds what is between the core and the Ethernet ports, and the frames of replies.
func (p *Plan) roceTransmitter(m *netlist.Module) {
	m.Comment("-- Transmitter --")
	p.transmitWires(m)
	p.sumPayloads(m)
	p.splitSums(m)
	p.replyFrames(m)
	b := p.perEthernet(m, "g_transmit")
	p.connectionFrames(b)
	p.mergeFrames(b)
}

// sumPayloads adds the CRC of the core's packets. Statuses end here.
func (p *Plan) sumPayloads(m *netlist.Module) {
	w := p.datagramWidths()
	for _, s := range []jobWire{
		{"room", 1, ""}, {"takes_first", 1, ""}, {"takes_word", 1, ""},
		{"word_valid", 1, ""}, {"word_data", p.Link, ""}, {"word_last", 1, "a packet's last step was taken"},
		{"word_number", w.numberBits, "of that step"}, {"sums_valid", 1, ""}, {"sums_crc", 32, ""},
	} {
		m.Wire(s.name, s.width, s.doc)
	}
	i := m.Instance("agg_roce_sums", "u_sums", "").
		Param("BEAT_BYTES", fmt.Sprint(p.ResultKeepBits)).
		Param("BYTES", fmt.Sprint(w.word)).
		Param("STEP", fmt.Sprint(w.step)).
		Param("NUMBER_BITS", fmt.Sprint(w.numberBits))
	for _, signal := range []string{"tdata", "tkeep", "tvalid", "tready", "tlast"} {
		i.Connect("s_axis_"+signal, "egress_"+signal)
	}
	i.Connect("m_word_valid", "word_valid").
		Connect("m_word_data", "word_data").
		Connect("m_last", "word_last").
		Connect("m_number", "word_number").
		Connect("m_sums_valid", "sums_valid").
		Connect("m_crc", "sums_crc")
}

// splitSums shows sums to the stores of the Ethernet ports where their receivers are.
func (p *Plan) splitSums(m *netlist.Module) {
	split := []jobWire{{"dest", p.Workers + 1, ""}, {"takes_first", 1, ""}, {"takes_word", 1, ""}, {"word_valid", 1, ""}, {"last", 1, ""}, {"sums_valid", 1, ""}}
	for _, w := range split {
		m.Wire("split_"+w.name, w.width*p.Ethernet, "")
	}
	m.Wire("rooms", p.Ethernet, "")
	m.Wire("copies_left", p.Ethernet, "the last copy of a packet, at this port, has its header")
	if p.Ethernet == 1 {
		m.Assign("room", "rooms")
		m.Assign("packet_left", "copies_left")
		for i, from := range []string{netlist.Concat("1'b0", "egress_tdest"), "takes_first", "takes_word", "word_valid", "word_last", "sums_valid"} {
			m.Assign("split_"+split[i].name, from)
		}
		return
	}
	w := p.datagramWidths()
	delay := 2
	if w.step > 16 {
		delay = 3
	}
	job := indexWidth(p.Jobs)
	i := m.Instance("agg_packet_split", "u_split", "").
		Param("PORTS", fmt.Sprint(p.Workers)).
		Param("ETHERNET", fmt.Sprint(p.Ethernet)).
		Param("JOBS", fmt.Sprint(p.Jobs)).
		Param("JOB_BITS", fmt.Sprint(job)).
		Param("DELAY", fmt.Sprint(delay)).
		Connect("behind", "leaves_at").
		Connect("reply_ethernet", "8'd0").
		Connect("s_dest", netlist.Concat("1'b0", "egress_tdest")).
		Connect("s_job", fmt.Sprintf("egress_tuser[HDR_JOB_LSB+:%d]", job)).
		Connect("s_word_valid", "word_valid").
		Connect("s_last", "word_last").
		Connect("s_sums_valid", "sums_valid")
	for _, w := range split {
		i.Connect("m_"+w.name, "split_"+w.name)
	}
	m.Wire("order_room", 1, "")
	m.Assign("room", "order_room && &rooms")
	m.Instance("agg_packet_order", "u_order", "").
		Param("ETHERNET", fmt.Sprint(p.Ethernet)).
		Connect("room", "order_room").
		Connect("come", "takes_first").
		Connect("ports", "split_takes_first").
		Connect("left", "copies_left").
		Connect("all_left", "packet_left")
}

// replyFrames adds the frames of replies, and shows them to the Ethernet port of the access.
func (p *Plan) replyFrames(m *netlist.Module) {
	for _, s := range p.streamSignals() {
		if s.name != "tready" {
			m.Wire("answer_frame_"+s.name, s.width, "")
		}
	}
	m.Wire("replies_tvalid", p.Ethernet, "")
	if p.Ethernet == 1 {
		m.Assign("replies_tvalid", "answer_frame_tvalid")
	} else {
		m.Assign("replies_tvalid", join(p.Ethernet, func(e int) string {
			return fmt.Sprintf("answer_frame_tvalid && reply_ethernet == 8'd%d", e)
		}))
	}
	i := m.Instance("agg_reply_frame", "u_replies", "").
		Param("BYTES", fmt.Sprint(p.Link/8))
	for _, name := range []string{"valid", "ready", "header", "mac", "ip", "port"} {
		i.Connect("s_reply_"+name, "reply_"+name)
	}
	for _, s := range p.streamSignals() {
		if s.name != "tready" {
			i.Connect("m_axis_"+s.name, "answer_frame_"+s.name)
		}
	}
	i.Connect("m_axis_tready", "|(replies_tvalid & reply_tready)")
}

// connectionFrames adds the store of sums, and a frame for each connection whose receiver is behind the
// Ethernet port.
func (p *Plan) connectionFrames(b *netlist.Body) {
	w := p.datagramWidths()
	slot, job, port := indexWidth(p.Slots), indexWidth(p.Jobs), indexWidth(p.Workers)
	copies := []jobWire{
		{"valid", 1, ""}, {"ready", 1, ""}, {"final", 1, ""}, {"ecn", 2, ""}, {"crc", 32, ""},
	}
	b.Wire("copy_dest", p.Workers, "")
	b.Wire("copy_done", p.Workers, "receivers that the copy serves")
	b.Wire("copy_slot", slot, "")
	b.Wire("copy_tag", p.tagBits(), "job, epoch and VID")
	b.Wire("unused_copy_reply", 1, "")
	header, fields := p.copyHeader(b)
	for _, c := range copies {
		b.Wire("copy_"+c.name, c.width, c.doc)
	}
	b.Wire("unused_copy_bare", 1, "")
	b.Wire("unused_copy_bytes", 14, "")
	b.Wire("unused_copy_sum", 16, "")
	for _, signal := range []jobWire{{"tdata", p.Link, ""}, {"tvalid", 1, ""}, {"tready", 1, ""}, {"tlast", 1, ""}} {
		b.Wire("payload_"+signal.name, signal.width, "")
	}
	words := 2*((w.payload+w.word-1)/w.word) + w.spare
	p.memory("sums to an Ethernet port", p.Ethernet, 1<<bits.Len(uint(words-1)), p.Link)
	padding := 8*wire.MaxHeaderBytes - 8*wire.MaskHeaderBytes - slot
	store := b.Instance("agg_datagram_store", "u_store", "").
		Param("PORTS", fmt.Sprint(p.Workers+1)).
		Param("BYTES", fmt.Sprint(w.word)).
		Param("STEP", fmt.Sprint(w.step)).
		Param("PAYLOAD", fmt.Sprint(w.payload)).
		Param("SPARE", fmt.Sprint(w.spare)).
		Param("NUMBER_BITS", fmt.Sprint(w.numberBits)).
		Connect("room", p.ofEthernet("rooms", 1)).
		Connect("s_dest", p.ofEthernet("split_dest", p.Workers+1)).
		Connect("takes_first", p.ofEthernet("split_takes_first", 1)).
		Connect("takes_word", p.ofEthernet("split_takes_word", 1)).
		Connect("s_word_valid", p.ofEthernet("split_word_valid", 1)).
		Connect("s_last", p.ofEthernet("split_last", 1)).
		Connect("s_sums_valid", p.ofEthernet("split_sums_valid", 1)).
		Connect("s_header", netlist.Concat(fmt.Sprintf("%d'd0", padding), "egress_tslot", "egress_tuser")).
		Connect("s_bare", "1'b0").
		Connect("s_word_data", "word_data").
		Connect("s_number", "word_number").
		Connect("s_crc", "sums_crc").
		Connect("s_sum", "16'd0").
		Connect("m_copy_bare", "unused_copy_bare").
		Connect("m_copy_bytes", "unused_copy_bytes").
		Connect("m_copy_sum", "unused_copy_sum")
	for _, c := range copies {
		store.Connect("m_copy_"+c.name, "copy_"+c.name)
	}
	store.Connect("m_copy_done", netlist.Concat("1'b0", "copy_done")).
		Connect("m_copy_dest", netlist.Concat("unused_copy_reply", "copy_dest")).
		Connect("m_copy_header", header)
	b.Assign("copy_tag", fields)
	for _, signal := range []string{"tdata", "tvalid", "tready", "tlast"} {
		store.Connect("m_axis_"+signal, "payload_"+signal)
	}

	for _, signal := range p.streamSignals() {
		b.Wire("frame_"+signal.name, signal.width, "")
	}
	b.Wire("to_member", port, "whose connection it is")
	b.Wire("unused_skipped", 1, "a header was another packet's")
	transmit := b.Instance("agg_roce_transmit", "u_transmit", "").
		Param("PORTS", fmt.Sprint(p.Workers)).
		Param("PORT_BITS", fmt.Sprint(port)).
		Param("SLOT_BITS", fmt.Sprint(slot)).
		Param("JOB_BITS", fmt.Sprint(job)).
		Param("BYTES", fmt.Sprint(w.word)).
		Connect("to_job", p.ofEthernet("to_job", job)).
		Connect("to_port", "to_member").
		Connect("to_mac", p.ofEthernet("to_mac", 48)).
		Connect("left", p.ofEthernet("copies_left", 1)).
		Connect("skipped", "unused_skipped")
	for _, name := range []string{"valid", "ready", "dest", "done", "final", "slot", "tag", "ecn", "crc"} {
		transmit.Connect("s_copy_"+name, "copy_"+name)
	}
	for _, w := range []jobWire{{"valid", 1, ""}, {"ready", 1, ""}, {"port", port, ""}, {"slot", slot, ""}, {"done", 1, ""}} {
		transmit.Connect("read_"+w.name, p.ofEthernet("read_"+w.name, w.width))
	}
	for _, signal := range []string{"tdata", "tvalid", "tready", "tlast"} {
		transmit.Connect("s_axis_"+signal, "payload_"+signal)
	}
	for _, signal := range p.streamSignals() {
		transmit.Connect("m_axis_"+signal.name, "frame_"+signal.name)
	}
	// The address table is asked for the receiver of the member's connection.
	number := fmt.Sprintf("%d*to_member", port)
	if p.Jobs > 1 {
		number = fmt.Sprintf("%d*%s+%s", port*p.Workers, p.ofEthernet("to_job", job), number)
	}
	b.Assign(p.ofEthernet("to_en", 1), "1'b1")
	b.Assign(p.ofEthernet("to_port", port), fmt.Sprintf("receivers[%s+:%d]", number, port))
	b.Assign(p.ofEthernet("from_en", 1), "1'b0") // members send no datagrams
	b.Assign(p.ofEthernet("from_job", 8), "8'd0")
	b.Assign(p.ofEthernet("from_rank", 8), "8'd0")
	b.Assign(p.ofEthernet("stranger", 1), "1'b0")
}

// copyHeader declares the parts of a copy's header: fields of the sum, with its slot behind them. It returns
// all of them, and those of the tag.
func (p *Plan) copyHeader(b *netlist.Body) (header, tag string) {
	var parts []string
	at, unused := 0, 0
	upTo := func(bit int) {
		if bit > at {
			name := fmt.Sprintf("unused_copy_%d", unused)
			b.Wire(name, bit-at, "")
			parts, at, unused = append(parts, name), bit, unused+1
		}
	}
	for _, f := range wire.Fields {
		width := f.Bits
		switch f.Name {
		case "job":
			width = indexWidth(p.Jobs)
		case "epoch", "vid":
		default:
			continue
		}
		upTo(f.Bit)
		b.Wire("copy_"+f.Name, width, "")
		parts, at = append(parts, "copy_"+f.Name), at+width
	}
	upTo(8 * wire.MaskHeaderBytes)
	parts, at = append(parts, "copy_slot"), at+indexWidth(p.Slots)
	upTo(8 * wire.MaxHeaderBytes)
	slices.Reverse(parts)
	return netlist.Concat(parts...), netlist.Concat("copy_job", "copy_epoch", "copy_vid")
}
