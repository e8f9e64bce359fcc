package npy

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Named is an array of an archive with its name.
type Named struct {
	Name string
	Array
}

// memberSuffix is the suffix of an array's file name in the archive.
const memberSuffix = ".npy"

// TooLargeError means that an archive unpacks to more bytes than the limit.
type TooLargeError struct {
	Size  uint64 // of all arrays, as announced in the archive's directory
	Limit uint64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("its arrays unpack to %d bytes, more than the limit of %d; split it into several archives", e.Size, e.Limit)
}

// ReadArchive reads all arrays of an .npz file in the order of their names. size is the file's
// size in bytes. The error covers every bad array. It is a TooLargeError when the archive
// unpacks to more than the available memory of this machine.
func ReadArchive(r io.ReaderAt, size int64) ([]Named, error) {
	return ReadArchiveWithin(r, size, availableMemory())
}

// ReadArchiveWithin is ReadArchive with a limit in bytes for the sum of the unpacked sizes. It
// checks the archive's directory before it unpacks an array. An array that unpacks to more than
// announced is an error.
func ReadArchiveWithin(r io.ReaderAt, size int64, limit uint64) ([]Named, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, errors.New("it is not a NumPy archive, or it is cut off")
	}
	if total := unpackedSize(z.File); total > limit {
		return nil, &TooLargeError{Size: total, Limit: limit}
	}
	var arrays []Named
	var bad []error
	seen := map[string]bool{}
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, memberSuffix)
		if seen[name] {
			bad = append(bad, fmt.Errorf("it holds array %q twice", name))
			continue
		}
		seen[name] = true
		a, err := readMember(f)
		if err != nil {
			bad = append(bad, fmt.Errorf("array %q: %w", name, err))
			continue
		}
		arrays = append(arrays, Named{name, a})
	}
	slices.SortFunc(arrays, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return arrays, errors.Join(bad...)
}

// unpackedSize returns the size of all files as announced in the directory. If the sum
// overflows, it returns the largest number.
func unpackedSize(files []*zip.File) (total uint64) {
	for _, f := range files {
		sum, carry := bits.Add64(total, f.UncompressedSize64, 0)
		if carry != 0 {
			return math.MaxUint64
		}
		total = sum
	}
	return total
}

// readMember reads one array of an archive. Reading to the end checks its size and CRC-32.
func readMember(f *zip.File) (Array, error) {
	r, err := f.Open()
	if err != nil {
		return Array{}, err
	}
	defer r.Close()
	a, err := Read(r)
	if errors.Is(err, zip.ErrFormat) {
		err = fmt.Errorf("it is damaged: it unpacks to more than the %d bytes that the archive's directory announces", f.UncompressedSize64)
	}
	return a, err
}

// WriteArchive writes arrays as an .npz file, uncompressed like np.savez, and without
// timestamps. The same arrays give the same bytes.
func WriteArchive(w io.Writer, arrays []Named) error {
	z := zip.NewWriter(w)
	for _, a := range arrays {
		m, err := z.CreateHeader(&zip.FileHeader{Name: a.Name + memberSuffix, Method: zip.Store})
		if err != nil {
			return err
		}
		if err := Write(m, a.Array); err != nil {
			return fmt.Errorf("array %q: %w", a.Name, err)
		}
	}
	return z.Close()
}
