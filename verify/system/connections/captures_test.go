package connections_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/capture"
	"tributary/driver/virtual/simulator"
	"tributary/verify/system/connections"
)

// settled is a card whose Send lets it run until a frame leaves, or it rests.
type settled struct{ *connections.Simulated }

func (s settled) Send(dst []byte) (frame []byte, port int, ok bool) {
	for {
		if frame, port, ok = s.Simulated.Send(dst); ok || !s.Step(1024) {
			return frame, port, ok
		}
	}
}

// captures passes the inputs of the model's captures through the gateware. Behind each frame, the same frames
// leave, and at each port in the same order. Between ports the order is free: the gateware sends at all at once.
func captures(t *testing.T, g geometry, program string) {
	outputs, err := filepath.Glob("../../../driver/virtual/capture/testdata/roce*.out.pcapng")
	require.NoError(t, err)
	require.NotEmpty(t, outputs)
	for _, name := range outputs {
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		in, err := os.ReadFile(strings.Replace(name, ".out.", ".", 1))
		require.NoError(t, err)
		c, err := capture.Open(bytes.NewReader(in))
		require.NoError(t, err)
		process, err := simulator.Start(t.Context(), program, g.ethernet, os.Stderr)
		require.NoError(t, err)
		var out bytes.Buffer
		_, err = c.Replay(settled{connections.Simulate(process, g.ethernet, g.link)}, &out)
		require.NoError(t, err)
		require.NoError(t, process.Close())
		assert.Equal(t, causes(t, want), causes(t, out.Bytes()), name)
	}
}

// caused is an input frame of a capture, and what left behind it, by port.
type caused struct {
	in  string
	out map[int][]string
}

// causes returns the frames of an output.
func causes(t *testing.T, file []byte) (all []caused) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	require.NoError(t, err)
	for {
		data, ci, options, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if options.Flags.Direction == pcapgo.NgEpbFlagDirectionInbound {
			all = append(all, caused{string(data), map[int][]string{}})
			continue
		}
		last := all[len(all)-1].out
		last[ci.InterfaceIndex] = append(last[ci.InterfaceIndex], string(data))
	}
}
