package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGeneratedFilesAreCurrent runs what go generate runs, in another folder, and compares the
// files.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	text, err := os.ReadFile("../fold_amd64.go")
	require.NoError(t, err)
	flags := regexp.MustCompile(`(?m)^//go:generate go run \./asm (.*)$`).FindStringSubmatch(string(text))
	require.NotNil(t, flags)

	folder := t.TempDir()
	command := filepath.Join(folder, "asm")
	run(t, ".", "go", "build", "-o", command, ".")
	run(t, folder, command, strings.Fields(flags[1])...)
	fresh, err := filepath.Glob(filepath.Join(folder, "z*"))
	require.NoError(t, err)
	require.Len(t, fresh, 2)
	for _, file := range fresh {
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		have, err := os.ReadFile(filepath.Join("..", filepath.Base(file)))
		require.NoError(t, err)
		require.Equal(t, string(want), string(have), "%s is out of date: run go generate", filepath.Base(file))
	}
}

func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = folder
	said, err := command.CombinedOutput()
	require.NoError(t, err, string(said))
}
