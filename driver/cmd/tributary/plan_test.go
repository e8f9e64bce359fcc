package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// planFolder goes to a folder that holds the topology of GRID's authors, topo.json.
func planFolder(t *testing.T) (testdata string) {
	t.Helper()
	testdata, err := filepath.Abs("testdata")
	require.NoError(t, err)
	data, err := os.ReadFile("../../planner/testdata/authors.json")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("topo.json", data, 0o666))
	return testdata
}

// TestPlan compares what the plan commands print, and their errors and exit statuses. An error leaves no
// file.
func TestPlan(t *testing.T) {
	testdata := planFolder(t)
	var text strings.Builder
	for _, line := range []string{
		"plan topo.json -no-solver",
		"plan topo.json -planner none",
		"plan topo.json -planner nearest",
		"plan topo.json -planner atp",
		"plan topo.json -planner nearest -trees 2",
		"plan topo.json -trees 4 -no-solver -o plan.json -svg plan.svg -dot plan.dot",
		"plan check topo.json plan.json",
		"plan topo.json -planner inart -no-solver -replan plan.json",
		"plan leaf-spine:leaves=4,spines=2,hosts=4,ports=4,rate=200 -no-solver",
	} {
		args := strings.Fields(line)
		s := tributary(context.Background(), args...)
		require.Equal(t, 0, s.status, s.errs)
		text.WriteString(transcript(args, s))
	}
	golden(t, filepath.Join(testdata, "plan.txt"), text.String())
	for _, name := range []string{"plan.json", "plan.svg", "plan.dot"} {
		require.FileExists(t, name)
		require.NoError(t, os.Remove(name))
	}

	text.Reset()
	require.NoError(t, os.WriteFile("bad.json", []byte("{}"), 0o666))
	require.NoError(t, os.WriteFile("cut.json", []byte("{\"version\": 1,\n \"rate\": 3"), 0o666))
	require.NoError(t, os.WriteFile("flags.json", []byte(`{"version": 1, "rate": 3, "filled": {"workers": -1}, "trees": [{"server": "PS", "rate": 3}]}`), 0o666))
	require.NoError(t, os.WriteFile("cards.json", []byte(`{"version": 1, "rate": 3, "filled": {"cards": ["S1=nowhere"]}, "trees": [{"server": "PS", "rate": 3}]}`), 0o666))
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	for _, line := range []string{
		"plan",
		"plan topo.json extra",
		"plan nowhere.json",
		"plan bad.json",
		"plan topo.json -planner greedy -no-solver",
		"plan topo.json -trees 0",
		"plan topo.json -nodes 0",
		"plan topo.json -time-limit 0s",
		"plan topo.json -summing -2",
		"plan topo.json -no-solver -highs highs",
		"plan topo.json -no-solver -write-lp programs",
		"plan topo.json -highs /nowhere/highs -write-lp programs",
		"plan topo.json -capacity fast",
		"plan topo.json -switch-rate -3",
		"plan topo.json -workers -1",
		"plan topo.json -workers x",
		"plan topo.json -seed -1",
		"plan topo.json -planner exact -no-solver",
		"plan topo.json -planner grid -no-solver -replan bad.json",
		"plan topo.json -highs /nowhere/highs",
		"plan random:servers=2 -no-solver",
		"plan fat-tree:k=5 -no-solver",
		"plan fat-tree:k=4 -capacity 1 -workers 3 -no-solver",
		"plan topo.json -no-solver -o /proc/plan.json",
		"plan topo.json -no-solver -svg none/plan.svg",
		"plan topo.json -no-solver -o topo.json",
		"plan check topo.json",
		"plan topo.json -no-solver -o pipe",
		"plan topo.json -no-solver -dot x -svg ./x",
		"plan topo.json -workers 65537",
		"plan check topo.json bad.json",
		"plan check topo.json cut.json",
		"plan check topo.json flags.json",
		"plan check topo.json cards.json",
		"plan check bad.json topo.json",
	} {
		args := strings.Fields(line)
		s := tributary(context.Background(), args...)
		require.NotEqual(t, 0, s.status, line)
		text.WriteString(transcript(args, s))
	}
	golden(t, filepath.Join(testdata, "errors", "plan.txt"), text.String())
	left, err := filepath.Glob("*")
	require.NoError(t, err)
	assert.Equal(t, []string{"bad.json", "cards.json", "cut.json", "flags.json", "pipe", "topo.json"}, left)
}

// TestPlanForAnotherTopology: plan check says what is wrong with a plan that was made for other capacities.
func TestPlanForAnotherTopology(t *testing.T) {
	planFolder(t)
	require.Equal(t, 0, tributary(context.Background(), "plan", "topo.json", "-no-solver", "-o", "plan.json").status)
	data, err := os.ReadFile("topo.json")
	require.NoError(t, err)
	less := strings.Replace(string(data), `"target":"S3","capacity":3`, `"target":"S3","capacity":2`, 1)
	require.NotEqual(t, string(data), less)
	require.NoError(t, os.WriteFile("topo.json", []byte(less), 0o666))
	s := tributary(context.Background(), "plan", "check", "topo.json", "plan.json")
	assert.Equal(t, 1, s.status)
	assert.Contains(t, s.errs, `the link from "S1" to "S3" has the load 3 and the capacity 2`)
}

// TestPlanInterrupted: a signal ends a plan with status 1, and leaves no file.
func TestPlanInterrupted(t *testing.T) {
	planFolder(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := tributary(ctx, "plan", "topo.json", "-trees", "4", "-no-solver", "-o", "plan.json")
	assert.Equal(t, 1, s.status)
	assert.Contains(t, s.errs, "stopped")
	assert.NoFileExists(t, "plan.json")
}
