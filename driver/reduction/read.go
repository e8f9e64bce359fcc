package reduction

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"tributary/driver/npy"
)

// ReadFiles reads every worker's file, an .npy or an .npz, and compares them. The arrays of an .npz
// are in the order of their names. A file may be a FIFO. ReadFiles returns as soon as ctx is done,
// even if a file cannot be opened yet or provides no data.
//
// Errors: ArraysError, with the problems of all files; the context's.
func ReadFiles(ctx context.Context, paths []string) ([]Arrays, error) {
	e := &ArraysError{Total: len(paths), files: true}
	all := make([]Arrays, 0, len(paths))
	var compared []contribution
	for w, path := range paths {
		a, err := readFile(ctx, path)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var c contribution
		if err == nil {
			c, err = a.join(compared)
		}
		if err != nil {
			e.Problems = append(e.Problems, ArrayProblem{w, path, err})
			continue
		}
		all, compared = append(all, a), append(compared, c)
	}
	if len(e.Problems) > 0 {
		return nil, e
	}
	return all, nil
}

// readFile reads one worker's file. It returns when ctx is done; a blocked system call goes on in
// the background.
func readFile(ctx context.Context, path string) (Arrays, error) {
	type read struct {
		arrays Arrays
		err    error
	}
	done := make(chan read, 1)
	go func() {
		a, err := readArrays(ctx, path)
		done <- read{a, withoutPath(err)}
	}()
	select {
	case r := <-done:
		return r.arrays, r.err
	case <-ctx.Done():
		releaseOpen(path)
		return Arrays{}, context.Cause(ctx)
	}
}

// releaseOpen unblocks the opening of a FIFO without a writer, by opening it for writing.
func releaseOpen(path string) {
	if info, err := os.Stat(path); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return
	}
	if f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		f.Close()
	}
}

func readArrays(ctx context.Context, path string) (Arrays, error) {
	f, err := os.Open(path)
	if err != nil {
		return Arrays{}, err
	}
	defer f.Close()
	stop := context.AfterFunc(ctx, func() { f.Close() }) // ends a read from a FIFO
	defer stop()
	a := Arrays{Name: path}
	in := bufio.NewReader(f)
	if a.Archive, err = isArchive(in); err != nil {
		return Arrays{}, err
	}
	if !a.Archive {
		array, err := npy.Read(in)
		a.Tensors = []npy.Named{{Array: array}}
		return a, err
	}
	if a.Tensors, err = readArchive(f, in); err == nil {
		a.gather()
	}
	return a, err
}

// isArchive reports whether a file is an .npz, by its content, like NumPy.
func isArchive(in *bufio.Reader) (bool, error) {
	start, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return false, err
	}
	return bytes.Equal(start, []byte("PK\x03\x04")) || bytes.Equal(start, []byte("PK\x05\x06")), nil
}

// readArchive reads an .npz; it first reads one from a FIFO into memory.
func readArchive(f *os.File, in io.Reader) ([]npy.Named, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		return npy.ReadArchive(f, info.Size())
	}
	all, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	return npy.ReadArchive(bytes.NewReader(all), int64(len(all)))
}

// gather moves the elements of arrays of one type into contiguous memory.
func (a *Arrays) gather() {
	if a.check() != nil {
		return // a later check refuses it
	}
	whole, at := inOnePiece(a.Tensors), 0
	for i, t := range a.Tensors {
		a.Tensors[i].Data = whole[at : at+len(t.Data)]
		at += len(t.Data)
	}
}

// withoutPath removes the file's name from a system error, for a message that begins with the name.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
