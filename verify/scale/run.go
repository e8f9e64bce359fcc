package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"tributary/verify/scale/sim"
)

// cell is a row of the tables: one transport under one load of a suite, with all seeds.
type cell struct {
	Suite     string  `json:"suite"`
	Load      float64 `json:"load"`
	Transport string  `json:"transport"`

	Iterations  int     `json:"iterations"`   // of all seeds and jobs
	IterationMS float64 `json:"iteration_ms"` // mean, with the computation; 0 if none ended
	// Flows of less than 100 kB that began while the job ran, of all seeds together.
	Short      int     `json:"short_flows"`
	MedianUS   float64 `json:"short_median_us"`
	P99US      float64 `json:"short_p99_us"`
	LeastP99   float64 `json:"short_p99_least_us"` // of one seed
	MostP99    float64 `json:"short_p99_most_us"`
	Unfinished int     `json:"short_unfinished"` // counted with the time until the end of the run
	// Queues between switches.
	HighestKB float64 `json:"core_queue_highest_kb"`
	Marked    float64 `json:"core_marked"` // fraction of packets
	Dropped   int64   `json:"dropped"`     // packets, in all queues
	// Repairs of the job.
	Asks    int64  `json:"asks"`
	Replays int64  `json:"replays"` // and repeated own sums
	Events  uint64 `json:"events"`
}

// shortBytes bounds short flows, as in pFabric (SIGCOMM 2013): (0, 100 kB).
const shortBytes = 100_000

// experiment is one simulation.
type experiment struct {
	suite     suite
	transport transport
	load      float64
	seed      uint64
}

func (x experiment) String() string {
	return fmt.Sprintf("%s, load %g, %s, seed %d", x.suite.Name, x.load, x.transport.Name, x.seed)
}

// outcome is what one experiment gives to its cell.
type outcome struct {
	cell
	total sim.Time // of all iterations
	times []float64
	core  struct{ marked, packets int64 }
}

// experiments lists the runs of the suites, cell by cell.
func (c *configuration) experiments(suites []suite) (list []experiment) {
	for _, s := range suites {
		for _, load := range s.Loads {
			for _, name := range s.Transports {
				t, _ := c.transport(name)
				for _, seed := range s.Seeds {
					list = append(list, experiment{s, t, load, seed})
				}
			}
		}
	}
	return list
}

// slice is the simulated time between two reports of progress.
const slice = sim.Millisecond / 2

// run simulates one experiment. It calls progress with the simulated time that has passed since
// the last call.
func (c *configuration) run(ctx context.Context, x experiment, progress func(sim.Time)) (outcome, error) {
	n := sim.NewNetwork(c.clos(c.Networks[x.suite.Network]))
	traffic := sim.NewTraffic(n, sim.TrafficConfig{
		Sizes: c.Distributions[x.suite.Distribution].Points, Load: x.load, TCP: c.tcp(), Seed: x.seed,
	})
	traffic.Start()
	begin := milli(x.suite.WarmUpMS)
	end := begin + milli(x.suite.MeasuredMS)
	var reductions []*reduction
	for i := range x.suite.Jobs {
		r := c.reduction(n, x, i)
		reductions = append(reductions, r)
		n.After(begin, r.start)
	}
	for until := end + milli(x.suite.DrainMS); n.Now() < until; {
		step := min(slice, until-n.Now())
		if err := n.Run(ctx, n.Now()+step); err != nil {
			return outcome{}, fmt.Errorf("%v: %w", x, err)
		}
		progress(step)
	}
	o := outcome{cell: cell{Suite: x.suite.Name, Load: x.load, Transport: x.transport.Name, Events: n.Events}}
	for _, r := range reductions {
		o.countIterations(*r.ends, begin-milli(x.suite.ComputeMS), end)
		o.countRepairs(r.job)
	}
	o.countFlows(traffic.Flows, begin, end, n.Now())
	o.countQueues(n)
	return o, nil
}

// reduction is a ring, or a job with cards.
type reduction struct {
	start func()
	ends  *[]sim.Time
	job   *sim.Job // nil for a ring
}

// reduction sets job i of an experiment up. The jobs share the workers of each rack evenly.
func (c *configuration) reduction(n *sim.Network, x experiment, i int) *reduction {
	workers := n.Clos.Workers / x.suite.Jobs
	if x.transport.Ring {
		r := sim.NewRing(n, sim.RingConfig{
			Workers: workers, First: i * workers, TCP: c.tcp(), Bytes: x.suite.ArrayBytes, Compute: milli(x.suite.ComputeMS),
			Hash: hash(x.seed, i),
		})
		return &reduction{r.Start, &r.Ends, nil}
	}
	config := c.jobOf(x.transport, x.suite, x.seed, i)
	config.Workers, config.First = workers, i*workers
	j := sim.NewJob(n, config)
	return &reduction{j.Start, &j.Ends, j}
}

// countIterations takes those that ended in time. Each has a computation before it: that of the
// first ends when the job begins.
func (o *outcome) countIterations(ends []sim.Time, begin, end sim.Time) {
	for _, at := range ends {
		if at > end {
			break
		}
		o.Iterations++
		o.total += at - begin
		begin = at
	}
}

func (o *outcome) countRepairs(j *sim.Job) {
	if j == nil {
		return
	}
	for _, w := range j.Members {
		o.Asks += w.Asks
	}
	for _, card := range j.Cards {
		o.Replays += card.Replays + card.Repeats
	}
}

func (o *outcome) countFlows(flows []*sim.Transfer, begin, end, now sim.Time) {
	for _, f := range flows {
		if f.Bytes >= shortBytes || f.Begin < begin || f.Begin >= end {
			continue
		}
		done := f.End
		if done == 0 {
			o.Unfinished++
			done = now
		}
		o.times = append(o.times, (done-f.Begin).Seconds()*1e6)
	}
}

func (o *outcome) countQueues(n *sim.Network) {
	for _, p := range n.CorePorts() {
		o.HighestKB = max(o.HighestKB, float64(p.Highest)/1000)
		o.core.marked += p.Marked
		o.core.packets += p.Packets
		o.Dropped += p.Dropped
	}
	o.Dropped += n.HostDrops()
}

// merge makes a cell of the outcomes of all its seeds.
func merge(outcomes []outcome) cell {
	all := outcomes[0].cell
	all.Iterations, all.Unfinished, all.Dropped, all.Asks, all.Replays, all.Events = 0, 0, 0, 0, 0, 0
	var times []float64
	var total sim.Time
	var marked, packets int64
	for _, o := range outcomes {
		all.Iterations += o.Iterations
		all.Unfinished += o.Unfinished
		all.Dropped += o.Dropped
		all.Asks += o.Asks
		all.Replays += o.Replays
		all.Events += o.Events
		all.HighestKB = max(all.HighestKB, o.HighestKB)
		total += o.total
		marked += o.core.marked
		packets += o.core.packets
		times = append(times, o.times...)
		if p := percentile(o.times, 0.99); p > 0 {
			all.MostP99 = max(all.MostP99, p)
			if all.LeastP99 == 0 || p < all.LeastP99 {
				all.LeastP99 = p
			}
		}
	}
	if all.Iterations > 0 {
		all.IterationMS = total.Seconds() * 1e3 / float64(all.Iterations)
	}
	if packets > 0 {
		all.Marked = float64(marked) / float64(packets)
	}
	all.Short = len(times)
	all.MedianUS, all.P99US = percentile(times, 0.5), percentile(times, 0.99)
	return all
}

// percentile returns the smallest value that a fraction of the values does not exceed, or 0 if
// there are none.
func percentile(values []float64, fraction float64) float64 {
	if len(values) == 0 {
		return 0
	}
	ordered := slices.Sorted(slices.Values(values))
	rank := int(fraction * float64(len(ordered)))
	if float64(rank) == fraction*float64(len(ordered)) && rank > 0 {
		rank--
	}
	return ordered[rank]
}

// runAll simulates the suites, several experiments at once. The order in which they end does not
// change the cells.
func (c *configuration) runAll(ctx context.Context, suites []suite, parallel int, progress func(sim.Time)) ([]cell, error) {
	list := c.experiments(suites)
	outcomes := make([]outcome, len(list))
	errs := make([]error, len(list))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for i := range next {
				if outcomes[i], errs[i] = c.run(ctx, list[i], progress); errs[i] != nil {
					cancel()
				}
			}
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	workers.Wait()
	if err := firstError(errs); err != nil {
		return nil, err
	}
	var cells []cell
	for first := 0; first < len(list); {
		seeds := len(list[first].suite.Seeds)
		cells = append(cells, merge(outcomes[first:first+seeds]))
		first += seeds
	}
	return cells, nil
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
