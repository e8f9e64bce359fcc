package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner"
	"tributary/driver/planner/plan"
	"tributary/driver/planner/simulate"
	"tributary/driver/planner/topology"
)

// authors is the example of GRID's authors (issue 22).
const authors = `{"nodes": [{"id":"S1","ports":8,"rate":9},{"id":"S2","ports":8,"rate":9},{"id":"S3","ports":8,"rate":9},{"id":"PS","kind":"server"},
{"id":"W1","kind":"worker"},{"id":"W2","kind":"worker"},{"id":"W3","kind":"worker"},{"id":"W4","kind":"worker"},
{"id":"W5","kind":"worker"},{"id":"W6","kind":"worker"},{"id":"W7","kind":"worker"},{"id":"W8","kind":"worker"}],
"edges":[{"source":"S1","target":"S3","capacity":3},{"source":"S1","target":"S2","capacity":3},{"source":"S2","target":"S3","capacity":3},
{"source":"S3","target":"PS","capacity":9},
{"source":"W1","target":"S1","capacity":9},{"source":"W2","target":"S1","capacity":9},{"source":"W3","target":"S1","capacity":9},{"source":"W4","target":"S1","capacity":9},
{"source":"W5","target":"S2","capacity":9},{"source":"W6","target":"S2","capacity":9},{"source":"W7","target":"S3","capacity":9},{"source":"W8","target":"S3","capacity":9}]}`

func parse(t *testing.T, text string) *topology.Topology {
	t.Helper()
	topo, err := topology.Parse("topo.json", []byte(text), topology.Defaults{})
	require.NoError(t, err)
	return topo
}

func generate(t *testing.T, name string) *topology.Topology {
	t.Helper()
	topo, err := topology.Generate(name)
	require.NoError(t, err)
	return topo
}

func planned(t *testing.T, topo *topology.Topology, name string, trees int, seed uint64) *plan.Plan {
	t.Helper()
	p, err := planner.Make(context.Background(), topo, planner.Options{Planner: name, Trees: trees, Seed: seed})
	require.NoError(t, err)
	return p
}

func simulated(t *testing.T, topo *topology.Topology, p *plan.Plan, o simulate.Options) *simulate.Result {
	t.Helper()
	r, err := simulate.Run(topo, p, o)
	require.NoError(t, err)
	return r
}

// id returns the id of a node with a name.
func id(name string) plan.ID { return plan.ID{Text: name} }

func quantity(a, b int64) plan.Quantity { return plan.Quantity{Rat: big.NewRat(a, b)} }

// same compares a fraction with the text of another.
func same(t *testing.T, want string, got *plan.Quantity) {
	t.Helper()
	if assert.NotNil(t, got) {
		assert.Equal(t, want, got.RatString())
	}
}

// TestAloneAPlanHasItsRate: without other traffic, the simulation gives the rate of the plan, exactly, and all
// trees are done at the same time.
func TestAloneAPlanHasItsRate(t *testing.T) {
	several := 0
	for name, topo := range map[string]*topology.Topology{
		"authors":    parse(t, authors),
		"fat-tree":   generate(t, "fat-tree:k=4,ports=4,rate=250,over=3"),
		"leaf-spine": generate(t, "leaf-spine:leaves=3,hosts=5,ports=4,rate=170,over=2"),
		"servers":    generate(t, "leaf-spine:leaves=3,hosts=4,ports=3,servers=2,over=2"),
	} {
		for _, by := range planner.Names {
			if by == "exact" || by == "grid" && name == "servers" {
				continue
			}
			for trees := 1; trees <= 3; trees++ {
				p := planned(t, topo, by, trees, 7)
				r := simulated(t, topo, p, simulate.Options{Bytes: 1e9})
				same(t, p.Rate.RatString(), r.Rate)
				same(t, new(big.Rat).Quo(big.NewRat(8, 1), p.Rate.Rat).RatString(), r.Seconds)
				assert.Len(t, r.Phases, 1, "%s by %s", name, by)
				if len(p.Trees) > 1 {
					several++
				}
			}
		}
	}
	assert.Greater(t, several, 5)
}

// line has two workers at S1, whose sum passes S2.
const line = `{"nodes":[{"id":"S1","ports":4},{"id":"S2","ports":4},{"id":"S3"},{"id":"PS","kind":"server"},{"id":"W1","kind":"worker"},{"id":"W2","kind":"worker"}],
"edges":[{"source":"W1","target":"S1","capacity":10},{"source":"W2","target":"S1","capacity":10},{"source":"S1","target":"S2","capacity":6},{"source":"S2","target":"PS","capacity":10},
{"source":"S1","target":"S3","capacity":2},{"source":"S3","target":"S2","capacity":2}]}`

// lineTree is the tree of that topology with a rate of 6.
func lineTree() plan.Tree {
	return plan.Tree{Server: id("PS"), Rate: quantity(6, 1),
		Members: []plan.Member{{Worker: id("W1"), To: id("S1"), Path: []plan.ID{id("W1"), id("S1")}}, {Worker: id("W2"), To: id("S1"), Path: []plan.ID{id("W2"), id("S1")}}},
		Sums:    []plan.Sum{{Switch: id("S1"), To: id("PS"), Path: []plan.ID{id("S1"), id("S2"), id("PS")}}}}
}

// direct has a rate of 1, and its streams pass S3 unsummed.
func direct() plan.Tree {
	way := func(worker string) plan.Member {
		return plan.Member{Worker: id(worker), To: id("PS"), Path: []plan.ID{id(worker), id("S1"), id("S3"), id("S2"), id("PS")}}
	}
	return plan.Tree{Server: id("PS"), Rate: quantity(1, 1), Members: []plan.Member{way("W1"), way("W2")}}
}

func linePlan() *plan.Plan {
	return &plan.Plan{Version: 1, Rate: quantity(6, 1), Trees: []plan.Tree{lineTree()}}
}

func bothPlan() *plan.Plan {
	return &plan.Plan{Version: 1, Rate: quantity(7, 1), Trees: []plan.Tree{lineTree(), direct()}}
}

// TestOtherTraffic computes by hand what a plan gets beside other traffic. The reduction has 6 Gb.
func TestOtherTraffic(t *testing.T) {
	for _, c := range []struct {
		what  string
		flows []simulate.Flow
		time  string
		flow  string // its first rate
	}{
		{"half of the link", []simulate.Flow{{From: id("S1"), To: id("S2")}}, "2", "3"},
		{"a third", []simulate.Flow{{From: id("S1"), To: id("S2")}, {From: id("W1"), To: id("S2")}}, "3", "2"},
		{"little", []simulate.Flow{{From: id("S1"), To: id("S2"), Rate: ptr(quantity(1, 1))}}, "6/5", "1"},
		{"another way", []simulate.Flow{{From: id("S1"), To: id("S2"), Path: []plan.ID{id("S1"), id("S3"), id("S2")}}}, "1", "2"},
		{"the other direction", []simulate.Flow{{From: id("S2"), To: id("S1")}}, "1", "6"},
		{"later", []simulate.Flow{{From: id("S1"), To: id("S2"), Start: ptr(quantity(1, 2))}}, "3/2", "0"},
		{"for a time", []simulate.Flow{{From: id("S1"), To: id("S2"), Stop: ptr(quantity(1, 2))}}, "5/4", "3"},
		{"after its end", []simulate.Flow{{From: id("S1"), To: id("S2"), Start: ptr(quantity(2, 1))}}, "1", "0"},
	} {
		r := simulated(t, parse(t, line), linePlan(), simulate.Options{Bytes: 750e6, Traffic: simulate.Traffic{Flows: c.flows}})
		t.Run(c.what, func(t *testing.T) {
			same(t, c.time, r.Seconds)
			same(t, c.flow, &r.Phases[0].Flows[0])
		})
	}
}

// TestNodesAreLimits: a plan that needs more than nodes have is as fast as they are.
func TestNodesAreLimits(t *testing.T) {
	for node, want := range map[string]string{
		`{"id":"S1","ports":4,"rate":8}`:         "4", // two streams
		`{"id":"W2","kind":"worker","rate":3}`:   "3",
		`{"id":"PS","kind":"server","rate":"5"}`: "5",
	} {
		before, _, _ := strings.Cut(node, `,"rate"`)
		limited := strings.Replace(line, before+"}", node, 1)
		require.NotEqual(t, line, limited)
		r := simulated(t, parse(t, limited), linePlan(), simulate.Options{Bytes: 1})
		same(t, want, r.Rate)
	}
}

func ptr(q plan.Quantity) *plan.Quantity { return &q }

// TestTwoLevels: the sum of a switch to which only another sum comes is a stream, too.
func TestTwoLevels(t *testing.T) {
	p := linePlan()
	tree := &p.Trees[0]
	tree.Sums = []plan.Sum{{Switch: id("S2"), To: id("PS"), Path: []plan.ID{id("S2"), id("PS")}}, {Switch: id("S1"), To: id("S2"), Path: []plan.ID{id("S1"), id("S2")}}}
	r := simulated(t, parse(t, line), p, simulate.Options{Bytes: 125e6, Traffic: simulate.Traffic{Flows: []simulate.Flow{{From: id("S2"), To: id("PS")}}}})
	same(t, "5", r.Rate)
	same(t, "5", &r.Phases[0].Flows[0])
}

// TestHostsForwardNothing: a flow goes round a worker with two links, by a longer way.
func TestHostsForwardNothing(t *testing.T) {
	topo := parse(t, `{"nodes":[{"id":"S1"},{"id":"S2"},{"id":"S3"},{"id":"S4"},{"id":"PS","kind":"server"},{"id":"W1","kind":"worker"},{"id":"W2","kind":"worker"}],
"edges":[{"source":"W1","target":"S1","capacity":10},{"source":"W1","target":"S3","capacity":10},{"source":"W2","target":"S1","capacity":10},
{"source":"S1","target":"S2","capacity":2},{"source":"S2","target":"S4","capacity":2},{"source":"S4","target":"S3","capacity":2},{"source":"S3","target":"PS","capacity":10}]}`)
	p := &plan.Plan{Version: 1, Rate: quantity(1, 1), Trees: []plan.Tree{{Server: id("PS"), Rate: quantity(1, 1), Members: []plan.Member{
		{Worker: id("W1"), To: id("PS"), Path: []plan.ID{id("W1"), id("S3"), id("PS")}},
		{Worker: id("W2"), To: id("PS"), Path: []plan.ID{id("W2"), id("S1"), id("S2"), id("S4"), id("S3"), id("PS")}},
	}}}}
	r := simulated(t, topo, p, simulate.Options{Bytes: 125e6, Traffic: simulate.Traffic{Flows: []simulate.Flow{{From: id("S1"), To: id("S3")}}}})
	same(t, "1", &r.Phases[0].Flows[0]) // beside a stream of the tree
}

// TestFailures computes by hand what is left of plans. The reductions have 7 Gb.
func TestFailures(t *testing.T) {
	link := func(a, b string, at plan.Quantity) simulate.Failure {
		return simulate.Failure{Link: []plan.ID{id(a), id(b)}, At: at}
	}
	node := func(name string, at plan.Quantity) simulate.Failure {
		of := id(name)
		return simulate.Failure{Node: &of, At: at}
	}
	for _, c := range []struct {
		what     string
		plan     *plan.Plan
		failures []simulate.Failure
		time     string // "": never
	}{
		{"the first tree, whose 3 Gb move", bothPlan(), []simulate.Failure{link("S2", "S1", quantity(1, 2))}, "4"},
		{"the second tree, whose 1/2 Gb moves", bothPlan(), []simulate.Failure{node("S3", quantity(1, 2))}, "13/12"},
		{"one after the other", bothPlan(), []simulate.Failure{link("S1", "S2", quantity(3, 4)), node("S3", quantity(1, 2))}, ""},
		{"the only tree", linePlan(), []simulate.Failure{link("S1", "S2", quantity(1, 2))}, ""},
		{"the server", bothPlan(), []simulate.Failure{node("PS", quantity(0, 1))}, ""},
		{"a worker", bothPlan(), []simulate.Failure{node("W1", quantity(1, 2))}, "1"},
		{"all workers", bothPlan(), []simulate.Failure{node("W1", quantity(1, 2)), node("W2", quantity(1, 2))}, ""},
		{"what no tree needs", linePlan(), []simulate.Failure{node("S3", quantity(1, 2))}, "7/6"},
		{"after the end", linePlan(), []simulate.Failure{link("S1", "S2", quantity(2, 1))}, "7/6"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := simulated(t, parse(t, line), c.plan, simulate.Options{Bytes: 875e6, Traffic: simulate.Traffic{Failures: c.failures}})
			if c.time == "" {
				assert.Nil(t, r.Seconds)
				assert.Contains(t, r.Why, "no tree is left")
				return
			}
			same(t, c.time, r.Seconds)
		})
	}
}

// TestAWorkerThatLeavesMakesRoom: its stream is gone, so another flow gets more.
func TestAWorkerThatLeavesMakesRoom(t *testing.T) {
	of := id("W1")
	p := &plan.Plan{Version: 1, Rate: quantity(1, 1), Trees: []plan.Tree{direct()}}
	r := simulated(t, parse(t, line), p, simulate.Options{Bytes: 125e6, Traffic: simulate.Traffic{
		Flows:    []simulate.Flow{{From: id("S1"), To: id("S3")}},
		Failures: []simulate.Failure{{Node: &of, At: quantity(1, 10)}},
	}})
	require.Len(t, r.Phases, 2)
	same(t, "2/3", &r.Phases[0].Flows[0]) // of 2, for three streams
	same(t, "2/3", &r.Phases[0].Trees[0])
	same(t, "1", &r.Phases[1].Flows[0])
	same(t, "1", &r.Phases[1].Trees[0])
}

// TestFlowsFindAnotherWay: a flow without a path goes round a link that has failed; one with a path does not.
func TestFlowsFindAnotherWay(t *testing.T) {
	p := &plan.Plan{Version: 1, Rate: quantity(1, 1), Trees: []plan.Tree{direct()}}
	r := simulated(t, parse(t, line), p, simulate.Options{Bytes: 125e6, Traffic: simulate.Traffic{
		Flows:    []simulate.Flow{{From: id("S1"), To: id("S2")}, {From: id("S1"), To: id("S2"), Path: []plan.ID{id("S1"), id("S2")}}},
		Failures: []simulate.Failure{{Link: []plan.ID{id("S1"), id("S2")}, At: quantity(1, 10)}},
	}})
	same(t, "3", &r.Phases[0].Flows[0])
	same(t, "3", &r.Phases[0].Flows[1])
	same(t, "2/3", &r.Phases[1].Flows[0])
	same(t, "0", &r.Phases[1].Flows[1])
}

// TestReplan: after a failure, all that is left goes through a new plan, made for what is left.
func TestReplan(t *testing.T) {
	topo := parse(t, authors)
	p := planned(t, topo, "grid", 3, 1)
	for _, f := range []simulate.Failure{{Link: []plan.ID{id("S1"), id("S3")}, At: quantity(1, 100)}, {Node: ptrID("W7"), At: quantity(1, 100)}} {
		var after *plan.Plan
		r := simulated(t, topo, p, simulate.Options{Bytes: 1e8, Traffic: simulate.Traffic{Failures: []simulate.Failure{f}}, Replan: func(rest *topology.Topology) (*plan.Plan, error) {
			after = planned(t, rest, "grid", 3, 1)
			return after, nil
		}})
		left := new(big.Rat).Sub(big.NewRat(8, 10), new(big.Rat).Mul(p.Rate.Rat, f.At.Rat))
		same(t, new(big.Rat).Add(f.At.Rat, left.Quo(left, after.Rate.Rat)).RatString(), r.Seconds)
	}
	_, err := simulate.Run(topo, p, simulate.Options{Bytes: 1, Traffic: simulate.Traffic{Failures: []simulate.Failure{{Node: ptrID("S1"), At: quantity(0, 1)}}}, Replan: func(*topology.Topology) (*plan.Plan, error) {
		return nil, errors.New("not reached")
	}})
	assert.ErrorContains(t, err, `after switch S1 leaves: topo.json: nodes[3] ("W1"): no path leads from this worker`)
}

func ptrID(name string) *plan.ID {
	of := id(name)
	return &of
}

// TestRandom: the same seed gives the same flows, and another seed others. All of them get something.
func TestRandom(t *testing.T) {
	topo := parse(t, authors)
	p := planned(t, topo, "grid", 2, 1)
	flows := simulate.Random(topo, 3, 50)
	assert.Equal(t, flows, simulate.Random(topo, 3, 50))
	assert.NotEqual(t, flows, simulate.Random(topo, 4, 50))
	r := simulated(t, topo, p, simulate.Options{Bytes: 1e8, Traffic: simulate.Traffic{Flows: flows}})
	assert.Negative(t, r.Rate.Cmp(p.Rate.Rat))
	for _, rate := range r.Phases[0].Flows {
		assert.Positive(t, rate.Sign())
	}
}

// TestTrafficFiles has what Read takes and refuses, and what Run refuses.
func TestTrafficFiles(t *testing.T) {
	topo := parse(t, line)
	for text, want := range map[string]string{
		`{"flows":[{"from":"S1","to":"S2","rate":"1/3","start":0.5,"stop":1}],"failures":[{"link":["S1","S2"],"at":1},{"node":"W1","at":2}]}`: "",
		`{`:                         "line 1, column 1: it is no traffic: it ends too early",
		`{} {}`:                     "more text follows",
		`{"flow":[]}`:               `unknown field "flow"`,
		`{"flows":[{"from":"S1"}]}`: `flows[0]: "from" or "to" is missing`,
		`{"flows":[{"from":"S1","to":"S2","rate":0}]}`:                `flows[0]: "rate" must be more than 0`,
		`{"flows":[{"from":"S1","to":"S2","rate":"NaN"}]}`:            "neither a number",
		`{"flows":[{"from":"S1","to":"S2","start":-1}]}`:              `flows[0]: "start" must not be negative`,
		`{"flows":[{"from":"S1","to":"S2","start":1,"stop":1}]}`:      `flows[0]: "stop" must be after "start"`,
		`{"failures":[{"at":1}]}`:                                     `failures[0]: give it a "link" with two ends, or a "node"`,
		`{"failures":[{"link":["S1"],"at":1}]}`:                       `failures[0]: give it a "link" with two ends, or a "node"`,
		`{"failures":[{"node":"S1"}]}`:                                `failures[0]: "at" must be 0 or more`,
		`{"failures":[{"node":"S9","at":1}]}`:                         `failures[0]: no node has the id "S9"`,
		`{"failures":[{"link":["S1","PS"],"at":1}]}`:                  `failures[0]: no link joins "S1" and "PS"`,
		`{"flows":[{"from":"S1","to":"S9"}]}`:                         "flows[0] leads from \"S1\" to \"S9\"; both must be nodes",
		`{"flows":[{"from":"S1","to":"S1"}]}`:                         "not the same one",
		`{"flows":[{"from":"S1","to":"S2","path":["S1","PS","S2"]}]}`: `flows[0]: no link leads from "S1" to "PS"`,
		`{"flows":[{"from":"S1","to":"S2","path":["S2","S1"]}]}`:      `flows[0]: its path does not lead from "S1" to "S2"`,
	} {
		t.Run(text, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "traffic.json")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			traffic, err := simulate.Read(path)
			if err == nil {
				_, err = simulate.Run(topo, bothPlan(), simulate.Options{Bytes: 1e9, Traffic: *traffic})
			}
			if want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, want)
		})
	}
	_, err := simulate.Run(parse(t, authors), linePlan(), simulate.Options{Bytes: 1})
	assert.ErrorContains(t, err, `tree 0, S1: no link leads from "S2" to "PS"`)
	astray := linePlan()
	astray.Trees[0].Members[1].Path = []plan.ID{id("W2"), id("S2"), id("S1")}
	_, err = simulate.Run(topo, astray, simulate.Options{Bytes: 1})
	assert.EqualError(t, err, `tree 0, W2: no link leads from "W2" to "S2"`)
	_, err = simulate.Run(topo, linePlan(), simulate.Options{})
	assert.ErrorContains(t, err, "0 bytes")
	_, err = simulate.Run(topo, linePlan(), simulate.Options{Bytes: 1, Traffic: simulate.Traffic{Flows: []simulate.Flow{{From: id("W1"), To: id("W9")}}}})
	assert.ErrorContains(t, err, fmt.Sprintf("%q", "W9"))
	apart := parse(t, strings.Replace(line, `{"id":"S3"}`, `{"id":"S3"},{"id":"S4"}`, 1))
	_, err = simulate.Run(apart, linePlan(), simulate.Options{Bytes: 1, Traffic: simulate.Traffic{Flows: []simulate.Flow{{From: id("W1"), To: id("S4")}}}})
	assert.EqualError(t, err, `flows[0]: no path leads from "W1" to "S4"`)
}
