package driver

import (
	"math"
	"math/rand/v2"
	"testing"

	"tributary/driver/wire"
)

// near compares numbers that were computed by hand.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12 {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestCongestionByHand follows a window of 8 through three rounds; next is the VID after those in flight.
func TestCongestionByHand(t *testing.T) {
	c := newCongestion(8, false)
	if !c.allows(7) || c.allows(8) {
		t.Fatal("the window is not open at first")
	}
	c.take(0, 8, false) // ends the first round, which VID 8 ends next
	near(t, "alpha after a round without marks", c.alpha, 15./16)
	near(t, "window at the job's", c.size, 8)
	c.take(1, 9, true) // alpha holds until the round ends
	near(t, "cut by alpha/2", c.size, 8*(1-15./32))
	if c.allows(4) || !c.allows(3) {
		t.Error("a window of 4.25 chunks is not one of 4")
	}
	for vid := uint32(2); vid < 8; vid++ { // sent before the cut
		c.take(vid, 9, vid%2 == 0)
	}
	grown := 4.25
	for range 3 { // by results 3, 5 and 7
		grown += 1 / grown
	}
	near(t, "one cut, and growth without marks", c.size, grown)
	c.lose(8, 9)
	near(t, "a loss before the cut", c.size, grown)
	c.take(8, 10, true) // ends the round of results 1 to 8: 5 of 8 marked
	near(t, "alpha", c.alpha, 15./16+(5./8-15./16)/16)
	near(t, "no second cut in a round trip", c.size, grown)
	c.lose(9, 13)
	near(t, "a loss halves", c.size, grown/2)
	c.lose(12, 13)
	near(t, "once", c.size, grown/2)
	for vid := uint32(13); vid < 23; vid++ {
		c.lose(vid, vid+1)
	}
	near(t, "the floor", c.size, 1)
	if !c.allows(0) || c.allows(1) {
		t.Error("a window of one chunk does not hold one")
	}
	if s := c.stats; s.Results != 9 || s.Marked != 5 || s.Cuts != 1 || s.Halvings != 11 {
		t.Errorf("%+v", s)
	}
}

// TestCongestionOutOfOrder: results overtake one another, and VIDs wrap around. v(i) is the VID of chunk i.
func TestCongestionOutOfOrder(t *testing.T) {
	v := func(i uint32) uint32 { return 0xfffffffc + i }
	c := newCongestion(8, false)
	c.take(v(0), v(8), false) // ends the first round, which chunk 8 ends next
	near(t, "alpha after the first round", c.alpha, 15./16)
	c.take(v(3), v(9), true)
	near(t, "cut by alpha/2", c.size, 4.25)
	c.take(v(1), v(9), true)
	near(t, "a chunk before the cut", c.size, 4.25)
	c.take(v(7), v(9), false)
	near(t, "alpha in the round", c.alpha, 15./16)
	grown := 4.25 + 1/4.25
	c.take(v(10), v(12), true) // ends the round: 3 of 4 marked
	alpha := 15./16 + (3./4-15./16)/16
	near(t, "alpha after a round whose last result is late", c.alpha, alpha)
	near(t, "a chunk after the cut", c.size, grown*(1-alpha/2))
	for _, late := range []uint32{8, 2} {
		c.take(v(late), v(12), true)
	}
	near(t, "late results, window", c.size, grown*(1-alpha/2))
	near(t, "late results, alpha", c.alpha, alpha)
}

// TestCongestionAfterLongQuiet: a mark is news although the last cut is more than 2^31 chunks behind, so
// that its VID is ahead in serial order. A result that arrives late does not cut again before.
func TestCongestionAfterLongQuiet(t *testing.T) {
	c := newCongestion(8, false)
	c.take(0, 8, true)
	near(t, "cut", c.size, 4)
	c.take(15, 16, false)
	c.take(7, 16, true)
	near(t, "a result that 15 has overtaken", c.size, 4.25)
	c.take(16, 20, false)
	size := c.size
	c.take(16+1<<31, 20+1<<31, true)
	near(t, "cut again", c.size, size*(1-c.alpha/2))
}

// TestIsMarked: CE alone is a mark, whatever the other flags are.
func TestIsMarked(t *testing.T) {
	for _, flags := range []uint8{0, wire.FlagPartial, 0xfc} {
		for mark, want := range map[wire.ECN]bool{wire.NotECT: false, wire.ECT1: false, wire.ECT0: false, wire.CE: true} {
			if got := isMarked(flags | uint8(mark)); got != want {
				t.Errorf("flags %#x with %v: %v", flags, mark, got)
			}
		}
	}
}

// TestCongestionGrowsToTheJobsWindow: without marks, a window gains about one chunk a round, up to the job's.
func TestCongestionGrowsToTheJobsWindow(t *testing.T) {
	c := newCongestion(8, false)
	vid := uint32(0xfffffff0) // VIDs wrap around
	c.lose(vid, vid)
	c.lose(vid+1, vid+1)
	near(t, "after two losses", c.size, 2)
	for rounds := 1; rounds <= 12; rounds++ {
		for range int(c.size) {
			c.take(vid, vid+uint32(c.size), false)
			vid++
		}
		if want := float64(2 + rounds); c.size > 8 || c.size > want || c.size < min(8, 2+0.7*float64(rounds)) {
			t.Fatalf("after %d rounds the window is %v", rounds, c.size)
		}
	}
	near(t, "the job's window", c.size, 8)
}

// TestFixedWindow: it counts marks and losses cost nothing.
func TestFixedWindow(t *testing.T) {
	c := newCongestion(8, true)
	for vid := range uint32(20) {
		c.take(vid, vid+8, true)
		c.lose(vid, vid+8)
	}
	if !c.allows(7) || c.allows(8) || c.stats.Marked != 20 || c.stats.Cuts+c.stats.Halvings != 0 {
		t.Errorf("%+v", c)
	}
}

// TestRestForgetsTheRound: marks of chunks after an idle time are news, however far their VIDs are.
func TestRestForgetsTheRound(t *testing.T) {
	for _, ahead := range []uint32{0, 1 << 31, 1<<31 + 1000} {
		c := newCongestion(8, false)
		c.take(0, 8, true)
		size := c.size
		c.rest()
		c.take(ahead, ahead+4, true)
		near(t, "cut again", c.size, size*(1-c.alpha/2))
		c.rest()
		c.take(ahead+1<<31+1000, ahead+1<<31+1004, false)
		near(t, "alpha of all marked, and a round of none", c.alpha, 15./16)
	}
}

// TestCongestionStaysInItsBounds: whatever comes, 1 <= window <= the job's and 0 <= alpha <= 1.
func TestCongestionStaysInItsBounds(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		c := newCongestion(1<<rng.IntN(8), false)
		for range 2000 {
			if vid := rng.Uint32(); rng.IntN(3) == 0 {
				c.lose(vid, vid+rng.Uint32N(9))
			} else {
				c.take(vid, vid+rng.Uint32N(9), rng.IntN(2) == 0)
			}
			if !(c.size >= 1 && c.size <= c.most && c.alpha >= 0 && c.alpha <= 1) {
				t.Fatalf("seed %d: %+v", seed, c)
			}
		}
	}
}

// TestCongestionFixedPoint sends through a queue of one packet a tick that marks above k packets. In the
// steady state one round of a sawtooth is marked, and the window falls from top by alpha/2. It then takes
// (top+1)*alpha/2 rounds to grow back, so alpha*(1 + (top+1)*alpha/2) = 1 (verify/scale/README.md). The top
// is k and the packets on the way.
func TestCongestionFixedPoint(t *testing.T) {
	const trip, k = 20, 65
	c := newCongestion(1024, false)
	type packet struct {
		vid    uint32
		marked bool
	}
	var queue []packet
	var way [trip]*packet // results on the way, by tick
	var next, held uint32
	var alpha, busy, ticks float64
	least, most, cuts := 1e9, 0.0, c.stats.Cuts
	for tick := range 400_000 {
		if p := way[tick%trip]; p != nil {
			c.take(p.vid, next, p.marked)
			held++
		}
		way[tick%trip] = nil
		for c.allows(int(next - held)) {
			queue = append(queue, packet{next, len(queue) >= k})
			next++
		}
		if len(queue) > 0 {
			p := queue[0]
			queue, way[tick%trip] = queue[1:], &p
		}
		if tick < 200_000 {
			cuts = c.stats.Cuts
			continue
		}
		ticks++
		alpha += c.alpha
		if len(queue) > 0 {
			busy++
		}
		least, most = min(least, c.size), max(most, c.size)
	}
	alpha /= ticks
	top := float64(trip + k)
	want := 0.0
	for range 100 {
		want = (want + 1/(1+(top+1)*want/2)) / 2
	}
	if math.Abs(alpha-want) > 0.15*want || math.Abs(most-top) > 2 || math.Abs(least-most*(1-alpha/2)) > 2 {
		t.Errorf("alpha %.3f, want %.3f; window %.1f to %.1f, want %.1f to %.1f", alpha, want, least, most, top*(1-want/2), top)
	}
	if c.stats.Cuts == cuts || busy != ticks {
		t.Errorf("%d cuts; the link was busy in %g of %g ticks", c.stats.Cuts-cuts, busy, ticks)
	}
}
