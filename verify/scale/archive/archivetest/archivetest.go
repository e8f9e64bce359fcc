// Package archivetest has the tests that the simulations of verify/scale share.
package archivetest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/config"
	"tributary/hwgen/emit"
	"tributary/hwgen/plan"
	"tributary/rtl"
	"tributary/verify/scale/archive"
)

// Cards compares the latency and the cycles of a chunk of cards with the manifests that hwgen writes for
// their commands, and returns these. target records anew.
func Cards(t *testing.T, cards map[string]archive.Card, target string) map[string]emit.Manifest {
	t.Helper()
	manifests := map[string]emit.Manifest{}
	for name, card := range cards {
		args := strings.Fields(card.Command)
		require.Equal(t, "hwgen", args[0])
		o, err := config.Parse(args[1:], plan.Known())
		require.NoError(t, err)
		p, err := plan.Build(o.Config)
		require.NoError(t, err)
		files, err := emit.Files(p, rtl.Files)
		require.NoError(t, err)
		var m emit.Manifest
		require.NoError(t, json.Unmarshal(files.Manifest(), &m))
		const advice = "%s: correct configuration.json, then run %s"
		assert.Equal(t, m.Latency, card.LatencyCycles, advice, name, target)
		assert.Equal(t, m.Throughput.ChunkCycles, card.ChunkCycles, advice, name, target)
		manifests[name] = m
	}
	return manifests
}

// Drawn compares page and figure in this folder with those that are drawn of the recorded results.
func Drawn(t *testing.T, page, picture, command string) {
	t.Helper()
	for name, drawn := range map[string]string{"RESULT.md": page, "result.svg": picture} {
		kept, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, string(kept), drawn, "%s -update draws %s anew", command, name)
	}
}
