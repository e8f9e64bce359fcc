// Package scratch makes temporary folders that a killed program does not leave for long. The
// next New by the same user removes them.
//
// A program locks its folder (flock). The system releases the lock when the program ends, for
// whatever reason.
package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// prefix is the beginning of all such folders' names.
const prefix = "tributary."

// Folder is a temporary folder of this program. Only its user may read it.
type Folder struct {
	path string
	lock *os.File // the folder, locked
}

// New makes a folder, and removes the folders of programs that have ended.
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

// hold locks a folder. It returns nil if a sweep has removed the folder first.
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

// Path returns the path of a file in the folder.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, name) }

// Remove removes the folder with its content. A second Remove does nothing.
func (f *Folder) Remove() error {
	err := os.RemoveAll(f.path)
	if closed := f.lock.Close(); !errors.Is(closed, fs.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// sweep removes this user's folders that no program holds. It ignores failures, which must not
// prevent a new folder.
func sweep() {
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, path := range paths {
		if ours(path) {
			clearAway(path)
		}
	}
}

// ours reports whether a path is a folder of this user.
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
