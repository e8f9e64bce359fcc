// What the jobs of a card share: its slots, and turns at its sums and results.

package model

// span is a run of the card's slots.
type span struct{ first, count int }

// overlaps reports whether two spans have a slot in common.
func (s span) overlaps(t span) bool { return s.first < t.first+t.count && t.first < s.first+s.count }

// allot returns the slots for a job that is to be set up: the first count slots,
// counted from a multiple of count, that no other job uses. It returns false when
// there are none.
func (c *Card) allot(to *job, count int) (slots span, ok bool) {
	for first := 0; first+count <= 2*c.cfg.Window; first += count {
		if slots := (span{first, count}); !c.taken(slots, to) {
			return slots, true
		}
	}
	return span{}, false
}

// taken reports whether a job other than but uses one of the slots.
func (c *Card) taken(slots span, but *job) bool {
	for number := range c.jobs {
		if j := &c.jobs[number]; j != but && j.slots.overlaps(slots) {
			return true
		}
	}
	return false
}

// turns lets jobs do one thing after another: whose turn was last waits for all
// others that have something to do.
type turns struct {
	of   int // jobs
	next int // number of the job that is asked first
}

// take returns the number of the job whose turn it is, of those that are ready;
// ok is false when none is.
func (t *turns) take(ready func(number int) bool) (number int, ok bool) {
	for i := range t.of {
		if number := (t.next + i) % t.of; ready(number) {
			t.next = (number + 1) % t.of
			return number, true
		}
	}
	return 0, false
}
