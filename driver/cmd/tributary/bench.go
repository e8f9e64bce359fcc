package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/transport"
)

// benchFlags is the command line of tributary bench.
type benchFlags struct {
	cardFlags
	workers  []int
	windows  []int
	chunk    count
	time     time.Duration
	elements count
	json     bool
}

func newBench() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "bench -card CARD",
		Short: "Measure a card, its link and this host together",
		Long: `Measures a card with real reductions through the driver, for a time or a number
of elements, and checks the last sums. With several numbers of workers or
several windows, bench measures every pair. No other host may use the card
meanwhile; tributary top can watch. The card has no job afterwards.

Ratios come first, because they also hold for a simulated card.
  link           share of the card's cycles that the frames take on its link; in the
                 rest, card or host wait. Cards in software have no clock to
                 measure it
  payload        share of bytes to and from the card that are elements; the rest is
                 headers, CRCs and repeated frames
  cycles a beat  cycles of the card for each summed beat, beside those that the
                 frames alone take
  sent again     repeated data frames, as a share of those sent once
  asked          overdue results that the driver asked for, as a share of all chunks

Speeds follow: elements of each worker, chunks, and megabytes (10^6) of elements
to and from the card in a second. The last two columns are medians without other
traffic: a register access, and a reduction of a single chunk.

On a network, a third table has the congestion windows, one for each pair:
  marked         results with a congestion mark
  cuts           reductions of the window for marks
  halvings       reductions of the window for losses
  mean window    chunks, over all results; -fixed-window keeps it at the job's`,
		Example: `  tributary bench -card sim:tributary_l16_w4_fp32_tree
  tributary bench -card unix:card.sock -workers 1,2,4 -window 1,8
  tributary bench -card tcp:lab:7000 -time 30s -json
  tributary bench -card tcp:lab:7000 -elements 25000000`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.addCard(cmd)
	f.addFixedWindow(cmd)
	cmd.Flags().IntSliceVar(&f.workers, "workers", nil, "`NUMBERS` of workers, as in 1,2,4 (default as many as ports)")
	cmd.Flags().IntSliceVar(&f.windows, "window", nil, "`CHUNKS` in flight, powers of two, as in 1,8 (default the most that the card takes)")
	cmd.Flags().Var(&f.chunk, "chunk", "send `ELEMENTS` in a chunk (default the card's maximum)")
	cmd.Flags().DurationVar(&f.time, "time", 2*time.Second, "measure each pair for about this `TIME`")
	cmd.Flags().Var(&f.elements, "elements", "measure this many `ELEMENTS` of each worker instead")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// check refuses values that are invalid for every card.
func (f *benchFlags) check() error {
	if f.time <= 0 {
		return usagef("-time %s: it must be more than zero", f.time)
	}
	for _, list := range []struct {
		flag   string
		values []int
	}{{"workers", f.workers}, {"window", f.windows}} {
		for _, n := range list.values {
			if n <= 0 {
				return usagef("-%s %d: it must be more than zero", list.flag, n)
			}
		}
	}
	for _, s := range f.settings(driver.Info{}) {
		if err := s.jobFlags.check(s.workers); err != nil {
			return err
		}
	}
	return f.cardFlags.check()
}

// setting is one combination to measure.
type setting struct {
	jobFlags
	workers int
}

// settings returns every pair of workers and window for a card.
func (f *benchFlags) settings(card driver.Info) []setting {
	workers, windows := f.workers, f.windows
	if len(workers) == 0 {
		workers = []int{card.Ports}
	}
	if len(windows) == 0 {
		windows = []int{card.Window}
	}
	var all []setting
	for _, n := range workers {
		for _, w := range windows {
			all = append(all, setting{jobFlags{chunk: f.chunk, window: count(w)}, n})
		}
	}
	return all
}

func (f *benchFlags) run(ctx context.Context, out, errs io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	needs := transport.Needs{}
	for _, n := range f.workers {
		needs.Workers = max(needs.Workers, n)
	}
	report := benchReport{}
	err := f.withCard(ctx, needs, func(card *driver.Card) error {
		defer showCard(ctx, card, "tributary bench", errs)()
		report = newBenchReport(card.Info())
		for _, s := range f.settings(card.Info()) {
			run, err := f.measure(ctx, card, s, errs)
			if err != nil {
				return err
			}
			report.Runs = append(report.Runs, *run)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(out, report)
	}
	return report.print(out)
}

// measure measures one setting.
func (f *benchFlags) measure(ctx context.Context, card *driver.Card, s setting, errs io.Writer) (*benchRun, error) {
	job, err := s.configure(ctx, card, driver.JobConfig{Workers: s.workers})
	if err != nil {
		return nil, err
	}
	l := newLoad(card, job, errs)
	defer l.progress.close()
	run, err := l.measure(ctx, f.time, int(f.elements))
	if err != nil {
		return nil, err
	}
	return run, job.Close(ctx)
}
