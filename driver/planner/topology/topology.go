// Package topology reads networks of workers, switches and parameter servers: NetworkX node-link JSON
// and GraphML (driver/planner/README.md). It imports nothing of the planners, so that what checks
// their plans shares it without sharing their code.
package topology

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Kind is what a node does.
type Kind int

const (
	Switch Kind = iota // forwards, and sums if it has ports
	Worker             // sends its gradients; forwards nothing
	Server             // receives sums and gradients; forwards nothing
)

var kinds = []string{Switch: "switch", Worker: "worker", Server: "server"}

func (k Kind) String() string { return kinds[k] }

// ID is the name of a node: a string or a number, as in its file.
type ID struct {
	Text   string
	Number bool
}

func (id ID) String() string { return id.Text }

// Node is a node of a network.
type Node struct {
	ID   ID
	Kind Kind

	// Rate is a limit in Gb/s: of what a worker sends, of what a switch adds up, or of what a server
	// takes in. nil is no limit.
	Rate *big.Rat

	// Ports is the number of streams that a switch can sum into one. 0: it only forwards.
	Ports int
}

// Link joins two nodes. Parallel links of a file are one Link.
type Link struct {
	Ends     [2]int      // indices of nodes
	Capacity [2]*big.Rat // in Gb/s: from Ends[0] to Ends[1], and back; 0 is no link this way
}

// Topology is a network. Nodes and links have the order of the file.
type Topology struct {
	Name  string // of its file, for errors
	Nodes []Node
	Links []Link
	Notes []string // what a reader should know, such as links that were added up
}

// Error means that a topology cannot be used.
type Error struct {
	File  string
	Place string // such as `nodes[3] ("S1")`; "" is the file as a whole
	Why   string
}

func (e *Error) Error() string {
	if e.Place == "" {
		return fmt.Sprintf("%s: %s", e.File, e.Why)
	}
	return fmt.Sprintf("%s: %s: %s", e.File, e.Place, e.Why)
}

// Of returns the indices of the nodes of a kind.
func (t *Topology) Of(kind Kind) (nodes []int) {
	for i, n := range t.Nodes {
		if n.Kind == kind {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// Find returns the index of a node.
func (t *Topology) Find(id ID) (node int, found bool) {
	for i, n := range t.Nodes {
		if n.ID == id {
			return i, true
		}
	}
	return 0, false
}

// node names a node in errors.
func (t *Topology) node(i int) string { return fmt.Sprintf("nodes[%d] (%q)", i, t.Nodes[i].ID.Text) }

// Check returns why no plan can be made for the network: it has no worker or no server, a worker
// cannot reach any server, no server is reached by all workers, or one by none.
func (t *Topology) Check() error {
	if err := t.usable(); err != nil {
		return err
	}
	workers := t.Of(Worker)
	for _, s := range t.Of(Server) {
		if reach := t.reaching([]int{s}); !slices.ContainsFunc(workers, func(w int) bool { return reach[w] }) {
			return &Error{t.Name, t.node(s), "no worker reaches this server"}
		}
	}
	return nil
}

// Serving returns the servers that all workers reach, so that a tree can lead there. missed names the
// others, each with a worker that does not reach it.
func (t *Topology) Serving() (servers []int, missed []string) {
	workers := t.Of(Worker)
	for _, s := range t.Of(Server) {
		reach := t.reaching([]int{s})
		lost := slices.IndexFunc(workers, func(w int) bool { return !reach[w] })
		if lost < 0 {
			servers = append(servers, s)
			continue
		}
		missed = append(missed, fmt.Sprintf("server %q gets no tree: worker %q does not reach it", t.Nodes[s].ID, t.Nodes[workers[lost]].ID))
	}
	return servers, missed
}

// usable is Check, except that a server may be reached by nobody.
func (t *Topology) usable() error {
	workers, servers := t.Of(Worker), t.Of(Server)
	switch {
	case len(workers) == 0:
		return &Error{t.Name, "", `no node is a worker; set "kind" of some nodes to "worker", or use -workers to place some`}
	case len(servers) == 0:
		return &Error{t.Name, "", `no node is a server; set "kind" of a node to "server", or use -servers to place one`}
	}
	reach := t.reaching(servers)
	for _, w := range workers {
		if !reach[w] {
			return &Error{t.Name, t.node(w), "no path leads from this worker to a server; workers and servers forward nothing"}
		}
	}
	if serving, missed := t.Serving(); len(serving) == 0 {
		return &Error{t.Name, "", "no server is reached by all workers, and a tree takes in all of them: " + missed[0]}
	}
	return nil
}

// reaching returns which nodes have a path to one of the ends.
func (t *Topology) reaching(ends []int) []bool {
	in := make([][]int, len(t.Nodes))
	for _, l := range t.Links {
		for way := range 2 {
			if l.Capacity[way].Sign() > 0 {
				in[l.Ends[1-way]] = append(in[l.Ends[1-way]], l.Ends[way])
			}
		}
	}
	return t.spread(in, ends)
}

// spread follows edges from the ends; only switches, and the ends themselves, lead on.
func (t *Topology) spread(edges [][]int, ends []int) []bool {
	seen := make([]bool, len(t.Nodes))
	todo := append([]int(nil), ends...)
	for _, e := range ends {
		seen[e] = true
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, next := range edges[at] {
			if seen[next] {
				continue
			}
			seen[next] = true
			if t.Nodes[next].Kind == Switch {
				todo = append(todo, next)
			}
		}
	}
	return seen
}

// Quantity parses a capacity or a rate in Gb/s. Text may end in K, M, G or T, also with b/s or bps
// behind it; a number without a unit has the unit Gb/s. hasUnit tells which.
func Quantity(text string) (value *big.Rat, hasUnit bool, err error) {
	number := strings.TrimSpace(text)
	scale := big.NewRat(1, 1)
	lower := strings.ToLower(number)
	for _, suffix := range []string{"bit/s", "bps", "b/s"} {
		if cut, found := strings.CutSuffix(lower, suffix); found {
			number, lower = number[:len(cut)], cut
			break
		}
	}
	if n := len(number); n > 0 {
		if power := strings.IndexByte("KMGT", strings.ToUpper(number)[n-1]); power >= 0 {
			hasUnit = true
			for range 2 - min(power, 2) {
				scale.Mul(scale, big.NewRat(1, 1000))
			}
			if power == 3 {
				scale.SetInt64(1000)
			}
			number = strings.TrimSpace(number[:n-1])
		}
	}
	if len(number) != len(strings.TrimSpace(text)) && !hasUnit {
		return nil, false, fmt.Errorf("%q has a unit without a prefix; write 100G or 400M", text)
	}
	if !decimal(number) {
		return nil, false, fmt.Errorf("%q is no number; write 100 (Gb/s), 100G or 400M", text)
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return nil, false, fmt.Errorf("%q is no number; write 100 (Gb/s), 100G or 400M", text)
	}
	return value.Mul(value, scale), hasUnit, nil
}

// decimal tells whether text is a decimal number with a small exponent, or none.
func decimal(text string) bool {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if len(strings.TrimLeft(exponent, "+-0")) > 2 || len(mantissa) > 30 {
		return false
	}
	return mantissa != "" && strings.Trim(text, "0123456789.eE+-") == ""
}
