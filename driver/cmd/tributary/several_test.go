package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/reduction"
)

// TestReduceSeveralCards sums through several cards, with the same bits as through one.
func TestReduceSeveralCards(t *testing.T) {
	workers := gradientFiles(t)
	workFolder(t)
	run := func(out string, flags ...string) said {
		return tributary(context.Background(), append(append([]string{"reduce", "-o", out}, flags...), workers...)...)
	}
	require.Equal(t, 0, run("one.npy", "-card", "cpu:").status)
	want := readArray(t, "one.npy")
	for name, flags := range map[string][]string{
		"two":      {"-card", "cpu:", "-card", "cpu:", "-verify"},
		"schedule": {"-card", "model:", "-card", "cpu:", "-schedule", "0,1,1", "-chunk", "16"},
		"move":     {"-card", newDyingCard(t), "-card", "cpu:lanes=4,workers=4", "-card", "model:lanes=4,workers=4", "-move"},
	} {
		t.Run(name, func(t *testing.T) {
			s := run(name+".npy", flags...)
			require.Equal(t, 0, s.status, s.errs)
			sameArray(t, want, readArray(t, name+".npy"))
			if name == "move" {
				require.Contains(t, s.errs, "its chunks move to the other cards")
			}
		})
	}
	s := run("dead.npy", "-card", newDyingCard(t), "-card", "cpu:lanes=4,workers=4")
	require.Equal(t, 1, s.status)
	require.NoFileExists(t, "dead.npy")
}

// TestReduceSeveralCardsFindsExceptions names the first NaN, which the second card counts.
func TestReduceSeveralCardsFindsExceptions(t *testing.T) {
	workFolder(t)
	values := make([]float32, 40)
	writeArray(t, "zeros.npy", float32s([]int{40}, values...))
	nan := values[0] / values[0]
	values[39], values[11], values[12] = nan, nan, nan // chunks 9, 2 and 3
	writeArray(t, "nans.npy", float32s([]int{40}, values...))
	s := tributary(context.Background(), "reduce", "-json", "-card", "cpu:lanes=4", "-card", "cpu:lanes=4", "-chunk", "4", "-o", "sum.npy", "zeros.npy", "nans.npy")
	require.Equal(t, 0, s.status, s.errs)
	var report reduction.Report
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	x := report.Exceptions.NonfiniteIn
	require.EqualValues(t, 3, x.Count)
	require.Equal(t, []int{2, 1, 11}, []int{*x.Chunk, *x.Worker, *x.Element})
	require.EqualValues(t, 3, report.Exceptions.NonfiniteOut.Count)
}
