package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tributary/driver/planner"
	"tributary/driver/planner/check"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/plan"
	"tributary/driver/planner/simulate"
	"tributary/driver/planner/topology"
)

// simulateFlags is the command line of tributary plan simulate.
type simulateFlags struct {
	bytes   int64
	traffic string
	fail    []string
	leave   []string
	replan  bool
	json    bool
}

func newPlanSimulate() *cobra.Command {
	f := &simulateFlags{}
	cmd := &cobra.Command{
		Use:   "simulate TOPO PLAN",
		Short: "Run a plan in a fluid simulation, beside other traffic",
		Long: `Simulates one reduction by a plan: rates are max-min fair, and exact. Alone, a plan
has its own rate. Other traffic comes from a JSON file, or from a seed:

  {"flows": [{"from": "S1", "to": "S3", "rate": 2, "start": 0.5, "stop": 1}],
   "failures": [{"link": ["S1", "S2"], "at": 0.1}, {"node": "W1", "at": 0.2}]}

"path", a list of nodes, replaces a flow's shortest path. Rates are in Gb/s, times in
seconds. Chunks of a tree that has failed move to the other trees, or to those of a new
plan (-replan). A worker that leaves is missing from the sums from then on.`,
		Example: `  tributary plan simulate topo.json plan.json -bytes 100000000
  tributary plan simulate topo.json plan.json -traffic 7:100
  tributary plan simulate topo.json plan.json -traffic traffic.json -json
  tributary plan simulate topo.json plan.json -fail S1,S2@0.01 -replan`,
		Args: exactly("TOPO, the topology,", "PLAN, the plan,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), args[0], args[1])
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&f.bytes, "bytes", 100_000_000, "each worker's gradients have `N` bytes")
	flags.StringVar(&f.traffic, "traffic", "", "other traffic: a `FILE`, or SEED:N for N random flows")
	flags.StringArrayVar(&f.fail, "fail", nil, "the link between two nodes fails: `A,B@SECONDS`")
	flags.StringArrayVar(&f.leave, "leave", nil, "a worker, switch or server leaves: `NODE@SECONDS`")
	flags.BoolVar(&f.replan, "replan", false, "after a failure, plan again by the same planner")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// checkedPlan reads a plan and its topology, and counts the plan's loads.
func checkedPlan(topo, file string) (*topology.Topology, *plan.Plan, error) {
	p, err := plan.Read(file)
	if err != nil {
		return nil, nil, err
	}
	fill, err := defaults(p.Filled)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: \"filled\": %v", file, err) // no usage error: the file is wrong
	}
	t, err := openTopology(topo, fill)
	if err != nil {
		return nil, nil, err
	}
	if err := supply(t, p.Filled.Cards); err != nil {
		return nil, nil, fmt.Errorf("%s: \"filled\": %v", file, err)
	}
	if wrong := check.Plan(t, p); len(wrong) > 0 {
		return nil, nil, fmt.Errorf("%s is wrong for %s:\n  %s", file, topo, strings.Join(wrong, "\n  "))
	}
	return t, p, nil
}

func (f *simulateFlags) run(ctx context.Context, out io.Writer, topo, file string) error {
	if f.bytes < 1 || f.bytes > 1<<50 {
		return usagef("-bytes %d: it must be 1 to 2^50", f.bytes)
	}
	t, p, err := checkedPlan(topo, file)
	if err != nil {
		return err
	}
	o := simulate.Options{Bytes: f.bytes}
	if o.Traffic, err = f.read(t); err != nil {
		return err
	}
	if f.replan {
		o.Replan = func(rest *topology.Topology) (*plan.Plan, error) { return planAgain(ctx, rest, p) }
	}
	r, err := simulate.Run(t, p, o)
	var input *simulate.InputError
	switch {
	case errors.As(err, &input) && f.traffic != "":
		return fmt.Errorf("%s: %w", f.traffic, err)
	case errors.As(err, &input):
		return usageError{err}
	case err != nil:
		return err
	}
	if f.json {
		return printJSON(out, r)
	}
	return printSimulation(out, file, r)
}

// planAgain plans for what is left of a topology, as a plan was made.
func planAgain(ctx context.Context, rest *topology.Topology, p *plan.Plan) (*plan.Plan, error) {
	trees := map[plan.ID]int{}
	most := 1
	for _, t := range p.Trees {
		trees[t.Server]++
		most = max(most, trees[t.Server])
	}
	o := planner.Options{Planner: p.Planner, Trees: most, Seed: p.Seed, Limit: highs.Options{Time: planTime}}
	if p.Planner != "exact" {
		o.Limit.Nodes = planNodes
	}
	if p.Solver != "" {
		var missing *highs.Missing
		switch o.Solver, o.Missing = highs.Find(ctx, ""); {
		case errors.As(o.Missing, &missing): // it plans on without a bound
		case o.Missing != nil:
			return nil, o.Missing
		}
	}
	return planner.Make(ctx, rest, o)
}

// read reads the traffic that the flags name.
func (f *simulateFlags) read(t *topology.Topology) (traffic simulate.Traffic, err error) {
	seed, count, random := strings.Cut(f.traffic, ":")
	s, wrong := strconv.ParseUint(seed, 10, 64)
	n, also := strconv.Atoi(count)
	switch {
	case f.traffic == "":
	case random && wrong == nil && also == nil:
		if n < 1 || n > 10_000 {
			return traffic, usagef("-traffic %s: it must be 1 to 10,000 flows", f.traffic)
		}
		traffic.Flows = simulate.Random(t, s, n)
	default:
		read, err := simulate.Read(f.traffic)
		if err != nil {
			return traffic, err
		}
		traffic = *read
	}
	for _, text := range f.fail {
		ends, at, err := atTime(text)
		if err != nil {
			return traffic, usagef("-fail %s: %v", text, err)
		}
		link, err := linkNamed(t, ends)
		if err != nil {
			return traffic, usagef("-fail %s: %v", text, err)
		}
		traffic.Failures = append(traffic.Failures, simulate.Failure{Link: link, At: at})
	}
	for _, text := range f.leave {
		name, at, err := atTime(text)
		if err != nil {
			return traffic, usagef("-leave %s: %v", text, err)
		}
		id, known := nodeNamed(t, name)
		if !known {
			return traffic, usagef("-leave %s: no node has the id %q", text, name)
		}
		traffic.Failures = append(traffic.Failures, simulate.Failure{Node: &id, At: at})
	}
	return traffic, nil
}

// atTime cuts WHAT@SECONDS.
func atTime(text string) (what string, at plan.Quantity, err error) {
	i := strings.LastIndexByte(text, '@')
	if i < 0 || at.UnmarshalJSON([]byte(text[i+1:])) != nil || at.Sign() < 0 {
		return "", at, errors.New("write the time behind it, in seconds, as in S1@0.5")
	}
	return text[:i], at, nil
}

// nodeNamed finds a node by the text of its id.
func nodeNamed(t *topology.Topology, name string) (plan.ID, bool) {
	for _, n := range t.Nodes {
		if n.ID.Text == name {
			return plan.ID(n.ID), true
		}
	}
	return plan.ID{}, false
}

// linkNamed finds a link by its ends, A,B. Ids may have commas.
func linkNamed(t *topology.Topology, ends string) ([]plan.ID, error) {
	for _, l := range t.Links {
		a, b := t.Nodes[l.Ends[0]].ID, t.Nodes[l.Ends[1]].ID
		if ends == a.Text+","+b.Text || ends == b.Text+","+a.Text {
			return []plan.ID{plan.ID(a), plan.ID(b)}, nil
		}
	}
	return nil, fmt.Errorf("no link joins such nodes; write its two ends, as in S1,S2@0.5")
}

// printSimulation prints a summary.
func printSimulation(out io.Writer, file string, r *simulate.Result) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "%s: %d bytes of each worker\n", file, r.Bytes)
	fmt.Fprintf(w, "  plan\t%s\n", gbps(r.Plan))
	if r.Seconds != nil {
		fmt.Fprintf(w, "  rate\t%s\n", gbps(*r.Rate))
		fmt.Fprintf(w, "  time\t%s s\n", r.Seconds.FloatString(6))
	} else {
		fmt.Fprintf(w, "  time\tnever: %s\n", r.Why)
	}
	for _, p := range r.Phases {
		rates := make([]string, len(p.Trees))
		for i, rate := range p.Trees {
			rates[i] = rate.FloatString(4)
		}
		fmt.Fprintf(w, "  from %s s\t", p.From.FloatString(6))
		for _, event := range p.Events {
			fmt.Fprintf(w, "%s; ", event)
		}
		fmt.Fprintf(w, "trees at %s Gb/s\n", shorten(rates))
	}
	return w.Flush()
}
