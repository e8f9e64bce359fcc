package main

// The table for readers, and the explanations of the survivors.

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// read returns the records in a file, by leaf or weakening, or none without a file.
func read[T any](file string) (map[string]T, error) {
	records := map[string]T{}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return records, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &records)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return records, nil
}

// publish adds records to the files, and writes and prints the page.
func publish(done []record, weak []weakened) error {
	records, err := read[record](recordedFile)
	if err != nil {
		return err
	}
	for _, r := range done {
		records[r.Leaf] = r
	}
	noticed, err := read[weakened](weakenedFile)
	if err != nil {
		return err
	}
	for _, w := range weak {
		noticed[w.Name] = w
	}
	text, err := os.ReadFile("verify/gateware/mutate/survivors.txt")
	if err != nil {
		return err
	}
	said, err := parseReasons(string(text))
	if err != nil {
		return err
	}
	written := page(records, said, noticed)
	if err := writeJSON(recordedFile, records); err != nil {
		return err
	}
	if err := writeJSON(weakenedFile, noticed); err != nil {
		return err
	}
	if err := writeWhole(pageFile, []byte(written)); err != nil {
		return err
	}
	fmt.Print(written)
	for _, w := range weak {
		if len(w.By) == 0 {
			fmt.Fprintf(os.Stderr, "mutate: no check notices the weakening %s\n", w.Name)
		}
	}
	for leaf, names := range unexplained(records, said) {
		fmt.Fprintf(os.Stderr, "mutate: survivors.txt has no reason for %s: %s\n", leaf, strings.Join(names, "; "))
	}
	return nil
}

// parseReasons reads survivors.txt. A line names a mutant, indented text below it explains it,
// and # begins a comment. Several lines may share one text.
func parseReasons(text string) (map[string]string, error) {
	reasons := map[string]string{}
	var names []string
	open := false
	for number, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(line, "#"):
			names = nil
		case trimmed == line:
			if open {
				names = nil
			}
			if _, ok := reasons[line]; ok {
				return nil, fmt.Errorf("survivors.txt:%d: %s comes twice", number+1, line)
			}
			names = append(names, line)
			reasons[line] = ""
		case names == nil:
			return nil, fmt.Errorf("survivors.txt:%d: a reason without a mutant", number+1)
		default:
			for _, name := range names {
				reasons[name] = strings.TrimSpace(reasons[name] + " " + trimmed)
			}
		}
		open = trimmed != line
	}
	for name, reason := range reasons {
		if reason == "" {
			return nil, fmt.Errorf("survivors.txt has no reason for %s", name)
		}
	}
	return reasons, nil
}

// unexplained returns the survivors without an explanation, by leaf.
func unexplained(records map[string]record, reasons map[string]string) map[string][]string {
	names := map[string][]string{}
	for leaf, r := range records {
		for _, f := range r.Mutants {
			if name := f.Mutant.String(); f.By == survivor && reasons[leaf+" "+name] == "" {
				names[leaf] = append(names[leaf], name)
			}
		}
	}
	return names
}

// counts counts a leaf's mutants by outcome.
func (r *record) counts() map[string]int {
	n := map[string]int{}
	for _, f := range r.Mutants {
		n[f.By]++
	}
	return n
}

func (r *record) summary() string {
	n := r.counts()
	return fmt.Sprintf("%d mutants, %d noticed, %d the same circuit, %d survive",
		len(r.Mutants), len(r.Mutants)-n[same]-n[survivor], n[same], n[survivor])
}

//go:embed introduction.md
var introduction string

// page writes the tables and the survivors.
func page(records map[string]record, reasons map[string]string, noticed map[string]weakened) string {
	var s strings.Builder
	total := record{Leaf: "**all**"}
	leaves := slices.Sorted(maps.Keys(records))
	s.WriteString(introduction)
	s.WriteString("\n| leaf | mutants | trace | induction | cover | bench | card | same circuit | survive | noticed | seed | SHA-256 |\n")
	s.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, leaf := range leaves {
		r := records[leaf]
		fmt.Fprintf(&s, "| `%s` | %s | %d | %s |\n", leaf, r.row(), r.Seed, r.SHA256[:12])
		total.Mutants = append(total.Mutants, r.Mutants...)
	}
	fmt.Fprintf(&s, "| **all** | %s | | |\n", total.row())
	var missing []string
	for _, l := range campaignLeaves {
		if _, ok := records[l.name]; !ok {
			missing = append(missing, "* `"+l.name+"`\n")
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		fmt.Fprintf(&s, "\nNot recorded:\n\n%s", strings.Join(missing, ""))
	}
	s.WriteString("\n## Weakenings\n\nEach weakening drops a rule of [NETWORK.md](../../../driver/wire/NETWORK.md),\n[TREES.md](../../../driver/wire/TREES.md) or [ROCE.md](../../../driver/wire/ROCE.md) by a\nchange of one line.\n\n")
	s.WriteString("| weakening | dropped rule | leaf | noticed by |\n|---|---|---|---|\n")
	for _, w := range weakenings {
		by := "**nothing**"
		if found := noticed[w.name].By; len(found) > 0 {
			by = strings.Join(found, ", ")
		}
		fmt.Fprintf(&s, "| `%s` | %s | `%s` | %s |\n", w.name, w.drops, w.leaf, by)
	}
	s.WriteString("\n## Survivors\n")
	list(&s, records, survivor, func(name string) string {
		if reasons[name] == "" {
			return "**not explained**"
		}
		return reasons[name]
	})
	s.WriteString("\n## The same circuit\n")
	list(&s, records, same, nil)
	return s.String()
}

// row is the middle part of a leaf's row.
func (r *record) row() string {
	n := r.counts()
	share := "-"
	if others := len(r.Mutants) - n[same]; others > 0 {
		share = fmt.Sprintf("%.1f %%", 100*float64(others-n[survivor])/float64(others))
	}
	return fmt.Sprintf("%d | %d | %d | %d | %d | %d | %d | %d | %s", len(r.Mutants),
		n[byTrace], n[byInduction], n[byCover], n[byBench], n[byCard], n[same], n[survivor], share)
}

// list prints the mutants of one outcome, by leaf: as a table if there are explanations, else one
// in each line.
func list(s *strings.Builder, records map[string]record, by string, reason func(name string) string) {
	for _, leaf := range slices.Sorted(maps.Keys(records)) {
		r := records[leaf]
		if r.counts()[by] == 0 {
			continue
		}
		fmt.Fprintf(s, "\n`%s`\n\n", leaf)
		if reason != nil {
			s.WriteString("| mutants | reason |\n|---|---|\n")
		}
		var order []string
		names := map[string][]string{}
		for _, f := range r.Mutants {
			if f.By != by {
				continue
			}
			name, text := f.Mutant.String(), ""
			if reason != nil {
				text = reason(leaf + " " + name)
			}
			if names[text] == nil {
				order = append(order, text)
			}
			names[text] = append(names[text], "`"+name+"`")
		}
		for _, text := range order {
			if reason != nil {
				fmt.Fprintf(s, "| %s | %s |\n", strings.Join(names[text], ", "), text)
			} else {
				fmt.Fprintf(s, "* %s\n", strings.Join(names[text], "\n* "))
			}
		}
	}
}
