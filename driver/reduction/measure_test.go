package reduction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/wire"
)

// TestLinkBound: two data frames of 4+14+2+64+2 bytes in, one result frame of
// 4+30+2+64+2 out, 4 bytes a cycle each way.
func TestLinkBound(t *testing.T) {
	card := driver.Info{Format: wire.FP32, Result: wire.FP32, Link: 32}
	require.EqualValues(t, 2*86/4, LinkBound(1, 2, 16, card))
	require.EqualValues(t, (102+3)/4, LinkBound(1, 1, 16, card))
	card.Format = wire.FP8E4M3 // 16 bytes of payload instead of 64
	require.EqualValues(t, 3*38/4+1, LinkBound(1, 3, 16, card))
	card.Link = 0
	require.EqualValues(t, 0, LinkBound(1, 1, 16, card))
}
