package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// roceNetwork adds registers, lease, addresses and connections. The registers of connections stand
// between those of the network and the core's.
func (p *Plan) roceNetwork(m *netlist.Module) {
	jobs, ports := indexWidth(p.Jobs), indexWidth(p.Workers)
	for _, w := range []jobWire{
		{"near_valid", 1, "an access that the registers of the network forward"}, {"near_ready", 1, ""},
		{"far_valid", 1, "the answer to it"}, {"far_ready", 1, ""}, {"far_code", 8, ""}, {"far_value", 64, ""},
		{"network_code_valid", 1, ""}, {"network_code", 8, ""},
		{"connection_code_valid", 1, ""}, {"connection_code", 8, ""},
		{"stage_clear", 1, ""}, {"stage_connection", 1, ""},
		{"connection_registered", 1, "JOB_CONNECTION"}, {"connection_job", jobs, ""}, {"connection_port", ports, ""},
		{"connection_value", 64, ""},
		{"check", 1, "the connections of a commit"}, {"checked", 1, ""}, {"good", 1, ""}, {"install", 1, ""},
		{"set_up_job", jobs, ""}, {"set_up_ports", p.Workers, ""}, {"set_up_chunk", 64, ""}, {"set_up_first", 32, ""}, {"set_up_epoch", 16, ""},
		{"set_up_partial", 1, ""}, {"remove", 1, ""}, {"remove_job", jobs, ""}, {"remove_all", 1, ""},
	} {
		m.Wire(w.name, w.width, w.doc)
	}
	p.udpNetwork(m)
	m.Comment("-- Connections --")
	m.Assign("s_code_valid", "network_code_valid || connection_code_valid")
	m.Assign("s_code", "network_code_valid ? network_code : connection_code")

	neighbours, neighbour := p.neighbours()
	if p.Ethernet > 1 {
		m.Assign("relayed", fmt.Sprintf("%d'd0", p.Ethernet))
	}

	registers := m.Instance("agg_connection_registers", "u_connection_registers", "")
	p.networkParams(registers)
	registers.Param("ETHERNET", fmt.Sprint(p.Ethernet)).
		Param("HAS_NEIGHBOURS", fmt.Sprint(min(1, neighbours))).
		Param("NEIGHBOURS", fmt.Sprint(max(1, neighbours))).
		Connect("s_reg_valid", "near_valid").Connect("s_reg_ready", "near_ready").
		Connect("s_reg_write", "reg_write").Connect("s_reg_addr", "reg_addr").Connect("s_reg_wdata", "reg_wdata").
		Connect("m_reg_valid", "reg_valid").Connect("m_reg_ready", "reg_ready").
		Connect("clear", "clear_staged").Connect("reset_done", "clear_counters").
		Connect("m_code_valid", "connection_code_valid").Connect("m_code", "connection_code").
		Connect("table_clear", "stage_clear").
		Connect("table_write", "stage_connection").
		Connect("table_registered", "connection_registered").
		Connect("table_job", "connection_job").
		Connect("table_port", "connection_port").
		Connect("table_value", "connection_value").
		Connect("neighbour_ip", neighbour+"_ip").Connect("neighbour_mac", neighbour+"_mac").
		Connect("dropped", "roce_dropped").Connect("reason", "roce_reason").Connect("early", "released_early")
	for _, name := range answerSignals {
		registers.Connect("m_answer_"+name, "far_"+name).Connect("s_answer_"+name, "answer_"+name)
	}

	table := m.Instance("agg_connection_table", "u_connections", "")
	p.networkParams(table)
	table.Param("ETHERNET", fmt.Sprint(p.Ethernet)).
		Param("ELEM_BYTES", fmt.Sprint(p.ElemBits/8)).
		Connect("clear", "stage_clear").
		Connect("stage_address", "table_write && !table_mac").
		Connect("stage_mac", "table_write && table_mac").
		Connect("stage_port", "stage_connection ? connection_port : table_port").
		Connect("stage_value", netlist.Slice("access_wdata", 0, 56)).
		Connect("reg_table", "connection_registered").
		Connect("reg_job", "connection_job").
		Connect("reg_port", "connection_port").
		Connect("reg_value", "connection_value")
	for _, i := range []*netlist.Instance{registers, table} {
		for _, name := range []string{"job", "ports", "chunk", "first", "epoch", "partial"} {
			i.Connect("commit_"+name, "set_up_"+name)
		}
	}
	if p.Ethernet > 1 {
		table.Connect("behind", "leaves_at")
	} else {
		table.Connect("behind", "unused_leaves_at")
	}
}

// neighbours returns how many neighbours a one-armed card has, and the prefix of their wires.
func (p *Plan) neighbours() (int, string) {
	if p.Ethernet == 1 {
		return p.Workers, "neighbour"
	}
	return 0, "unused_neighbour"
}
