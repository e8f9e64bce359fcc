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

// TestRules explores every configuration that is not large. The number of states is exact, so the
// test detects an explorer that misses some.
func TestRules(t *testing.T) {
	for _, c := range configs {
		if c.large {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			found := explore(c, 0, "", nil)
			if found.broken != "" {
				t.Fatal(counterexample(c, weakening{}, found))
			}
			assert.Equal(t, c.states, found.states, "states")
		})
	}
}

// TestWeakenings: every weakening breaks its property by the counterexample in testdata, and a
// harmless one breaks nothing.
func TestWeakenings(t *testing.T) {
	for _, weak := range weakenings {
		t.Run(weak.name, func(t *testing.T) {
			require.Equal(t, weak.harmless == "", weak.breaks != "", "a weakening breaks a property or says why not")
			found := explore(named(t, weak.config), weak.rules, weak.breaks, nil)
			require.Equal(t, weak.breaks, found.broken)
			if weak.harmless == "" {
				golden(t, weak.name+".txt", counterexample(named(t, weak.config), weak, found))
			}
		})
	}
}

// named returns a configuration.
func named(t *testing.T, name string) config {
	t.Helper()
	c, known := find(configs, func(c config) bool { return c.name == name })
	require.True(t, known, "no configuration %q", name)
	return c
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

// TestExchange explores with and without the exchange of equal workers and leaves. Both find the
// same states, up to the exchange.
func TestExchange(t *testing.T) {
	with := newExplorer(named(t, "two-two"), 0, "")
	assert.Len(t, with.symmetry.orders, 8)
	with.explore(nil)
	without := newExplorer(named(t, "two-two"), 0, "")
	without.symmetry.orders = without.symmetry.orders[:1]
	without.explore(nil)
	assert.Greater(t, len(without.states), 3*len(with.states))

	orbits := map[string]bool{}
	whole := newSymmetry(without.world)
	for _, encoded := range without.states {
		s := without.world.config.decode(encoded)
		_, key := whole.canonical(&s)
		orbits[string(key)] = true
	}
	assert.Len(t, orbits, len(with.states))
}

// TestEncoding: decoding a state's encoding and encoding it again gives the same bytes, and a decoded
// state makes the same steps.
func TestEncoding(t *testing.T) {
	for _, name := range []string{"leaf-taken", "beats-forgets", "restart"} {
		c := named(t, name)
		e := newExplorer(c, 0, "")
		e.explore(nil)
		for i, encoded := range e.states {
			s := c.decode(encoded)
			require.Equal(t, encoded, string(c.encode(nil, &s)))
			if i > 0 && i%17 == 0 {
				w := e.world.another()
				w.state = c.decode(e.states[e.from[i]])
				require.True(t, w.step(e.by[i]))
				require.Equal(t, s, w.state)
			}
		}
	}
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
	w.show("rogue", "steps", watchStates, 2000)
	w.show("rogue", "steps", 2*watchStates, 3000) // too soon
	w.last = time.Time{}
	w.show("rogue", "steps", 2*watchStates+1, 3000) // not a multiple of watchStates
	w.show("rogue", "progress", 3*watchStates, 4000)
	w.clear()
	assert.Equal(t, "\r\x1b[Krogue                steps: 1024 of 2000 states so far"+
		"\r\x1b[Krogue                progress: 3072 of 4000 states so far\r\x1b[K", terminal.String())
}

// TestCommand checks the command's output and exit status.
func TestCommand(t *testing.T) {
	for _, test := range []struct {
		args   string
		status int
		says   string
	}{
		{"-config one-one", 0, "every property holds"},
		{"-weaken final-added", exitBroken, "violated: right result"},
		{"-weaken final-added -config two-two", exitBroken, "two-two: "},
		{"-list", 0, "final-of-any-vid"},
		{"-help", 0, "Exit status"},
		{"-weaken nothing", exitUsage, "unknown weakening \"nothing\""},
		{"-config nothing", exitUsage, "unknown configuration \"nothing\""},
		{"one-one", exitUsage, "unexpected argument \"one-one\""},
		{"-nothing", exitUsage, "not defined"},
	} {
		var out bytes.Buffer
		status := run(strings.Fields(test.args), &out, &out)
		assert.Equal(t, test.status, status, test.args)
		assert.Contains(t, out.String(), test.says, test.args)
	}
}

// TestPage compares the tables of verify/protocol/README.md with configurations, properties and
// weakenings.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, c := range configs {
		assert.Contains(t, string(page), fmt.Sprintf("| `%s` | %s | %s |", c.name, c.about, thousands(c.states)))
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
