package reduction

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"tributary/driver/npy"
)

// CheckOutput refuses, before anything is summed, an output file that cannot be written or that is
// one of the inputs.
//
// Errors: OptionError "out", for a name that does not end in .npy or .npz, or is an
// input; OutputError.
func CheckOutput(path string, inputs []string) error {
	if suffix := filepath.Ext(path); suffix != ".npy" && suffix != ".npz" {
		return badOption("out", "%s: its name must end in .npy, or in .npz for archives", path)
	}
	if err := CheckReplace(path); err != nil {
		return err
	}
	there, err := os.Stat(path)
	if err != nil {
		return nil // a new file
	}
	for _, in := range inputs {
		if info, err := os.Stat(in); err == nil && os.SameFile(info, there) {
			return badOption("out", "%s: it is the input %s; name another file for the sum", path, in)
		}
	}
	return nil
}

// CheckSuffix refuses an output whose name suggests another kind of file: .npz is for archives. The
// error is an OptionError "out".
func CheckSuffix(path string, archive bool) error {
	want := ".npy"
	if archive {
		want = ".npz"
	}
	if filepath.Ext(path) != want {
		return badOption("out", "%s: its name must end in %s, like the inputs'", path, want)
	}
	return nil
}

// CheckFile refuses a path where no file can be written: a folder, a path in a folder that
// does not exist or takes no files, a symbolic link to such a path. The error is an
// OutputError.
func CheckFile(path string) error {
	target, err := Target(path)
	if err != nil {
		return err
	}
	folder := filepath.Dir(target)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		if target != path {
			return notWritable(path, "it is a symbolic link to %s, and there is no folder %s", target, folder)
		}
		return notWritable(path, "there is no folder %s", folder)
	}
	there, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tryFile(path, target)
	case err == nil && there.IsDir():
		return notWritable(path, "it is not a file")
	}
	return nil
}

// CheckReplace refuses what CheckFile does, and a device or a FIFO, which Replace would replace by a
// file. The error is an OutputError.
func CheckReplace(path string) error {
	if err := CheckFile(path); err != nil {
		return err
	}
	if there, err := os.Stat(path); err == nil && !there.Mode().IsRegular() {
		return notWritable(path, "it is not a file")
	}
	return nil
}

// mostLinks is the largest number of successive symbolic links, as in Linux.
const mostLinks = 40

// Target returns the final path of a write to path: path itself, or the target of the symbolic link
// there, which need not exist. Links in a circle give an OutputError.
func Target(path string) (string, error) {
	target := path
	for range mostLinks {
		to, err := os.Readlink(target)
		if err != nil {
			return target, nil // not a link
		}
		if !filepath.IsAbs(to) {
			to = linkFolder(target) + to
		}
		target = to
	}
	return "", notWritable(path, "it is a symbolic link that leads in a circle")
}

// linkFolder returns the folder of a link, with a separator. It is not cleaned: "x/.." differs from
// "." if x is a link.
func linkFolder(link string) string {
	folder, _ := filepath.Split(link)
	return folder
}

// tryFile makes and removes a temporary file beside target.
func tryFile(path, target string) error {
	probe, err := os.CreateTemp(filepath.Dir(target), ".tributary")
	if err != nil {
		return Unwritable(path, target, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Unwritable returns the OutputError of an unwritable path; err is the system's error for a file or
// folder beside target, the path's final target.
func Unwritable(path, target string, err error) error {
	if at := new(fs.PathError); errors.As(err, &at) {
		err = at.Err
	}
	e := &OutputError{path, say("%s: nothing can be written in %s: %v; name a place where you may write", path, filepath.Dir(target), err)}
	e.err = err
	return e
}

func notWritable(path, why string, args ...any) error {
	return &OutputError{path, say("%s: %s", path, fmt.Sprintf(why, args...))}
}

// WriteFile writes arrays as an .npz if they are an archive, otherwise as an .npy, as Replace does.
//
// Errors: those of Replace.
func WriteFile(ctx context.Context, path string, a Arrays) error {
	return Replace(ctx, path, func(w io.Writer) error {
		if a.Archive {
			return npy.WriteArchive(w, a.Tensors)
		}
		return npy.Write(w, a.Tensors[0].Array)
	})
}

// Replace makes a file of what write writes. The file appears completely or not at all. It is written
// beside its place and moved there once complete, unless ctx is done by then. A replaced file passes its
// permissions on to the new one. A symbolic link stays, and its target is written. A device, such as
// /dev/null, would be replaced by a file, so it is refused.
//
// Errors: OutputError, the context's, those of write, and those of the system.
func Replace(ctx context.Context, path string, write func(io.Writer) error) error {
	target, err := Target(path)
	if err != nil {
		return err
	}
	if err := CheckReplace(path); err != nil {
		return err
	}
	file, err := renameio.NewPendingFile(target, renameio.WithTempDir(filepath.Dir(target)),
		renameio.WithPermissions(fs.FileMode(0o666)), renameio.WithExistingPermissions())
	if err != nil {
		return Unwritable(path, target, err)
	}
	defer file.Cleanup()
	w := bufio.NewWriter(&writer{ctx, file})
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return file.CloseAtomicallyReplace()
}

// writer writes until its context is done, in pieces, so that it notices soon.
type writer struct {
	ctx context.Context
	to  io.Writer
}

// pieceBytes is the size of a write between two checks of the context.
const pieceBytes = 1 << 20

func (w *writer) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if w.ctx.Err() != nil {
			return n, context.Cause(w.ctx)
		}
		m, err := w.to.Write(p[n:min(n+pieceBytes, len(p))])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// SameFile returns the path among paths whose final target is that of path, or "".
func SameFile(path string, paths []string) string {
	target, err := Target(path)
	if err != nil {
		return ""
	}
	there, err := os.Stat(target)
	for _, p := range paths {
		if err != nil {
			if to, e := Target(p); e == nil && filepath.Clean(to) == filepath.Clean(target) {
				return p
			}
		} else if info, e := os.Stat(p); e == nil && os.SameFile(info, there) {
			return p
		}
	}
	return ""
}
