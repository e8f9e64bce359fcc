package explorer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counting is a configuration of a toy: a number grows by 1 or 3 up to a limit, and dies at a number.
type counting struct {
	name        string
	limit, dies int
	large       bool
	shy         bool // breaks nothing while it tells
}

func (c counting) Heading() Heading {
	return Heading{Name: c.name, About: fmt.Sprint("up to ", c.limit), Note: "; dies", Large: c.large, States: c.limit + 1}
}

// counter is its world. Without its rule the number also grows by 5. A step of 11 is another one of 1.
type counter struct {
	Story
	c     counting
	rules Rules
	n     int
	calm  bool
}

func (w *counter) Current() *int { return &w.n }
func (w *counter) Start()        { w.n = 0 }
func (w *counter) Steps(f func(int)) {
	for _, by := range []int{1, 11, 3, 5, 0} {
		f(by)
	}
}

func (w *counter) Step(kind int) bool {
	if property, _ := w.Broken(); property != "" {
		panic("a step after a violation")
	}
	by := kind % 10
	if by == 5 && w.rules == 0 || w.n+by > w.c.limit {
		return false
	}
	w.Describe("add %d", kind)
	w.n += by
	w.Describe("now %d", w.n)
	if by == 5 && !(w.c.shy && w.Telling()) {
		w.Violate("small", "a step of %d to %d", by, w.n)
		w.Violate("other", "never the first")
	}
	return true
}

func (w *counter) Completes() {
	if w.Only != "" && w.Only != "progress" {
		panic("nobody asks for progress")
	}
	w.Describe("faults cease")
	w.Begin()
	w.calm = true
	w.Describe("wait")
	if w.n == w.c.dies && !(w.c.shy && w.Telling()) {
		w.Violate("progress", "%d is the end", w.n)
	}
}

func newCounterSearch(c counting, rules Rules, only string) *Search[int, int, *counter] {
	return &Search[int, int, *counter]{Name: c.name, States: NewSet[int](), Progresses: only == "" || only == "progress",
		New: func() *counter { return &counter{Story: Story{Only: only}, c: c, rules: rules} }}
}

var toy = Suite[counting]{
	Name: "toy", Usage: "Counts.\n",
	Configs:    []counting{{name: "ten", limit: 10, dies: -1}, {name: "seven", limit: 10, dies: 7}, {name: "big", limit: 100, dies: -1, large: true}},
	Properties: []Property{{"small", "steps are small"}, {"progress", "it ends"}},
	Weakenings: []Weakening[counting]{
		{Name: "five", Means: "steps may be 5", Config: "ten", Breaks: "small", Rules: 1},
		{Name: "five-unseen", Means: "steps may be 5", Config: "ten", Harmless: "nobody looks", Rules: 1, Reshape: func(c *counting) { c.limit = 4 }},
	},
	Rules:  1,
	Search: func(c counting, rules Rules, only string) Runner { return newCounterSearch(c, rules, only) },
}

// TestSearch: a search finds all states, and the shortest path to a violation by a step, or by the lack of
// progress.
func TestSearch(t *testing.T) {
	assert.Equal(t, Outcome{States: 11, Steps: 28, Depth: 4}, newCounterSearch(toy.Configs[0], 0, "").Run(nil))

	found := newCounterSearch(toy.Configs[0], 1, "").Run(nil)
	assert.Equal(t, Outcome{States: 3, Steps: 3, Depth: 1, Broken: "small", How: "a step of 5 to 5", Path: []string{"add 5: now 5"}}, found)
	assert.Empty(t, newCounterSearch(toy.Configs[0], 1, "progress").Run(nil).Broken, "another property is under test")

	found = newCounterSearch(toy.Configs[1], 0, "").Run(nil)
	assert.Equal(t, "progress", found.Broken)
	assert.Equal(t, "7 is the end", found.How)
	assert.Equal(t, []string{"add 1: now 1", "add 3: now 4", "add 3: now 7", "faults cease", "wait"}, found.Path)
	assert.Empty(t, newCounterSearch(toy.Configs[1], 0, "small").Run(nil).Broken)
}

// TestNotRetold: a violation that does not come again is no success.
func TestNotRetold(t *testing.T) {
	shy := counting{name: "shy", limit: 10, dies: 7, shy: true}
	assert.PanicsWithValue(t, notRetold, func() { newCounterSearch(shy, 0, "").Run(nil) })
	assert.PanicsWithValue(t, notRetold, func() { newCounterSearch(shy, 1, "").Run(nil) })
}

// TestLimit: a search that its limit ends early reports so.
func TestLimit(t *testing.T) {
	for limit, want := range map[int]Outcome{5: {States: 5, Cut: true}, 10: {States: 10, Cut: true}, 11: {States: 11}, 0: {States: 11}} {
		s := newCounterSearch(toy.Configs[0], 0, "")
		s.Limit = limit
		found := s.Run(nil)
		assert.Equal(t, want, Outcome{States: found.States, Cut: found.Cut}, limit)
	}
}

// TestCut: the command tells of a limit.
func TestCut(t *testing.T) {
	limited := toy
	limited.Search = func(c counting, rules Rules, only string) Runner {
		s := newCounterSearch(c, rules, only)
		s.Limit = 3
		return s
	}
	var out bytes.Buffer
	assert.Zero(t, limited.Run([]string{"-config", "ten"}, &out, &out))
	assert.Contains(t, out.String(), "no violation found up to the limit of states\n")
}

// TestSet: states of one hash are different states.
func TestSet(t *testing.T) {
	s := NewSet[int]()
	one, two, three := 1, 2, 3
	assert.True(t, s.Add(&one))
	place, there := s.find(&two)
	require.False(t, there)
	s.places[place] = 0 // as if 1 had the hash of 2
	assert.False(t, s.Has(&two))
	assert.True(t, s.Add(&two))
	assert.True(t, s.Has(&two))
	assert.False(t, s.Add(&two))
	assert.False(t, s.Add(&one))
	assert.False(t, s.Has(&three))
	assert.Equal(t, []int{1, 2}, s.All())
	s.Load(1, &three)
	assert.True(t, s.Is(1, &three))
	assert.False(t, s.Is(0, &three))
}

// TestEncodings: a state is known by its key, and kept as it is.
func TestEncodings(t *testing.T) {
	e := NewEncodings()
	assert.True(t, e.Add([]byte("a"), []byte("b")))
	assert.False(t, e.Add([]byte("a"), []byte("c")))
	assert.True(t, e.Has([]byte("a")))
	assert.False(t, e.Has([]byte("b")))
	assert.True(t, e.Add([]byte("b"), []byte("b")))
	assert.Equal(t, []string{"b", "b"}, e.All())
	assert.Equal(t, 2, e.Len())
}

// TestReader: a reader reads what package binary writes.
func TestReader(t *testing.T) {
	b := binary.LittleEndian.AppendUint64(nil, 0x0102030405060708)
	b = binary.LittleEndian.AppendUint16(append(b, 9), 0xa0b)
	r := Reader(b)
	assert.Equal(t, uint64(0x0102030405060708), r.Uint64())
	assert.Equal(t, byte(9), r.Byte())
	assert.Equal(t, uint16(0xa0b), r.Uint16())
	assert.Empty(t, r)
}

// TestNumbers: a value keeps its number, and a full table panics.
func TestNumbers(t *testing.T) {
	n := NewNumbers[string](2)
	assert.Equal(t, 0, n.Number("a"))
	assert.Equal(t, 1, n.Number("b"))
	assert.Equal(t, 0, n.Number("a"))
	assert.Equal(t, []string{"a", "b"}, n.Values)
	assert.PanicsWithValue(t, "explorer: more than 2 values of the type string", func() { n.Number("c") })
}

// TestStory: a story has a line for each step, and formats nothing before Tell.
func TestStory(t *testing.T) {
	var s Story
	s.Describe("%s", noText{t})
	s.Say("%s", noText{t})
	s.Add("%s", noText{t})
	s.Begin()
	s.Tell()
	s.Describe("sends %d", 1)
	s.Begin()
	s.Begin()
	s.Describe("arrives")
	s.Describe("stored")
	s.Add(", and owed")
	s.Describe("answered")
	s.Begin()
	s.Describe("impossible")
	s.Drop()
	s.Say("first")
	s.Say("second")
	assert.Equal(t, []string{"sends 1", "arrives: stored, and owed; answered", "second"}, s.Lines())
}

// TestViolation: a story keeps the first violation of the property under test, unless another one is the
// cause.
func TestViolation(t *testing.T) {
	s := Story{Only: "b"}
	s.Violate("a", "1")
	assert.Equal(t, []string{"", ""}, broken(&s))
	s.Violate("b", "%d", 2)
	s.Violate("b", "3")
	assert.Equal(t, []string{"b", "2"}, broken(&s))

	s = Story{}
	s.Violate("a", "1")
	s.Blame("b", "%d", 2)
	s.Violate("a", "3")
	assert.Equal(t, []string{"b", "2"}, broken(&s))
}

func broken(s *Story) []string {
	property, how := s.Broken()
	return []string{property, how}
}

// noText must not be formatted.
type noText struct{ t *testing.T }

func (n noText) String() string {
	n.t.Error("text is formatted")
	return ""
}

// TestCommand checks output and exit status to the byte, apart from times.
func TestCommand(t *testing.T) {
	const counterexample = "ten: up to 10; dies\nweakened: steps may be 5\n\n  1  add 5: now 5\n\n" +
		"violated: small\n     a step of 5 to 5\nproperty: steps are small\n"
	seconds := regexp.MustCompile(`, {1,3}\d+\.\d s`)
	const list = "configurations (* large)\n   ten                      up to 10\n   seven                    up to 10\n * big                      up to 100\n" +
		"properties\n   small                    steps are small\n   progress                 it ends\n" +
		"weakenings\n   five                     steps may be 5 (breaks: small)\n   five-unseen              steps may be 5 (breaks: nothing)\n"
	for args, want := range map[string]string{
		"-list":                        "0 " + list,
		"-config ten":                  "0 ten                        11 states, SECONDS s: every property holds\n",
		"-config big":                  "0 big                       101 states, SECONDS s: every property holds\n",
		"-weaken five":                 "1 " + counterexample,
		"-weaken five -config big":     "1 " + strings.ReplaceAll(strings.ReplaceAll(counterexample, "ten:", "big:"), "10;", "100;"),
		"-weaken five-unseen":          "0 ten                         5 states, SECONDS s: every property holds\n",
		"-weaken nothing":              "2 toy: unknown weakening \"nothing\"; see -list\n",
		"-config nothing":              "2 toy: unknown configuration \"nothing\"; see -list\n",
		"-weaken five -config nothing": "2 toy: unknown configuration \"nothing\"; see -list\n",
		"ten":                          "2 toy: unexpected argument \"ten\"; see -help\n",
	} {
		var out bytes.Buffer
		status := toy.Run(strings.Fields(args), &out, &out)
		assert.Equal(t, want, fmt.Sprint(status, " ", seconds.ReplaceAllString(out.String(), ", SECONDS s")), args)
	}
	for args, want := range map[string]int{"": 1, "-large": 1, "-help": 0, "-nothing": 2} {
		var out, errors bytes.Buffer
		assert.Equal(t, want, toy.Run(strings.Fields(args), &out, &errors), args)
		if want == 1 {
			assert.Equal(t, 1, strings.Count(out.String(), "every property holds"), "it ends at the first violation")
			assert.Contains(t, out.String(), "seven: up to 10; dies\n\n  1  add 1: now 1\n")
		} else {
			assert.Contains(t, errors.String(), "Counts.\n  -config NAME\n")
		}
	}
}

// TestOwnFlags: an explorer may add flags, which select configurations or do something else.
func TestOwnFlags(t *testing.T) {
	own := toy
	own.Column = 9
	var limit int
	var walk bool
	own.Flags = func(f Flags) {
		f.IntVar(&limit, "limit", 0, "")
		f.BoolVar(&walk, "walk", false, "")
	}
	own.Narrow = func() func(counting) bool {
		if limit == 0 {
			return nil
		}
		return func(c counting) bool { return c.limit == limit }
	}
	own.Instead = func(out io.Writer, rules Rules) (bool, error) {
		fmt.Fprint(out, "walk ", rules)
		if limit == 10 {
			return true, fmt.Errorf("lost")
		}
		return walk, nil
	}
	own.Line = func(name string, found Outcome, seconds float64) string { return fmt.Sprint(name, found.Depth) }
	for args, want := range map[string]string{
		"-limit 100":                     "0 walk 0big34: every property holds\n",
		"-limit 100 -config ten":         "2 toy: no such configuration; see -list\n",
		"-limit 7":                       "2 toy: no such configuration; see -list\n",
		"-list":                          "0 configurations (* large)\n   ten       up to 10\n   seven     up to 10\n * big       up to 100\nproperties\n   small     steps are small\n   progress  it ends\nweakenings\n   five      steps may be 5 (breaks: small)\n   five-unseen steps may be 5 (breaks: nothing)\n",
		"-walk -weaken five":             "0 walk 1",
		"-limit 10 -weaken five":         "1 walk 1toy: lost\n",
		"-config ten":                    "0 walk 0ten4: every property holds\n",
		"-limit 100 -weaken five-unseen": "0 walk 1big2: every property holds\n",
	} {
		var out bytes.Buffer
		status := own.Run(strings.Fields(args), &out, &out)
		assert.Equal(t, want, fmt.Sprint(status, " ", out.String()), args)
	}
}

// TestWatch: a line on a terminal shows the progress and disappears at the end. Other outputs get
// none.
func TestWatch(t *testing.T) {
	assert.Nil(t, NewWatch(new(bytes.Buffer)))
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	assert.Nil(t, NewWatch(file))

	var terminal bytes.Buffer
	w := &Watch{out: &terminal}
	w.show("rogue", "steps", watchStates, 2000)
	w.show("rogue", "steps", 2*watchStates, 3000) // too soon
	w.last = time.Time{}
	w.show("rogue", "steps", 2*watchStates+1, 3000) // not a multiple of watchStates
	w.show("rogue", "progress", 3*watchStates, 4000)
	w.clear()
	assert.Equal(t, "\r\x1b[Krogue                steps: 1024 of 2000 states so far"+
		"\r\x1b[Krogue                progress: 3072 of 4000 states so far\r\x1b[K", terminal.String())

	terminal.Reset()
	newCounterSearch(toy.Configs[0], 0, "").Run(&Watch{out: &terminal})
	assert.True(t, strings.HasPrefix(terminal.String(), "\r\x1b[Kten                  steps: 0 of 3 states so far\r\x1b[K"))
	assert.True(t, strings.HasSuffix(terminal.String(), "far\r\x1b[K"))
}
