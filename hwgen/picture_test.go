package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPicture: card.svg, which the front page shows, is what hwgen -lanes 4 draws.
func TestPicture(t *testing.T) {
	drawn, err := os.ReadFile(filepath.Join(makeCard(t, "-lanes 4"), "block.svg"))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("card.svg", drawn, 0o666))
	}
	kept, err := os.ReadFile("card.svg")
	require.NoError(t, err)
	assert.Equal(t, string(kept), string(drawn), "go test ./hwgen -update writes it anew")
}
