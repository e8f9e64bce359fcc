package tables

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

var update = flag.Bool("update", false, "rewrite the printed files")

func TestCommittedFilesAreTheTables(t *testing.T) {
	for path, print := range Committed {
		file := filepath.Join("..", "..", path)
		if *update {
			require.NoError(t, os.WriteFile(file, print(), 0o644))
		}
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(print()), string(got), "%s is not what the tables print; run: go test ./hwgen/tables -update", path)
	}
}

// Everything depends on the tables, so this test checks their own rules: fields adjoin,
// numbers are unique, addresses rise.
func TestTablesAreConsistent(t *testing.T) {
	next := 0
	for _, f := range wire.Fields {
		require.Equal(t, next, f.Bit, "field %s", f.Name)
		next += f.Bits
	}
	require.Equal(t, 8*wire.MaxHeaderBytes, next)

	kinds := map[wire.Kind]bool{}
	for _, k := range wire.Kinds {
		require.False(t, kinds[k.Kind], "kind %s", k.Name)
		kinds[k.Kind] = true
		require.Equal(t, k.Kind >= 8, k.FromCard, "kind %s", k.Name)
		require.Zero(t, k.FrameBytes(0)%2, "kind %s", k.Name)
	}
	codes := map[wire.Code]bool{}
	for _, c := range wire.Codes {
		require.False(t, codes[c.Code], "code %s", c.Name)
		codes[c.Code] = true
	}
	last := -8
	for _, r := range wire.Registers {
		require.Greater(t, int(r.Addr), last, "register %s", r.Name)
		require.Zero(t, r.Addr%8, "register %s", r.Name)
		last = int(r.Addr)
		within := r.Addr < wire.CounterBase
		if r.PerJob() {
			within = r.Addr < wire.JobAddr(wire.JobBase, 1)
		}
		require.True(t, within, "register %s stands among the counters or another job's", r.Name)
	}
	require.LessOrEqual(t, wire.CounterAddr(len(wire.Counters)), wire.JobBase)
	for _, c := range wire.Counters {
		require.True(t, (c.Refuse != 0) != (c.Doc != ""), "counter %s has either a refusal or a text", c.Name)
	}
	magic := ""
	for i := 0; i < 8; i++ {
		magic += string(rune(wire.Magic >> (8 * i) & 0xff))
	}
	require.Equal(t, "TRIBUTRY", magic)
}
