package wire

import "embed"

// Pages has SPEC.md, PACKET.md and REGISTERS.md, which hwgen copies into every card.
//
//go:embed SPEC.md PACKET.md REGISTERS.md
var Pages embed.FS
