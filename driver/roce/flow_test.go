package roce_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlow compiles and runs testdata/flow.c.
func TestFlow(t *testing.T) {
	program := filepath.Join(t.TempDir(), "flow")
	out, err := exec.Command("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", program, "testdata/flow.c", "flow.c").CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.Command(program).CombinedOutput()
	require.NoError(t, err, string(out))
}
