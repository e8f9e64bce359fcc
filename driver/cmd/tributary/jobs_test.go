package main

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver"
)

// TestEveryJobIsShown checks info and top on a card with a running job, an ended job with an
// infinity, and two unused job numbers.
func TestEveryJobIsShown(t *testing.T) {
	ctx := context.Background()
	card, err := driver.Open(ctx, newCardOf(t, 4, nil, straight))
	require.NoError(t, err)
	defer card.Close()
	configure := func(cfg driver.JobConfig) *driver.Job {
		job, err := card.Configure(ctx, cfg)
		require.NoError(t, err)
		return job
	}
	stays := configure(driver.JobConfig{Ports: []int{0, 1, 3}})
	ends := configure(driver.JobConfig{Workers: 1, FirstVID: 7})
	in := make([]float32, 20)
	in[13] = float32(math.Inf(1))
	require.NoError(t, ends.Reduce(ctx, make([]float32, 20), [][]float32{in}))
	require.NoError(t, ends.Close(ctx))
	require.Zero(t, stays.Number())

	info, err := readInfo(ctx, card, func(s driver.JobState) bool { return s.EverSetUp })
	require.NoError(t, err)
	info.Card, info.Cycles = "model:", 0
	for i := range 2 {
		info.JobStates[i].LastEpoch = 7 // the first epoch is random
	}
	late := []driver.Lags{{0: 700, 1: 300}, {1: 600, 3: 300, 7: 100}, {15: 1000}}
	info.JobStates[0].Lags, info.JobStates[0].Evicted = late, []int{2}
	var text, script strings.Builder
	require.NoError(t, info.print(&text))
	require.NoError(t, printJSON(&script, info.JobStates))
	reading, err := takeReading(ctx, card, nil)
	require.NoError(t, err)
	reading.Card, reading.Cycles, reading.Owner = "model:", 0, ""
	reading.JobStates[0].Lags, reading.JobStates[0].Evicted = append(late, late...), []int{2}
	reading.Staged.Deadline, reading.Staged.Partial = 2_000_000, true
	upTo := func(text, what string) string { return text[:strings.Index(text, what)] }
	golden(t, filepath.Join("testdata", "jobs.txt"), transcript([]string{"info"}, said{out: upTo(text.String(), "counters")})+
		transcript([]string{"info", "-json"}, said{out: script.String()})+
		transcript([]string{"top"}, said{out: upTo(strings.Join(reading.lines("now"), "\n"), "counter ")}))
}
