package plan

import (
	"fmt"
	"slices"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// assumedClock is the clock in MHz of a card without a board, for the default of LEASE.
const assumedClock = 100

// udpQueues returns the number of queues at an Ethernet port that drop what finds no room: packets,
// register accesses, ARP and echo requests and, in path, frames passed on.
func (p *Plan) udpQueues() int {
	if p.Ethernet > 1 || p.Shell.Release {
		return 4
	}
	return 3
}

// udpNetwork adds registers, lease, address table and counters of shell udp, and declares the wires
// between them. The caller declares these wires first; networkWires lists them with their widths. The
// shell drives what comes from the shell, and connects the core to the wires of the same names
// (networkInputs, networkOutputs; reg_* to s_reg_*, answer_* to m_reg_*).
//
//	down                the card's session: agg_link_session's down        shell
//	access_*            the oldest register access, and its sender         shell; access_ready: here
//	reply_*             its reply, and where it goes                       here; reply_ready: shell
//	reg_*, answer_*     the core's register port                           here, core
//	own_*               the card's own address                             here
//	lease_over          a pulse: let agg_link_session's link_up fall       here
//	                    for this cycle
//	hold_packets        start no lookup, and no packet towards the core    here
//	packets_busy        a packet was looked up and is not judged           shell
//	packet_started      the core starts a packet: |port_start              shell
//	packet_left         the oldest started packet has left, with all       shell
//	                    its copies
//	from_*              who has a rank: from_en, from_job, from_rank in,   shell, here
//	                    the rest two enabled cycles later
//	to_*                where a port's packets go: likewise                shell, here
//	drop_*              what agg_eth_judge drops, by Ethernet port         shell
//	stranger, passed    a packet from a wrong address; a frame passed on   shell
//	dropped             a queue was full                                   shell
func (p *Plan) udpNetwork(m *netlist.Module) {
	m.Comment("-- Registers, lease and addresses --")
	m.Wire("table_clear", 1, "")
	m.Wire("table_write", 1, "")
	m.Wire("table_jobs", 1, "a JOB register; otherwise a MEMBER register")
	m.Wire("table_mac", 1, "its MAC address")
	m.Wire("table_job", indexWidth(p.Jobs), "")
	m.Wire("table_port", indexWidth(p.Workers), "")
	m.Wire("table_value", 64, "")
	m.Wire("commit_start", 1, "")
	m.Wire("commit_job", indexWidth(p.Jobs), "")
	m.Wire("commit_ready", 1, "the core may have the commit")
	m.Wire("commit_answered", 1, "")
	m.Wire("commit_done", 1, "")
	m.Wire("table_hold", 1, "the table changes")
	m.Wire("count_index", 5, "")
	m.Wire("count_value", 32, "")
	if p.Workers < 64 {
		m.Wire("unused_job_ports", 64-p.Workers, "the core refuses these")
		m.Assign("unused_job_ports", netlist.Slice("job_ports", p.Workers, 64-p.Workers))
	}
	m.Assign("hold_packets", "table_hold || down")
	p.networkRegisters(m)
	p.memberTable(m)
	p.parentTable(m)
	p.networkCounters(m)
}

// networkRegisters adds agg_network_registers.
func (p *Plan) networkRegisters(m *netlist.Module) {
	clock := p.Clock
	if clock == 0 {
		clock = assumedClock
	}
	i := m.Instance("agg_network_registers", "u_network_registers", "").
		Param("OWN_MAC", fmt.Sprintf("48'h%012x", p.MAC)).
		Param("OWN_IP", fmt.Sprintf("32'h%08x", p.IP)).
		Param("OWN_PORT", fmt.Sprintf("16'd%d", p.UDPPort)).
		Param("LEASE_DEFAULT", fmt.Sprintf("41'd%d", wire.LeaseSeconds*clock*1_000_000))
	p.networkParams(i)
	code, near, far := "s_code", "reg_", "answer_"
	if p.Shell.Release { // the registers of connections are between those of the network and the core's
		code, near, far = "network_code", "near_", "far_"
	}
	i.Connect("link_down", "down").
		Connect("m_code_valid", code+"_valid").Connect("m_code", code).
		Connect("m_reg_stranger", "s_reg_stranger")
	for _, name := range []string{"valid", "ready", "write", "addr", "tag", "wdata", "mac", "ip", "port", "ethernet"} {
		i.Connect("s_access_"+name, "access_"+name)
	}
	for _, name := range []string{"valid", "ready"} {
		i.Connect("m_reg_"+name, near+name)
	}
	for _, name := range []string{"write", "addr", "wdata"} {
		i.Connect("m_reg_"+name, "reg_"+name)
	}
	for _, name := range answerSignals {
		i.Connect("s_reg_"+name, far+name)
	}
	for _, name := range []string{"valid", "ready", "header", "mac", "ip", "port"} {
		i.Connect("m_reply_"+name, "reply_"+name)
	}
	i.Connect("m_reply_ethernet", p.replyEthernet())
}

// memberTable adds agg_member_table, and records its memories.
func (p *Plan) memberTable(m *netlist.Module) {
	ports, jobs := 1<<indexWidth(p.Workers), 1<<indexWidth(p.Jobs)
	p.memory("staged addresses, and their MAC addresses", 2, ports, 64)
	p.memory("addresses of ranks", p.Ethernet, jobs*ports, 57+indexWidth(p.Workers))
	p.memory("addresses of ports, for packets", p.Ethernet, jobs*ports, 104+p.Workers)
	p.memory("addresses of ports, for registers", 1, jobs*ports, 104)
	m.Wire("unused_to_ethernet", 8*p.Ethernet, "a store is for one Ethernet port")
	i := m.Instance("agg_member_table", "u_member_table", "")
	p.networkParams(i)
	i.Param("ETHERNET", fmt.Sprint(p.Ethernet)).
		Connect("clear", "table_clear").
		Connect("reg_write", "table_write").
		Connect("reg_table", "table_jobs").
		Connect("reg_mac", "table_mac").
		Connect("reg_job", "table_job").
		Connect("reg_port", "table_port").
		Connect("reg_wdata", "access_wdata").
		Connect("reg_value", "table_value").
		Connect("commit_ports", netlist.Slice("job_ports", 0, p.Workers)).
		Connect("hold_packets", "table_hold").
		Connect("to_ethernet", "unused_to_ethernet")
	if p.Ethernet == 1 || p.Shell.Release {
		i.Connect("behind", "unused_behind")
	}
	for _, prefix := range []string{"from_", "to_"} {
		for _, w := range p.lookups(prefix) {
			i.Connect(w.name, p.lookupWire(w.name))
		}
	}
	if p.Parent {
		prefixed(i, "parent_", "receives", "sends", "partial")
	}
}

// networkCounters adds agg_network_counters.
func (p *Plan) networkCounters(m *netlist.Module) {
	m.Instance("agg_network_counters", "u_network_counters", "").
		Param("ETHERNET", fmt.Sprint(p.Ethernet)).
		Param("QUEUES", fmt.Sprint(p.udpQueues()*p.Ethernet)).
		Connect("clear", "clear_counters").
		Connect("lease", "lease_over").
		Connect("index", "count_index").
		Connect("value", "count_value")
}

// networkParams sets the parameters that the leaves with registers of members share.
func (p *Plan) networkParams(i *netlist.Instance) {
	i.Param("PORTS", fmt.Sprint(p.Workers)).
		Param("PORT_BITS", fmt.Sprint(indexWidth(p.Workers))).
		Param("JOBS", fmt.Sprint(p.Jobs)).
		Param("JOB_BITS", fmt.Sprint(indexWidth(p.Jobs)))
}

// networkWires lists the wires that udpNetwork shares with the shell and the core.
func (p *Plan) networkWires() []jobWire {
	list := []jobWire{
		{"down", 1, "a lease has ended, and its jobs have not drained"},
		{"access_valid", 1, ""}, {"access_ready", 1, ""}, {"access_write", 1, ""}, {"access_addr", 32, ""},
		{"access_tag", 16, ""}, {"access_wdata", 64, ""},
		{"access_mac", 48, ""}, {"access_ip", 32, ""}, {"access_port", 16, ""}, {"access_ethernet", 8, ""},
		{"reg_valid", 1, ""}, {"reg_ready", 1, ""}, {"reg_write", 1, ""}, {"reg_addr", 32, ""}, {"reg_wdata", 64, ""},
		{"answer_valid", 1, ""}, {"answer_ready", 1, ""}, {"answer_code", 8, ""}, {"answer_value", 64, ""},
		{"reply_valid", 1, ""}, {"reply_ready", 1, ""}, {"reply_header", 8 * wire.MaskHeaderBytes, ""},
		{"reply_mac", 48, ""}, {"reply_ip", 32, ""}, {"reply_port", 16, ""}, {p.replyEthernet(), 8, "the Ethernet port"},
		{"own_mac", 48, ""}, {"own_ip", 32, ""}, {"own_port", 16, ""},
		{"lease_over", 1, "the owner loses the card"},
		{"hold_packets", 1, "start no lookup and no packet towards the core"},
		{"packets_busy", 1, "a packet was looked up and is not judged"},
		{"packet_started", 1, "the core starts a packet"},
		{"packet_left", 1, "the oldest started packet has left with all copies"},
		{"drop_valid", p.Ethernet, "by Ethernet port, like the next"}, {"drop_reason", 4 * p.Ethernet, ""},
		{"stranger", p.Ethernet, ""}, {"passed", p.Ethernet, ""}, {"dropped", p.udpQueues() * p.Ethernet, ""},
	}
	for _, prefix := range []string{"from_", "to_"} {
		for _, w := range p.lookups(prefix) {
			list = append(list, jobWire{p.lookupWire(w.name), w.width * p.Ethernet, w.doc})
		}
	}
	for _, s := range p.networkInputs() {
		list = append(list, jobWire{s.name, s.width, ""})
	}
	for _, s := range networkOutputs {
		list = append(list, jobWire{s.name, s.width, ""})
	}
	return list
}

// lookups lists the wires of a lookup in the address table, of which each Ethernet port has one: with
// prefix from_, who has a rank; with to_, where packets for a port of the core go.
func (p *Plan) lookups(prefix string) []jobWire {
	port := indexWidth(p.Workers)
	if prefix == "from_" {
		return []jobWire{
			{"from_en", 1, ""}, {"from_job", 8, ""}, {"from_rank", 8, ""}, {"from_valid", 1, "two enabled cycles later"},
			{"from_ip", 32, ""}, {"from_port", 16, ""}, {"from_ethernet", 8, ""}, {"from_dest", port, "the core's port"},
		}
	}
	return []jobWire{
		{"to_en", 1, ""}, {"to_job", indexWidth(p.Jobs), ""}, {"to_port", port, ""}, {"to_mac", 48, "two enabled cycles later"},
		{"to_ip", 32, ""}, {"to_udp_port", 16, ""}, {"to_same", p.Workers, "ports with the same address"},
	}
}

// lookupWire names the wire of a lookup's signal: connections need no more of the address table than the
// MAC address of a receiver.
func (p *Plan) lookupWire(signal string) string {
	if p.Shell.Release && !slices.Contains([]string{"from_en", "from_job", "from_rank", "to_en", "to_job", "to_port", "to_mac"}, signal) {
		return "unused_" + signal
	}
	return signal
}

// replyEthernet names the wire with the Ethernet port where a reply leaves: a card with one port knows
// it.
func (p *Plan) replyEthernet() string {
	if p.Ethernet == 1 {
		return "unused_reply_ethernet"
	}
	return "reply_ethernet"
}
