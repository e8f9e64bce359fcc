package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner/simulate"
)

// threeTrees goes to a folder that holds the topology of GRID's authors, and a plan of three trees.
func threeTrees(t *testing.T) (testdata string) {
	t.Helper()
	testdata = planFolder(t)
	require.Equal(t, 0, tributary(context.Background(), "plan", "topo.json", "-trees", "3", "-no-solver", "-o", "plan.json").status)
	return testdata
}

// transcripts runs command lines, which succeed or fail, and returns what they print.
func transcripts(t *testing.T, fails bool, lines ...string) string {
	t.Helper()
	var text strings.Builder
	for _, line := range lines {
		args := strings.Fields(line)
		s := tributary(context.Background(), args...)
		require.Equal(t, fails, s.status != 0, "%s: %s", line, s.errs)
		text.WriteString(transcript(args, s))
	}
	return text.String()
}

// TestPlanSimulate compares what plan simulate prints, and its errors.
func TestPlanSimulate(t *testing.T) {
	testdata := threeTrees(t)
	require.NoError(t, os.WriteFile("traffic.json", []byte(`{"flows": [{"from": "S1", "to": "S3", "rate": 2, "start": 0.05, "stop": 0.1}], "failures": [{"node": "W1", "at": "1/5"}]}`), 0o666))
	require.NoError(t, os.WriteFile("bad.json", []byte(`{"flows": [{"from": "S1"}]}`), 0o666))
	require.NoError(t, os.WriteFile("other.json", []byte(`{"flows": [{"from": "S1", "to": "S9"}]}`), 0o666))
	golden(t, filepath.Join(testdata, "plan-simulate.txt"), transcripts(t, false,
		"plan simulate topo.json plan.json",
		"plan simulate topo.json plan.json -bytes 1000 -traffic 7:20",
		"plan simulate topo.json plan.json -traffic traffic.json",
		"plan simulate topo.json plan.json -fail S3,S1@0.1",
		"plan simulate topo.json plan.json -fail S3,S1@0.1 -replan",
		"plan simulate topo.json plan.json -leave PS@0.1 -leave W1@0",
	))
	golden(t, filepath.Join(testdata, "errors", "plan-simulate.txt"), transcripts(t, true,
		"plan simulate topo.json",
		"plan simulate topo.json bad.json",
		"plan simulate topo.json plan.json -bytes 0",
		"plan simulate topo.json plan.json -traffic 7:0",
		"plan simulate topo.json plan.json -traffic nowhere.json",
		"plan simulate topo.json plan.json -traffic bad.json",
		"plan simulate topo.json plan.json -traffic other.json",
		"plan simulate topo.json plan.json -fail S1,S2",
		"plan simulate topo.json plan.json -fail S1,S9@1",
		"plan simulate topo.json plan.json -leave S9@1",
		"plan simulate topo.json plan.json -leave S1@-1",
		"plan simulate topo.json plan.json -leave S1@0.1 -replan",
	))
	s := tributary(context.Background(), "plan", "simulate", "topo.json", "plan.json", "-json")
	require.Equal(t, 0, s.status, s.errs)
	var r simulate.Result
	require.NoError(t, json.Unmarshal([]byte(s.out), &r))
	assert.Zero(t, r.Rate.Cmp(r.Plan.Rat))
}

// changing is what differs between runs: times, addresses of cards, and numbers of lost packets.
var changing = regexp.MustCompile(`\d+\.\d+ s,|udp:[0-9.]+:|lost .*\n`)

// TestPlanRun compares what plan run prints, except times and addresses, and its errors. No worker is late by
// a time here: tests of package run have late ones.
func TestPlanRun(t *testing.T) {
	testdata := threeTrees(t)
	text := transcripts(t, false,
		"plan run topo.json plan.json -elements 5000 -timeout 5m",
		"plan run topo.json plan.json -elements 5000 -timeout 5m -format int32 -scheme model -chunk 64 -round-trip 1us -loss 0.001 -seed 3",
		"plan run topo.json plan.json -elements 5000 -timeout 5m -sum exact -fail S1,S3 -reductions 1",
		"plan run topo.json plan.json -elements 5000 -timeout 5m -sum fused -fail-card S1 -reductions 2",
		"plan run topo.json plan.json -elements 100 -timeout 5m -late W2@1us -card S1=cpu:parent=true,workers=5,jobs=2,window=8 -reductions 1",
	)
	golden(t, filepath.Join(testdata, "plan-run.txt"), changing.ReplaceAllString(text, ""))
	golden(t, filepath.Join(testdata, "errors", "plan-run.txt"), transcripts(t, true,
		"plan run topo.json",
		"plan run topo.json plan.json -sum mean",
		"plan run topo.json plan.json -scheme sim",
		"plan run topo.json plan.json -loss 1",
		"plan run topo.json plan.json -loss NaN",
		"plan run topo.json plan.json -loss x",
		"plan run topo.json plan.json -jobs 3",
		"plan run topo.json plan.json -chunk 20",
		"plan run topo.json plan.json -elements 1000000000000",
		"plan run topo.json plan.json -round-trip 0s",
		"plan run topo.json plan.json -round-trip 1s",
		"plan run topo.json plan.json -timeout -1s",
		"plan run topo.json plan.json -card S1",
		"plan run topo.json plan.json -card S9=cpu:",
		"plan run topo.json plan.json -card W1=cpu:",
		"plan run topo.json plan.json -card S1=nowhere",
		"plan run topo.json plan.json -late W1",
		"plan run topo.json plan.json -late S1@1s",
		"plan run topo.json plan.json -fail S1,W9",
		"plan run topo.json plan.json -leave W9",
		"plan run topo.json plan.json -leave S1",
		"plan run topo.json plan.json -fail-card W9",
		"plan run topo.json plan.json -fail-card W1",
	))
	s := tributary(context.Background(), "plan", "run", "topo.json", "plan.json", "-json", "-elements", "10", "-leave", "W4", "-timeout", "5m")
	require.Equal(t, 0, s.status, s.errs)
	var r struct {
		Workers    int
		Epochs     []struct{ Shares []int }
		Reductions []struct{ Epoch int }
	}
	require.NoError(t, json.Unmarshal([]byte(s.out), &r))
	assert.Equal(t, 8, r.Workers)
	require.Len(t, r.Epochs, 2)
	assert.Equal(t, []int{45, 14, 3}, r.Epochs[0].Shares)
	require.Len(t, r.Reductions, 3)
	assert.Equal(t, 2, r.Reductions[2].Epoch)
}

// TestPlanWithGeneratedCards: plan takes ports from a manifest, and run makes a card like that.
func TestPlanWithGeneratedCards(t *testing.T) {
	card, err := filepath.Abs("../../../hwgen/testdata/golden/l2_w2_udp_parent")
	require.NoError(t, err)
	planFolder(t)
	require.NoError(t, os.CopyFS("card", os.DirFS(card)))
	for _, line := range []string{
		"plan topo.json -no-solver -card S2=card -o plan.json",
		"plan check topo.json plan.json",
		"plan simulate topo.json plan.json",
		"plan run topo.json plan.json -elements 100 -lanes 2 -round-trip 1ns -timeout 5m",
	} {
		s := tributary(context.Background(), strings.Fields(line)...)
		require.Equal(t, 0, s.status, s.errs)
		if strings.Contains(line, "run") {
			assert.Regexp(t, `card S2 .*: 2 of 2 ports`, s.out)
		}
	}
	for _, line := range []string{"plan topo.json -card S2", "plan topo.json -card W1=card", "plan topo.json -card S9=card", "plan topo.json -card S2=nowhere"} {
		s := tributary(context.Background(), strings.Fields(line)...)
		assert.Equal(t, 2, s.status)
		assert.Contains(t, s.errs, "-card")
	}
}

// TestPlanRunOnCardsOnTheNetwork: the cards of a plan are elsewhere, and named. When a link fails, the next
// plan has them too, although it is made without a solver.
func TestPlanRunOnCardsOnTheNetwork(t *testing.T) {
	planFolder(t)
	require.Equal(t, 0, tributary(context.Background(), "plan", "topo.json", "-o", "plan.json").status)
	t.Setenv("PATH", t.TempDir()) // no HiGHS from here on
	args := strings.Fields("plan run topo.json plan.json -elements 2000 -reductions 2 -timeout 5m -fail-card S2")
	var names []string
	for _, node := range []string{"S1", "S2", "S3", "PS"} {
		name := serveTreeCard(t, "cpu:parent=true,workers=8,jobs=2,window=64")
		names = append(names, node+" +"+regexp.QuoteMeta(name))
		args = append(args, "-card", node+"="+name)
	}
	s := tributary(context.Background(), args...)
	require.Equal(t, 0, s.status, s.errs)
	_, after, found := strings.Cut(s.out, "the card of S2 fails")
	require.True(t, found, s.out)
	for _, name := range names {
		assert.Regexp(t, name+": ", s.out)
		if !strings.HasPrefix(name, "S2") {
			assert.Regexp(t, name+": ", after)
		}
	}
	assert.NotContains(t, after, "card S2 ")
}

// TestPlanRunOf65: more workers than a tree takes are refused before a card is opened.
func TestPlanRunOf65(t *testing.T) {
	t.Chdir(t.TempDir())
	topo := "leaf-spine:leaves=1,spines=1,hosts=66,ports=70"
	require.Equal(t, 0, tributary(context.Background(), "plan", topo, "-planner", "nearest", "-o", "plan.json").status)
	s := tributary(context.Background(), "plan", "run", topo, "plan.json")
	assert.Equal(t, 2, s.status)
	assert.Contains(t, s.errs, "the topology has 65 workers; the driver sums for 64 at most")
}
