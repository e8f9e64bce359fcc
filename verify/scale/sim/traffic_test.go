package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var steps = Distribution{{0, 0}, {10000, 0.5}, {100000, 1}}

// TestLoad: the servers' links carry the load, and sizes follow the distribution.
func TestLoad(t *testing.T) {
	c := quiet(4, 4, 0)
	c.Servers = 8
	net := NewNetwork(c)
	traffic := NewTraffic(net, TrafficConfig{Sizes: steps, Load: 0.4, TCP: dctcp(1.0 / 16), Seed: 1})
	traffic.Start()
	run(t, net.Engine, 100*Millisecond)
	bytes, sizes, small := int64(0), 0.0, 0
	for _, h := range net.Hosts {
		bytes += h.down.Bytes
	}
	for _, f := range traffic.Flows {
		sizes += float64(f.Bytes)
		if f.Bytes <= 10000 {
			small++
		}
	}
	n := float64(len(traffic.Flows))
	assert.InEpsilon(t, steps.Mean(), sizes/n, tolerance)
	assert.InEpsilon(t, 0.5, float64(small)/n, tolerance)
	// Each segment brings an acknowledgement of the shortest frame.
	want := 0.4 * rate / 8 * 0.1 * 32 * (whole + ackWire) / whole
	assert.InEpsilon(t, want, bytes, tolerance)
	for _, f := range traffic.Flows[:1000] {
		require.NotZero(t, f.End)
	}
}

// TestEnds: flows are between two different servers, in both directions.
func TestEnds(t *testing.T) {
	c := quiet(2, 1, 0)
	c.Servers = 1
	net := NewNetwork(c)
	traffic := NewTraffic(net, TrafficConfig{Sizes: steps, Load: 0.4, TCP: dctcp(1.0 / 16), Seed: 1})
	traffic.Start()
	run(t, net.Engine, 20*Millisecond)
	for _, h := range net.Hosts {
		assert.InDelta(t, net.Spines[0].down[h.id].Packets, h.down.Packets, 50, "all came from the other rack, apart from those on the way")
		assert.Greater(t, h.down.Bytes, int64(rate/8*0.02/4))
	}
}

// TestDistribution: sizes between two points are linear.
func TestDistribution(t *testing.T) {
	require.NoError(t, steps.Check())
	assert.Equal(t, 30000.0, steps.Mean())
	assert.Equal(t, 5000.0, steps.At(0.25))
	assert.Equal(t, 55000.0, steps.At(0.75))
	assert.Equal(t, 100000.0, steps.At(1))
	for _, bad := range []Distribution{nil, {{0, 0}}, {{0, 0.1}, {1, 1}}, {{0, 0}, {1, 0.9}}, {{0, 0}, {0, 1}}, {{0, 0}, {2, 0.5}, {3, 0.4}, {4, 1}}} {
		assert.Error(t, bad.Check(), "%v", bad)
	}
}

// TestDeterminism: the same seed gives the same times, and another one others.
func TestDeterminism(t *testing.T) {
	history := func(seed uint64) string {
		c := quiet(4, 4, 2)
		c.Servers = 2
		c.Core.Mark, c.Core.Limit = 50000, 100000
		net := NewNetwork(c)
		j := reduction(2, AtSpines, 64)
		j.Tree.Gain = 1.0 / 16
		job := NewJob(net, j)
		traffic := NewTraffic(net, TrafficConfig{Sizes: steps, Load: 0.6, TCP: dctcp(1.0 / 16), Seed: seed})
		traffic.Start()
		job.Start()
		run(t, net.Engine, 10*Millisecond)
		var b strings.Builder
		fmt.Fprintln(&b, net.Events, job.Ends)
		for _, f := range traffic.Flows {
			fmt.Fprintln(&b, *f)
		}
		return b.String()
	}
	first := history(1)
	assert.Equal(t, first, history(1))
	assert.NotEqual(t, first, history(2))
}
