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

// ReadFiles reads every worker's file, an .npy or an .npz, and compares them. The arrays
// of an .npz come in the order of their names. A file may be a FIFO. ReadFiles returns
// as soon as ctx is done, also while a file does not open or gives nothing.
//
// Errors: ArraysError, with all that is wrong with any of the files; the context's.
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

// readFile reads one worker's file. It returns when ctx is done; what the system
// holds up goes on until it lets go.
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

// releaseOpen ends an open of a FIFO that waits for a writer, by being one.
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
	stop := context.AfterFunc(ctx, func() { f.Close() }) // ends a read of a FIFO
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

// isArchive tells whether a file is an .npz, by its content, as NumPy does.
func isArchive(in *bufio.Reader) (bool, error) {
	start, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return false, err
	}
	return bytes.Equal(start, []byte("PK\x03\x04")) || bytes.Equal(start, []byte("PK\x05\x06")), nil
}

// readArchive reads an .npz; one that comes through a FIFO is read into memory first.
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

// gather moves the elements of arrays of one type into one piece of memory.
func (a *Arrays) gather() {
	if a.check() != nil {
		return // refused as it is
	}
	whole, at := inOnePiece(a.Tensors), 0
	for i, t := range a.Tensors {
		a.Tensors[i].Data = whole[at : at+len(t.Data)]
		at += len(t.Data)
	}
}

// withoutPath takes the file's name out of an error of the system, for a
// message that begins with it.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
