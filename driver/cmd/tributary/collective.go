package main

// tributary collective: the flags, and one rank.

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/collective"
	"tributary/driver/collective/bench"
	"tributary/driver/daemon"
	"tributary/driver/element"
	"tributary/driver/wire"
)

const (
	mostRanks = 256     // processes on this machine
	mostBytes = 1 << 32 // of an array
)

// collectiveFlags is the command line of tributary collective.
type collectiveFlags struct {
	algorithm  string
	operation  string
	format     formatFlag
	cards      []string
	racks      []int
	machines   count
	join       string
	ranks      count
	rank       int
	peers      []string
	members    string
	token      string
	sizes      string
	elements   string
	root       int
	iterations count
	warmup     int
	check      bool
	wait       time.Duration
	silence    time.Duration
	timeout    time.Duration
	json       bool
	report     bool // print lines of JSON for the launcher, and end with standard input
	warn       func(text string)
}

func newCollective() *cobra.Command {
	f := &collectiveFlags{iterations: 20, format: formatFlag(wire.FP32)}
	cmd := &cobra.Command{
		Use:   "collective -algorithm ALGORITHM -ranks N",
		Short: "Measure all-reduce and its siblings among processes",
		Long: `Measures a collective among N processes, which it starts on this machine and ends.
With -rank it is one rank of several, on one machine or on many: start each with its
rank and the same other flags. -peers or -members names the addresses of all ranks.

  ring   2(N-1) steps, each with 1/N of the array
  tree   binomial tree
  ps     a parameter server, rank 0
  card   one card, that of -card. Without -rank, the launcher shares any card with its
         ranks. With -rank the card is one of tributary serve; rank 0 prints a ticket,
         and the others give it with -join. A card that is not fit for the format is
         not used: a warning says so, and a ring sums
  rina   a ring of racks with a card and ranks without: G nodes, 2(G-1) steps. With
         -racks 2,3 ranks 0 and 1 share a card, and ranks 2 to 4 another one; further
         ranks have none. Name a -card for each rack, or one in software (cpu:, model:)
         of which each rack gets its own. With -rank, give all racks' cards of tributary
         serve; each rack's first rank prints the ticket for the others of its rack. The
         ranks of a card without a port for the ring join the ring singly, with a warning
  parallel
         machines of several ranks: -machines 2 has the first half of the ranks on the
         first one. Reduce-scatter inside a machine, a sum of each rank's share between
         machines, all-gather inside. The shares go through -card: one for all, with a
         job for each rank of a machine, or one for each of these. Without -card they go
         along rings. With -rank, each rank of the first machine prints the ticket for
         the ranks at its place on the other machines

The columns are those of nccl-tests. Times are means over calls and ranks.
  size   bytes of the whole array
  count  its elements
  root   of a broadcast, else -1
  algbw  size / time, in GB/s (10^9 bytes)
  busbw  algbw x 2(N-1)/N for all-reduce, (N-1)/N for reduce-scatter and all-gather,
         1 for broadcast
  #wrong elements of results that differ from a sum of 64-bit integers, on all ranks.
         Arrays hold integers that every order of additions sums exactly

The exit status is 1 if an element is wrong. A rank that dies ends the others; the
message names it.`,
		Example: `  tributary collective -algorithm ring -ranks 4
  tributary collective -algorithm card -card cpu: -ranks 4 -sizes 1M
  tributary collective -algorithm rina -racks 2,2 -card cpu: -ranks 6 -json
  tributary collective -algorithm rina -racks 2,3 -card cpu:sum=exact -card model: -ranks 5
  tributary collective -algorithm parallel -machines 2 -card cpu: -ranks 8
  tributary collective -algorithm tree -ranks 8 -operation broadcast -root 3 -sizes 4K..1M,10M
  tributary collective -algorithm ring -rank 0 -peers tcp:192.0.2.1:7000,tcp:192.0.2.2:7000`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.warn = func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", cmd.CommandPath(), text) }
	flags := cmd.Flags()
	flags.StringVar(&f.algorithm, "algorithm", "", "`ALGORITHM`: "+algorithmNames())
	flags.StringVar(&f.operation, "operation", "all-reduce", "`OPERATION`: all-reduce, reduce-scatter, all-gather or broadcast")
	flags.Var(&f.format, "format", "`FORMAT` of the arrays")
	flags.StringArrayVar(&f.cards, "card", nil, "sum on this `CARD`, see tributary -h; rina has one for each rack")
	flags.Var(&f.machines, "machines", "spread the ranks evenly over `N` machines")
	flags.IntSliceVar(&f.racks, "racks", nil, "the first racks have so many `RANKS` and a card each, as in 2,3")
	flags.StringVar(&f.join, "join", "", "be a rank of the card's job with this `TICKET`")
	flags.Var(&f.ranks, "ranks", "start `N` ranks on this machine")
	flags.IntVar(&f.rank, "rank", -1, "be this `RANK`, from 0, and start no others")
	flags.Lookup("rank").DefValue = "0" // help prints no other default
	flags.StringSliceVar(&f.peers, "peers", nil, "`ADDRESSES` of all ranks, in their order: tcp:HOST:PORT or unix:PATH")
	flags.StringVar(&f.members, "members", "", "read the addresses from `FILE`, one a line")
	flags.StringVar(&f.token, "token-file", "", "all ranks know the secret in `FILE`; without it anyone may join")
	flags.StringVar(&f.sizes, "sizes", "4K..4M", "array `SIZES` in bytes, as in 4,1K,2M; A..B doubles")
	flags.StringVar(&f.elements, "elements", "", "array lengths in `ELEMENTS` instead, written likewise")
	flags.IntVar(&f.root, "root", 0, "broadcast from this `RANK`")
	flags.Var(&f.iterations, "iterations", "time `N` calls of each size")
	flags.IntVar(&f.warmup, "warmup", 5, "make `N` calls before those")
	flags.BoolVar(&f.check, "check", true, "check the results of one more call")
	flags.DurationVar(&f.wait, "wait", time.Minute, "wait this `TIME` for other ranks to start")
	flags.DurationVar(&f.silence, "silence", collective.DefaultSilence, "a rank is lost when it is silent for this `TIME`")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "give up when a call takes longer than this `TIME`")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.BoolVar(&f.report, "report", false, "")
	_ = flags.MarkHidden("report")
	return cmd
}

// A setup is a valid command line.
type setup struct {
	*collectiveFlags
	algorithm collective.Algorithm
	cases     []bench.Case
	group     collective.Group // of one rank; else without addresses
	jobs      []*cardJob       // on cards
}

// algorithms are those of this command.
var algorithms = []collective.Algorithm{collective.Ring, collective.Tree, collective.PS, collective.Card, collective.Rina, collective.Parallel}

// algorithmNames returns their names, as in "ring, tree or card".
func algorithmNames() string {
	var names []string
	for _, a := range algorithms {
		names = append(names, a.String())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func (f *collectiveFlags) run(ctx context.Context, out, errs io.Writer) error {
	s, err := f.parse()
	if err != nil {
		return err
	}
	t := newTable(s, out, errs)
	defer t.progress.close()
	if f.rank < 0 {
		err = s.launch(ctx, t)
	} else {
		err = s.runRank(ctx, t)
	}
	if err != nil {
		return err
	}
	return t.end()
}

// parse checks the flags.
func (f *collectiveFlags) parse() (*setup, error) {
	s := &setup{collectiveFlags: f}
	for _, a := range algorithms {
		if a.String() == f.algorithm {
			s.algorithm = a
		}
	}
	switch {
	case f.algorithm == "":
		return nil, usagef("-algorithm is missing; it is %s", algorithmNames())
	case s.algorithm == 0:
		return nil, usagef("-algorithm %s: it must be %s", f.algorithm, algorithmNames())
	case f.warmup < 0:
		return nil, usagef("-warmup %d: it must not be negative", f.warmup)
	}
	for _, x := range []struct {
		flag string
		time time.Duration
	}{{"wait", f.wait}, {"silence", f.silence}, {"timeout", f.timeout}} {
		if x.time <= 0 {
			return nil, usagef("-%s %s: it must be more than zero", x.flag, x.time)
		}
	}
	if err := s.parseRanks(); err != nil {
		return nil, err
	}
	if err := s.parseCards(); err != nil {
		return nil, err
	}
	return s, s.parseCases()
}

// parseRanks makes the group.
func (s *setup) parseRanks() error {
	f := s.collectiveFlags
	named := len(f.peers) > 0 || f.members != ""
	switch {
	case f.rank < -1:
		return usagef("-rank %d: ranks count from 0", f.rank)
	case f.rank < 0 && named:
		return usagef("-rank is missing; which of the ranks is this?")
	case f.rank < 0 && (f.join != "" || f.token != ""):
		return usagef("-join and -token-file are for one rank, with -rank")
	case f.rank < 0 && f.ranks == 0:
		return usagef("-ranks is missing; give the number of processes, or -rank and -peers for one of them")
	case f.rank < 0 && f.ranks > mostRanks:
		return usagef("-ranks %d: at most %d run on one machine", f.ranks, mostRanks)
	case f.rank < 0:
		s.group.Members = make([]collective.Member, f.ranks)
		return nil
	case f.ranks > 0:
		return usagef("-ranks starts all ranks, -rank is one of them; give one of the two")
	case (len(f.peers) > 0) == (f.members != ""):
		return usagef("-rank %d: -peers or -members names the addresses of all ranks; give one of the two", f.rank)
	}
	addresses, err := f.addresses()
	if err != nil {
		return err
	}
	s.group = collective.Group{Name: "tributary collective", Generation: 1, Rank: f.rank}
	for r, a := range addresses {
		s.group.Members = append(s.group.Members, collective.Member{ID: "rank" + strconv.Itoa(r), Address: a})
	}
	if err := s.group.Check(); err != nil {
		return usageError{err}
	}
	if f.token != "" {
		token, err := daemon.ReadToken(f.token)
		if err != nil {
			return flagPath("-token-file:", err)
		}
		s.group.Token = string(token)
	}
	return nil
}

// addresses returns those of -peers or -members.
func (f *collectiveFlags) addresses() (all []string, err error) {
	if f.members == "" {
		return f.peers, nil
	}
	text, err := os.ReadFile(f.members)
	if err != nil {
		return nil, fmt.Errorf("-members: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all, nil
}

// parseCases makes the cases of -sizes or -elements.
func (s *setup) parseCases() error {
	f, group := s.collectiveFlags, s.group
	var operation collective.Operation
	for _, o := range []collective.Operation{collective.AllReduceOp, collective.ReduceScatterOp, collective.AllGatherOp, collective.BroadcastOp} {
		if o.String() == f.operation {
			operation = o
		}
	}
	switch {
	case operation == 0:
		return usagef("-operation %s: it must be all-reduce, reduce-scatter, all-gather or broadcast", f.operation)
	case f.root != 0 && operation != collective.BroadcastOp:
		return usagef("-root: only a broadcast has a root")
	case f.root < 0 || f.root >= group.Size():
		return usagef("-root %d: the ranks are 0 to %d", f.root, group.Size()-1)
	}
	flag, text, unit := "sizes", f.sizes, element.Size(wire.Format(f.format))
	if f.elements != "" {
		flag, text, unit = "elements", f.elements, 1
	}
	numbers, err := parseSizes(text)
	if err != nil {
		return usagef("-%s %s: %v", flag, text, err)
	}
	for _, n := range numbers {
		k := bench.Case{Operation: operation, Format: wire.Format(f.format), Elements: n / unit, Root: f.root}
		switch {
		case n%unit != 0:
			return usagef("-%s %s: %d bytes are not whole elements of %s, %d bytes each", flag, text, n, k.Format, unit)
		case k.Bytes() > mostBytes:
			return usagef("-%s %s: an array has at most %d bytes", flag, text, mostBytes)
		}
		s.cases = append(s.cases, k)
	}
	return nil
}

// parseSizes returns the numbers of a list such as 4,1K..4K,1M.
func parseSizes(text string) (all []int, err error) {
	for item := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(item, "..")
		first, err := parseSize(from)
		if err != nil {
			return nil, err
		}
		last := first
		if isRange {
			if last, err = parseSize(to); err != nil {
				return nil, err
			}
		}
		if last < first {
			return nil, fmt.Errorf("%s is empty; the first size must be the smaller one", item)
		}
		for n := first; n <= last; n *= 2 {
			all = append(all, n)
		}
	}
	return all, nil
}

// parseSize returns a number such as 64, 4K or 1M.
func parseSize(text string) (int, error) {
	digits := strings.TrimRight(text, "KMG")
	factor, ok := map[string]int{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[text[len(digits):]]
	n, err := strconv.Atoi(digits)
	switch {
	case !ok || err != nil:
		return 0, fmt.Errorf("%q is no number such as 64, 4K, 1M or 1G", text)
	case n < 1 || n > mostBytes/factor:
		return 0, fmt.Errorf("%s must be 1 to %d", text, mostBytes)
	}
	return n * factor, nil
}

// runRank is one rank.
func (s *setup) runRank(ctx context.Context, t *table) error {
	if s.report {
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(ctx)
		defer stop(nil)
		go func() { // the launcher has ended
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop(fmt.Errorf("the launcher has ended"))
		}()
	}
	switch s.algorithm {
	case collective.Card:
		return asFlags(s.onSeat(ctx, t, s.jobs[0], func(seat *driver.Member) (collective.Collective, error) {
			return collective.OpenCard(ctx, seat, s.group, s.options()...)
		}))
	case collective.Rina:
		return asFlags(s.runRina(ctx, t))
	case collective.Parallel:
		return asFlags(s.runParallel(ctx, t))
	}
	return asFlags(s.onSeat(ctx, t, nil, func(*driver.Member) (collective.Collective, error) {
		return collective.Open(ctx, s.algorithm, s.group, s.options()...)
	}))
}

func (s *setup) options() []collective.Option {
	return []collective.Option{collective.WithConnectTime(s.wait), collective.WithSilence(s.silence), collective.WithWarnings(s.warn)}
}

// measure measures all cases, and leaves the group.
func (s *setup) measure(ctx context.Context, c collective.Collective, t *table) (err error) {
	defer func() {
		closing, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		if closed := c.Close(closing); err == nil {
			err = closed
		}
	}()
	o := bench.Options{Warmup: s.warmup, Iterations: int(s.iterations), Check: s.check, Timeout: s.timeout, Seed: 1}
	for _, k := range s.cases {
		r, err := bench.Measure(ctx, c, k, o)
		if err != nil {
			return err
		}
		if err := t.add(newRow(k, r, s.group.Size())); err != nil {
			return err
		}
	}
	return nil
}
