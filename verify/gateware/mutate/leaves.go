package main

// leaf is a module of the gateware to mutate.
type leaf struct {
	name    string
	proof   string   // in verify/gateware/proofs; "" for none
	benches []string // its own cocotb benches, by pytest's names
	cards   []string // benches of whole cards, for the remaining mutants; none for leaves in withoutCard
}

// Small whole cards, with two jobs or more.
var (
	bare  = []string{"test_top_jobs.py::test_top_jobs[two]"}
	late  = []string{"test_top_deadlines.py::test_top_deadlines[two]"}
	link  = []string{"test_top_jobs.py::test_top_jobs[two_link]"}
	exact = []string{"test_top_jobs.py::test_top_jobs[four]"}
)

// Breaks of few zeros in narrow and wide words, and of the length that links use.
var breaks = []string{
	"test_bridge.py::test_agg_link_break[1]",
	"test_bridge.py::test_agg_link_break[4]",
	"test_bridge.py::test_agg_link_break_of_links",
}

// A card with an up port, with two jobs; a smaller one for the leaf whose first bench is a card.
var (
	parent = []string{"test_top_parent.py::test_top_parent[three_ports]"}
	small  = []string{"test_top_parent.py::test_top_parent[one_port]"}
)

// A card whose registers are behind AXI4-Lite.
var axil = []string{"test_axil.py::test_top_axil[two_jobs]"}

// A card on Ethernet, of 64 bits, with two jobs.
var network = []string{"test_top_udp.py::test_top_udp[udp64]"}

// Leaves of shell udp whose first bench is a whole card too, of another width.
var narrow = []string{"test_top_udp.py::test_top_udp[udp8]"}

// Benches of frames and datagrams: words of 8 bytes, and those of 1 or 64.
var (
	frameReceiver = []string{
		"test_eth_receive.py::test_agg_eth_receive[8-9018]",
		"test_eth_receive.py::test_agg_eth_receive[1-400]",
	}
	datagramTransmitter = []string{
		"test_ethernet_transmitter.py::test_ethernet_transmitter[8-4-8-44]",
		"test_ethernet_transmitter.py::test_ethernet_transmitter[1-1-3-5]",
		"test_ethernet_transmitter.py::test_ethernet_transmitter[64-16-4-208]",
	}
	datagrams = []string{
		"test_datagram_accept.py::test_agg_datagram_accept[8-256-4]",
		"test_datagram_accept.py::test_agg_datagram_accept[64-1000-2]",
	}
	senders = []string{
		"test_member_check.py::test_agg_member_check[4-8]",
		"test_member_check.py::test_agg_member_check[8-1]",
	}
	networkRegisters = []string{"test_network_card.py::test_network_card[4-2-1-1500-verilator]"}
)

// Benches of the switch in a card with several Ethernet ports, in words of 8 bytes and of 64; the
// last has more frames than the switch can take.
var inPath = []string{
	"test_eth_switch.py::test_agg_eth_switch[8]",
	"test_eth_switch.py::test_agg_eth_switch_of_other_ports[2-64]",
	"test_eth_switch.py::test_agg_eth_switch_overload",
}

// Benches of the switch's table: with two sets of addresses, with 512, and with times that pass.
var switchTable = []string{
	"test_eth_switch.py::test_agg_switch_table",
	"test_eth_switch.py::test_agg_switch_table_capacity",
	"test_eth_switch.py::test_agg_switch_table_forgets",
}

// A whole card whose core has agg_release, with two jobs.
var releasing = []string{"test_top_release.py::test_top_release[two_jobs]"}

// Benches of the receiver and of the transmitter of RoCEv2.
var (
	roceReceiver = []string{
		"test_roce_receive.py::test_agg_roce_receive[8-9018]",
		"test_roce_receive.py::test_agg_roce_receive[1-600]",
	}
	roceTransmitter = []string{
		"test_roce_transmit.py::test_agg_roce_transmit[8-16-2-4-2-256]",
		"test_roce_transmit.py::test_agg_roce_transmit[1-16-2-3-2-256]",
		"test_roce_transmit.py::test_agg_roce_transmit[64-64-8-8-1-1024]",
	}
)

// The complete chain between a bridge's pins and a card.
var bridge = []string{"test_bridge.py::test_bridge_chain[4]"}

// Three of the link's dozen widths: narrow and wide links and words.
var (
	receiver = []string{
		"test_link_receiver.py::test_link_receiver[32-2-16-4]",
		"test_link_receiver.py::test_link_receiver[8-1-9-1]",
		"test_link_receiver.py::test_link_receiver[64-4-16-1]",
	}
	transmitter = []string{
		"test_link_transmitter.py::test_link_transmitter[32-8]",
		"test_link_transmitter.py::test_link_transmitter[8-1]",
		"test_link_transmitter.py::test_link_transmitter[64-64]",
	}
)

// campaignLeaves are the control modules, and those that carry data without changing it.
var campaignLeaves = []leaf{
	{"agg_ingress", "ingress", []string{"test_core_ingress.py::test_agg_ingress"}, bare},
	{"agg_jobs", "jobs", []string{"test_core_registers.py::test_agg_jobs"}, bare},
	{"agg_job_checks", "jobs", []string{"test_core_registers.py::test_agg_jobs"}, bare},
	{"agg_job_places", "jobs", []string{"test_core_registers.py::test_agg_jobs"}, bare},
	{"agg_registers", "registers", []string{"test_core_registers.py::test_agg_registers"}, bare},
	{"agg_slots", "slots", []string{"test_core_slots.py::test_agg_slots"}, late},
	{"agg_replies", "slots", []string{"test_core_slots.py::test_agg_slots"}, late},
	{"agg_egress", "egress", []string{"test_core_out.py::test_agg_egress"}, bare},
	{"agg_reader", "reader", []string{"test_core_sum.py::test_agg_reader"}, bare},
	{"agg_writer", "writer", []string{"test_core_sum.py::test_agg_writer"}, bare},
	{"agg_cache", "cache", []string{"test_core_sum.py::test_agg_cache"}, bare},
	{"agg_stage", "", []string{"test_core_out.py::test_agg_stage"}, link},
	{"agg_owed", "owed", []string{"test_core_out.py::test_agg_owed"}, bare},
	{"agg_release", "release", []string{"test_release.py::test_agg_release[3-2]", "test_release.py::test_agg_release[2-5]"}, releasing},
	{"agg_status", "status", []string{"test_core_out.py::test_agg_status"}, late},
	{"agg_port_queue", "port_queue", []string{"test_core_out.py::test_agg_port_queue"}, bare},
	{"agg_turns", "turns", []string{"test_core_out.py::test_agg_turns"}, bare},
	{"agg_arbiter", "arbiter", []string{"test_core_ingress.py::test_agg_arbiter"}, bare},
	{"agg_commit", "commit", []string{"test_core_commit.py::test_agg_commit"}, bare},
	{"agg_ranks", "ranks", []string{"test_core_registers.py::test_agg_ranks"}, bare},
	{"agg_slot_fifo", "slot_fifo", []string{"test_core_sum.py::test_agg_slot_fifo"}, bare},
	{"agg_deadlines", "deadlines", []string{"test_core_deadlines.py::test_agg_deadlines"}, late},
	{"agg_lags", "lags", []string{"test_core_deadlines.py::test_agg_lags"}, late},
	{"agg_labels", "labels", []string{"test_core_sum.py::test_agg_labels"}, bare},
	{"agg_job_counts", "", []string{"test_core_registers.py::test_agg_job_counts"}, bare},
	{"agg_counters", "", []string{"test_core_registers.py::test_agg_counters"}, bare},
	{"agg_port_ranks", "port_ranks", []string{"test_core_registers.py::test_agg_port_ranks"}, bare},
	{"agg_gate", "", []string{"test_core_sum.py::test_agg_gate"}, bare},
	{"agg_ram", "", []string{"test_core_sum.py::test_agg_ram"}, bare},
	{"agg_tag_delay", "", []string{"test_core_sum.py::test_agg_tag_delay"}, bare},
	{"agg_frame_tx", "", transmitter, link},
	{"agg_byte_fifo", "byte_fifo", append([]string{"test_link_leaves.py::test_agg_byte_fifo"}, receiver...), link},
	{"agg_byte_pack", "byte_pack", transmitter, link},
	{"agg_beat_pack", "", receiver, link},
	{"agg_beat_unpack", "", transmitter, link},
	{"agg_crc16", "", []string{"test_link_leaves.py::test_agg_crc16"}, link}, // the proof contains two instances of it
	{"agg_route", "", []string{"test_link_leaves.py::test_agg_route"}, link},
	{"agg_register_link", "register_link", []string{"test_link_leaves.py::test_agg_register_link"}, link},
	{"agg_axil", "axil", []string{"test_axil.py::test_agg_axil"}, axil},
	{"agg_link_session", "", []string{"test_link_leaves.py::test_agg_link_session"}, link},
	{"agg_fifo_bus", "fifo_bus", []string{"test_bridge.py::test_agg_fifo_bus[8]"}, bridge},
	{"agg_link_break", "link_break", breaks, bridge},
	{"agg_bus_burst", "bus_burst", []string{"test_bridge.py::test_agg_bus_burst[4-2]"}, bridge},
	{"agg_exact_queue", "", []string{"test_exact_queue.py::test_exact_queue"}, exact},
	{"agg_frame_rx", "frame_rx", receiver, link},
	{"agg_eth_receive", "", frameReceiver, network},
	{"agg_eth_judge", "", frameReceiver, network},
	{"agg_eth_align", "eth_align", frameReceiver, network},
	{"agg_eth_sum", "", frameReceiver, network},
	{"agg_crc32c_check", "", []string{"test_eth_crc.py::test_agg_crc32c_check[8-2]"}, network},
	{"agg_crc32c", "", []string{"test_ethernet_leaves.py::test_agg_crc32c[8]"}, network},
	{"agg_datagram_accept", "", datagrams, network},
	{"agg_frame_queue", "frame_queue", []string{"test_frame_queue.py::test_agg_frame_queue"}, network},
	{"agg_access_queue", "access_queue", narrow, network},
	{"agg_member_check", "", senders, network},
	{"agg_reply_merge", "reply_merge", narrow, network},
	{"agg_datagram_steps", "datagram_steps", datagramTransmitter, network},
	{"agg_datagram_sums", "", datagramTransmitter, network},
	{"agg_datagram_store", "datagram_store", datagramTransmitter, network},
	{"agg_copy_address", "copy_address", narrow, network},
	{"agg_eth_transmit", "eth_transmit", datagramTransmitter, network},
	{"agg_eth_answers", "eth_answers", []string{"test_ethernet_leaves.py::test_agg_eth_answers[8]"}, network},
	{"agg_eth_merge", "eth_merge", []string{"test_ethernet_leaves.py::test_agg_eth_merge[8]"}, network},
	{"agg_network_registers", "network_registers", networkRegisters, network},
	{"agg_member_table", "member_table", networkRegisters, network},
	{"agg_network_counters", "", []string{"test_network_card.py::test_agg_network_counters[4-9]"}, network},
	{"agg_packet_split", "", []string{"test_packet_split.py::test_agg_packet_split[5-4-3-7]"}, nil},
	{"agg_packet_order", "packet_order", nil, nil},
	{"agg_eth_switch", "", inPath, nil},
	{"agg_switch_delay", "switch_delay", inPath, nil},
	{"agg_switch_input", "", inPath, nil},
	{"agg_switch_requests", "switch_requests", inPath, nil},
	{"agg_switch_store", "switch_store", inPath, nil},
	{"agg_switch_table", "switch_table", switchTable, nil},
	{"agg_connection_check", "", []string{"test_connection_check.py::test_agg_connection_check[4-3-8-4]"}, nil},
	{"agg_connection_registers", "", []string{"test_connection_registers.py::test_agg_connection_registers[armed]"}, nil},
	{"agg_connection_table", "", []string{"test_connection_table.py::test_agg_connection_table[jobs]"}, nil},
	{"agg_crc32", "", []string{"test_roce_transmit.py::test_agg_crc32[8]"}, nil}, // the proof contains two instances of it
	{"agg_icrc_check", "", roceReceiver, nil},
	{"agg_relay", "", []string{"test_relay.py::test_agg_relay[8]"}, nil},
	{"agg_reply_frame", "", []string{"test_reply_frame.py::test_agg_reply_frame[8]"}, nil},
	{"agg_roce_align", "", roceReceiver, nil},
	{"agg_roce_judge", "roce_judge", roceReceiver, nil},
	{"agg_roce_receive", "", roceReceiver, nil},
	{"agg_roce_headers", "", []string{"test_roce_headers.py::test_agg_roce_headers[3-5-3-5]"}, nil},
	{"agg_roce_sums", "", roceTransmitter, nil},
	{"agg_roce_transmit", "", roceTransmitter, nil},
	{"agg_up_commit", "up_commit", nil, parent},
	{"agg_up_finish", "up_finish", nil, parent},
	{"agg_up_jobs", "up_jobs", nil, parent},
	{"agg_up_masks", "up_masks", nil, parent},
	{"agg_up_owed", "up_owed", small, parent},
	{"agg_up_receive", "up_receive", nil, parent},
	{"agg_up_registers", "up_registers", nil, parent},
	{"agg_parent_table", "", []string{"test_parent_table.py::test_agg_parent_table[several]"}, nil},
	{"agg_up_unwrap", "", []string{"test_up_unwrap.py::test_agg_up_unwrap[8]", "test_up_unwrap.py::test_agg_up_unwrap[64]"}, nil},
	{"agg_up_drops", "", []string{"test_up_drops.py::test_agg_up_drops[3]"}, nil},
}

// withoutCard are leaves of cards with several Ethernet ports, with an up port on Ethernet, or with shell
// roce. The bench of such a whole card takes minutes.
var withoutCard = map[string]bool{
	"agg_packet_split": true, "agg_packet_order": true, "agg_eth_switch": true, "agg_switch_delay": true,
	"agg_switch_input": true, "agg_switch_requests": true, "agg_switch_store": true, "agg_switch_table": true,
	"agg_parent_table": true, "agg_up_unwrap": true, "agg_up_drops": true,
	"agg_connection_check": true, "agg_crc32": true, "agg_icrc_check": true, "agg_roce_align": true,
	"agg_roce_judge": true, "agg_roce_receive": true, "agg_roce_headers": true, "agg_roce_sums": true,
	"agg_roce_transmit": true, "agg_connection_registers": true, "agg_connection_table": true, "agg_relay": true,
	"agg_reply_frame": true,
}

// slowProofs are the leaves whose benches take less time than the proof, and run first.
var slowProofs = map[string]bool{"agg_frame_rx": true, "agg_jobs": true, "agg_job_checks": true, "agg_job_places": true}

// leftOut gives the reason for each leaf that is not in the campaign.
var leftOut = map[string]string{
	"agg_async_fifo":       board,
	"agg_board_reset":      board,
	"agg_delay":            "registers in a row, which every bench of a sum goes through",
	"agg_eth_rx_cross":     board,
	"agg_eth_tx_cross":     board,
	"agg_exact_decide":     arithmetic,
	"agg_exact_extend":     arithmetic,
	"agg_exact_gate":       arithmetic,
	"agg_exact_lost":       arithmetic,
	"agg_exact_select":     arithmetic,
	"agg_exact_unit":       arithmetic,
	"agg_fp_add":           arithmetic,
	"agg_fp_canon":         arithmetic,
	"agg_fp_max":           arithmetic,
	"agg_fp_nonfinite":     arithmetic,
	"agg_fp_over":          arithmetic,
	"agg_fp_widen":         arithmetic,
	"agg_int_add":          arithmetic,
	"agg_int_clamp":        arithmetic,
	"agg_int_max":          arithmetic,
	"agg_led":              board,
	"agg_link_cross":       board,
	"agg_supply":           board,
	"agg_sync":             board,
	"agg_uart_queue":       board,
	"agg_uart_rx":          board,
	"agg_uart_tx":          board,
	"agg_window_add":       arithmetic,
	"agg_window_align":     arithmetic,
	"agg_window_max":       arithmetic,
	"agg_window_multiply":  arithmetic,
	"agg_window_normalize": arithmetic,
	"agg_window_round":     arithmetic,
	"agg_window_special":   arithmetic,
}

const (
	arithmetic = "arithmetic, which is proved or exhaustively compared with plain definitions, not control"
	board      = "around a card on a board, of which no bench is of a whole card"
)
