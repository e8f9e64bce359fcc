package reduction

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tributary/driver/npy"
)

// Arrays is one worker's contribution, or the outcome of a reduction: one array, or several named
// ones. Elements are little-endian, in C order, as in package npy. A reduction reads Data in place
// if it is contiguous in memory.
type Arrays struct {
	Name    string      // for messages, such as a file's path; "worker N" when empty
	Archive bool        // several named arrays, as of an .npz; otherwise Tensors holds one, without a name
	Tensors []npy.Named // all of one type
}

// Array returns one array as a worker's contribution.
func Array(a npy.Array) Arrays { return Arrays{Tensors: []npy.Named{{Array: a}}} }

// contribution is a worker's arrays, joined.
type contribution struct {
	name    string
	archive bool
	element npy.Type    // the type of all arrays
	tensors []npy.Named // the arrays that provide the elements; without Data
	data    []byte      // all elements
}

// join makes contributions of all workers' arrays and compares them. The error, an ArraysError,
// lists the problems of all of them.
func join(workers []Arrays) ([]contribution, error) {
	all := make([]contribution, 0, len(workers))
	e := &ArraysError{Total: len(workers)}
	for w, a := range workers {
		if a.Name == "" {
			a.Name = fmt.Sprintf("worker %d", w)
		}
		c, err := a.join(all)
		if err != nil {
			e.Problems = append(e.Problems, ArrayProblem{w, a.Name, err})
			continue
		}
		all = append(all, c)
	}
	if len(e.Problems) > 0 {
		return nil, e
	}
	return all, nil
}

// join makes one contribution and compares it with the first contribution.
func (a Arrays) join(before []contribution) (contribution, error) {
	c := contribution{name: a.Name, archive: a.Archive}
	if err := a.check(); err != nil {
		return c, err
	}
	if len(a.Tensors) > 0 {
		c.element = a.Tensors[0].Type
	}
	c.data = inOnePiece(a.Tensors)
	for _, t := range a.Tensors {
		t.Data = nil
		c.tensors = append(c.tensors, t)
	}
	if len(c.data) == 0 {
		return c, fmt.Errorf("it is empty (%s); a reduction needs at least one element", c.describe())
	}
	if len(before) > 0 {
		return c, c.compare(before[0])
	}
	return c, nil
}

// check refuses arrays of different types, and arrays whose data do not match their shape.
func (a Arrays) check() error {
	if !a.Archive && len(a.Tensors) != 1 {
		return fmt.Errorf("it holds %d arrays; only an archive may hold another number than one", len(a.Tensors))
	}
	for _, t := range a.Tensors {
		if first := a.Tensors[0]; t.Type != first.Type {
			return fmt.Errorf("array %q is of %s, array %q of %s; the arrays of one reduction have one type",
				first.Name, first.Type, t.Name, t.Type)
		}
		n, err := npy.Elements(t.Shape)
		if err != nil {
			return fmt.Errorf("%s%w", arrayPrefix(t.Name), err)
		}
		if want := n * t.Type.Size(); len(t.Data) != want {
			return fmt.Errorf("%sit has %d bytes of data; its shape %s and type %s make %d", arrayPrefix(t.Name), len(t.Data), npy.FormatShape(t.Shape), t.Type, want)
		}
	}
	return nil
}

// inOnePiece returns the elements of all tensors, one after another. It does not copy contiguous
// ones.
func inOnePiece(tensors []npy.Named) []byte {
	if len(tensors) == 0 {
		return nil
	}
	if whole := adjacent(tensors); whole != nil {
		return whole
	}
	var data []byte
	for _, t := range tensors {
		data = append(data, t.Data...)
	}
	return data
}

// adjacent returns the memory of tensors if they are contiguous in it, or nil.
func adjacent(tensors []npy.Named) []byte {
	total := 0
	for _, t := range tensors {
		total += len(t.Data)
	}
	first := tensors[0].Data
	if cap(first) < total {
		return nil
	}
	whole, at := first[:total:total], 0
	for _, t := range tensors {
		if len(t.Data) > 0 && &whole[at] != &t.Data[0] {
			return nil
		}
		at += len(t.Data)
	}
	return whole
}

// cut distributes elements to tensors of the same names and shapes.
func cut(element npy.Type, data []byte, tensors []npy.Named) []npy.Named {
	out := make([]npy.Named, len(tensors))
	for i, t := range tensors {
		n := size(t.Shape) * element.Size()
		out[i] = npy.Named{Name: t.Name, Array: npy.Array{Shape: t.Shape, Type: element, Data: data[:n]}}
		data = data[n:]
	}
	return out
}

// describe describes the arrays' shape.
func (c *contribution) describe() string {
	if !c.archive {
		return "shape " + npy.FormatShape(c.tensors[0].Shape)
	}
	return fmt.Sprintf("%d arrays", len(c.tensors))
}

// compare refuses tensors whose names, shapes and type differ from first's.
func (c *contribution) compare(first contribution) error {
	if c.archive != first.archive {
		return fmt.Errorf("it is %s, but %s is %s", c.kind(), first.name, first.kind())
	}
	shape := map[string][]int{}
	for _, t := range c.tensors {
		shape[t.Name] = t.Shape
	}
	var problems []string
	if c.element != first.element {
		problems = append(problems, fmt.Sprintf("its type is %s, but %s has %s", c.element, first.name, first.element))
	}
	for _, want := range first.tensors {
		have, ok := shape[want.Name]
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("it lacks array %q of %s", want.Name, first.name))
		case npy.FormatShape(have) != npy.FormatShape(want.Shape):
			problems = append(problems, fmt.Sprintf("%sits shape is %s, but %s has %s",
				arrayPrefix(want.Name), npy.FormatShape(have), first.name, npy.FormatShape(want.Shape)))
		}
		delete(shape, want.Name)
	}
	for _, t := range c.tensors {
		if _, extra := shape[t.Name]; extra {
			problems = append(problems, fmt.Sprintf("its array %q is not in %s", t.Name, first.name))
		}
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// place describes the position of element i of all: its NumPy index and, in an archive, its array's
// name.
func (c *contribution) place(i int) string {
	for _, t := range c.tensors {
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

// index formats the index of element i of an array: 7, or [1, 2] for two or more dimensions.
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

func (c *contribution) kind() string {
	if c.archive {
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

// size returns the number of elements of a shape, which npy.Read has checked.
func size(shape []int) int {
	n, err := npy.Elements(shape)
	if err != nil {
		panic(err)
	}
	return n
}
