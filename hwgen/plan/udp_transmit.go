package plan

import (
	"fmt"
	"math/bits"
	"slices"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// datagramWidths are sizes of the transmit side. agg_datagram_steps explains them.
type datagramWidths struct {
	word       int // bytes of a word of a frame
	step       int // bytes of a step
	zeros      int // before a header of 30 bytes
	zerosBare  int // before one of 22
	payload    int // bytes of the largest result
	numberBits int // width of a step's number
	spare      int // words of the ring beyond two packets
}

func (p *Plan) datagramWidths() datagramWidths {
	w := datagramWidths{word: p.Link / 8, payload: p.Chunk * p.ResultBits / 8}
	w.step = min(w.word, p.ResultKeepBits)
	block := max(w.step, 32)
	w.zeros = block - wire.MaxHeaderBytes
	w.zerosBare = w.zeros
	if w.step > 8 {
		w.zerosBare = block - wire.MaskHeaderBytes
	}
	w.numberBits = bits.Len(uint(max(w.payload, w.word)/w.step-1)) + 1
	if w.payload < 64*w.word {
		w.spare = 16
	}
	return w
}

// udpTransmitter adds what is between the core and the Ethernet ports.
func (p *Plan) udpTransmitter(m *netlist.Module) {
	m.Comment("-- Transmitter --")
	p.transmitWires(m)
	p.udpPackets(m)
	p.splitPackets(m)
	b := p.perEthernet(m, "g_transmit")
	p.udpCopies(b)
	p.mergeFrames(b)
}

// transmitWires declares the frames that leave.
func (p *Plan) transmitWires(m *netlist.Module) {
	for _, signal := range p.streamSignals() {
		m.Wire("tx_"+signal.name, signal.width*p.Ethernet, "")
		if signal.name == "tready" {
			m.Assign("tx_tready", p.eachEthernet("tx", "tready"))
		} else {
			m.Assign(p.eachEthernet("tx", signal.name), "tx_"+signal.name)
		}
	}
}

// streamSignals lists the signals of a stream of frames that leave.
func (p *Plan) streamSignals() []jobWire {
	return []jobWire{{"tdata", p.Link, ""}, {"tkeep", p.Link / 8, ""}, {"tvalid", 1, ""}, {"tready", 1, ""}, {"tlast", 1, ""}}
}

// mergeFrames adds what lets a port's frames leave in turns: those of the core, answers to requests
// and, on a card in path, those that pass.
func (p *Plan) mergeFrames(b *netlist.Body) {
	streams := []string{"frame", "answers"}
	if p.Ethernet > 1 {
		streams = append(streams, "pass")
	}
	if p.Shell.Release {
		streams = append(streams, "replies")
		if p.Ethernet == 1 {
			streams = append(streams, "relay")
		}
	}
	merge := b.Instance("agg_eth_merge", "u_merge", "").
		Param("STREAMS", fmt.Sprint(len(streams))).
		Param("BYTES", fmt.Sprint(p.Link/8))
	for _, signal := range p.streamSignals() {
		merge.Connect("s_axis_"+signal.name, join(len(streams), func(i int) string {
			switch streams[i] {
			case "frame", "relay":
				return streams[i] + "_" + signal.name
			case "replies": // one for all Ethernet ports
				if signal.name == "tvalid" {
					return p.ofEthernet("replies_tvalid", 1)
				}
				if signal.name == "tready" {
					return p.ofEthernet("reply_tready", 1)
				}
				return "answer_frame_" + signal.name
			}
			return p.ofEthernet(streams[i]+"_"+signal.name, signal.width)
		})).Connect("m_axis_"+signal.name, p.ofEthernet("tx_"+signal.name, signal.width))
	}
}

// splitPackets shows packets to the stores of the Ethernet ports where their receivers are.
func (p *Plan) splitPackets(m *netlist.Module) {
	split := []jobWire{{"dest", p.Inputs() + 1, ""}, {"takes_first", 1, ""}, {"takes_word", 1, ""}, {"word_valid", 1, ""}, {"last", 1, ""}, {"sums_valid", 1, ""}}
	for _, w := range split {
		m.Wire("split_"+w.name, w.width*p.Ethernet, "")
	}
	m.Wire("rooms", p.Ethernet, "")
	m.Wire("ends", 1, "a packet's last step was taken")
	m.Assign("ends", "step_valid && step_last")
	if p.Ethernet == 1 {
		m.Assign("room", "rooms")
		m.Assign("packet_left", "copies_left")
		for i, from := range []string{"packet_tdest", "takes_first", "takes_word", "word_valid", "ends", "sums_valid"} {
			m.Assign("split_"+split[i].name, from)
		}
		return
	}
	w := p.datagramWidths()
	job := indexWidth(p.Jobs)
	i := m.Instance("agg_packet_split", "u_split", "").
		Param("PORTS", fmt.Sprint(p.Inputs())).
		Param("ETHERNET", fmt.Sprint(p.Ethernet)).
		Param("JOBS", fmt.Sprint(p.Jobs)).
		Param("JOB_BITS", fmt.Sprint(job)).
		Param("DELAY", fmt.Sprint(w.sumsLatency())).
		Connect("s_dest", "packet_tdest").
		Connect("s_job", fmt.Sprintf("packet_tuser[HDR_JOB_LSB+:%d]", job)).
		Connect("s_word_valid", "word_valid").
		Connect("s_last", "ends").
		Connect("s_sums_valid", "sums_valid")
	if p.Parent {
		i.Connect("behind", p.behindWithParents())
	}
	for _, w := range split {
		i.Connect("m_"+w.name, "split_"+w.name)
	}

	m.Wire("order_room", 1, "")
	m.Assign("room", "order_room && &rooms")
	m.Instance("agg_packet_order", "u_order", "").
		Param("ETHERNET", fmt.Sprint(p.Ethernet)).
		Connect("room", "order_room").
		Connect("come", fmt.Sprintf("takes_first && !packet_tdest[%d]", p.Inputs())).
		Connect("ports", "split_takes_first").
		Connect("left", "copies_left").
		Connect("all_left", "packet_left")
}

// sumsLatency returns the latency of agg_datagram_sums.
func (w datagramWidths) sumsLatency() int {
	switch {
	case w.step <= 8:
		return 6
	case w.step <= 32:
		return 7
	}
	return 8
}

// udpPackets adds the checks of the core's packets and of replies, and the store of their payloads.
func (p *Plan) udpPackets(m *netlist.Module) {
	w := p.datagramWidths()
	m.Wire("packet_tkeep", p.ResultKeepBits, "")
	m.Wire("packet_tpayload", 1, "")
	m.Wire("packet_tvalid", 1, "")
	m.Wire("packet_tready", 1, "")
	m.Wire("packet_tlast", 1, "")
	m.Wire("packet_tuser", 8*wire.MaxHeaderBytes, "")
	m.Wire("packet_tdest", p.Inputs()+1, "ports of the core, and one for replies")
	m.Wire("reply_left", 1, "")
	m.Wire("room", 1, "")
	m.Wire("takes_first", 1, "")
	m.Wire("takes_word", 1, "")
	m.Wire("step_valid", 1, "")
	m.Wire("step_first", 1, "")
	m.Wire("step_last", 1, "")
	m.Wire("step_bare", 1, "")
	if p.Parent {
		m.Wire("step_up", 1, "for the parent")
	}
	m.Wire("step_number", w.numberBits, "")
	m.Wire("step_data", 8*w.step, "")
	m.Wire("word_valid", 1, "")
	m.Wire("word_data", p.Link, "")
	m.Wire("sums_valid", 1, "")
	m.Wire("sums_crc", 32, "")
	m.Wire("sums_sum", 16, "")
	m.Wire("copies_left", p.Ethernet, "the last copy of a packet, at this port, has its address")
	m.Wire("replies_left", p.Ethernet, "")
	m.Assign("reply_left", "|replies_left")

	m.Instance("agg_reply_merge", "u_replies", "").
		Param("PORTS", fmt.Sprint(p.Inputs())).
		Connect("s_reply_valid", "reply_valid").
		Connect("s_reply_ready", "reply_ready").
		Connect("s_reply_header", "reply_header").
		Connect("s_axis_tvalid", "egress_tvalid").
		Connect("s_axis_tready", "egress_tready").
		Connect("s_axis_tpayload", "|egress_tkeep").
		Connect("s_axis_tlast", "egress_tlast").
		Connect("s_axis_tuser", "egress_tuser").
		Connect("s_axis_tdest", "egress_tdest").
		Connect("m_axis_tvalid", "packet_tvalid").
		Connect("m_axis_tready", "packet_tready").
		Connect("m_axis_tpayload", "packet_tpayload").
		Connect("m_axis_tlast", "packet_tlast").
		Connect("m_axis_tuser", "packet_tuser").
		Connect("m_axis_tdest", "packet_tdest")
	m.Assign("packet_tkeep", fmt.Sprintf("{%d{packet_tpayload}}", p.ResultKeepBits))

	steps := m.Instance("agg_datagram_steps", "u_steps", "").
		Param("BEAT_BYTES", fmt.Sprint(p.ResultKeepBits)).
		Param("BYTES", fmt.Sprint(w.word)).
		Param("STEP", fmt.Sprint(w.step)).
		Param("ZEROS", fmt.Sprint(w.zeros)).
		Param("ZEROS_BARE", fmt.Sprint(w.zerosBare)).
		Param("NUMBER_BITS", fmt.Sprint(w.numberBits)).
		Connect("s_axis_tdata", "egress_tdata").
		Connect("s_axis_tkeep", "packet_tkeep").
		Connect("s_axis_tvalid", "packet_tvalid").
		Connect("s_axis_tready", "packet_tready").
		Connect("s_axis_tlast", "packet_tlast").
		Connect("s_axis_tuser", "packet_tuser").
		Connect("m_step_valid", "step_valid").
		Connect("m_step_first", "step_first").
		Connect("m_step_last", "step_last").
		Connect("m_step_bare", "step_bare").
		Connect("m_step_number", "step_number").
		Connect("m_step_data", "step_data").
		Connect("m_word_valid", "word_valid").
		Connect("m_word_data", "word_data")

	sums := m.Instance("agg_datagram_sums", "u_sums", "").
		Param("STEP", fmt.Sprint(w.step)).
		Param("ZEROS", fmt.Sprint(w.zeros)).
		Param("ZEROS_BARE", fmt.Sprint(w.zerosBare)).
		Connect("s_step_valid", "step_valid").
		Connect("s_step_first", "step_first").
		Connect("s_step_last", "step_last").
		Connect("s_step_bare", "step_bare").
		Connect("s_step_data", "step_data").
		Connect("m_valid", "sums_valid").
		Connect("m_crc", "sums_crc").
		Connect("m_sum", "sums_sum")
	if p.Parent {
		steps.Connect("s_axis_tup", netlist.Slice("packet_tdest", p.Workers, 1)).Connect("m_step_up", "step_up")
		sums.Connect("s_step_up", "step_up")
	}
}

// copyWires lists what agg_datagram_store says of a copy.
func (p *Plan) copyWires() []jobWire {
	return append([]jobWire{
		{"valid", 1, ""},
		{"ready", 1, ""},
		{"dest", p.Inputs() + 1, ""},
		{"done", p.Inputs() + 1, "receivers that the copy serves"},
		{"final", 1, ""},
	}, p.copyFields()...)
}

// copyFields lists the fields of a copy that agg_eth_transmit needs besides its address.
func (p *Plan) copyFields() []jobWire {
	return append([]jobWire{
		{"header", 8 * wire.MaxHeaderBytes, ""},
		{"bare", 1, ""},
		{"ecn", 2, ""},
		{"bytes", 14, ""},
		{"crc", 32, ""},
		{"sum", 16, ""},
	}, p.upCopyFields()...)
}

// udpCopies adds the store, the addresses of copies, and their frames.
func (p *Plan) udpCopies(b *netlist.Body) {
	for _, c := range p.copyWires() {
		b.Wire("copy_"+c.name, c.width, c.doc)
	}
	for _, signal := range []jobWire{{"tdata", p.Link, ""}, {"tvalid", 1, ""}, {"tready", 1, ""}, {"tlast", 1, ""}} {
		b.Wire("payload_"+signal.name, signal.width, "")
	}
	p.storePackets(b)

	b.Wire("sent_valid", 1, "a copy with its address")
	b.Wire("sent_ready", 1, "")
	b.Wire("sent_mac", 48, "")
	b.Wire("sent_ip", 32, "")
	b.Wire("sent_port", 16, "")
	for _, f := range p.copyFields() {
		b.Wire("sent_"+f.name, f.width, "")
	}
	p.addressCopies(b)
	size := "{!sent_bare, sent_bare}"
	if p.Parent {
		size = "{!sent_bare, sent_bare ^ sent_up}"
	}

	for _, signal := range p.streamSignals() {
		b.Wire("frame_"+signal.name, signal.width, "")
	}
	w := p.datagramWidths()
	transmit := b.Instance("agg_eth_transmit", "u_transmit", "").
		Param("BYTES", fmt.Sprint(w.word)).
		Param("STEP", fmt.Sprint(w.step)).
		Connect("s_copy_size", size)
	if p.Parent {
		transmit.Connect("s_copy_source", "sent_up ? sent_source : own_port")
	}
	for _, name := range []string{"valid", "ready", "mac", "ip", "port", "ecn", "header", "bytes", "crc", "sum"} {
		transmit.Connect("s_copy_"+name, "sent_"+name)
	}
	for _, signal := range []string{"tdata", "tvalid", "tready", "tlast"} {
		transmit.Connect("s_axis_"+signal, "payload_"+signal)
	}
	for _, signal := range p.streamSignals() {
		transmit.Connect("m_axis_"+signal.name, "frame_"+signal.name)
	}
}

// storePackets adds the store of packets and their copies.
func (p *Plan) storePackets(b *netlist.Body) {
	w := p.datagramWidths()
	words := 2*((w.payload+w.word-1)/w.word) + w.spare
	p.memory("packets to an Ethernet port", p.Ethernet, 1<<bits.Len(uint(words-1)), p.Link)
	store := b.Instance("agg_datagram_store", "u_store", "").
		Param("PORTS", fmt.Sprint(p.Inputs()+1)).
		Param("BYTES", fmt.Sprint(w.word)).
		Param("STEP", fmt.Sprint(w.step)).
		Param("PAYLOAD", fmt.Sprint(w.payload)).
		Param("SPARE", fmt.Sprint(w.spare)).
		Param("NUMBER_BITS", fmt.Sprint(w.numberBits)).
		Connect("room", p.ofEthernet("rooms", 1)).
		Connect("s_dest", p.ofEthernet("split_dest", p.Inputs()+1)).
		Connect("takes_first", p.ofEthernet("split_takes_first", 1)).
		Connect("takes_word", p.ofEthernet("split_takes_word", 1)).
		Connect("s_word_valid", p.ofEthernet("split_word_valid", 1)).
		Connect("s_last", p.ofEthernet("split_last", 1)).
		Connect("s_sums_valid", p.ofEthernet("split_sums_valid", 1)).
		Connect("s_header", "packet_tuser").
		Connect("s_bare", "!packet_tpayload").
		Connect("s_word_data", "word_data").
		Connect("s_number", "step_number").
		Connect("s_crc", "sums_crc").
		Connect("s_sum", "sums_sum")
	for _, c := range p.copyWires() {
		if !slices.Contains(p.upCopyFields(), c) {
			store.Connect("m_copy_"+c.name, "copy_"+c.name)
		}
	}
	for _, signal := range []string{"tdata", "tvalid", "tready", "tlast"} {
		store.Connect("m_axis_"+signal, "payload_"+signal)
	}
}

// addressCopies adds the address of each copy.
func (p *Plan) addressCopies(b *netlist.Body) {
	job := indexWidth(p.Jobs)
	table := p.addressUp(b)
	address := b.Instance("agg_copy_address", "u_address", "").
		Param("PORTS", fmt.Sprint(p.Inputs())).
		Param("PORT_BITS", fmt.Sprint(indexWidth(p.Inputs()))).
		Param("JOB_BITS", fmt.Sprint(job)).
		Connect("s_copy_job", fmt.Sprintf("copy_header[HDR_JOB_LSB+:%d]", job)).
		Connect("left", p.ofEthernet("copies_left", 1)).
		Connect("reply_left", p.ofEthernet("replies_left", 1))
	copied, width := nameAll(p.copyFields(), prefixer("copy_"))
	sent, _ := nameAll(p.copyFields(), prefixer("sent_"))
	address.Param("WIDTH", fmt.Sprint(width)).
		Connect("s_copy_fields", netlist.Concat(copied...)).
		Connect("m_copy_fields", netlist.Concat(sent...))
	for _, name := range []string{"valid", "ready", "dest", "final", "done"} {
		address.Connect("s_copy_"+name, "copy_"+name)
	}
	for _, w := range p.lookups("to_") {
		address.Connect(w.name, table[w.name])
	}
	for _, name := range []string{"valid", "ready", "mac", "ip", "port"} {
		address.Connect("m_copy_"+name, "sent_"+name)
	}
}
