package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"tributary/driver/npy"
)

// checkOutput refuses, before anything is summed, an output file that could not
// be written or that is one of the inputs.
func checkOutput(path string, inputs []string) error {
	if suffix := filepath.Ext(path); suffix != ".npy" && suffix != ".npz" {
		return usagef("-o %s: its name must end in .npy, or in .npz for archives", path)
	}
	if err := checkFile("-o", path); err != nil {
		return err
	}
	there, err := os.Stat(path)
	if err != nil {
		return nil // a new file
	}
	if !there.Mode().IsRegular() {
		return fmt.Errorf("-o %s: what is there is not a file", path)
	}
	if in := sameFile(there, inputs); in != "" {
		return usagef("-o %s: it is the input %s; give the sum a file of its own", path, in)
	}
	return nil
}

// checkFile refuses a path, given by a flag, where no file can be written.
func checkFile(flag, path string) error {
	if folder, err := os.Stat(filepath.Dir(path)); err != nil || !folder.IsDir() {
		return fmt.Errorf("%s %s: there is no folder %s", flag, path, filepath.Dir(path))
	}
	there, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tryFile(flag, path)
	case err == nil && there.IsDir():
		return fmt.Errorf("%s %s: what is there is not a file", flag, path)
	}
	return nil
}

// tryFile makes and removes a file beside a path, given by a flag, where there is none
// yet.
func tryFile(flag, path string) error {
	probe, err := os.CreateTemp(filepath.Dir(path), ".tributary")
	if err != nil {
		return unwritable(flag, path, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// unwritable says by err, of a file or folder beside the path that a flag gives, that
// nothing can be written there.
func unwritable(flag, path string, err error) error {
	if at := new(fs.PathError); errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s %s: nothing can be written in %s: %w; name a place where you may write", flag, path, filepath.Dir(path), err)
}

// checkRecord refuses a link log in the place of an input or of the output.
func checkRecord(path, out string, inputs []string) error {
	if path == "" {
		return nil
	}
	other := ""
	if there, err := os.Stat(path); err == nil {
		other = sameFile(there, append([]string{out}, inputs...))
	} else if filepath.Clean(path) == filepath.Clean(out) {
		other = out
	}
	if other != "" {
		return usagef("-record %s: that is %s; give the link log a file of its own", path, other)
	}
	return nil
}

// sameFile returns the path that leads to file, or "".
func sameFile(file fs.FileInfo, paths []string) string {
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && os.SameFile(info, file) {
			return p
		}
	}
	return ""
}

// checkSuffix refuses an output whose name promises another kind of file.
func checkSuffix(path string, archive bool) error {
	if archive != strings.HasSuffix(path, ".npz") {
		want := ".npy"
		if archive {
			want = ".npz"
		}
		return usagef("-o %s: its name must end in %s, like the inputs'", path, want)
	}
	return nil
}

// writeSum writes the sum, of elements of the given type, in the form of the inputs
// that like stands for. The file appears whole or not at all: it is written
// beside its place and moved there when it is complete.
func writeSum(path string, element npy.Type, sum []byte, like gradients) error {
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(fs.FileMode(0o666)))
	if err != nil {
		return unwritable("-o", path, err)
	}
	defer file.Cleanup()
	w := bufio.NewWriter(file)
	arrays := cut(element, sum, like.tensors)
	if like.archive {
		err = npy.WriteArchive(w, arrays)
	} else {
		err = npy.Write(w, arrays[0].Array)
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}

// cut deals the elements out to tensors of the same names and shapes.
func cut(element npy.Type, sum []byte, tensors []npy.Named) []npy.Named {
	out := make([]npy.Named, len(tensors))
	for i, t := range tensors {
		n := size(t.Shape) * element.Size()
		out[i] = npy.Named{Name: t.Name, Array: npy.Array{Shape: t.Shape, Type: element, Data: sum[:n]}}
		sum = sum[n:]
	}
	return out
}
