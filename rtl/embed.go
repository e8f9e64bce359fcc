// Package rtl carries the hand-written Verilog leaves into the generator.
package rtl

import (
	"embed"
	"fmt"
	"path"
)

// Files holds the leaves, ROOM/agg_NAME.v, and the headers that they include. board/ecp5 and
// board/xc7 hold leaves made of an FPGA family's own cells.
//
//go:embed *.vh core/*.v sum/*.v link/*.v board/*.v board/ecp5/*.v board/xc7/*.v
var Files embed.FS

// Rooms are the folders of the portable leaves.
var Rooms = []string{"core", "sum", "link", "board"}

// File returns where in Files a portable leaf is: core/agg_slots.v for agg_slots.
func File(leaf string) (string, error) {
	for _, room := range Rooms {
		name := path.Join(room, leaf+".v")
		if f, err := Files.Open(name); err == nil {
			return name, f.Close()
		}
	}
	return "", fmt.Errorf("no leaf %s in rtl", leaf)
}
