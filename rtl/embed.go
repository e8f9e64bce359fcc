// Package rtl embeds the hand-written Verilog leaves.
package rtl

import (
	"embed"
	"fmt"
	"path"
)

// Files has the leaves, ROOM/agg_NAME.v, and the headers that they include. The leaves in
// board/ecp5 and board/xc7 use an FPGA family's own cells.
//
//go:embed *.vh core/*.v sum/*.v link/*.v board/*.v board/ecp5/*.v board/xc7/*.v
var Files embed.FS

// Rooms are the folders of the portable leaves.
var Rooms = []string{"core", "sum", "link", "board"}

// File returns the path of a portable leaf in Files: core/agg_slots.v for agg_slots.
func File(leaf string) (string, error) {
	for _, room := range Rooms {
		name := path.Join(room, leaf+".v")
		if f, err := Files.Open(name); err == nil {
			return name, f.Close()
		}
	}
	return "", fmt.Errorf("no leaf %s in rtl", leaf)
}
