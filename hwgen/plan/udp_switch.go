package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

const (
	// switchLatency is the number of cycles from a frame's last word at agg_eth_switch to its first
	// word from it.
	switchLatency = 24

	// switchFrameBits is log2 of the frames in a port's store. While the port where they leave
	// sends one of the largest frames, about a hundred of the shortest arrive.
	switchFrameBits = 7

	// switchSetBits is log2 of the sets of the table of addresses, of two places each.
	switchSetBits = 9

	// fastestClock is the MHz that a card without a board is taken to have. If its clock is slower,
	// the switch keeps an address for longer than 300 seconds, which it may.
	fastestClock = 400
)

// udpSwitch adds the in-path switch to shell udp, for two Ethernet ports or more. All vectors have
// port 0 in the lowest bits. The shell declares and drives:
//
//	rx_tvalid, _tdata, _tkeep, _tlast      frames of the MACs, as agg_eth_receive gets them
//	received_valid, _kind; drop_reason     the verdicts of agg_eth_receive: 1, 3 and 4 bits a port
//	passed, event_unpassed                 one bit a port, for the counters: a frame of the port has
//	                                       left; it had no place
//
// udpSwitch declares:
//
//	pass_tvalid, _tdata, _tkeep, _tlast    frames of other ports that leave at this one: a stream
//	                                       without idle cycles inside a frame, for agg_eth_merge
//	pass_tready                            driven by the shell
//
// A word of the MACs has p.Link bits. The shell's own frames for a port are another stream of that
// agg_eth_merge.
func (p *Plan) udpSwitch(m *netlist.Module) {
	m.Comment("-- Frames for others, between the Ethernet ports --")
	for _, s := range p.streamSignals() {
		m.Wire("pass_"+s.name, s.width*p.Ethernet, "")
	}

	bytes := p.Link / 8
	words := indexWidth(2 * ((largestFrame + bytes - 1) / bytes)) // log2
	p.memory("frames for other Ethernet ports, one per port", p.Ethernet, 1<<words, 9*bytes)
	p.memory("addresses behind the Ethernet ports, two places twice", 4, 1<<switchSetBits, p.switchEntryBits())

	clock := p.Clock
	if clock == 0 {
		clock = fastestClock
	}
	sw := m.Instance("agg_eth_switch", "u_switch", "").
		Param("PORTS", fmt.Sprint(p.Ethernet)).
		Param("BYTES", fmt.Sprint(bytes)).
		Param("DEPTH_BITS", fmt.Sprint(words)).
		Param("FRAME_BITS", fmt.Sprint(switchFrameBits)).
		Param("SET_BITS", fmt.Sprint(switchSetBits)).
		Param("CLOCK_KHZ", fmt.Sprint(1000*clock)).
		Connect("event_passed", "passed").
		Connect("event_dropped", "event_unpassed")
	for _, s := range p.streamSignals() {
		sw.Connect("m_axis_"+s.name, "pass_"+s.name)
		if s.name != "tready" { // a MAC does not wait
			sw.Connect("s_axis_"+s.name, "rx_"+s.name)
		}
	}
	sw.Connect("s_verdict_valid", "received_valid").
		Connect("s_verdict_kind", "received_kind").
		Connect("s_verdict_reason", "drop_reason")
}

// switchEntryBits returns the width of a place of the table: valid, the time, port and address.
func (p *Plan) switchEntryBits() int { return 1 + 16 + indexWidth(p.Ethernet) + 48 }
