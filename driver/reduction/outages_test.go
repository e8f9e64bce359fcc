package reduction

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOutagesArriveLate: the driver may report an outage after the calls of the job have returned.
// The report lacked it then, and the race detector saw both.
func TestOutagesArriveLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newOutageLog()
		log.add(Outage{Chunk: 1})
		go func() {
			time.Sleep(time.Second)
			log.add(Outage{Chunk: 2})
		}()
		all, err := log.await(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, []Outage{{Chunk: 1}, {Chunk: 2}}, all)
	})
}

// TestContextEndsTheWaitForOutages checks that a context ends the wait.
func TestContextEndsTheWaitForOutages(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log := newOutageLog()
	_, err := log.await(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
}
