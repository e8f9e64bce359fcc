package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the counterexamples to testdata")

// TestRulesHold explores every configuration that is not large. The number of states is exact, so
// the test detects an explorer that misses some.
func TestRulesHold(t *testing.T) {
	for _, c := range configs {
		if c.Large {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			found := explore(c, 0, property{}, 0, nil)
			if found.broken != nil {
				t.Fatal(counterexample(c, weakening{}, found))
			}
			assert.False(t, found.cut)
			assert.Equal(t, c.States, found.states, "states")
		})
	}
}

// TestWeakenings: every weakening breaks its property by the counterexample in testdata, and a
// harmless one breaks nothing.
func TestWeakenings(t *testing.T) {
	for _, weak := range weakenings {
		t.Run(weak.Name, func(t *testing.T) {
			c, ok := find(configs, func(c config) bool { return c.Name == weak.Config })
			require.True(t, ok, "no configuration %q", weak.Config)
			if weak.reshape != nil {
				weak.reshape(&c)
			}
			found := explore(c, weak.rules, weak.Breaks, 0, nil)
			if weak.Harmless != "" {
				assert.Nil(t, found.broken, "said to be harmless, since %s", weak.Harmless)
				return
			}
			require.NotNil(t, found.broken, "%s breaks nothing in %s (%d states)", weak.Means, c.Name, found.states)
			assert.Equal(t, weak.Breaks.Name, found.broken.property.Name)
			golden(t, weak.Name+".txt", counterexample(c, weak, found))
		})
	}
}

// TestNoStaleCounterexample: every file in testdata belongs to a weakening.
func TestNoStaleCounterexample(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	require.NoError(t, err)
	for _, file := range files {
		weak, ok := find(weakenings, func(w weakening) bool { return w.Name+".txt" == filepath.Base(file) })
		assert.True(t, ok && weak.Harmless == "", file)
	}
}

// TestEveryRuleIsWeakened: each bit of a ruleSet occurs in a weakening, so no check goes
// untested.
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
		_, ok := find(weakenings, func(w weakening) bool { return w.Breaks == p })
		assert.True(t, ok, "no weakening breaks %q", p.Name)
	}
}

// TestExchange explores with and without the exchange of equal workers. Both find the same
// states, up to the exchange.
func TestExchange(t *testing.T) {
	c, _ := find(configs, func(c config) bool { return c.Name == "three-by-one" })
	with := newExplorer(c, 0, property{}, 0)
	with.explore()
	without := newExplorer(c, 0, property{}, 0)
	without.symmetry.orders = without.symmetry.orders[:1]
	without.explore()
	assert.Nil(t, without.found.broken)
	assert.Greater(t, without.found.states, 4*with.found.states)
	assert.Equal(t, with.found.depth, without.found.depth)

	orbits := map[string]bool{}
	whole := newSymmetry(without.world())
	w := without.world()
	for _, s := range without.states {
		w.decode(s)
		orbits[string(whole.canonical(&w.state))] = true
	}
	assert.Len(t, orbits, with.found.states)
}

// TestEncoding: decoding a state's encoding and encoding it again gives the same bytes.
func TestEncoding(t *testing.T) {
	for _, name := range []string{"evict-return", "reset-beats", "jobs"} {
		c, _ := find(configs, func(c config) bool { return c.Name == name })
		e := newExplorer(c, 0, property{}, 5000)
		e.explore()
		w := e.world()
		for _, s := range e.states {
			w.decode(s)
			require.Equal(t, s, string(w.encode(nil)))
		}
	}
}

// TestCutShort: an exploration that reaches its limit reports so.
func TestCutShort(t *testing.T) {
	found := explore(configs[0], 0, property{}, 100, nil)
	assert.True(t, found.cut)
	assert.Equal(t, 100, found.states)
}

// TestWatch: a line on a terminal shows the progress and disappears at the end. Other outputs get
// none.
func TestWatch(t *testing.T) {
	assert.Nil(t, newWatch(new(bytes.Buffer)))
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	assert.Nil(t, newWatch(file))

	var terminal bytes.Buffer
	w := &watch{out: &terminal}
	w.show("jobs", "steps", watchStates, 2000)
	w.show("jobs", "steps", 2*watchStates, 3000) // too soon
	w.last = time.Time{}
	w.show("jobs", "steps", 2*watchStates+1, 3000) // not a multiple of watchStates
	w.show("jobs", "progress", 3*watchStates, 4000)
	w.clear()
	assert.Equal(t, "\r\x1b[Kjobs               steps: 1024 of 2000 states so far"+
		"\r\x1b[Kjobs               progress: 3072 of 4000 states so far\r\x1b[K", terminal.String())
}

// TestCommand checks the command's output and exit status.
func TestCommand(t *testing.T) {
	for _, test := range []struct {
		args   string
		status int
		says   string
	}{
		{"-config two-by-one", 0, "every property holds"},
		{"-config two-by-one -limit 10", 0, "limit of states"},
		{"-weaken no-bitmap", exitBroken, "violated: summed once"},
		{"-weaken no-bitmap -config partial", exitBroken, "partial: "},
		{"-list", 0, "send-one-ahead"},
		{"-walk 7", 0, `"Answer":"stored"`},
		{"-help", 0, "Exit status"},
		{"-weaken nothing", exitUsage, "unknown weakening \"nothing\""},
		{"-workers 7", exitUsage, "no such configuration"},
		{"two-by-one", exitUsage, "unexpected argument \"two-by-one\""},
	} {
		var out bytes.Buffer
		status := run(strings.Fields(test.args), &out, &out)
		assert.Equal(t, test.status, status, test.args)
		assert.Contains(t, out.String(), test.says, test.args)
	}
}

// TestWalk: a seed determines its walk, and two seeds give different walks.
func TestWalk(t *testing.T) {
	var walks [3]bytes.Buffer
	for i, seed := range []uint64{5, 5, 6} {
		require.NoError(t, takeWalk(&walks[i], seed, 0))
	}
	assert.Equal(t, walks[0].String(), walks[1].String())
	assert.NotEqual(t, walks[0].String(), walks[2].String())
}

// TestPage compares the tables of verify/protocol/README.md with the configurations and
// weakenings.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, c := range configs {
		assert.Contains(t, string(page), fmt.Sprintf("| `%s` | %s | %s |", c.Name, c.About, thousands(c.States)))
	}
	for _, weak := range weakenings {
		if weak.Harmless != "" {
			assert.Contains(t, string(page), fmt.Sprintf("| `%s` | %s | %s |", weak.Name, weak.Means, weak.Harmless))
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
