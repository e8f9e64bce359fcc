package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tributary/hwgen/leaf"
)

// transmitter are the modules from a core's output to Ethernet frames.
var transmitter = []string{
	"cocotb/ethernet_transmitter.v", "rtl/ethernet/agg_datagram_steps.v", "rtl/ethernet/agg_datagram_sums.v",
	"rtl/ethernet/agg_datagram_store.v", "rtl/ethernet/agg_eth_transmit.v", "rtl/ethernet/agg_crc32c.v",
	"rtl/core/agg_delay.v", "rtl/core/agg_tag_delay.v",
}

// receiver are the modules from Ethernet frames to words of payload and a verdict.
var receiver = []string{
	"rtl/ethernet/agg_eth_receive.v", "rtl/ethernet/agg_eth_judge.v", "rtl/ethernet/agg_eth_sum.v",
	"rtl/ethernet/agg_eth_align.v", "rtl/ethernet/agg_crc32c_check.v", "rtl/ethernet/agg_crc32c.v",
	"rtl/core/agg_delay.v", "rtl/core/agg_tag_delay.v",
}

// inPath are the modules of the in-path switch, behind the receivers of its bench.
var inPath = append([]string{
	"cocotb/ethernet_switch.v", "rtl/ethernet/agg_eth_switch.v", "rtl/ethernet/agg_switch_delay.v",
	"rtl/ethernet/agg_switch_input.v", "rtl/ethernet/agg_switch_requests.v", "rtl/ethernet/agg_switch_store.v",
	"rtl/ethernet/agg_switch_table.v", "rtl/ethernet/agg_eth_merge.v", "rtl/core/agg_ram.v",
}, receiver...)

// roceTransmitter are the modules from a core's output to frames of RoCEv2.
var roceTransmitter = []string{
	"cocotb/roce_transmitter.v", "rtl/ethernet/agg_roce_sums.v", "rtl/ethernet/agg_roce_headers.v",
	"rtl/ethernet/agg_roce_transmit.v", "rtl/ethernet/agg_crc32.v", "rtl/ethernet/agg_datagram_store.v",
	"rtl/ethernet/agg_packet_split.v", "rtl/core/agg_delay.v", "rtl/core/agg_tag_delay.v",
}

// networkCards are flags of cards on Ethernet: every width of a MAC, with beats of the core that have
// its width and that are wider, results of another format, and cards in path. A golden card has one
// port of 64 bits.
var networkCards = map[string]string{
	"udp_8":       "-lanes 1 -workers 1 -format fp8e4m3 -sum max -link 8 -chunk 4 -window 1",
	"udp_8_path":  "-lanes 1 -workers 2 -link 8 -ethernet 2 -chunk 4 -window 1",
	"udp_64_path": "-lanes 8 -workers 5 -jobs 2 -format bf16 -result fp32 -sum fused -link 64 -ethernet 3 -window 2 -prefix left",
	"udp_512":     "-lanes 64 -workers 3 -format fp8e5m2 -result bf16 -sum fused -link 512 -window 1 -bundle",

	"udp_8_parent":   "-lanes 1 -workers 1 -format fp8e4m3 -sum max -link 8 -chunk 4 -window 1 -parent",
	"udp_512_parent": "-lanes 64 -workers 3 -format fp8e5m2 -sum max -link 512 -jobs 2 -window 2 -ethernet 3 -parent",
}

// roceCards are flags of cards under RoCEv2: narrow and wide words, one-armed and in path. A golden card is one-armed, with
// words of 64 bits.
var roceCards = map[string]string{
	"roce_8_path": "-lanes 1 -workers 2 -format bf16 -sum fused -link 8 -ethernet 2 -chunk 128 -window 1",
	"roce_512":    "-lanes 16 -workers 5 -format int32 -link 512 -jobs 2 -chunk 64 -window 2 -bundle",
}

// TestNetworkCards lints cards on Ethernet.
func TestNetworkCards(t *testing.T) {
	hwgen := buildGenerator(t)
	var cards []Card
	for shell, named := range map[string]map[string]string{"udp": networkCards, "roce": roceCards} {
		for name, flags := range named {
			card, err := Open(generate(t, hwgen, name, strings.Fields("-shell "+shell+" "+flags)...))
			if err != nil {
				t.Fatal(err)
			}
			cards = append(cards, card)
		}
	}
	if err := Check(t.Context(), cards...); err != nil {
		t.Error(err)
	}
}

// TestEthernet lints the leaves of shell udp by themselves, as cards without an up port have them, also
// where no card has them: for every width of a MAC, and for beats of the core that are narrower and wider than that. The transmitter is
// assembled as in its bench.
func TestEthernet(t *testing.T) {
	var cards []Card
	ports := map[int]int{1: 2, 8: 5, 64: 3}
	places := map[int]int{1: 15, 8: 12, 64: 9} // log2 of the words in two of the largest frames
	for _, width := range []int{1, 8, 64} {
		for _, beat := range []int{1, 4, 64} {
			cards = append(cards, assembly(t, transmitter, fmt.Sprintf("BYTES=%d BEAT_BYTES=%d", width, beat)))
		}
		merge := []string{"cocotb/ethernet_merge.v", "rtl/ethernet/agg_eth_merge.v"}
		cards = append(cards, assembly(t, merge, fmt.Sprintf("BYTES=%d", width)))
		cards = append(cards, assembly(t, []string{"rtl/ethernet/agg_eth_answers.v"}, fmt.Sprintf("BYTES=%d", width)))
		cards = append(cards, assembly(t, receiver, fmt.Sprintf("BYTES=%d", width)))
		cards = append(cards, assembly(t, inPath, fmt.Sprintf("PORTS=%d BYTES=%d DEPTH_BITS=%d", ports[width], width, places[width])))
	}
	for _, way := range []string{"rx", "tx"} { // boards have the other width
		cross := []string{"rtl/board/agg_eth_" + way + "_cross.v", "rtl/board/agg_async_fifo.v", "rtl/board/agg_sync.v"}
		cards = append(cards, assembly(t, cross, "BYTES=1"))
	}
	cards = append(cards, assembly(t, []string{"rtl/ethernet/agg_frame_queue.v"}, "WORD_BITS=512"))
	if err := Check(t.Context(), cards...); err != nil {
		t.Error(err)
	}
}

// TestRoCETransmitter lints the way of sums to frames of RoCEv2, for every width of a MAC.
func TestRoCETransmitter(t *testing.T) {
	var cards []Card
	for _, size := range []string{
		"BYTES=1 BEAT_BYTES=4 ETHERNET=1 PORTS=1 PORT_BITS=1",
		"BYTES=8 BEAT_BYTES=64 ETHERNET=3 PORTS=5 PORT_BITS=3 JOBS=3 JOB_BITS=2",
		"BYTES=64 BEAT_BYTES=16 ETHERNET=8 PORTS=8 PORT_BITS=3 JOBS=2",
	} {
		cards = append(cards, assembly(t, roceTransmitter, size))
	}
	if err := Check(t.Context(), cards...); err != nil {
		t.Error(err)
	}
}

// roceReceiver are the modules from Ethernet frames to packets of RoCEv2 and a verdict.
var roceReceiver = []string{
	"rtl/ethernet/agg_roce_receive.v", "rtl/ethernet/agg_roce_judge.v", "rtl/ethernet/agg_roce_align.v",
	"rtl/ethernet/agg_icrc_check.v", "rtl/ethernet/agg_crc32.v", "rtl/ethernet/agg_eth_sum.v",
	"rtl/core/agg_delay.v", "rtl/core/agg_tag_delay.v",
}

// TestRoCEReceiver lints the way of packets of RoCEv2 to the core, for every width of a MAC.
func TestRoCEReceiver(t *testing.T) {
	check := []string{"rtl/ethernet/agg_connection_check.v"}
	var cards []Card
	for _, size := range []string{
		"BYTES=1 PORT_BITS=1", "BYTES=8 PORT_BITS=3 JOB_BITS=2", "BYTES=64 PORT_BITS=6",
	} {
		cards = append(cards, assembly(t, roceReceiver, size))
	}
	for _, size := range []string{
		"BYTES=1 PORTS=1 PORT_BITS=1", "BYTES=8 PORTS=5 PORT_BITS=3 JOBS=3 JOB_BITS=2", "BYTES=64 PORTS=64 PORT_BITS=6",
	} {
		cards = append(cards, assembly(t, check, size))
	}
	if err := Check(t.Context(), cards...); err != nil {
		t.Error(err)
	}
}

// TestRoCERegisters lints the leaves of connections, for cards of all sizes, and those of frames that no core sends, for
// every width of a MAC.
func TestRoCERegisters(t *testing.T) {
	relay := []string{
		"rtl/ethernet/agg_relay.v", "rtl/ethernet/agg_frame_queue.v", "rtl/core/agg_ram.v", "rtl/core/agg_delay.v",
		"rtl/core/agg_tag_delay.v",
	}
	reply := []string{"rtl/ethernet/agg_reply_frame.v", "rtl/ethernet/agg_crc32c.v"}
	var cards []Card
	for size, more := range map[string][2]string{
		"PORTS=1 PORT_BITS=1 JOBS=1 JOB_BITS=1 ETHERNET=1":  {" ELEM_BYTES=1", " HAS_NEIGHBOURS=1 NEIGHBOURS=1"},
		"PORTS=5 PORT_BITS=3 JOBS=3 JOB_BITS=2 ETHERNET=3":  {" ELEM_BYTES=2", ""},
		"PORTS=2 PORT_BITS=1 JOBS=16 JOB_BITS=4 ETHERNET=1": {" ELEM_BYTES=4", " HAS_NEIGHBOURS=1 NEIGHBOURS=2"},
		"PORTS=8 PORT_BITS=3 JOBS=1 JOB_BITS=1 ETHERNET=8":  {"", ""},
	} {
		cards = append(cards, assembly(t, []string{"rtl/ethernet/agg_connection_table.v"}, size+more[0]))
		cards = append(cards, assembly(t, []string{"rtl/ethernet/agg_connection_registers.v"}, size+more[1]))
	}
	for size, neighbours := range map[int]int{1: 1, 8: 5, 64: 64} {
		cards = append(cards, assembly(t, relay, fmt.Sprintf("BYTES=%d NEIGHBOURS=%d", size, neighbours)))
		cards = append(cards, assembly(t, reply, fmt.Sprintf("BYTES=%d", size)))
	}
	if err := Check(t.Context(), cards...); err != nil {
		t.Error(err)
	}
}

// TestNetwork lints the leaves of registers and addresses, for cards of all sizes.
func TestNetwork(t *testing.T) {
	var cards []Card
	for _, size := range []string{
		"PORTS=1 PORT_BITS=1 JOBS=1 JOB_BITS=1", "PORTS=5 PORT_BITS=3 JOBS=2 JOB_BITS=1", "PORTS=64 PORT_BITS=6 JOBS=16 JOB_BITS=4",
	} {
		cards = append(cards, assembly(t, []string{"rtl/ethernet/agg_network_registers.v"}, size))
		cards = append(cards, assembly(t, []string{"rtl/ethernet/agg_member_table.v", "rtl/core/agg_ram.v"}, size+" ETHERNET=4"))
	}
	cards = append(cards, assembly(t, []string{"rtl/ethernet/agg_network_counters.v"}, "ETHERNET=1 QUEUES=1"))
	cards = append(cards, assembly(t, []string{"rtl/ethernet/agg_network_counters.v"}, "ETHERNET=4 QUEUES=9"))
	if err := Check(t.Context(), cards...); err != nil {
		t.Error(err)
	}
}

// assembly copies modules into a folder, the top first, with other defaults of the top's parameters:
// not every tool sets parameters. params has words NAME=VALUE.
func assembly(t *testing.T, files []string, params string) Card {
	t.Helper()
	top := strings.TrimSuffix(filepath.Base(files[0]), ".v")
	card := Card{Top: top, Dir: filepath.Join(root, "build", "lint", top+"_"+regexp.MustCompile(`\W`).ReplaceAllString(params, "_"))}
	if err := os.MkdirAll(card.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i, file := range append(files, "rtl/zwire.vh", "rtl/znetwork.vh", "rtl/zroce.vh") {
		text, err := leaf.Resolve(readText(t, filepath.Join(root, file)), leaf.Parent, false)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if i == 0 {
			for _, param := range strings.Fields(params) {
				name, value, _ := strings.Cut(param, "=")
				given := regexp.MustCompile(`(parameter integer ` + name + ` *= )\d+`)
				if !given.MatchString(text) {
					t.Fatalf("%s has no parameter %s", file, name)
				}
				text = given.ReplaceAllString(text, "${1}"+value)
			}
		}
		path := filepath.Join(card.Dir, filepath.Base(file))
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".v") {
			card.Files = append(card.Files, path)
		}
	}
	return card
}
