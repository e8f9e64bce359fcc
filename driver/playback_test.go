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

// fixedRandom stands in for crypto/rand where a recording is played back: the
// token and the epoch are part of it.
const fixedRandom = "tokenoften"

// session is everything that a program does with a card. asked tells that the
// machine was so busy that a result came late and was asked for, which a
// recording must not hold.
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

// recording returns the log of a session in which nothing was asked for.
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

// TestRecordAndPlayback: a session is recorded, and played back without a card,
// byte for byte, to its end.
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

// TestPlaybackMustBeUsedUp: a program that does less than was recorded is told.
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
