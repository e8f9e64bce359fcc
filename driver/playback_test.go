package driver_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/driver/transport/record"
)

// fixedRandom replaces crypto/rand in a playback, because the recording contains the token and
// the epoch.
const fixedRandom = "tokenoften"

// session opens a card, reduces once and closes the card. asked reports that a result was late
// on a busy machine, so that the driver asked for it. A recording must not contain that.
func session(ctx context.Context, conn transport.Conn, opts ...driver.Option) (sum []float32, asked bool, err error) {
	opts = append(opts, driver.WithRandom(strings.NewReader(fixedRandom)))
	card, err := driver.OpenConn(ctx, "test", conn, opts...)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, card.Close()) }()
	job, err := card.Configure(ctx, driver.JobConfig{Workers: 3, Window: 2})
	if err != nil {
		return nil, false, err
	}
	sum = make([]float32, 100)
	err = errors.Join(job.Reduce(ctx, sum, arrays(5, 3, 100)), job.Close(ctx))
	return sum, job.Stats().Asked > 0, err
}

// recording returns the log of a session without asks.
func recording(t *testing.T) []byte {
	t.Helper()
	for {
		var log bytes.Buffer
		sum, asked, err := session(testContext(t), serve(t, small, 64<<10), driver.WithRecord(&log))
		if err != nil {
			t.Fatal(err)
		}
		sameBits(t, "recorded", sum, treeSum(arrays(5, 3, 100), firstPorts(3), 4))
		if !asked {
			return log.Bytes()
		}
	}
}

// TestRecordAndPlayback records a session and plays it back without a card. Every byte must be
// the same, up to the end.
func TestRecordAndPlayback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := recording(t)
		for {
			player, err := record.Playback(bytes.NewReader(log))
			if err != nil {
				t.Fatal(err)
			}
			sum, asked, err := session(testContext(t), player)
			if asked {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			sameBits(t, "played back", sum, treeSum(arrays(5, 3, 100), firstPorts(3), 4))
			return
		}
	})
}

// TestPlaybackMustBeUsedUp checks the error for a program that does less than the recording.
func TestPlaybackMustBeUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		player, err := record.Playback(bytes.NewReader(recording(t)))
		if err != nil {
			t.Fatal(err)
		}
		card, err := driver.OpenConn(testContext(t), "test", player, driver.WithRandom(strings.NewReader(fixedRandom)))
		if err != nil {
			t.Fatal(err)
		}
		var deviation *record.DeviationError
		if err := card.Close(); !errors.As(err, &deviation) {
			t.Errorf("close: %v", err)
		}
	})
}
