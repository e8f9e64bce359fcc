package scratch

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func names(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	require.NoError(t, err)
	return found
}

// TestRemove checks that nothing is left and that a second call does nothing.
func TestRemove(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f, err := New()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.Path("x"), nil, 0o600))
	require.Len(t, names(t), 1)
	require.NoError(t, f.Remove())
	require.NoError(t, f.Remove())
	require.Empty(t, names(t))
}

// TestSweep checks that New removes the folder of a dead program. It must keep those of live
// programs and those of other origin.
func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	alive, err := New()
	require.NoError(t, err)
	dead, err := New()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dead.Path("x"), nil, 0o600))
	require.NoError(t, dead.lock.Close()) // as the system does for a dead program
	other := filepath.Join(os.TempDir(), "tributary")
	require.NoError(t, os.Mkdir(other, 0o700))
	file := filepath.Join(os.TempDir(), prefix+"file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	next, err := New()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{alive.path, other, file, next.path}, names(t))
}

// TestSideBySide checks that no sweep removes a folder that another New is about to lock.
func TestSideBySide(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				f, err := New()
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(f.Path("x"), nil, 0o600); err != nil {
					t.Error(err)
				}
				if err := f.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Empty(t, names(t))
}
