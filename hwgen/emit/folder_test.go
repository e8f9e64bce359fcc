package emit_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/emit"
)

// card is a folder's content as Write takes it; word makes it differ.
func card(word string) emit.Folder {
	return emit.Folder{
		{Name: "manifest.json", Data: []byte(`{"generator": "tributary/hwgen", "files": [
			"agg_old.v", "agg_top.v", "manifest.json", "sim/Makefile"]}`)},
		{Name: "agg_top.v", Data: []byte(word)},
		{Name: "sim/Makefile", Data: []byte("all:\n")},
	}
}

// tree returns the files below dir, with their text.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return files
}

func text(f emit.Folder) map[string]string {
	files := map[string]string{}
	for _, file := range f {
		files[file.Name] = string(file.Data)
	}
	return files
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
}

func TestWriteMakesTheFolder(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "deep", "card")
	require.NoError(t, emit.Write(context.Background(), dir, card("one"), false))
	assert.Equal(t, text(card("one")), tree(t, dir))
	assert.Equal(t, text(card("one")), tree(t, filepath.Join(parent, "deep", "card")), "and nothing beside it")
	assertAlone(t, dir)
}

// assertAlone checks that dir has no siblings.
func assertAlone(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, filepath.Base(dir), entries[0].Name())
}

// Write replaces a card completely: other files of the old card and its build outputs are
// gone.
func TestWriteReplacesACard(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "card")
	require.NoError(t, emit.Write(context.Background(), dir, card("one"), false))
	put(t, filepath.Join(dir, "agg_old.v"), "old")
	put(t, filepath.Join(dir, "sim", "build", "model", "Vcard.h"), "old")
	require.NoError(t, emit.Write(context.Background(), dir, card("two"), false))
	assert.Equal(t, text(card("two")), tree(t, dir))
	assertAlone(t, dir)
}

// Write refuses to replace a card with foreign files until they are gone.
func TestWriteKeepsOthersFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "card")
	require.NoError(t, emit.Write(context.Background(), dir, card("one"), false))
	others := []string{"build/notes.txt", "constraints.xdc", "sim/agg_top.v", "sim/waves.fst", "thesis.tex"}
	for _, name := range others {
		put(t, filepath.Join(dir, filepath.FromSlash(name)), "years")
	}
	before := tree(t, dir)
	require.NoError(t, emit.Write(context.Background(), dir, card("one"), false), "nothing is to be done")
	assert.EqualError(t, emit.Write(context.Background(), dir, card("two"), false), dir+" holds files that are not the card's: "+
		"build/notes.txt, constraints.xdc, sim/agg_top.v and 2 more; name another folder with -o, or remove or move them")
	assert.Equal(t, before, tree(t, dir))
	assertAlone(t, dir)

	for _, name := range others[1:] {
		require.NoError(t, os.Remove(filepath.Join(dir, filepath.FromSlash(name))))
	}
	assert.ErrorContains(t, emit.Write(context.Background(), dir, card("two"), false), "the card's: build/notes.txt; name another")
	require.NoError(t, os.Remove(filepath.Join(dir, "build", "notes.txt")))
	require.NoError(t, emit.Write(context.Background(), dir, card("two"), false))
	assert.Equal(t, text(card("two")), tree(t, dir))
}

// digested is a card whose manifest has the digest of its file.
func digested(word string) emit.Folder {
	sum := sha256.Sum256([]byte(word))
	return emit.Folder{
		{Name: "manifest.json", Data: fmt.Appendf(nil, `{"generator": "tributary/hwgen", "files": ["agg_top.v", "manifest.json"],
			"sha256": {"agg_top.v": "%x"}}`, sum)},
		{Name: "agg_top.v", Data: []byte(word)},
	}
}

// Write replaces an edited file only with force. It replaces a card with a missing file, or with a
// manifest without digests, without force.
func TestWriteKeepsEditedFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "card")
	write := func(f emit.Folder, force bool) error { return emit.Write(context.Background(), dir, f, force) }
	require.NoError(t, write(digested("one"), false))
	require.NoError(t, write(digested("two"), false), "nothing was edited")
	put(t, filepath.Join(dir, "agg_top.v"), "mine")
	before := tree(t, dir)
	for _, f := range []emit.Folder{digested("two"), digested("three")} {
		assert.EqualError(t, write(f, false), dir+" holds files of the card that were edited: agg_top.v; "+
			"replace them with -force, or name another folder with -o")
		assert.Equal(t, before, tree(t, dir))
	}
	require.NoError(t, write(digested("three"), true))
	assert.Equal(t, text(digested("three")), tree(t, dir))

	require.NoError(t, os.Remove(filepath.Join(dir, "agg_top.v")))
	require.NoError(t, write(card("one"), false))
	put(t, filepath.Join(dir, "agg_top.v"), "mine")
	require.NoError(t, write(card("two"), false))

	put(t, filepath.Join(dir, "notes.txt"), "mine")
	assert.ErrorContains(t, write(card("three"), true), "holds files that are not the card's: notes.txt", "force does not reach these")
}

// Writing the same card again keeps the build outputs in its folder.
func TestWriteKeepsWhatIsBuiltInTheSameCard(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "card")
	require.NoError(t, emit.Write(context.Background(), dir, card("one"), false))
	put(t, filepath.Join(dir, "sim", "build", "card"), "a program")
	require.NoError(t, emit.Write(context.Background(), dir, card("one"), false))
	assert.FileExists(t, filepath.Join(dir, "sim", "build", "card"))
}

func TestWriteFillsAnEmptyFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "card")
	require.NoError(t, os.Mkdir(dir, 0o777))
	require.NoError(t, emit.Write(context.Background(), dir, card("one"), false))
	assert.Equal(t, text(card("one")), tree(t, dir))
}

func TestWriteFollowsALink(t *testing.T) {
	parent := t.TempDir()
	dir, link := filepath.Join(parent, "card"), filepath.Join(parent, "link")
	require.NoError(t, emit.Write(context.Background(), dir, card("one"), false))
	require.NoError(t, os.Symlink(dir, link))
	require.NoError(t, emit.Write(context.Background(), link, card("two"), false))
	assert.Equal(t, text(card("two")), tree(t, dir))
}

// Write does not change a folder that is not a card.
func TestWriteLeavesForeignFoldersAlone(t *testing.T) {
	for name, make := range map[string]func(dir string){
		"files":            func(dir string) { put(t, filepath.Join(dir, "thesis.tex"), "years") },
		"foreign manifest": func(dir string) { put(t, filepath.Join(dir, "manifest.json"), `{"generator": "webpack"}`) },
		"broken manifest":  func(dir string) { put(t, filepath.Join(dir, "manifest.json"), `{"generator": "tributary`) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "card")
			make(dir)
			before := tree(t, dir)
			err := emit.Write(context.Background(), dir, card("one"), false)
			require.ErrorIs(t, err, emit.ErrForeign)
			assert.ErrorContains(t, err, dir)
			assert.Equal(t, before, tree(t, dir))
			assertAlone(t, dir)
		})
	}
}

func TestWriteRefusesAFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "card")
	put(t, dir, "a file")
	assert.ErrorContains(t, emit.Write(context.Background(), dir, card("one"), false), "is a file")
	assert.FileExists(t, dir)
}

func TestWriteRefusesTheWorkingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "card")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "below"), 0o777))
	t.Chdir(filepath.Join(dir, "below"))
	for _, name := range []string{".", ".."} {
		assert.ErrorContains(t, emit.Write(context.Background(), name, card("one"), false), "the working directory", name)
	}
}

// A failed write leaves no new folder and nothing beside it, and keeps an existing folder.
func TestWriteThatFailsLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "card")
	broken := append(card("one"), emit.File{Name: "agg_top.v/inside", Data: nil}) // below a file
	require.Error(t, emit.Write(context.Background(), dir, broken, false))
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	assert.Empty(t, entries)

	require.NoError(t, emit.Write(context.Background(), dir, card("one"), false))
	broken[1].Data = []byte("two")
	require.Error(t, emit.Write(context.Background(), dir, broken, false))
	assert.Equal(t, text(card("one")), tree(t, dir))
	assertAlone(t, dir)
}

// interrupted is a context that ends after a number of calls of Err.
type interrupted struct {
	context.Context
	times int
}

func (c *interrupted) Err() error {
	if c.times--; c.times < 0 {
		return context.Canceled
	}
	return nil
}

func TestWriteThatIsInterruptedLeavesNothing(t *testing.T) {
	for times := range 3 {
		parent := t.TempDir()
		err := emit.Write(&interrupted{context.Background(), times}, filepath.Join(parent, "card"), card("one"), false)
		require.ErrorIs(t, err, context.Canceled)
		entries, err := os.ReadDir(parent)
		require.NoError(t, err)
		assert.Empty(t, entries, "after %d files", times)
	}
}

// Cards that are written to one folder at once replace one another, each of them whole.
func TestWritesAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "card")
	var writes sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		writes.Go(func() { errs[i] = emit.Write(context.Background(), dir, digested(fmt.Sprint(i)), false) })
	}
	writes.Wait()
	require.NoError(t, errors.Join(errs...))
	files := tree(t, dir)
	assert.Equal(t, text(digested(files["agg_top.v"])), files)
	assertAlone(t, dir)
}
