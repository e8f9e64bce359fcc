package roce

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/verify/system/roce/cable"
	"tributary/verify/system/roce/rig"
)

// psns is the number of PSNs.
const psns = 1 << 24

// TestLostPackets: a packet of rank 1 is lost, or the sum that takes its place, or the last
// acknowledgement for it. The endpoints repair that, and every element is right.
func TestLostPackets(t *testing.T) {
	c := connect(t, *summing)
	judged := judge(t, c)
	o := own(t, c)
	const packets, window = 64, 16
	for _, ranks := range []int{2, 3} {
		receiver := 2 % ranks
		for name, lost := range map[string]struct {
			port      int
			direction frame.Direction
			is        func(cable.Packet) bool
			packet    int
		}{
			"first, before the card":  {1, frame.ToCard, cable.Packet.IsData, 0},
			"middle, before the card": {1, frame.ToCard, cable.Packet.IsData, packets / 2},
			"last, before the card":   {1, frame.ToCard, cable.Packet.IsData, packets - 1},
			"first, behind the card":  {receiver, frame.FromCard, cable.Packet.IsData, 0},
			"middle, behind the card": {receiver, frame.FromCard, cable.Packet.IsData, packets / 2},
			"last, behind the card":   {receiver, frame.FromCard, cable.Packet.IsData, packets - 1},
			"last acknowledgement":    {1, frame.FromCard, cable.Packet.IsACK, packets - 1},
		} {
			j := job{ranks: ranks, window: window, flags: "-mtu 1024 -packets 4 -elements 16384"}
			j.faults = func(ends []rig.End) {
				psn := (ends[1].PSN + uint32(lost.packet)) % psns
				c.Losses.Once(func(at cable.Place, p cable.Packet) bool {
					return at == cable.Place{Port: lost.port, Direction: lost.direction} && lost.is(p) && p.PSN == psn
				})
			}
			r := j.succeeds(t, o)
			assert.Zero(t, c.Losses.Pending(), "%s: nothing was lost", name)
			counts := c.Losses.Reset()
			t.Logf("%d ranks, %s: %.2f s, %+v", ranks, name, r[0].Seconds, counts)
		}
	}
	judged()
}

// TestALateRank: rank 1 begins when the others have repeated their first packet, and all have the sums. No sum
// leaves before.
func TestALateRank(t *testing.T) {
	c := connect(t, *summing)
	o := own(t, c)
	begins := make(chan struct{})
	j := job{ranks: 3, window: 16, flags: "-mtu 1024 -packets 4 -elements 16384 -lateness 3", late: map[int]<-chan struct{}{1: begins}}
	var firsts [3]int // packets
	early := 0
	j.faults = func(ends []rig.End) {
		c.Losses.Watch(func(at cable.Place, p cable.Packet) {
			switch {
			case !p.IsData() || firsts[1] > 0:
			case at.Direction == frame.FromCard:
				early++
			case p.PSN == ends[at.Port].PSN:
				firsts[at.Port]++
				if firsts[0] > 1 && firsts[2] > 1 && begins != nil {
					close(begins)
					begins = nil
				}
			}
		})
	}
	j.succeeds(t, o)
	c.Losses.Reset()
	assert.Equal(t, 1, firsts[1])
	assert.Zero(t, early)
}

// TestAMissingRank: the retries of all others end, and every rank gets an error.
func TestAMissingRank(t *testing.T) {
	o := own(t, connect(t, *summing))
	j := job{ranks: 3, window: 16, flags: "-mtu 1024 -packets 4 -elements 16384 -lateness 0.2", late: map[int]<-chan struct{}{1: nil}}
	outcomes, err := j.run(t, o)
	require.ErrorContains(t, err, "no acknowledgement")
	for _, r := range outcomes {
		assert.NotEmpty(t, r.Error, "rank %d", r.Rank)
	}
}

// TestLossBothWays loses 2 % of all packets on each cable and way, and more than 2,000, while each slot is used 20
// times, and PSNs wrap. A timer of the queue pairs must be longer than a window takes: otherwise it repeats
// packets that were never lost, and the more it does, the longer a window takes. In simulated gateware, 64 packets
// of three ranks take 0.2 to 1 s. Hence the lateness, which makes the timer 1.1 s.
func TestLossBothWays(t *testing.T) {
	const window, packets, first = 64, 2 * 64 * 20, psns - 512
	c := connect(t, *summing)
	judged := judge(t, c)
	o := own(t, c)
	lost := 0
	for seed := uint64(1); lost < *losses; seed++ {
		j := job{ranks: 2 + int(seed%2), window: window, flags: fmt.Sprintf("-mtu 1024 -packets 8 -elements %d -lateness 2 -retries 6 -deadline 250 -psn %d", packets*256, first)}
		j.faults = func([]rig.End) { c.Losses.Share(0.02, seed) }
		before := o.counters(t)
		r := j.succeeds(t, o)
		counts := c.Losses.Reset()
		lost += counts.Lost[0] + counts.Lost[1]
		card := o.counters(t)
		for name := range card {
			if card[name] -= before[name]; card[name] == 0 {
				delete(card, name)
			}
		}
		t.Logf("%d ranks: %.1f s, %+v, %v", j.ranks, r[0].Seconds, counts, card)
		assert.EqualValues(t, packets, card["chunks"])
		assert.EqualValues(t, packets*j.ranks, card["stored"])
		assert.Positive(t, card["replays"])
		assert.Positive(t, card["released_early"])
		for _, name := range []string{"fcs", "roce_icrc", "roce_header", "roce_source", "roce_length", "bad_job", "statuses"} {
			assert.Zero(t, card[name], name)
		}
	}
	judged()
}
