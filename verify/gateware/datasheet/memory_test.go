package datasheet

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMemories finds the RAMs of a card's datasheet in its Verilog, as Icarus elaborates it: as many, with
// as many words of the same width.
func TestMemories(t *testing.T) {
	hwgen := buildHwgen(t)
	for _, flags := range []string{
		"-lanes 2 -workers 3 -shell none -sum exact",
		"-lanes 1 -workers 3 -shell roce -chunk 64 -link 8",
	} {
		t.Run(flags, func(t *testing.T) {
			dir := makeCard(t, hwgen, flags+" -bundle -strip-formal")
			rams := elaboratedRAMs(t, dir)
			for _, row := range manifest(t, dir).Memories {
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
	program, err := os.ReadFile(elaborate(t, dir, "agg_top"))
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
