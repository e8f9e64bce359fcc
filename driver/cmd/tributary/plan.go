package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"os"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tributary/driver/planner"
	"tributary/driver/planner/check"
	"tributary/driver/planner/draw"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
	"tributary/driver/reduction"
)

// planFlags is the command line of tributary plan.
type planFlags struct {
	filled  plan.Filled
	summing int

	planner   string
	trees     int
	seed      uint64
	out       string
	highs     string
	noSolver  bool
	nodes     int
	timeLimit time.Duration
	lpFolder  string
	replan    string
	dot, svg  string
	json      bool
}

func newPlan() *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan TOPO",
		Short: "Plan which gradients go through which switch to which server",
		Long: `Plans for a topology, NetworkX node-link JSON or GraphML, which switch sums the
gradients of which workers, by which paths, and at which rate. Nodes have a "kind":
switch (also without one), worker or server; a "rate" in Gb/s; and a switch that can
sum has "ports". Links have a "capacity". Flags fill in what the file does not have.
TOPO can also be a regular network: fat-tree:k=8,rate=400, with hosts=N (at each edge
switch), servers=N, capacity=RATE, over=N, ports=N and rate=RATE; or leaf-spine: with
leaves=N and spines=N instead of k.

A planner is
  grid     one server; a linear relaxation, randomized rounding and a repair
  inart    several servers; it splits the model over them, and chooses routes
  exact    the optimum, for small topologies; it needs a solver
  none     no switch sums
  nearest  the nearest switch sums as far as it can
  atp      two levels of switches sum

-trees N lets all but none use N trees to each server: the chunks are divided over them.

The solver is HiGHS (pip install highsbox). With it a plan has a bound, which no plan
exceeds. The same seed and version of the solver give the same plan each time.`,
		Example: `  tributary plan topo.json -o plan.json
  tributary plan topo.json -planner inart -trees 2 -o plan.json
  tributary plan fat-tree:k=8,ports=16,rate=400
  tributary plan zoo.graphml -capacity 100 -workers 32 -servers 1 -ports 8 -switch-rate 400
  tributary plan check topo.json plan.json
  tributary plan topo.json -trees 4 -svg plan.svg
  tributary plan topo.json -json | jq .rate`,
		Args: exactly("TOPO, the topology,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkRegular(args[0], cmd.Flags()); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.planner, "planner", "grid", "plan by `NAME`: "+strings.Join(planner.Names, ", "))
	flags.IntVar(&f.trees, "trees", 1, "use at most `N` trees to each server")
	flags.Uint64Var(&f.seed, "seed", 0, "`N` is the seed of rounding, and of what is placed")
	flags.StringVarP(&f.out, "out", "o", "", "write the plan to `FILE`")
	flags.StringVar(&f.filled.Capacity, "capacity", "", "capacity of links without one: `RATE`, as in 100 (Gb/s), 100G or 400M")
	flags.StringVar(&f.filled.WorkerRate, "worker-rate", "", "`RATE` of workers without one (default no limit but their links)")
	flags.StringVar(&f.filled.SwitchRate, "switch-rate", "", "`RATE` at which switches without one sum (default no limit)")
	flags.StringVar(&f.filled.ServerRate, "server-rate", "", "`RATE` that servers without one take in (default no limit)")
	flags.IntVar(&f.filled.Ports, "ports", 0, "switches without ports can sum `N` streams (default they cannot sum)")
	flags.IntVar(&f.summing, "summing", -1, "only `N` of these switches can, chosen by the seed (default all)")
	flags.Lookup("summing").DefValue = "0" // the text has the default
	flags.IntVar(&f.filled.Workers, "workers", 0, "place `N` workers at switches chosen by the seed")
	flags.IntVar(&f.filled.Servers, "servers", 0, "place `N` servers likewise")
	flags.StringArrayVar(&f.filled.Cards, "card", nil, "`NODE=DIR`: the node has the ports, and for a board the rate, of the generated card in a folder")
	flags.StringVar(&f.highs, "highs", "", "use this `PROGRAM` of HiGHS (default highs on PATH, or of the Python package highsbox)")
	flags.BoolVar(&f.noSolver, "no-solver", false, "plan without a solver: there is no bound")
	flags.IntVar(&f.nodes, "nodes", planNodes, "stop each whole-number program of grid after `N` nodes")
	flags.DurationVar(&f.timeLimit, "time-limit", planTime, "stop each program after `TIME`; if that happens, the plan says so, and may differ between runs")
	flags.StringVar(&f.lpFolder, "write-lp", "", "keep the programs in `FOLDER`, in the LP format")
	flags.StringVar(&f.replan, "replan", "", "keep the split over the servers of the plan in `FILE` (inart)")
	flags.StringVar(&f.dot, "dot", "", "write a graph for Graphviz to `FILE`")
	flags.StringVar(&f.svg, "svg", "", "write a drawing to `FILE`")
	flags.BoolVar(&f.json, "json", false, "print the plan as JSON")
	cmd.AddCommand(newPlanCheck(), newPlanSimulate(), newPlanRun())
	return cmd
}

// checkRegular refuses flags that fill in a file if the topology is a regular network.
func checkRegular(name string, flags *pflag.FlagSet) (err error) {
	if !topology.Generated(name) {
		return nil
	}
	flags.Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "capacity", "worker-rate", "switch-rate", "server-rate", "ports", "summing", "workers", "servers":
			err = cmp.Or(err, usagef("-%s: it is for a topology in a file; a regular network has parameters, as in fat-tree:k=8,capacity=100,servers=2", flag.Name))
		}
	})
	return err
}

// Limits of a run of the solver, unless flags give others.
const (
	planNodes = 200
	planTime  = 2 * time.Minute
)

// mostPlaced is the largest number of workers, or of servers, that flags place.
const mostPlaced = 1 << 16

// defaults returns what the flags of a topology say.
func defaults(f plan.Filled) (d topology.Defaults, err error) {
	d = topology.Defaults{Ports: f.Ports, Workers: f.Workers, Servers: f.Servers, Seed: f.Seed, Summing: -1}
	if f.Summing != nil {
		d.Summing = *f.Summing
	}
	for _, q := range []struct {
		flag, text string
		to         **big.Rat
	}{{"capacity", f.Capacity, &d.Capacity}, {"worker-rate", f.WorkerRate, &d.WorkerRate}, {"switch-rate", f.SwitchRate, &d.SwitchRate}, {"server-rate", f.ServerRate, &d.ServerRate}} {
		if q.text == "" {
			continue
		}
		rate, _, err := topology.Quantity(q.text)
		if err == nil && rate.Sign() <= 0 {
			err = errors.New("it must be more than 0")
		}
		if err != nil {
			return d, usagef("-%s %s: %v", q.flag, q.text, err)
		}
		*q.to = rate
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"ports", f.Ports}, {"workers", f.Workers}, {"servers", f.Servers}} {
		switch {
		case n.value < 0:
			return d, usagef("-%s %d: it must not be negative", n.flag, n.value)
		case n.value > mostPlaced && n.flag != "ports":
			return d, usagef("-%s %d: it must be at most %d", n.flag, n.value, mostPlaced)
		}
	}
	return d, nil
}

func (f *planFlags) run(ctx context.Context, out io.Writer, path string) error {
	f.filled.Seed = f.seed
	if f.summing >= 0 {
		f.filled.Summing = &f.summing
	}
	fill, err := defaults(f.filled)
	switch {
	case err != nil:
		return err
	case f.trees < 1 || f.trees > 64:
		return usagef("-trees %d: it must be 1 to 64", f.trees)
	case f.nodes < 1:
		return usagef("-nodes %d: it must be 1 or more", f.nodes)
	case f.timeLimit <= 0:
		return usagef("-time-limit %v: it must be more than 0", f.timeLimit)
	case f.summing < -1:
		return usagef("-summing %d: it must be 0 or more", f.summing)
	case f.noSolver && f.highs != "":
		return usagef("-highs and -no-solver: give one of them")
	case f.noSolver && f.lpFolder != "":
		return usagef("-write-lp and -no-solver: without a solver there are no programs to keep")
	}
	if err := f.checkFiles(path); err != nil {
		return err
	}
	t, err := openTopology(path, fill)
	if err == nil {
		err = supply(t, f.filled.Cards)
	}
	if err != nil {
		return err
	}
	options, err := f.options(ctx)
	if err != nil {
		return err
	}
	p, err := planner.Make(ctx, t, options)
	var input *planner.InputError
	if errors.As(err, &input) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	p.Filled = f.filled
	if wrong := check.Plan(t, p); len(wrong) > 0 {
		return fmt.Errorf("the planner made a wrong plan, which is a bug: %s", wrong[0])
	}
	if err := f.write(ctx, t, p); err != nil {
		return err
	}
	if f.json {
		data, err := p.Format()
		if err == nil {
			_, err = out.Write(data)
		}
		return err
	}
	return printPlan(out, f.out, p)
}

// files are the outputs, by flag.
func (f *planFlags) files() map[string]string {
	files := map[string]string{"-o": f.out, "-dot": f.dot, "-svg": f.svg}
	maps.DeleteFunc(files, func(_, path string) bool { return path == "" })
	return files
}

// checkFiles refuses outputs that cannot be written, that are the topology, or that are one file.
func (f *planFlags) checkFiles(topo string) error {
	files := f.files()
	for _, flag := range slices.Sorted(maps.Keys(files)) {
		path := files[flag]
		delete(files, flag)
		if reduction.SameFile(path, slices.Collect(maps.Values(files))) != "" {
			return usagef("%s %s: another flag names this file too", flag, path)
		}
		if reduction.SameFile(path, []string{topo}) != "" {
			return usagef("%s %s: it is the topology; name another file", flag, path)
		}
		if err := reduction.CheckReplace(path); err != nil {
			return flagPath(flag, err)
		}
	}
	return nil
}

// write writes the files, each whole or not at all.
func (f *planFlags) write(ctx context.Context, t *topology.Topology, p *plan.Plan) error {
	for flag, path := range f.files() {
		data, err := p.Format()
		switch {
		case err != nil:
			return err
		case flag == "-dot":
			data = draw.Dot(t, p)
		case flag == "-svg":
			data = draw.SVG(t, p)
		}
		err = reduction.Replace(ctx, path, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
		if err != nil {
			return flagPath(flag, err)
		}
	}
	return nil
}

// openTopology reads a topology, or generates a regular one. Flags change nothing of the latter.
func openTopology(name string, fill topology.Defaults) (*topology.Topology, error) {
	if topology.Generated(name) {
		return topology.Generate(name)
	}
	return topology.Open(name, fill)
}

// options returns the options of the planner.
func (f *planFlags) options(ctx context.Context) (o planner.Options, err error) {
	o = planner.Options{Planner: f.planner, Trees: f.trees, Seed: f.seed, Limit: highs.Options{Time: f.timeLimit}}
	if f.planner != "exact" {
		o.Limit.Nodes = f.nodes
	}
	if f.replan != "" {
		if o.Replan, err = plan.Read(f.replan); err != nil {
			return o, err
		}
	}
	if f.noSolver {
		o.Missing = errors.New("-no-solver was given")
		return o, nil
	}
	o.Solver, err = highs.Find(ctx, f.highs)
	var missing *highs.Missing
	if errors.As(err, &missing) && f.highs == "" && f.lpFolder == "" {
		o.Missing = err
		return o, nil
	}
	if err != nil {
		return o, err
	}
	if f.lpFolder != "" {
		o.Solver.Keep = f.lpFolder
		err = os.MkdirAll(f.lpFolder, 0o755)
	}
	return o, err
}

// gbps formats a rate: exactly if that is short, otherwise with four digits and the fraction.
func gbps(q plan.Quantity) string {
	text, _ := q.MarshalJSON()
	if text[0] != '"' {
		return string(text) + " Gb/s"
	}
	return fmt.Sprintf("%s Gb/s (%s)", q.FloatString(4), q.RatString())
}

// printPlan prints a summary of a plan.
func printPlan(out io.Writer, file string, p *plan.Plan) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	if file != "" {
		fmt.Fprintf(w, "%s: a plan for %s\n", file, p.Topology)
	} else {
		fmt.Fprintf(w, "a plan for %s\n", p.Topology)
	}
	fmt.Fprintf(w, "  planner\t%s\n", p.Planner)
	fmt.Fprintf(w, "  rate\t%s\n", gbps(p.Rate))
	if p.Bound != nil {
		fmt.Fprintf(w, "  bound\t%s; the rate is %.1f %% of it\n", gbps(*p.Bound), 100*(1-*p.Gap))
	}
	for i, t := range p.Trees {
		fmt.Fprintf(w, "  tree %d\t%s to %s, %s\n", i, gbps(t.Rate), t.Server.Text, summedAt(t))
	}
	fmt.Fprintf(w, "  full\t%s\n", full(p.Loads))
	for _, note := range p.Notes {
		fmt.Fprintf(w, "  note\t%s\n", note)
	}
	return w.Flush()
}

// summedAt names the switches that sum in a tree.
func summedAt(t plan.Tree) string {
	if len(t.Sums) == 0 {
		return "no switch sums"
	}
	var names []string
	for _, s := range t.Sums {
		names = append(names, s.Switch.Text)
	}
	return "summed at " + shorten(names)
}

// shorten lists names; of many, the first ones.
func shorten(names []string) string {
	const most = 6
	if len(names) > most {
		names = append(names[:most:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}

// full names what is loaded to its capacity.
func full(l plan.Loads) string {
	var names []string
	for _, link := range l.Links {
		if link.Load.Cmp(link.Capacity.Rat) == 0 {
			names = append(names, "link "+link.From.Text+" to "+link.To.Text)
		}
	}
	for kind, nodes := range map[string][]plan.NodeLoad{"switch ": l.Switches, "server ": l.Servers, "worker ": l.Workers} {
		for _, n := range nodes {
			if n.Capacity != nil && n.Load.Cmp(n.Capacity.Rat) == 0 {
				names = append(names, kind+n.Node.Text)
			}
		}
	}
	sort.Strings(names)
	return shorten(names)
}

func newPlanCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check TOPO PLAN",
		Short: "Count every load of a plan again",
		Long: `Counts the loads of a plan again, and compares them with the capacities of the
topology and with the loads that the plan lists. It shares no code with the planners.
What flags gave the topology is in the plan.`,
		Example: `  tributary plan check topo.json plan.json`,
		Args:    exactly("TOPO, the topology,", "PLAN, the plan,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPlanCheck(cmd.OutOrStdout(), args[0], args[1])
		},
	}
}

func runPlanCheck(out io.Writer, topo, file string) error {
	_, p, err := checkedPlan(topo, file)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %s, and no load exceeds its capacity\n", file, gbps(p.Rate))
	return err
}
