package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A runningCard is a virtual card that `tributary sim` keeps up. It is noted in
// a file of its own in runningDir, which is locked for as long as the card
// runs: so a note whose writer has died can be told from one that holds.
type runningCard struct {
	Card string `json:"card"` // as -card takes it
	Dir  string `json:"dir"`  // of the card, absolute
}

// runningDir returns the folder of this user's notes.
func runningDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "tributary")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tributary-%d", os.Getuid()))
}

// noteRunning notes a card until the function that it returns is called.
func noteRunning(card runningCard) (remove func(), err error) {
	dir := runningDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "*.json")
	if err != nil {
		return nil, err
	}
	remove = func() {
		os.Remove(f.Name())
		f.Close() // gives the lock up
	}
	if err := errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_EX), json.NewEncoder(f).Encode(card)); err != nil {
		remove()
		return nil, err
	}
	return remove, nil
}

// runningCards returns the cards that run, and clears away the notes of those
// that do not any more.
func runningCards() ([]runningCard, error) {
	notes, err := filepath.Glob(filepath.Join(runningDir(), "*.json"))
	if err != nil {
		return nil, err
	}
	var cards []runningCard
	for _, path := range notes {
		card, ok, err := readNote(path)
		if err != nil {
			return nil, err
		}
		if ok {
			cards = append(cards, card)
		}
	}
	return cards, nil
}

// readNote reads a note that holds; ok is false, and the file is gone, when it
// does not.
func readNote(path string) (card runningCard, ok bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return card, false, nil // its card has just ended
	}
	if err != nil {
		return card, false, err
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		err := os.Remove(path)
		if errors.Is(err, os.ErrNotExist) {
			err = nil // another list was faster
		}
		return card, false, err
	}
	err = json.NewDecoder(f).Decode(&card)
	return card, err == nil, nil // one that is half written is read the next time
}

// absoluteCard returns the name of a card that means the same in every folder.
func absoluteCard(name string) string {
	path, ok := strings.CutPrefix(name, "unix:")
	if !ok {
		return name
	}
	if abs, err := filepath.Abs(path); err == nil {
		return "unix:" + abs
	}
	return name
}
