package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"tributary/driver/npy"
)

// gradients is what one worker contributes: the array of an .npy file, or all
// arrays of an .npz file one after another, in the order of their names.
type gradients struct {
	path    string
	archive bool
	element npy.Type    // of all arrays
	tensors []npy.Named // where the elements come from; Data is set aside
	data    []byte      // all elements
}

// readAll reads every worker's file and compares them. All that is wrong with
// any of them is in the error.
func readAll(paths []string) ([]gradients, error) {
	all := make([]gradients, 0, len(paths))
	var problems []string
	for _, path := range paths {
		g, err := readGradients(path)
		if err == nil && len(all) > 0 {
			err = g.compare(all[0])
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", path, err))
			continue
		}
		all = append(all, g)
	}
	switch len(problems) {
	case 0:
		return all, nil
	case 1:
		return nil, errors.New(problems[0])
	}
	return nil, fmt.Errorf("%d of the %d files cannot be used:\n  %s", len(problems), len(paths), strings.Join(problems, "\n  "))
}

// readGradients reads one worker's file.
func readGradients(path string) (gradients, error) {
	f, err := os.Open(path)
	if err != nil {
		return gradients{}, withoutPath(err)
	}
	defer f.Close()
	g := gradients{path: path}
	if g.archive, err = isArchive(f); err != nil {
		return gradients{}, withoutPath(err)
	}
	if g.tensors, err = readTensors(f, g.archive); err != nil {
		return gradients{}, withoutPath(err)
	}
	if err := g.flatten(); err != nil {
		return gradients{}, err
	}
	if len(g.data) == 0 {
		return gradients{}, fmt.Errorf("it is empty (%s); a reduction needs at least one element", g.describe())
	}
	return g, nil
}

// isArchive tells whether a file is an .npz (by its content, as NumPy does),
// and leaves it at its start.
func isArchive(f *os.File) (bool, error) {
	var start [4]byte
	n, err := io.ReadFull(f, start[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false, err
	}
	_, err = f.Seek(0, io.SeekStart)
	zip := bytes.Equal(start[:n], []byte("PK\x03\x04")) || bytes.Equal(start[:n], []byte("PK\x05\x06"))
	return zip, err
}

func readTensors(f *os.File, archive bool) ([]npy.Named, error) {
	if !archive {
		a, err := npy.Read(f)
		return []npy.Named{{Array: a}}, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return npy.ReadArchive(f, info.Size())
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

// flatten moves the elements of all tensors into data. It is an error if they
// are of several types.
func (g *gradients) flatten() error {
	for i, t := range g.tensors {
		if i == 0 {
			g.element = t.Type
		} else if t.Type != g.element {
			return fmt.Errorf("array %q is of %s, array %q of %s; the arrays of one reduction have one type",
				g.tensors[0].Name, g.element, t.Name, t.Type)
		}
	}
	if len(g.tensors) == 1 {
		g.data = g.tensors[0].Data
	} else {
		for _, t := range g.tensors {
			g.data = append(g.data, t.Data...)
		}
	}
	for i := range g.tensors {
		g.tensors[i].Data = nil
	}
	return nil
}

// describe says what shape the gradients have.
func (g *gradients) describe() string {
	if !g.archive {
		return "shape " + npy.FormatShape(g.tensors[0].Shape)
	}
	return fmt.Sprintf("%d arrays", len(g.tensors))
}

// compare refuses tensors that have not the names, shapes and type of first's.
func (g *gradients) compare(first gradients) error {
	if g.archive != first.archive {
		return fmt.Errorf("it is %s, but %s is %s", g.kind(), first.path, first.kind())
	}
	shape := map[string][]int{}
	for _, t := range g.tensors {
		shape[t.Name] = t.Shape
	}
	var problems []string
	if g.element != first.element {
		problems = append(problems, fmt.Sprintf("its type is %s, but %s has %s", g.element, first.path, first.element))
	}
	for _, want := range first.tensors {
		have, ok := shape[want.Name]
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("it lacks array %q of %s", want.Name, first.path))
		case npy.FormatShape(have) != npy.FormatShape(want.Shape):
			problems = append(problems, fmt.Sprintf("%sits shape is %s, but %s has %s",
				arrayPrefix(want.Name), npy.FormatShape(have), first.path, npy.FormatShape(want.Shape)))
		}
		delete(shape, want.Name)
	}
	for _, t := range g.tensors {
		if _, extra := shape[t.Name]; extra {
			problems = append(problems, fmt.Sprintf("its array %q is not in %s", t.Name, first.path))
		}
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// place returns how a person finds element i of all: by its index as NumPy
// writes it, and by its array's name in an archive.
func (g *gradients) place(i int) string {
	for _, t := range g.tensors {
		n := size(t.Shape)
		if i >= n {
			i -= n
			continue
		}
		at := "element " + index(t.Shape, i)
		if len(t.Shape) == 0 {
			at = "the number"
		}
		if t.Name != "" {
			at += fmt.Sprintf(" of array %q", t.Name)
		}
		return at
	}
	panic("an element behind the last array")
}

// index writes the index of element i of an array: 7, or [1, 2] for two
// dimensions and more.
func index(shape []int, i int) string {
	if len(shape) < 2 {
		return strconv.Itoa(i)
	}
	at := make([]string, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		at[d] = strconv.Itoa(i % shape[d])
		i /= shape[d]
	}
	return "[" + strings.Join(at, ", ") + "]"
}

func (g *gradients) kind() string {
	if g.archive {
		return "an archive (.npz)"
	}
	return "a single array (.npy)"
}

func arrayPrefix(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("array %q: ", name)
}

// size returns the number of elements of a shape that was read.
func size(shape []int) int {
	n, err := npy.Elements(shape)
	if err != nil {
		panic(err) // npy.Read has checked it
	}
	return n
}
