package driver

import "testing"

// TestCopies records copies of results that come late, twice and out of order, around the end of the
// VIDs.
func TestCopies(t *testing.T) {
	c := newCopies(2) // of four results
	for i, step := range []struct {
		vid         uint32
		ranks, want uint64
	}{
		{0xfffffffe, 1, 0},
		{0xfffffffe, 2, 0},
		{0xfffffffe, 1, 1},
		{0xffffffff, 1, 0},
		{0xfffffffe, 4, 0},
		{2, 1, 0}, // in the place of fffffffe
		{0xfffffffe, 8, 8},
		{2, 3, 1},
		{2, 2, 2},
		{0xffffffff, 1, 1},
		{0, 1, 0},
	} {
		if got := c.again(step.vid, step.ranks); got != step.want {
			t.Errorf("step %d: a copy of %#x for ranks %#x is one again for %#x, want %#x", i, step.vid, step.ranks, got, step.want)
		}
	}
}
