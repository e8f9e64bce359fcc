package main

// Cards that `tributary serve` shares among processes, beside the same card in this process, beside
// Gloo, and under bad neighbours.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"tributary/driver"
)

const (
	sharedCard     = "model:"
	sharedElements = 1 << 20                // of each array of a call in one process
	sharedSpell    = 400 * time.Millisecond // of one measurement
)

// served is the reductions of all members of a job in this process.
type served struct {
	card   *driver.Card
	job    *driver.Job
	others []int // processes that work for the card
	inputs [][]float32
	sum    []float32
}

// openServed opens a card and sets up a job. others are processes that work for the card.
func openServed(ctx context.Context, name string, others ...int) (*served, error) {
	card, err := driver.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	job, err := card.Configure(ctx, driver.JobConfig{})
	if err != nil {
		return nil, errors.Join(err, card.Close())
	}
	s := &served{card: card, job: job, others: others, inputs: makeInputs(card.Info().Ports, sharedElements), sum: make([]float32, sharedElements)}
	if err := s.reduce(ctx); err != nil {
		return nil, errors.Join(err, card.Close())
	}
	return s, s.check()
}

func (s *served) reduce(ctx context.Context) error { return s.job.Reduce(ctx, s.sum, s.inputs) }

// check checks the sums of makeInputs.
func (s *served) check() error {
	workers := len(s.inputs)
	for i, x := range s.sum {
		if want := float32(workers*i + workers*(workers-1)/2); x != want {
			return fmt.Errorf("sum %d of %s is %g, not %g", i, s.card.Info().Name, x, want)
		}
	}
	return nil
}

// measure reduces for a while. speed is in MB/s of the arrays, and processor in ns a byte.
func (s *served) measure(ctx context.Context) (speed, processor float64, err error) {
	used, err := cpuTime(s.others...)
	if err != nil {
		return 0, 0, err
	}
	begin, calls := time.Now(), 0
	for ; time.Since(begin) < sharedSpell; calls++ {
		if err := s.reduce(ctx); err != nil {
			return 0, 0, err
		}
	}
	took := time.Since(begin)
	until, err := cpuTime(s.others...)
	bytes := float64(calls * len(s.inputs) * 4 * sharedElements)
	return bytes / took.Seconds() / 1e6, float64((until - used).Nanoseconds()) / bytes, err
}

// close ends the job in order, and the card.
func (s *served) close(ctx context.Context) error {
	return errors.Join(s.job.Close(ctx), s.card.Close())
}

// compare measures two cards in turn, and returns their speeds and their processor times.
func compare(ctx context.Context, one, peer *served) (speeds, processor pair, err error) {
	var both, used []pair
	for range rounds {
		speed, cpu, err := one.measure(ctx)
		if err != nil {
			return speeds, processor, err
		}
		peerSpeed, peerCPU, err := peer.measure(ctx)
		if err != nil {
			return speeds, processor, err
		}
		both, used = append(both, pair{speed, peerSpeed}), append(used, pair{cpu, peerCPU})
	}
	return median(both), median(used), nil
}

// serveRows measures a card behind a daemon beside the same card in this process.
func serveRows(ctx context.Context) (rows []Row, err error) {
	progress("reducing through a daemon, beside the card alone")
	d, err := startLocal(ctx, sharedCard)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	through, err := openServed(ctx, d.card, d.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, through.close(ctx)) }()
	direct, err := openServed(ctx, sharedCard)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, direct.close(ctx)) }()
	speeds, processor, err := compare(ctx, through, direct)
	if err != nil {
		return nil, err
	}
	return []Row{serveRow(speeds), Row{Name: "serve:unix: over " + sharedCard + ", processor time", Value: processor.value, Unit: "ns a byte", Holds: true}.
		beside(sharedCard+" in this process", processor.peer)}, nil
}

func serveRow(p pair) Row {
	return Row{Name: "serve:unix: over " + sharedCard + ", 4 workers", Value: p.value, Unit: "MB/s"}.
		beside(sharedCard+" in this process", p.peer).
		mustRatio(0.9)
}

// tlsRows measures TLS beside plain TCP, over the loopback interface.
func tlsRows(ctx context.Context) (rows []Row, err error) {
	progress("reducing through a daemon over TLS, beside TCP")
	certificate, key, err := writeCertificate()
	if err != nil {
		return nil, err
	}
	open := func(ca string, flags ...string) (*served, func() error, error) {
		d, err := startDaemon(ctx, sharedCard, "tcp:127.0.0.1:0", flags...)
		if err != nil {
			return nil, nil, err
		}
		if err := os.Setenv("TRIBUTARY_TLS_CA", ca); err != nil {
			return nil, nil, err
		}
		s, err := openServed(ctx, d.card, d.cmd.Process.Pid)
		if err != nil {
			return nil, nil, errors.Join(err, d.stop())
		}
		return s, func() error { return errors.Join(s.close(ctx), d.stop()) }, nil
	}
	defer os.Unsetenv("TRIBUTARY_TLS_CA")
	secured, end, err := open(certificate, "-tls-cert", certificate, "-tls-key", key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	plain, endPlain, err := open("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, endPlain()) }()
	speeds, _, err := compare(ctx, secured, plain)
	if err != nil {
		return nil, err
	}
	return []Row{Row{Name: "serve: over TLS on loopback, over " + sharedCard + ", 4 workers", Value: speeds.value, Unit: "MB/s", Holds: true}.
		beside("the same without TLS", speeds.peer)}, nil
}

const (
	allReduceWorkers = 4
	allReduceBytes   = 25_000_000
	allReduceCalls   = 10 // of a measurement
)

// allReduceRows measures all-reduce among processes through the card in software, beside Gloo.
func allReduceRows(ctx context.Context) (rows []Row, err error) {
	progress("all-reduce of %d processes, beside Gloo", allReduceWorkers)
	d, err := startLocal(ctx, fmt.Sprintf("cpu:workers=%d", allReduceWorkers))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	members, err := startMembers(ctx, d, allReduceWorkers, allReduceBytes/4)
	if err != nil {
		return nil, err
	}
	defer members.kill()
	ring, err := startRing(ctx, d.folder, allReduceWorkers, allReduceBytes/4)
	if err != nil {
		return nil, err
	}
	defer ring.kill()
	gloo, err := buildGloo(ctx)
	if err != nil {
		return nil, err
	}
	var beside, rings []pair
	for range rounds {
		own, err := members.slowest(allReduceCalls)
		if err != nil {
			return nil, err
		}
		ring, err := ring.slowest(allReduceCalls)
		if err != nil {
			return nil, err
		}
		peer := ring * glooOverRing
		if gloo != "" {
			if peer, err = glooSeconds(ctx, gloo, allReduceWorkers, allReduceBytes, allReduceCalls); err != nil {
				return nil, err
			}
		}
		beside, rings = append(beside, pair{1e3 * own, 1e3 * peer}), append(rings, pair{1e3 * ring, 1e3 * peer})
	}
	return []Row{allReduceRow(median(beside), gloo != ""), ringRow(median(rings), gloo != "")}, nil
}

// glooName names the peer.
func glooName(measured bool) string {
	if measured {
		return "Gloo, TCP on loopback"
	}
	return fmt.Sprintf("Gloo is missing: %g x the ring", glooOverRing)
}

func allReduceRow(p pair, measured bool) Row {
	row := Row{Name: "serve:unix: over cpu:, all-reduce of 25 MB fp32 by 4 processes", Value: p.value, Unit: "ms"}.
		beside(glooName(measured), p.peer).
		mustRatioBelow(2)
	row.Target += ", aim 1 x"
	return row
}

func ringRow(p pair, measured bool) Row {
	return Row{Name: "ring in Go over Unix sockets, the same all-reduce", Value: p.value, Unit: "ms", Holds: true}.
		beside(glooName(measured), p.peer)
}

// startMembers starts the members of a job, each a process. They have made their first call when they
// obey their first order.
func startMembers(ctx context.Context, d *daemonProcess, workers, elements int) (players, error) {
	var all players
	ticket := ""
	for rank := range workers {
		p, err := startPlayer(ctx, "member", memberSettings{Card: d.card, Workers: workers, Rank: rank, Ticket: ticket, Elements: elements})
		if err == nil {
			all = append(all, p)
		}
		if err == nil && rank == 0 {
			var r report
			r, err = p.hear()
			ticket = r.Ticket
		}
		if err != nil {
			all.kill()
			return nil, err
		}
	}
	for _, p := range all[1:] {
		if _, err := p.hear(); err != nil {
			all.kill()
			return nil, err
		}
	}
	return all, nil
}

const (
	fairJobs     = 16
	fairElements = 16 << 10 // of a call
	fairSpell    = 5 * time.Second
	fairCard     = "model:workers=4,jobs=16,window=256"
)

// fairRows measures the goodput of many workers that share a card, each with a process and a session.
func fairRows(ctx context.Context) (rows []Row, err error) {
	progress("sharing a card among %d processes", fairJobs*allReduceWorkers)
	d, err := startLocal(ctx, fairCard)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	var all players
	defer func() { all.kill() }()
	for range fairJobs {
		members, err := startMembers(ctx, d, allReduceWorkers, fairElements)
		if err != nil {
			return nil, err
		}
		all = append(all, members...)
	}
	if _, err := all.askAll(order{Repeat: true}); err != nil {
		return nil, err
	}
	before, err := all.askAll(order{})
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	time.Sleep(fairSpell)
	after, err := all.askAll(order{})
	if err != nil {
		return nil, err
	}
	var goodputs []float64
	for i := range after {
		goodputs = append(goodputs, float64((after[i].Calls-before[i].Calls)*4*fairElements)/time.Since(begin).Seconds()/1e6)
	}
	return []Row{fairRow(pair{slices.Max(goodputs), slices.Min(goodputs)})}, nil
}

func fairRow(p pair) Row {
	return Row{Name: "goodput of 64 workers on one card, 16 jobs of 4: the fastest", Value: p.value, Unit: "MB/s"}.
		beside("the slowest", p.peer).
		mustRatioBelow(2)
}

const rogueCalls = 20 // of a measurement

// rogueRows measures a job beside a client that sends rubbish.
func rogueRows(ctx context.Context) (rows []Row, err error) {
	progress("reducing beside a rogue client")
	d, err := startLocal(ctx, "model:workers=4,jobs=2")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	members, err := startMembers(ctx, d, allReduceWorkers, sharedElements/4)
	if err != nil {
		return nil, err
	}
	defer members.kill()
	rogue, err := startPlayer(ctx, "rogue", d.card)
	if err != nil {
		return nil, err
	}
	defer rogue.kill()
	if _, err := rogue.hear(); err != nil {
		return nil, err
	}
	var times []pair
	for range rounds {
		var p pair
		for _, with := range []bool{true, false} {
			if _, err := rogue.ask(order{Send: with}); err != nil {
				return nil, err
			}
			seconds, err := members.slowest(rogueCalls)
			if err != nil {
				return nil, err
			}
			if with {
				p.value = 1e3 * seconds
			} else {
				p.peer = 1e3 * seconds
			}
		}
		times = append(times, p)
	}
	return []Row{rogueRow(median(times))}, nil
}

func rogueRow(p pair) Row {
	return Row{Name: "all-reduce of 1 MB by 4 processes beside a client that sends rubbish", Value: p.value, Unit: "ms"}.
		beside("without that client", p.peer).
		mustRatioBelow(1.2)
}

const (
	lostMembers = 20 // that are killed
	lostPause   = 20 * time.Millisecond
)

// lostRows measures how soon members learn that another one was killed.
func lostRows(ctx context.Context) (rows []Row, err error) {
	progress("killing %d members", lostMembers)
	d, err := startLocal(ctx, sharedCard)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	var times []float64
	for range lostMembers {
		took, err := loseMember(ctx, d)
		if err != nil {
			return nil, err
		}
		times = append(times, 1e3*took.Seconds())
	}
	return []Row{lostRow(slices.Max(times))}, nil
}

// loseMember kills the last member of a job in the middle of its calls, and returns the time until the
// calls of all others have failed.
func loseMember(ctx context.Context, d *daemonProcess) (took time.Duration, err error) {
	const others = 2
	cards := make([]*driver.Card, others)
	members := make([]*driver.Member, others)
	for rank := range others {
		if cards[rank], err = driver.Open(ctx, d.card); err != nil {
			return 0, err
		}
		defer cards[rank].Close()
	}
	job, err := cards[0].Configure(ctx, driver.JobConfig{Workers: others + 1, Here: []int{0}})
	if err != nil {
		return 0, err
	}
	members[0] = job.Member(0)
	if members[1], err = cards[1].Join(ctx, job.Ticket(), 1); err != nil {
		return 0, err
	}
	victim, err := startPlayer(ctx, "member", memberSettings{Workers: others + 1, Rank: others, Ticket: job.Ticket(), Elements: fairElements})
	if err != nil {
		return 0, err
	}
	defer victim.kill()
	if _, err := victim.hear(); err != nil {
		return 0, err
	}
	failed := make(chan error, others)
	for rank, m := range members {
		go func() {
			array := make([]float32, fairElements)
			reduce := func() error { return m.AllReduce(ctx, array) }
			err := firstCall(array, rank, others+1, reduce)
			for err == nil {
				err = reduce()
			}
			failed <- err
		}()
	}
	if _, err := victim.ask(order{Repeat: true}); err != nil { // after its first call
		return 0, err
	}
	select {
	case err := <-failed:
		return 0, fmt.Errorf("before a member was killed: %w", err)
	case <-time.After(lostPause):
	}
	killed := time.Now()
	if err := victim.cmd.Process.Kill(); err != nil {
		return 0, err
	}
	for range others {
		var lost *driver.MemberLostError
		if err := <-failed; !errors.As(err, &lost) || !slices.Equal(lost.Ranks, []int{others}) {
			return 0, fmt.Errorf("a member was killed, and others got: %w", err)
		}
	}
	return time.Since(killed), nil
}

func lostRow(most float64) Row {
	return Row{Name: fmt.Sprintf("SIGKILL of a member to MemberLostError of all others, most of %d", lostMembers), Value: most, Unit: "ms"}.
		must("at most 1000", most <= 1000)
}
