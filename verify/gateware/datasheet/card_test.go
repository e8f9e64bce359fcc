package datasheet

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// buildHwgen builds hwgen, and returns the program's path.
func buildHwgen(t *testing.T) string {
	t.Helper()
	hwgen := filepath.Join(t.TempDir(), "hwgen")
	said, err := exec.Command("go", "build", "-o", hwgen, "tributary/hwgen").CombinedOutput()
	require.NoError(t, err, string(said))
	return hwgen
}

// makeCard runs hwgen with flags, and returns the card's folder.
func makeCard(t *testing.T, hwgen, flags string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "card")
	said, err := exec.Command(hwgen, append(strings.Fields(flags), "-o", dir)...).CombinedOutput()
	require.NoError(t, err, string(said))
	return dir
}

// elaborate compiles a bundled card with Icarus, and other files with it, and returns the program's path.
func elaborate(t *testing.T, dir, top string, more ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "card.vvp")
	args := slices.Concat([]string{"-g2005", "-I", dir, "-s", top, "-o", program}, more, []string{filepath.Join(dir, "agg.v")})
	said, err := exec.Command("iverilog", args...).CombinedOutput()
	require.NoError(t, err, string(said))
	return program
}
