package main

// How late the ranks of a job come, in words.

import (
	"fmt"
	"strconv"

	"tributary/driver"
)

// Of a rank's contributions these parts are told: how late it is as a rule, and how
// late it can be.
const (
	latePart     = 0.5
	latePartMost = 0.99
)

// lateWords says how late one rank comes.
func lateWords(l driver.Lags) string {
	return fmt.Sprintf("half within %s cycles of the first, 99 %% within %s", within(l, latePart), within(l, latePartMost))
}

// within writes the cycles in which a part of the contributions came: 0 or a power
// of four, "64 k" for 4^8; the counts tell no more apart than 4^14.
func within(l driver.Lags, part float64) string {
	cycles, ok := l.Within(part)
	unit := ""
	switch {
	case !ok:
		return "> 256 M"
	case cycles >= 1<<20:
		cycles, unit = cycles>>20, " M"
	case cycles >= 1<<10:
		cycles, unit = cycles>>10, " k"
	}
	return strconv.FormatUint(cycles, 10) + unit
}

// lateLines says in lines of 80 columns how late each rank comes: nothing of a job
// to which nobody has contributed.
func (s jobState) lateLines() []string {
	const (
		head = "  late  cycles behind the first, half and 99 %:"
		more = "       "
	)
	var lines []string
	line := head
	for rank, l := range s.Lags {
		if l.Total() == 0 {
			continue
		}
		cell := fmt.Sprintf(" rank %d: %s, %s;", rank, within(l, latePart), within(l, latePartMost))
		if len(line)+len(cell) > 80 {
			lines = append(lines, line)
			line = more
		}
		line += cell
	}
	if line == head {
		return nil
	}
	return append(lines, line[:len(line)-1])
}
