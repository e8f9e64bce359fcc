package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/reduction"
	"tributary/driver/wire"
)

// withoutDataOf returns a card that loses the data of a rank.
func withoutDataOf(t *testing.T, rank uint8) string {
	return newCard(t, func(f *frame.Frame) bool { return f.Kind != wire.KindData || f.Rank != rank }, straight)
}

// TestReducePartial checks that missing workers are left out and reported, and that the mean covers
// the others.
func TestReducePartial(t *testing.T) {
	workFolder(t)
	args := []string{"reduce", "-card", withoutDataOf(t, 1), "-deadline", "20ms", "-partial", "-o", "sum.npy", "w0.npy", "w1.npy"}
	s := tributary(context.Background(), args...)
	require.Equal(t, 0, s.status, s.errs)
	require.Contains(t, s.errs, "warning: 6 of 6 elements of the sum lack w1.npy, which came too late; the first is ")
	sameArray(t, float32s([]int{2, 3}, 1, 2, 3, 4, 5, 6), readArray(t, "sum.npy"))

	args[2] = withoutDataOf(t, 1)
	s = tributary(context.Background(), append(args, "-op", "mean", "-json")...)
	require.Equal(t, 0, s.status, s.errs)
	var report reduction.Report
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	require.Equal(t, []reduction.PartialIn{{From: 0, To: 6, Workers: []int{0}}}, report.Partial)
	sameArray(t, float32s([]int{2, 3}, 1, 2, 3, 4, 5, 6), readArray(t, "sum.npy"))
}

// TestReduceEvicts checks that a worker that blocks the others is evicted in the end.
func TestReduceEvicts(t *testing.T) {
	workFolder(t)
	writeArray(t, "v0.npy", float32s([]int{100}, make([]float32, 100)...))
	writeArray(t, "v1.npy", float32s([]int{100}, make([]float32, 100)...))
	s := tributary(context.Background(), "reduce", "-card", withoutDataOf(t, 0), "-deadline", "20ms", "-partial", "-json", "-o", "sum.npy", "v0.npy", "v1.npy")
	require.Equal(t, 0, s.status, s.errs)
	require.Contains(t, s.errs, "warning: v0.npy was evicted: it blocked the others for a second deadline\n")
	var report reduction.Report
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	require.Equal(t, []int{0}, report.Evicted)
	require.Equal(t, []reduction.PartialIn{{From: 0, To: 100, Workers: []int{1}}}, report.Partial)
}

// TestReduceOverdue checks that without -partial, the missing worker is reported once, and the
// reduction waits.
func TestReduceOverdue(t *testing.T) {
	workFolder(t)
	s := tributary(context.Background(), "reduce", "-card", withoutDataOf(t, 1), "-deadline", "20ms", "-timeout", "2s", "-o", "sum.npy", "w0.npy", "w1.npy")
	require.Equal(t, 4, s.status, s.errs)
	require.Regexp(t, `^tributary reduce: chunk 0 waits for worker 1\ntributary reduce: .*for rank 1; .*\n$`, s.errs)
}
