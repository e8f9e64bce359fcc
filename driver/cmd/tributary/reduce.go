package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/reduction"
	"tributary/driver/wire"
)

// reduceFlags is the command line of tributary reduce.
type reduceFlags struct {
	cardFlags
	jobFlags
	op            string
	out           string
	format        formatFlag
	quantize      bool
	block         count
	verify        bool
	failNonfinite bool
	carryOn       time.Duration
	deadline      time.Duration
	partial       bool
	stats         bool
	json          bool
}

func newReduce() *cobra.Command {
	f := &reduceFlags{}
	cmd := &cobra.Command{
		Use:   "reduce -o SUM.npy W0.npy W1.npy ...",
		Short: "Sum one array from each worker through a card",
		Long: `Sums arrays element by element through a card, one file from each worker, and
writes the sum as a file that NumPy opens. All arrays must have the same shape
and type; the sum has the shape too. With .npz archives, which hold many arrays
under names, all of them are summed in one reduction, in the order of their
names.

Formats. float32, float16 and int32 files go to cards of fp32, fp16 and int32.
bf16 is kept as uint16 and fp8 as uint8, the encodings, and -format says so.
The sum is of the card's result format, which may be wider; tributary info
shows both. The card model: takes the files' format.

The sum is the card's, bit for bit: tributary info names it.
  tree   IEEE 754 additions, each rounded to nearest even, neighbours first:
         ((w0+w1)+(w2+w3))
  fused  all workers at once in a fixed window, rounded once; the same bits in
         any order of the workers
  exact  the real sum, rounded once; the same bits in any order of the workers
int32 wraps around, or on a card that saturates stops at the ends of its range.

With -op mean every element of the sum, as the card gave it, is divided by the
number of workers and rounded once more to the same format, to nearest, ties to
even; int32 to the nearest whole number, of two the even one.

With -quantize float32 files travel as int32 through a card that sums integers:
in every block (-block) all workers' elements are scaled by one power of two,
so that no sum overflows, and rounded to whole numbers. With n workers and a
largest magnitude M in a block, the sum of each of its elements is off by less
than n^2 * M * 2^-30, and half a place for its rounding to float32. -op mean
divides that and rounds once.

NaNs, infinities and overflows are no failure: a warning says how many there
were and where the first is. With -fail-nonfinite they are, and nothing is
written.

A card that goes away ends the reduction, unless -carry-on says how long to wait
for it. Then it is opened again by its name (a card of sim: is started again),
and if it is the same one, by its configuration hash, the reduction goes on with
the first chunk whose sum is not there. Every bit of the sum is as if it had
never been away. What it had counted is lost with it: NaNs, infinities and
overflows are counted from that chunk on, and -stats leaves its figures out.

With -deadline the card says of a chunk that waits for longer than that for whom
it waits. It counts cycles; the command compares the card's clock with the time
first. With -partial such a chunk is summed without those who did not come in
time, and who holds up the others for as long again is left out of all that
follows. That is no failure: the exit status is 0, and a warning says which
workers' arrays are missing from how many elements; -json says from which. A
mean divides by those that are there.

The output file appears whole or not at all.`,
		Example: `  tributary reduce -o sum.npy w0.npy w1.npy w2.npy w3.npy
  tributary reduce -card sim:tributary_l16_w4_fp32_tree -op mean -o mean.npz w0.npz w1.npz
  tributary reduce -card unix:card.sock -verify -stats -o sum.npy w*.npy
  tributary reduce -card tcp:lab:7000 -carry-on 30s -o sum.npy w*.npy
  tributary reduce -card model:sum=exact,result=fp32 -format bf16 -o sum.npy b0.npy b1.npy
  tributary reduce -card sim:tributary_l16_w4_int32_tree -quantize -o sum.npy w*.npy`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.cardFlags.add(cmd)
	f.jobFlags.add(cmd)
	cmd.Flags().StringVar(&f.op, "op", "sum", "the `OPERATION`: sum or mean")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write the result to `FILE`")
	cmd.Flags().Var(&f.format, "format", "the `FORMAT` of the files, where their type does not say: bf16 (uint16), fp8e4m3 or fp8e5m2 (uint8)")
	cmd.Flags().BoolVar(&f.quantize, "quantize", false, "send float32 files as int32, through a card that sums int32")
	cmd.Flags().Var(&f.block, "block", "`ELEMENTS` that share an exponent, with -quantize (default the job's chunk)")
	cmd.Flags().BoolVar(&f.verify, "verify", false, "compare every bit with the Go model before anything is written")
	cmd.Flags().BoolVar(&f.failNonfinite, "fail-nonfinite", false, "fail, and write nothing, on a NaN, an infinity or an overflow")
	cmd.Flags().DurationVar(&f.carryOn, "carry-on", 0, "wait this `TIME` for a card that goes away to come back, and carry on (default: fail)")
	cmd.Flags().DurationVar(&f.deadline, "deadline", 0, "say of chunks that wait for longer than this `TIME` for whom they wait")
	cmd.Flags().BoolVar(&f.partial, "partial", false, "sum chunks that wait for longer than -deadline without those who are late")
	cmd.Flags().BoolVar(&f.stats, "stats", false, "print what the card and the link did")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the outcome as JSON")
	return cmd
}

// options returns what the flags ask for.
func (f *reduceFlags) options() reduction.Options {
	return reduction.Options{
		Op: reduction.Op(f.op), Format: wire.Format(f.format), Quantize: f.quantize, Block: int(f.block),
		Verify: f.verify, FailNonfinite: f.failNonfinite, Stats: f.stats, Timeout: f.timeout,
		Ports: f.ports, Chunk: int(f.chunk), Window: int(f.window),
		CarryOn: f.carryOn, Deadline: f.deadline, Partial: f.partial,
	}
}

// check refuses a command line that no files and no card can make right.
func (f *reduceFlags) check(inputs []string) error {
	if f.op == "" {
		return usagef("-op : it must be sum or mean")
	}
	if err := f.options().Check(len(inputs)); err != nil {
		return asFlags(err)
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
	if err := checkRecord(f.record, f.out, inputs); err != nil {
		return err
	}
	return asFlags(reduction.CheckOutput(f.out, inputs))
}

func (f *reduceFlags) run(ctx context.Context, paths []string, out, errs io.Writer) error {
	if err := f.check(paths); err != nil {
		return err
	}
	files, err := reduction.ReadFiles(ctx, paths)
	if err != nil {
		return err
	}
	if err := reduction.CheckSuffix(f.out, files[0].Archive); err != nil {
		return asFlags(err)
	}
	c := &carriedOut{cardFlags: &f.cardFlags, command: "tributary reduce", errs: errs}
	outcome, err := c.reduce(ctx, files, f.options())
	if err != nil {
		return err
	}
	if err := asFlags(reduction.WriteFile(ctx, f.out, outcome.Sum)); err != nil {
		return err
	}
	outcome.Report.Output = f.out
	if f.json {
		return printJSON(out, outcome.Report)
	}
	return printReport(out, outcome.Report, f.stats)
}

// carriedOut is a reduction that a command carries out.
type carriedOut struct {
	*cardFlags
	command  string
	errs     io.Writer
	progress *progress
}

// reduce reduces the arrays through the card of the flags, and shows progress,
// notices and warnings meanwhile.
func (c *carriedOut) reduce(ctx context.Context, arrays []reduction.Arrays, o reduction.Options) (*reduction.Outcome, error) {
	o.OnOutage, o.OnOverdue = c.showOutage, c.showOverdue
	o.OnProgress = func(done, total int) { c.progress.set(done, total) }
	r, err := reduction.New(arrays, o)
	if err != nil {
		return nil, asFlags(err)
	}
	err = c.withCard(ctx, r.Needs(), func(card *driver.Card) error {
		defer showCard(ctx, card, c.command, c.errs)()
		c.progress = newProgress(c.errs, r.Elements())
		defer c.progress.close()
		return asFlags(r.Sum(ctx, card))
	})
	if err != nil {
		return nil, err
	}
	for _, w := range r.Warnings() {
		fmt.Fprintf(c.errs, "%s: warning: %s\n", c.command, w)
	}
	outcome, err := r.Finish(ctx)
	return outcome, asFlags(err)
}

// showOutage prints that the card has gone, and that it is back.
func (c *carriedOut) showOutage(o driver.Outage) {
	if o.Away == 0 {
		c.progress.say("%s: the card is gone: %s; waiting for it, %s at most", c.command, o.Cause.Reason(), o.Patience.Round(time.Millisecond))
		return
	}
	c.progress.say("%s: the card is back after %s; carrying on with chunk %d", c.command, o.Away.Round(time.Millisecond), o.VID)
}

// showOverdue prints for whom the card waits.
func (c *carriedOut) showOverdue(o driver.Overdue) {
	c.progress.say("%s: chunk %d waits for worker %s", c.command, o.VID, runs(o.Ranks))
}

func printReport(out io.Writer, r *reduction.Report, stats bool) error {
	line := fmt.Sprintf("%s: the %s of %d workers' %d elements", r.Output, r.Op, r.Workers, r.Elements)
	switch {
	case r.Quantized != nil:
		line += fmt.Sprintf(", as int32 with an exponent for each %d elements, off by at most %.2g", r.Quantized.Block, r.Quantized.Bound)
	case r.Format != wire.FP32.String():
		line += ", " + formats(r.Format, r.Result)
	}
	if r.Verified {
		line += ", every bit of the sum as in the Go model"
	}
	if _, err := fmt.Fprintln(out, line); err != nil || !stats {
		return err
	}
	return printStats(out, r)
}
