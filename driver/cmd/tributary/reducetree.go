package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tributary/driver"
	"tributary/driver/reduction"
)

// treeFile is the file of -tree.
type treeFile struct {
	path    string
	Cards   []treeFileCard `json:"cards"`
	parents []int          // index of each card's parent; -1 for the root
}

// treeFileCard is a card in the file of -tree.
type treeFileCard struct {
	Card   string   `json:"card"`
	Parent string   `json:"parent"` // the name of another card; empty for the root
	Inputs []string `json:"inputs"` // files of the workers at the card
	Up     int      `json:"up"`     // Ethernet port towards the parent
	Down   int      `json:"down"`   // the parent's Ethernet port towards this card

	Workers int `json:"workers"` // the number of workers at the card, if there are no inputs
}

// workers returns the number of workers at the card.
func (c treeFileCard) workers() int { return max(c.Workers, len(c.Inputs)) }

// readTree reads and checks the file of -tree of a command, without opening a card.
func readTree(command, path string) (*treeFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, flagPath("-tree", err)
	}
	t := &treeFile{path: path}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(t)
	if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("there is more after the end of the tree")
	}
	if err != nil {
		line := 1 + bytes.Count(text[:min(d.InputOffset(), int64(len(text)))], []byte("\n"))
		return nil, usagef("-tree %s: line %d: %v; tributary %s -h has an example", path, line, err, command)
	}
	return t, t.check()
}

// check refuses a file whose cards are no tree, and notes the parents.
func (t *treeFile) check() error {
	at := map[string]int{"": -1}
	names := make([]string, len(t.Cards))
	for i, c := range t.Cards {
		if c.Card == "" {
			return usagef("-tree %s: card %d has no name; set \"card\", as in udp:192.0.2.7", t.path, i+1)
		}
		if _, twice := at[c.Card]; twice {
			return usagef("-tree %s: card %s is there twice; a card has one place, and one parent", t.path, c.Card)
		}
		if c.Workers < 0 || c.Workers > 0 && len(c.Inputs) > 0 && c.Workers != len(c.Inputs) {
			return usagef("-tree %s: card %s has %d workers and %d inputs; leave one of the two out", t.path, c.Card, c.Workers, len(c.Inputs))
		}
		at[c.Card], names[i] = i, c.Card
	}
	for _, c := range t.Cards {
		parent, ok := at[c.Parent]
		if !ok {
			return usagef("-tree %s: card %s has the parent %s, which is not in the file", t.path, c.Card, c.Parent)
		}
		t.parents = append(t.parents, parent)
	}
	var wrong *driver.InputError
	if _, err := driver.TreeRoot(names, t.parents); errors.As(err, &wrong) {
		return usagef("-tree %s: %s", t.path, wrong.Why)
	}
	return nil
}

// checkInputs refuses a file without an input for each worker.
func (t *treeFile) checkInputs() error {
	for _, c := range t.Cards {
		if c.workers() != len(c.Inputs) {
			return usagef("-tree %s: card %s has %d workers and no inputs; set \"inputs\" instead of \"workers\"", t.path, c.Card, c.Workers)
		}
	}
	if len(t.inputs()) == 0 {
		return usagef("-tree %s: it names no inputs; set \"inputs\" of the cards with workers", t.path)
	}
	return nil
}

// checkWorkers refuses a file without workers.
func (t *treeFile) checkWorkers() error {
	if t.rank(len(t.Cards)) == 0 {
		return usagef("-tree %s: it has no workers; set \"workers\" of the cards that have some", t.path)
	}
	return nil
}

// inputs returns the files of all workers, by rank.
func (t *treeFile) inputs() (all []string) {
	for _, c := range t.Cards {
		all = append(all, c.Inputs...)
	}
	return all
}

// runTree reduces through a tree of cards.
func (f *reduceFlags) runTree(cmd *cobra.Command, args []string) (err error) {
	if len(args) > 0 {
		return usagef("-tree: the file names the inputs; leave %s out", args[0])
	}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "card", "record", "ports":
			err = cmp.Or(err, usagef("-%s: it is for one card; leave it out with -tree", flag.Name))
		case "schedule", "move":
			err = cmp.Or(err, usagef("-%s: it is for several cards without a parent; leave it out with -tree", flag.Name))
		}
	})
	if err != nil {
		return err
	}
	if f.partial {
		return usagef("-partial: a tree of cards has no partial sums; leave it out with -tree")
	}
	t, err := readTree("reduce", f.tree)
	if err == nil {
		err = t.checkInputs()
	}
	if err != nil {
		return err
	}
	return f.runThrough(cmd.Context(), t.inputs(), cmd.OutOrStdout(), cmd.ErrOrStderr(),
		func(c *carriedOut, ctx context.Context, arrays []reduction.Arrays, o reduction.Options) (*reduction.Outcome, error) {
			c.tree = true
			return c.reduceThrough(ctx, arrays, o, func(r *reduction.Reduction) error { return t.sum(ctx, c, r) })
		})
}

// sum opens the cards, sums through them and closes them.
func (t *treeFile) sum(ctx context.Context, c *carriedOut, r *reduction.Reduction) (err error) {
	var cards []*driver.Card
	for _, entry := range t.Cards {
		card, failed := driver.Open(ctx, entry.Card, driver.WithTimeout(c.timeout), driver.WithFormat(r.Needs().Format), driver.WithWarnings(c.warn))
		if failed != nil {
			return failed
		}
		defer func() { err = cmp.Or(err, card.Close()) }()
		defer showCard(ctx, card, c.command, c.errs)()
		cards = append(cards, card)
	}
	tree, err := driver.NewTree(t.place(cards))
	if err != nil {
		return asFlags(err)
	}
	c.progress = newProgress(c.errs, r.Elements())
	defer c.progress.close()
	return asFlags(r.SumTree(ctx, tree))
}

// place gives the open cards, in the order of the file, their places in the tree.
func (t *treeFile) place(cards []*driver.Card) (placed []driver.TreeCard) {
	for i, entry := range t.Cards {
		ranks := []int{}
		for n := range entry.workers() {
			ranks = append(ranks, t.rank(i)+n)
		}
		placed = append(placed, driver.TreeCard{Card: cards[i], Parent: t.parents[i], Ranks: ranks, Up: entry.Up, Down: entry.Down})
	}
	return placed
}

// rank returns the rank of a card's first worker.
func (t *treeFile) rank(card int) (rank int) {
	for _, c := range t.Cards[:card] {
		rank += c.workers()
	}
	return rank
}
