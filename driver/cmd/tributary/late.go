package main

// The lateness of a job's ranks, as text.

import (
	"fmt"
	"strconv"

	"tributary/driver"
)

// The quantiles of a rank's lateness that are printed.
const (
	median   = 0.5
	latest99 = 0.99
)

// lateWords returns the lateness of one rank as text.
func lateWords(l driver.Lags) string {
	return fmt.Sprintf("median lateness %s cycles, 99th percentile %s", quantile(l, median), quantile(l, latest99))
}

// quantile returns a quantile of the lateness in cycles as text: 0 or a power of four,
// "64 k" for 4^8. The counts do not go beyond 4^14.
func quantile(l driver.Lags, part float64) string {
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

// lateLines returns the lateness of each rank in lines of at most 80 columns. Ranks
// without contributions are left out, and so is a job without any.
func (s jobState) lateLines() []string {
	const (
		head = "  late  cycles, median and 99th percentile:"
		more = "       "
	)
	var lines []string
	line := head
	for rank, l := range s.Lags {
		if l.Total() == 0 {
			continue
		}
		cell := fmt.Sprintf(" rank %d: %s, %s;", rank, quantile(l, median), quantile(l, latest99))
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
