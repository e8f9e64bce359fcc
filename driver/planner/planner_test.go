package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner/check"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
)

// solver returns HiGHS, which `make setup` installs.
func solver(t *testing.T) *highs.Solver {
	t.Helper()
	s, err := highs.Find(t.Context(), "")
	require.NoError(t, err)
	return s
}

// make plans, and checks the plan.
func makePlan(t *testing.T, topo *topology.Topology, o Options) *plan.Plan {
	t.Helper()
	p, err := Make(t.Context(), topo, o)
	require.NoError(t, err)
	require.Empty(t, check.Plan(topo, p), "%s of %s", o.Planner, topo.Name)
	return p
}

func authors(t *testing.T) *topology.Topology {
	t.Helper()
	topo, err := topology.Open("testdata/authors.json", topology.Defaults{Summing: -1})
	require.NoError(t, err)
	return topo
}

// TestAuthors: the example of GRID's authors. Without aggregation its rate is 1, as they print. They
// print 2.43 for the nearest switch and the rest straight to the server: it is 39/16 for several trees,
// and 9/4 for one. The optimum of one tree is 3; of any number of trees 69/22.
func TestAuthors(t *testing.T) {
	topo := authors(t)
	with := solver(t)
	for _, test := range []struct {
		planner     string
		trees       int
		solver      bool
		rate, bound string
	}{
		{"none", 1, false, "1", ""},
		{"nearest", 1, false, "9/4", ""},
		{"nearest", 2, false, "39/16", ""},
		{"nearest", 9, false, "39/16", ""},
		{"atp", 1, false, "9/4", ""},
		{"atp", 2, false, "39/16", ""},
		{"grid", 1, false, "3", ""},
		{"grid", 1, true, "3", "3"},
		{"exact", 1, true, "3", "3"},
		{"grid", 4, false, "69/22", ""},
		{"grid", 4, true, "69/22", "69/22"},
		{"exact", 4, true, "69/22", "69/22"},
		{"inart", 1, true, "3", "69/22"},
	} {
		o := Options{Planner: test.planner, Trees: test.trees}
		if test.solver {
			o.Solver = with
		}
		p := makePlan(t, topo, o)
		assert.Equal(t, test.rate, p.Rate.RatString(), "%+v", test)
		bound := ""
		if p.Bound != nil {
			bound = p.Bound.RatString()
		}
		assert.Equal(t, test.bound, bound, "%+v", test)
		assert.LessOrEqual(t, len(p.Trees), test.trees)
	}
}

// instances are seeded random networks, few in the tests; `make bench` takes more.
func instances(t *testing.T, count, servers int, each func(topo *topology.Topology)) {
	t.Helper()
	for seed := range count {
		topo, err := topology.Generate(fmt.Sprintf("random:seed=%d,servers=%d", seed, servers))
		require.NoError(t, err)
		each(topo)
	}
}

// TestAgainstExact: of small random networks, grid reaches nearly the optimum of one tree, no plan
// exceeds its bound or the optimum, and most are not easy: the nearest switch stays below 0.9 of the
// optimum.
func TestAgainstExact(t *testing.T) {
	with := solver(t)
	hard, count := 0, 12
	instances(t, count, 1, func(topo *topology.Topology) {
		exact := makePlan(t, topo, Options{Planner: "exact", Solver: with})
		require.Zero(t, exact.Bound.Cmp(exact.Rate.Rat), "%s: not proved", topo.Name)
		ratio := func(o Options) float64 {
			p := makePlan(t, topo, o)
			r, _ := new(big.Rat).Quo(p.Rate.Rat, exact.Rate.Rat).Float64()
			return r
		}
		for _, o := range []Options{{Planner: "grid", Solver: with}, {Planner: "grid"}} {
			grid := ratio(o)
			assert.GreaterOrEqual(t, grid, 0.95, topo.Name)
			assert.LessOrEqual(t, grid, 1.0, topo.Name)
		}
		assert.LessOrEqual(t, ratio(Options{Planner: "none"}), 1.0)
		if nearest := ratio(Options{Planner: "nearest"}); nearest < 0.9 {
			hard++
		} else {
			assert.LessOrEqual(t, nearest, 1.0)
		}
		several := makePlan(t, topo, Options{Planner: "grid", Trees: 4, Solver: with})
		assert.GreaterOrEqual(t, several.Rate.Cmp(exact.Rate.Rat), 0, topo.Name)
		assert.LessOrEqual(t, several.Rate.Cmp(several.Bound.Rat), 0, topo.Name)
	})
	assert.GreaterOrEqual(t, 2*hard, count)
}

// TestServers: with several servers, no plan exceeds the optimum, more trees are no slower, and the
// bound holds.
func TestServers(t *testing.T) {
	with := solver(t)
	instances(t, 6, 3, func(topo *topology.Topology) {
		exact := makePlan(t, topo, Options{Planner: "exact", Trees: 64, Solver: with})
		require.Zero(t, exact.Bound.Cmp(exact.Rate.Rat), "%s: not proved", topo.Name)
		before := new(big.Rat)
		for _, o := range []Options{{Planner: "inart", Solver: with}, {Planner: "inart", Trees: 4, Solver: with}} {
			p := makePlan(t, topo, o)
			assert.GreaterOrEqual(t, p.Rate.Cmp(before), 0, topo.Name)
			assert.LessOrEqual(t, p.Rate.Cmp(exact.Rate.Rat), 0, topo.Name)
			assert.GreaterOrEqual(t, p.Bound.Cmp(exact.Rate.Rat), 0, topo.Name)
			before = p.Rate.Rat
		}
		for _, name := range []string{"none", "nearest", "atp"} {
			makePlan(t, topo, Options{Planner: name})
		}
	})
}

// TestReplan keeps the split over the servers when capacities change.
func TestReplan(t *testing.T) {
	instances(t, 4, 2, func(topo *topology.Topology) {
		old := makePlan(t, topo, Options{Planner: "inart"})
		again := makePlan(t, topo, Options{Planner: "inart", Replan: old})
		for i := range topo.Links[:2] {
			for way := range 2 {
				topo.Links[i].Capacity[way] = new(big.Rat).Mul(topo.Links[i].Capacity[way], big.NewRat(1, 2))
			}
		}
		less := makePlan(t, topo, Options{Planner: "inart", Replan: old})
		for _, p := range []*plan.Plan{again, less} {
			require.Len(t, p.Trees, len(old.Trees))
			for i, tree := range p.Trees {
				assert.Equal(t, old.Trees[i].Server, tree.Server)
				assert.Zero(t, new(big.Rat).Quo(tree.Rate.Rat, p.Rate.Rat).Cmp(new(big.Rat).Quo(old.Trees[i].Rate.Rat, old.Rate.Rat)))
			}
		}
	})
}

// TestMoreCapacity: more capacity never lowers the optimum.
func TestMoreCapacity(t *testing.T) {
	with := solver(t)
	instances(t, 5, 1, func(topo *topology.Topology) {
		before := makePlan(t, topo, Options{Planner: "exact", Solver: with}).Rate
		for i := range topo.Links {
			if i%3 == 0 {
				topo.Links[i].Capacity[0] = new(big.Rat).Mul(topo.Links[i].Capacity[0], big.NewRat(3, 2))
			}
		}
		assert.GreaterOrEqual(t, makePlan(t, topo, Options{Planner: "exact", Solver: with}).Rate.Cmp(before.Rat), 0, topo.Name)
	})
}

// TestSame: the same topology and seed give the same bytes, and other names of its nodes change names
// alone.
func TestSame(t *testing.T) {
	with := solver(t)
	instances(t, 3, 1, func(topo *topology.Topology) {
		for _, name := range []string{"grid", "inart", "nearest", "atp", "none"} {
			o := Options{Planner: name, Trees: 3, Solver: with}
			text := format(t, makePlan(t, topo, o))
			require.Equal(t, text, format(t, makePlan(t, topo, o)))
			renamed := *topo
			renamed.Nodes = append([]topology.Node(nil), topo.Nodes...)
			for i := range renamed.Nodes {
				renamed.Nodes[i].ID.Text = strings.ToUpper(renamed.Nodes[i].ID.Text)
			}
			other := format(t, makePlan(t, &renamed, o))
			for i := range topo.Nodes {
				other = strings.ReplaceAll(other, fmt.Sprintf("%q", renamed.Nodes[i].ID.Text), fmt.Sprintf("%q", topo.Nodes[i].ID.Text))
			}
			require.Equal(t, text, other)
		}
	})
}

func format(t *testing.T, p *plan.Plan) string {
	t.Helper()
	data, err := p.Format()
	require.NoError(t, err)
	return string(data)
}

// TestFile: a plan survives its file, and files that are no plans are refused.
func TestFile(t *testing.T) {
	p := makePlan(t, authors(t), Options{Planner: "grid", Trees: 4})
	text := format(t, p)
	again, err := plan.Parse("p", []byte(text))
	require.NoError(t, err)
	assert.Equal(t, text, format(t, again))
	for says, bad := range map[string]string{
		"p: line 1, column 1: it is no plan: it ends too early":                                      "",
		`p: it is no plan: it has no "version"`:                                                      "{}",
		"p: it is a plan of version 2; this program reads version 1":                                 strings.Replace(text, `"version": 1`, `"version": 2`, 1),
		`p: it is no plan: unknown field "speed"`:                                                    strings.Replace(text, `"rate"`, `"speed"`, 1),
		`p: line 531, column 1: it is no plan: more text follows`:                                    text + "x",
		`p: it is no plan: "1/0" is neither a number nor a fraction such as "69/22"`:                 strings.Replace(text, `"69/22"`, `"1/0"`, 1),
		`p: it is no plan: "1e9999999" is neither a number nor a fraction such as "69/22"`:           strings.Replace(text, `"69/22"`, `"1e9999999"`, 1),
		`p: line 4, column 11: it is no plan: "seed" has a value of a wrong kind or size: number -1`: strings.Replace(text, `"seed": 0`, `"seed": -1`, 1),
		`p: line 3, column 10: it is no plan: "version" occurs twice in one object`:                  strings.Replace(text, `"planner"`, `"version": 1, "planner"`, 1),
		`p: it is no plan: an id is null; it must be a string or a number`:                           strings.Replace(text, `"server": "PS"`, `"server": null`, 1),
		"p: it has no trees":                           `{"version": 1, "rate": 1}`,
		`p: "rate" is missing`:                         `{"version": 1}`,
		`p: "rate" or "server" of trees[0] is missing`: `{"version": 1, "rate": 1, "trees": [{}]}`,
	} {
		_, err := plan.Parse("p", []byte(bad))
		assert.EqualError(t, err, says)
	}
}

// TestCheck: every change of a plan that makes it wrong is found.
func TestCheck(t *testing.T) {
	topo := authors(t)
	good := format(t, makePlan(t, topo, Options{Planner: "grid"}))
	id := func(s string) plan.ID { return plan.ID{Text: s} }
	rat := func(n, d int64) plan.Quantity { return plan.Quantity{Rat: big.NewRat(n, d)} }
	for says, change := range map[string]func(p *plan.Plan){
		`the rates of its trees add up to 3, not to its rate of 4`:                                  func(p *plan.Plan) { p.Rate = rat(4, 1) },
		`tree 0 has the rate 0; it must be more than 0`:                                             func(p *plan.Plan) { p.Trees[0].Rate, p.Rate = rat(0, 1), rat(0, 1) },
		`tree 0 leads to "S1", which is no server of the topology`:                                  func(p *plan.Plan) { p.Trees[0].Server = id("S1") },
		`tree 0 lacks worker "W8"`:                                                                  func(p *plan.Plan) { p.Trees[0].Members = p.Trees[0].Members[:7] },
		`tree 0 has worker "W1" twice`:                                                              func(p *plan.Plan) { p.Trees[0].Members[1] = p.Trees[0].Members[0] },
		`tree 0: "S1" is no worker of the topology`:                                                 func(p *plan.Plan) { p.Trees[0].Members[0].Worker = id("S1") },
		`tree 0: "PS" sums, and is no switch of the topology`:                                       func(p *plan.Plan) { p.Trees[0].Sums[0].Switch = id("PS") },
		`tree 0: switch "S1" has two sums`:                                                          func(p *plan.Plan) { p.Trees[0].Sums[1] = p.Trees[0].Sums[0] },
		`tree 0, switch S1: its path does not lead from it to "S2"`:                                 func(p *plan.Plan) { p.Trees[0].Sums[0].To = id("S2") },
		`tree 0: the sum of switch "S1" goes round in a circle`:                                     func(p *plan.Plan) { p.Trees[0].Sums[0].To, p.Trees[0].Sums[0].Path = id("S1"), []plan.ID{id("S1")} },
		`tree 0, worker W1 goes to "W2", which is neither the tree's server nor a switch that sums`: func(p *plan.Plan) { p.Trees[0].Members[0].To = id("W2") },
		`tree 0, worker W1: no link leads from "W1" to "S3"`: func(p *plan.Plan) {
			m := &p.Trees[0].Members[0]
			m.Path[1] = id("S3")
			m.To = id("S3")
			m.Path = m.Path[:2]
		},
		`tree 0, worker W1: its path does not lead from it to "S1"`:          func(p *plan.Plan) { m := &p.Trees[0].Members[0]; m.To = id("S1"); m.Path = m.Path[:1] },
		`the link from "S1" to "S3" has the load 10/3 and the capacity 3`:    func(p *plan.Plan) { p.Trees[0].Rate, p.Rate = rat(10, 3), rat(10, 3) },
		`it lists the load 1 of the link from "S1" to "S2", which has 3`:     func(p *plan.Plan) { p.Loads.Links[link(p, "S1", "S2")].Load = rat(1, 1) },
		`it lists the capacity 4 of the link from "S1" to "S2", which has 3`: func(p *plan.Plan) { p.Loads.Links[link(p, "S1", "S2")].Capacity = rat(4, 1) },
		`it lists no load of the link from "S1" to "S2"`: func(p *plan.Plan) {
			i := link(p, "S1", "S2")
			p.Loads.Links = append(p.Loads.Links[:i], p.Loads.Links[i+1:]...)
		},
		`it lists a link from "S1" to "W1" that the topology does not have, or lists it twice`: func(p *plan.Plan) {
			p.Loads.Links = append(p.Loads.Links, plan.LinkLoad{From: id("S1"), To: id("W9"), Load: rat(1, 1), Capacity: rat(1, 1)})
		},
		`tree 0, worker W1: its path passes "S1" twice`: func(p *plan.Plan) {
			m := &p.Trees[0].Members[0]
			m.Path = append([]plan.ID{id("W1"), id("S1"), id("S2")}, m.Path[1:]...)
		},
		`its rate of 3 exceeds its bound of 2`:                             func(p *plan.Plan) { q, gap := rat(2, 1), 0.0; p.Bound, p.Gap = &q, &gap },
		`it has the gap 0.25, and its rate lacks 0.5 of its bound`:         func(p *plan.Plan) { q, gap := rat(6, 1), 0.25; p.Bound, p.Gap = &q, &gap },
		`it has one of bound and gap without the other`:                    func(p *plan.Plan) { q := rat(6, 1); p.Bound = &q },
		`it lists no load of "S1"`:                                         func(p *plan.Plan) { p.Loads.Switches = p.Loads.Switches[1:] },
		`it lists another capacity of worker "W1" than the topology`:       func(p *plan.Plan) { q := rat(1, 1); p.Loads.Workers[0].Capacity = &q },
		`it lists 2 members and 8 ports of switch "S1", which has 3 and 8`: func(p *plan.Plan) { p.Loads.Switches[0].Members = 2 },
	} {
		p, err := plan.Parse("p", []byte(good))
		require.NoError(t, err)
		require.Empty(t, check.Plan(topo, p))
		change(p)
		says = strings.Replace(says, `to "W1" that`, `to "W9" that`, 1)
		assert.Contains(t, check.Plan(topo, p), says)
	}
	p, err := plan.Parse("p", []byte(good))
	require.NoError(t, err)
	topo.Nodes[0].Ports = 2
	assert.Contains(t, check.Plan(topo, p), `switch "S1" sums 3 streams of a tree and has 2 ports`)
	topo.Nodes[0].Ports, topo.Nodes[0].Rate = 8, big.NewRat(8, 1)
	assert.Contains(t, check.Plan(topo, p), `switch "S1" has the load 9 and the rate 8`)
}

// link returns the place of a link's load in a plan.
func link(p *plan.Plan, from, to string) int {
	for i, l := range p.Loads.Links {
		if l.From.Text == from && l.To.Text == to {
			return i
		}
	}
	return -1
}

// TestInput: options that do not go with a topology are refused.
func TestInput(t *testing.T) {
	one := authors(t)
	three, err := topology.Generate("random:servers=3")
	require.NoError(t, err)
	for says, test := range map[string]struct {
		topo *topology.Topology
		o    Options
	}{
		`no planner is named "greedy"; there are grid, inart, exact, none, nearest, atp`:                  {one, Options{Planner: "greedy"}},
		`planner grid plans for one server, and the topology has 3; use planner inart`:                    {three, Options{Planner: "grid"}},
		`planner exact needs a solver: it is gone`:                                                        {one, Options{Planner: "exact", Missing: fmt.Errorf("it is gone")}},
		`tree 0 of the plan has the rate 0; it must be more than 0`:                                       {one, Options{Planner: "inart", Replan: &plan.Plan{Trees: []plan.Tree{{Rate: plan.Quantity{Rat: new(big.Rat)}}}}}},
		`only planner inart replans`:                                                                      {one, Options{Planner: "grid", Replan: &plan.Plan{}}},
		`the plan has a tree to "Q", which is no server of the topology; make a new plan without -replan`: {one, Options{Planner: "inart", Replan: &plan.Plan{Trees: []plan.Tree{{Server: plan.ID{Text: "Q"}, Rate: plan.Quantity{Rat: big.NewRat(1, 1)}}}}}},
	} {
		_, err := Make(context.Background(), test.topo, test.o)
		assert.EqualError(t, err, says)
	}
}

// apart are two servers, one of which only the first worker reaches.
const apart = `{"nodes": [{"id": "S", "ports": 4}, {"id": "P", "kind": "server"}, {"id": "Q", "kind": "server"}, {"id": "W", "kind": "worker"}, {"id": "V", "kind": "worker"}],
"links": [{"source": "S", "target": "P", "capacity": 3}, {"source": "W", "target": "S", "capacity": 9}, {"source": "V", "target": "S", "capacity": 9}, {"source": "W", "target": "Q", "capacity": 5}]}`

// TestAServerThatSomeWorkersReach gets no tree, which a note says.
func TestAServerThatSomeWorkersReach(t *testing.T) {
	topo, err := topology.Parse("x", []byte(apart), topology.Defaults{Summing: -1})
	require.NoError(t, err)
	for _, name := range Names {
		p := makePlan(t, topo, Options{Planner: name, Trees: 2, Solver: solver(t)})
		assert.Contains(t, p.Notes, `server "Q" gets no tree: worker "V" does not reach it`, name)
		for _, tree := range p.Trees {
			assert.Equal(t, "P", tree.Server.Text)
		}
	}
	old := &plan.Plan{Trees: []plan.Tree{{Server: plan.ID{Text: "Q"}, Rate: plan.Quantity{Rat: big.NewRat(1, 1)}}}}
	_, err = Make(t.Context(), topo, Options{Planner: "inart", Replan: old})
	assert.EqualError(t, err, `the plan has a tree to "Q", which not all workers reach; make a new plan without -replan`)
}

// TestTwoLinksOfAWorker: the larger one leads to another server only. No rate was low enough, and there was no
// tree. The optimum is the smaller link's capacity.
func TestTwoLinksOfAWorker(t *testing.T) {
	topo, err := topology.Parse("x", []byte(`{"nodes": [{"id": "S", "ports": 4}, {"id": "P", "kind": "server"}, {"id": "Q"}, {"id": "W", "kind": "worker"}, {"id": "V", "kind": "worker"}],
"links": [{"source": "S", "target": "P", "capacity": 9}, {"source": "W", "target": "S", "capacity": 0.7}, {"source": "V", "target": "S", "capacity": 9}, {"source": "W", "target": "Q", "capacity": 50}]}`), topology.Defaults{Summing: -1})
	require.NoError(t, err)
	for _, name := range Names {
		p := makePlan(t, topo, Options{Planner: name, Solver: solver(t)})
		assert.Equal(t, "7/10", p.Rate.RatString(), name)
	}
}

// TestOneWay: in directed networks, a switch that sums may not reach the switch that is nearest to the server.
// atp looked for a path without end.
func TestOneWay(t *testing.T) {
	topo, err := topology.Parse("x", []byte(`{"directed": true, "nodes": [{"id": "A", "ports": 4}, {"id": "B", "ports": 4}, {"id": "C"}, {"id": "P", "kind": "server"}, {"id": "W", "kind": "worker"}, {"id": "V", "kind": "worker"}],
"links": [{"source": "A", "target": "P", "capacity": 9}, {"source": "B", "target": "C", "capacity": 9}, {"source": "C", "target": "P", "capacity": 9}, {"source": "W", "target": "B", "capacity": 9}, {"source": "V", "target": "B", "capacity": 9}]}`), topology.Defaults{Summing: -1})
	require.NoError(t, err)
	for _, name := range Names {
		p := makePlan(t, topo, Options{Planner: name, Solver: solver(t)})
		if name != "none" {
			assert.Equal(t, "9", p.Rate.RatString(), name)
		}
	}
}

// TestEveryShape plans for networks of any shape that can be planned for: with one-way links, hosts with several
// links, links between hosts, and servers that not all workers reach.
func TestEveryShape(t *testing.T) {
	planned := 0
	for seed := range uint64(600) {
		topo := shape(rand.New(rand.NewPCG(seed, 0)), fmt.Sprint("shape ", seed))
		if topo.Check() != nil {
			continue
		}
		planned++
		for _, trees := range []int{1, 3} {
			none := makePlan(t, topo, Options{Planner: "none", Trees: trees})
			inart := makePlan(t, topo, Options{Planner: "inart", Trees: trees})
			assert.GreaterOrEqual(t, inart.Rate.Cmp(none.Rate.Rat), 0, "shape %d: inart has %s, none %s", seed, inart.Rate.RatString(), none.Rate.RatString())
			makePlan(t, topo, Options{Planner: "nearest", Trees: trees})
			makePlan(t, topo, Options{Planner: "atp", Trees: trees})
		}
	}
	assert.Greater(t, planned, 60)
}

// shape draws a small network.
func shape(r *rand.Rand, name string) *topology.Topology {
	topo := &topology.Topology{Name: name}
	for kind, most := range []int{topology.Switch: 6, topology.Worker: 5, topology.Server: 3} {
		for i := range r.IntN(most + 1) {
			n := topology.Node{ID: topology.ID{Text: fmt.Sprint(topology.Kind(kind), i)}, Kind: topology.Kind(kind)}
			if kind == int(topology.Switch) {
				n.Ports = r.IntN(4)
			}
			if r.IntN(3) == 0 {
				n.Rate = big.NewRat(1+r.Int64N(20), 1+r.Int64N(3))
			}
			topo.Nodes = append(topo.Nodes, n)
		}
	}
	linked := map[[2]int]bool{}
	for range r.IntN(3*len(topo.Nodes) + 1) {
		a, b := r.IntN(len(topo.Nodes)), r.IntN(len(topo.Nodes))
		if a, b = min(a, b), max(a, b); a == b || linked[[2]int{a, b}] {
			continue
		}
		linked[[2]int{a, b}] = true
		l := topology.Link{Ends: [2]int{a, b}, Capacity: [2]*big.Rat{big.NewRat(1+r.Int64N(20), 2), big.NewRat(1+r.Int64N(20), 2)}}
		if r.IntN(3) == 0 {
			l.Capacity[r.IntN(2)] = new(big.Rat)
		}
		topo.Links = append(topo.Links, l)
	}
	return topo
}

// TestEnds: a search that is under way ends when its context does, wherever it is.
func TestEnds(t *testing.T) {
	topo, err := topology.Generate("random:seed=3,servers=2")
	require.NoError(t, err)
	with := solver(t)
	for _, o := range []Options{{Planner: "inart", Trees: 2}, {Planner: "exact", Trees: 2, Solver: with}, {Planner: "nearest", Trees: 2}} {
		calls := &ends{Context: t.Context(), after: 1 << 30}
		_, err := Make(calls, topo, o)
		require.NoError(t, err)
		for after := 0; after < calls.calls; after += 1 + calls.calls/7 {
			_, err := Make(&ends{Context: t.Context(), after: after}, topo, o)
			require.ErrorIs(t, err, context.Canceled, "%s, after %d of %d", o.Planner, after, calls.calls)
		}
	}
}

// ends is a context that ends after a number of questions whether it has.
type ends struct {
	context.Context
	calls, after int
}

func (e *ends) Err() error {
	if e.calls++; e.calls > e.after {
		return context.Canceled
	}
	return nil
}

// TestNumberIDs: ids that are numbers stay numbers.
func TestNumberIDs(t *testing.T) {
	topo, err := topology.Parse("x", []byte(`{"nodes": [{"id": 0, "ports": 4}, {"id": "0", "kind": "server"}, {"id": 2, "kind": "worker"}],
"links": [{"source": 0, "target": "0", "capacity": 100}, {"source": 2, "target": 0, "capacity": 10}]}`), topology.Defaults{Summing: -1})
	require.NoError(t, err)
	var file struct {
		Trees []struct {
			Server  json.RawMessage
			Members []struct{ Worker json.RawMessage }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(format(t, makePlan(t, topo, Options{Planner: "grid"}))), &file))
	assert.Equal(t, `"0"`, string(file.Trees[0].Server))
	assert.Equal(t, `2`, string(file.Trees[0].Members[0].Worker))
}
