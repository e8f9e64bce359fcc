package transport

import "time"

// SetSimEndTime sets how long a virtual card may take to end. restore sets the old value.
func SetSimEndTime(d time.Duration) (restore func()) {
	before := simEndTime
	simEndTime = d
	return func() { simEndTime = before }
}

// SetSimBlameTime sets how long a virtual card may take to end after its link. restore sets the old value.
func SetSimBlameTime(d time.Duration) (restore func()) {
	before := simBlameTime
	simBlameTime = d
	return func() { simBlameTime = before }
}
