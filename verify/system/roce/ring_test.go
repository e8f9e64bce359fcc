package roce

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/verify/system/roce/rig"
)

// TestRing: without a registered connection, the workers' arrays go round by one rank.
func TestRing(t *testing.T) {
	c := connect(t, *plain)
	for _, flags := range []string{
		"-elements 10000 -arrays 3 -mtu 1024 -packets 4 -window 8",
		"-elements 10000 -arrays 3 -mtu 2048 -packets 1 -window 8 -write -format fp32",
		"-elements 100001 -mtu 4096 -packets 16 -window 64 -psn 0xfffff0",
		"-elements 1 -write",
	} {
		for _, ranks := range []int{2, 3} {
			outcomes, err := hosts.Work(ranks, flags+" -expect previous", nil, func([]rig.End) error { return nil }, nil)
			require.NoError(t, err, flags)
			for _, o := range outcomes {
				assert.Empty(t, o.Error, flags)
				assert.Zero(t, o.Wrong, flags)
			}
			t.Logf("%d ranks, %s: %+v %+v", ranks, flags, outcomes, c.Losses.Reset())
		}
	}
}
