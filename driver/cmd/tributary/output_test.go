package main

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReduceThroughALink checks that an output through a dangling link creates the link's target
// and keeps the link.
func TestReduceThroughALink(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.Mkdir("folder", 0o777))
	require.NoError(t, os.Symlink("folder/real.npy", "sum.npy"))
	s := tributary(context.Background(), "reduce", "-o", "sum.npy", "w0.npy", "w1.npy")
	require.Equal(t, 0, s.status, s.errs)
	sameArray(t, float32s([]int{2, 3}, 11, 22, 33, 44, 55, 66), readArray(t, "folder/real.npy"))
	to, err := os.Readlink("sum.npy")
	require.NoError(t, err)
	require.Equal(t, "folder/real.npy", to)
}

// TestReduceThroughNoLink checks that a link into a missing folder is refused before the card is
// opened, and that the error names its flag.
func TestReduceThroughNoLink(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.Symlink("gone/real", "link.npy"))
	before := files(t)
	for flag, args := range map[string][]string{
		"-o":      {"reduce", "-card", "unix:none", "-o", "link.npy", "w0.npy"},
		"-record": {"reduce", "-card", "unix:none", "-o", "sum.npy", "-record", "link.npy", "w0.npy"},
	} {
		s := tributary(context.Background(), args...)
		require.Equal(t, said{1, "", "tributary reduce: " + flag + " link.npy: it is a symbolic link to gone/real, and there is no folder gone\n"}, s)
		requireNoNewFiles(t, before)
	}
}

// TestRecordThroughALink checks that a link log cannot overwrite the output under another name.
func TestRecordThroughALink(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.Symlink("sum.npy", "log"))
	s := tributary(context.Background(), "reduce", "-o", "sum.npy", "-record", "log", "w0.npy")
	require.Equal(t, 2, s.status)
	require.Contains(t, s.errs, "-record log: it is the same file as sum.npy; name another file for the link log")
}

// TestReduceKeepsPermissions checks that a replaced sum keeps its permissions.
func TestReduceKeepsPermissions(t *testing.T) {
	workFolder(t)
	require.NoError(t, os.WriteFile("sum.npy", nil, 0o600))
	s := tributary(context.Background(), "reduce", "-o", "sum.npy", "w0.npy")
	require.Equal(t, 0, s.status, s.errs)
	info, err := os.Stat("sum.npy")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// fullDisk opens a file that takes no byte.
func fullDisk(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// TestSelftestCannotPrint checks that a self-test whose report is lost fails.
func TestSelftestCannotPrint(t *testing.T) {
	var errs bytes.Buffer
	require.Equal(t, 1, run(context.Background(), []string{"selftest", "-card", "cpu:lanes=1,workers=1,chunk=16,window=1"}, fullDisk(t), &errs))
	require.Equal(t, "tributary selftest: write /dev/full: no space left on device\n", errs.String())
}

// TestFullDisk checks that the error of a link log, and of a decoded one, appears once and names the file
// that is full.
func TestFullDisk(t *testing.T) {
	workFolder(t)
	out := fullDisk(t)
	s := tributary(context.Background(), "reduce", "-record", "/dev/full", "-o", "sum.npy", "w0.npy", "w1.npy")
	require.Equal(t, said{1, "", "tributary reduce: the link log is not complete: write /dev/full: no space left on device\n"}, s)
	require.Equal(t, 0, tributary(context.Background(), "reduce", "-record", "log", "-o", "sum.npy", "w0.npy", "w1.npy").status)
	var errs bytes.Buffer
	require.Equal(t, 1, run(context.Background(), []string{"decode", "log"}, out, &errs))
	require.Equal(t, "tributary decode: write /dev/full: no space left on device\n", errs.String())
}
