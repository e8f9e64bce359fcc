package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/config"
)

// networkConfig is a card of shell udp with beats of 512 bits.
func networkConfig(workers, jobs, ethernet, link int) config.Config {
	return config.Config{
		Lanes: 16, Workers: workers, Format: "fp32", Result: "fp32", Sum: "fused", Shell: "udp",
		Chunk: 32, Window: 2, Jobs: jobs, Link: link, Ethernet: ethernet,
		MAC: 0x0254_5242_0001, IP: 0x0a00_0001, UDPPort: 0x5442, Prefix: "agg",
	}
}

// Cards link for every number of Ethernet ports and every width, and with the fewest and the most
// ports of the core and jobs: all nets are driven once, with the width of what they connect.
func TestNetworkCardsLink(t *testing.T) {
	for ethernet := 1; ethernet <= 16; ethernet++ {
		for i, link := range []int{8, 64, 512} {
			workers, jobs := []int{1, 5, 64}[(ethernet+i)%3], []int{1, 2, 16}[i]
			_, err := Build(networkConfig(workers, jobs, ethernet, link))
			assert.NoError(t, err, fmt.Sprint(workers, jobs, ethernet, link))
		}
	}
}

// The same for cards with an up port, also where its number needs one bit more than those of workers.
func TestNetworkParentsLink(t *testing.T) {
	for _, c := range [][]int{{1, 1, 1, 8}, {1, 2, 2, 64}, {4, 1, 16, 64}, {5, 16, 1, 512}} {
		cfg := networkConfig(c[0], c[1], c[2], c[3])
		cfg.Parent = true
		_, err := Build(cfg)
		assert.NoError(t, err, fmt.Sprint(c))
	}
}

// A queue has room for the largest final sum with its mask and receivers, also if contributions are short.
func TestQueueHoldsAFinalSum(t *testing.T) {
	cfg := networkConfig(2, 1, 1, 8)
	cfg.Format, cfg.Result, cfg.Sum, cfg.Lanes, cfg.Chunk = "fp8e4m3", "fp8e4m3", "max", 1, 1
	for _, cfg.Parent = range []bool{false, true} {
		p, err := Build(cfg)
		require.NoError(t, err)
		largest := 1
		if cfg.Parent {
			largest += 16
		}
		assert.GreaterOrEqual(t, 1<<p.receiveDepthBits(), largest)
	}
}

// The switch's stores have room for two of the largest frames.
func TestSwitchHoldsTwoFrames(t *testing.T) {
	const largest = 9018 // bytes
	for link, words := range map[int]int{8: 32768, 64: 4096, 512: 512} {
		p, err := Build(networkConfig(2, 1, 3, link))
		require.NoError(t, err)
		i := slices.IndexFunc(p.Memories, func(m Memory) bool { return m.Name == "frames for other Ethernet ports, one per port" })
		require.GreaterOrEqual(t, i, 0)
		assert.Equal(t, []int{3, words}, []int{p.Memories[i].Count, p.Memories[i].Words})
		assert.GreaterOrEqual(t, words*link/8, 2*largest)
	}
}
