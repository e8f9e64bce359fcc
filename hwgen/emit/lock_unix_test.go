//go:build unix

package emit_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/hwgen/emit"
)

// A Write that waits for another one ends with its context.
func TestWriteThatWaitsIsInterrupted(t *testing.T) {
	parent, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer parent.Close()
	require.NoError(t, syscall.Flock(int(parent.Fd()), syscall.LOCK_EX))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = emit.Write(ctx, filepath.Join(parent.Name(), "card"), card("one"), false)
	require.ErrorIs(t, err, context.Canceled)
}
