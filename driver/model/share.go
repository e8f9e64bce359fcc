// The shared resources of a card's jobs: its slots, and turns at its sums and results.

package model

// span is a run of the card's slots.
type span struct{ first, count int }

// overlaps reports whether two spans have a slot in common.
func (s span) overlaps(t span) bool { return s.first < t.first+t.count && t.first < s.first+s.count }

// allot returns free slots for a job: the first span of count slots that begins at a multiple of
// count. It returns false if there is none.
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

// turns orders the jobs: the job with the last turn waits for all others that are ready.
type turns struct {
	of   int // jobs
	next int // number of the first job to consider
}

// take returns the number of the next ready job; ok is false if none is ready.
func (t *turns) take(ready func(number int) bool) (number int, ok bool) {
	for i := range t.of {
		if number := (t.next + i) % t.of; ready(number) {
			t.next = (number + 1) % t.of
			return number, true
		}
	}
	return 0, false
}
