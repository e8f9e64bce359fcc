package main

import (
	"path/filepath"
	"strings"
)

// A runningCard is a virtual card that `tributary sim` runs.
type runningCard struct {
	Card string `json:"card"` // as accepted by -card
	Dir  string `json:"dir"`  // of a built card, absolute
	Made string `json:"made"` // the name by which a card in software was made
}

// what describes the card.
func (c runningCard) what() string {
	if c.Made != "" {
		return "a card in software that runs on the network, made as " + c.Made
	}
	return "a virtual card that runs, built in " + c.Dir
}

// cardNotes names the notes of running cards.
const cardNotes = "card"

// noteRunning notes a card until the returned function is called.
func noteRunning(card runningCard) (remove func(), err error) {
	n, err := newNote(cardNotes)
	if err != nil {
		return nil, err
	}
	if err := n.publish(card); err != nil {
		n.remove()
		return nil, err
	}
	return n.remove, nil
}

// runningCards returns the running cards.
func runningCards() ([]runningCard, error) { return readNotes[runningCard](cardNotes) }

// absoluteCard returns an equivalent card name that is independent of the folder.
func absoluteCard(name string) string {
	scheme, path, _ := strings.Cut(name, ":")
	if scheme != "unix" && scheme != "sim" {
		return name
	}
	if abs, err := filepath.Abs(path); err == nil {
		return scheme + ":" + abs
	}
	return name
}
