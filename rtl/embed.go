// Package rtl carries the hand-written Verilog leaves into the generator.
package rtl

import "embed"

// Files holds agg_NAME.v for every leaf, and the headers they include.
//
//go:embed *.v *.vh
var Files embed.FS
