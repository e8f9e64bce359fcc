package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
)

// Row is one line of the table: a value, and its peer.
type Row struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`

	// The peer, in the same unit; Peer is empty where there is none.
	Peer      string  `json:"peer,omitempty"`
	PeerValue float64 `json:"peer_value,omitempty"`
	Ratio     float64 `json:"ratio,omitempty"` // Value / PeerValue

	Target string `json:"target,omitempty"` // in words
	Holds  bool   `json:"holds"`            // true without a target
}

// beside returns the row with its peer and their ratio.
func (r Row) beside(peer string, value float64) Row {
	r.Peer, r.PeerValue, r.Ratio = peer, value, r.Value/value
	return r
}

// must returns the row with its target, and whether the value meets it.
func (r Row) must(what string, holds bool) Row {
	r.Target, r.Holds = what, holds
	return r
}

// mustRatio returns the row, which has a peer, with a target for the ratio. The speed itself
// depends on the machine.
func (r Row) mustRatio(least float64) Row {
	return r.must(fmt.Sprintf("at least %g x", least), r.Ratio >= least)
}

// mustRatioBelow is mustRatio for values that should be small.
func (r Row) mustRatioBelow(most float64) Row {
	return r.must(fmt.Sprintf("at most %g x", most), r.Ratio <= most)
}

// mustRatioNear returns the row, which has a peer, with a target for the ratio: within so many per cent of 1.
func (r Row) mustRatioNear(percent float64) Row {
	return r.must(fmt.Sprintf("within %g %%", percent), math.Abs(r.Ratio-1) <= percent/100)
}

// pair is a value and its peer's value, measured in succession.
type pair struct{ value, peer float64 }

// median returns the pair with the median ratio.
func median(pairs []pair) pair {
	sorted := slices.SortedFunc(slices.Values(pairs), func(a, b pair) int {
		return int(math.Copysign(1, a.value*b.peer-b.value*a.peer))
	})
	return sorted[len(sorted)/2]
}

// printTable prints the rows in columns.
func printTable(to io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "what\tmeasured\tbeside\tratio\ttarget")
	for _, r := range rows {
		beside, ratio, target := "", "", r.Target
		if r.Peer != "" {
			beside = significant(r.PeerValue) + " (" + r.Peer + ")"
			ratio = strconv.FormatFloat(r.Ratio, 'f', 3, 64)
		}
		if !r.Holds {
			target += " (FALLS SHORT)"
		}
		fmt.Fprintf(w, "%s\t%s %s\t%s\t%s\t%s\n", r.Name, significant(r.Value), r.Unit, beside, ratio, target)
	}
	return w.Flush()
}

// significant formats a number with four digits, or more if it has more before the point.
func significant(v float64) string {
	digits := 3
	if v > 0 {
		digits = max(0, 3-int(math.Floor(math.Log10(v))))
	}
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64)
}

// writeJSON writes the rows to a file.
func writeJSON(path string, rows []Row) error {
	text, err := json.MarshalIndent(map[string]any{"schema": 1, "rows": rows}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o666)
}
