// Package constraints carries the boards into the generator: one file each.
package constraints

import "embed"

// Files holds NAME.json for every board.
//
//go:embed *.json
var Files embed.FS
