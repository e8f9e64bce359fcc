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

// A note informs this user's other commands of something that lasts as long as this command: a
// running card, or a host. It is a file in notesDir that its writer keeps locked, which
// distinguishes it from the note of a dead writer. A socket can be placed beside it.
type note struct {
	file *os.File
	path string // of the file, once published
}

// notesDir returns the folder of this user's notes.
func notesDir() string {
	dir, _ := notesFolder()
	return dir
}

// notesFolder returns the folder, and whether it is among temporary files.
func notesFolder() (dir string, temporary bool) {
	dir = os.Getenv("XDG_RUNTIME_DIR")
	if info, err := os.Stat(dir); err == nil && info.IsDir() { // sudo keeps the variable of a folder that is gone
		return filepath.Join(dir, "tributary"), false
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tributary-%d", os.Getuid())), true
}

// leaveFolder removes the folder from the temporary files if it has no notes.
func leaveFolder() {
	if dir, temporary := notesFolder(); temporary {
		os.Remove(dir) // fails if there are notes
	}
}

// unpublished is the suffix of a note that is not visible yet.
const unpublished = ".new"

// newNote starts a note of a kind, which is invisible until published. It removes the notes of
// killed programs.
func newNote(kind string) (*note, error) {
	dir := notesDir()
	sweepNotes()
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		f, err := os.CreateTemp(dir, kind+"-*"+unpublished)
		if errors.Is(err, os.ErrNotExist) {
			continue // another program has removed the empty folder
		}
		if err != nil {
			return nil, err
		}
		n := &note{f, strings.TrimSuffix(f.Name(), unpublished) + ".json"}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			n.remove()
			return nil, err
		}
		if _, err := os.Lstat(f.Name()); err == nil {
			return n, nil
		}
		f.Close() // a sweep preceded the lock
	}
}

// sweepNotes removes the notes of all kinds whose writers have died, published or not. It skips
// notes that it cannot remove.
func sweepNotes() {
	for _, pattern := range []string{"*-*.json", "*-*" + unpublished} {
		paths, _ := filepath.Glob(filepath.Join(notesDir(), pattern))
		for _, path := range paths {
			readNote(path, new(json.RawMessage))
		}
	}
	leaveFolder()
}

// publish makes the note visible with the given contents.
func (n *note) publish(what any) error {
	if err := json.NewEncoder(n.file).Encode(what); err != nil {
		return err
	}
	return os.Rename(n.file.Name(), n.path)
}

// socket returns the path of the socket beside the note.
func (n *note) socket() string { return socketOf(n.path) }

func socketOf(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) + ".sock" }

// remove removes the note and its socket.
func (n *note) remove() {
	for _, path := range []string{n.file.Name(), n.path, n.socket()} {
		os.Remove(path)
	}
	n.file.Close() // releases the lock
	leaveFolder()
}

// readNotes returns the contents of the valid notes of a kind, and removes the others.
func readNotes[T any](kind string) ([]T, error) {
	paths, err := filepath.Glob(filepath.Join(notesDir(), kind+"-*.json"))
	if err != nil {
		return nil, err
	}
	sweepNotes()
	var all []T
	for _, path := range paths {
		var what T
		ok, err := readNote(path, &what)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, what)
		}
	}
	return all, nil
}

// readNote reads a note. If its writer has died, ok is false and the file is removed.
func readNote(path string, what any) (ok bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // its writer has just ended
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		os.Remove(socketOf(path))
		err := os.Remove(path)
		if errors.Is(err, os.ErrNotExist) {
			err = nil // another reader was faster
		}
		return false, err
	}
	return json.NewDecoder(f).Decode(what) == nil, nil
}
