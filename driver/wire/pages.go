package wire

import "embed"

// Pages has the pages that hwgen copies into cards: NETWORK.md into those on a network, ROCE.md into
// those under RoCEv2, TREES.md into those with an up port, the others into every card.
//
//go:embed SPEC.md NETWORK.md TREES.md ROCE.md PACKET.md REGISTERS.md
var Pages embed.FS
