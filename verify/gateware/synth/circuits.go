package main

// The circuits in the table.

import (
	"fmt"
	"strconv"

	"tributary/hwgen/cells"
)

// circuit is a module of a generated card, to synthesize.
type circuit struct {
	name  string   // of the row
	flags []string // of hwgen, for a card that contains it
	top   string   // module
	whole bool     // a whole card, synthesized for speed

	// parent is the module with the instance whose parameters count; empty for a module without
	// parameters.
	parent string

	node string      // format of a node of tree; else empty
	lane *cells.Lane // nil unless it is a lane

	// Circuits that lanes share: the names of their rows, and the number of lanes.
	shared   []string
	sharedBy int

	latency   func(source) int
	additions int // of two numbers in a cycle; 0: does not apply

	// Limits to keep, and stricter targets; 0: none.
	mostCOMB, leastMHz int

	part  string
	seeds []int

	recount bool // make test counts its cells, which takes seconds
	full    bool // only make synth-full records it
}

var threeSeeds = []int{1, 2, 3}

// circuits lists all rows, in the order of the table.
func circuits() []circuit {
	var all []circuit
	all = append(all, nodes()...)
	all = append(all, lanes()...)
	all = append(all, exactParts()...)
	all = append(all, cores()...)
	return all
}

// nodes are the nodes of tree: one rounded addition.
func nodes() []circuit {
	integer := newNode("int32", "agg_int_add")
	integer.latency = func(source) int { return 1 } // a lane has a clamp after the node
	return []circuit{
		newNode("fp32", "agg_fp_add").within(500, 200),
		newNode("bf16", "agg_fp_add"),
		newNode("fp16", "agg_fp_add"),
		newNode("fp8e5m2", "agg_fp_add"),
		newNode("fp8e4m3", "agg_fp_add"),
		integer,
	}
}

// newNode returns the circuit of a node: a leaf of a card with two inputs, whose lane is that
// node alone.
func newNode(format, leaf string) circuit {
	return circuit{
		name:      "node " + format,
		flags:     laneFlags(cells.Lane{Sum: "tree", Format: format, Result: format, Workers: 2}),
		top:       leaf,
		parent:    "agg_lane",
		node:      format,
		latency:   func(s source) int { return s.laneLatency },
		additions: 1,
		part:      part25F,
		seeds:     threeSeeds,
		recount:   true,
	}
}

// lanes add one element of all workers.
func lanes() []circuit {
	all := []circuit{
		newLane(cells.Lane{Sum: "tree", Format: "fp32"}).atLength(),
		newLane(cells.Lane{Sum: "tree", Format: "bf16"}).atLength(),
		newLane(cells.Lane{Sum: "tree", Format: "fp16"}).atLength(),
		newLane(cells.Lane{Sum: "tree", Format: "fp32", Workers: 4}).atLength(),

		newLane(cells.Lane{Sum: "fused", Format: "fp32"}).within(1860, 190).counted(),
		newLane(cells.Lane{Sum: "fused", Format: "fp32", DSP: true}).atLength(),
		newLane(cells.Lane{Sum: "fused", Format: "bf16"}).counted(),
		newLane(cells.Lane{Sum: "fused", Format: "fp16"}).counted(),
		newLane(cells.Lane{Sum: "fused", Format: "bf16", Result: "fp32"}).atLength(),
		newLane(cells.Lane{Sum: "fused", Format: "fp8e4m3", Result: "fp32"}).atLength(),
		newLane(cells.Lane{Sum: "fused", Format: "fp32", Workers: 4}).atLength(),
		newLane(cells.Lane{Sum: "fused", Format: "fp32", Workers: 16}).atLength(),

		newLane(cells.Lane{Sum: "exact", Format: "fp32"}).within(4300, 180).sharing(exactParts()),
		newLane(cells.Lane{Sum: "exact", Format: "bf16"}),
		newLane(cells.Lane{Sum: "exact", Format: "fp16"}),
		newLane(cells.Lane{Sum: "exact", Format: "bf16", Result: "fp32"}).atLength(),
		newLane(cells.Lane{Sum: "exact", Format: "fp8e4m3"}).atLength(),
		newLane(cells.Lane{Sum: "exact", Format: "fp32", Workers: 4}).atLength(),
		newLane(cells.Lane{Sum: "exact", Format: "fp32", Workers: 16}).atLength(),

		newLane(cells.Lane{Sum: "max", Format: "fp32"}).atLength(),
		newLane(cells.Lane{Sum: "max", Format: "bf16"}).counted(),
		newLane(cells.Lane{Sum: "max", Format: "int32"}).counted(),

		newLane(cells.Lane{Sum: "tree", Format: "int32"}).counted(),
		newLane(cells.Lane{Sum: "tree", Format: "int32", Saturate: true}).counted(),
	}
	return all
}

// newLane returns the circuit of a lane with 8 inputs and its own result format, unless l
// differs.
func newLane(l cells.Lane) circuit {
	if l.Result == "" {
		l.Result = l.Format
	}
	if l.Workers == 0 {
		l.Workers = 8
	}
	return circuit{
		name:      l.String(),
		flags:     laneFlags(l),
		top:       "agg_lane",
		lane:      &l,
		latency:   func(s source) int { return s.laneLatency },
		additions: l.Workers - 1,
		part:      part25F,
		seeds:     threeSeeds,
	}
}

// within returns the circuit with limits to keep.
func (c circuit) within(comb, mhz int) circuit {
	c.mostCOMB, c.leastMHz = comb, mhz
	return c
}

// counted returns the circuit, marked for make test to count its cells.
func (c circuit) counted() circuit {
	c.recount = true
	return c
}

// sharing returns a lane that shares other circuits with the rest of a card's lanes.
func (c circuit) sharing(others []circuit) circuit {
	c.shared, c.sharedBy = nil, cardLanes
	for _, o := range others {
		c.shared = append(c.shared, o.name)
	}
	return c
}

// cardLanes is the number of lanes on the card for shared circuits.
const cardLanes = 16

// atLength returns the circuit, marked for make synth-full only.
func (c circuit) atLength() circuit {
	c.full = true
	return c
}

// exactParts are the circuits that sum the beats that lanes of exact cannot decide. A card has
// one of each, whatever its lanes; this card has 8 ports.
func exactParts() []circuit {
	var all []circuit
	for _, part := range []struct{ name, leaf string }{
		{"exact unit", "agg_exact_unit"},
		{"exact queue", "agg_exact_queue"},
		{"exact selection", "agg_exact_select"},
	} {
		all = append(all, circuit{
			name:    fmt.Sprintf("%s fp32, %d lanes x 8 ports", part.name, cardLanes),
			flags:   []string{"-lanes", strconv.Itoa(cardLanes), "-workers", "8", "-shell", "none", "-sum", "exact"},
			top:     part.leaf,
			parent:  "agg_core",
			part:    part25F,
			seeds:   threeSeeds,
			recount: true,
		})
	}
	return all
}

// laneFlags returns the flags of the smallest card with the lane.
func laneFlags(l cells.Lane) []string {
	flags := []string{"-lanes", "1", "-workers", strconv.Itoa(l.Workers), "-shell", "none", "-sum", l.Sum, "-format", l.Format}
	if l.Result != l.Format {
		flags = append(flags, "-result", l.Result)
	}
	if l.DSP {
		flags = append(flags, "-dsp")
	}
	if l.Saturate {
		flags = append(flags, "-saturate")
	}
	return flags
}

// cores are bare cards: the core with its port queues and register port. Their memories hold chunks
// of the default size. Two of them have limits, and are placed with three seeds. The last one has an
// up port.
func cores() []circuit {
	newCore := func(lanes, workers int, sum string) circuit {
		return circuit{
			name:      fmt.Sprintf("core of %d lanes x %d workers, %s fp32", lanes, workers, sum),
			flags:     []string{"-lanes", strconv.Itoa(lanes), "-workers", strconv.Itoa(workers), "-shell", "none", "-sum", sum},
			top:       "agg_top",
			whole:     true,
			latency:   func(s source) int { return s.latency },
			additions: lanes * (workers - 1),
			part:      part85F,
			seeds:     []int{1},
			full:      true,
		}
	}
	var all []circuit
	for _, size := range []struct{ lanes, workers int }{{4, 4}, {4, 8}, {16, 4}} {
		for _, sum := range []string{"tree", "fused", "exact"} {
			c := newCore(size.lanes, size.workers, sum)
			switch {
			case size.lanes == 4 && size.workers == 4 && sum == "tree":
				c.leastMHz, c.seeds = 120, threeSeeds
			case size.lanes == 16 && sum == "fused":
				c.leastMHz, c.seeds = 100, threeSeeds
			}
			all = append(all, c)
		}
	}
	up := newCore(4, 4, "tree")
	up.name += ", up port"
	up.flags = append(up.flags, "-parent")
	return append(all, up)
}

// synth returns the command that synthesizes the circuit.
func (c circuit) synth() string {
	if c.whole {
		return cells.SynthCard(c.additions)
	}
	return cells.SynthECP5
}
