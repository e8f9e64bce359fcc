package emit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is a file of the card, its name relative to the card's folder with
// forward slashes.
type File struct {
	Name string
	Data []byte
}

// Folder is everything that a card's folder holds.
type Folder []File

// Manifest returns the text of the card's manifest.
func (f Folder) Manifest() []byte {
	for _, file := range f {
		if file.Name == manifestName {
			return file.Data
		}
	}
	return nil
}

// ErrForeign says that a folder is not one of ours and was left alone.
var ErrForeign = errors.New("is there already and holds no manifest of hwgen")

// Write makes dir hold the files and nothing else. The folder appears whole or
// not at all: it is written beside dir and then takes its name. A folder that
// exists is replaced only when it is empty or holds a manifest of ours, and is
// left as it is when it holds these very files already (what was built in it
// stays). Parents are made as needed.
func Write(ctx context.Context, dir string, files Folder) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	exists, err := replaceable(dir)
	if err != nil {
		return err
	}
	if exists && holds(dir, files) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	fresh := sibling(dir, "new")
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if err := fill(ctx, fresh, files); err != nil {
		return err
	}
	return swap(fresh, dir, exists)
}

// replaceable says whether dir exists, and fails when it is something that
// must not be replaced.
func replaceable(dir string) (exists bool, err error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return true, fmt.Errorf("%s is a file; name a folder with -o", dir)
	}
	if cwd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, cwd); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return true, fmt.Errorf("%s holds the folder you are in; name another with -o", dir)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return true, err
	}
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	var m struct {
		Generator string `json:"generator"`
	}
	if err != nil || json.Unmarshal(text, &m) != nil || m.Generator != generator {
		return true, fmt.Errorf("%s %w; remove it, or name another with -o", dir, ErrForeign)
	}
	return true, nil
}

// holds says whether dir holds exactly these contents under these names.
func holds(dir string, files Folder) bool {
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil || !bytes.Equal(text, f.Data) {
			return false
		}
	}
	return true
}

// fill writes the files into a folder that it makes.
func fill(ctx context.Context, dir string, files Folder) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// swap gives fresh the name dir and removes what had it.
func swap(fresh, dir string, exists bool) error {
	if !exists {
		return os.Rename(fresh, dir)
	}
	old := sibling(dir, "old")
	if err := os.Rename(dir, old); err != nil {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}

// sibling names a hidden folder beside dir that no other run uses.
func sibling(dir, what string) string {
	return filepath.Join(filepath.Dir(dir), fmt.Sprintf(".%s.%s%d", filepath.Base(dir), what, os.Getpid()))
}
