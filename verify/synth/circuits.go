package main

// What is recorded.

import (
	"fmt"
	"strconv"

	"tributary/hwgen/cells"
)

// circuit is something to synthesize: a module of a generated card.
type circuit struct {
	name   string   // of the row
	flags  []string // of hwgen, for a card that has it
	top    string   // module
	params []param

	node string      // its format, where it is a node of tree
	lane *cells.Lane // where it is a lane

	latency   func(source) int
	additions int // of two numbers, a cycle; 0: not what it does

	// limits that it must keep, and the better ones that are aimed at; 0: none.
	mostCOMB, leastMHz int

	part  string
	seeds []int

	recount bool // make test counts its cells: it takes seconds, not minutes
	whole   bool // a whole core, recorded only when asked for
}

type param struct {
	name  string
	value int
}

var threeSeeds = []int{1, 2, 3}

// circuits lists all rows, in the order of the table.
func circuits() []circuit {
	var all []circuit
	all = append(all, nodes()...)
	all = append(all, lanes()...)
	all = append(all, cores()...)
	return all
}

// nodes are those of tree: one addition, rounded.
func nodes() []circuit {
	float := func(format string, exp, frac, infinity int) circuit {
		return circuit{top: "agg_fp_add", node: format, params: []param{{"EXP", exp}, {"FRAC", frac}, {"INFINITY", infinity}}}
	}
	all := []circuit{
		float("fp32", 8, 23, 1),
		float("bf16", 8, 7, 1),
		float("fp16", 5, 10, 1),
		float("fp8e5m2", 5, 2, 1),
		float("fp8e4m3", 4, 3, 0),
	}
	all[0].mostCOMB, all[0].leastMHz = 500, 200
	for i := range all {
		c := &all[i]
		c.name = "node " + c.node
		c.flags = []string{"-lanes", "1", "-workers", "2", "-shell", "none", "-sum", "tree", "-format", c.node}
		c.latency = func(s source) int { return s.treeLatency }
		c.additions = 1
		c.part, c.seeds = part25F, threeSeeds
		c.recount = true
	}
	return all
}

// lanes add one element of all workers.
func lanes() []circuit {
	var all []circuit
	add := func(recount bool, l cells.Lane) *circuit {
		if l.Result == "" {
			l.Result = l.Format
		}
		if l.Workers == 0 {
			l.Workers = 8
		}
		all = append(all, circuit{
			name:      l.String(),
			flags:     laneFlags(l),
			top:       "agg_lane",
			lane:      &l,
			latency:   func(s source) int { return s.treeLatency },
			additions: l.Workers - 1,
			part:      part25F,
			seeds:     threeSeeds,
			recount:   recount,
		})
		return &all[len(all)-1]
	}
	add(false, cells.Lane{Sum: "tree", Format: "fp32"})
	add(false, cells.Lane{Sum: "tree", Format: "fp32", Workers: 4})
	return all
}

// laneFlags returns the flags of the smallest card that has the lane.
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

// cores are whole, without a shell; their memories hold chunks of the default size.
func cores() []circuit {
	var all []circuit
	for _, size := range []struct {
		lanes, workers int
		part           string
	}{{4, 4, part45F}, {4, 8, part85F}, {16, 4, part85F}} {
		for _, sum := range []string{"tree", "fused", "exact"} {
			all = append(all, circuit{
				name:      fmt.Sprintf("core of %d lanes x %d workers, %s fp32", size.lanes, size.workers, sum),
				flags:     []string{"-lanes", strconv.Itoa(size.lanes), "-workers", strconv.Itoa(size.workers), "-shell", "none", "-sum", sum},
				top:       "agg_core",
				latency:   func(s source) int { return s.latency },
				additions: size.lanes * (size.workers - 1),
				part:      size.part,
				seeds:     []int{1},
				whole:     true,
			})
		}
	}
	return all
}
