package main

// The way of a leaf through the campaign.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	leaves "tributary/hwgen/leaf"
)

type campaign struct {
	root        string
	count, seed int
	jobs        int
	again       bool

	cards sync.Mutex // held while hwgen writes cards for one bench
	print sync.Mutex
}

// record is the result for a leaf.
type record struct {
	Leaf    string
	SHA256  string // of its Verilog, without comments: see digests
	Checks  string // of its Verilog and its proof, without comments
	Count   int
	Seed    int
	Mutants []fate
}

// fate is the outcome for a mutant.
type fate struct {
	Mutant mutant
	By     string   // trace, induction, cover, bench, card; same or survivor
	Passed []string `json:",omitempty"` // steps that did not detect it, while the leaf is in progress
}

// run processes leaves, several at once, and returns their records. An error in one leaf does not
// stop the others.
func (c *campaign) run(ctx context.Context, leaves []leaf) ([]record, error) {
	records := make([]record, len(leaves))
	errs := make([]error, len(leaves))
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(1, c.jobs) {
		workers.Go(func() {
			for i := range next {
				records[i], errs[i] = c.leaf(ctx, leaves[i])
			}
		})
	}
	for i := range leaves {
		select {
		case next <- i:
		case <-ctx.Done():
			errs[i] = ctx.Err()
		}
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return records, errors.Join(errs...)
}

// say prints a line about a leaf on a terminal.
func (c *campaign) say(l leaf, format string, args ...any) {
	info, err := os.Stderr.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return
	}
	c.print.Lock()
	defer c.print.Unlock()
	fmt.Fprintf(os.Stderr, "mutate: %s %s\n", l.name, fmt.Sprintf(format, args...))
}

// leaf processes one leaf, unless its record is current.
func (c *campaign) leaf(ctx context.Context, l leaf) (record, error) {
	dir := filepath.Join(c.root, folder, l.name)
	sum, checks, err := c.digests(l)
	if err != nil {
		return record{}, err
	}
	file := filepath.Join(dir, "record.json")
	fresh := record{Leaf: l.name, SHA256: sum, Checks: checks, Count: c.count, Seed: c.seed}
	r, done := fresh.reload(file)
	if done && !c.again {
		return r, nil
	}
	w := &way{campaign: c, leaf: l, dir: dir, record: fresh}
	under, resumes := fresh.reload(w.underWay())
	if resumes && !done {
		w.record = under
	} else if err := os.RemoveAll(dir); err != nil {
		return record{}, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return record{}, err
	}
	if err := w.all(ctx); err != nil {
		return record{}, fmt.Errorf("%s: %w", l.name, err)
	}
	for i := range w.Mutants {
		w.Mutants[i].Passed = nil
	}
	c.say(l, "done: %s", w.summary())
	return w.record, writeJSON(file, w.record)
}

// reload reads a record from a file, if it has the same mutants of the same leaf.
func (r *record) reload(file string) (record, bool) {
	var there record
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &there) != nil {
		return there, false
	}
	return there, there.Checks == r.Checks && there.Count == r.Count && there.Seed == r.Seed
}

// verilog reads a leaf's source.
func (c *campaign) verilog(leaf string) ([]byte, error) {
	return leaves.NewLibrary(os.DirFS(filepath.Join(c.root, "rtl")), "").Read(leaf)
}

// way is a leaf's progress through the campaign.
type way struct {
	*campaign
	record
	leaf leaf
	dir  string
}

// underWay is the file of intermediate results.
func (w *way) underWay() string { return filepath.Join(w.dir, "under_way.json") }

// reference is the elaboration from which mutants are chosen: the proof's, or else the last that
// a bench builds.
type reference struct {
	module *module
	file   string // of the elaborated design
	leaf   string
	formal int // line of the first property
}

// ofDesign reports whether a source position is before the properties.
func (r *reference) ofDesign(source string) bool {
	file, span, _ := strings.Cut(source, ":")
	line, _, _ := strings.Cut(span, ".")
	n, err := strconv.Atoi(line)
	return file == r.leaf+".v" && err == nil && (r.formal == 0 || n < r.formal)
}

func (w *way) all(ctx context.Context) error {
	own, err := openBenches(ctx, w.campaign, w.leaf, filepath.Join(w.dir, "benches"), w.leaf.benches)
	if err != nil {
		return err
	}
	var p *proof
	r := &reference{leaf: w.leaf.name}
	if w.leaf.proof != "" {
		if p, err = openProof(ctx, w.campaign, w.leaf, w.dir); err != nil {
			return err
		}
		if r.module, r.file, err = p.design(ctx, w.campaign, p.tasks[0]); err != nil {
			return err
		}
	} else {
		for _, b := range own.builds {
			if len(b.modules) > 0 {
				r.module, r.file = b.modules[0], filepath.Join(b.dir, "design.il")
			}
		}
	}
	if r.module == nil {
		return errors.New("no bench has it")
	}
	text, err := w.verilog(w.leaf.name)
	if err != nil {
		return err
	}
	if before, _, ok := bytes.Cut(text, []byte("`ifdef FORMAL")); ok {
		r.formal = bytes.Count(before, []byte("\n")) + 1
	}
	if w.Mutants == nil {
		if err := w.choose(ctx, r); err != nil {
			return err
		}
	}
	mutants := make([]mutant, len(w.Mutants))
	for i, f := range w.Mutants {
		mutants[i] = f.Mutant
	}
	steps := []func() error{
		func() error { return w.prove(ctx, p, mutants) },
		func() error { return w.bench(ctx, own, mutants, byBench) },
	}
	if slowProofs[w.leaf.name] {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if left := w.left(same); len(left) > 0 {
		alike, err := theSame(ctx, w.dir, r, w.leaf.name, mutants, left)
		if err != nil {
			return err
		}
		err = w.try(same, func(number int) (string, error) {
			if alike[number] {
				return same, nil
			}
			return "", nil
		})
		if err != nil {
			return err
		}
	}
	if len(w.left(byCard)) == 0 || len(w.leaf.cards) == 0 {
		return nil
	}
	cards, err := openBenches(ctx, w.campaign, w.leaf, filepath.Join(w.dir, "cards"), w.leaf.cards)
	if err != nil {
		return err
	}
	return w.bench(ctx, cards, mutants, byCard)
}

// prove tries the remaining mutants on the leaf's proof.
func (w *way) prove(ctx context.Context, p *proof, mutants []mutant) error {
	const step = "proof"
	if p == nil || len(w.left(step)) == 0 {
		return nil
	}
	if err := p.with(ctx, w.campaign, mutants); err != nil {
		return err
	}
	return w.try(step, func(number int) (string, error) { return p.kills(ctx, number, len(mutants)) })
}

// bench tries the remaining mutants on benches.
func (w *way) bench(ctx context.Context, b *benches, mutants []mutant, by string) error {
	if len(b.nodes) == 0 || len(w.left(by)) == 0 {
		return nil
	}
	if err := b.with(ctx, w.campaign, mutants); err != nil {
		return err
	}
	return w.try(by, func(number int) (string, error) {
		no, _, err := b.fails(ctx, w.campaign, number)
		if no {
			return by, err
		}
		return "", err
	})
}

// left returns the numbers of undetected mutants that this step has not tried.
func (w *way) left(step string) []int {
	var numbers []int
	for i, f := range w.Mutants {
		if f.By == survivor && !slices.Contains(f.Passed, step) {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// try runs a step for every remaining mutant.
func (w *way) try(step string, notices func(number int) (string, error)) error {
	left := w.left(step)
	for i, n := range left {
		by, err := notices(n)
		if err != nil {
			return err
		}
		f := &w.Mutants[n-1]
		f.Passed = append(f.Passed, step)
		if by != "" {
			f.By = by
		}
		w.say(w.leaf, "%s, %d of %d: %s", step, i+1, len(left), f.By)
		if err := writeJSON(w.underWay(), w.record); err != nil {
			return err
		}
	}
	return nil
}

// choose has Yosys choose mutants of the design, with distinct places.
func (w *way) choose(ctx context.Context, r *reference) error {
	var selection strings.Builder
	for _, c := range r.module.cells {
		if r.ofDesign(c.source) {
			fmt.Fprintf(&selection, "%s/%s\n", trim(r.module.name), trim(c.name))
		}
	}
	chosen := filepath.Join(w.dir, "design.sel")
	if err := os.WriteFile(chosen, []byte(selection.String()), 0o644); err != nil {
		return err
	}
	// Ask for more than needed, since choose drops some.
	list := fmt.Sprintf("mutate -list %d -seed %d -o chosen.txt", 2*w.count, w.seed)
	file, err := filepath.Rel(w.dir, r.file)
	if err != nil {
		return err
	}
	err = yosys(ctx, w.dir, "choose", "read_rtlil "+file, "select -read "+filepath.Base(chosen), list)
	if err != nil {
		return err
	}
	lines, err := os.ReadFile(filepath.Join(w.dir, "chosen.txt"))
	if err != nil {
		return err
	}
	spots := r.module.spots()
	var mutants []mutant
	for line := range strings.Lines(string(lines)) {
		m, err := r.module.parse(line, spots)
		if err != nil {
			return err
		}
		// A separate clock for one bit is not a mistake that Verilog source can have, nor is an enable of a
		// read port without a clock.
		none := strings.EqualFold(m.Port, "clk") || m.Port == "EN" && strings.HasPrefix(m.Kind, "$memrd")
		if len(mutants) < w.count && !none && !slices.Contains(mutants, m) {
			mutants = append(mutants, m)
		}
	}
	if len(mutants) == 0 {
		return errors.New("it has no cells")
	}
	for _, m := range mutants {
		w.Mutants = append(w.Mutants, fate{Mutant: m, By: survivor})
	}
	return nil
}

// writeJSON writes a file atomically.
func writeJSON(file string, value any) error {
	text, err := json.MarshalIndent(value, "", "\t")
	if err != nil {
		return err
	}
	return writeWhole(file, append(text, '\n'))
}

func writeWhole(file string, text []byte) error {
	if err := os.WriteFile(file+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
