package check

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
)

func id(s string) plan.ID { return plan.ID{Text: s} }

func ids(s string) (all []plan.ID) {
	for _, name := range strings.Fields(s) {
		all = append(all, id(name))
	}
	return all
}

func rat(n, d int64) plan.Quantity { return plan.Quantity{Rat: big.NewRat(n, d)} }

func limit(n, d int64) *plan.Quantity { q := rat(n, d); return &q }

// network has switches A and B that sum, C that only forwards, servers S and T, and workers V and W.
// No link leads from S to B.
func network() *topology.Topology {
	t := &topology.Topology{}
	at := map[string]int{}
	for _, n := range []struct {
		name        string
		kind        topology.Kind
		rate, ports int
	}{{"A", topology.Switch, 10, 3}, {"B", topology.Switch, 0, 2}, {"C", topology.Switch, 0, 0}, {"S", topology.Server, 8, 0}, {"T", topology.Server, 0, 0}, {"V", topology.Worker, 4, 0}, {"W", topology.Worker, 0, 0}} {
		node := topology.Node{ID: topology.ID{Text: n.name}, Kind: n.kind, Ports: n.ports}
		if n.rate > 0 {
			node.Rate = big.NewRat(int64(n.rate), 1)
		}
		at[n.name] = len(t.Nodes)
		t.Nodes = append(t.Nodes, node)
	}
	for _, l := range []struct {
		from, to    string
		there, back int64
	}{{"V", "A", 5, 5}, {"W", "A", 5, 5}, {"A", "B", 4, 4}, {"B", "S", 3, 0}, {"A", "C", 6, 6}, {"C", "S", 6, 6}, {"C", "T", 2, 2}, {"B", "W", 1, 2}} {
		t.Links = append(t.Links, topology.Link{Ends: [2]int{at[l.from], at[l.to]}, Capacity: [2]*big.Rat{big.NewRat(l.there, 1), big.NewRat(l.back, 1)}})
	}
	return t
}

// good is a plan for it, with loads added up by hand. In tree 0 the sum of A goes to B.
func good() *plan.Plan {
	member := func(path string) plan.Member {
		p := ids(path)
		return plan.Member{Worker: p[0], To: p[len(p)-1], Path: p}
	}
	sum := func(path string) plan.Sum {
		p := ids(path)
		return plan.Sum{Switch: p[0], To: p[len(p)-1], Path: p}
	}
	link := func(from, to string, load plan.Quantity, capacity int64) plan.LinkLoad {
		return plan.LinkLoad{From: id(from), To: id(to), Load: load, Capacity: rat(capacity, 1)}
	}
	return &plan.Plan{
		Rate: rat(7, 2),
		Trees: []plan.Tree{
			{Server: id("S"), Rate: rat(2, 1), Members: []plan.Member{member("V A"), member("W B")}, Sums: []plan.Sum{sum("A B"), sum("B S")}},
			{Server: id("T"), Rate: rat(1, 1), Members: []plan.Member{member("V A"), member("W A")}, Sums: []plan.Sum{sum("A C T")}},
			{Server: id("S"), Rate: rat(1, 2), Members: []plan.Member{member("V A C S"), member("W A C S")}},
		},
		Loads: plan.Loads{
			Links: []plan.LinkLoad{link("V", "A", rat(7, 2), 5), link("W", "A", rat(3, 2), 5), link("W", "B", rat(2, 1), 2), link("A", "B", rat(2, 1), 4),
				link("B", "S", rat(2, 1), 3), link("A", "C", rat(2, 1), 6), link("C", "S", rat(1, 1), 6), link("C", "T", rat(1, 1), 2)},
			Switches: []plan.NodeLoad{{Node: id("A"), Load: rat(4, 1), Capacity: limit(10, 1), Members: 2, Ports: 3}, {Node: id("B"), Load: rat(4, 1), Members: 2, Ports: 2}},
			Servers:  []plan.NodeLoad{{Node: id("S"), Load: rat(3, 1), Capacity: limit(8, 1)}, {Node: id("T"), Load: rat(1, 1)}},
			Workers:  []plan.NodeLoad{{Node: id("V"), Load: rat(7, 2), Capacity: limit(4, 1)}, {Node: id("W"), Load: rat(7, 2)}},
		},
	}
}

// TestPlan changes the plan, or what it is for, and expects exactly what is wrong then.
func TestPlan(t *testing.T) {
	type change func(t *topology.Topology, p *plan.Plan)
	tree := func(number int, f func(t *plan.Tree)) change {
		return func(_ *topology.Topology, p *plan.Plan) { f(&p.Trees[number]) }
	}
	lists := func(f func(l *plan.Loads)) change { return func(_ *topology.Topology, p *plan.Plan) { f(&p.Loads) } }
	unknown := func(kind, name string) string {
		return "it lists a " + kind + ` "` + name + `" that the topology does not have, or lists it twice`
	}
	link := func(from, to string) string {
		return `it lists a link from "` + from + `" to "` + to + `" that the topology does not have, or lists it twice`
	}
	goes := func(path string) change {
		return tree(2, func(t *plan.Tree) { t.Members[0].Path = ids(path) })
	}
	for _, test := range []struct {
		name   string
		change change
		says   []string
	}{
		{"good", func(*topology.Topology, *plan.Plan) {}, nil},
		{"sum of the rates", func(_ *topology.Topology, p *plan.Plan) { p.Rate = rat(4, 1) }, []string{"the rates of its trees add up to 7/2, not to its rate of 4"}},
		{"negative", func(_ *topology.Topology, p *plan.Plan) { p.Trees[2].Rate, p.Rate = rat(-1, 2), rat(5, 2) }, []string{"tree 2 has the rate -1/2; it must be more than 0"}},
		{"unknown server", tree(1, func(t *plan.Tree) { t.Server = id("X") }), []string{`tree 1 leads to "X", which is no server of the topology`}},
		{"worker as server", tree(1, func(t *plan.Tree) { t.Server = id("V") }), []string{`tree 1 leads to "V", which is no server of the topology`}},
		{"unknown sum", tree(1, func(t *plan.Tree) { t.Sums[0].Switch = id("X") }), []string{`tree 1: "X" sums, and is no switch of the topology`}},
		{"worker sums", tree(1, func(t *plan.Tree) { t.Sums[0].Switch = id("V") }), []string{`tree 1: "V" sums, and is no switch of the topology`}},
		{"two sums", tree(1, func(t *plan.Tree) { t.Sums = append(t.Sums, t.Sums[0]) }), []string{`tree 1: switch "A" has two sums`}},
		{"unknown worker", tree(1, func(t *plan.Tree) { t.Members[0].Worker = id("X") }), []string{`tree 1: "X" is no worker of the topology`, `tree 1 lacks worker "V"`}},
		{"switch as worker", tree(2, func(t *plan.Tree) { t.Members[0].Worker, t.Members[0].Path = id("A"), ids("A C S") }), []string{`tree 2: "A" is no worker of the topology`, `tree 2 lacks worker "V"`}},
		{"twice", tree(1, func(t *plan.Tree) { t.Members = append(t.Members, t.Members[1]) }), []string{`tree 1 has worker "W" twice`}},
		{"lacks", tree(1, func(t *plan.Tree) { t.Members = t.Members[1:] }), []string{`tree 1 lacks worker "V"`}},
		{"sums nothing", tree(2, func(t *plan.Tree) { t.Sums = []plan.Sum{{Switch: id("B"), To: id("S"), Path: ids("B S")}} }), []string{`tree 2: switch "B" sums nothing`}},
		{"circle", tree(0, func(t *plan.Tree) { t.Sums[1].To, t.Sums[1].Path = id("A"), ids("B A") }), []string{`tree 0: the sum of switch "A" goes round in a circle`, `tree 0: the sum of switch "B" goes round in a circle`}},
		{"to a switch that does not sum", tree(2, func(t *plan.Tree) { t.Members[0].To, t.Members[0].Path = id("A"), ids("V A") }), []string{`tree 2, worker V goes to "A", which is neither the tree's server nor a switch that sums`}},
		{"to another server", tree(2, func(t *plan.Tree) { t.Members[0].To, t.Members[0].Path = id("T"), ids("V A C T") }), []string{`tree 2, worker V goes to "T", which is neither the tree's server nor a switch that sums`}},
		{"to an unknown node, beside a sum of the first", tree(1, func(t *plan.Tree) { t.Members[0].To = id("X") }), []string{`tree 1, worker V goes to "X", which is neither the tree's server nor a switch that sums`}},
		{"sum to an unknown node", tree(1, func(t *plan.Tree) { t.Sums[0].To = id("X") }), []string{`tree 1, switch A goes to "X", which is neither the tree's server nor a switch that sums`, `tree 1: the sum of switch "A" goes round in a circle`}},
		{"no path", goes(""), []string{`tree 2, worker V: its path does not lead from it to "S"`}},
		{"path from elsewhere", goes("W A C S"), []string{`tree 2, worker V: its path does not lead from it to "S"`}},
		{"path to elsewhere", goes("V A C"), []string{`tree 2, worker V: its path does not lead from it to "S"`}},
		{"path by an unknown node", goes("V X C S"), []string{`tree 2, worker V: no link leads from "V" to "X"`}},
		{"path without a link", goes("V C S"), []string{`tree 2, worker V: no link leads from "V" to "C"`}},
		{"path by a node twice", goes("V A B A C S"), []string{`tree 2, worker V: its path passes "A" twice`}},
		{"path against one way", tree(2, func(t *plan.Tree) {
			t.Members[0] = plan.Member{Worker: id("V"), To: id("B"), Path: ids("V A C S B")}
			t.Sums = []plan.Sum{{Switch: id("B"), To: id("S"), Path: ids("B S")}}
		}), []string{`tree 2, worker V: "S" forwards nothing`, `tree 2, worker V: no link leads from "S" to "B"`, `tree 2: switch "B" sums nothing`}},
		{"path by a worker", goes("V A W B S"), []string{`tree 2, worker V: "W" forwards nothing`}},
		{"a link is too slow", func(t *topology.Topology, p *plan.Plan) {
			t.Links[4].Capacity[0], p.Loads.Links[5].Capacity = big.NewRat(199, 100), rat(199, 100)
		}, []string{`the link from "A" to "C" has the load 2 and the capacity 199/100`}},
		{"a link is too slow, its other way", func(t *topology.Topology, p *plan.Plan) {
			t.Links[7].Capacity[1], p.Loads.Links[2].Capacity = big.NewRat(1, 1), rat(1, 1)
		}, []string{`the link from "W" to "B" has the load 2 and the capacity 1`}},
		{"a worker is too slow", func(t *topology.Topology, p *plan.Plan) {
			t.Nodes[6].Rate, p.Loads.Workers[1].Capacity = big.NewRat(3, 1), limit(3, 1)
		}, []string{`worker "W" has the load 7/2 and the rate 3`}},
		{"a server is too slow", func(t *topology.Topology, p *plan.Plan) {
			t.Nodes[3].Rate, p.Loads.Servers[0].Capacity = big.NewRat(2, 1), limit(2, 1)
		}, []string{`server "S" has the load 3 and the rate 2`}},
		{"a full server", func(t *topology.Topology, p *plan.Plan) {
			t.Nodes[3].Rate, p.Loads.Servers[0].Capacity = big.NewRat(3, 1), limit(3, 1)
		}, nil},
		{"too few ports", func(t *topology.Topology, p *plan.Plan) { t.Nodes[0].Ports, p.Loads.Switches[0].Ports = 1, 1 }, []string{`switch "A" sums 2 streams of a tree and has 1 ports`}},
		{"lists a load", lists(func(l *plan.Loads) { l.Links[5].Load = rat(1, 1) }), []string{`it lists the load 1 of the link from "A" to "C", which has 2`}},
		{"lists a capacity", lists(func(l *plan.Loads) { l.Links[5].Capacity = rat(7, 1) }), []string{`it lists the capacity 7 of the link from "A" to "C", which has 6`}},
		{"lists no link", lists(func(l *plan.Loads) { l.Links = l.Links[1:] }), []string{`it lists no load of the link from "V" to "A"`}},
		{"lists a link twice", lists(func(l *plan.Loads) { l.Links = append(l.Links, l.Links[5]) }), []string{link("A", "C")}},
		{"lists no such link", lists(func(l *plan.Loads) { l.Links = append(l.Links, plan.LinkLoad{From: id("V"), To: id("C")}) }), []string{link("V", "C")}},
		{"lists a link from an unknown node", lists(func(l *plan.Loads) {
			l.Links[5].From = id("X") // not A, the first node, which has this link
		}), []string{link("X", "C"), `it lists no load of the link from "A" to "C"`}},
		{"lists a link to an unknown node", lists(func(l *plan.Loads) { l.Links[0].To = id("X") }), []string{link("V", "X"), `it lists no load of the link from "V" to "A"`}},
		{"lists an idle link", lists(func(l *plan.Loads) {
			l.Links = append(l.Links, plan.LinkLoad{From: id("S"), To: id("C"), Load: rat(0, 1), Capacity: rat(6, 1)})
		}), nil},
		{"lists an idle switch", lists(func(l *plan.Loads) { l.Switches = append(l.Switches, plan.NodeLoad{Node: id("C"), Load: rat(0, 1)}) }), nil},
		{"lists a load of an idle switch", lists(func(l *plan.Loads) { l.Switches = append(l.Switches, plan.NodeLoad{Node: id("C"), Load: rat(1, 1)}) }), []string{`it lists the load 1 of switch "C", which has 0`}},
		{"lists a load of a server", lists(func(l *plan.Loads) { l.Servers[1].Load = rat(2, 1) }), []string{`it lists the load 2 of server "T", which has 1`}},
		{"lists no limit", lists(func(l *plan.Loads) { l.Workers[0].Capacity = nil }), []string{`it lists another capacity of worker "V" than the topology`}},
		{"lists a limit", lists(func(l *plan.Loads) { l.Workers[1].Capacity = limit(4, 1) }), []string{`it lists another capacity of worker "W" than the topology`}},
		{"lists another limit", lists(func(l *plan.Loads) { l.Switches[0].Capacity = limit(11, 1) }), []string{`it lists the capacity 11 of switch "A", which has 10`}},
		{"lists members", lists(func(l *plan.Loads) { l.Switches[0].Members = 1 }), []string{`it lists 1 members and 3 ports of switch "A", which has 2 and 3`}},
		{"lists ports", lists(func(l *plan.Loads) { l.Switches[1].Ports = 3 }), []string{`it lists 2 members and 3 ports of switch "B", which has 2 and 2`}},
		{"lists no switch", lists(func(l *plan.Loads) { l.Switches = l.Switches[1:] }), []string{`it lists no load of "A"`}},
		{"lists no worker", lists(func(l *plan.Loads) { l.Workers = l.Workers[:1] }), []string{`it lists no load of "W"`}},
		{"lists a server twice", lists(func(l *plan.Loads) { l.Servers = append(l.Servers, l.Servers[0]) }), []string{unknown("server", "S")}},
		{"lists an unknown switch", lists(func(l *plan.Loads) { l.Switches[0].Node = id("X") }), []string{unknown("switch", "X"), `it lists no load of "A"`}},
		{"lists a worker as a server", lists(func(l *plan.Loads) { l.Servers, l.Workers = append(l.Servers, l.Workers[1]), l.Workers[:1] }), []string{unknown("server", "W"), `it lists no load of "W"`}},
	} {
		topo, p := network(), good()
		test.change(topo, p)
		found := Plan(topo, p)
		slices.Sort(found)
		slices.Sort(test.says)
		assert.Equal(t, test.says, found, test.name)
	}
}
