package main

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"tributary/verify/system/faults"
)

const (
	ports          = 8 // of the cards with a byte stream
	portsOnNetwork = 4 // of the cards with Ethernet ports

	leastFaulty, mostFaulty = 0.02, 0.2 // share of a round's frames with a fault

	mostTenants    = 4   // on a card, which has room for as many jobs
	mostJobs       = 3   // of a tenant, in succession
	mostReductions = 3   // of a job
	mostChunks     = 160 // in a reduction
	mostOnNetwork  = 40  // in a reduction on a card with Ethernet ports, which takes longer to simulate

	shortestDeadline, longestDeadline = 1 << 11, 1 << 14 // cycles of a simulation

	// Longest pause of a late rank: a few round trips, longer than most deadlines.
	mostLate        = 50 * time.Millisecond
	mostLateOverdue = 400 * time.Millisecond
)

// plan holds a round's decisions, all drawn from its seed. Times are counted in frames of the
// round or of a job.
type plan struct {
	rates   faults.Rates
	cuts    []int // frames of the round that cut a link, ascending
	kill    int   // frame of the round that kills the card; 0: none
	tenants []tenantPlan
}

// tenantPlan is the plan of one tenant. All its jobs have the same shape, so late frames of one
// job have the chunks and numbers of the next.
type tenantPlan struct {
	ports    []int
	window   int // how often to halve its share of the card's window
	chunk    int // beats, modulo the card's
	firstVID uint32
	deadline uint32 // cycles of a simulation; 0: none
	partial  bool   // partial sums of overdue chunks, instead of notices
	jobs     [][]reduction
}

// reduction is the fate of the members in one reduction.
type reduction struct {
	chunks int
	short  int // missing elements in the last chunk, modulo the chunk
	late   int // rank that starts late; -1: none
	pause  time.Duration
	victim int // rank whose call is cancelled on the way; -1: none
	dies   int // frame of the job that cancels it
	away   int // rank that makes no further calls in this job; -1: none
}

// size is what the plan of a round depends on, beside its seed.
type size struct {
	ports  int  // of the card
	chunks int  // the most in a reduction
	damage bool // frames meet damage only, and no card and no rank is killed
}

func newPlan(seed uint64, of size) plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := plan{rates: newRates(rng, seed, of.damage), tenants: make([]tenantPlan, 1+rng.IntN(mostTenants))}
	frames := 0
	for i := range p.tenants {
		p.tenants[i] = newTenantPlan(rng, of)
		frames += p.tenants[i].frames()
	}
	if of.damage {
		return p
	}
	if rng.IntN(2) == 0 {
		for range 1 + rng.IntN(3) {
			p.cuts = append(p.cuts, 1+rng.IntN(frames))
		}
		slices.Sort(p.cuts)
	}
	if rng.IntN(2) == 0 {
		p.kill = 1 + rng.IntN(frames)
	}
	return p
}

func newRates(rng *rand.Rand, seed uint64, damage bool) faults.Rates {
	r := faults.Rates{Seed: seed}
	kinds := []*float64{&r.Drop, &r.Repeat, &r.Reorder, &r.Delay, &r.Flip, &r.Burst, &r.Stall}
	if damage {
		kinds = []*float64{&r.Garbage, &r.Scramble, &r.Cut, &r.Insert}
	}
	var sum float64
	for _, rate := range kinds {
		*rate = rng.Float64()
		sum += *rate
	}
	faulty := leastFaulty + (mostFaulty-leastFaulty)*rng.Float64()
	for _, rate := range kinds {
		*rate *= faulty / sum
	}
	return r
}

func newTenantPlan(rng *rand.Rand, of size) tenantPlan {
	p := tenantPlan{ports: newPorts(rng, of.ports), window: rng.IntN(3), chunk: rng.IntN(1 << 20), firstVID: rng.Uint32()}
	if rng.IntN(2) == 0 {
		p.firstVID = -uint32(rng.IntN(of.chunks)) // VIDs wrap soon
	}
	if kind := rng.IntN(3); kind > 0 {
		p.deadline = shortestDeadline << rng.IntN(bits.Len(longestDeadline/shortestDeadline))
		p.partial = kind == 1
	}
	p.jobs = make([][]reduction, 1+rng.IntN(mostJobs))
	for i := range p.jobs {
		p.jobs[i] = p.newJob(rng, of)
	}
	return p
}

// newPorts returns all ports in half of the cases, else a random set.
func newPorts(rng *rand.Rand, ports int) []int {
	chosen := rng.Perm(ports)
	if rng.IntN(2) == 0 {
		chosen = chosen[:1+rng.IntN(ports)]
	}
	slices.Sort(chosen)
	return chosen
}

// newJob draws the reductions of a job. Where a rank's death ends the job, it
// happens in the last one.
func (p *tenantPlan) newJob(rng *rand.Rand, of size) []reduction {
	all := make([]reduction, 1+rng.IntN(mostReductions))
	for i := range all {
		all[i] = reduction{chunks: 1 + rng.IntN(of.chunks), short: rng.IntN(1 << 20), late: -1, victim: -1, away: -1}
		if rng.IntN(4) == 0 && !of.damage {
			all[i].late, all[i].pause = rng.IntN(len(p.ports)), time.Duration(rng.Int64N(int64(p.mostLate())))
		}
	}
	if of.damage {
		return all
	}
	if rng.IntN(4) == 0 {
		r := &all[len(all)-1]
		if p.partial {
			r = &all[rng.IntN(len(all))]
		}
		r.victim, r.dies = rng.IntN(len(p.ports)), rng.IntN(len(p.ports)*r.chunks)
		if rng.IntN(2) == 0 {
			r.dies = rng.IntN(80) // late frames then have the VIDs of the next job
		}
	}
	if p.partial && len(p.ports) > 1 && rng.IntN(2) == 0 {
		all[rng.IntN(len(all))].away = rng.IntN(len(p.ports))
	}
	return all
}

func (p *tenantPlan) mostLate() time.Duration {
	if p.deadline > 0 {
		return mostLateOverdue
	}
	return mostLate
}

// frames returns the least number of frames: the data of all chunks.
func (p *tenantPlan) frames() int {
	n := 0
	for _, job := range p.jobs {
		for _, r := range job {
			n += len(p.ports) * r.chunks
		}
	}
	return n
}
