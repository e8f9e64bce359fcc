package main

// Collectives on links of 100 Mb/s: Rina and rings beside their formulas, and the parallel all-reduce beside
// a flat ring.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"tributary/driver"
	"tributary/driver/collective"
	"tributary/driver/collective/bench"
	"tributary/driver/wire"
)

const (
	slowLink      = 100e6 / 8 // bytes a second
	slowMembers   = 8         // of a group
	slowRounds    = 3         // of which the fastest counts
	slowCalls     = 1         // in a round
	tinyCalls     = 50        // likewise, of tiny arrays
	tinyElements  = slowMembers
	parallelBytes = 8 << 20
	perMachine    = 4 // members
)

// slowSizes are the bytes of the arrays.
var slowSizes = []int{1 << 20, 4 << 20, 16 << 20}

// slowRacks has the racks of members; the last ones have none.
var slowRacks = []string{"0", "0", "1", "1", "2", "2", "", ""}

// slowNodes is the number of nodes of Rina's ring.
const slowNodes = 5

// slowGroup are the members of a group, in this process.
type slowGroup struct {
	folder  string
	members []collective.Collective
}

// openSlow opens a group. describe may change its members, and open opens each.
func openSlow(describe func(g *collective.Group), open func(g collective.Group) (collective.Collective, error)) (*slowGroup, error) {
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	s := &slowGroup{folder: folder}
	g := collective.Group{Name: "bench", Generation: 1}
	for rank := range slowMembers {
		g.Members = append(g.Members, collective.Member{ID: fmt.Sprint("rank", rank), Address: slowAddress(folder, rank)})
	}
	describe(&g)
	for rank := range slowMembers {
		g.Rank = rank
		c, err := open(g)
		if err != nil {
			return nil, errors.Join(err, s.close(context.Background()))
		}
		s.members = append(s.members, c)
	}
	return s, nil
}

func slowAddress(folder string, rank int) string {
	return "unix:" + filepath.Join(folder, strconv.Itoa(rank))
}

// rankAt returns the rank at an address.
func rankAt(address string) int {
	rank, _ := strconv.Atoi(filepath.Base(address))
	return rank
}

// close closes all members, which leave together.
func (s *slowGroup) close(ctx context.Context) error {
	errs := make([]error, len(s.members))
	var wg sync.WaitGroup
	for rank, c := range s.members {
		wg.Go(func() { errs[rank] = c.Close(ctx) })
	}
	wg.Wait()
	return errors.Join(append(errs, os.RemoveAll(s.folder))...)
}

// fastest returns the seconds of an all-reduce of fp32 in the fastest round: other work on the machine
// makes all slower.
func (s *slowGroup) fastest(ctx context.Context, elements, calls int) (float64, error) {
	least := math.Inf(1)
	for round := range slowRounds {
		// To know the sums takes longer than to make them, so the largest arrays are not checked.
		seconds, err := s.measure(ctx, elements, bench.Options{Warmup: max(0, 1-round), Iterations: calls, Check: round == 0 && 4*elements <= slowSizes[0]})
		if err != nil {
			return 0, err
		}
		least = min(least, seconds)
	}
	return least, nil
}

// measure returns the seconds of an all-reduce of fp32: the mean over members and calls.
func (s *slowGroup) measure(ctx context.Context, elements int, o bench.Options) (float64, error) {
	results, errs := make([]bench.Result, len(s.members)), make([]error, len(s.members))
	k := bench.Case{Operation: collective.AllReduceOp, Format: wire.FP32, Elements: elements}
	o.Timeout, o.Seed = time.Minute, 1
	var wg sync.WaitGroup
	for rank, c := range s.members {
		wg.Go(func() { results[rank], errs[rank] = bench.Measure(ctx, c, k, o) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	if wrong := results[0].Wrong; wrong > 0 {
		return 0, fmt.Errorf("%d elements of an all-reduce by %s are wrong", wrong, s.members[0].Algorithm())
	}
	return results[0].Time.Seconds(), nil
}

// collectiveRows measures collectives on slow links.
func collectiveRows(ctx context.Context) (rows []Row, err error) {
	racks, err := rackRows(ctx)
	if err != nil {
		return nil, err
	}
	machines, err := machineRows(ctx)
	return append(racks, machines...), err
}

// rackRows measures Rina and a ring of all members. Every member has a link of its own to the others; cards
// are beside their racks.
func rackRows(ctx context.Context) (rows []Row, err error) {
	links := make([]*rate.Limiter, slowMembers)
	for rank := range links {
		links[rank] = newShape(slowLink)
	}
	out := func(g collective.Group) collective.Option {
		return collective.WithDialer(dialShaped(func(string) *rate.Limiter { return links[g.Rank] }))
	}
	ring, err := openSlow(func(*collective.Group) {}, func(g collective.Group) (collective.Collective, error) {
		return collective.Open(ctx, collective.Ring, g, out(g))
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ring.close(ctx)) }()
	cards, err := openRacks(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cards.close()) }()
	rina, err := openSlow(func(g *collective.Group) {
		for rank := range g.Members {
			g.Members[rank].Rack = slowRacks[rank]
		}
	}, func(g collective.Group) (collective.Collective, error) {
		return collective.OpenRina(ctx, g, cards.config(g.Rank), out(g))
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rina.close(ctx)) }()
	return compareRacks(ctx, rina, ring)
}

// compareRacks measures both groups in turn.
func compareRacks(ctx context.Context, rina, ring *slowGroup) (rows []Row, err error) {
	progress("all-reduce by Rina and by a ring on links of 100 Mb/s")
	var steps pair // the cost of one
	for _, s := range []struct {
		group *slowGroup
		nodes int
		step  *float64
	}{{rina, slowNodes, &steps.value}, {ring, slowMembers, &steps.peer}} {
		tiny, err := s.group.fastest(ctx, tinyElements, tinyCalls)
		if err != nil {
			return nil, err
		}
		*s.step = tiny/float64(2*(s.nodes-1)) - 4*tinyElements/float64(s.nodes)/slowLink
	}
	rows = append(rows, Row{Name: "cost of a step of Rina, tiny arrays", Value: 1e3 * steps.value, Unit: "ms", Holds: true}.beside("of a ring", 1e3*steps.peer))
	for _, size := range slowSizes {
		var times pair
		for _, s := range []struct {
			group *slowGroup
			time  *float64
		}{{rina, &times.value}, {ring, &times.peer}} {
			if *s.time, err = s.group.fastest(ctx, size/4, slowCalls); err != nil {
				return nil, err
			}
		}
		rows = append(rows, rackRowsOf(size, times, steps)...)
	}
	return rows, nil
}

// rackRowsOf returns the rows of a size: seconds of Rina and of the ring, and of one step of each.
func rackRowsOf(size int, times, steps pair) []Row {
	what := fmt.Sprintf("all-reduce of %d MiB on links of 100 Mb/s, ", size>>20)
	formula := func(nodes int, step float64) float64 {
		return 2 * float64(nodes-1) * (float64(size)/(float64(nodes)*slowLink) + step)
	}
	return []Row{
		Row{Name: what + "Rina, 3 racks of 2 and 2 members", Value: 1e3 * times.value, Unit: "ms"}.
			beside("2(G-1)(M/(G b) + a), G = 5", 1e3*formula(slowNodes, steps.value)).mustRatioNear(15),
		Row{Name: what + "ring of the same 8 members", Value: 1e3 * times.peer, Unit: "ms", Holds: true}.
			beside("2(G-1)(M/(G b) + a), G = 8", 1e3*formula(slowMembers, steps.peer)),
		Row{Name: what + "Rina", Value: 1e3 * times.value, Unit: "ms", Holds: true}.beside("the ring", 1e3*times.peer),
	}
}

// rackCards are the cards of slowRacks.
type rackCards struct {
	cards []*driver.Card
	plan  []collective.RackCard
	seats map[string][]*driver.Member // by rack
}

// openRacks opens a card for each rack, with a job for its members and the ring.
func openRacks(ctx context.Context) (*rackCards, error) {
	r := &rackCards{seats: map[string][]*driver.Member{}}
	for _, name := range slices.Compact(slices.Clone(slowRacks)) {
		if name == "" {
			continue
		}
		seats := 1
		for _, rack := range slowRacks {
			if rack == name {
				seats++
			}
		}
		card, err := driver.Open(ctx, "cpu:", driver.WithWorkers(seats), driver.WithFormat(wire.FP32), driver.WithTimeout(time.Minute))
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.cards = append(r.cards, card)
		job, err := card.Configure(ctx, driver.JobConfig{Workers: seats})
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		for rank := range seats {
			r.seats[name] = append(r.seats[name], job.Member(rank))
		}
		r.plan = append(r.plan, collective.RackCard{Rack: name, Info: card.Info()})
	}
	return r, nil
}

// config returns the seats of a member.
func (r *rackCards) config(rank int) collective.RinaConfig {
	cfg := collective.RinaConfig{Cards: r.plan}
	if seats := r.seats[slowRacks[rank]]; seats != nil {
		place := rank - slices.Index(slowRacks, slowRacks[rank])
		cfg.Seat = seats[place]
		if place == 0 {
			cfg.Incoming = seats[len(seats)-1]
		}
	}
	return cfg
}

func (r *rackCards) close() error {
	var errs []error
	for _, c := range r.cards {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// machineRatios are the ratios of bandwidths inside a machine and between machines.
var machineRatios = []float64{1, 1.5, 2, 3, 4}

// machineRows measures a parallel all-reduce through a card between machines, beside a ring of all members.
// A machine has a link to the card and to other machines, which its members share. A member has a link to
// the others of its machine.
func machineRows(ctx context.Context) (rows []Row, err error) {
	progress("parallel all-reduce and a ring on machines of %d members", perMachine)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	const machines = slowMembers / perMachine
	var inside, out, in []*rate.Limiter
	for range slowMembers {
		inside = append(inside, newShape(slowLink))
	}
	for range machines {
		out, in = append(out, newShape(slowLink)), append(in, newShape(slowLink))
	}
	dialer := func(rank int) collective.Option {
		return collective.WithDialer(dialShaped(func(address string) *rate.Limiter {
			if rankAt(address)/perMachine == rank/perMachine {
				return inside[rank]
			}
			return out[rank/perMachine]
		}))
	}
	ring, err := openSlow(func(*collective.Group) {}, func(g collective.Group) (collective.Collective, error) {
		return collective.Open(ctx, collective.Ring, g, dialer(g.Rank))
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ring.close(ctx)) }()

	d, err := startDaemon(ctx, fmt.Sprintf("cpu:workers=%d,jobs=%d", machines, perMachine), "tcp:127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	seats, err := openSeats(ctx, d, machines, out, in)
	if err != nil {
		return nil, err
	}
	parallel, err := openSlow(func(g *collective.Group) {
		for rank := range g.Members {
			g.Members[rank].Machine = strconv.Itoa(rank / perMachine)
		}
	}, func(g collective.Group) (collective.Collective, error) {
		return collective.OpenParallel(ctx, g, collective.ParallelConfig{Seat: seats[g.Rank]}, dialer(g.Rank))
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, parallel.close(ctx))
		for _, m := range seats {
			err = errors.Join(err, m.Job().Card().Close())
		}
	}()
	var times []pair
	for _, ratio := range machineRatios {
		for _, l := range inside {
			l.SetLimit(rate.Limit(ratio * slowLink))
		}
		var p pair
		for _, s := range []struct {
			group *slowGroup
			time  *float64
		}{{parallel, &p.value}, {ring, &p.peer}} {
			if *s.time, err = s.group.fastest(ctx, parallelBytes/4, slowCalls); err != nil {
				return nil, err
			}
		}
		times = append(times, p)
		rows = append(rows, machineRow(ratio, p))
	}
	return append(rows, crossoverRow(times)), nil
}

// openSeats opens the seats of all members, each by a session of its own through the links of its machine.
func openSeats(ctx context.Context, d *daemonProcess, machines int, out, in []*rate.Limiter) ([]*driver.Member, error) {
	seats := make([]*driver.Member, slowMembers)
	tickets := make([]string, perMachine)
	for rank := range seats {
		machine, index := rank/perMachine, rank%perMachine
		relay, err := startRelay(ctx, strings.TrimPrefix(d.card, "serve:"), out[machine], in[machine])
		if err != nil {
			return nil, err
		}
		card, err := driver.Open(ctx, "serve:"+relay, driver.WithTimeout(time.Minute))
		if err != nil {
			return nil, err
		}
		if machine > 0 {
			seats[rank], err = card.Join(ctx, tickets[index], machine)
		} else {
			var job *driver.Job
			if job, err = card.Configure(ctx, driver.JobConfig{Workers: machines, Here: []int{0}}); err == nil {
				seats[rank], tickets[index] = job.Member(0), job.Ticket()
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return seats, nil
}

func machineRow(ratio float64, p pair) Row {
	what := fmt.Sprintf("parallel all-reduce of %d MiB, %d machines of %d, %g times the bandwidth inside", parallelBytes>>20, slowMembers/perMachine, perMachine, ratio)
	return Row{Name: what, Value: 1e3 * p.value, Unit: "ms", Holds: true}.
		beside("a ring of all 8", 1e3*p.peer)
}

// crossoverRow returns the ratio of bandwidths from which on the parallel all-reduce is faster, beside NetReduce's.
func crossoverRow(times []pair) Row {
	const p, n = float64(slowMembers), float64(perMachine)
	return Row{Name: "ratio of bandwidths from which on parallel is faster", Value: crossover(machineRatios, times), Holds: true}.
		beside("2P(n-1)/(n(P-2))", 2*p*(n-1)/(n*(p-2)))
}

// crossover returns the ratio at which both times are equal, or 0. The time inside is in proportion to the
// ratio's inverse, so it interpolates in that.
func crossover(ratios []float64, times []pair) float64 {
	gain := func(i int) float64 { return times[i].value/times[i].peer - 1 }
	for i := 1; i < len(times); i++ {
		if before, after := gain(i-1), gain(i); before > 0 && after <= 0 {
			x, y := 1/ratios[i-1], 1/ratios[i]
			return 1 / (x + (y-x)*before/(before-after))
		}
	}
	return 0
}
