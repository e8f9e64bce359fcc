// Package plan is the file format of plans (driver/planner/README.md): trees with rates, and every load
// beside its capacity.
package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"

	"tributary/driver/planner/topology"
)

// Version is that of the format.
const Version = 1

// Plan says how the gradients of all workers reach the servers.
type Plan struct {
	Version  int    `json:"version"`
	Planner  string `json:"planner"`
	Seed     uint64 `json:"seed"`
	Solver   string `json:"solver,omitempty"` // with its version; "" if none was there
	Topology string `json:"topology"`         // the file
	Filled   Filled `json:"filled"`           // what flags gave the topology

	Rate  Quantity  `json:"rate"`            // of all trees together
	Bound *Quantity `json:"bound,omitempty"` // no plan is faster
	Gap   *float64  `json:"gap,omitempty"`   // the share of the bound that the rate lacks
	Notes []string  `json:"notes,omitempty"`

	Trees []Tree `json:"trees"`
	Loads Loads  `json:"loads"`
}

// Filled is what flags gave a topology, so that it can be read again in the same way.
type Filled struct {
	Capacity   string `json:"capacity,omitempty"`
	WorkerRate string `json:"worker_rate,omitempty"`
	SwitchRate string `json:"switch_rate,omitempty"`
	ServerRate string `json:"server_rate,omitempty"`
	Ports      int    `json:"ports,omitempty"`
	Summing    *int   `json:"summing,omitempty"`
	Workers    int    `json:"workers,omitempty"`
	Servers    int    `json:"servers,omitempty"`
	Seed       uint64 `json:"seed,omitempty"`

	Cards []string `json:"cards,omitempty"` // NODE=DIR: a node has the ports and the rate of a generated card
}

// Tree is a part of the chunks, and how it reaches a server.
type Tree struct {
	Server  ID       `json:"server"`
	Rate    Quantity `json:"rate"`
	Members []Member `json:"members"`
	Sums    []Sum    `json:"sums"`
}

// Member is the stream of a worker.
type Member struct {
	Worker ID   `json:"worker"`
	To     ID   `json:"to"`   // a switch that sums it, or the server
	Path   []ID `json:"path"` // all nodes, with both ends
}

// Sum is the stream of a switch that sums.
type Sum struct {
	Switch ID   `json:"switch"`
	To     ID   `json:"to"` // another switch, or the server
	Path   []ID `json:"path"`
}

// Loads lists every load beside its capacity, in Gb/s.
type Loads struct {
	Links    []LinkLoad `json:"links"`
	Switches []NodeLoad `json:"switches"`
	Servers  []NodeLoad `json:"servers"`
	Workers  []NodeLoad `json:"workers"`
}

// LinkLoad is the load of one way of a link.
type LinkLoad struct {
	From     ID       `json:"from"`
	To       ID       `json:"to"`
	Load     Quantity `json:"load"`
	Capacity Quantity `json:"capacity"`
}

// NodeLoad is the load of a node. Members is the largest number of streams that a switch sums in a tree.
type NodeLoad struct {
	Node     ID        `json:"node"`
	Load     Quantity  `json:"load"`
	Capacity *Quantity `json:"capacity,omitempty"` // without one, nothing limits it
	Members  int       `json:"members,omitempty"`
	Ports    int       `json:"ports,omitempty"`
}

// ID is the id of a node, in JSON a string or a number as in the topology.
type ID topology.ID

// MarshalJSON writes a string or a number.
func (id ID) MarshalJSON() ([]byte, error) {
	if id.Number {
		return []byte(id.Text), nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(id.Text)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// UnmarshalJSON reads a string or a number.
func (id *ID) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*id = ID{}
		return json.Unmarshal(data, &id.Text)
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil || n == "" {
		return fmt.Errorf("an id is %s; it must be a string or a number", data)
	}
	*id = ID{Text: n.String(), Number: true}
	return nil
}

// Quantity is an exact number of Gb/s. In JSON it is a number if that is exact, otherwise a string such
// as "69/22".
type Quantity struct{ *big.Rat }

// MarshalJSON writes a number or a fraction.
func (q Quantity) MarshalJSON() ([]byte, error) {
	if digits, exact := q.FloatPrec(); exact && digits <= 12 {
		return []byte(q.FloatString(digits)), nil
	}
	return json.Marshal(q.RatString())
}

// UnmarshalJSON reads a number or a fraction.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	text := string(bytes.Trim(data, `"`))
	value, ok := new(big.Rat).SetString(text)
	if !ok || len(text) > 200 || bytes.ContainsAny(data, "eExXpP_") {
		return fmt.Errorf("%s is neither a number nor a fraction such as \"69/22\"", data)
	}
	q.Rat = value
	return nil
}

// Error means that a file is no plan.
type Error struct {
	File  string
	Place string // a line and a column; "" is the file as a whole
	Why   string
}

func (e *Error) Error() string {
	if e.Place == "" {
		return e.File + ": " + e.Why
	}
	return e.File + ": " + e.Place + ": " + e.Why
}

// Read reads a plan from a file.
func Read(path string) (*Plan, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads a plan. The name is that of its file, for errors.
func Parse(name string, data []byte) (*Plan, error) {
	var version struct {
		Version *int `json:"version"`
	}
	if place, why := topology.Decode(data, false, &version); why != "" {
		return nil, &Error{name, place, "it is no plan: " + why}
	}
	switch {
	case version.Version == nil:
		return nil, &Error{name, "", `it is no plan: it has no "version"`}
	case *version.Version != Version:
		return nil, &Error{name, "", fmt.Sprintf("it is a plan of version %d; this program reads version %d", *version.Version, Version)}
	}
	var p Plan
	if place, why := topology.Decode(data, true, &p); why != "" {
		return nil, &Error{name, place, "it is no plan: " + why}
	}
	return &p, p.complete(name)
}

// complete checks that nothing is missing that the format requires.
func (p *Plan) complete(name string) error {
	missing := func(what string) error { return &Error{name, "", what + " is missing"} }
	if p.Rate.Rat == nil {
		return missing(`"rate"`)
	}
	if len(p.Trees) == 0 {
		return &Error{name, "", "it has no trees"}
	}
	for i, t := range p.Trees {
		if t.Rate.Rat == nil || t.Server.Text == "" {
			return missing(fmt.Sprintf(`"rate" or "server" of trees[%d]`, i))
		}
	}
	for _, l := range p.Loads.Links {
		if l.Load.Rat == nil || l.Capacity.Rat == nil {
			return missing(`"load" or "capacity" of a link`)
		}
	}
	for _, nodes := range [][]NodeLoad{p.Loads.Switches, p.Loads.Servers, p.Loads.Workers} {
		for _, n := range nodes {
			if n.Load.Rat == nil || n.Capacity != nil && n.Capacity.Rat == nil {
				return missing(`"load" or "capacity" of a node`)
			}
		}
	}
	return nil
}

// Format returns the text of the file. The same plan gives the same bytes.
func (p *Plan) Format() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(p); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
