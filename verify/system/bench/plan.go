package main

// Plans: seeded random networks beside proven optima and baselines, and fat-trees of thousands of
// workers beside their bounds.

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"tributary/driver/planner"
	"tributary/driver/planner/check"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
)

// planNetworks is the number of random networks.
const planNetworks = 200

// planRows measures the planners.
func planRows(ctx context.Context) ([]Row, error) {
	solver, err := highs.Find(ctx, "")
	if err != nil {
		return nil, err
	}
	rows, err := planSmallRows(ctx, solver)
	if err != nil {
		return nil, err
	}
	for _, size := range []struct {
		topo        string
		with, alone float64 // seconds at most
		what        string
	}{
		{"fat-tree:k=16,hosts=8,ports=32,rate=1600,over=2", 30, 5, "1,023 workers"},
		{"fat-tree:k=16,hosts=32,ports=16,rate=800,over=2", 60, 20, "4,095 workers"},
		{"fat-tree:k=16,hosts=32,ports=16,rate=800,over=2,servers=4", 60, 20, "4,092 workers, 4 servers"},
	} {
		more, err := planLargeRows(ctx, size.topo, size.what, size.with, size.alone)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// planSmallRows plans for random networks in all ways.
func planSmallRows(ctx context.Context, solver *highs.Solver) ([]Row, error) {
	shares := map[string][]float64{} // of the optimum, by planner
	wrong, easy := 0, 0
	for seed := range planNetworks {
		if seed%20 == 0 {
			progress("planning for random networks: %d of %d", seed, planNetworks)
		}
		topo, err := topology.Generate(fmt.Sprintf("random:seed=%d", seed))
		if err != nil {
			return nil, err
		}
		plans := map[string]*plan.Plan{}
		for _, name := range []string{"exact", "grid", "none", "nearest", "atp"} {
			p, err := planner.Make(ctx, topo, planner.Options{Planner: name, Solver: solver, Limit: highs.Options{Time: time.Minute}})
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", topo.Name, name, err)
			}
			if len(check.Plan(topo, p)) > 0 {
				wrong++
			}
			plans[name] = p
		}
		if exact := plans["exact"]; exact.Bound.Cmp(exact.Rate.Rat) != 0 {
			return nil, fmt.Errorf("%s: the optimum is not proved", topo.Name)
		}
		for name, p := range plans {
			share, _ := new(big.Rat).Quo(p.Rate.Rat, plans["exact"].Rate.Rat).Float64()
			shares[name] = append(shares[name], share)
		}
		if shares["nearest"][seed] >= 0.9 {
			easy++
		}
	}
	for _, s := range shares {
		slices.Sort(s)
	}
	median := func(name string) float64 { return shares[name][planNetworks/2] }
	rows := []Row{
		Row{Name: fmt.Sprintf("plans: wrong ones, %d networks, 5 planners", planNetworks), Value: float64(wrong), Unit: "plans"}.must("none", wrong == 0),
		Row{Name: "plans: grid, median", Value: median("grid"), Unit: "of the optimum"}.must("1", median("grid") == 1),
		Row{Name: "plans: grid, worst", Value: shares["grid"][0], Unit: "of the optimum"}.must("at least 0.85; aim 0.95", shares["grid"][0] >= 0.85),
		Row{Name: "plans: networks where nearest reaches 0.9", Value: float64(easy), Unit: "networks"}.must("at most half", 2*easy <= planNetworks),
	}
	for _, name := range []string{"none", "nearest", "atp"} {
		rows = append(rows, Row{Name: "plans: communication time of grid, median", Value: 1 / median("grid"), Unit: "of the optimum's", Holds: true}.beside(name, 1/median(name)))
	}
	return rows, nil
}

// planLargeRows plans for a fat-tree in processes of their own, with and without the solver.
func planLargeRows(ctx context.Context, topo, what string, with, alone float64) ([]Row, error) {
	var rows []Row
	name := "grid"
	t, err := topology.Generate(topo)
	if err != nil {
		return nil, err
	}
	if len(t.Of(topology.Server)) > 1 {
		name = "inart"
	}
	for _, way := range []struct {
		flag, text string
		most       float64
	}{{"-no-solver=false", "with a bound", with}, {"-no-solver", "without HiGHS", alone}} {
		progress("planning for %s, %s", what, way.text)
		out := filepath.Join(folder, "plan.json")
		c := exec.CommandContext(ctx, "bin/tributary", "plan", topo, "-planner", name, way.flag, "-o", out)
		c.Stderr = os.Stderr
		began := time.Now()
		if err := c.Run(); err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		seconds := time.Since(began).Seconds()
		p, err := plan.Read(out)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{Name: fmt.Sprintf("plans: %s, %s", what, way.text), Value: seconds, Unit: "s"}.must(fmt.Sprintf("at most %g s", way.most), seconds <= way.most))
		if p.Gap != nil {
			rows = append(rows, Row{Name: fmt.Sprintf("plans: %s, rate", what), Value: 1 - *p.Gap, Unit: "of the bound"}.must("at least 0.90; aim 0.95", *p.Gap <= 0.1))
		}
		usage := c.ProcessState.SysUsage().(*syscall.Rusage)
		if p.Gap != nil {
			beside, err := planTimes(ctx, t, p, what)
			if err != nil {
				return nil, err
			}
			rows = append(rows, beside...)
		}
		rows = append(rows, Row{Name: fmt.Sprintf("plans: %s, memory %s", what, way.text), Value: float64(usage.Maxrss) / (1 << 20), Unit: "GiB"}.must("at most 2 GiB", usage.Maxrss < 2<<20))
	}
	return rows, nil
}

// planTimes compares the communication time of a plan, for 1 GB of each worker, with that of each baseline.
func planTimes(ctx context.Context, t *topology.Topology, p *plan.Plan, what string) (rows []Row, err error) {
	seconds := func(p *plan.Plan) float64 {
		s, _ := new(big.Rat).Quo(big.NewRat(8, 1), p.Rate.Rat).Float64()
		return s
	}
	for _, name := range []string{"none", "nearest", "atp"} {
		other, err := planner.Make(ctx, t, planner.Options{Planner: name})
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", t.Name, name, err)
		}
		rows = append(rows, Row{Name: fmt.Sprintf("plans: %s, communication time", what), Value: seconds(p), Unit: "s for 1 GB", Holds: true}.beside(name, seconds(other)))
	}
	return rows, nil
}
