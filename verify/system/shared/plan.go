package main

import (
	"math/rand/v2"
	"time"

	"tributary/driver"
)

// The sizes of a site and of its rounds.
const (
	sites   = 6 // that run at a time; the daemon of the first one lives on
	members = 8 // of a site
	groups  = 4 // of members, each with a job

	mostChunks = 60 // of a call
	patience   = 10 * time.Second
	deadline   = 2_000_000 // cycles of a model card: 20 ms
)

// plan holds a round's decisions, all drawn from its seed.
type plan struct {
	groups [groups]groupPlan
	card   []kill
	daemon []kill // none at the first site
	member [members][]kill
	pauses []pause
}

// groupPlan is a number of members and their jobs, one after another.
type groupPlan struct {
	workers int
	jobs    []jobPlan
}

// jobPlan is a job. All its members have it.
type jobPlan struct {
	Seed    uint64 `json:"seed"` // of its arrays
	Workers int    `json:"workers"`
	Window  int    `json:"window"`
	Carry   bool   `json:"carry,omitempty"`
	Partial bool   `json:"partial,omitempty"`
	Calls   []int  `json:"calls"` // elements of each call
	Depth   int    `json:"depth"` // calls under way at a time
	VID     uint32 `json:"vid"`
}

// config returns the job's parameters.
func (p *jobPlan) config() driver.JobConfig {
	cfg := driver.JobConfig{Workers: p.Workers, Window: p.Window, FirstVID: p.VID}
	if p.Carry {
		cfg.CarryOn = patience
	}
	if p.Partial {
		cfg.Partial, cfg.DeadlineCycles = true, deadline
	}
	return cfg
}

// kill is the end of a process.
type kill struct {
	phase   phase
	count   int           // the occasion at which it dies; unless at any time
	after   time.Duration // at any time: since the process was ready
	restart time.Duration // when the next one starts
}

// pause stops a process: a member, or after them the card and the daemon.
type pause struct {
	process int
	after   time.Duration // since the pause before
	lasts   time.Duration
}

func newPlan(seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	var p plan
	sizes := [][groups]int{{2, 2, 2, 2}, {3, 2, 2, 1}, {4, 2, 1, 1}, {3, 3, 1, 1}}[rng.IntN(4)]
	kinds := rng.Perm(groups)
	for i := range p.groups {
		p.groups[i] = newGroupPlan(rng, sizes[i], kinds[i]&1 != 0, kinds[i]&2 != 0)
	}
	p.card = newKills(rng, 2)
	if seed%sites != 0 {
		p.daemon = newKills(rng, 3)
	}
	for i := range p.member {
		p.member[i] = newKills(rng, 1)
	}
	for range rng.IntN(4) {
		p.pauses = append(p.pauses, pause{rng.IntN(members + 2), someTime(rng), someTime(rng)})
	}
	return p
}

func newGroupPlan(rng *rand.Rand, workers int, carry, partial bool) groupPlan {
	g := groupPlan{workers: workers}
	for range 2 + rng.IntN(3) {
		j := jobPlan{Seed: rng.Uint64(), Workers: workers, Window: 1 << rng.IntN(4), Carry: carry, Partial: partial, Depth: 1 + rng.IntN(3), VID: rng.Uint32()}
		if rng.IntN(2) == 0 {
			j.VID = -uint32(rng.IntN(mostChunks)) // VIDs wrap soon
		}
		elements := newLength(rng, workers)
		for range 2 + rng.IntN(8) {
			if !partial { // a member that returns does not know the next call
				elements = newLength(rng, workers)
			}
			j.Calls = append(j.Calls, elements)
		}
		g.jobs = append(g.jobs, j)
	}
	return g
}

// newLength draws the length of an array whose last chunk has room for the stamps.
func newLength(rng *rand.Rand, workers int) int {
	n := rng.IntN(mostChunks) * chunkElements
	return n + workers + rng.IntN(chunkElements-workers+1)
}

// newKills draws up to a number of kills of a process and its successors.
func newKills(rng *rand.Rand, most int) []kill {
	all := make([]kill, rng.IntN(most+1))
	for i := range all {
		k := kill{phase: phases[rng.IntN(len(phases))], after: someTime(rng)}
		switch k.phase {
		case join:
			k.count = 1 + rng.IntN(4)
		case finish:
			k.count = 1 + rng.IntN(2)
		default:
			k.count = 1 + rng.IntN(200)
		}
		if rng.IntN(2) == 0 {
			k.restart = someTime(rng)
		}
		all[i] = k
	}
	return all
}

func someTime(rng *rand.Rand) time.Duration {
	return time.Duration(rng.Int64N(int64(100 * time.Millisecond)))
}
