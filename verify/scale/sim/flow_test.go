package sim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const whole = mss + segment0 // bytes of a whole segment on the wire

func dctcp(gain float64) TCPConfig {
	return TCPConfig{Window: WindowConfig{First: 10, Gain: gain}, Timeout: 10 * Millisecond}
}

// TestFixedPoint: N long flows share a link of C packets a second with threshold K. As in the
// analysis of DCTCP (Alizadeh et al., 2010, section 3.3), the window grows to W+1 with
// W = (C·RTT + K)/N, and falls by a fraction of alpha/2. It grows by one packet a round trip, and
// not in the round trip after a cut. One round in 1 + (W+1)·alpha/2 is marked, so
//
//	alpha · (1 + (W+1) · alpha/2) = 1
//
// whose leading term is the paper's sqrt(2/W). The equation takes alpha as constant in a cycle,
// which needs a small gain; the queue's maximum of K + N packets does not.
func TestFixedPoint(t *testing.T) {
	const mark, delay = 65, 20 * Microsecond
	for _, gain := range []float64{1.0 / 16, 1.0 / 64} {
		for _, n := range []int{2, 3, 4, 8} {
			net := NewNetwork(Clos{Racks: 1, Servers: n + 1, Host: LinkConfig{Rate: 10e9, Delay: delay, Mark: mark * whole}})
			var flows []*Flow
			for i := range n {
				f := NewFlow(net.Engine, dctcp(gain), net.Hosts[i], net.Hosts[n], 0, 1<<40, func(int64) {})
				flows = append(flows, f)
				f.Send()
			}
			run(t, net.Engine, 100*Millisecond)
			bottleneck := net.Hosts[n].down
			before := bottleneck.Bytes
			bottleneck.Highest = 0
			alpha, samples := 0.0, 0.0
			for net.now < 200*Millisecond {
				run(t, net.Engine, net.now+5*Microsecond)
				for _, f := range flows {
					alpha += f.Window.Alpha
					samples++
				}
			}
			service := whole * 8 / 10e9
			rtt := 4*delay.Seconds() + 2*service + 2*ackWire*8/10e9
			h := (rtt/service+mark)/float64(n) + 1
			if gain < 1.0/16 {
				assert.InEpsilon(t, (math.Sqrt(1+2*h)-1)/h, alpha/samples, tolerance, "alpha of %d flows", n)
			}
			// Highest has the packet that arrives; K+N is what it finds and itself.
			assert.InEpsilon(t, mark+n, float64(bottleneck.Highest)/whole-1, tolerance, "queue of %d flows", n)
			assert.InEpsilon(t, 10e9*0.1/8, bottleneck.Bytes-before, tolerance, "the link is full")
		}
	}
}

// transfer sends a message across an idle rack and returns the time until all has arrived.
func transfer(t *testing.T, link LinkConfig, bytes int64) (Time, *Flow, *Network) {
	t.Helper()
	net := NewNetwork(Clos{Racks: 1, Servers: 2, Host: link})
	var end Time
	var f *Flow
	f = NewFlow(net.Engine, dctcp(1.0/16), net.Hosts[0], net.Hosts[1], 0, bytes, func(n int64) {
		if n == f.segments {
			end = net.now
		}
	})
	f.Send()
	run(t, net.Engine, Second)
	require.NotZero(t, end, "the message never arrived whole")
	return end, f, net
}

// TestSlowStart: a message of 10 + 20 segments needs two round trips less the wait of the last
// acknowledgements, and one of 10 needs half a round trip and its sending.
func TestSlowStart(t *testing.T) {
	link := LinkConfig{Rate: 10e9, Delay: 20 * Microsecond}
	service, back := Time(whole*800), Time(ackWire*800) // picoseconds at 10 Gbit/s
	oneWay := 2 * (link.Delay + service)
	got, _, _ := transfer(t, link, 10*mss)
	assert.Equal(t, oneWay+9*service, got)
	// The first acknowledgement comes after a round trip, and each of ten lets two segments go.
	got, _, _ = transfer(t, link, 30*mss)
	assert.Equal(t, oneWay+2*(link.Delay+back)+oneWay+19*service, got)
	got, _, _ = transfer(t, link, 1)
	assert.Equal(t, 2*link.Delay+2*Time(ackWire*800), got, "the shortest frame")
}

// TestRecovery: a queue that is too short for slow start drops segments. All arrive in the end,
// and only dropped ones are sent again, as long as three acknowledgements show a loss.
func TestRecovery(t *testing.T) {
	net := NewNetwork(Clos{Racks: 1, Servers: 3, Host: LinkConfig{Rate: 10e9, Delay: 20 * Microsecond, Limit: 12 * whole}})
	ends := 0
	var flows []*Flow
	for i := range 2 {
		var f *Flow
		f = NewFlow(net.Engine, dctcp(1.0/16), net.Hosts[i], net.Hosts[2], 0, 400*mss, func(n int64) {
			if n == f.segments {
				ends++
			}
		})
		flows = append(flows, f)
		f.Send()
	}
	run(t, net.Engine, Second)
	assert.Equal(t, 2, ends)
	dropped := net.Hosts[2].down.Dropped
	require.Positive(t, dropped)
	repeated := flows[0].Retransmitted + flows[1].Retransmitted
	assert.GreaterOrEqual(t, repeated, dropped)
	for _, f := range flows {
		assert.Equal(t, f.total, f.una)
		assert.Less(t, f.Window.Size, 400.0)
	}
}

// TestTimeout: when all segments of a window are lost, the timeout brings them again.
func TestTimeout(t *testing.T) {
	net := NewNetwork(Clos{Racks: 1, Servers: 2, Host: LinkConfig{Rate: 10e9, Delay: 20 * Microsecond}})
	net.Hosts[1].down.Limit = 1
	var end Time
	f := NewFlow(net.Engine, dctcp(1.0/16), net.Hosts[0], net.Hosts[1], 0, 5*mss, func(n int64) {
		if n == 5 {
			end = net.now
		}
	})
	f.Send()
	run(t, net.Engine, Millisecond)
	net.Hosts[1].down.Limit = 0
	run(t, net.Engine, Second)
	assert.EqualValues(t, 5, f.Retransmitted)
	assert.Greater(t, end, 10*Millisecond)
	assert.Less(t, end, 11*Millisecond)
	assert.Less(t, f.Window.Size, 10.0, "slow start begins again with one segment")
}

// TestFastRecovery: three acknowledgements show a loss, and each partial one the next, long before
// a timeout. A window's losses halve it once.
func TestFastRecovery(t *testing.T) {
	for _, lost := range [][]int{{30}, {30, 35, 40}} {
		net := NewNetwork(Clos{Racks: 1, Servers: 2, Host: LinkConfig{Rate: 10e9, Delay: 20 * Microsecond}})
		for i := range lost { // the innermost one counts what the others leave
			n := lost[len(lost)-1-i]
			net.Hosts[1].down.to = &loser{net.Hosts[1].down.to, net.Engine, segment, n}
		}
		var end Time
		f := NewFlow(net.Engine, dctcp(1.0/16), net.Hosts[0], net.Hosts[1], 0, 200*mss, func(n int64) {
			if n == 200 {
				end = net.now
			}
		})
		f.Send()
		run(t, net.Engine, Second)
		require.NotZero(t, end)
		assert.Less(t, end, 2*Millisecond)
		assert.EqualValues(t, len(lost), f.Retransmitted)
		assert.Equal(t, f.Window.Highest/2, f.Window.Least)
	}
}

// TestWindow: marks cut by alpha/2 and losses by half, once a round trip.
func TestWindow(t *testing.T) {
	w := NewWindow(WindowConfig{First: 16, Most: 20, Gain: 1.0 / 16})
	for seq := range int64(10) {
		w.Acknowledge(seq, 16, false)
	}
	assert.Equal(t, 20.0, w.Size, "slow start, up to the limit")
	alpha := w.Alpha
	assert.InDelta(t, 15.0/16, alpha, 1e-12, "one round without marks")
	w.Acknowledge(10, 30, true)
	w.Acknowledge(11, 30, true)
	assert.InDelta(t, 20*(1-alpha/2), w.Size, 1e-12, "one cut")
	size := w.Size
	w.Lose(29, 31)
	assert.Equal(t, size, w.Size, "sent before the cut")
	w.Lose(30, 40)
	assert.Equal(t, size/2, w.Size)
	fixed := NewWindow(WindowConfig{First: 64})
	fixed.Acknowledge(0, 64, true)
	fixed.Lose(1, 64)
	assert.Equal(t, 64.0, fixed.Size, "a fixed window")
}
