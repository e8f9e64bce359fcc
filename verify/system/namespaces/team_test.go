//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/daemon"
)

// TestMain is also a worker process.
func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// serveModel runs a daemon with a model card until the test ends, and returns the daemon's name and the
// card.
func serveModel(t *testing.T, card string) (string, *driver.Card) {
	t.Helper()
	shared, err := driver.Open(t.Context(), card)
	require.NoError(t, err)
	address := "unix:" + filepath.Join(t.TempDir(), "s")
	listener, err := daemon.Listen(t.Context(), address)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	server := daemon.New(map[string]daemon.Card{"card": shared}, daemon.Options{})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, 0) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
	return "serve:" + address, shared
}

// seat starts four worker processes, and seats them.
func seat(t *testing.T, daemon string) (*team, error) {
	t.Helper()
	var workers []*program
	for rank := range hosts {
		cmd := command(t.Context(), []string{os.Args[0]})
		cmd.Env = append(os.Environ(), roleVariable+"=worker")
		w, err := start(fmt.Sprintf("worker %d", rank), cmd)
		require.NoError(t, err)
		workers = append(workers, w)
	}
	return newTeam(t.Context(), workers, daemon, 1000)
}

// TestTeam: four worker processes sum, and each of them finishes the job.
func TestTeam(t *testing.T) {
	name, card := serveModel(t, "model:workers=4")
	team, err := seat(t, name)
	require.NoError(t, err)
	for round := range 3 {
		require.NoError(t, team.reduce(t.Context(), round+1))
	}
	require.NoError(t, team.finish())
	counted, err := card.Counters(t.Context())
	require.NoError(t, err)
	at := slices.IndexFunc(counted, func(c driver.Counter) bool { return c.Name == "finishes" })
	require.NotEqual(t, -1, at)
	assert.GreaterOrEqual(t, int(counted[at].Value), hosts) // a slow machine repeats some
	jobs, err := card.Jobs(t.Context())
	require.NoError(t, err)
	assert.True(t, jobs[0].EverSetUp && !jobs[0].SetUp, "the job is over: all have finished")
}

// TestWorkersOutliveTheirJob: a worker that ended when it had finished took its namespace along, and the
// TAP device there. The card died of that before all others had finished.
func TestWorkersOutliveTheirJob(t *testing.T) {
	name, _ := serveModel(t, "model:workers=4")
	team, err := seat(t, name)
	require.NoError(t, err)
	require.NoError(t, team.reduce(t.Context(), 1), "the job has begun for all")
	require.NoError(t, team.finish())
	require.NoError(t, team.finish(), "a worker is gone")
	for _, w := range team.workers {
		require.NoError(t, w.in.Close())
		require.NoError(t, w.cmd.Wait())
	}
}

// TestWrongSum: a card that rounds once has other bits than the model of a tree, and the demo notices.
func TestWrongSum(t *testing.T) {
	name, _ := serveModel(t, "model:workers=4,sum=fused")
	team, err := seat(t, name)
	require.NoError(t, err)
	assert.ErrorContains(t, team.reduce(t.Context(), 1), "reduction 1, worker 0: element ")
	require.NoError(t, team.finish())
}

// TestDeadWorker: the demo names a worker that has died.
func TestDeadWorker(t *testing.T) {
	name, _ := serveModel(t, "model:workers=4")
	team, err := seat(t, name)
	require.NoError(t, err)
	require.NoError(t, team.workers[2].cmd.Process.Kill())
	_, err = team.hear(2)
	assert.EqualError(t, err, "worker 2 ended: signal: killed")
}

// TestNoDaemon: a worker's own words are in the error.
func TestNoDaemon(t *testing.T) {
	_, err := seat(t, "serve:unix:"+filepath.Join(t.TempDir(), "nobody"))
	assert.ErrorContains(t, err, "worker 0 ended: exit status 1: demo-net: ")
}

// TestSameBits: one wrong bit is an error, and so is a missing element.
func TestSameBits(t *testing.T) {
	sum := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}
	assert.NoError(t, sameBits(sum, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}))
	assert.EqualError(t, sameBits(sum, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}), "element 1 of the sum is 00000040, the model's 000000c0")
	assert.EqualError(t, sameBits(sum[:4], sum), "the sum has 4 bytes, the model's 8")
}

// TestContributions: ranks and rounds have arrays of their own, so an old result or another rank's array
// cannot pass for the right one.
func TestContributions(t *testing.T) {
	seen := map[string]bool{}
	for rank := range hosts {
		for round := range 5 {
			array := contribution(rank, round, 8)
			assert.Len(t, array, 32)
			seen[string(array)] = true
		}
	}
	assert.Len(t, seen, hosts*5)
}
