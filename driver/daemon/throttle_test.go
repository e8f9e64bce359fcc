package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestThrottle reads a second's bytes beyond the burst: they take a second. The end of the session ends
// a wait.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, end := context.WithCancelCause(context.Background())
		waited := 0.0
		reader := &throttled{
			conn: bytes.NewReader(make([]byte, 1110)), over: over, waited: func(s float64) { waited += s },
			all: newAllowance(1000, 10), waste: newAllowance(1<<20, 1<<20),
		}
		since := time.Now()
		if n, err := io.CopyN(io.Discard, reader, 1010); n != 1010 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		if d := time.Since(since).Round(time.Millisecond); d != time.Second {
			t.Errorf("1010 bytes at 1000 a second, 10 at once, take %s", d)
		}
		if waited < 0.999 || waited > 1.001 {
			t.Errorf("waited %g s", waited)
		}
		ended := errors.New("ended")
		end(ended)
		if _, err := reader.Read(make([]byte, 100)); !errors.Is(err, ended) {
			t.Errorf("got %v", err)
		}
	})
}

// TestThrottleWaste reads bytes of which some are used. The others are limited; the rest of an incomplete
// frame counts once.
func TestThrottleWaste(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := &throttled{
			conn: bytes.NewReader(make([]byte, 1<<20)), over: context.Background(), waited: func(float64) {},
			all: newAllowance(1<<30, 1<<20), waste: newAllowance(1000, 100),
		}
		read := func(used int) time.Duration {
			since := time.Now()
			if n, err := reader.Read(make([]byte, 500)); n != 500 || err != nil {
				t.Errorf("got %d, %v", n, err)
			}
			reader.use(used)
			return time.Since(since).Round(time.Millisecond)
		}
		for range 1000 {
			if d := read(500); d != 0 {
				t.Fatalf("a client whose bytes are all used waits for %s", d)
			}
		}
		for i, step := range []struct {
			used int
			want time.Duration
		}{{450, 0}, {500, 0}, {500, 0}, {500, 0}, {0, 0}, {500, 450 * time.Millisecond}, {500, 0}} {
			if d := read(step.used); d != step.want {
				t.Errorf("read %d waits for %s, not %s", i, d, step.want)
			}
		}
	})
}
