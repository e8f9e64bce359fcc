package config

import (
	"fmt"
	"strings"
)

// Help returns the text of hwgen -h.
func Help(known Known) string {
	var b strings.Builder
	b.WriteString(`hwgen writes the Verilog of a gradient aggregator into a folder that needs nothing else.

Usage:
  hwgen [flags]

Flags:
`)
	for _, d := range newParser(new(Options), known).docs {
		head := strings.TrimRight("-"+d.name+" "+d.value, " ")
		for line := range strings.SplitSeq(d.text, "\n") {
			fmt.Fprintf(&b, "  %-17s %s\n", head, line)
			head = ""
		}
	}
	b.WriteString(`
Examples:
  hwgen -lanes 16                        16 lanes, 4 workers, into tributary_l16_w4_fp32_tree
  hwgen -lanes 16 -workers 8 -dry-run    memory, latency and throughput only
  hwgen -lanes 4 -shell none -bundle     bare AXI4-Stream ports, all in one file
  hwgen -lanes 4 -shell udp              a card on Ethernet, with 64-bit ports for MACs
  hwgen -lanes 4 -shell roce -ethernet 4 a card in the path of RDMA between 4 machines
  hwgen -lanes 8 -prefix left -o left    a second card for the same design
  hwgen -board ecpix5 -o card            the largest recorded card for a board; make -C card/board builds it

Then:
  make -C tributary_l16_w4_fp32_tree/sim test    check it with Verilator
  make -C tributary_l16_w4_fp32_tree/sim         build the virtual card
  tributary reduce -card sim:tributary_l16_w4_fp32_tree -o sum.npy w0.npy w1.npy

Exit status: 0 done, 1 failed, 2 usage.
`)
	return b.String()
}
