// Package draw draws plans: as a graph for Graphviz, or as an SVG of its own. Workers that hang on one
// switch by one link are one node with a count.
package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math/big"
	"strings"

	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
)

// picture is what both kinds of drawings show.
type picture struct {
	t     *topology.Topology
	p     *plan.Plan
	nodes []node
	edges []edge
	place map[int]int // of a topology's node
}

// node is a box.
type node struct {
	name  string
	kind  topology.Kind
	sums  bool // in some tree
	layer int  // links from the nearest server
	row   int
}

// edge is a link, with its loads each way.
type edge struct {
	from, to int
	load     [2]*big.Rat
	capacity [2]*big.Rat
}

// use returns the larger share of the capacity that is used, 0 to 1.
func (e *edge) use() float64 {
	most := 0.0
	for way := range 2 {
		if e.capacity[way].Sign() > 0 {
			share, _ := new(big.Rat).Quo(e.load[way], e.capacity[way]).Float64()
			most = max(most, share)
		}
	}
	return most
}

// label is the loads beside the capacities.
func (e *edge) label() string {
	var parts []string
	for way := range 2 {
		if e.load[way].Sign() > 0 {
			parts = append(parts, fmt.Sprintf("%s / %s", number(e.load[way]), number(e.capacity[way])))
		}
	}
	return strings.Join(parts, ", ")
}

// number formats a quantity with at most two digits after the point.
func number(r *big.Rat) string {
	text := r.FloatString(2)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func newPicture(t *topology.Topology, p *plan.Plan) *picture {
	d := &picture{t: t, p: p, place: map[int]int{}}
	sums := map[topology.ID]bool{}
	for _, tree := range p.Trees {
		for _, s := range tree.Sums {
			sums[topology.ID(s.Switch)] = true
		}
	}
	links := make([]int, len(t.Nodes))
	home := make([]int, len(t.Nodes)) // the node at the other end of the last link
	for _, l := range t.Links {
		for end := range 2 {
			links[l.Ends[end]]++
			home[l.Ends[end]] = l.Ends[1-end]
		}
	}
	count := map[int]int{} // workers, by switch
	for i, n := range t.Nodes {
		if n.Kind == topology.Worker && links[i] == 1 {
			count[home[i]]++
			continue
		}
		d.place[i] = len(d.nodes)
		d.nodes = append(d.nodes, node{name: n.ID.Text, kind: n.Kind, sums: sums[n.ID]})
	}
	loads := map[[2]plan.ID]*big.Rat{}
	for _, l := range p.Loads.Links {
		loads[[2]plan.ID{l.From, l.To}] = l.Load.Rat
	}
	crowd := map[int]int{} // edges of workers, by switch
	for _, l := range t.Links {
		e := edge{capacity: l.Capacity}
		for way := range 2 {
			e.load[way] = new(big.Rat)
			if load := loads[[2]plan.ID{plan.ID(t.Nodes[l.Ends[way]].ID), plan.ID(t.Nodes[l.Ends[1-way]].ID)}]; load != nil {
				e.load[way] = load
			}
		}
		ends := [2]int{}
		alone := -1
		for end := range 2 {
			at, drawn := d.place[l.Ends[end]]
			if ends[end] = at; !drawn {
				alone = end
			}
		}
		if alone < 0 {
			e.from, e.to = ends[0], ends[1]
			d.edges = append(d.edges, e)
			continue
		}
		at := l.Ends[1-alone]
		if known, drawn := crowd[at]; drawn {
			d.edges[known].merge(&e)
			continue
		}
		crowd[at] = len(d.edges)
		if alone == 1 {
			e.load[0], e.load[1], e.capacity[0], e.capacity[1] = e.load[1], e.load[0], e.capacity[1], e.capacity[0]
		}
		e.from, e.to = len(d.nodes), ends[1-alone]
		d.edges = append(d.edges, e)
		name := t.Nodes[l.Ends[alone]].ID.Text
		if count[at] > 1 {
			name = fmt.Sprintf("%d workers", count[at])
		}
		d.nodes = append(d.nodes, node{name: name, kind: topology.Worker})
	}
	d.layers()
	return d
}

// merge keeps the link of several workers that is used most.
func (e *edge) merge(other *edge) {
	if other.use() > e.use() {
		e.load, e.capacity = other.load, other.capacity
	}
}

// layers places the nodes by their distance from the servers, and near their neighbours.
func (d *picture) layers() {
	near := make([][]int, len(d.nodes))
	for _, e := range d.edges {
		near[e.from], near[e.to] = append(near[e.from], e.to), append(near[e.to], e.from)
	}
	var queue []int
	for i := range d.nodes {
		d.nodes[i].layer = -1
		if d.nodes[i].kind == topology.Server {
			d.nodes[i].layer = 0
			queue = append(queue, i)
		}
	}
	rows := map[int]int{}
	for ; len(queue) > 0; queue = queue[1:] {
		at := &d.nodes[queue[0]]
		at.row = rows[at.layer]
		rows[at.layer]++
		for _, n := range near[queue[0]] {
			if d.nodes[n].layer < 0 {
				d.nodes[n].layer = at.layer + 1
				queue = append(queue, n)
			}
		}
	}
}

// Dot returns a plan as a graph for Graphviz: `dot -Tsvg`.
func Dot(t *topology.Topology, p *plan.Plan) []byte {
	d := newPicture(t, p)
	var b bytes.Buffer
	fmt.Fprintf(&b, "graph plan {\n  label=%q\n  rankdir=RL\n  node [fontname=sans]\n", d.title())
	for i, n := range d.nodes {
		shape := map[topology.Kind]string{topology.Switch: "box", topology.Worker: "ellipse", topology.Server: "doubleoctagon"}[n.kind]
		style := ""
		if n.sums {
			style = " style=filled fillcolor=lightblue"
		}
		fmt.Fprintf(&b, "  n%d [label=%q shape=%s%s]\n", i, n.name, shape, style)
	}
	for _, e := range d.edges {
		fmt.Fprintf(&b, "  n%d -- n%d [label=%q color=%q]\n", e.from, e.to, e.label(), color(e.use()))
	}
	b.WriteString("}\n")
	return b.Bytes()
}

func (d *picture) title() string {
	return fmt.Sprintf("%s, planner %s: %s Gb/s", d.p.Topology, d.p.Planner, number(d.p.Rate.Rat))
}

// escape returns text for an SVG. XML has no control characters: U+FFFD replaces them.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder takes everything
	return b.String()
}

// color goes from grey, for an unused link, over blue to red, for a full one.
func color(use float64) string {
	switch {
	case use == 0:
		return "#bbbbbb"
	case use < 0.5:
		return "#7aa6d8"
	case use < 1:
		return "#2b62a8"
	}
	return "#c0392b"
}

// Sizes of an SVG, in pixels.
const (
	columnWidth = 190
	rowHeight   = 60
	boxWidth    = 104
	boxHeight   = 26
	margin      = 40
)

// SVG returns a drawing of a plan: servers on the right, nodes in columns by their distance from them,
// full links red.
func SVG(t *topology.Topology, p *plan.Plan) []byte {
	d := newPicture(t, p)
	columns, rows := map[int]int{}, 0
	layers := 0
	for _, n := range d.nodes {
		columns[n.layer]++
		rows, layers = max(rows, columns[n.layer]), max(layers, n.layer)
	}
	width, height := 2*margin+boxWidth+layers*columnWidth, 2*margin+rows*rowHeight+24
	at := func(n node) (x, y int) {
		return margin + boxWidth/2 + (layers-n.layer)*columnWidth, margin + 24 + (rows-columns[n.layer])*rowHeight/2 + n.row*rowHeight + rowHeight/2
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n"+`<text x="%d" y="24" font-size="14">%s</text>`+"\n", margin, escape(d.title()))
	for _, e := range d.edges {
		x1, y1 := at(d.nodes[e.from])
		x2, y2 := at(d.nodes[e.to])
		path := fmt.Sprintf("M%d %d L%d %d", x1, y1, x2, y2)
		if x1 == x2 {
			path = fmt.Sprintf("M%d %d Q%d %d %d %d", x1, y1, x1-boxWidth, (y1+y2)/2, x2, y2)
		}
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="%.1f"><title>%s</title></path>`+"\n", path, color(e.use()), 1+3*e.use(), escape(e.label()))
	}
	for _, e := range d.edges {
		if e.use() == 0 || len(d.edges) > 80 {
			continue
		}
		x1, y1 := at(d.nodes[e.from])
		x2, y2 := at(d.nodes[e.to])
		x, y := (x1+x2)/2, (y1+y2)/2
		if x1 == x2 {
			x -= boxWidth / 2
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="10" text-anchor="middle" stroke="white" stroke-width="3" paint-order="stroke">%s</text>`+"\n", x, y+3, escape(e.label()))
	}
	for _, n := range d.nodes {
		x, y := at(n)
		fill, round := "#f2f2f2", 2
		switch {
		case n.kind == topology.Server:
			fill = "#ffe3a6"
		case n.kind == topology.Worker:
			fill, round = "#ffffff", boxHeight/2
		case n.sums:
			fill = "#b8d8f2"
		}
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="%s" stroke="#444"/><text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n",
			x-boxWidth/2, y-boxHeight/2, boxWidth, boxHeight, round, fill, x, y+4, escape(n.name))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
