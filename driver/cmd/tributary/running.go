package main

import (
	"path/filepath"
	"strings"
)

// A runningCard is a virtual card that `tributary sim` keeps up.
type runningCard struct {
	Card string `json:"card"` // as -card takes it
	Dir  string `json:"dir"`  // of the card, absolute
}

// cardNotes is the kind of the notes of running cards.
const cardNotes = "card"

// noteRunning notes a card until the function that it returns is called.
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

// runningCards returns the cards that run.
func runningCards() ([]runningCard, error) { return readNotes[runningCard](cardNotes) }

// absoluteCard returns the name of a card that means the same in every folder.
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
