package main

// leaf is a module of the gateware to mutate.
type leaf struct {
	name    string
	proof   string   // in verify/gateware/proofs; "" for none
	benches []string // its own cocotb benches, by pytest's names
	cards   []string // benches of whole cards, for the remaining mutants
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

// A card whose registers are behind AXI4-Lite.
var axil = []string{"test_axil.py::test_top_axil[two_jobs]"}

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
}

// slowProofs are the leaves whose benches take less time than the proof, and run first.
var slowProofs = map[string]bool{"agg_frame_rx": true}

// leftOut gives the reason for each leaf that is not in the campaign.
var leftOut = map[string]string{
	"agg_async_fifo":        board,
	"agg_board_reset":       board,
	"agg_crc32c":            ethernet,
	"agg_crc32c_check":      ethernet,
	"agg_datagram_steps":    ethernet,
	"agg_datagram_store":    ethernet,
	"agg_datagram_sums":     ethernet,
	"agg_delay":             "registers in a row, which every bench of a sum goes through",
	"agg_eth_align":         ethernet,
	"agg_eth_answers":       ethernet,
	"agg_eth_judge":         ethernet,
	"agg_eth_merge":         ethernet,
	"agg_eth_receive":       ethernet,
	"agg_eth_sum":           ethernet,
	"agg_eth_switch":        ethernet,
	"agg_eth_transmit":      ethernet,
	"agg_exact_decide":      arithmetic,
	"agg_exact_extend":      arithmetic,
	"agg_exact_gate":        arithmetic,
	"agg_exact_lost":        arithmetic,
	"agg_exact_select":      arithmetic,
	"agg_exact_unit":        arithmetic,
	"agg_fp_add":            arithmetic,
	"agg_fp_canon":          arithmetic,
	"agg_fp_max":            arithmetic,
	"agg_fp_nonfinite":      arithmetic,
	"agg_fp_over":           arithmetic,
	"agg_fp_widen":          arithmetic,
	"agg_frame_queue":       ethernet,
	"agg_int_add":           arithmetic,
	"agg_int_clamp":         arithmetic,
	"agg_int_max":           arithmetic,
	"agg_led":               board,
	"agg_link_cross":        board,
	"agg_member_table":      ethernet,
	"agg_network_counters":  ethernet,
	"agg_network_registers": ethernet,
	"agg_supply":            board,
	"agg_switch_delay":      ethernet,
	"agg_switch_events":     ethernet,
	"agg_switch_input":      ethernet,
	"agg_switch_requests":   ethernet,
	"agg_switch_store":      ethernet,
	"agg_switch_table":      ethernet,
	"agg_sync":              board,
	"agg_uart_queue":        board,
	"agg_uart_rx":           board,
	"agg_uart_tx":           board,
	"agg_window_add":        arithmetic,
	"agg_window_align":      arithmetic,
	"agg_window_max":        arithmetic,
	"agg_window_multiply":   arithmetic,
	"agg_window_normalize":  arithmetic,
	"agg_window_round":      arithmetic,
	"agg_window_special":    arithmetic,
}

const (
	arithmetic = "arithmetic, which is proved or exhaustively compared with plain definitions, not control"
	ethernet   = "of shell udp, which no card has yet: the campaign's last judge is a whole card"
	board      = "around a card on a board, of which no bench is of a whole card"
)
