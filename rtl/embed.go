// Package rtl carries the hand-written Verilog leaves into the generator.
package rtl

import "embed"

// Files holds agg_NAME.v for every leaf, and the headers they include; in ecp5/ those
// out of an ECP5's own cells.
//
//go:embed *.v *.vh ecp5/*.v
var Files embed.FS
