// Package explorertest has the tests that all explorers share: of their rules, weakenings,
// counterexamples, tables, command and page.
package explorertest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/verify/protocol/explorer"
)

var update = flag.Bool("update", false, "write the counterexamples to testdata")

// Case is a command line, and what must come of it.
type Case struct {
	Args     string // divided by blanks
	Status   int
	Contains string // on either output
}

// Listed is which weakenings have a row in the page.
type Listed int

const (
	AllListed      Listed = iota // name, meaning, and the broken property or why nothing breaks
	HarmlessListed               // harmless ones: name, meaning, why nothing breaks
	NoneListed
)

// Suite is an explorer under test.
type Suite[C explorer.Config] struct {
	// New returns the explorer.
	New func() *explorer.Suite[C]
	// Cases are command lines besides those that every explorer has.
	Cases []Case
	// Listed is which weakenings have a row in ../README.md.
	Listed Listed
}

// Test runs all tests, each as a subtest.
func (s Suite[C]) Test(t *testing.T) {
	t.Run("Rules", s.rules)
	t.Run("Weakenings", s.weakenings)
	t.Run("NoStaleCounterexample", s.noStaleCounterexample)
	t.Run("EveryRuleIsWeakened", s.everyRuleIsWeakened)
	t.Run("EveryPropertyCanBreak", s.everyPropertyCanBreak)
	t.Run("Command", s.command)
	t.Run("Page", s.page)
}

// Named returns the configuration of a name.
func (s Suite[C]) Named(t *testing.T, name string) C {
	t.Helper()
	c, known := s.New().Configuration(name)
	require.True(t, known, "no configuration %q", name)
	return c
}

// rules explores every configuration that is not large. The number of states is exact, so the test
// detects an explorer that misses some.
func (s Suite[C]) rules(t *testing.T) {
	suite := s.New()
	for _, c := range suite.Configs {
		h := c.Heading()
		if h.Large {
			continue
		}
		t.Run(h.Name, func(t *testing.T) {
			found, counterexample := suite.Explore(c, explorer.Weakening[C]{}, nil)
			require.Empty(t, counterexample)
			assert.False(t, found.Cut)
			assert.Equal(t, h.States, found.States, "states")
		})
	}
}

// weakenings: every weakening breaks its property by the counterexample in testdata, and a harmless one
// breaks nothing.
func (s Suite[C]) weakenings(t *testing.T) {
	suite := s.New()
	for _, weak := range suite.Weakenings {
		t.Run(weak.Name, func(t *testing.T) {
			require.Equal(t, weak.Harmless == "", weak.Breaks != "", "a weakening breaks a property or says why not")
			found, counterexample := suite.Explore(s.Named(t, weak.Config), weak, nil)
			require.Equal(t, weak.Breaks, found.Broken)
			if weak.Harmless == "" {
				golden(t, weak.Name+".txt", counterexample)
			}
		})
	}
}

// noStaleCounterexample: every file in testdata belongs to a weakening.
func (s Suite[C]) noStaleCounterexample(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	require.NoError(t, err)
	for _, file := range files {
		weak, known := s.New().Weakening(strings.TrimSuffix(filepath.Base(file), ".txt"))
		assert.True(t, known && weak.Harmless == "", file)
	}
}

// everyRuleIsWeakened: each rule occurs in a weakening, so no check goes untested.
func (s Suite[C]) everyRuleIsWeakened(t *testing.T) {
	var weakened explorer.Rules
	for _, weak := range s.New().Weakenings {
		weakened |= weak.Rules
	}
	assert.Equal(t, s.New().Rules, weakened)
}

// everyPropertyCanBreak: some weakening breaks each property.
func (s Suite[C]) everyPropertyCanBreak(t *testing.T) {
	broken := map[string]bool{}
	for _, weak := range s.New().Weakenings {
		broken[weak.Breaks] = true
	}
	for _, p := range s.New().Properties {
		assert.True(t, broken[p.Name], "no weakening breaks %q", p.Name)
	}
}

// command checks the command's output and exit status.
func (s Suite[C]) command(t *testing.T) {
	suite := s.New()
	first := suite.Configs[0].Heading().Name
	cases := []Case{
		{"-config " + first, 0, first},
		{"-config " + first, 0, "every property holds"},
		{"-help", 0, "Exit status"},
		{"-help", 0, "-large"},
		{"-weaken nothing", explorer.ExitUsage, `unknown weakening "nothing"; see -list`},
		{"-config nothing", explorer.ExitUsage, `unknown configuration "nothing"; see -list`},
		{first, explorer.ExitUsage, fmt.Sprintf("%s: unexpected argument %q", suite.Name, first)},
		{"-nothing", explorer.ExitUsage, "not defined"},
	}
	for _, p := range suite.Properties {
		cases = append(cases, Case{"-list", 0, p.Holds})
	}
	for _, weak := range suite.Weakenings {
		cases = append(cases, Case{"-list", 0, weak.Name})
	}
	for _, c := range append(cases, s.Cases...) {
		var out bytes.Buffer
		assert.Equal(t, c.Status, s.New().Run(strings.Fields(c.Args), &out, &out), c.Args)
		assert.Contains(t, out.String(), c.Contains, c.Args)
	}
}

// page compares the tables of verify/protocol/README.md with configurations, properties and weakenings.
func (s Suite[C]) page(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	row := func(cells ...string) {
		t.Helper()
		assert.Contains(t, string(page), "| "+strings.Join(cells, " | ")+" |")
	}
	for _, c := range s.New().Configs {
		h := c.Heading()
		row("`"+h.Name+"`", h.About, thousands(h.States))
	}
	for _, p := range s.New().Properties {
		row(p.Name, p.Holds)
	}
	for _, weak := range s.New().Weakenings {
		switch harmless := weak.Harmless != ""; {
		case s.Listed == AllListed && harmless:
			row("`"+weak.Name+"`", weak.Means, "nothing: "+weak.Harmless)
		case s.Listed == AllListed:
			row("`"+weak.Name+"`", weak.Means, weak.Breaks)
		case s.Listed == HarmlessListed && harmless:
			row("`"+weak.Name+"`", weak.Means, weak.Harmless)
		}
	}
}

// thousands formats a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// golden compares text with a file of testdata, or writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), text)
}

// Happens checks that each text occurs in what the steps of configurations do, so no rule holds only because
// the explorer never reaches it. It takes the steps of about sample states of each configuration.
func Happens[C explorer.Config, S comparable, T any, W explorer.World[S, T]](t *testing.T, tests Suite[C], names []string,
	search func(C) *explorer.Search[S, T, W], sample int, texts []string) {
	heard := map[string]bool{}
	for _, name := range names {
		s := search(tests.Named(t, name))
		s.Run(nil)
		hear(s, sample, heard)
	}
	var all strings.Builder
	for text := range heard {
		all.WriteString(text + "\n")
	}
	for _, text := range texts {
		assert.True(t, strings.Contains(all.String(), text), "no step says %q", text)
	}
}

// hear collects what the steps from a sample of the found states do.
func hear[S comparable, T any, W explorer.World[S, T]](s *explorer.Search[S, T, W], sample int, heard map[string]bool) {
	lister := s.New()
	for i := 0; i < s.States.Len(); i += 1 + s.States.Len()/sample {
		s.States.Load(i, lister.Current())
		lister.Steps(func(step T) {
			next := s.New()
			*next.Current() = *lister.Current()
			next.Tell()
			next.Begin()
			if next.Step(step) {
				for _, line := range next.Lines() {
					heard[line] = true
				}
			}
		})
	}
}
