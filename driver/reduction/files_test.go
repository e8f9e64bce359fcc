package reduction_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/npy"
	"tributary/driver/reduction"
)

// inFolder makes a new folder and enters it.
func inFolder(t *testing.T) { t.Helper(); t.Chdir(t.TempDir()) }

func write(t *testing.T, path string, a reduction.Arrays) {
	t.Helper()
	require.NoError(t, reduction.WriteFile(t.Context(), path, a))
}

// names returns the names of all files of the current folder.
func names(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	all := []string{}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestFiles checks that written files can be read, and that an archive is read into contiguous
// memory.
func TestFiles(t *testing.T) {
	inFolder(t)
	single := reduction.Array(float32s([]int{2}, 1, 2))
	archive := reduction.Arrays{Archive: true, Tensors: []npy.Named{{Name: "a", Array: float32s([]int{1}, 1)}, {Name: "b", Array: float32s([]int{2}, 2, 3)}}}
	write(t, "x.npy", single)
	write(t, "x.npz", archive)
	got, err := reduction.ReadFiles(t.Context(), []string{"x.npy"})
	require.NoError(t, err)
	single.Name = "x.npy"
	require.Equal(t, []reduction.Arrays{single}, got)
	got, err = reduction.ReadFiles(t.Context(), []string{"x.npz"})
	require.NoError(t, err)
	require.Equal(t, archive.Tensors, got[0].Tensors)
	require.Same(t, &got[0].Tensors[0].Data[:5][4], &got[0].Tensors[1].Data[0])
}

// TestFilesRefused checks that the error lists the problems of all files.
func TestFilesRefused(t *testing.T) {
	inFolder(t)
	write(t, "x.npy", reduction.Array(float32s([]int{2}, 1, 2)))
	write(t, "y.npy", reduction.Array(float32s([]int{3}, 1, 2, 3)))
	_, err := reduction.ReadFiles(t.Context(), []string{"x.npy", "y.npy", "none.npy"})
	problems := new(reduction.ArraysError)
	require.ErrorAs(t, err, &problems)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, "2 of the 3 files cannot be used:\n  y.npy: its shape is (3,), but x.npy has (2,)\n  none.npy: no such file or directory", err.Error())
	require.Equal(t, 2, problems.Problems[1].Worker)
}

// TestFilesFromFIFO checks that files of both kinds can be read from a FIFO.
func TestFilesFromFIFO(t *testing.T) {
	inFolder(t)
	write(t, "x.npy", reduction.Array(float32s([]int{2}, 1, 2)))
	write(t, "x.npz", reduction.Arrays{Archive: true, Tensors: []npy.Named{{Name: "a", Array: float32s([]int{2}, 1, 2)}}})
	require.NoError(t, syscall.Mkfifo("fifo", 0o600))
	for _, file := range []string{"x.npy", "x.npz"} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		go os.WriteFile("fifo", content, 0)
		got, err := reduction.ReadFiles(t.Context(), []string{"fifo"})
		require.NoError(t, err)
		require.Equal(t, float32s(nil, 1, 2).Data, got[0].Tensors[0].Data)
	}
}

var errSignal = errors.New("a signal")

// TestReadingIsStopped checks that a canceled read of a FIFO ends, whether it has no writer or the
// writer stalls.
func TestReadingIsStopped(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T){
		"nobody writes": func(*testing.T) {},
		"stalls in the header": func(t *testing.T) {
			stalled(t, "\x93NUM")
		},
		"stalls at once": func(t *testing.T) { stalled(t, "") },
	} {
		t.Run(name, func(t *testing.T) {
			inFolder(t)
			require.NoError(t, syscall.Mkfifo("fifo", 0o600))
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := reduction.ReadFiles(ctx, []string{"fifo"})
				ended <- err
			}()
			begin(t)
			cancel(errSignal)
			require.ErrorIs(t, <-ended, errSignal)
		})
	}
}

// stalled opens the FIFO for writing, which lets the reader open it, and writes only a part.
func stalled(t *testing.T, text string) {
	t.Helper()
	f, err := os.OpenFile("fifo", os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	_, err = f.WriteString(text)
	require.NoError(t, err)
}

// endsAt is a context that is done after n calls of Err.
type endsAt struct {
	context.Context
	n int
}

func (c *endsAt) Err() error {
	if c.n--; c.n < 0 {
		return errSignal
	}
	return nil
}

// TestWritingIsStopped checks that a canceled write keeps the earlier file and leaves no other
// file, at any point of its progress.
func TestWritingIsStopped(t *testing.T) {
	inFolder(t)
	require.NoError(t, os.WriteFile("sum.npy", []byte("earlier"), 0o600))
	large := reduction.Array(npy.Array{Shape: []int{1 << 20}, Type: npy.Float32, Data: make([]byte, 4<<20)})
	for n := range 5 {
		err := reduction.WriteFile(&endsAt{t.Context(), n}, "sum.npy", large)
		require.Error(t, err, n)
		require.Equal(t, []string{"sum.npy"}, names(t))
		text, err := os.ReadFile("sum.npy")
		require.NoError(t, err)
		require.Equal(t, "earlier", string(text))
	}
	write(t, "sum.npy", large)
}

// TestOutputKeepsPermissions checks that a replaced file keeps its permissions, and that a new file
// has those of the umask.
func TestOutputKeepsPermissions(t *testing.T) {
	inFolder(t)
	sum := reduction.Array(float32s([]int{1}, 1))
	permissions := func() os.FileMode {
		info, err := os.Stat("sum.npy")
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	write(t, "sum.npy", sum)
	require.Equal(t, fresh(t), permissions())
	for _, p := range []os.FileMode{0o600, 0o640, 0o666, 0o777} {
		require.NoError(t, os.Chmod("sum.npy", p))
		write(t, "sum.npy", sum)
		require.Equal(t, p, permissions())
	}
}

// fresh returns the permissions of a new file of this process.
func fresh(t *testing.T) os.FileMode {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "fresh"), os.O_CREATE|os.O_WRONLY, 0o666)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	return info.Mode().Perm()
}

// TestOutputThroughLinks checks that a symbolic link stays, and that its target is written, whether
// or not it existed.
func TestOutputThroughLinks(t *testing.T) {
	inFolder(t)
	require.NoError(t, os.MkdirAll("folder/deep", 0o777))
	require.NoError(t, os.Symlink("folder/deep/link", "sum.npy"))
	require.NoError(t, os.Symlink("../file", "folder/deep/link"))
	for range 2 { // first dangling, then not
		require.NoError(t, reduction.CheckOutput("sum.npy", nil))
		write(t, "sum.npy", reduction.Array(float32s([]int{1}, 1)))
		info, err := os.Lstat("sum.npy")
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink)
		text, err := os.ReadFile("folder/file")
		require.NoError(t, err)
		require.True(t, bytes.HasSuffix(text, float32s(nil, 1).Data))
	}
	require.Equal(t, []string{"folder", "sum.npy"}, names(t))
	require.Error(t, reduction.CheckOutput("sum.npy", []string{"folder/file"}))
	require.Equal(t, "sum.npy", reduction.SameFile("folder/file", []string{"sum.npy"}))
}

// TestOutputThroughNoLink checks that links without a usable target are refused before any work.
func TestOutputThroughNoLink(t *testing.T) {
	inFolder(t)
	require.NoError(t, os.Symlink("gone/file", "sum.npy"))
	require.NoError(t, os.Symlink("round.npy", "round.npy"))
	output := new(reduction.OutputError)
	err := reduction.CheckOutput("sum.npy", nil)
	require.ErrorAs(t, err, &output)
	require.Equal(t, "sum.npy: it is a symbolic link to gone/file, and there is no folder gone", err.Error())
	err = reduction.CheckOutput("round.npy", nil)
	require.ErrorAs(t, err, &output)
	require.Equal(t, "round.npy: it is a symbolic link that leads in a circle", err.Error())
	require.Equal(t, []string{"round.npy", "sum.npy"}, names(t))
}

// TestSameFile checks that two paths of a file that does not exist yet can be the same file.
func TestSameFile(t *testing.T) {
	inFolder(t)
	require.NoError(t, os.Symlink("log", "link"))
	require.Equal(t, "link", reduction.SameFile("./log", []string{"other", "link"}))
	require.Empty(t, reduction.SameFile("log", []string{"other"}))
}

// TestReplaceKeepsDevices: /dev/null was replaced by a file. A FIFO stands for it.
func TestReplaceKeepsDevices(t *testing.T) {
	inFolder(t)
	require.NoError(t, syscall.Mkfifo("fifo", 0o600))
	require.NoError(t, os.Symlink("fifo", "link"))
	for _, path := range []string{"fifo", "link"} {
		require.NoError(t, reduction.CheckFile(path))
		require.EqualError(t, reduction.CheckReplace(path), path+": it is not a file")
		err := reduction.Replace(t.Context(), path, func(w io.Writer) error { return nil })
		require.EqualError(t, err, path+": it is not a file")
		there, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.ModeNamedPipe, there.Mode().Type())
	}
}
