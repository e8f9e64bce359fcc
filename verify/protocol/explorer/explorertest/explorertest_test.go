package explorertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/verify/protocol/explorer"
)

// steps is the configuration of a toy: a number grows by 1 up to a limit.
type steps struct {
	name   string
	limit  int
	large  bool
	states int
}

func (c steps) Heading() explorer.Heading {
	return explorer.Heading{Name: c.name, About: "a toy", Large: c.large, States: c.states}
}

// climber is its world. Without rule 1 it falls.
type climber struct {
	explorer.Story
	n, limit int
	rules    explorer.Rules
}

func (w *climber) Current() *int     { return &w.n }
func (w *climber) Start()            { w.n = 0 }
func (w *climber) Steps(f func(int)) { f(1) }
func (w *climber) Completes()        {}

func (w *climber) Step(by int) bool {
	w.Describe("climb")
	if w.n == w.limit {
		return false
	}
	if w.n += by; w.rules&1 != 0 && w.n == 2 {
		w.Violate("upright", "fallen from %d", w.n)
	}
	return true
}

func newSearch(c steps, rules explorer.Rules, only string) *explorer.Search[int, int, *climber] {
	return &explorer.Search[int, int, *climber]{Name: c.name, States: explorer.NewSet[int](), New: func() *climber {
		return &climber{Story: explorer.Story{Only: only}, limit: c.limit, rules: rules}
	}}
}

func toy() *explorer.Suite[steps] {
	return &explorer.Suite[steps]{Name: "toy", Usage: "Exit status\n", Rules: 3,
		Configs:    []steps{{name: "small", limit: 3, states: 4}, {name: "big", limit: 1999, states: 2000, large: true}},
		Properties: []explorer.Property{{Name: "upright", Holds: "nobody falls"}},
		Weakenings: []explorer.Weakening[steps]{
			{Name: "fall", Means: "it is slippery", Config: "small", Breaks: "upright", Rules: 1},
			{Name: "rest", Means: "it rests", Config: "small", Harmless: "it has time", Rules: 2},
		},
		Search: func(c steps, rules explorer.Rules, only string) explorer.Runner { return newSearch(c, rules, only) }}
}

const (
	toyPage   = "| `small` | a toy | 4 |\n| `big` | a toy | 2,000 |\n| upright | nobody falls |\n| `fall` | it is slippery | upright |\n| `rest` | it rests | nothing: it has time |\n"
	toyGolden = "small: a toy\nweakened: it is slippery\n\n  1  climb\n  2  climb\n\nviolated: upright\n     fallen from 2\nproperty: nobody falls\n"
)

// trial is a toy with its files.
type trial struct {
	suite  *explorer.Suite[steps]
	tests  Suite[steps]
	page   string
	files  map[string]string // of testdata
	happen string            // a text for Happens
}

// mistakes are what the tests must notice, by the test that fails.
var mistakes = map[string]map[string]func(*trial){
	"Rules": {
		"states": func(y *trial) { y.suite.Configs[0].states = 5 },
		"breaks": func(y *trial) {
			y.suite.Search = func(c steps, _ explorer.Rules, only string) explorer.Runner { return newSearch(c, 1, only) }
		},
		"cut": func(y *trial) {
			y.suite.Search = func(c steps, rules explorer.Rules, only string) explorer.Runner {
				s := newSearch(c, rules, only)
				s.Limit = 3
				return s
			}
			y.suite.Configs[0].states = 3
		},
	},
	"Weakenings": {
		"both":            func(y *trial) { y.suite.Weakenings[0].Harmless = "or is it" },
		"neither":         func(y *trial) { y.suite.Weakenings[1].Harmless = "" },
		"breaks nothing":  func(y *trial) { y.suite.Weakenings[0].Rules = 2 },
		"not harmless":    func(y *trial) { y.suite.Weakenings[1].Rules = 3 },
		"configuration":   func(y *trial) { y.suite.Weakenings[0].Config = "none" },
		"counterexample":  func(y *trial) { y.files["fall.txt"] += "\n" },
		"no golden":       func(y *trial) { delete(y.files, "fall.txt") },
		"not reshaped":    func(y *trial) { y.suite.Weakenings[0].Reshape = func(c *steps) { c.limit = 1 } },
		"another meaning": func(y *trial) { y.suite.Weakenings[0].Means = "it is wet" },
	},
	"NoStaleCounterexample": {
		"nobody's":     func(y *trial) { y.files["old.txt"] = "" },
		"a harmless's": func(y *trial) { y.files["rest.txt"] = "" },
	},
	"EveryRuleIsWeakened": {
		"one more": func(y *trial) { y.suite.Rules = 7 },
		"unknown":  func(y *trial) { y.suite.Weakenings[1].Rules = 6 },
	},
	"EveryPropertyCanBreak": {
		"one more": func(y *trial) {
			y.suite.Properties = append(y.suite.Properties, explorer.Property{Name: "fast", Holds: "nobody rests"})
		},
	},
	"Command": {
		"usage":  func(y *trial) { y.suite.Usage = "" },
		"status": func(y *trial) { y.tests.Cases = []Case{{"-weaken fall", 0, "violated: upright"}} },
		"output": func(y *trial) { y.tests.Cases = []Case{{"-weaken fall", 1, "violated: fast"}} },
	},
	"Page": {
		"configuration": func(y *trial) { y.suite.Configs[1].name = "huge" },
		"states":        func(y *trial) { y.suite.Configs[1].states = 2001 },
		"property":      func(y *trial) { y.suite.Properties[0].Holds = "all stand" },
		"weakening":     func(y *trial) { y.suite.Weakenings[0].Means = "it is wet" },
		"harmless":      func(y *trial) { y.suite.Weakenings[1].Harmless = "it is late" },
		"no nothing":    func(y *trial) { y.tests.Listed = HarmlessListed },
	},
	"Happens": {
		"text": func(y *trial) { y.happen = "fly" },
	},
}

func newTrial() *trial {
	y := &trial{suite: toy(), page: toyPage, files: map[string]string{"fall.txt": toyGolden}, happen: "climb"}
	y.tests = Suite[steps]{New: func() *explorer.Suite[steps] { return y.suite }, Cases: []Case{{"-weaken fall", 1, "violated: upright"}}}
	return y
}

// TestToy tests a toy, in which TestNoticed may have made a mistake.
func TestToy(t *testing.T) {
	y := newTrial()
	if test := os.Getenv("TOY_TEST"); test != "" {
		mistakes[test][os.Getenv("TOY_MISTAKE")](y)
	}
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "toy", "testdata"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte(y.page), 0o644))
	for name, text := range y.files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "toy", "testdata", name), []byte(text), 0o644))
	}
	t.Chdir(filepath.Join(dir, "toy"))
	y.tests.Test(t)
	t.Run("Happens", func(t *testing.T) {
		search := func(c steps) *explorer.Search[int, int, *climber] { return newSearch(c, 0, "") }
		Happens(t, y.tests, []string{"small"}, search, 3, []string{y.happen})
	})
}

// TestNoticed: each test fails for each of its mistakes.
func TestNoticed(t *testing.T) {
	for test, of := range mistakes {
		for mistake := range of {
			t.Run(test+"/"+mistake, func(t *testing.T) {
				child := exec.Command(os.Args[0], "-test.run", "^TestToy$/^"+test+"$")
				child.Env = append(os.Environ(), "TOY_TEST="+test, "TOY_MISTAKE="+mistake)
				out, err := child.CombinedOutput()
				assert.Error(t, err)
				assert.Contains(t, string(out), "--- FAIL: TestToy/"+test)
			})
		}
	}
}
