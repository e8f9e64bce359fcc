package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/verify/scale/archive"
	"tributary/verify/scale/archive/archivetest"
)

var update = flag.Bool("update", false, "draw RESULT.md and result.svg of results.json anew")

// within is the largest relative difference between a simulation and what it is compared with.
const within = 0.02

func load(t *testing.T) configuration {
	t.Helper()
	c, err := parse(committed)
	require.NoError(t, err)
	return c
}

func recorded(t *testing.T) (r results) {
	t.Helper()
	text, err := os.ReadFile("results.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	require.Equal(t, archive.Digest(committed), r.Configuration, "configuration.json has changed: run make scale-collectives")
	return r
}

// compiled is the simulator, once for all tests. A machine without SimGrid fails.
var compiled func() (path string, err error)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "collectives")
	if err != nil {
		panic(err)
	}
	compiled = sync.OnceValues(func() (string, error) { return build(context.Background(), "simulator", dir) })
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

func built(t *testing.T, alpha float64) *simulator {
	t.Helper()
	path, err := compiled()
	require.NoError(t, err)
	return &simulator{path, load(t), alpha}
}

// TestCards: cards have the latency and the cycles of a chunk that hwgen writes into their manifests, and a port for
// each worker of a rack and one more.
func TestCards(t *testing.T) {
	c := load(t)
	for name, m := range archivetest.Cards(t, c.Cards, "make scale-collectives") {
		assert.Equal(t, c.ChunkBytes, 4*m.Chunk, "%s: correct configuration.json, then run make scale-collectives", name)
		assert.Equal(t, name, fmt.Sprintf("%d ports", m.Workers))
	}
	for _, k := range c.Clusters {
		assert.Equal(t, fmt.Sprintf("%d ports", k.PerRack+1), k.Card)
	}
}

// Test256 simulates 256 workers with the recorded cost of a step. Each time matches its closed form, and the recorded
// time to six digits.
func Test256(t *testing.T) {
	c, r := load(t), recorded(t)
	list := c.chosen(256)
	require.Len(t, list, 3*(5+1+5+5+1)-5)
	cells, err := built(t, r.Alpha).all(t.Context(), list, func() {})
	require.NoError(t, err)
	for i, x := range cells {
		assert.InEpsilon(t, x.Closed, x.Seconds, within, "%s beside its closed form", list[i])
		assert.InEpsilon(t, r.find(256, x.Array, x.Algorithm, x.Percent), x.Seconds, 1e-6, "%s: run make scale-collectives, and see what else has changed", list[i])
	}
}

// TestWhole: a ring of 64 workers, and Rina's of 64 racks, of 16 racks and 48 single workers, and through agents' links, take
// all their steps. Steps that are simulated once and multiplied take as long.
func TestWhole(t *testing.T) {
	s := built(t, 10e-6)
	for _, x := range []experiment{
		{cluster{8, 8, "9 ports"}, array{"1 MB", 1e6}, rina, 0},
		{cluster{64, 2, "5 ports"}, array{"1 MB", 1e6}, rina, 100},
		{cluster{64, 2, "5 ports"}, array{"100 MB", 1e8}, rina, 100},
		{cluster{64, 2, "5 ports"}, array{"100 MB", 1e8}, rinaAgent, 100},
		{cluster{32, 3, "5 ports"}, array{"1 MB", 1e6}, rina, 50},
	} {
		g := x.members()
		require.GreaterOrEqual(t, g, 64)
		whole, err := s.simulate(t.Context(), x, g-1, g-1, false)
		require.NoError(t, err)
		once, err := s.seconds(t.Context(), x)
		require.NoError(t, err)
		assert.InEpsilon(t, whole.End, once, within, "%s", x)
		assert.InEpsilon(t, s.c.closed(x, s.alpha), whole.End, within, "%s", x)
	}
}

// TestBundles: the streams of a rack's workers, simulated as one, take as long as all of them.
func TestBundles(t *testing.T) {
	s := built(t, 10e-6)
	for _, form := range []struct {
		algorithm string
		percent   int
	}{{atpRacks, 0}, {atpRacks, 50}, {atpRacks, 100}, {atp, 0}, {atp, 50}, {tree, 100}} {
		x := experiment{cluster{4, 4, "5 ports"}, array{"100 MB", 1e8}, form.algorithm, form.percent}
		each, err := s.simulate(t.Context(), x, 0, 0, false)
		require.NoError(t, err)
		bundled, err := s.simulate(t.Context(), x, 0, 0, true)
		require.NoError(t, err)
		assert.InEpsilon(t, each.End, bundled.End, 0.005, "%s", x)
	}
}

// TestJudge: SMPI's rings take as long as ours.
func TestJudge(t *testing.T) {
	s := built(t, 10e-6)
	list, err := s.judge(t.Context(), "judge", t.TempDir())
	require.NoError(t, err)
	require.Len(t, list, len(s.c.Judge)*len(judges))
	for _, j := range list {
		assert.InEpsilon(t, j.Theirs, j.Ours, within, "%s, %d workers, %g bytes", j.Algorithm, j.Workers, j.Bytes)
	}
}

// TestRecorded: there is a time for each experiment. Each matches its closed form, and the rings those of SMPI.
func TestRecorded(t *testing.T) {
	c, r := load(t), recorded(t)
	list := c.experiments()
	require.Len(t, r.Cells, len(list))
	assert.False(t, r.Given, "the cost of a step was not measured")
	for i, x := range list {
		got := r.Cells[i]
		require.Equal(t, x.String(), fmt.Sprintf("%d workers, %s, %s, %d %%", got.Workers, got.Array, got.Algorithm, got.Percent))
		assert.InEpsilon(t, c.closed(x, r.Alpha), got.Closed, 1e-12, "%s", x)
		assert.InEpsilon(t, got.Closed, got.Seconds, within, "%s", x)
	}
	require.Len(t, r.Judgements, len(c.Judge)*len(judges))
	for _, j := range r.Judgements {
		assert.InEpsilon(t, j.Theirs, j.Ours, within, "%s, %d workers", j.Algorithm, j.Workers)
	}
}

// TestPage: page and figure are those of the recorded results.
func TestPage(t *testing.T) {
	c, r := load(t), recorded(t)
	page, picture := page(c, r), picture(c, r)
	if *update {
		require.NoError(t, archive.Draw(".", page, picture))
	}
	archivetest.Drawn(t, page, picture, "go test ./verify/scale/collectives")
}

// TestNumbersOfTheReadme: its table has recorded numbers.
func TestNumbersOfTheReadme(t *testing.T) {
	c, r := load(t), recorded(t)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, k := range c.Clusters {
		w := k.workers()
		row := fmt.Sprintf("| %s |", thousands(w))
		for _, column := range []struct {
			algorithm string
			percent   int
		}{{rina, 25}, {rina, 50}, {rina, 75}, {rina, 100}, {rinaAgent, 100}, {atpRacks, 75}, {atpRacks, 100}, {tree, 100}} {
			row += fmt.Sprintf(" %.2f |", r.ring(w, "AlexNet")/r.find(w, "AlexNet", column.algorithm, column.percent))
		}
		assert.Contains(t, string(readme), row+"\n")
	}
	assert.Contains(t, string(readme), fmt.Sprintf("%.2f µs here", r.Alpha*1e6))
}

// TestClosedForms: sums by hand, with links of 1 byte a second and nothing else.
func TestClosedForms(t *testing.T) {
	c := configuration{LinkGbitS: 8e-9, ClockMHz: 1e30, Cards: map[string]archive.Card{"": {}}}
	for _, form := range []struct {
		algorithm string
		percent   int
		want      float64
	}{
		{rina, 0, 2 * 15 * 30. / 16},
		{rina, 50, 2 * 9 * 30. / 10}, // 2 racks and 8 workers
		{rina, 100, 2 * 3 * 30. / 4},
		{rinaAgent, 100, 3 * 5 * 30. / 4},
		{atp, 0, 16 * 30},
		{atp, 25, 13 * 30}, // 12 workers and a sum
		{atp, 50, 9 * 30},
		{atp, 100, 30},
		{atpRacks, 0, 4 * 30},
		{atpRacks, 50, 10 * 30. / 4}, // 8 workers and both sums, at a server without a card
		{atpRacks, 100, 30},
		{tree, 100, 30},
	} {
		x := experiment{cluster{4, 4, ""}, array{"", 30}, form.algorithm, form.percent}
		assert.InEpsilon(t, form.want, c.closed(x, 0), 1e-9, "%s", x)
	}
}

// TestLevels: a card has a port for each worker of a rack, and at most as many cards below it.
func TestLevels(t *testing.T) {
	for _, tree := range []struct{ racks, perRack, levels int }{{4, 4, 2}, {32, 32, 2}, {128, 32, 3}, {1024, 32, 3}, {1025, 32, 4}} {
		assert.Equal(t, tree.levels, experiment{cluster: cluster{tree.racks, tree.perRack, ""}}.levels(), "%+v", tree)
	}
}

// TestSimulatorRefuses: the simulator names what is wrong, and so does what runs it.
func TestSimulatorRefuses(t *testing.T) {
	s := built(t, 10e-6)
	for _, mistake := range []struct{ args, want string }{
		{"", "the algorithm is missing"},
		{"ring racks", "racks has no ="},
		{"ring racks=four", "stod"},
		{"ring racks=4x", "racks=4x is no number"},
		{"ring racks=4", "the parameter bundled is missing"},
		{"star bundled=0 racks=2 per_rack=2 host_latency=0 rate=1 alpha=0 card=0 chunk=1 equipped=0", "there is no algorithm star; there are: ring, cards, parameters"},
	} {
		out, err := exec.Command(s.path, strings.Fields(mistake.args)...).CombinedOutput()
		assert.Error(t, err, mistake.args)
		assert.Contains(t, string(out), mistake.want)
	}
	s.path += "x"
	_, err := s.seconds(t.Context(), experiment{cluster{4, 4, "5 ports"}, array{"an array", 4}, rina, 0})
	assert.ErrorContains(t, err, "16 workers, an array, rina, 0 %")
}

// TestPingPong: both ends of the ping-pong end, and the time is positive. No test depends on which it is.
func TestPingPong(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- echo(writer) }()
	address, err := bufio.NewReader(reader).ReadString('\n')
	require.NoError(t, err)
	seconds, err := pingPong(strings.TrimSpace(address), 11)
	require.NoError(t, err)
	assert.Positive(t, seconds)
	require.NoError(t, <-done)
}

// TestUsage: mistakes name what is wrong, and nothing runs.
func TestUsage(t *testing.T) {
	for _, mistake := range []struct{ args, want string }{
		{"-workers 17", "-workers 17: no cluster has so many"},
		{"-workers x", `invalid value "x"`},
		{"-alpha -1us", "-alpha -1µs: a step takes time"},
		{"-workers 256 -record .", "-record is for all workers"},
		{"256", `unexpected argument "256"`},
	} {
		var out, err bytes.Buffer
		assert.Equal(t, exitUsage, command(context.Background(), strings.Fields(mistake.args), &out, &err), mistake.args)
		assert.Empty(t, out.String())
		assert.Contains(t, err.String(), mistake.want)
		assert.Contains(t, err.String(), "nothing was run; collectives -h lists the flags")
	}
	var out, err bytes.Buffer
	assert.Equal(t, exitDone, command(context.Background(), []string{"-help"}, &out, &err))
	for _, name := range []string{"workers", "alpha", "record", "help"} {
		assert.Contains(t, out.String(), "\n  -"+name)
	}
}

// TestConfigurations that are wrong are refused by name.
func TestConfigurations(t *testing.T) {
	for want, change := range map[string]func(*configuration){
		"link_gbit_s":                         func(c *configuration) { c.LinkGbitS = 0 },
		`there is no card "6 ports"`:          func(c *configuration) { c.Clusters[0].Card = "6 ports" },
		"less than two links bring":           func(c *configuration) { c.LinkGbitS = 40 },
		"30 % of the racks is no number":      func(c *configuration) { c.Percent[1] = 30 },
		"at least 2 racks of 2 workers":       func(c *configuration) { c.Clusters[0].Racks = 1 },
		"do not share":                        func(c *configuration) { c.Judge[0].Workers = 3 },
		"it needs a name and at least 4 byte": func(c *configuration) { c.Arrays[0].Bytes = 3 },
	} {
		c := load(t)
		change(&c)
		text, err := json.Marshal(c)
		require.NoError(t, err)
		_, err = parse(text)
		assert.ErrorContains(t, err, want)
	}
	_, err := parse([]byte(`{"links": 1}`))
	assert.ErrorContains(t, err, "no valid JSON of this program")
}

// TestInterrupted: an interrupt ends the runs, and records nothing.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, err bytes.Buffer
	dir := t.TempDir()
	assert.Equal(t, exitFailed, command(ctx, []string{"-alpha", time.Microsecond.String(), "-record", dir}, &out, &err))
	assert.Contains(t, err.String(), "context canceled")
	files, _ := os.ReadDir(dir)
	assert.Empty(t, files)
}
