package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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

// networkCards are flags of cards on Ethernet: every width of a MAC, with beats of the core that have
// its width and that are wider, results of another format, and cards in path. A golden card has one
// port of 64 bits.
var networkCards = map[string]string{
	"udp_8":       "-lanes 1 -workers 1 -format fp8e4m3 -sum max -link 8 -chunk 4 -window 1",
	"udp_8_path":  "-lanes 1 -workers 2 -link 8 -ethernet 2 -chunk 4 -window 1",
	"udp_64_path": "-lanes 8 -workers 5 -jobs 2 -format bf16 -result fp32 -sum fused -link 64 -ethernet 3 -window 2 -prefix left",
	"udp_512":     "-lanes 64 -workers 3 -format fp8e5m2 -result bf16 -sum fused -link 512 -window 1 -bundle",
}

// TestNetworkCards lints cards on Ethernet.
func TestNetworkCards(t *testing.T) {
	hwgen := buildGenerator(t)
	var cards []Card
	for name, flags := range networkCards {
		card, err := Open(generate(t, hwgen, name, strings.Fields("-shell udp "+flags)...))
		if err != nil {
			t.Fatal(err)
		}
		cards = append(cards, card)
	}
	if err := Check(t.Context(), cards...); err != nil {
		t.Error(err)
	}
}

// TestEthernet lints the leaves of shell udp by themselves, also where no card has them: for every
// width of a MAC, and for beats of the core that are narrower and wider than that. The transmitter is
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
	for i, file := range append(files, "rtl/zwire.vh", "rtl/znetwork.vh") {
		text := readText(t, filepath.Join(root, file))
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
