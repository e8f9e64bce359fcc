// Package constraints embeds the boards' files.
package constraints

import "embed"

// Files has NAME.json for every board.
//
//go:embed *.json
var Files embed.FS
