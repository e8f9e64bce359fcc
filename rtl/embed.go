// Package rtl embeds the hand-written Verilog leaves.
package rtl

import "embed"

// Files has the leaves, ROOM/agg_NAME.v, and the headers that they include. The leaves in
// board/ecp5 and board/xc7 use an FPGA family's own cells; the scripts there constrain leaves.
//
//go:embed *.vh core/*.v sum/*.v link/*.v ethernet/*.v board/*.v board/ecp5/*.v board/xc7/*.v board/xc7/*.tcl
var Files embed.FS
