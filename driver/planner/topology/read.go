package topology

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"unicode"
)

// Defaults fills in what a file does not have.
type Defaults struct {
	Capacity   *big.Rat // of a link, each way, in Gb/s
	WorkerRate *big.Rat // in Gb/s; nil: no limit but the links
	SwitchRate *big.Rat
	ServerRate *big.Rat
	Ports      int // of a switch without "ports"

	// Summing is the number of switches without "ports" that get Ports, chosen by Seed; the others
	// only forward. A negative number is all.
	Summing int

	// Workers and Servers are the numbers of nodes to add, each with a link of Capacity to a switch
	// that Seed chooses.
	Workers, Servers int
	Seed             uint64
}

// raw is a file's graph before its meaning is known.
type raw struct {
	name     string
	directed bool
	nodes    []element
	edges    []element
}

// element is a node, or an edge from id to target.
type element struct {
	place      string
	id, target ID
	attributes map[string]string
}

// Open reads a topology from a file: node-link JSON, or GraphML.
func Open(path string, fill Defaults) (*Topology, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, fill)
}

// Parse reads a topology. The name is that of its file, for errors.
func Parse(name string, data []byte, fill Defaults) (*Topology, error) {
	parse := parseNodeLink
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) {
		parse = parseGraphML
	}
	r, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	return r.topology(fill)
}

// builder turns a raw graph into a topology.
type builder struct {
	*raw
	fill     Defaults
	topology *Topology
	place    map[ID]int
	unit     string // where the first quantity with a unit is
	bare     string // where the first one without is
	open     []int  // switches whose ports the file does not give
}

func (r *raw) topology(fill Defaults) (*Topology, error) {
	b := &builder{raw: r, fill: fill, topology: &Topology{Name: r.name}, place: map[ID]int{}}
	for _, n := range r.nodes {
		if err := b.node(n); err != nil {
			return nil, err
		}
	}
	if err := b.links(); err != nil {
		return nil, err
	}
	if b.unit != "" && b.bare != "" {
		return nil, &Error{r.name, b.bare, "a quantity has no unit, but one of " + b.unit + " has; give all of them units, or none (Gb/s)"}
	}
	if err := b.complete(); err != nil {
		return nil, err
	}
	return b.topology, b.topology.Check()
}

// node adds a node.
func (b *builder) node(n element) error {
	if other, taken := b.place[n.id]; taken {
		return &Error{b.name, n.place, "it has the id of " + b.topology.node(other)}
	}
	if strings.ContainsFunc(n.id.Text, unicode.IsControl) {
		return &Error{b.name, n.place, "its id has a control character"}
	}
	kind := Switch
	if text := n.attributes["kind"]; text != "" {
		found := false
		for k, name := range kinds {
			if name == text {
				kind, found = Kind(k), true
			}
		}
		if !found {
			return &Error{b.name, n.place, fmt.Sprintf(`"kind" is %q; it must be switch, worker or server`, text)}
		}
	}
	node := Node{ID: n.id, Kind: kind}
	if text, given := n.attributes["rate"]; given {
		rate, err := b.quantity(n.place, "rate", text)
		if err != nil {
			return err
		}
		node.Rate = rate
	}
	if text, given := n.attributes["ports"]; given {
		ports, err := strconv.Atoi(text)
		switch {
		case err != nil || ports < 0:
			return &Error{b.name, n.place, fmt.Sprintf(`"ports" is %q; it must be a whole number, 0 or more`, text)}
		case kind != Switch:
			return &Error{b.name, n.place, fmt.Sprintf(`a %s has no "ports"`, kind)}
		}
		node.Ports = ports
	} else if kind == Switch {
		b.open = append(b.open, len(b.topology.Nodes))
	}
	b.place[n.id] = len(b.topology.Nodes)
	b.topology.Nodes = append(b.topology.Nodes, node)
	return nil
}

// quantity parses an attribute, which must be more than 0.
func (b *builder) quantity(where, attribute, text string) (*big.Rat, error) {
	value, hasUnit, err := Quantity(text)
	if err != nil {
		return nil, &Error{b.name, where, fmt.Sprintf("%q: %v", attribute, err)}
	}
	if value.Sign() <= 0 {
		return nil, &Error{b.name, where, fmt.Sprintf("%q is %s; it must be more than 0", attribute, text)}
	}
	if hasUnit && b.unit == "" {
		b.unit = where
	}
	if !hasUnit && b.bare == "" {
		b.bare = where
	}
	return value, nil
}

// links adds the links. Parallel ones are added up.
func (b *builder) links() error {
	index := map[[2]int]int{}
	parallel := map[int]int{}
	for _, e := range b.edges {
		var ends [2]int
		for i, id := range []ID{e.id, e.target} {
			node, known := b.place[id]
			if !known {
				return &Error{b.name, e.place, fmt.Sprintf("no node has the id %q", id.Text)}
			}
			ends[i] = node
		}
		if ends[0] == ends[1] {
			return &Error{b.name, e.place, "it leads from a node to itself"}
		}
		capacity := b.fill.Capacity
		if text, given := e.attributes["capacity"]; given {
			var err error
			if capacity, err = b.quantity(e.place, "capacity", text); err != nil {
				return err
			}
		}
		if capacity == nil {
			return &Error{b.name, e.place, `it has no "capacity"; give it one, or use -capacity for all links without`}
		}
		way := 0
		if ends[0] > ends[1] {
			ends[0], ends[1], way = ends[1], ends[0], 1
		}
		at, known := index[ends]
		if !known {
			at = len(b.topology.Links)
			index[ends] = at
			b.topology.Links = append(b.topology.Links, Link{Ends: ends, Capacity: [2]*big.Rat{new(big.Rat), new(big.Rat)}})
		}
		l := &b.topology.Links[at]
		for w := range 2 {
			if b.directed && w != way {
				continue
			}
			if l.Capacity[w].Sign() > 0 {
				parallel[at]++
			}
			l.Capacity[w].Add(l.Capacity[w], capacity)
		}
	}
	for at, l := range b.topology.Links {
		if parallel[at] > 0 {
			b.topology.Notes = append(b.topology.Notes, fmt.Sprintf("parallel links between %q and %q are one link of their capacities together",
				b.topology.Nodes[l.Ends[0]].ID, b.topology.Nodes[l.Ends[1]].ID))
		}
	}
	return nil
}

// complete adds workers and servers, and fills in what the file does not have.
func (b *builder) complete() error {
	t := b.topology
	random := rand.New(rand.NewPCG(b.fill.Seed, 0))
	switches := t.Of(Switch)
	if n := b.fill.Summing; n >= 0 && n < len(b.open) {
		random.Shuffle(len(b.open), func(i, j int) { b.open[i], b.open[j] = b.open[j], b.open[i] })
		b.open = b.open[:n]
	}
	for _, s := range b.open {
		t.Nodes[s].Ports = b.fill.Ports
	}
	for _, add := range []struct {
		kind  Kind
		count int
	}{{Server, b.fill.Servers}, {Worker, b.fill.Workers}} {
		for i := range add.count {
			switch {
			case len(switches) == 0:
				return &Error{b.name, "", fmt.Sprintf("it has no switch for a %s to be placed at", add.kind)}
			case b.fill.Capacity == nil:
				return &Error{b.name, "", fmt.Sprintf("the link of a placed %s has no capacity; use -capacity", add.kind)}
			}
			id := ID{Text: fmt.Sprintf("%s-%d", add.kind, i)}
			if _, taken := b.place[id]; taken {
				return &Error{b.name, "", fmt.Sprintf("a placed %s would have the id %q, which a node has; rename that node", add.kind, id)}
			}
			b.place[id] = len(t.Nodes)
			t.Links = append(t.Links, Link{
				Ends:     [2]int{switches[random.IntN(len(switches))], len(t.Nodes)},
				Capacity: [2]*big.Rat{b.fill.Capacity, b.fill.Capacity},
			})
			t.Nodes = append(t.Nodes, Node{ID: id, Kind: add.kind})
		}
	}
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Rate == nil {
			n.Rate = []*big.Rat{Switch: b.fill.SwitchRate, Worker: b.fill.WorkerRate, Server: b.fill.ServerRate}[n.Kind]
		}
	}
	return nil
}
