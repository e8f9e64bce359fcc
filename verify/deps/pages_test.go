package deps

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	frontPageWords = 700
	pageColumns    = 100
)

// link matches the target of a Markdown link or picture.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestFrontPageIsShort: README.md is short; details belong on other pages.
func TestFrontPageIsShort(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	words := len(strings.Fields(string(page)))
	assert.LessOrEqual(t, words, frontPageWords, "words of README.md; move some to the page of the user they concern")
}

// TestPagesFitTheScreen: lines of text have at most 100 columns. Tables, code and the
// targets of links cannot be wrapped and do not count.
func TestPagesFitTheScreen(t *testing.T) {
	for path, page := range pages(t) {
		for i, line := range prose(page) {
			columns := utf8.RuneCountInString(link.ReplaceAllString(line, "]()"))
			if columns > pageColumns && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d has %d columns, more than %d", path, i+1, columns, pageColumns)
			}
		}
	}
}

// TestLinksLead: every relative link of every page leads to an existing file or folder, and to an
// existing heading if it names one.
func TestLinksLead(t *testing.T) {
	all := pages(t)
	for path, page := range all {
		for _, line := range prose(page) {
			for _, found := range link.FindAllStringSubmatch(line, -1) {
				checkLink(t, all, path, found[1])
			}
		}
	}
}

func checkLink(t *testing.T, all map[string]string, from, target string) {
	t.Helper()
	if strings.Contains(target, "://") {
		return
	}
	file, heading, _ := strings.Cut(target, "#")
	to := from
	if file != "" {
		to = filepath.Join(filepath.Dir(from), file)
	}
	if _, err := os.Stat(filepath.Join(root, to)); err != nil {
		t.Errorf("%s links to %s, which does not exist", from, target)
		return
	}
	if heading != "" && !hasHeading(all[to], heading) {
		t.Errorf("%s links to %s, and %s has no such heading", from, target, to)
	}
}

// hasHeading reports whether a page has a heading with this anchor.
func hasHeading(page, anchor string) bool {
	for _, line := range prose(page) {
		if text, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") && anchorOf(text) == anchor {
			return true
		}
	}
	return false
}

// anchorOf returns the anchor of a heading as GitHub makes it: lower case, hyphens for spaces, no
// punctuation.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// built are the folders that make fills: others may remove files there at any time.
var built = []string{"bin", "build"}

// pages returns the text of every page of the repository, by path, except what make builds and
// datasheets of cards.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() && name != "." &&
			(strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || slices.Contains(built, name) || isCard(path)) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		found[filepath.ToSlash(name)] = string(text)
		return err
	}))
	require.Contains(t, found, "README.md")
	return found
}

func isCard(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "manifest.json"))
	return err == nil
}

// prose returns the lines of a page, with lines of code empty.
func prose(page string) []string {
	lines := strings.Split(page, "\n")
	fenced := false
	for i, line := range lines {
		fence := strings.HasPrefix(line, "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced || strings.HasPrefix(line, "    ") {
			lines[i] = ""
		}
	}
	return lines
}
