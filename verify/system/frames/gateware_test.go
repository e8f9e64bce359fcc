package frames_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/capture"
	"tributary/driver/virtual/simulator"
)

// captures is where the model's captures are.
const captures = "../../../driver/virtual/capture/testdata/"

// built are generated cards like the captures' model, and the captures that each is held to.
var built = []struct {
	ports, link int
	parent      bool
	captures    []string
}{
	{1, 8, false, []string{"answers", "faults", "job", "deadline", "lease"}},
	{3, 64, true, []string{"path", "switch", "tree"}},
}

// simulated starts the card in a folder until the test ends.
func simulated(t *testing.T, dir string, ports int) *simulator.Card {
	t.Helper()
	card, err := simulator.Start(t.Context(), filepath.Join(dir, "sim", "build", "card"), ports, os.Stderr)
	require.NoError(t, err)
	t.Cleanup(func() { card.Close() })
	return card
}

// generate generates and builds a card with Ethernet ports, and an up port or none, and returns its folder.
func generate(t *testing.T, ports, link int, parent bool) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "card")
	run := func(name string, args ...string) {
		out, err := exec.Command(name, args...).CombinedOutput()
		require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), out)
	}
	flags := []string{"run", "tributary/hwgen", "-shell", "udp", "-lanes", "4", "-chunk", "64", "-window", "4",
		"-link", fmt.Sprint(link), "-ethernet", fmt.Sprint(ports), "-o", dir}
	if parent {
		flags = append(flags, "-parent")
	}
	run("go", flags...)
	run("make", "-s", "-C", filepath.Join(dir, "sim"), "OPT=-O1")
	return dir
}

// TestGateware: a generated card does with every frame what the model does, byte for byte, and reduces
// for the driver.
func TestGateware(t *testing.T) {
	for _, b := range built {
		t.Run(fmt.Sprintf("%d of %d bits", b.ports, b.link), func(t *testing.T) {
			dir := generate(t, b.ports, b.link, b.parent)
			for _, name := range b.captures {
				in, err := os.ReadFile(captures + name + ".pcapng")
				require.NoError(t, err)
				want, err := os.ReadFile(captures + name + ".out.pcapng")
				require.NoError(t, err)
				c, err := capture.Open(bytes.NewReader(in))
				require.NoError(t, err)
				card := simulated(t, dir, b.ports)
				var out bytes.Buffer
				_, err = c.Replay(card, &out)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(want, out.Bytes()), "%s: the card wrote another capture than the model", name)
			}
			h := attach(t, serve(t, simulated(t, dir, b.ports), b.ports)[0], 1)
			reduces(t, dial(t, h), 1)
			assert.Empty(t, h.Others)
		})
	}
}
