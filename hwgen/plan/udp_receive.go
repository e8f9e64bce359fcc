package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

const (
	// receiveQueueFrames is log2 of the packets that wait behind an Ethernet port.
	receiveQueueFrames = 5

	// verdictDelay is the number of cycles from a frame's last beat to agg_eth_receive's verdict.
	verdictDelay = 9

	// kindARP and kindEcho are kinds of agg_eth_judge.
	kindARP  = 2
	kindEcho = 3
)

// descriptorBits is the width of agg_datagram_accept's first descriptor.
const descriptorBits = 161

// descriptor returns the first descriptor in a wire with both.
func (p *Plan) descriptor(wire string) string {
	if p.Parent {
		return netlist.Slice(wire, 0, descriptorBits)
	}
	return wire
}

// queuedBits returns the width of what waits of a packet beside its words: its descriptors.
func (p *Plan) queuedBits() int {
	if p.Parent {
		return descriptorBits + p.upDescriptorBits()
	}
	return descriptorBits
}

// receiveDepthBits returns log2 of the words that wait behind an Ethernet port: those of four of the
// largest contributions, or final sums.
func (p *Plan) receiveDepthBits() int {
	largest := p.Chunk * p.ElemBits / 8
	if p.Parent {
		largest += wire.MaxHeaderBytes - wire.BaseHeaderBytes
	}
	words := (largest + p.Link/8 - 1) / (p.Link / 8)
	return max(4, indexWidth(4*words))
}

// udpReceiver adds what is behind each Ethernet port, up to the core's ports.
func (p *Plan) udpReceiver(m *netlist.Module) {
	m.Comment("-- Receiver --")
	p.receiverWires(m)
	b := p.perEthernet(m, "g_receive")
	p.upReceiverWires(b)
	p.receiveFrames(b)
	p.acceptDatagrams(b)
	p.queueAccesses(b)
	p.queuePackets(b)
	p.packBeats(b)
	p.mergeAccesses(m)
	p.toPorts(m)
	if p.Ethernet == 1 {
		m.Assign("passed", "1'b0")
	}
}

// receiverWires declares what leaves the receivers: register accesses and beats.
func (p *Plan) receiverWires(m *netlist.Module) {
	m.Wire("waiting_valid", p.Ethernet, "a register access waits")
	m.Wire("waiting_ready", p.Ethernet, "")
	for _, f := range accessFields {
		m.Wire("waiting_"+f.name, f.width*p.Ethernet, "")
	}
	for _, signal := range p.beatSignals() {
		m.Wire("beat_"+signal.name, signal.width*p.Ethernet, "")
	}
	m.Wire("beat_tdest", p.Inputs()*p.Ethernet, "port of the core, one hot")
	if p.Parent {
		m.Wire("beat_tmask", 64*p.Ethernet, "of the parent's packets")
	}
}

// receiveFrames adds the receiver of frames.
func (p *Plan) receiveFrames(b *netlist.Body) {
	b.Wire("received_reason", 4, "")
	b.Wire("received_mac", 48, "")
	b.Wire("received_ip", 32, "")
	b.Wire("received_port", 16, "")
	b.Wire("received_ecn", 2, "")
	b.Wire("received_header", 8*wire.MaskHeaderBytes, "")
	b.Wire("received_bytes", 16, "")
	b.Wire("received_echo", 48, "")
	b.Wire("received_tdata", p.Link, "payload")
	b.Wire("unused_tkeep", p.Link/8, "headers have the length")
	b.Wire("received_tvalid", 1, "")
	b.Wire("received_tlast", 1, "")
	kind := p.judgedKind(b)
	receive := b.Instance("agg_eth_receive", "u_receive", "").
		Param("BYTES", fmt.Sprint(p.Link/8)).
		Param("FRAME_BYTES", fmt.Sprint(largestFrame))
	for _, signal := range p.frameSignals() {
		receive.Connect("s_axis_"+signal.name, p.ofEthernet("rx_"+signal.name, signal.width))
	}
	receive.Connect("m_axis_tvalid", "received_tvalid").
		Connect("m_axis_tdata", "received_tdata").
		Connect("m_axis_tkeep", "unused_tkeep").
		Connect("m_axis_tlast", "received_tlast").
		Connect("m_verdict_valid", p.ofEthernet("received_valid", 1)).
		Connect("m_verdict_kind", kind)
	for _, field := range []string{"reason", "mac", "ip", "port", "ecn", "header", "bytes", "echo"} {
		receive.Connect("m_verdict_"+field, "received_"+field)
	}
	p.receiveUp(receive)
	b.Assign(p.ofEthernet("drop_valid", 1), fmt.Sprintf("%s && %s == 3'd0", p.ofEthernet("received_valid", 1), p.ofEthernet("received_kind", 3)))
	b.Assign(p.ofEthernet("drop_reason", 4), "received_reason")
	p.answerRequests(b)
}

// judgedKind returns the wire with the kind of a frame by agg_eth_judge. With connections, another
// judge may claim the frame.
func (p *Plan) judgedKind(b *netlist.Body) string {
	if !p.Shell.Release {
		return p.ofEthernet("received_kind", 3)
	}
	b.Wire("judged_kind", 3, "")
	return "judged_kind"
}

// answerRequests adds the answers to ARP and ICMP.
func (p *Plan) answerRequests(b *netlist.Body) {
	b.Wire("passing_tdata", p.Link, "the received frame, as late as its verdict")
	b.Wire("passing_tvalid", 1, "")
	b.Wire("passing_tlast", 1, "")
	b.Wire("unused_echo", 32, "the answer has the request's bytes")
	b.Assign("unused_echo", netlist.Slice("received_echo", 0, 32))
	b.Instance("agg_tag_delay", "u_passing", "").
		Param("WIDTH", fmt.Sprint(p.Link+1)).
		Param("CYCLES", fmt.Sprint(verdictDelay)).
		Connect("in_valid", p.ofEthernet("rx_tvalid", 1)).
		Connect("in_tag", netlist.Concat(p.ofEthernet("rx_tlast", 1), p.ofEthernet("rx_tdata", p.Link))).
		Connect("out_valid", "passing_tvalid").
		Connect("out_tag", "{passing_tlast, passing_tdata}")
	of := func(kind int) string {
		return fmt.Sprintf("%s && %s == 3'd%d", p.ofEthernet("received_valid", 1), p.ofEthernet("received_kind", 3), kind)
	}
	answers := b.Instance("agg_eth_answers", "u_answers", "").
		Param("BYTES", fmt.Sprint(p.Link/8)).
		Connect("s_axis_tdata", "passing_tdata").
		Connect("s_axis_tvalid", "passing_tvalid").
		Connect("s_axis_tlast", "passing_tlast").
		Connect("s_arp", of(kindARP)).
		Connect("s_echo", of(kindEcho)).
		Connect("s_mac", "received_mac").
		Connect("s_ip", "received_ip").
		Connect("s_bytes", "received_bytes + 16'd28").
		Connect("s_checksum", netlist.Slice("received_echo", 32, 16)).
		Connect("dropped", p.ofEthernet("event_answer_lost", 1))
	for _, signal := range p.streamSignals() {
		answers.Connect("m_axis_"+signal.name, p.ofEthernet("answers_"+signal.name, signal.width))
	}
}

// acceptDatagrams adds the checks of datagrams.
func (p *Plan) acceptDatagrams(b *netlist.Body) {
	b.Wire("accepted_tdata", p.Link, "")
	b.Wire("accepted_tvalid", 1, "")
	b.Wire("accepted_tlast", 1, "")
	b.Wire("accepted_valid", 1, "a verdict on a frame's payload")
	b.Wire("accepted_keep", 1, "")
	b.Wire("accepted_descriptor", p.queuedBits(), "")
	p.acceptDatagramsAs(b, "accepted_", p.ofEthernet("event_bad_kind", 1))
}

// acceptDatagramsAs adds agg_datagram_accept, given the prefix of its words and descriptors, and the wire
// of its event bad_kind.
func (p *Plan) acceptDatagramsAs(b *netlist.Body, accepted, badKind string) {
	b.Wire("asked_valid", 1, "a register access came")
	for _, f := range senderless() {
		b.Wire("asked_"+f.name, f.width, "")
	}
	accept := b.Instance("agg_datagram_accept", "u_accept", "").
		Param("BYTES", fmt.Sprint(p.Link/8)).
		Param("CHUNK", fmt.Sprint(p.Chunk)).
		Param("ELEM_BYTES", fmt.Sprint(p.ElemBits/8)).
		Connect("s_verdict_valid", p.ofEthernet("received_valid", 1)).
		Connect("s_verdict_kind", p.ofEthernet("received_kind", 3)).
		Connect("m_verdict_valid", "accepted_valid").
		Connect("m_verdict_keep", "accepted_keep").
		Connect("m_verdict_descriptor", p.descriptor(accepted+"descriptor")).
		Connect("m_access_valid", "asked_valid")
	for _, signal := range []string{"tvalid", "tdata", "tlast"} {
		accept.Connect("s_axis_"+signal, "received_"+signal).Connect("m_axis_"+signal, accepted+signal)
	}
	for _, field := range []string{"mac", "ip", "port", "ecn", "header", "bytes"} {
		accept.Connect("s_verdict_"+field, "received_"+field)
	}
	for _, f := range senderless() {
		accept.Connect("m_access_"+f.name, "asked_"+f.name)
	}
	for _, e := range []string{"frame", "bad_version", "bad_length"} {
		accept.Connect("event_"+e, p.ofEthernet("event_"+e, 1))
	}
	accept.Connect("event_bad_kind", badKind)
	p.acceptUp(accept)
}

// senderless lists the fields of an access without its Ethernet port, which is known by where it came.
func senderless() []jobWire { return accessFields[:len(accessFields)-1] }

// queueAccesses adds the queue of register accesses.
func (p *Plan) queueAccesses(b *netlist.Body) {
	asked, width := nameAll(senderless(), prefixer("asked_"))
	waiting, _ := nameAll(senderless(), func(f jobWire) string { return p.ofEthernet("waiting_"+f.name, f.width) })
	b.Instance("agg_access_queue", "u_accesses", "").
		Param("WIDTH", fmt.Sprint(width)).
		Connect("s_access_valid", "asked_valid").
		Connect("s_access", netlist.Concat(asked...)).
		Connect("event_dropped", p.ofEthernet("event_accesses_full", 1)).
		Connect("m_access_valid", p.ofEthernet("waiting_valid", 1)).
		Connect("m_access_ready", p.ofEthernet("waiting_ready", 1)).
		Connect("m_access", netlist.Concat(waiting...))
	b.Assign(p.ofEthernet("waiting_ethernet", 8), p.ofEthernet("ethernet_number", 8))
}

// queuePackets adds the queue of packets for the core, and the check of their senders.
func (p *Plan) queuePackets(b *netlist.Body) {
	for _, s := range p.queuedSignals() {
		b.Wire("queued_"+s.name, s.width, "")
	}
	depth := p.receiveDepthBits()
	p.memory("packets behind an Ethernet port", p.Ethernet, 1<<depth, p.Link+1)
	p.memory("their headers", p.Ethernet, 1<<receiveQueueFrames, p.queuedBits()+1)
	queue := b.Instance("agg_frame_queue", "u_queue", "").
		Param("WORD_BITS", fmt.Sprint(p.Link)).
		Param("DESCRIPTOR_BITS", fmt.Sprint(p.queuedBits())).
		Param("DEPTH_BITS", fmt.Sprint(depth)).
		Param("FRAME_BITS", fmt.Sprint(receiveQueueFrames)).
		Connect("s_axis_tvalid", "accepted_tvalid").
		Connect("s_axis_tdata", "accepted_tdata").
		Connect("s_axis_tlast", "accepted_tlast").
		Connect("s_verdict_valid", "accepted_valid").
		Connect("s_verdict_keep", "accepted_keep").
		Connect("s_verdict_descriptor", "accepted_descriptor").
		Connect("event_dropped", p.ofEthernet("event_queue_full", 1))

	unwrapped := p.unwrapUp(b)
	p.checkedWires(b)
	check := b.Instance("agg_member_check", "u_check", "").
		Param("PORTS", fmt.Sprint(p.Workers)).
		Param("PORT_BITS", fmt.Sprint(indexWidth(p.Workers))).
		Param("BYTES", fmt.Sprint(p.Link/8)).
		Connect("ethernet_port", p.ofEthernet("ethernet_number", 8)).
		Connect("hold", "hold_packets").
		Connect("busy", p.ofEthernet("check_busy", 1)).
		Connect("event_stranger", p.ofEthernet("stranger", 1))
	for _, s := range p.queuedSignals() {
		queue.Connect("m_axis_"+s.name, "queued_"+s.name)
		if s.name != "tuser" {
			check.Connect("s_axis_"+s.name, unwrapped+s.name)
		}
	}
	check.Connect("s_axis_tuser", p.descriptor("queued_tuser"))
	for _, w := range p.lookups("from_") {
		check.Connect(w.name, p.ofEthernet(w.name, w.width))
	}
	for _, signal := range []string{"tvalid", "tready", "tdata", "tkeep", "tlast"} {
		check.Connect("m_axis_"+signal, "checked_"+signal)
	}
	check.Connect("m_axis_theader", "checked_header").
		Connect("m_axis_tdest", p.memberDest("checked_dest"))
	p.checkUp(b, check)
}

// checkedWires declares the packets that go to the core.
func (p *Plan) checkedWires(b *netlist.Body) {
	b.Wire("checked_tdata", p.Link, "")
	b.Wire("checked_tkeep", p.Link/8, "")
	b.Wire("checked_tvalid", 1, "")
	b.Wire("checked_tready", 1, "")
	b.Wire("checked_tlast", 1, "")
	b.Wire("checked_header", 8*wire.BaseHeaderBytes, "")
	b.Wire("checked_dest", p.Inputs(), "")
}

// queuedSignals lists the signals of the packets that wait behind an Ethernet port.
func (p *Plan) queuedSignals() []jobWire {
	return []jobWire{
		{"tdata", p.Link, ""}, {"tpayload", 1, ""}, {"tvalid", 1, ""}, {"tready", 1, ""}, {"tlast", 1, ""},
		{"tuser", p.queuedBits(), ""},
	}
}

// packBeats adds the beats of packets.
func (p *Plan) packBeats(b *netlist.Body) {
	dest, beatDest, bits := "checked_dest", p.ofEthernet("beat_tdest", p.Inputs()), p.Inputs()
	if p.Parent { // the mask goes along
		dest, beatDest = netlist.Concat("checked_mask", dest), netlist.Concat(p.ofEthernet("beat_tmask", 64), beatDest)
		bits += 64
	}
	pack := b.Instance("agg_beat_pack", "u_pack", "").
		Param("STEP", fmt.Sprint(p.Link/8)).
		Param("BEAT_BYTES", fmt.Sprint(p.KeepBits)).
		Param("PORTS", fmt.Sprint(bits)).
		Connect("close", "1'b0").
		Connect("busy", p.ofEthernet("pack_busy", 1)).
		Connect("header", "checked_header").
		Connect("dest", dest).
		Connect("s_axis_tuser", "1'b0").
		Connect("m_axis_tdest", beatDest)
	for _, signal := range []string{"tdata", "tkeep", "tvalid", "tready", "tlast"} {
		pack.Connect("s_axis_"+signal, "checked_"+signal)
	}
	for _, signal := range p.beatSignals() {
		pack.Connect("m_axis_"+signal.name, p.ofEthernet("beat_"+signal.name, signal.width))
	}
}

// beatSignals lists the signals of a contribution's stream.
func (p *Plan) beatSignals() []jobWire {
	return []jobWire{
		{"tdata", p.BeatBits, ""}, {"tkeep", p.KeepBits, ""}, {"tvalid", 1, ""}, {"tready", 1, ""}, {"tlast", 1, ""},
		{"tuser", coreHeaderBits, ""},
	}
}

// mergeAccesses brings the accesses of all Ethernet ports to the registers, one after another.
func (p *Plan) mergeAccesses(m *netlist.Module) {
	if p.Ethernet == 1 {
		m.Assign("access_valid", "waiting_valid")
		m.Assign("waiting_ready", "access_ready")
		for _, f := range accessFields {
			m.Assign("access_"+f.name, "waiting_"+f.name)
		}
		return
	}
	access, width := nameAll(accessFields, prefixer("access_"))
	bytes := (width + 7) / 8
	if padding := 8*bytes - width; padding > 0 {
		m.Wire("unused_access_padding", padding, "an access is no whole number of bytes")
		access = append([]string{"unused_access_padding"}, access...)
	}
	m.Wire("accesses_tdata", 8*bytes*p.Ethernet, "")
	m.Wire("unused_access_tkeep", bytes, "")
	m.Wire("unused_access_tlast", 1, "an access is one word")
	m.Assign("accesses_tdata", join(p.Ethernet, func(port int) string {
		fields, _ := nameAll(accessFields, func(f jobWire) string {
			return netlist.Slice("waiting_"+f.name, port*f.width, f.width)
		})
		return widen(netlist.Concat(fields...), width, 8*bytes)
	}))
	m.Instance("agg_eth_merge", "u_access_turns", "").
		Param("STREAMS", fmt.Sprint(p.Ethernet)).
		Param("BYTES", fmt.Sprint(bytes)).
		Connect("s_axis_tdata", "accesses_tdata").
		Connect("s_axis_tkeep", fmt.Sprintf("{%d{1'b0}}", bytes*p.Ethernet)).
		Connect("s_axis_tvalid", "waiting_valid").
		Connect("s_axis_tready", "waiting_ready").
		Connect("s_axis_tlast", fmt.Sprintf("{%d{1'b1}}", p.Ethernet)).
		Connect("m_axis_tdata", netlist.Concat(access...)).
		Connect("m_axis_tkeep", "unused_access_tkeep").
		Connect("m_axis_tvalid", "access_valid").
		Connect("m_axis_tready", "access_ready").
		Connect("m_axis_tlast", "unused_access_tlast")
}

// toPorts brings beats from the Ethernet ports to the core's.
func (p *Plan) toPorts(m *netlist.Module) {
	if p.Ethernet == 1 {
		m.Assign("ingress_tvalid", fmt.Sprintf("beat_tdest & %s", repeat(p.Inputs(), "beat_tvalid")))
		m.Assign("beat_tready", "|(beat_tdest & ingress_tready)")
		for _, signal := range p.beatSignals() {
			if signal.name != "tvalid" && signal.name != "tready" {
				m.Assign("ingress_"+signal.name, repeat(p.ingressPorts(signal), "beat_"+signal.name))
			}
		}
		p.upHeader(m, "beat_tuser", "beat_tmask")
		return
	}
	// A word has a beat, its header, and whether it has bytes.
	bytes := (p.BeatBits + coreHeaderBits + 1 + 7) / 8
	padding := 8*bytes - p.BeatBits - coreHeaderBits - 1
	m.Wire("crossing_tdata", 8*bytes*p.Ethernet, "the beat of each Ethernet port, with its header")
	m.Wire("crossing_tready", p.Ethernet*p.Workers, "of each Ethernet port, at each port of the core")
	m.Assign("crossing_tdata", join(p.Ethernet, func(e int) string {
		return widen(netlist.Concat(
			"&"+netlist.Slice("beat_tkeep", e*p.KeepBits, p.KeepBits), netlist.Slice("beat_tuser", e*coreHeaderBits, coreHeaderBits),
			netlist.Slice("beat_tdata", e*p.BeatBits, p.BeatBits)), 8*bytes-padding, 8*bytes)
	}))
	m.Wire("crossed", p.Ethernet*p.Workers, "the same, the ports of the core together")
	p.crossUp(m)
	for e := range p.Ethernet {
		crossed, dest := netlist.Slice("crossed", e*p.Workers, p.Workers), netlist.Slice("beat_tdest", e*p.Inputs(), p.Inputs())
		taken := dest + " & " + crossed
		if p.Parent {
			taken = netlist.Concat(netlist.Slice("up_crossing_tready", e, 1), crossed) + " & " + dest
		}
		m.Assign(netlist.Slice("beat_tready", e, 1), fmt.Sprintf("|(%s)", taken))
	}
	of := func(name string, width int) string { return element(name, width, p.Workers, "p") }
	input := func(name string, width int) string { return element(name, width, p.Inputs(), "p") }
	b := m.Loop("g_cross", "p", 0, p.Workers)
	for e := range p.Ethernet {
		b.Assign(fmt.Sprintf("crossed[%d+p]", e*p.Workers), fmt.Sprintf("crossing_tready[%d*p+%d]", p.Ethernet, e))
	}
	b.Wire("word", 8*bytes, "")
	b.Wire("unused_tkeep", bytes, "")
	b.Instance("agg_eth_merge", "u_cross", "").
		Param("STREAMS", fmt.Sprint(p.Ethernet)).
		Param("BYTES", fmt.Sprint(bytes)).
		Connect("s_axis_tdata", "crossing_tdata").
		Connect("s_axis_tkeep", fmt.Sprintf("{%d{1'b0}}", bytes*p.Ethernet)).
		Connect("s_axis_tvalid", join(p.Ethernet, func(e int) string {
			dest := fmt.Sprintf("beat_tdest[%d+p]", e*p.Inputs())
			return fmt.Sprintf("beat_tvalid[%d] && %s", e, dest)
		})).
		Connect("s_axis_tready", of("crossing_tready", p.Ethernet)).
		Connect("s_axis_tlast", "beat_tlast").
		Connect("m_axis_tdata", "word").
		Connect("m_axis_tkeep", "unused_tkeep").
		Connect("m_axis_tvalid", input("ingress_tvalid", 1)).
		Connect("m_axis_tready", input("ingress_tready", 1)).
		Connect("m_axis_tlast", input("ingress_tlast", 1))
	if padding > 0 {
		b.Wire("unused_padding", padding, "")
		b.Assign("unused_padding", netlist.Slice("word", 8*bytes-padding, padding))
	}
	b.Assign(input("ingress_tdata", p.BeatBits), netlist.Slice("word", 0, p.BeatBits))
	b.Assign(of("ingress_tuser", coreHeaderBits), netlist.Slice("word", p.BeatBits, coreHeaderBits))
	b.Assign(input("ingress_tkeep", p.KeepBits), fmt.Sprintf("{%d{%s}}", p.KeepBits, netlist.Slice("word", p.BeatBits+coreHeaderBits, 1)))
}
