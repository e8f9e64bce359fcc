package main

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
)

var update = flag.Bool("update", false, "write the counterexamples to testdata")

// states are the numbers of states of the configurations.
var states = map[string]int{
	"owner": 6991, "return": 27347, "return-power": 105834, "jobs": 50319, "ticket": 68403, "power": 18911,
	"owners": 25563, "owners-power": 76446, "owners-power-twice": 129226, "restart": 113777,
	"restart-twice": 110983, "stranger": 1479,

	// Large: with -large alone.
	"jobs-power": 226647, "owners-twice": 1149128, "restart-power": 642086,
}

// TestRules explores every configuration that is not large. The number of states is exact, so the test
// detects an explorer that misses some.
func TestRules(t *testing.T) {
	for _, c := range configs {
		if c.large {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			found := explore(c, 0, "")
			if found.broken != "" {
				t.Fatal(counterexample(c, weakening{}, found))
			}
			assert.Equal(t, states[c.name], found.states, "states")
		})
	}
}

// TestWeakenings: every weakening breaks its property by the counterexample in testdata, and a harmless
// one breaks nothing.
func TestWeakenings(t *testing.T) {
	for _, weak := range weakenings {
		t.Run(weak.name, func(t *testing.T) {
			c, known := find(configs, func(c config) bool { return c.name == weak.config })
			require.True(t, known, "no configuration %q", weak.config)
			require.Equal(t, weak.harmless == "", weak.breaks != "", "a weakening breaks a property or says why not")
			found := explore(c, weak.rules, weak.breaks)
			require.Equal(t, weak.breaks, found.broken)
			if weak.harmless == "" {
				golden(t, weak.name+".txt", counterexample(c, weak, found))
			}
		})
	}
}

// TestNoStaleCounterexample: every file in testdata belongs to a weakening.
func TestNoStaleCounterexample(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	require.NoError(t, err)
	for _, file := range files {
		weak, known := find(weakenings, func(w weakening) bool { return w.name+".txt" == filepath.Base(file) })
		assert.True(t, known && weak.harmless == "", file)
	}
}

// TestEveryRuleIsWeakened: each bit of a ruleSet occurs in a weakening, so no check goes untested.
func TestEveryRuleIsWeakened(t *testing.T) {
	var weakened ruleSet
	for _, weak := range weakenings {
		weakened |= weak.rules
	}
	assert.Equal(t, lastRule<<1-1, weakened)
}

// TestEveryPropertyCanBreak: some weakening breaks each property.
func TestEveryPropertyCanBreak(t *testing.T) {
	for _, p := range properties {
		_, known := find(weakenings, func(w weakening) bool { return w.breaks == p.name })
		assert.True(t, known, "no weakening breaks %q", p.name)
	}
}

// TestCommand checks the command's output and exit status.
func TestCommand(t *testing.T) {
	for _, test := range []struct {
		args   string
		status int
		says   string
	}{
		{"-config owner", 0, "every property holds"},
		{"-weaken lease-for-ever", exitBroken, "violated: progress"},
		{"-weaken lease-for-ever -config stranger", exitBroken, "stranger: "},
		{"-list", 0, "lease-for-ever"},
		{"-help", 0, "Exit status"},
		{"-weaken nothing", exitUsage, "unknown weakening \"nothing\""},
		{"-config nothing", exitUsage, "unknown configuration \"nothing\""},
		{"owner", exitUsage, "unexpected argument \"owner\""},
	} {
		var out bytes.Buffer
		status := run(strings.Fields(test.args), &out, &out)
		assert.Equal(t, test.status, status, test.args)
		assert.Contains(t, out.String(), test.says, test.args)
	}
}

// TestPage compares the tables of verify/protocol/README.md with the configurations and weakenings.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, c := range configs {
		assert.Contains(t, string(page), fmt.Sprintf("| `%s` | %s | %s |", c.name, c.about, thousands(states[c.name])))
	}
	for _, p := range properties {
		assert.Contains(t, string(page), fmt.Sprintf("| %s | %s |", p.name, p.holds))
	}
	for _, weak := range weakenings {
		effect := weak.breaks
		if weak.harmless != "" {
			effect = "nothing: " + weak.harmless
		}
		assert.Contains(t, string(page), fmt.Sprintf("| `%s` | %s | %s |", weak.name, weak.means, effect))
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
