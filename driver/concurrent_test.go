package driver_test

// Goroutines that use one card at the same time.

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"tributary/driver"
)

// TestConfigureBesideCounters gives the race detector something to check.
func TestConfigureBesideCounters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := openSmall(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 20 {
				if _, err := card.Counters(testContext(t)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 100 {
				if _, err := card.Configure(testContext(t), driver.JobConfig{}); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Wait()
	})
}

// TestConfigureSideBySide has goroutines replace each other's job. Each must get its own job's
// sum, or learn at once that its job was replaced. None may wait for a job that the card does
// not have.
func TestConfigureSideBySide(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := openSmall(t)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				cfg := driver.JobConfig{Workers: g + 1, Chunk: 16 >> (g % 3), Window: 4 >> (g % 3)}
				in := arrays(uint64(g), g+1, 300)
				want := treeSum(in, firstPorts(g+1), 4)
				for range 30 {
					start := time.Now()
					job, err := card.Configure(testContext(t), cfg)
					if err != nil {
						t.Errorf("configure: %v", err)
						return
					}
					dst := make([]float32, 300)
					var ended *driver.EndedError
					switch err := job.Reduce(testContext(t), dst, in); {
					case err == nil && !slices.EqualFunc(dst, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }):
						t.Errorf("%d workers: a wrong sum", g+1)
					case err != nil && !errors.As(err, &ended):
						t.Errorf("reduce: %v", err)
					}
					if took := time.Since(start); took > driver.DefaultTimeout/2 && !inRealTime(t) {
						t.Errorf("it took %s", took)
					}
				}
			})
		}
		wg.Wait()
		reuse(t, card)
	})
}

// TestResetBesideConfigure checks that a reset does not come between the steps of a set-up.
func TestResetBesideConfigure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		card := openSmall(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 50 {
				if err := card.Reset(testContext(t)); err != nil {
					t.Errorf("reset: %v", err)
				}
			}
		})
		wg.Go(func() {
			for range 50 {
				if _, err := card.Configure(testContext(t), driver.JobConfig{}); err != nil {
					t.Errorf("configure: %v", err)
				}
			}
		})
		wg.Wait()
		reuse(t, card)
	})
}
