package daemon_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/daemon"
)

// TestIdleCardReturns: the card of a daemon without jobs goes and comes back. The metrics follow. A job that
// is made meanwhile waits for the card, and one whose time to wait is too short ends.
func TestIdleCardReturns(t *testing.T) {
	ctx := testContext(t)
	card := newFragile(t)
	told := make(chan *driver.DiedError, 2)
	opened, err := driver.Open(ctx, card.name, driver.WithReopen(func(away *driver.DiedError) { told <- away }))
	if err != nil {
		t.Fatal(err)
	}
	path := socket(t)
	s, _, _ := serveCardOn(t, "unix:"+path, opened, daemon.Options{})
	c := open(t, path)
	up := `tributary_card_up{card="card"}`
	for range 3 {
		awaitMetric(t, s, up, 1)
		card.leave()
		if died := <-told; died == nil {
			t.Fatal("the card has not gone")
		}
		awaitMetric(t, s, up, 0)
		soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		if err := s.Ready(soon); err == nil {
			t.Error("a daemon without its card is ready")
		}
		cancel()
		var died *driver.DiedError
		_, err := c.Configure(ctx, driver.JobConfig{Workers: 1, Wait: 50 * time.Millisecond})
		for wait := 100 * time.Millisecond; !errors.As(err, &died); wait *= 2 { // on a busy machine it may be over before its member joins
			if err == nil || ctx.Err() != nil {
				t.Fatalf("a job that the card does not return for: %v", err)
			}
			_, err = c.Configure(ctx, driver.JobConfig{Workers: 1, Wait: wait})
		}
		made := make(chan error, 1)
		go func() {
			j, err := c.Configure(ctx, driver.JobConfig{Workers: 2})
			if err == nil {
				sum := make([]float32, 100)
				if err = j.Reduce(ctx, sum, [][]float32{ramp(100, 1), ramp(100, 2)}); err == nil {
					check(t, "sum", sum, 3)
					err = j.Close(ctx)
				}
			}
			made <- err
		}()
		awaitMetric(t, s, `tributary_jobs{card="card",state="starting"}`, 1)
		card.back()
		if died := <-told; died != nil {
			t.Fatalf("the card has gone again: %v", died)
		}
		if err := <-made; err != nil {
			t.Error(err)
		}
	}
}
