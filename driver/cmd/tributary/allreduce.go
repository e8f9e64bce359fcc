package main

// tributary allreduce: one rank of a job whose ranks are processes of their own.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/npy"
	"tributary/driver/reduction"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// allReduceFlags is the command line of tributary allreduce.
type allReduceFlags struct {
	cardFlags
	workers  count
	join     string
	rank     int
	also     []int // further ranks of this process
	op       string
	out      string
	wait     time.Duration
	deadline time.Duration
	json     bool
}

func newAllReduce() *cobra.Command {
	f := &allReduceFlags{}
	cmd := &cobra.Command{
		Use:   "allreduce -card CARD -workers N -o FILE INPUT | -join TICKET -o FILE INPUT",
		Short: "Sum the array of this rank with those of other processes",
		Long: `Runs one rank of a job whose ranks are processes, on one machine or on several. CARD
is one that tributary serve shares: serve:, or roce: for a card under RoCEv2.

The first process creates the job with -workers, and prints its ticket at once. The
others join with -join, in any order, each with an array of the same length. With
-card they reach the daemon by that name instead of the ticket's, which is the
creator's: another machine needs it if that name is a Unix socket.

INPUT is a .npy file, or a .npz whose arrays count as one. Every rank writes the same
sum. A rank that dies, or does not come, ends the job on all; the message names it.
The exit status is 0 when all ranks have the sum.

The output file appears whole or not at all.`,
		Example: `  tributary serve -card udp:192.0.2.7 -listen unix:cards.sock
  tributary allreduce -card roce:unix:cards.sock -workers 2 -o sum.npy w0.npy
  tributary allreduce -join 'roce:unix:cards.sock#card0?job=0123456789abcdef' -o sum.npy w1.npy
  tributary allreduce -card roce:192.0.2.1:7420 -join "$TICKET" -op mean -o mean.npy w1.npy`,
		Args: exactly("INPUT, the file of this rank's array,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	f.warn = func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", cmd.CommandPath(), text) }
	cmd.Flags().StringVar(&f.card, "card", "", "use this `CARD`, see tributary -h (default the ticket's)")
	f.addTimeout(cmd)
	cmd.Flags().Var(&f.workers, "workers", "create a job of `N` ranks")
	cmd.Flags().StringVar(&f.join, "join", "", "join the job of this `TICKET`")
	cmd.Flags().IntVar(&f.rank, "rank", driver.AnyRank, "be this `RANK`, from 0 (default 0 for the creator, else a free one)")
	cmd.Flags().Lookup("rank").DefValue = "0" // help prints no other default
	cmd.Flags().StringVar(&f.op, "op", "sum", "apply this `OPERATION`: sum or mean")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write the result to `FILE`")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "wait this `TIME` for the other ranks to join (default the daemon's, a minute)")
	cmd.Flags().DurationVar(&f.deadline, "deadline", 0, "end the job when a rank comes later than this `TIME` after another (default a minute for roce:, else never)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON: a line with the ticket, a line with the outcome")
	return cmd
}

// check refuses a command line that is invalid for all files and cards.
func (f *allReduceFlags) check(input string) error {
	creates := f.workers > 0
	switch {
	case creates == (f.join != ""):
		return usagef("-workers N creates a job, -join TICKET joins one; give one of the two")
	case creates && f.card == "":
		return usagef("-card is missing; name the card that tributary serve shares, as in serve:unix:PATH or roce:HOST:PORT")
	case f.workers > wire.MaxPorts:
		return usagef("-workers %d: a job has 1 to %d", f.workers, wire.MaxPorts)
	case f.rank < driver.AnyRank || creates && f.rank >= int(f.workers):
		return usagef("-rank %d: the job has no such rank", f.rank)
	case f.op != string(reduction.Sum) && f.op != string(reduction.Mean):
		return usagef("-op %s: it must be sum or mean", f.op)
	case f.wait < 0 || f.deadline < 0:
		return usagef("-wait and -deadline: a time must not be negative")
	case f.join != "" && (f.wait > 0 || f.deadline > 0):
		return usagef("-wait and -deadline: the creator of the job sets them")
	case f.out == "":
		return usagef("-o is missing; name the file for the result")
	}
	if err := f.cardFlags.check(); err != nil {
		return err
	}
	return asFlags(reduction.CheckOutput(f.out, []string{input}))
}

func (f *allReduceFlags) run(ctx context.Context, input string, out io.Writer) error {
	if err := f.check(input); err != nil {
		return err
	}
	files, err := reduction.ReadFiles(ctx, []string{input})
	if err != nil {
		return err
	}
	own := files[0]
	if err := reduction.CheckSuffix(f.out, own.Archive); err != nil {
		return asFlags(err)
	}
	return asFlags(f.withJob(ctx, out, func(m *driver.Member) error {
		info := m.Job().Card().Info()
		if want := reduction.TypeOf(info.Format); own.Tensors[0].Type != want {
			return fmt.Errorf("%s holds %s; card %s sums %s, in arrays of %s", input, own.Tensors[0].Type, info.Name, info.Format, want)
		}
		sum, err := f.sum(ctx, m, joined(own))
		if err != nil {
			return err
		}
		result := separated(own, reduction.TypeOf(info.Result), sum)
		if err := asFlags(reduction.WriteFile(ctx, f.out, result)); err != nil {
			return err
		}
		return f.report(out, m, len(sum)/reduction.TypeOf(info.Result).Size())
	}))
}

// withJob creates or joins the job, and passes the member to use. An error of use ends the job on all ranks.
func (f *allReduceFlags) withJob(ctx context.Context, out io.Writer, use func(*driver.Member) error) error {
	if f.join != "" && f.card == "" {
		m, err := driver.Join(ctx, f.join, f.rank, driver.WithTimeout(f.timeout), driver.WithWarnings(f.warn))
		if err != nil {
			return err
		}
		return cmp.Or(orAbort(ctx, m, use), m.Close(ctx))
	}
	return f.withCard(ctx, transport.Needs{}, func(card *driver.Card) error {
		if f.join != "" {
			m, err := card.Join(ctx, f.join, f.rank)
			if err != nil {
				return err
			}
			return orAbort(ctx, m, use)
		}
		rank := max(f.rank, 0)
		job, err := card.Configure(ctx, driver.JobConfig{Workers: int(f.workers), Here: append([]int{rank}, f.also...), Wait: f.wait, Deadline: f.deadline})
		if err != nil {
			return err
		}
		if job.Ticket() == "" {
			return usagef("-card %s: only a card that tributary serve shares has ranks in several processes; open it as serve: or roce:", f.card)
		}
		if err := f.announce(out, job.Ticket()); err != nil {
			return err
		}
		return orAbort(ctx, job.Member(rank), use)
	})
}

// orAbort passes a member to use. If that fails, it ends the job for the other ranks.
func orAbort(ctx context.Context, m *driver.Member, use func(*driver.Member) error) error {
	err := use(m)
	if err != nil {
		_ = m.Job().Abort(ctx) // the first error explains the others
	}
	return err
}

// sum sums this rank's elements, and waits until all ranks have finished.
func (f *allReduceFlags) sum(ctx context.Context, m *driver.Member, own []byte) ([]byte, error) {
	info := m.Job().Card().Info()
	sum := make([]byte, len(own)/reduction.TypeOf(info.Format).Size()*reduction.TypeOf(info.Result).Size())
	var options []driver.ReduceOption
	if f.op == string(reduction.Mean) {
		options = append(options, driver.WithMean())
	}
	if err := m.AllReduceBytes(ctx, sum, own, options...); err != nil {
		return nil, err
	}
	return sum, m.Job().Close(ctx)
}

// announce prints the ticket.
func (f *allReduceFlags) announce(out io.Writer, ticket string) error {
	if f.json {
		return json.NewEncoder(out).Encode(struct {
			Ticket string `json:"ticket"`
		}{ticket})
	}
	_, err := fmt.Fprintln(out, "ticket", ticket)
	return err
}

// report prints the outcome.
func (f *allReduceFlags) report(out io.Writer, m *driver.Member, elements int) error {
	workers := m.Job().Config().Workers
	if f.json {
		return json.NewEncoder(out).Encode(struct {
			Output   string `json:"output"`
			Op       string `json:"op"`
			Rank     int    `json:"rank"`
			Workers  int    `json:"workers"`
			Elements int    `json:"elements"`
		}{f.out, f.op, m.Rank(), workers, elements})
	}
	_, err := fmt.Fprintf(out, "%s: the %s of %d workers' %d elements; this was rank %d\n", f.out, f.op, workers, elements, m.Rank())
	return err
}

// joined returns the elements of all arrays, one after another.
func joined(a reduction.Arrays) (all []byte) {
	for _, t := range a.Tensors {
		all = append(all, t.Data...)
	}
	return all
}

// separated is the inverse of joined, for elements of a type and arrays of the same names and shapes.
func separated(like reduction.Arrays, element npy.Type, all []byte) reduction.Arrays {
	a := reduction.Arrays{Archive: like.Archive}
	for _, t := range like.Tensors {
		n := len(t.Data) / t.Type.Size() * element.Size()
		a.Tensors = append(a.Tensors, npy.Named{Name: t.Name, Array: npy.Array{Shape: t.Shape, Type: element, Data: all[:n]}})
		all = all[n:]
	}
	return a
}
