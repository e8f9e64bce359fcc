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
	Shells:     []string{"stream", "none", "udp", "roce"},
	Linked:     []string{"stream"},
	Networked:  []string{"udp", "roce"},
	Connected:  []string{"roce"},
	Boards: []config.Board{{
		Name: "bench", Links: []config.BoardLink{{Shell: "stream", Bits: 8, Clock: 40}},
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

// Only shell none has an up port, and the command names it.
func TestParent(t *testing.T) {
	c := parse(t, "-shell none -parent").Config
	assert.True(t, c.Parent)
	assert.Equal(t, "hwgen -lanes 16 -workers 4 -format fp32 -result fp32 -sum tree -chunk 256 -window 8 -jobs 1 "+
		"-shell none -registers axil -parent", c.Command())
	assert.False(t, parse(t, "-shell none").Parent)
}

// Shell udp has an address and Ethernet ports of 64 bits, unless the flags give others.
func TestNetworkDefaults(t *testing.T) {
	c := parse(t, "-shell udp").Config
	assert.Equal(t, config.Config{
		Lanes: 16, Workers: 4, Format: "fp32", Result: "fp32", Sum: "tree", Shell: "udp",
		Chunk: 256, Window: 8, Jobs: 1, Link: 64, Prefix: "agg",
		Ethernet: 1, MAC: 0x0254_5242_0001, IP: 192<<24 | 168<<16 | 84<<8 | 66, UDPPort: 21570,
	}, c)
	assert.Equal(t, "hwgen -lanes 16 -workers 4 -format fp32 -result fp32 -sum tree -chunk 256 -window 8 -jobs 1 "+
		"-shell udp -link 64 -ethernet 1 -mac 02:54:52:42:00:01 -ip 192.168.84.66 -udp-port 21570", c.Command())

	c = parse(t, "-mac 0A-00-00-00-00-FF -shell udp -ip 10.0.0.1 -udp-port 65535 -ethernet 16").Config
	assert.Equal(t, []any{uint64(0x0a00_0000_00ff), uint32(10<<24 | 1), 65535, 16}, []any{c.MAC, c.IP, c.UDPPort, c.Ethernet})

	c = parse(t, "-shell none").Config
	assert.Equal(t, []any{0, uint64(0), uint32(0), 0}, []any{c.Ethernet, c.MAC, c.IP, c.UDPPort}, "another shell has none")
}

// An Ethernet port has the width of a MAC, and is not wider than a beat of either format.
func TestEthernetWidths(t *testing.T) {
	for line, link := range map[string]int{
		"-lanes 2":                            64,
		"-lanes 1 -link 8":                    8,
		"-lanes 16":                           64,
		"-lanes 8 -link 64":                   64,
		"-lanes 16 -link 512":                 512,
		"-lanes 4 -format bf16 -result fp32":  64,
		"-lanes 64 -format fp8e4m3 -link 512": 512,
		"-lanes 1 -format fp8e4m3 -result fp8e4m3 -link 8": 8,
	} {
		assert.Equal(t, link, parse(t, "-shell udp "+line).Link, line)
	}
}

// A datagram carries 8,192 bytes of payload, in either direction.
func TestNetworkChunk(t *testing.T) {
	for line, chunk := range map[string]int{
		"-lanes 64 -workers 64":                 2048,
		"-lanes 16 -chunk 2048":                 2048,
		"-lanes 16 -format bf16 -chunk 4096":    4096,
		"-lanes 16 -format fp8e5m2 -chunk 8192": 8192,
	} {
		assert.Equal(t, chunk, parse(t, "-shell udp "+line).Chunk, line)
	}
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
		"-shell udp",
		"-shell udp -link 512 -ethernet 3 -mac 06:00:00:00:00:07 -ip 10.1.2.3 -udp-port 1",
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
		"-format fp8e4m3 -result fp32 -chunk 1024", "-format fp8e4m3 -chunk 4096", "-shell ring",
		"-chunk 0", "-chunk 24", "-chunk 1024", "-chunk -16", "-shell none -chunk 65536", "-lanes 64 -chunk 1000",
		"-window 3", "-window 0", "-window 2048",
		"-jobs 3", "-jobs 0", "-jobs 32",
		"-link 24", "-shell none -link 32", "-registers axil", "-shell none -registers wishbone",
		"-shell udp -link 32", "-shell udp -link 16", "-shell udp -lanes 1", "-shell udp -lanes 8 -link 512",
		"-shell udp -lanes 4 -format fp32 -link 512", "-shell udp -lanes 32 -format fp8e4m3 -result fp32 -link 512",
		"-link 512", "-shell udp -registers axil", "-shell udp -chunk 4096",
		"-shell udp -ethernet 0", "-shell udp -ethernet 17", "-shell udp -ethernet two",
		"-shell udp -mac 01:54:52:42:00:01", "-shell udp -mac 00:00:00:00:00:00", "-shell udp -mac 02:54:52:42", "-shell udp -mac 02:54:52:42:00:01:00:01", "-shell udp -mac=",
		"-shell udp -ip 0.0.0.0", "-shell udp -ip 224.0.0.1", "-shell udp -ip 255.255.255.255", "-shell udp -ip 10.0.0", "-shell udp -ip ::1", "-shell udp -ip card",
		"-shell udp -udp-port 0", "-shell udp -udp-port 65536", "-shell udp -udp-port domain",
		"-shell roce -parent", "-shell roce -format bf16 -result fp32", "-shell roce -workers 32 -jobs 4", "-shell roce -chunk 2048", "-shell roce -chunk 240",
		"-shell udp -lanes 3 -mac 1 -ip 2 -ethernet 0 -udp-port -1 -link 24",
		"-ethernet 1", "-shell none -mac 02:54:52:42:00:01", "-ip 10.0.0.1 -udp-port 5000", "-shell ring -ip 10.0.0.1",
		"-board bench -lanes 4 -shell udp", "-board bench -lanes 4 -ip 10.0.0.1",
		"-parent", "-parent -shell udp -format bf16 -result fp32", "-parent -shell none -format bf16 -result fp32", "-parent -board bench -lanes 4", "-parent -shell ring", "-parent=yes",
		"-prefix 9", "-prefix a-b", "-prefix=", "-prefix abcdefghijklmnopqrstuvwxyz",
		"-board mine", "-board=", "-clock 40", "-board bench -lanes 4 -clock 999", "-board bench -clock 999", "-board bench -lanes 4 -clock fast",
		"-board bench", "-board bench -sum fused -workers 5", "-board bench -lanes 3",
		"-board bench -lanes 4 -shell none -link 32 -bundle",
		"-o=",
		"-nonsense", "-nonsense 5", "--nonsense=5", "-bundle=yes", "card", "-lanes 16 32",
		"-lanes 3 -workers 0 -format half -result float -sum exact -saturate -dsp -shell ring -window 5 -jobs 9 -prefix - -frobnicate 7 -chunk many extra",
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
