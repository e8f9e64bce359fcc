package datasheet

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMemories finds the RAMs of a card's datasheet in its Verilog, as Icarus elaborates it: as many, with
// as many words of the same width.
func TestMemories(t *testing.T) {
	hwgen := filepath.Join(t.TempDir(), "hwgen")
	said, err := exec.Command("go", "build", "-o", hwgen, "tributary/hwgen").CombinedOutput()
	require.NoError(t, err, string(said))
	for _, flags := range []string{
		"-lanes 2 -workers 3 -shell none -sum exact",
		"-lanes 1 -workers 3 -shell roce -chunk 64 -link 8",
	} {
		t.Run(flags, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "card")
			said, err := exec.Command(hwgen, append(strings.Fields(flags), "-bundle", "-strip-formal", "-o", dir)...).CombinedOutput()
			require.NoError(t, err, string(said))
			var m struct {
				Memories []struct {
					Name                string
					Count, Words, Width int
				}
			}
			text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &m))
			rams := elaboratedRAMs(t, dir)
			for _, row := range m.Memories {
				size := [2]int{row.Words, row.Width}
				rams[size] -= row.Count
				assert.GreaterOrEqual(t, rams[size], 0, "%s: %d x %d words of %d bits", row.Name, row.Count, row.Words, row.Width)
			}
		})
	}
}

// elaboratedRAMs counts the RAMs of the card in a folder, by words and width.
func elaboratedRAMs(t *testing.T, dir string) map[[2]int]int {
	t.Helper()
	out := filepath.Join(t.TempDir(), "card.vvp")
	said, err := exec.Command("iverilog", "-g2005", "-I", dir, "-s", "agg_top", "-o", out, filepath.Join(dir, "agg.v")).CombinedOutput()
	require.NoError(t, err, string(said))
	program, err := os.ReadFile(out)
	require.NoError(t, err)
	rams := map[[2]int]int{}
	array := regexp.MustCompile(`(?m)^v\S+ \.array "\w+", (\d+) (\d+), (\d+) (\d+)`)
	for _, found := range array.FindAllStringSubmatch(string(program), -1) {
		var bounds [4]int
		for i := range bounds {
			bounds[i], err = strconv.Atoi(found[i+1])
			require.NoError(t, err)
		}
		rams[[2]int{1 + max(bounds[0], bounds[1]) - min(bounds[0], bounds[1]), 1 + bounds[2] - bounds[3]}]++
	}
	require.NotEmpty(t, rams)
	return rams
}
