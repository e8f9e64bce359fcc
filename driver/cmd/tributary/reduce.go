package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tributary/driver"
)

// reduceFlags is the command line of tributary reduce.
type reduceFlags struct {
	cardFlags
	jobFlags
	op     string
	out    string
	verify bool
	stats  bool
	json   bool
}

func newReduce() *cobra.Command {
	f := &reduceFlags{}
	cmd := &cobra.Command{
		Use:   "reduce -o SUM.npy W0.npy W1.npy ...",
		Short: "Sum one array from each worker through a card",
		Long: `Sums arrays of float32 element by element through a card, one file from each
worker, and writes the sum as a file that NumPy opens. All arrays must have the
same shape; the sum has it too. With .npz archives, which hold many arrays
under names, all of them are summed in one reduction.

The sum is the card's, bit for bit: IEEE 754 additions, rounded to nearest even,
in the order of the card's adder tree, ((w0+w1)+(w2+w3)). With -op mean every
element of the sum is then divided by the number of workers, in float32,
rounded to nearest even.

The output file appears whole or not at all.`,
		Example: `  tributary reduce -o sum.npy w0.npy w1.npy w2.npy w3.npy
  tributary reduce -card sim:tributary_l16_w4_fp32_tree -op mean -o mean.npz w0.npz w1.npz
  tributary reduce -card unix:card.sock -verify -stats -o sum.npy w*.npy`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.cardFlags.add(cmd)
	f.jobFlags.add(cmd)
	cmd.Flags().StringVar(&f.op, "op", "sum", "the `OPERATION`: sum or mean")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write the result to `FILE`")
	cmd.Flags().BoolVar(&f.verify, "verify", false, "compare every bit with the Go model before anything is written")
	cmd.Flags().BoolVar(&f.stats, "stats", false, "print what the card and the link did")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the outcome as JSON")
	return cmd
}

// check refuses a command line that no files and no card can make right.
func (f *reduceFlags) check(inputs []string) error {
	if f.op != "sum" && f.op != "mean" {
		return usagef("-op %s: it must be sum or mean", f.op)
	}
	if f.out == "" {
		return usagef("-o is missing: the file for the result")
	}
	if len(inputs) == 0 {
		return usagef("no input files: one array from each worker")
	}
	if err := f.cardFlags.check(); err != nil {
		return err
	}
	if err := f.jobFlags.check(len(inputs)); err != nil {
		return err
	}
	if err := checkRecord(f.record, f.out, inputs); err != nil {
		return err
	}
	return checkOutput(f.out, inputs)
}

func (f *reduceFlags) run(ctx context.Context, paths []string, out, errs io.Writer) error {
	if err := f.check(paths); err != nil {
		return err
	}
	workers, err := readAll(paths)
	if err != nil {
		return err
	}
	if err := checkSuffix(f.out, workers[0].archive); err != nil {
		return err
	}
	inputs := make([][]float32, len(workers))
	for i, w := range workers {
		inputs[i] = w.data
	}
	report, sum, err := f.reduce(ctx, inputs, errs)
	if err != nil {
		return err
	}
	if f.verify {
		if err := f.compareWithModel(ctx, inputs, sum); err != nil {
			return err
		}
	}
	if f.op == "mean" {
		divide(sum, len(workers))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := writeSum(f.out, sum, workers[0]); err != nil {
		return err
	}
	if f.json {
		return printJSON(out, report)
	}
	return report.print(out, f.stats)
}

// reduce sums the inputs through the card.
func (f *reduceFlags) reduce(ctx context.Context, inputs [][]float32, errs io.Writer) (*reduceReport, []float32, error) {
	sum := make([]float32, len(inputs[0]))
	report := &reduceReport{
		Output: f.out, Op: f.op, Card: f.card, Workers: len(inputs), Elements: len(sum), Verified: f.verify,
	}
	err := f.withCard(ctx, f.portsNeeded(len(inputs)), func(card *driver.Card) error {
		job, err := f.configure(ctx, card, len(inputs))
		if err != nil {
			return err
		}
		work := func() error {
			progress := newProgress(errs, len(sum))
			defer progress.close()
			return job.Reduce(ctx, sum, inputs, driver.WithProgress(progress.set))
		}
		if f.stats {
			m, err := measure(ctx, card, work)
			if err != nil {
				return err
			}
			report.Stats = newReduceStats(card, job, m)
		} else if err := work(); err != nil {
			return err
		}
		return job.Close(ctx)
	})
	return report, sum, err
}

// divide divides every element by n, a float32 division rounded to nearest
// even.
func divide(sum []float32, n int) {
	by := float32(n)
	for i := range sum {
		sum[i] /= by
	}
}

// reduceReport is what tributary reduce has to say of a reduction that worked.
type reduceReport struct {
	Output   string       `json:"output"`
	Op       string       `json:"op"`
	Card     string       `json:"card"`
	Workers  int          `json:"workers"`
	Elements int          `json:"elements"`
	Verified bool         `json:"verified"` // compared with the model, every bit
	Stats    *reduceStats `json:"stats,omitempty"`
}

func (r *reduceReport) print(out io.Writer, stats bool) error {
	line := fmt.Sprintf("%s: the %s of %d workers' %d elements", r.Output, r.Op, r.Workers, r.Elements)
	if r.Verified {
		line += ", every bit of the sum as in the Go model"
	}
	if _, err := fmt.Fprintln(out, line); err != nil || !stats {
		return err
	}
	return r.Stats.print(out, r.Card, r.Workers, r.Elements)
}
