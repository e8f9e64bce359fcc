package explorer

import "fmt"

// Numbers numbers values from 0 in the order in which they come, so that states have small numbers in their
// place. The worlds of a search share it.
type Numbers[T comparable] struct {
	Values []T // by number

	numbers map[T]int
	most    int
}

// NewNumbers returns an empty table with room for so many values.
func NewNumbers[T comparable](most int) *Numbers[T] {
	return &Numbers[T]{numbers: map[T]int{}, most: most}
}

// Number returns the number of a value. It panics when the table is full: then states need more room.
func (t *Numbers[T]) Number(v T) int {
	n, known := t.numbers[v]
	if !known {
		n = len(t.Values)
		if n >= t.most {
			panic(fmt.Sprintf("explorer: more than %d values of the type %T", t.most, v))
		}
		t.numbers[v] = n
		t.Values = append(t.Values, v)
	}
	return n
}
