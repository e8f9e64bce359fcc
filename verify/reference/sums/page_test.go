package sums

import (
	"cmp"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page that lists the files of a new sum, and the commit that it describes.
const (
	page    = "hwgen/ADDING-A-SUM.md"
	example = "max"
	subject = "Add the sum " + example
)

// listed is a row of the page: files, as a pattern in which ** matches any path.
type listed struct {
	files  string
	byHand bool
}

var (
	heading = regexp.MustCompile(`^\| (write by hand|written by a command) \|`)
	row     = regexp.MustCompile("^\\| `([^`]+)` \\|")
)

// readPage returns the rows of a page's tables, with the example's name.
func readPage(text string) (rows []listed) {
	byHand := false
	for line := range strings.Lines(text) {
		if found := heading.FindStringSubmatch(line); found != nil {
			byHand = found[1] == "write by hand"
		}
		if found := row.FindStringSubmatch(line); found != nil {
			rows = append(rows, listed{strings.ReplaceAll(found[1], "NAME", example), byHand})
		}
	}
	return rows
}

func (l listed) matches(file string) bool {
	if folder, deep := strings.CutSuffix(l.files, "/**"); deep {
		return strings.HasPrefix(file, folder+"/")
	}
	ok, _ := path.Match(l.files, file)
	return ok
}

// differences lists the files that the page lacks, and the rows for hand-written files that match
// none.
func differences(rows []listed, files []string) (all []string) {
	for _, file := range files {
		if !slices.ContainsFunc(rows, func(l listed) bool { return l.matches(file) }) {
			all = append(all, "the page does not list "+file)
		}
	}
	for _, l := range rows {
		if l.byHand && !slices.ContainsFunc(files, l.matches) {
			all = append(all, "the page lists "+l.files+", which was not touched")
		}
	}
	return all
}

// TestThePageListsTheFilesOfACommit compares the page with the files of the commit that added the
// example. It leaves out the rows of parts that the repository did not have then. A clone without
// that commit relies on the next test.
func TestThePageListsTheFilesOfACommit(t *testing.T) {
	files, tree := filesOf(subject)
	rows := slices.DeleteFunc(thePage(t), func(l listed) bool { return !slices.ContainsFunc(tree, l.matches) })
	for _, complaint := range differences(rows, files) {
		if files != nil {
			t.Error(complaint)
		}
	}
	if files != nil {
		for i, l := range rows {
			if l.byHand && len(differences(slices.Delete(slices.Clone(rows), i, i+1), files)) == 0 {
				t.Errorf("without its row %s the page is not found wrong", l.files)
			}
		}
	}
}

// renamed maps files of the example's commit to their names of today.
var renamed = map[string]string{"driver/selftest/book.go": "driver/selftest/expected.go"}

// filesOf returns the files that the last commit with this subject touched, and all files that the
// repository had then, under their names of today; or nil.
func filesOf(subject string) (touched, tree []string) {
	commit := git("log", "-1", "--format=%H", "--grep", "^"+subject+"$")
	if len(commit) == 0 {
		return nil, nil
	}
	return git("log", "-1", "--format=", "--name-only", "--no-renames", commit[0]), git("ls-tree", "-r", "--full-tree", "--name-only", commit[0])
}

// git returns the words that git prints, with the names of today for files; or nil if it fails.
func git(args ...string) []string {
	command := exec.Command("git", args...)
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return nil
	}
	words := strings.Fields(string(out))
	for i, word := range words {
		words[i] = cmp.Or(renamed[word], word)
	}
	return words
}

// TestThePageNamesWhatIsThere needs no history: every file that the page calls hand-written
// exists, and names the example.
func TestThePageNamesWhatIsThere(t *testing.T) {
	for _, l := range thePage(t) {
		if !l.byHand {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, l.files))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: there is no %s: %v", page, l.files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(strings.ToLower(string(text)), example) {
				t.Errorf("%s does not name %s: %v", file, example, err)
			}
		}
	}
}

func thePage(t *testing.T) []listed {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	rows := readPage(string(text))
	if len(rows) < 10 {
		t.Fatalf("%s lists %d files", page, len(rows))
	}
	return rows
}
