package npy

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Named is an array of an archive, and its name there.
type Named struct {
	Name string
	Array
}

// memberSuffix is what NumPy appends to an array's name in the archive.
const memberSuffix = ".npy"

// ReadArchive reads all arrays of an .npz file of the given size in bytes, in
// the order of their names. Every bad array is in the error.
func ReadArchive(r io.ReaderAt, size int64) ([]Named, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, errors.New("it is not a NumPy archive, or it is cut off")
	}
	var arrays []Named
	var bad []error
	seen := map[string]bool{}
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, memberSuffix)
		if seen[name] {
			bad = append(bad, fmt.Errorf("array %q is in it twice", name))
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

// readMember reads one array of an archive, and thereby checks its CRC-32.
func readMember(f *zip.File) (Array, error) {
	r, err := f.Open()
	if err != nil {
		return Array{}, err
	}
	defer r.Close()
	return Read(r)
}

// WriteArchive writes arrays as an .npz file, uncompressed as np.savez does,
// and without time stamps: the same arrays give the same bytes.
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
