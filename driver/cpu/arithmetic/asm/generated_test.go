package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/verify/generated"
)

func TestGeneratedFilesAreCurrent(t *testing.T) { generated.Check(t, "../fast_amd64.go") }

// TestKernelsNeedNoAVX512: the assembler takes Y16 to Y31 too, which only AVX-512 has.
func TestKernelsNeedNoAVX512(t *testing.T) {
	text, err := os.ReadFile("../zkernels_amd64.s")
	require.NoError(t, err)
	registers := regexp.MustCompile(`\b[KXYZ]\d+\b`).FindAllString(string(text), -1)
	require.Greater(t, len(registers), 1000)
	for _, r := range registers {
		require.Regexp(t, `^[XY](\d|1[0-5])$`, r)
	}
}
