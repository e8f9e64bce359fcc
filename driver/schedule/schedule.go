// Package schedule maps the chunks of reductions to several trees (wire/TREES.md, section 7), and
// the chunks of one tree to their places in an array.
package schedule

import "fmt"

// Schedule names the tree of each chunk of a stream, from 0: chunk g belongs to tree S[g mod len(S)].
type Schedule []int

// RoundRobin returns the schedule that takes the trees in turn.
func RoundRobin(trees int) Schedule {
	s := make(Schedule, trees)
	for t := range s {
		s[t] = t
	}
	return s
}

// Most is the largest length of a schedule.
const Most = 1 << 16

// Check returns why s is no schedule of that many trees, and the remedy. A tree that s does not name
// gets no chunks; that is no error.
func (s Schedule) Check(trees int) error {
	switch {
	case len(s) == 0:
		return fmt.Errorf("it names no tree; name at least one of the %d trees, from 0, as in 0,1", trees)
	case len(s) > Most:
		return fmt.Errorf("it has %d entries; the limit is %d", len(s), Most)
	}
	for i, t := range s {
		if t < 0 || t >= trees {
			return fmt.Errorf("entry %d names tree %d, which does not exist; trees are 0 to %d", i, t, trees-1)
		}
	}
	return nil
}

// Only returns the schedule of the trees that are alive: s without the entries of the others. If no
// entry is left, the trees that are alive take turns.
func (s Schedule) Only(alive []bool) Schedule {
	left := make(Schedule, 0, len(s))
	for _, t := range s {
		if alive[t] {
			left = append(left, t)
		}
	}
	if len(left) > 0 {
		return left
	}
	for t, lives := range alive {
		if lives {
			left = append(left, t)
		}
	}
	return left
}

// Share returns the chunks of a call that belong to a tree: their places, and their number. The call
// has that many chunks, and its first one is chunk from of the stream.
func (s Schedule) Share(tree, from, chunks int) (View, int) {
	v := View{period: len(s)}
	n := 0
	for r := range len(s) {
		if s[(from+r)%len(s)] != tree {
			continue
		}
		v.places = append(v.places, r)
		n += chunks / len(s)
		if r < chunks%len(s) {
			n++
		}
	}
	if len(v.places) == len(s) {
		v = View{}
	}
	return v, n
}

// View gives the chunks of one tree their places in an array of chunks. The zero View has all chunks
// of the array.
type View struct {
	period int
	places []int // ascending, below period; chunk k of the view is at places[k mod n] + period*(k/n)
}

// List returns the view of the chunks at the given places of an array, ascending.
func List(places []int) View {
	if len(places) == 0 {
		return View{}
	}
	return View{period: places[len(places)-1] + 1, places: places}
}

// Chunk returns the place of chunk k of the view: its chunk of the array.
func (v View) Chunk(k int) int {
	if n := len(v.places); n > 0 {
		return v.places[k%n] + v.period*(k/n)
	}
	return k
}

// Run returns how many chunks of the view, from chunk k on and at most most, adjoin in the array.
func (v View) Run(k, most int) int {
	if len(v.places) == 0 {
		return most
	}
	n := 1
	for n < most && v.Chunk(k+n) == v.Chunk(k)+n {
		n++
	}
	return n
}
