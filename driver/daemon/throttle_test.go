package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// TestThrottle reads a second's bytes beyond the burst: they take a second. The end of the session ends
// a wait.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, end := context.WithCancelCause(context.Background())
		waited := 0.0
		reader := &throttled{
			conn: bytes.NewReader(make([]byte, 1110)), over: over, burst: 10,
			rate: rate.NewLimiter(1000, 10), waited: func(s float64) { waited += s },
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
