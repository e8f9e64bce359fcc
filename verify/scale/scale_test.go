package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/verify/scale/archive"
	"tributary/verify/scale/archive/archivetest"
	"tributary/verify/scale/sim"
)

var update = flag.Bool("update", false, "draw RESULT.md and result.svg of results.json anew")

func silent(sim.Time) {}

func load(t *testing.T) configuration {
	t.Helper()
	c, err := parse(committed)
	require.NoError(t, err)
	return c
}

// TestCards: cards have the latency and the cycles of a chunk that hwgen writes into their
// manifests.
func TestCards(t *testing.T) {
	c := load(t)
	for name, m := range archivetest.Cards(t, c.Cards, "make scale") {
		assert.Equal(t, c.Job.PayloadBytes, 4*m.Chunk, "%s: payload", name)
		assert.LessOrEqual(t, c.Job.Window, m.Window, "%s: window", name)
	}
}

// TestPage: page and figure are those of the recorded results, and these are of the committed
// configuration, with a cell for each run of a suite. The page names suites that are not recorded.
func TestPage(t *testing.T) {
	c := load(t)
	text, err := os.ReadFile("results.json")
	require.NoError(t, err)
	var r results
	require.NoError(t, json.Unmarshal(text, &r))
	require.Equal(t, archive.Digest(committed), r.Configuration, "configuration.json has changed: run make scale")
	var want, got []string
	var recorded []suite
	for _, s := range c.Suites {
		if len(cellsOf(r.Cells, s.Name)) > 0 {
			recorded = append(recorded, s)
		}
	}
	for _, x := range c.experiments(recorded) {
		if x.seed == x.suite.Seeds[0] {
			want = append(want, experiment{x.suite, x.transport, x.load, 0}.String())
		}
	}
	for _, x := range r.Cells {
		got = append(got, experiment{suite{Name: x.Suite}, transport{Name: x.Transport}, x.Load, 0}.String())
	}
	require.Equal(t, want, got)
	page, picture := page(c, r.Cells), picture(c, r.Cells)
	if *update {
		require.NoError(t, archive.Draw(".", page, picture))
	}
	archivetest.Drawn(t, page, picture, "go test ./verify/scale")
}

// TestNumbersOfTheReadme: its table has recorded numbers.
func TestNumbersOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("results.json")
	require.NoError(t, err)
	var r results
	require.NoError(t, json.Unmarshal(text, &r))
	c := load(t)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for title, name := range map[string]string{
		"ring": "ring", "one tree, fixed window": "fixed-1", "one tree, DCTCP": "dctcp-1", "hashed paths, DCTCP": "dctcp-hash",
		"a tree at each spine, fixed window": "fixed-all", "a tree at each spine, DCTCP": "dctcp-all",
	} {
		row := "| " + title + " |"
		for _, load := range []float64{0.3, 0.6} {
			x := find(r.Cells, "64", load, name)
			iteration := fmt.Sprintf("%.1f ms", x.IterationMS)
			if x.Iterations == 0 {
				iteration = fmt.Sprintf("over %.0f ms", suiteNamed(t, c, "64").MeasuredMS)
			}
			row += fmt.Sprintf(" %s | %.2f ms |", iteration, x.P99US/1000)
		}
		assert.True(t, strings.Contains(string(readme), row+"\n"), "README.md lacks the row %s", row)
	}
}

// TestRecordedRun repeats a recorded run. It has no random flows and a fixed window, so all of its
// arithmetic is that of integers, and any machine gives the same cell.
func TestRecordedRun(t *testing.T) {
	c := load(t)
	text, err := os.ReadFile("results.json")
	require.NoError(t, err)
	var r results
	require.NoError(t, json.Unmarshal(text, &r))
	quiet := suiteNamed(t, c, "quiet")
	quiet.Transports = []string{"fixed-hash"}
	cells, err := c.runAll(context.Background(), []suite{quiet}, 1, silent)
	require.NoError(t, err)
	assert.Equal(t, find(r.Cells, "quiet", 0, "fixed-hash"), cells[0], "run make scale SUITES=quiet, and see what else has changed")
}

func suiteNamed(t *testing.T, c configuration, name string) suite {
	t.Helper()
	for _, s := range c.Suites {
		if s.Name == name {
			return s
		}
	}
	require.FailNow(t, "no suite", name)
	return suite{}
}

// small is a suite that takes a second: all transports, two jobs, two seeds.
func small(t *testing.T) string {
	t.Helper()
	c := load(t)
	n := c.Networks["clos64"]
	n.Racks, n.Spines, n.Workers, n.Servers = 4, 4, 2, 2
	c.Networks["clos64"] = n
	s := suiteNamed(t, c, "64")
	s.Name, s.Loads, s.Seeds, s.Jobs = "small", []float64{0.3}, []uint64{1, 2}, 2
	s.ArrayBytes, s.ComputeMS, s.WarmUpMS, s.MeasuredMS, s.DrainMS = 1<<20, 0.5, 1, 9, 3
	s.Transports = nil
	for _, transport := range c.Transports {
		s.Transports = append(s.Transports, transport.Name)
	}
	c.Suites = []suite{s}
	path := filepath.Join(t.TempDir(), "small.json")
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o666))
	return path
}

func execute(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = command(context.Background(), args, &out, &err)
	return status, out.String(), err.String()
}

// TestDeterminism: the same configuration prints the same bytes, however many simulations run at
// once. Each transport reduces, and flows end.
func TestDeterminism(t *testing.T) {
	path := small(t)
	status, first, stderr := execute("-config", path, "-json", "-parallel", "1")
	require.Zero(t, status, stderr)
	assert.Empty(t, stderr, "no progress where there is no terminal")
	_, second, _ := execute("-config", path, "-json", "-parallel", "3")
	assert.Equal(t, first, second)
	var cells []cell
	require.NoError(t, json.Unmarshal([]byte(first), &cells))
	require.Len(t, cells, len(load(t).Transports))
	for _, x := range cells {
		assert.GreaterOrEqual(t, x.Iterations, 4, x.Transport)
		assert.Positive(t, x.Short, x.Transport)
		assert.Positive(t, x.P99US, x.Transport)
	}
	_, table, _ := execute("-config", path)
	assert.Contains(t, table, "| ring, DCTCP flows | ")
}

// TestHelp: the help text has each flag, and its examples parse.
func TestHelp(t *testing.T) {
	status, stdout, stderr := execute("-help")
	assert.Zero(t, status)
	assert.Empty(t, stderr)
	for _, name := range []string{"suite", "config", "parallel", "json", "record", "list"} {
		assert.Contains(t, stdout, "\n  -"+name)
	}
	status, stdout, _ = execute("-list", "-suite", "64,1024")
	assert.Zero(t, status)
	assert.Contains(t, stdout, "64 workers, web search: 54 runs\n")
	assert.Contains(t, stdout, "1,024 workers, web search: 6 runs\n")
}

// TestUsage: mistakes name what is wrong, and nothing runs.
func TestUsage(t *testing.T) {
	file := func(change func(*configuration)) string {
		c := load(t)
		change(&c)
		text, err := json.Marshal(c)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "c.json")
		require.NoError(t, os.WriteFile(path, text, 0o666))
		return path
	}
	for _, mistake := range []struct {
		args []string
		want string
	}{
		{[]string{"-suite", "65"}, `there is no suite "65"; there are: quiet, 64, 4x16`},
		{[]string{"-parallel", "0"}, "at least one simulation must run"},
		{[]string{"-parallel", "x"}, `invalid value "x"`},
		{[]string{"-fast"}, "flag provided but not defined: -fast"},
		{[]string{"64"}, `unexpected argument "64"`},
		{[]string{"-config", "/nonexistent"}, "no such file"},
		{[]string{"-config", "main.go"}, "no valid JSON"},
		{[]string{"-config", "x", "-record", "."}, "leave -config or -record out"},
		{[]string{"-config", file(func(c *configuration) { c.Suites[0].Loads = []float64{1} })}, `suite "quiet": load 1 is not below 1`},
		{[]string{"-config", file(func(c *configuration) { c.Suites[1].Network = "ring" })}, `there is no network "ring"; there are: clos1024, clos64`},
		{[]string{"-config", file(func(c *configuration) { c.Suites[1].Jobs = 3 })}, "3 jobs do not share 8 workers a rack evenly"},
		{[]string{"-config", file(func(c *configuration) { c.Suites[1].Transports = []string{"tcp"} })}, `there is no transport "tcp"`},
		{[]string{"-config", file(func(c *configuration) { c.Transports[1].Trees = 9 })}, `transport "fixed-1" has 9 trees for 8 spines`},
		{[]string{"-config", file(func(c *configuration) { c.Job.Window = 48 })}, "window_chunks must be a power of two"},
		{[]string{"-config", file(func(c *configuration) { c.TCP.Gain = 0 })}, "gain must be above 0"},
		{[]string{"-config", file(func(c *configuration) {
			n := c.Networks["clos1024"]
			n.Workers = 40
			c.Networks["clos1024"] = n
		})}, "a card at a leaf has at most 64 members"},
	} {
		status, stdout, stderr := execute(mistake.args...)
		assert.Equal(t, exitUsage, status, "%q", mistake.args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, mistake.want)
		assert.Contains(t, stderr, "nothing was run; scale -h lists the flags")
	}
}

// TestInterrupted: an interrupt ends the runs, names one, and records nothing.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	var out, err bytes.Buffer
	assert.Equal(t, exitFailed, command(ctx, []string{"-suite", "quiet", "-record", dir}, &out, &err))
	assert.Contains(t, err.String(), "interrupted in suite quiet, load 0, ring, seed 1: context canceled; earlier suites are recorded")
	assert.Empty(t, out.String())
	files, _ := os.ReadDir(dir)
	assert.Empty(t, files)
}

// TestRecord: the results of suites that were not run stay, unless they are of another
// configuration.
func TestRecord(t *testing.T) {
	c := load(t)
	dir := t.TempDir()
	read := func() (suites []string) {
		text, err := os.ReadFile(filepath.Join(dir, "results.json"))
		require.NoError(t, err)
		var r results
		require.NoError(t, json.Unmarshal(text, &r))
		for _, x := range r.Cells {
			suites = append(suites, x.Suite)
		}
		return suites
	}
	require.NoError(t, record(c, []cell{{Suite: "64", Transport: "ring"}}, dir))
	require.NoError(t, record(c, []cell{{Suite: "quiet", Transport: "ring"}}, dir))
	assert.Equal(t, []string{"quiet", "64"}, read())
	committed = append(bytes.Clone(committed), ' ')
	defer func() { committed = committed[:len(committed)-1] }()
	require.NoError(t, record(c, []cell{{Suite: "64", Transport: "ring"}}, dir))
	assert.Equal(t, []string{"64"}, read())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "results.json"), []byte("{"), 0o666))
	assert.ErrorContains(t, record(c, nil, dir), "move it away")
}

// TestPercentile: the nearest rank.
func TestPercentile(t *testing.T) {
	var values []float64
	for i := range 200 {
		values = append(values, float64(200-i))
	}
	assert.Equal(t, 198.0, percentile(values, 0.99))
	assert.Equal(t, 100.0, percentile(values, 0.5))
	assert.Equal(t, 7.0, percentile([]float64{7}, 0.99))
	assert.Equal(t, 3.0, percentile([]float64{1, 2, 3}, 0.99))
	assert.Zero(t, percentile(nil, 0.99))
}
