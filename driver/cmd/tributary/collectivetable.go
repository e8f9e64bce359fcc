package main

// The output of tributary collective.

import (
	"encoding/json"
	"fmt"
	"io"

	"tributary/driver/collective"
	"tributary/driver/collective/bench"
)

// collectiveRow is a line of nccl-tests.
type collectiveRow struct {
	Size      int     `json:"size"`  // bytes
	Count     int     `json:"count"` // elements
	Type      string  `json:"type"`
	Op        string  `json:"redop"`
	Root      int     `json:"root"` // -1: none
	Seconds   float64 `json:"seconds"`
	Algorithm float64 `json:"algbw"` // bytes a second
	Bus       float64 `json:"busbw"` // bytes a second
	Wrong     int     `json:"wrong"`
	Steps     float64 `json:"steps"`    // of rank 0 or the only rank here, in a call
	Sent      float64 `json:"sent"`     // likewise, without headers
	Received  float64 `json:"received"` // likewise
}

func newRow(k bench.Case, r bench.Result, ranks int) collectiveRow {
	row := collectiveRow{Size: k.Bytes(), Count: k.Elements, Type: k.Format.String(), Op: "none", Root: -1, Seconds: r.Time.Seconds(),
		Algorithm: r.AlgorithmBandwidth(k), Wrong: r.Wrong, Steps: r.Steps, Sent: r.Sent, Received: r.Received}
	row.Bus = row.Algorithm * bench.BusFactor(k.Operation, ranks)
	switch k.Operation {
	case collective.AllReduceOp, collective.ReduceScatterOp:
		row.Op = "sum"
	case collective.BroadcastOp:
		row.Root = k.Root
	}
	return row
}

// table prints rows as they come.
type table struct {
	*setup
	out      io.Writer
	progress *progress
	rows     []collectiveRow
}

func newTable(s *setup, out, errs io.Writer) *table {
	t := &table{setup: s, out: out, progress: &progress{out: errs}}
	if _, shows := terminal(out); s.json || !shows { // else the rows show the progress
		t.progress = newProgress(errs, len(s.cases))
	}
	return t
}

// add prints a row.
func (t *table) add(r collectiveRow) error {
	t.rows = append(t.rows, r)
	t.progress.set(len(t.rows), 0)
	switch {
	case t.report:
		return json.NewEncoder(t.out).Encode(r)
	case t.json:
		return nil
	case len(t.rows) == 1:
		fmt.Fprintf(t.out, "# %s by %s, %s%s\n", t.operation, t.algorithm, several(uint64(t.group.Size()), "rank"), t.layout())
		fmt.Fprintf(t.out, "#%11s %12s %9s %7s %6s %9s %8s %8s %7s\n", "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong")
		fmt.Fprintf(t.out, "#%11s %12s %9s %7s %6s %9s %8s %8s\n", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)")
	}
	wrong := "N/A"
	if t.check {
		wrong = fmt.Sprint(r.Wrong)
	}
	_, err := fmt.Fprintf(t.out, "%12d %12d %9s %7s %6d %9.1f %8.3f %8.3f %7s\n", r.Size, r.Count, r.Type, r.Op, r.Root, 1e6*r.Seconds, r.Algorithm/1e9, r.Bus/1e9, wrong)
	return err
}

// layout returns where the ranks are, for the heading.
func (s *setup) layout() string {
	switch {
	case s.racks != nil:
		return ", racks " + listed(s.racks)
	case s.machines > 0:
		return ", " + several(uint64(s.machines), "machine")
	}
	return ""
}

// end prints the report of -json, and refuses wrong results.
func (t *table) end() error {
	wrong := 0
	for _, r := range t.rows {
		wrong += r.Wrong
	}
	if t.json && !t.report {
		if err := printJSON(t.out, struct {
			Operation string          `json:"operation"`
			Algorithm string          `json:"algorithm"`
			Ranks     int             `json:"ranks"`
			Racks     []int           `json:"racks,omitempty"`
			Machines  int             `json:"machines,omitempty"`
			Checked   bool            `json:"checked"`
			Rows      []collectiveRow `json:"rows"`
		}{t.operation, t.algorithm.String(), t.group.Size(), t.racks, int(t.machines), t.check, t.rows}); err != nil {
			return err
		}
	}
	if wrong > 0 && !t.report {
		return fmt.Errorf("%s of results are wrong", several(uint64(wrong), "element"))
	}
	return nil
}
