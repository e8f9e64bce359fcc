package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver/element"
	"tributary/driver/planner/plan"
	planrun "tributary/driver/planner/run"
	"tributary/driver/planner/topology"
	"tributary/driver/wire"
)

// planRunFlags is the command line of tributary plan run.
type planRunFlags struct {
	options    planrun.Options
	format     formatFlag
	sum        string
	lanes      count
	chunk      count
	jobs       count
	cards      []string
	elements   count
	reductions count
	late       []string
	fail       []string
	leave      []string
	failCard   []string
	json       bool
}

func newPlanRun() *cobra.Command {
	f := &planRunFlags{lanes: 16, jobs: 4, elements: 100_000, reductions: 3}
	cmd := &cobra.Command{
		Use:   "run TOPO PLAN",
		Short: "Carry a plan out on cards in software",
		Long: `Sets a plan up: each switch that sums, and each server, is a card; each tree of the
plan is a tree of cards. All workers run in this process, sum random arrays, and compare
every bit with the Go models of the cards. Cards are in software and in this process,
unless -card names others. Up to 64 workers.

-fail, -leave and -fail-card take effect during the second half of the reductions: the
planner plans again, and the reduction in progress goes on by the new plan.`,
		Example: `  tributary plan run topo.json plan.json
  tributary plan run topo.json plan.json -format int32 -loss 0.001 -late W3@100ms
  tributary plan run topo.json plan.json -fail S1,S3 -sum exact
  tributary plan run topo.json plan.json -card S1=tributary_l16_w8_fp32_tree`,
		Args: exactly("TOPO, the topology,", "PLAN, the plan,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), args[0], args[1])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.options.Scheme, "scheme", "cpu", "cards in software are `KIND`: cpu, or model")
	flags.Var(&f.format, "format", "`FORMAT` of the arrays (default fp32)")
	flags.StringVar(&f.sum, "sum", "tree", "`SUM` of the cards")
	flags.Var(&f.lanes, "lanes", "`N` lanes of cards in software")
	flags.Var(&f.chunk, "chunk", "`N` elements in a chunk (default what Ethernet's MTU carries)")
	flags.Var(&f.jobs, "jobs", "cards in software hold `N` jobs, a power of two to 16, or more if the plan needs them")
	flags.StringArrayVar(&f.cards, "card", nil, "`NODE=CARD`: the folder of a generated card, which a card in software is like, or the name of a card, as in udp:192.0.2.7 (default those of the plan)")
	flags.DurationVar(&f.options.RoundTrip, "round-trip", 20*time.Microsecond, "windows carry each tree's rate for this `TIME`")
	flags.DurationVar(&f.options.Timeout, "timeout", 10*time.Second, "give up after this `TIME` without progress")
	flags.Float64Var(&f.options.Loss, "loss", 0, "cards in software lose this `SHARE` of packets")
	flags.Uint64Var(&f.options.Seed, "seed", 0, "`N` is the seed of arrays and losses")
	flags.Var(&f.elements, "elements", "`N` elements in an array")
	flags.Var(&f.reductions, "reductions", "sum `N` times")
	flags.StringArrayVar(&f.late, "late", nil, "a worker comes late to each reduction: `WORKER@TIME`, as in W1@100ms")
	flags.StringArrayVar(&f.fail, "fail", nil, "the link between two nodes fails: `A,B`")
	flags.StringArrayVar(&f.leave, "leave", nil, "the worker, switch or server `NODE` leaves")
	flags.StringArrayVar(&f.failCard, "fail-card", nil, "the card of the switch `NODE` fails; the switch goes on forwarding")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// sumNamed returns the sum with a name.
func sumNamed(name string) (wire.Sum, error) {
	var names []string
	for _, s := range wire.Sums {
		if s.Name == name {
			return s.Sum, nil
		}
		names = append(names, s.Name)
	}
	return 0, usagef("-sum %s: it must be one of %s", name, strings.Join(names, ", "))
}

// mostArrayBytes is the size of all workers' arrays together, at most.
const mostArrayBytes = 1 << 32

// elementSize is the number of bytes of an element.
func (f *planRunFlags) elementSize() int {
	if f.format == 0 {
		return element.Size(wire.FP32)
	}
	return element.Size(wire.Format(f.format))
}

// planRun is a run in progress, and its report.
type planRun struct {
	flags   *planRunFlags
	topo    *topology.Topology
	plan    *plan.Plan
	session *planrun.Session
	late    map[int]time.Duration // by rank
	trouble *trouble

	Plan       string          `json:"plan"`
	Workers    int             `json:"workers"`
	Epochs     []epochReport   `json:"epochs"`
	Reductions []reducedReport `json:"reductions"`
	Lost       uint64          `json:"lost"` // packets
}

// epochReport describes a plan on its cards.
type epochReport struct {
	Why      string         `json:"why,omitempty"` // it took the place of another
	Rate     plan.Quantity  `json:"rate"`
	Chunk    int            `json:"chunk"`    // elements
	Window   int            `json:"window"`   // chunks
	Schedule int            `json:"schedule"` // entries
	Exact    bool           `json:"exact"`    // shares are the rates' own
	Shares   []int          `json:"shares"`   // entries of each tree
	Cards    []runCardState `json:"cards"`
}

// runCardState is a card of a plan.
type runCardState struct {
	Node    string `json:"node"`
	Card    string `json:"card"`
	Ports   int    `json:"ports"`
	Streams int    `json:"streams"` // the most in a tree
	Jobs    int    `json:"jobs"`
}

// reducedReport is a reduction.
type reducedReport struct {
	Epoch   int     `json:"epoch"`
	Again   int     `json:"again"` // how often it was begun again
	Seconds float64 `json:"seconds"`
}

func (f *planRunFlags) run(ctx context.Context, out io.Writer, topo, file string) error {
	r, err := f.prepare(topo, file)
	if err != nil {
		return err
	}
	err = r.run(ctx)
	var input *planrun.InputError
	switch {
	case errors.As(err, &input):
		return usageError{err}
	case err != nil:
		return err
	case f.json:
		return printJSON(out, r)
	}
	return r.print(out)
}

// prepare checks the flags, and reads the files.
func (f *planRunFlags) prepare(topo, file string) (*planRun, error) {
	o := &f.options
	var err error
	if o.Sum, err = sumNamed(f.sum); err != nil {
		return nil, err
	}
	switch {
	case o.Scheme != "cpu" && o.Scheme != "model":
		return nil, usagef("-scheme %s: it must be cpu or model", o.Scheme)
	case o.Loss < 0 || o.Loss >= 1 || math.IsNaN(o.Loss):
		return nil, usagef("-loss %v: it must be 0 or more, and less than 1", o.Loss)
	case o.RoundTrip <= 0 || o.RoundTrip > time.Minute:
		return nil, usagef("-round-trip %v: it must be more than 0, and a minute at most", o.RoundTrip)
	case o.Timeout <= 0:
		return nil, usagef("-timeout %v: it must be more than 0", o.Timeout)
	case f.jobs > wire.MaxJobs || f.jobs&(f.jobs-1) != 0:
		return nil, usagef("-jobs %d: it must be a power of two to %d", f.jobs, wire.MaxJobs)
	case f.chunk%f.lanes != 0:
		return nil, usagef("-chunk %d: it must be a multiple of the %d lanes", f.chunk, f.lanes)
	}
	o.Format, o.Lanes, o.Chunk, o.Jobs = wire.Format(f.format), int(f.lanes), int(f.chunk), int(f.jobs)
	r := &planRun{flags: f, Plan: file, late: map[int]time.Duration{}}
	if r.topo, r.plan, err = checkedPlan(topo, file); err != nil {
		return nil, err
	}
	if o.Cards, err = cardsByNode(r.topo, slices.Concat(r.plan.Filled.Cards, f.cards)); err != nil {
		return nil, err
	}
	ranks := planrun.Ranks(r.topo)
	r.Workers = len(ranks)
	for id := range o.Cards {
		if _, worker := ranks[id]; worker {
			return nil, usagef("-card %s=%s: the node is a worker, and has no card", id.Text, o.Cards[id])
		}
	}
	if most := mostArrayBytes / r.Workers / f.elementSize(); int(f.elements) > most {
		return nil, usagef("-elements %d: the arrays of %d workers are in memory together, so it must be at most %d", f.elements, r.Workers, most)
	}
	for _, text := range f.late {
		name, at, _ := strings.Cut(text, "@")
		id, known := nodeNamed(r.topo, name)
		rank, worker := ranks[id]
		wait, err := time.ParseDuration(at)
		if !known || !worker || err != nil || wait < 0 {
			return nil, usagef("-late %s: write WORKER@TIME, with a worker of the topology, as in W1@100ms", text)
		}
		r.late[rank] = wait
		o.Timeout += wait
	}
	r.trouble, err = f.troubleOf(r.topo, ranks)
	return r, err
}

// cardsByNode parses NODE=CARD. A later one replaces an earlier one of the same node.
func cardsByNode(t *topology.Topology, texts []string) (map[plan.ID]string, error) {
	cards := map[plan.ID]string{}
	for _, text := range texts {
		node, card, given := strings.Cut(text, "=")
		id, known := nodeNamed(t, node)
		if !given || card == "" || !known {
			return nil, usagef("-card %s: write NODE=CARD, with a node of the topology", text)
		}
		cards[id] = card
	}
	return cards, nil
}

// supply gives nodes the ports and the rates of the generated cards that -card names.
func supply(t *topology.Topology, texts []string) error {
	cards, err := cardsByNode(t, texts)
	if err != nil {
		return err
	}
	if err := planrun.Supply(t, cards); err != nil {
		return usagef("-card: %v", err)
	}
	return nil
}

// trouble is what happens to a plan.
type trouble struct {
	what  []string
	links [][]plan.ID
	cards []plan.ID // that fail
	lost  topology.Removed
	rest  *topology.Topology
}

// troubleOf returns the trouble that the flags name; nil: none. ranks are those of the workers.
func (f *planRunFlags) troubleOf(t *topology.Topology, ranks map[plan.ID]int) (*trouble, error) {
	x := &trouble{}
	for _, ends := range f.fail {
		link, err := linkNamed(t, ends)
		if err != nil {
			return nil, usagef("-fail %s: no link joins such nodes; write its two ends, as in S1,S2", ends)
		}
		x.links = append(x.links, link)
		x.lost.Links = append(x.lost.Links, [2]topology.ID{topology.ID(link[0]), topology.ID(link[1])})
		x.what = append(x.what, "link "+ends+" fails")
	}
	for _, name := range f.leave {
		id, known := nodeNamed(t, name)
		if !known {
			return nil, usagef("-leave %s: no node has this id", name)
		}
		x.cards = append(x.cards, id)
		x.lost.Nodes = append(x.lost.Nodes, topology.ID(id))
		x.what = append(x.what, name+" leaves")
	}
	for _, name := range f.failCard {
		id, known := nodeNamed(t, name)
		if !known {
			return nil, usagef("-fail-card %s: no node has this id", name)
		}
		if _, worker := ranks[id]; worker {
			return nil, usagef("-fail-card %s: the node is a worker, and has no card", name)
		}
		x.cards = append(x.cards, id)
		x.lost.Cards = append(x.lost.Cards, topology.ID(id))
		x.what = append(x.what, "the card of "+name+" fails")
	}
	if x.what == nil {
		return nil, nil
	}
	var err error
	if x.rest, err = t.Without(x.lost); err != nil {
		return nil, fmt.Errorf("after %s: %w", strings.Join(x.what, " and "), err)
	}
	return x, nil
}

// run makes the reductions.
func (r *planRun) run(ctx context.Context) (err error) {
	if r.session, err = planrun.New(ctx, r.topo, r.plan, r.flags.options); err != nil {
		return err
	}
	defer func() {
		r.Lost = r.session.Lost()
		if failed := r.session.Close(ctx); err == nil {
			err = failed
		}
	}()
	r.note(r.plan, "")
	for i := range int(r.flags.reductions) {
		if err := r.reduce(ctx, i, r.trouble != nil && i == int(r.flags.reductions)/2); err != nil {
			return err
		}
	}
	return nil
}

// note describes the current epoch.
func (r *planRun) note(p *plan.Plan, why string) {
	l := r.session.Epoch().Layout
	e := epochReport{Why: why, Rate: p.Rate, Chunk: l.Chunk, Window: l.Window, Schedule: len(l.Schedule), Exact: l.Exact, Shares: make([]int, len(l.Trees))}
	for _, tree := range l.Schedule {
		e.Shares[tree]++
	}
	cards := r.session.Cards()
	for _, n := range l.Nodes {
		info := cards[n.ID].Info()
		e.Cards = append(e.Cards, runCardState{Node: n.ID.Text, Card: info.Name, Ports: info.Ports, Streams: n.Needs, Jobs: n.Jobs})
	}
	r.Epochs = append(r.Epochs, e)
}

// reduce makes a reduction, and compares its bits.
func (r *planRun) reduce(ctx context.Context, number int, trouble bool) error {
	inputs := r.arrays(uint64(number))
	before, failed := r.comeLate, func() error { return nil }
	if trouble {
		before, failed = r.happenDuring(ctx)
	}
	began := time.Now()
	sums, err := r.session.Sum(ctx, inputs, before)
	took := time.Since(began)
	if wrong := failed(); wrong != nil {
		return wrong
	}
	if err != nil {
		return err
	}
	r.Reductions = append(r.Reductions, reducedReport{sums.Epoch.Number, sums.Again, took.Seconds()})
	return r.compare(number, sums, inputs)
}

// comeLate lets a worker wait as long as -late has it.
func (r *planRun) comeLate(ctx context.Context, rank int) {
	if wait := r.late[rank]; wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// happenDuring brings the trouble about when workers have begun a reduction, and one waits for it: so no
// chunk has its sum before. Workers that leave do not begin. failed waits for the next plan's jobs.
func (r *planRun) happenDuring(ctx context.Context) (before func(ctx context.Context, rank int), failed func() error) {
	var coming sync.WaitGroup
	var come sync.Map
	waiting, happened := -1, make(chan struct{})
	leaving := map[int]bool{}
	for id, rank := range planrun.Ranks(r.topo) {
		if leaving[rank] = slices.Contains(r.trouble.lost.Nodes, topology.ID(id)); !leaving[rank] {
			waiting = max(waiting, rank)
		}
	}
	for rank := range r.Workers {
		if rank != waiting && !leaving[rank] {
			coming.Add(1)
		}
	}
	before = func(ctx context.Context, rank int) {
		r.comeLate(ctx, rank)
		switch _, again := come.LoadOrStore(rank, true); {
		case again:
		case leaving[rank]:
			<-ctx.Done()
		case rank == waiting:
			select {
			case <-happened:
			case <-ctx.Done():
			}
		default:
			coming.Done()
		}
	}
	result := make(chan error, 1)
	go func() {
		coming.Wait()
		r.cause()
		close(happened)
		result <- r.planOn(ctx)
	}()
	return before, func() error { return <-result }
}

// cause fails links and cards.
func (r *planRun) cause() {
	for _, link := range r.trouble.links {
		r.session.FailLink(link[0], link[1])
	}
	for _, id := range r.trouble.cards {
		_ = r.session.FailCard(id) // a worker has none, nor has a switch that sums nothing
	}
}

// planOn plans again, and moves to that plan.
func (r *planRun) planOn(ctx context.Context) error {
	p, err := planAgain(ctx, r.trouble.rest, r.plan)
	if err != nil {
		return err
	}
	if err := r.session.Replan(ctx, r.trouble.rest, p, false); err != nil {
		return err
	}
	r.note(p, strings.Join(r.trouble.what, ", "))
	return nil
}

// arrays returns random arrays: of integers all, of other formats numbers from about 1/4 to 4.
func (r *planRun) arrays(number uint64) [][]byte {
	random := rand.New(rand.NewPCG(r.flags.options.Seed, number))
	format := r.flags.options.Format
	if format == 0 {
		format = wire.FP32
	}
	size := element.Size(format)
	all := make([][]byte, r.Workers)
	for w := range all {
		all[w] = make([]byte, int(r.flags.elements)*size)
		for i := range int(r.flags.elements) {
			bits := random.Uint32()
			if format != wire.Int32 {
				bits = element.Round(format, (random.Float64()*4+0.25)*float64(1-2*int(bits&1)))
			}
			element.Put(format, all[w], i, bits)
		}
	}
	return all
}

// compare compares what workers got with the models.
func (r *planRun) compare(number int, sums *planrun.Sums, inputs [][]byte) error {
	want, err := sums.Want(inputs)
	if err != nil {
		return err
	}
	for rank, got := range sums.Bytes {
		if !slices.Equal(got, want) {
			return fmt.Errorf("reduction %d: the worker of rank %d got other bits than the Go models of the cards", number, rank)
		}
	}
	return nil
}

// counted formats a number of things.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// print prints a summary.
func (r *planRun) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "%s: %d workers\n", r.Plan, r.Workers)
	for i, e := range r.Epochs {
		if e.Why != "" {
			fmt.Fprintf(w, "%s\n", e.Why)
		}
		fmt.Fprintf(w, "epoch %d\t%s\n", i+1, gbps(e.Rate))
		fmt.Fprintf(w, "  jobs\tchunks of %d elements, windows of %d chunks\n", e.Chunk, e.Window)
		shares := strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Shares), " ", ", "), "[]")
		exact := ""
		if !e.Exact {
			exact = ", rounded"
		}
		fmt.Fprintf(w, "  schedule\t%s: %s of each tree%s\n", counted(e.Schedule, "entry", "entries"), shares, exact)
		for _, c := range e.Cards {
			fmt.Fprintf(w, "  card %s\t%s: %d of %d ports, %s\n", c.Node, c.Card, c.Streams, c.Ports, counted(c.Jobs, "job", "jobs"))
		}
		for n, red := range r.Reductions {
			if red.Epoch != i+1 {
				continue
			}
			again := ""
			if red.Again > 0 {
				again = ", begun again"
			}
			fmt.Fprintf(w, "  reduction %d\t%.3f s, all bits are the models'%s\n", n, red.Seconds, again)
		}
	}
	if r.Lost > 0 {
		fmt.Fprintf(w, "lost\t%d packets\n", r.Lost)
	}
	return w.Flush()
}
