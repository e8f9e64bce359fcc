// Package datasheet executes what the datasheets of cards tell their readers to do.
package datasheet

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/model"
	"tributary/driver/wire"
)

// cards are flags of hwgen: all shells, every format, every sum.
var cards = []string{
	"-lanes 4 -workers 4 -shell none",
	"-lanes 16 -workers 3 -jobs 4 -sum fused -format bf16 -result fp32 -shell none",
	"-lanes 2 -workers 1 -shell none -chunk 8 -window 1 -prefix left",
	"-lanes 1 -workers 5 -sum max -format int32 -shell none",
	"-lanes 4 -workers 3",
	"-lanes 8 -workers 2 -sum exact -format fp16 -jobs 2 -link 64",
	"-lanes 1 -workers 64 -sum exact -format fp8e4m3 -result bf16",
	"-lanes 1 -workers 1 -sum max -format fp8e5m2 -link 8",
	"-lanes 2 -workers 3 -format int32 -saturate",
	"-lanes 2 -workers 3 -shell udp",
	"-lanes 1 -workers 1 -shell udp -link 8 -format fp16 -mac 0a:00:00:00:00:01 -ip 10.0.0.1 -udp-port 7",
	"-lanes 16 -workers 2 -shell udp -link 512 -sum fused -jobs 2",
	"-lanes 8 -workers 64 -shell udp -sum max -format bf16 -result fp32",
}

// TestRecipe executes the recipe of each datasheet on the Go model of the same card.
func TestRecipe(t *testing.T) {
	hwgen := buildHwgen(t)
	for _, flags := range cards {
		t.Run(flags, func(t *testing.T) {
			dir := makeCard(t, hwgen, flags)
			page, err := os.ReadFile(filepath.Join(dir, "README.md"))
			require.NoError(t, err)
			m := manifest(t, dir)
			lines := recipe(t, string(page))
			assert.GreaterOrEqual(t, len(lines), 11)
			if m.Shell == wire.ShellUDP.String() {
				onNetwork(t, m, lines)
				return
			}
			card, err := model.NewCard(m.config())
			require.NoError(t, err)
			if card.Config().Shell == wire.ShellNone {
				onPorts(t, card, lines)
			} else {
				onLink(t, card, lines)
			}
			_, state := card.Register(false, wire.RegJobState, 0)
			assert.Equal(t, uint64(jobEnded), state, "the job has ended")
		})
	}
}

// jobEnded is JOB_STATE after the recipe: the epoch was 1.
const jobEnded = 1<<16 | 2

// cardManifest is what the manifest of a card has for its model, and its memories.
type cardManifest struct {
	Lanes, Workers, Chunk, Window, Jobs, Link, Latency int
	Format, Result, Sum, Shell                         string
	Saturate                                           bool
	MAC, IP                                            string
	UDPPort                                            uint16 `json:"udp_port"`

	Memories []struct {
		Name                string
		Count, Words, Width int
	}
}

// manifest reads the manifest of the card in a folder.
func manifest(t *testing.T, dir string) (m cardManifest) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &m))
	return m
}

// config returns the configuration of the card's model.
func (m cardManifest) config() model.Config {
	cfg := model.Config{Lanes: m.Lanes, Ports: m.Workers, Chunk: m.Chunk, Window: m.Window, Jobs: m.Jobs,
		Link: m.Link, Latency: m.Latency, Saturate: m.Saturate}
	for _, f := range wire.Formats {
		if f.Name == m.Format {
			cfg.Format = f.Format
		}
		if f.Name == m.Result {
			cfg.Result = f.Format
		}
	}
	for _, s := range wire.Sums {
		if s.Name == m.Sum {
			cfg.Sum = s.Sum
		}
	}
	for _, s := range wire.Shells {
		if s.Name == m.Shell {
			cfg.Shell = s.Shell
		}
	}
	return cfg
}

// recipe returns the words of each line of a datasheet's recipe, without comments.
func recipe(t *testing.T, page string) (lines [][]string) {
	t.Helper()
	_, after, ok := strings.Cut(page, "\n## Bring-up\n")
	require.True(t, ok)
	block := regexp.MustCompile("(?s)\n```\n(.*?)```\n").FindStringSubmatch(after)
	require.NotNil(t, block)
	for line := range strings.Lines(block[1]) {
		text, comment, ok := strings.Cut(line, "  # ")
		require.True(t, ok && len(comment) > 1, line)
		lines = append(lines, strings.Fields(text))
	}
	return lines
}

// onPorts executes a recipe of register accesses and packets of ports.
func onPorts(t *testing.T, card *model.Card, lines [][]string) {
	t.Helper()
	waiting := map[int][]model.Packet{} // packets from the card, by port
	for _, words := range lines {
		if words[0] == "write" {
			addr, err := strconv.ParseUint(words[1], 0, 32)
			require.NoError(t, err)
			value, err := strconv.ParseUint(words[2], 0, 64)
			require.NoError(t, err)
			code, _ := card.Register(true, uint32(addr), value)
			require.Equal(t, wire.CodeDone, code, words)
			continue
		}
		port, err := strconv.Atoi(strings.TrimPrefix(words[1], "p"))
		require.NoError(t, err)
		number, ok := new(big.Int).SetString(words[2], 0)
		require.True(t, ok, words)
		header := number.FillBytes(make([]byte, (len(words[2])-2)/2))
		slices.Reverse(header)
		p := model.Packet{Header: model.ParseHeader(header), Payload: payload(t, words[3:], true)}
		if words[0] == "send" {
			card.Handle(port, &p)
			var out model.Packet
			for {
				ports, ok := card.Next(^uint64(0), &out)
				if !ok {
					break
				}
				for to := range card.Config().Ports {
					if ports>>to&1 != 0 {
						waiting[to] = append(waiting[to], model.Packet{Header: out.Header, Payload: slices.Clone(out.Payload)})
					}
				}
			}
			continue
		}
		require.Equal(t, "receive", words[0])
		require.NotEmpty(t, waiting[port], words)
		got := waiting[port][0]
		waiting[port] = waiting[port][1:]
		got.Receivers = 0 // not at a port
		assert.Equal(t, p.Header, got.Header, words)
		assert.Equal(t, hex.EncodeToString(p.Payload), hex.EncodeToString(got.Payload), words)
	}
	for port, packets := range waiting {
		assert.Empty(t, packets, "port %d", port)
	}
}

// onLink executes a recipe of frames on a byte stream.
func onLink(t *testing.T, card *model.Card, lines [][]string) {
	t.Helper()
	link, err := model.NewLink(card)
	require.NoError(t, err)
	var waiting []byte
	for _, words := range lines {
		frame := unhex(t, words[1])
		if len(words) > 2 {
			frame = append(frame, payload(t, words[2:5], false)...)
			frame = append(frame, unhex(t, words[5])...)
		}
		if words[0] == "send" {
			waiting = link.Exchange(waiting, frame)
			continue
		}
		require.Equal(t, "receive", words[0])
		require.GreaterOrEqual(t, len(waiting), len(frame), words)
		assert.Equal(t, hex.EncodeToString(frame), hex.EncodeToString(waiting[:len(frame)]), words)
		waiting = waiting[len(frame):]
	}
	assert.Empty(t, waiting)
}

// payload returns the bytes of "N x E": an element is a number, or bytes in their order.
func payload(t *testing.T, words []string, isNumber bool) []byte {
	t.Helper()
	if len(words) == 0 {
		return nil
	}
	n, err := strconv.Atoi(words[0])
	require.NoError(t, err)
	require.Equal(t, "x", words[1])
	element := unhex(t, strings.TrimPrefix(words[2], "0x"))
	if isNumber {
		slices.Reverse(element)
	}
	return slices.Repeat(element, n)
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	require.NoError(t, err)
	return data
}
