package simulate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
)

// Traffic is what happens beside a plan. Times are in seconds from the beginning.
type Traffic struct {
	Flows    []Flow    `json:"flows"`
	Failures []Failure `json:"failures"`
}

// Flow is a flow of other traffic. It takes what is fair.
type Flow struct {
	From  plan.ID        `json:"from"`
	To    plan.ID        `json:"to"`
	Path  []plan.ID      `json:"path,omitempty"` // all nodes, with both ends; default: a shortest path, also after failures
	Rate  *plan.Quantity `json:"rate,omitempty"` // in Gb/s, at most; default: no limit
	Start *plan.Quantity `json:"start,omitempty"`
	Stop  *plan.Quantity `json:"stop,omitempty"` // default: never
}

// Failure is a link that fails, both ways, or a node that leaves.
type Failure struct {
	Link []plan.ID     `json:"link,omitempty"` // its two ends
	Node *plan.ID      `json:"node,omitempty"`
	At   plan.Quantity `json:"at"`
}

// Read reads a JSON file of traffic.
func Read(path string) (*Traffic, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	wrong := func(format string, args ...any) error {
		return &plan.Error{File: path, Why: fmt.Sprintf(format, args...)}
	}
	var t Traffic
	if place, why := topology.Decode(data, true, &t); why != "" {
		return nil, &plan.Error{File: path, Place: place, Why: "it is no traffic: " + why}
	}
	for i, f := range t.Flows {
		where := fmt.Sprintf("flows[%d]", i)
		switch {
		case f.From.Text == "" || f.To.Text == "":
			return nil, wrong(`%s: "from" or "to" is missing`, where)
		case f.Rate != nil && f.Rate.Sign() <= 0:
			return nil, wrong(`%s: "rate" must be more than 0`, where)
		case f.Start != nil && f.Start.Sign() < 0:
			return nil, wrong(`%s: "start" must not be negative`, where)
		case f.Stop != nil && (f.Stop.Sign() <= 0 || f.Start != nil && f.Stop.Cmp(f.Start.Rat) <= 0):
			return nil, wrong(`%s: "stop" must be after "start"`, where)
		}
	}
	for i, f := range t.Failures {
		where := fmt.Sprintf("failures[%d]", i)
		switch {
		case (f.Node == nil) == (len(f.Link) == 0) || f.Node == nil && len(f.Link) != 2:
			return nil, wrong(`%s: give it a "link" with two ends, or a "node"`, where)
		case f.At.Rat == nil || f.At.Sign() < 0:
			return nil, wrong(`%s: "at" must be 0 or more`, where)
		}
	}
	return &t, nil
}

// Random returns n flows without limit or end, between nodes that the seed chooses. The second node can
// be reached from the first.
func Random(t *topology.Topology, seed uint64, n int) []Flow {
	r := rand.New(rand.NewPCG(seed, 0))
	g := newGraph(t)
	var pairs [][2]int
	for from := range t.Nodes {
		distance := g.distances(from)
		for to := range t.Nodes {
			if to != from && distance[to] > 0 {
				pairs = append(pairs, [2]int{from, to})
			}
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	flows := make([]Flow, n)
	for i := range flows {
		p := pairs[r.IntN(len(pairs))]
		flows[i] = Flow{From: plan.ID(t.Nodes[p[0]].ID), To: plan.ID(t.Nodes[p[1]].ID)}
	}
	return flows
}

// graph is a topology as the paths of other traffic see it.
type graph struct {
	t    *topology.Topology
	next [][]int     // by node, in the order of the links
	way  map[way]int // resources
	gone map[way]bool
	left []bool // nodes
}

// way is one way of a link.
type way struct{ from, to int }

func newGraph(t *topology.Topology) *graph {
	g := &graph{t: t, next: make([][]int, len(t.Nodes)), way: map[way]int{}, gone: map[way]bool{}, left: make([]bool, len(t.Nodes))}
	for _, l := range t.Links {
		for w := range 2 {
			if from, to := l.Ends[w], l.Ends[1-w]; l.Capacity[w].Sign() > 0 {
				g.way[way{from, to}] = len(g.way)
				g.next[from] = append(g.next[from], to)
			}
		}
	}
	return g
}

// passes tells whether a way of a link is there now.
func (g *graph) passes(from, to int) bool {
	_, there := g.way[way{from, to}]
	return there && !g.gone[way{from, to}] && !g.left[from] && !g.left[to]
}

// distances returns the number of links from a node to each; -1: none leads there. Only switches forward.
func (g *graph) distances(from int) []int {
	d := slices.Repeat([]int{-1}, len(g.t.Nodes))
	d[from] = 0
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at != from && g.t.Nodes[at].Kind != topology.Switch {
			continue
		}
		for _, to := range g.next[at] {
			if d[to] < 0 && g.passes(at, to) {
				d[to] = d[at] + 1
				queue = append(queue, to)
			}
		}
	}
	return d
}

// shortest returns a shortest path, with both ends; nil: there is none. Of several, it follows the first
// links of the file, seen from the far end.
func (g *graph) shortest(from, to int) []int {
	d := g.distances(from)
	if d[to] < 0 {
		return nil
	}
	path := []int{to}
	for at := to; at != from; {
		for _, l := range g.t.Links {
			other := -1
			switch at {
			case l.Ends[0]:
				other = l.Ends[1]
			case l.Ends[1]:
				other = l.Ends[0]
			}
			if other >= 0 && d[other] == d[at]-1 && g.passes(other, at) && (other == from || g.t.Nodes[other].Kind == topology.Switch) {
				at = other
				break
			}
		}
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}
