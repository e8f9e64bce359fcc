package run_test

import (
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner"
	"tributary/driver/planner/plan"
	"tributary/driver/planner/run"
	"tributary/driver/planner/topology"
	"tributary/driver/wire"
)

func id(name string) plan.ID { return plan.ID{Text: name} }

func generated(t testing.TB, name string) *topology.Topology {
	t.Helper()
	topo, err := topology.Generate(name)
	require.NoError(t, err)
	return topo
}

func planned(t testing.TB, topo *topology.Topology, name string) *plan.Plan {
	t.Helper()
	p, err := planner.Make(testContext(t), topo, planner.Options{Planner: name, Trees: 2})
	require.NoError(t, err)
	return p
}

// TestLayout compares the cards of a small plan with what they have to be.
func TestLayout(t *testing.T) {
	topo := generated(t, "leaf-spine:leaves=2,spines=1,hosts=3,ports=8,over=2")
	p := planned(t, topo, "nearest")
	l, err := run.Lay(topo, p, nil, run.Options{Chunk: 1024, RoundTrip: 5 * time.Microsecond})
	require.NoError(t, err)
	require.Len(t, l.Trees, 1)
	assert.Equal(t, "50", l.Trees[0].Rate.RatString())
	assert.Equal(t, 8, l.Window, "50 Gb/s for 5 µs are 7.6 chunks of 1,024 fp32 numbers")
	assert.Equal(t, 1024, l.Chunk)
	assert.True(t, l.Exact)
	// Ranks do not depend on the order of the plan's file.
	slices.Reverse(p.Trees[0].Members)
	l, err = run.Lay(topo, p, nil, run.Options{Chunk: 1024, RoundTrip: 5 * time.Microsecond})
	require.NoError(t, err)
	// Hosts are dealt to the leaves in turn: server-0, worker-1 and worker-3 are at leaf-0.
	var places []string
	for _, c := range l.Trees[0].Cards {
		n := l.Nodes[c.Node]
		places = append(places, fmt.Sprint(n.ID.Text, " ", c.Parent, " ", c.Ranks, " ", n.Needs, "/", n.Ports, " ", n.Load.RatString()))
	}
	assert.Equal(t, []string{"server-0 -1 [] 2/2 100", "leaf-0 0 [1 3] 2/8 100", "leaf-1 0 [0 2 4] 3/8 150"}, places)
}

// TestWindows: a window is the lowest power of two, at least 2, that carries the rate for the round trip.
func TestWindows(t *testing.T) {
	topo := generated(t, "leaf-spine:leaves=2,spines=1,hosts=3,ports=8,over=2")
	p := planned(t, topo, "nearest")                                                               // 50 Gb/s
	for trip, want := range map[time.Duration]int{1: 2, 40: 2, 41: 4, 81: 4, 82: 8, 20480: 1024} { // a chunk takes 20.48 ns
		l, err := run.Lay(topo, p, nil, run.Options{Chunk: 32, RoundTrip: trip})
		require.NoError(t, err)
		assert.Equal(t, want, l.Window, "%v", trip)
	}
}

// many returns a topology with so many workers, and its plan.
func many(t testing.TB, workers int) (*topology.Topology, *plan.Plan) {
	t.Helper()
	topo := generated(t, fmt.Sprintf("leaf-spine:leaves=1,spines=1,hosts=%d,ports=70", workers+1))
	return topo, planned(t, topo, "nearest")
}

// copies returns a plan of so many trees like the only one of another.
func copies(p *plan.Plan, n int) *plan.Plan {
	c := *p
	c.Trees = nil
	for range n {
		tree := p.Trees[0]
		tree.Rate = plan.Quantity{Rat: new(big.Rat).Quo(tree.Rate.Rat, big.NewRat(int64(n), 1))}
		c.Trees = append(c.Trees, tree)
	}
	return &c
}

// golden is the folder of a generated card with an up port: 2 ports, 2 lanes, chunks of 8, a window of 2, 2 jobs.
const golden = "../../../hwgen/testdata/golden/l2_w2_udp_parent"

// TestLimits: plans that cards cannot carry out, and why.
func TestLimits(t *testing.T) {
	slow := run.Options{RoundTrip: time.Nanosecond}
	with := func(o run.Options, node, card string) run.Options {
		o.Cards = map[plan.ID]string{id(node): card}
		return o
	}
	topo, p := many(t, 64)
	_, err := run.Lay(topo, p, nil, slow)
	require.NoError(t, err, "64 workers")
	small, few := many(t, 2)
	_, err = run.Lay(small, copies(few, 16), nil, slow)
	require.NoError(t, err, "16 trees")
	l, err := run.Lay(small, few, nil, with(run.Options{Lanes: 2, RoundTrip: time.Nanosecond}, "leaf-0", golden))
	require.NoError(t, err)
	assert.Equal(t, 8, l.Chunk, "that of the generated card")

	topo65, p65 := many(t, 65)
	three, p3 := many(t, 3)
	for want, lay := range map[string]func() (*run.Layout, error){
		"the topology has 65 workers; the driver sums for 64 at most, the global ranks 0 to 63": func() (*run.Layout, error) { return run.Lay(topo65, p65, nil, slow) },
		"is in 17 trees; a card holds 16 jobs at most":                                          func() (*run.Layout, error) { return run.Lay(small, copies(few, 17), nil, slow) },
		"it needs a window of": func() (*run.Layout, error) { return run.Lay(small, few, nil, run.Options{RoundTrip: time.Second}) },
		"is in 4 trees, with windows of 512 chunks each, and its card has room for 1024": func() (*run.Layout, error) {
			return run.Lay(small, copies(few, 4), nil, run.Options{Chunk: 32, RoundTrip: 20 * time.Microsecond})
		},
		`node "leaf-0" sums 3 streams in a tree, and its card in ` + golden + ` has 2 ports`: func() (*run.Layout, error) { return run.Lay(three, p3, nil, with(slow, "leaf-0", golden)) },
		"and its card in " + golden + " holds 2 jobs":                                        func() (*run.Layout, error) { return run.Lay(small, copies(few, 3), nil, with(slow, "leaf-0", golden)) },
		"is in 2 trees, with windows of 2 chunks each, and its card has room for 2":          func() (*run.Layout, error) { return run.Lay(small, copies(few, 2), nil, with(slow, "leaf-0", golden)) },
		`"nowhere" is not a card's folder`:                                                   func() (*run.Layout, error) { return run.Lay(small, few, nil, with(slow, "leaf-0", "nowhere")) },
		`worker "worker-2" was not there at the beginning`:                                   func() (*run.Layout, error) { return run.Lay(three, p3, run.Ranks(small), slow) },
		`tree 0 has the worker "worker-2", which the topology lacks`:                         func() (*run.Layout, error) { return run.Lay(small, p3, nil, slow) },
	} {
		l, err := lay()
		var input *run.InputError
		assert.Nil(t, l, want)
		assert.ErrorAs(t, err, &input, want)
		assert.ErrorContains(t, err, want)
	}
}

// TestTheLinkOfABoard: the card of a board has the rate of its link. A plan that needs more is refused.
func TestTheLinkOfABoard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(golden, "manifest.json"))
	require.NoError(t, err)
	topo := generated(t, "leaf-spine:leaves=1,spines=1,hosts=3,capacity=64")
	p := planned(t, topo, "nearest")                                              // with 128 Gb/s into the switch
	for clock, refused := range map[int]bool{1000: false, 999: true, 125: true} { // times two Ethernet ports of 64 bits
		dir := t.TempDir()
		with := strings.Replace(string(text), `"prefix"`, fmt.Sprintf(`"clock_mhz": %d, "prefix"`, clock), 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(with), 0o600))
		_, err := run.Lay(topo, p, nil, run.Options{Lanes: 2, RoundTrip: time.Nanosecond, Cards: map[plan.ID]string{id("leaf-0"): dir}})
		if refused {
			assert.ErrorContains(t, err, `node "leaf-0" takes 128.00 Gb/s in this plan`)
		} else {
			assert.NoError(t, err)
		}
	}
}

// TestSupply: manifests lower ports and rates, and give those that the topology lacks.
func TestSupply(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(golden, "manifest.json"))
	require.NoError(t, err)
	board := t.TempDir() // of 12.8 Gb/s
	require.NoError(t, os.WriteFile(filepath.Join(board, "manifest.json"), []byte(strings.Replace(string(text), `"prefix"`, `"clock_mhz": 100, "prefix"`, 1)), 0o600))
	topo, err := topology.Parse("topo.json", []byte(`{"nodes":[{"id":"more","ports":8,"rate":100},{"id":"less","ports":1,"rate":1},{"id":"none"},{"id":"other","ports":8},
{"id":"PS","kind":"server"},{"id":"W","kind":"worker"}],"edges":[{"source":"W","target":"more","capacity":1},{"source":"more","target":"PS","capacity":1}]}`), topology.Defaults{})
	require.NoError(t, err)
	require.NoError(t, run.Supply(topo, map[plan.ID]string{id("more"): board, id("less"): board, id("none"): golden, id("PS"): board}))
	var got []string
	for _, n := range topo.Nodes {
		got = append(got, fmt.Sprint(n.ID.Text, " ", n.Ports, " ", n.Rate))
	}
	assert.Equal(t, []string{"more 2 64/5", "less 1 1/1", "none 2 <nil>", "other 8 <nil>", "PS 0 64/5", "W 0 <nil>"}, got)
	var input *run.InputError
	assert.ErrorAs(t, run.Supply(topo, map[plan.ID]string{id("W"): golden}), &input)
	assert.ErrorAs(t, run.Supply(topo, map[plan.ID]string{id("more"): "nowhere"}), &input)
}

// TestCardsByName: a generated card's like and a card with options sum in one tree. One without an up port is
// refused, and one that is too small.
func TestCardsByName(t *testing.T) {
	topo := generated(t, "leaf-spine:leaves=2,spines=1,hosts=3,ports=8,over=2")
	x := &instance{topo, planned(t, topo, "nearest"), run.Ranks(topo)}
	o := run.Options{Lanes: 2, RoundTrip: time.Nanosecond, Timeout: patience, Cards: map[plan.ID]string{id("leaf-0"): golden, id("leaf-1"): "model:parent=true,lanes=4,workers=5,chunk=16,window=4"}}
	s, err := run.New(testContext(t), topo, x.plan, o)
	require.NoError(t, err)
	assert.Equal(t, 2, s.Cards()[id("leaf-0")].Info().Ports)
	assert.Equal(t, 5, s.Cards()[id("leaf-1")].Info().Ports)
	x.sumUp(t, s, 1, wire.FP32, wire.SumTree, 100, nil)
	require.NoError(t, s.Close(testContext(t)))
	for card, want := range map[string]string{
		"cpu:workers=3,chunk=8,lanes=2,jobs=2":                   "has no up port",
		"cpu:parent=true,workers=2,chunk=8,lanes=2,jobs=2":       `node "leaf-1" needs 3 ports and 1 jobs`,
		"cpu:parent=true,workers=3,chunk=8,lanes=2,format=int32": "sums int32",
	} {
		o.Cards[id("leaf-1")] = card
		_, err := run.New(testContext(t), topo, x.plan, o)
		assert.ErrorContains(t, err, want)
	}
}
