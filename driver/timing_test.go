package driver

import (
	"testing"
	"time"
)

// TestTimingFollowsRFC6298 compares with values computed by hand from its sections 2.2 and 2.3,
// with alpha 1/8 and beta 1/4.
func TestTimingFollowsRFC6298(t *testing.T) {
	timing := newTiming(0, false)
	for _, step := range []struct{ sample, wait time.Duration }{
		{100 * time.Millisecond, 300 * time.Millisecond},    // 100 + 4*50
		{100 * time.Millisecond, 250 * time.Millisecond},    // 100 + 4*37.5
		{180 * time.Millisecond, 302500 * time.Microsecond}, // 110 + 4*(37.5 - 37.5/4 + 80/4)
	} {
		timing.sample(step.sample)
		if timing.wait != step.wait {
			t.Errorf("after a sample of %s: wait %s, want %s", step.sample, timing.wait, step.wait)
		}
	}
	for range 100 {
		timing.sample(time.Microsecond)
	}
	if timing.wait != shortestWait {
		t.Errorf("wait %s where answers take a microsecond, want %s", timing.wait, shortestWait)
	}
}

// TestTimingOnANetwork compares with values computed by hand from RFC 6298, 2.2 and 2.3, with at least
// a round trip and half a millisecond more: no wait has a floor far above the round trips.
func TestTimingOnANetwork(t *testing.T) {
	timing := newTiming(50*time.Microsecond, true)
	if timing.wait != 3200*time.Microsecond { // 64 accesses
		t.Errorf("first wait %s", timing.wait)
	}
	for _, step := range []struct{ sample, wait time.Duration }{
		{time.Millisecond, 3 * time.Millisecond},         // 1 + 4*0.5
		{time.Millisecond, 2500 * time.Microsecond},      // 1 + 4*0.375
		{9 * time.Millisecond, 11125 * time.Microsecond}, // 2 + 4*(0.375 - 0.375/4 + 8/4) = 2 + 9.125
	} {
		timing.sample(step.sample)
		if timing.wait != step.wait {
			t.Errorf("after a sample of %s: wait %s, want %s", step.sample, timing.wait, step.wait)
		}
	}
	for range 200 {
		timing.sample(20 * time.Microsecond)
	}
	if timing.wait.Round(time.Microsecond) != 520*time.Microsecond {
		t.Errorf("wait %s where answers take 20 µs", timing.wait)
	}
	for range 200 {
		timing.sample(10 * time.Millisecond)
	}
	if timing.wait.Round(time.Millisecond) != 20*time.Millisecond {
		t.Errorf("wait %s where answers take 10 ms, each", timing.wait)
	}
	if first := newTiming(0, true).wait; first != firstWaitShortest {
		t.Errorf("first wait %s where no access was timed", first)
	}
}

// TestBackOff checks that every wait without a reply doubles the next. The limit is 32 times
// the first wait without a sample, and eight times the measured wait with one.
func TestBackOff(t *testing.T) {
	timing := newTiming(time.Millisecond, false) // 64 ms is below the minimum
	for b, want := range map[backOff]time.Duration{
		0: 100 * time.Millisecond, 1: 200 * time.Millisecond, 5: 3200 * time.Millisecond, 6: 3200 * time.Millisecond, 1000: 3200 * time.Millisecond,
	} {
		if got := b.wait(&timing); got != want {
			t.Errorf("without a sample, %d in vain: %s, want %s", b, got, want)
		}
	}
	slow := newTiming(time.Second, false)
	if got := backOff(5).wait(&slow); got != time.Minute {
		t.Errorf("first wait 3 s, 5 in vain: %s, want a minute", got)
	}
	timing.sample(100 * time.Millisecond)
	for b, want := range map[backOff]time.Duration{0: 300 * time.Millisecond, 2: 1200 * time.Millisecond, 3: 2400 * time.Millisecond, 50: 2400 * time.Millisecond} {
		if got := b.wait(&timing); got != want {
			t.Errorf("with a sample, %d in vain: %s, want %s", b, got, want)
		}
	}
	if first := newTiming(20*time.Millisecond, false).wait; first != 1280*time.Millisecond {
		t.Errorf("first wait %s for a card whose registers take 20 ms", first)
	}
}
