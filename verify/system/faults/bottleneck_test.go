package faults

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver/wire"
)

// TestBottleneck sends packets of 100 bytes with their frames into a queue of 1,000 bytes a second: 100 ms
// each. It compares marks, losses, departures and the mean queue with those computed by hand.
func TestBottleneck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		q := NewBottleneck(BottleneckConfig{Rate: 1000, Limit: 400, Threshold: 150, Delay: 7 * time.Millisecond})
		defer q.Close()
		type left struct {
			name string
			mark wire.ECN
			at   time.Duration
		}
		var mu sync.Mutex
		var got []left
		send := func(name string, mark wire.ECN) {
			q.Pass(time.Now(), 100-frameBytes, mark, func(mark wire.ECN) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, left{name, mark, time.Since(began)})
			})
		}
		send("finds 0", wire.ECT0)
		send("finds 100", wire.NotECT)
		send("finds 200", wire.NotECT) // above the threshold: lost
		send("finds 200, ECT(1)", wire.ECT1)
		send("finds 300", wire.ECT0)
		send("finds 400", wire.ECT0) // above the limit: lost
		time.Sleep(250 * time.Millisecond)
		send("finds 150", wire.ECT0)
		time.Sleep(550 * time.Millisecond)
		send("after an idle time", wire.CE)
		time.Sleep(200 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		want := []left{
			{"finds 0", wire.ECT0, 107}, {"finds 100", wire.NotECT, 207}, {"finds 200, ECT(1)", wire.CE, 307},
			{"finds 300", wire.CE, 407}, {"finds 150", wire.ECT0, 507}, {"after an idle time", wire.CE, 907},
		}
		if len(got) != len(want) {
			t.Fatalf("%v left", got)
		}
		for i := range want {
			want[i].at *= time.Millisecond
			if got[i] != want[i] {
				t.Errorf("%v left, want %v", got[i], want[i])
			}
		}
		// Waits of 100, 200, 300, 400, 250 and 100 ms.
		if s := q.Stats(); s.Passed != 6 || s.Lost != 2 || s.Marked != 2 || s.Bytes != 600 || s.Elapsed != time.Second ||
			s.MeanQueue() < 134.99 || s.MeanQueue() > 135.01 {
			t.Errorf("%+v, a mean of %v", s, s.MeanQueue())
		}
		q.Restart()
		if s := q.Stats(); s != (BottleneckStats{}) {
			t.Errorf("after Restart: %+v", s)
		}
	})
}
