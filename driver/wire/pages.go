package wire

import "embed"

// Pages has the pages that hwgen copies into cards: NETWORK.md into those on a network, the others
// into every card.
//
//go:embed SPEC.md NETWORK.md PACKET.md REGISTERS.md
var Pages embed.FS
