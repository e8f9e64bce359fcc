package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var known = config.Known{
	Formats:    []string{"fp32", "bf16", "fp16", "fp8e4m3", "fp8e5m2", "int32"},
	Sums:       []string{"tree", "fused", "least"},
	DSP:        []string{"fused"},
	Saturating: []string{"tree", "fused"},
	Shells:     []string{"stream", "none"},
	Linked:     []string{"stream"},
	Boards: []config.Board{{
		Name: "bench", Links: []config.BoardLink{{Shell: "stream", Bits: 8}}, Clock: 40,
		CheckClock: func(mhz int) error {
			if mhz < 1 || mhz > 200 {
				return fmt.Errorf("%d MHz: no", mhz)
			}
			return nil
		},
		Largest: func(c config.Config, fixed map[string]bool) (config.Config, bool) {
			if c.Sum != "fused" || fixed["workers"] && c.Workers != 6 {
				return c, false
			}
			c.Lanes, c.Workers, c.Chunk, c.Clock = 2, 6, 64, 50
			return c, true
		},
	}, {Name: "other"}},
}

func parse(t *testing.T, line string) config.Options {
	t.Helper()
	o, err := config.Parse(strings.Fields(line), known)
	require.NoError(t, err, line)
	return o
}

func TestDefaults(t *testing.T) {
	o := parse(t, "")
	assert.Equal(t, config.Config{
		Lanes: 16, Workers: 4, Format: "fp32", Result: "fp32", Sum: "tree", Shell: "stream",
		Chunk: 256, Window: 8, Jobs: 1, Link: 32, Prefix: "agg",
	}, o.Config)
	assert.Equal(t, "tributary_l16_w4_fp32_tree", o.Dir)
}

// One dash or two, a value after a blank or an equals sign: all forms are equivalent.
func TestSpellings(t *testing.T) {
	want := parse(t, "-lanes 8 -shell none -o card -bundle")
	for _, line := range []string{
		"--lanes 8 --shell none --o card --bundle",
		"-lanes=8 --shell=none -o=card -bundle",
		"-bundle -o card -shell=none --lanes=8",
	} {
		assert.Equal(t, want, parse(t, line), line)
	}
	assert.Equal(t, 8, want.Lanes)
	assert.Equal(t, "card", want.Dir)
	assert.True(t, want.Bundle)
	assert.Equal(t, config.RegPortAXIL, want.RegPort, "the default of shell none")
	assert.Equal(t, config.RegPortBus, parse(t, "-shell none -registers bus").RegPort)
	assert.Zero(t, want.Link, "shell none has no link")
}

// The default chunk has two beats for each worker and eight in all if they fit into a frame, so that
// there is no bubble between chunks: the card commits a packet every second cycle.
func TestDefaultChunkAdapts(t *testing.T) {
	for line, chunk := range map[string]int{
		"-lanes 16 -workers 8":              256,
		"-lanes 16 -workers 9":              512,
		"-lanes 16 -workers 16":             512,
		"-lanes 64 -workers 64":             512, // 1,024 elements do not fit into a frame
		"-lanes 64 -workers 64 -shell none": 8192,
		"-lanes 64 -workers 1":              512,
		"-lanes 1 -workers 1":               256,
	} {
		assert.Equal(t, chunk, parse(t, line).Chunk, line)
	}
}

// A board decides the shell, the link and, without -clock, the clock. Without -lanes, the
// sizes are those of a recorded card.
func TestBoardDecides(t *testing.T) {
	c := parse(t, "-board bench -lanes 4").Config
	assert.Equal(t, []any{4, 4, 256, "stream", 8, 40}, []any{c.Lanes, c.Workers, c.Chunk, c.Shell, c.Link, c.Clock})
	assert.Equal(t, 100, parse(t, "-board bench -lanes 4 -clock 100").Clock)
	assert.Equal(t, "tributary_bench_l4_w4_fp32_tree", parse(t, "-board bench -lanes 4").Dir)

	c = parse(t, "-board bench -sum fused").Config
	assert.Equal(t, []any{2, 6, 64, 50}, []any{c.Lanes, c.Workers, c.Chunk, c.Clock})
	assert.Equal(t, 6, parse(t, "-board bench -sum fused -workers 6").Workers)
}

func TestListingComesFirst(t *testing.T) {
	assert.True(t, parse(t, "-list-boards -lanes 3").Boards)
}

// The command in a card's files makes the same card, in any folder.
func TestCommandMakesTheSameCard(t *testing.T) {
	for _, line := range []string{
		"",
		"-lanes 64 -workers 64",
		"-shell none -window 1 -prefix left -bundle -strip-formal",
		"-link 8 -chunk 512 -o elsewhere -dry-run -json",
		"-board bench -lanes 2 -clock 60",
		"-board bench -sum fused",
	} {
		o := parse(t, line)
		command, ok := strings.CutPrefix(o.Command(), "hwgen ")
		require.True(t, ok)
		assert.Equal(t, o.Config, parse(t, command).Config, line)
		assert.NotContains(t, command, "elsewhere")
	}
}

func TestHelpAndVersionComeFirst(t *testing.T) {
	for _, line := range []string{"-h", "--h", "-help", "--help", "-lanes 3 -h", "-nonsense -help"} {
		assert.True(t, parse(t, line).Help, line)
	}
	assert.True(t, parse(t, "-version").Version)
}

// The error of a wrong command line lists all its mistakes.
func TestErrors(t *testing.T) {
	cases := []string{
		"-lanes 3", "-lanes 0", "-lanes 128", "-lanes -4", "-lanes x", "-lanes 1e3", "-lanes", "-lanes=",
		"-workers 0", "-workers 65",
		"-format half", "-format FP32", "-sum exact",
		"-result fp64", "-format bf16 -result fp16", "-result bf16", "-format int32 -result fp32", "-format fp8e5m2 -result fp8e4m3", "-format half -result fp32", "-format half -result fp64", "-result=", "-result",
		"-saturate", "-dsp", "-format int32 -sum fused -dsp", "-saturate -dsp -format bf16 -sum exact", "-saturate=yes",
		"-format int32 -sum least -saturate", "-sum least -saturate -dsp -lanes 3",
		"-format fp8e4m3 -result fp32 -chunk 1024", "-format fp8e4m3 -chunk 4096", "-shell udp",
		"-chunk 0", "-chunk 24", "-chunk 1024", "-chunk -16", "-shell none -chunk 65536", "-lanes 64 -chunk 1000",
		"-window 3", "-window 0", "-window 2048",
		"-jobs 3", "-jobs 0", "-jobs 32",
		"-link 24", "-shell none -link 32", "-registers axil", "-shell none -registers wishbone",
		"-prefix 9", "-prefix a-b", "-prefix=", "-prefix abcdefghijklmnopqrstuvwxyz",
		"-board mine", "-board=", "-clock 40", "-board bench -lanes 4 -clock 999", "-board bench -clock 999", "-board bench -lanes 4 -clock fast",
		"-board bench", "-board bench -sum fused -workers 5", "-board bench -lanes 3",
		"-board bench -lanes 4 -shell none -link 32 -bundle",
		"-o=",
		"-nonsense", "-nonsense 5", "--nonsense=5", "-bundle=yes", "card", "-lanes 16 32",
		"-lanes 3 -workers 0 -format half -result float -sum exact -saturate -dsp -shell udp -window 5 -jobs 9 -prefix - -frobnicate 7 -chunk many extra",
		"-lanes q -chunk 7",
	}
	var b strings.Builder
	for _, line := range cases {
		_, err := config.Parse(strings.Fields(line), known)
		require.Error(t, err, line)
		b.WriteString("hwgen " + line + "\n")
		for text := range strings.SplitSeq(err.Error(), "\n") {
			b.WriteString("    " + text + "\n")
		}
	}
	golden(t, "errors.txt", b.String())
}

func TestHelpText(t *testing.T) {
	golden(t, "help.txt", config.Help(known))
}

// golden compares text with a file in testdata, or writes it with -update.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), text)
}
