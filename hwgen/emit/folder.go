package emit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tributary/driver/wire"
)

// File is a file of the card. Name is relative to the card's folder, with forward
// slashes.
type File struct {
	Name string
	Data []byte
}

// Folder lists all files of a card's folder.
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

// ErrForeign reports a folder that hwgen did not write. hwgen does not change it.
var ErrForeign = errors.New("exists and holds no manifest of hwgen")

// Write writes exactly the given files to dir, all or none: it writes a folder beside dir
// and then renames it. Write makes missing parents.
//
// Write replaces an existing folder only if it is empty, or has nothing but the files of
// a card and the outputs of the card's Makefiles. It replaces edited files of the card
// only with force. A folder with these same files stays unchanged, including build
// outputs.
//
// Of several Writes into the same parent, one works at a time.
func Write(ctx context.Context, dir string, files Folder, force bool) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return unmakeable(dir, err)
	}
	unlock, err := lock(ctx, filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer unlock()
	exists, err := replaceable(dir)
	if err != nil {
		return err
	}
	if exists && holds(dir, files) {
		return nil
	}
	if exists {
		if err := checkOwn(dir, force); err != nil {
			return err
		}
	}
	fresh := sibling(dir, "new")
	if err := os.Mkdir(fresh, 0o777); err != nil {
		return unmakeable(dir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if err := fill(ctx, fresh, files); err != nil {
		return err
	}
	return swap(fresh, dir, exists)
}

// replaceable reports whether dir exists. It fails if Write must not replace dir.
func replaceable(dir string) (exists bool, err error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, unmakeable(dir, err)
	}
	if !info.IsDir() {
		return true, fmt.Errorf("%s is a file; name a folder with -o", dir)
	}
	if cwd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, cwd); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return true, fmt.Errorf("%s holds the working directory; name another folder with -o", dir)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return true, err
	}
	if m, err := readManifest(dir); err != nil || m.Generator != wire.ManifestGenerator {
		return true, fmt.Errorf("%s %w; name another folder with -o, or remove it", dir, ErrForeign)
	}
	return true, nil
}

func readManifest(dir string) (m Manifest, err error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}

// checkOwn refuses a folder with files that neither its manifest lists nor its Makefiles
// built. Without force, it also refuses a folder with edited files.
func checkOwn(dir string, force bool) error {
	m, err := readManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // an empty folder
	}
	if err != nil {
		return err
	}
	var foreign []string
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch name = filepath.ToSlash(name); {
		case entry.IsDir() && (name == buildFolder || name == boardBuildFolder):
			return filepath.SkipDir
		case !entry.IsDir() && !slices.Contains(m.Files, name):
			foreign = append(foreign, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(foreign) == 0 {
		if edited := m.edited(dir); len(edited) > 0 && !force {
			return fmt.Errorf("%s holds files of the card that were edited: %s; replace them with -force, or name another folder with -o", dir, firstFew(edited))
		}
		return nil
	}
	return fmt.Errorf("%s holds files that are not the card's: %s; name another folder with -o, or remove or move them", dir, firstFew(foreign))
}

// edited returns the files in dir whose digest differs from the manifest's. A card of an
// older hwgen has no digests and counts as unedited.
func (m Manifest) edited(dir string) (names []string) {
	for _, name := range m.Files {
		want, ok := m.Digests[name]
		if !ok {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil && digest(text) != want {
			names = append(names, name)
		}
	}
	return names
}

// digest returns the SHA-256 of a file, in hex.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// firstFew lists up to three names, and the number of the others. names is not empty.
func firstFew(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// holds reports whether dir has all the given files with the same contents.
func holds(dir string, files Folder) bool {
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil || !bytes.Equal(text, f.Data) {
			return false
		}
	}
	return true
}

// unmakeable returns an error that dir cannot be made because of err.
func unmakeable(dir string, err error) error {
	if path := new(fs.PathError); errors.As(err, &path) {
		err = path.Err // the path may be of the folder that later becomes dir
	}
	return fmt.Errorf("%s cannot be made: %w; name another folder with -o, where you may write", dir, err)
}

// fill writes the files into an empty folder.
func fill(ctx context.Context, dir string, files Folder) error {
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

// swap renames fresh to dir and removes the old dir.
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

// sibling returns the name of a hidden folder beside dir, unique to this process.
func sibling(dir, what string) string {
	return filepath.Join(filepath.Dir(dir), fmt.Sprintf(".%s.%s%d", filepath.Base(dir), what, os.Getpid()))
}
