// Package scratch makes temporary folders that do not outlive their programs for long: what
// a program leaves that is killed, the next New of the same user clears away.
//
// A program keeps its folder locked (flock), and the system gives the lock up for a
// program that ends, however that comes about.
package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// prefix begins the names of all such folders.
const prefix = "tributary."

// Folder is a temporary folder of this program's. Nobody else may read it.
type Folder struct {
	path string
	lock *os.File // the folder, locked
}

// New makes a folder, and removes those whose programs are gone.
func New() (*Folder, error) {
	sweep()
	for {
		path, err := os.MkdirTemp("", prefix)
		if err != nil {
			return nil, err
		}
		f, err := hold(path)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
		if f != nil {
			return f, nil
		}
	}
}

// hold locks a folder; it is nil when a sweep has taken the folder before that.
func hold(path string) (*Folder, error) {
	lock, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		lock.Close()
		return nil, err
	}
	if _, err := os.Lstat(path); err != nil {
		lock.Close()
		return nil, nil
	}
	return &Folder{path, lock}, nil
}

// Path returns the path of a name in the folder.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, name) }

// Remove removes the folder with all that is in it. Another Remove does nothing.
func (f *Folder) Remove() error {
	err := os.RemoveAll(f.path)
	if closed := f.lock.Close(); !errors.Is(closed, fs.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// sweep removes this user's folders that no program holds. What it cannot remove stays:
// that is no reason to do without a new one.
func sweep() {
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, path := range paths {
		if ours(path) {
			clearAway(path)
		}
	}
}

// ours tells whether a path is a folder, and this user's.
func ours(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Getuid()
}

func clearAway(path string) {
	lock, err := os.Open(path)
	if err != nil {
		return
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		os.RemoveAll(path)
	}
}
