// Package generated compares assembler files with what go generate writes.
package generated

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Check runs, in another folder, the generator in the working directory as the comment //go:generate
// of a Go file says, and compares assembler and stubs with those beside that file.
func Check(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
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
	for _, name := range fresh {
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		have, err := os.ReadFile(filepath.Join(filepath.Dir(file), filepath.Base(name)))
		require.NoError(t, err)
		require.Equal(t, string(want), string(have), "%s is out of date: run go generate", filepath.Base(name))
	}
}

func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = folder
	said, err := command.CombinedOutput()
	require.NoError(t, err, string(said))
}
