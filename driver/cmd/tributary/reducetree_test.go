package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/reduction"
	"tributary/driver/virtual/udp"
)

// serveTreeCard runs a card with an up port at an address of this machine, and returns its name.
func serveTreeCard(t *testing.T, name string) string {
	t.Helper()
	socket, err := udp.Listen(udp.OwnLoopback() + ":0")
	require.NoError(t, err)
	card, err := driver.NewNetworkCard(name, socket.Address(), 1)
	require.NoError(t, err)
	return serveAt(t, socket, card)
}

func writeTree(t *testing.T, text string, args ...any) {
	t.Helper()
	require.NoError(t, os.WriteFile("tree.json", fmt.Appendf(nil, text, args...), 0o666))
}

// TestReduceThroughATree sums through a root and a card below it.
func TestReduceThroughATree(t *testing.T) {
	workFolder(t)
	root, leaf := serveTreeCard(t, "model:parent=true"), serveTreeCard(t, "model:parent=true")
	writeTree(t, `{"cards": [{"card": %q, "parent": %q, "inputs": ["w0.npy"]}, {"card": %q, "inputs": ["w1.npy"]}]}`, leaf, root, root)
	s := tributary(context.Background(), "reduce", "-tree", "tree.json", "-verify", "-carry-on", "30s", "-o", "sum.npy")
	require.Equal(t, said{0, "sum.npy: the sum of 2 workers' 6 elements, every bit of the sum as in the Go model\n", ""}, s)
	sameArray(t, float32s([]int{2, 3}, 11, 22, 33, 44, 55, 66), readArray(t, "sum.npy"))

	plain := serveTreeCard(t, "model:")
	writeTree(t, `{"cards": [{"card": %q, "parent": %q, "inputs": ["w0.npy"]}, {"card": %q, "inputs": ["w1.npy"]}]}`, plain, root, root)
	s = tributary(context.Background(), "reduce", "-tree", "tree.json", "-o", "other.npy")
	require.Equal(t, said{2, "", "tributary reduce: -tree: card " + plain + " has no up port, which each card of a tree needs; generate it with -parent\nSee: tributary reduce -h\n"}, s)
	require.NoFileExists(t, "other.npy")
}

// TestStatsOfATree: -stats has the figures of each card. Four chunks of two beats pass. The root sums each
// once; the leaf sums each, sends the sum up, and passes the final one through its lanes. The NaN of the
// leaf's worker is in a chunk of the leaf's contributions, and in one of the root's.
func TestStatsOfATree(t *testing.T) {
	workFolder(t)
	writeArray(t, "long.npy", float32s([]int{61}, make([]float32, 61)...))
	writeArray(t, "nan.npy", float32s([]int{61}, append(make([]float32, 60), float32(math.NaN()))...))
	root, leaf := serveTreeCard(t, "model:parent=true,lanes=8"), serveTreeCard(t, "model:parent=true,lanes=8")
	writeTree(t, `{"cards": [{"card": %q, "inputs": ["long.npy"]}, {"card": %q, "parent": %q, "inputs": ["nan.npy"]}]}`, root, leaf, root)
	line := []string{"reduce", "-tree", "tree.json", "-chunk", "16", "-stats", "-o", "sum.npy"}
	s := tributary(context.Background(), line...)
	require.Equal(t, 0, s.status, s.errs)
	require.Contains(t, s.errs, "2 chunks of the inputs, and of the sums of cards below, hold a NaN or an infinity; the first in chunk 3: element 60 in nan.npy\n")
	require.Regexp(t, `(?s)chunks +4 of 16 elements.*congestion +0 results.*\n\n  card +parent +beats +sent up +up again +results again +damaged\n`+
		`  `+root+` +- +8 +0 +0 +\d+ +0\n  `+leaf+` +`+root+` +16 +\d+ +\d +\d+ +0\n$`, s.out)
	require.NotContains(t, s.out, "bits a cycle")
	require.NotContains(t, s.out, "\n  beats  ")

	s = tributary(context.Background(), append(line, "-json")...)
	require.Equal(t, 0, s.status, s.errs)
	var report reduction.Report
	require.NoError(t, json.Unmarshal([]byte(s.out), &report))
	stats, cards := report.Stats, report.Stats.Cards
	require.Len(t, cards, 2)
	require.Equal(t, []string{root, "", leaf, root}, []string{cards[0].Card, cards[0].Parent, cards[1].Card, cards[1].Parent})
	require.Equal(t, []uint32{4, 8, 8, 16}, []uint32{stats.Chunks, stats.Beats, cards[0].Beats, cards[1].Beats})
	require.EqualValues(t, 0, cards[0].SentUp)
	require.True(t, cards[1].SentUp >= 4 && cards[1].SentUp <= 4+cards[1].RepeatedUp, cards[1])
	require.Equal(t, stats.Replays, cards[0].Replays+cards[1].Replays)
	require.True(t, cards[0].Cycles > 0 && cards[1].Cycles > 0 && stats.LinkBound == 0, stats)
	require.EqualValues(t, 2, report.Exceptions.NonfiniteIn.Count)

	s = tributary(context.Background(), "reduce", "-card", "model:", "-stats", "-json", "-o", "sum.npy", "nan.npy")
	require.Equal(t, 0, s.status, s.errs)
	require.Contains(t, s.errs, "1 chunk of the inputs holds a NaN")
	require.NotContains(t, s.out, `"cards"`)
	require.NotContains(t, s.out, `"link_bound": 0,`)
}

// TestTreeFileErrors: a file that is no tree is refused before a card is opened.
func TestTreeFileErrors(t *testing.T) {
	workFolder(t)
	for text, want := range map[string]string{
		`{"cards": [`:                                                    "line 1: unexpected EOF",
		"{\"cards\": [\n{\"kard\": \"udp:a\"}]}":                         `line 2: json: unknown field "kard"`,
		`{"cards": []} 1`:                                                "more after the end",
		`{"cards": []}`:                                                  "names no inputs",
		`{"cards": [{"inputs": ["w0.npy"]}]}`:                            "card 1 has no name",
		`{"cards": [{"card": "a"}, {"card": "a"}]}`:                      "card a is there twice",
		`{"cards": [{"card": "a"}, {"card": "b"}]}`:                      "cards a and b have no parent",
		`{"cards": [{"card": "a", "parent": "c"}]}`:                      "card a has the parent c, which is not in the file",
		`{"cards": [{"card": "a", "parent": "a"}]}`:                      "card a is its own parent",
		`{"cards": [{"card": "a"}]}`:                                     "names no inputs",
		`{"cards": [{"card": "a", "workers": 2}]}`:                       "card a has 2 workers and no inputs",
		`{"cards": [{"card": "a", "workers": -1}]}`:                      "card a has -1 workers and 0 inputs",
		`{"cards": [{"card": "a", "workers": 2, "inputs": ["w0.npy"]}]}`: "card a has 2 workers and 1 inputs",
		`{"cards": [{"card": "a", "parent": "b"}, {"card": "b", "parent": "a"}, {"card": "c"}]}`: "card b is its own parent, through others",
	} {
		writeTree(t, "%s", text)
		s := tributary(context.Background(), "reduce", "-tree", "tree.json", "-o", "sum.npy")
		assert.Equal(t, 2, s.status, text)
		assert.True(t, strings.HasPrefix(s.errs, "tributary reduce: -tree tree.json: "), s.errs)
		assert.Contains(t, s.errs, want)
	}
	writeTree(t, `{"cards": [{"card": "udp:127.0.0.1", "inputs": ["w0.npy"]}]}`)
	for _, args := range []string{"w1.npy", "-card cpu:", "-record link", "-ports 1", "-partial -deadline 1s"} {
		s := tributary(context.Background(), append([]string{"reduce", "-tree", "tree.json", "-o", "sum.npy"}, strings.Fields(args)...)...)
		assert.Equal(t, 2, s.status, args)
		assert.Contains(t, s.errs, "leave ", args)
	}
	s := tributary(context.Background(), "reduce", "-tree", "none.json", "-o", "sum.npy")
	assert.Equal(t, 1, s.status, s.errs)
	assert.Contains(t, s.errs, "-tree open none.json: no such file")
}
