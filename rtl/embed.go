// Package rtl carries the hand-written Verilog leaves into the generator.
package rtl

import "embed"

// Files holds agg_NAME.v for every leaf, and the headers they include; in ecp5/ and xc7/
// those out of the cells of an ECP5 and of AMD's 7 series.
//
//go:embed *.v *.vh ecp5/*.v xc7/*.v
var Files embed.FS
