package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/npy"
	"tributary/driver/transport"
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
	switch {
	case f.carryOn < 0:
		return usagef("-carry-on %s: it must be more than zero", f.carryOn)
	case f.carryOn > 0 && f.failNonfinite:
		return usagef("-fail-nonfinite: not with -carry-on, as a card that comes back has lost its counts")
	}
	if err := f.checkDeadline(); err != nil {
		return err
	}
	if f.block != 0 && !f.quantize {
		return usagef("-block: it is for -quantize")
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
	files, err := readAll(paths)
	if err != nil {
		return err
	}
	if err := checkSuffix(f.out, files[0].archive); err != nil {
		return err
	}
	format, err := formatOf(files[0], wire.Format(f.format))
	if err != nil {
		return err
	}
	if f.quantize && format != wire.FP32 {
		return usagef("-quantize: it is for float32, but the files hold %s", format)
	}
	r := &reduction{reduceFlags: f, command: "tributary reduce", files: files, format: format}
	if err := r.carryOut(ctx, errs); err != nil {
		return err
	}
	if f.json {
		return printJSON(out, r.report)
	}
	return r.report.print(out, f.stats)
}

// reduction is a reduction of files.
type reduction struct {
	*reduceFlags
	command string // that carries it out
	files   []gradients
	format  wire.Format // of the files

	card    driver.Info
	inputs  [][]byte // of each worker, as the card is sent them
	sums    []byte   // as the card gave them
	scaled  *scaled  // with -quantize
	report  *reduceReport
	lengths int // elements of each array

	progress *progress
	outages  []outageReport // what the card was away for
	overdue  string         // what was said last of who is late
	partials []driver.Partial
}

// carryOut sums the files and writes the result.
func (r *reduction) carryOut(ctx context.Context, errs io.Writer) error {
	needs := transport.Needs{Workers: r.portsNeeded(len(r.files)), Format: r.format}
	if r.quantize {
		needs.Format = wire.Int32
	}
	err := r.withCard(ctx, needs, func(card *driver.Card) error { return r.reduce(ctx, card, errs) })
	if err != nil {
		return err
	}
	r.report.Outages = r.outages
	if err := r.judge(errs); err != nil {
		return err
	}
	if r.verify {
		if err := r.compareWithModel(ctx); err != nil {
			return err
		}
	}
	kept, result, err := r.result()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return writeSum(r.out, kept, result, r.files[0])
}

// reduce sums the arrays through the card.
func (r *reduction) reduce(ctx context.Context, card *driver.Card, errs io.Writer) error {
	defer showCard(ctx, card, r.command, errs)()
	r.card = card.Info()
	if err := checkCard(r.card, r.format, r.quantize); err != nil {
		return err
	}
	if err := r.checkAdds(); err != nil {
		return err
	}
	r.lengths = len(r.files[0].data) / r.files[0].element.Size()
	r.progress = newProgress(errs, r.lengths)
	defer r.progress.close()
	job, err := r.configure(ctx, card, driver.JobConfig{
		Workers: len(r.files), CarryOn: r.carryOn, OnOutage: r.noteOutage,
		Deadline: r.deadline, Partial: r.partial, OnOverdue: r.noteOverdue,
	})
	if err != nil {
		return err
	}
	if err := r.prepare(job.Config()); err != nil {
		return err
	}
	work := func() error {
		defer r.progress.close()
		return job.ReduceBytes(ctx, r.sums, r.inputs, driver.WithProgress(r.progress.set))
	}
	if r.stats {
		m, err := measure(ctx, card, work)
		if err != nil {
			return err
		}
		r.report.Stats = newReduceStats(card, job, m)
	} else if err := work(); err != nil {
		return err
	}
	r.notePartials(job)
	if r.report.Exceptions, err = r.readExceptions(ctx, job); err != nil {
		return err
	}
	return job.Close(ctx)
}

// noteOutage says that the card has gone, and that it is back.
func (r *reduction) noteOutage(o driver.Outage) {
	if o.Away == 0 {
		r.progress.say("%s: the card is gone: %s; waiting for it, %s at most", r.command, o.Cause.Reason(), o.Patience.Round(time.Millisecond))
		return
	}
	r.progress.say("%s: the card is back after %s; carrying on with chunk %d", r.command, o.Away.Round(time.Millisecond), o.VID)
	r.outages = append(r.outages, outageReport{Chunk: int(o.VID), Seconds: o.Away.Seconds()})
}

// checkAdds refuses what only a card that adds can do.
func (r *reduction) checkAdds() error {
	if r.op == "mean" {
		if err := r.card.CheckAdds("-op mean"); err != nil {
			return usagef("%v", err)
		}
	}
	if r.quantize {
		if err := r.card.CheckAdds("-quantize"); err != nil {
			return usagef("%v", err)
		}
	}
	return nil
}

// prepare makes what is sent, and room for what comes back.
func (r *reduction) prepare(job driver.JobConfig) error {
	r.report = &reduceReport{
		Output: r.out, Op: r.op, Card: r.cardFlags.card, Workers: len(r.files), Elements: r.lengths,
		Format: r.format.String(), Result: r.card.Result.String(), Sum: r.card.Sum.String(), Verified: r.verify,
	}
	r.sums = make([]byte, r.lengths*element.Size(r.card.Result))
	if r.quantize {
		var err error
		if r.scaled, err = scale(r.files, int(r.block), job.Chunk); err != nil {
			return err
		}
		r.inputs = r.scaled.integers
		r.report.Quantized = r.scaled.report(r.divisor())
		r.report.Result = wire.FP32.String()
		return nil
	}
	for _, w := range r.files {
		r.inputs = append(r.inputs, w.data)
	}
	return nil
}

// result returns the elements to write and the type in which they are kept.
func (r *reduction) result() (npy.Type, []byte, error) {
	if r.quantize {
		return npy.Float32, r.scaled.restore(r.sums, r.divisor()), nil
	}
	if r.op == "mean" {
		if err := r.divide(); err != nil {
			return "", nil, err
		}
	}
	return keptAs[r.card.Result], r.sums, nil
}

// divisor is what the sums are divided by.
func (r *reduction) divisor() int {
	if r.op == "mean" {
		return len(r.files)
	}
	return 1
}

// judge warns of exceptions, or with -fail-nonfinite makes an error of them.
func (r *reduction) judge(errs io.Writer) error {
	lines := r.report.Exceptions.lines(r.files)
	if n := len(r.outages); n > 0 && r.outages[n-1].Chunk > 0 {
		lines = append(lines, fmt.Sprintf("NaNs, infinities and overflows before chunk %d are not known, as the card was away", r.outages[n-1].Chunk))
	}
	if len(lines) > 0 && r.failNonfinite {
		return errors.New("nothing was written, because of -fail-nonfinite:\n  " + joinLines(lines))
	}
	for _, l := range lines {
		fmt.Fprintf(errs, "%s: warning: %s\n", r.command, l)
	}
	for _, l := range r.partialLines() {
		fmt.Fprintf(errs, "%s: warning: %s\n", r.command, l)
	}
	return nil
}

// reduceReport is what tributary reduce has to say of a reduction that worked.
type reduceReport struct {
	Output     string           `json:"output"`
	Op         string           `json:"op"`
	Card       string           `json:"card"`
	Workers    int              `json:"workers"`
	Elements   int              `json:"elements"`
	Format     string           `json:"format"` // of the files
	Result     string           `json:"result"` // of the output
	Sum        string           `json:"sum"`
	Quantized  *quantizedReport `json:"quantized,omitempty"`
	Verified   bool             `json:"verified"` // compared with the model, every bit
	Outages    []outageReport   `json:"outages,omitempty"`
	Partial    []partialReport  `json:"partial,omitempty"` // elements whose sums lack workers
	Evicted    []int            `json:"evicted,omitempty"` // workers that were left out in the end
	Exceptions exceptionsReport `json:"exceptions"`        // since the last outage
	Stats      *reduceStats     `json:"stats,omitempty"`
}

// outageReport is one time that the card was away and came back.
type outageReport struct {
	Chunk   int     `json:"chunk"` // from which the reduction went on
	Seconds float64 `json:"seconds"`
}

func (r *reduceReport) print(out io.Writer, stats bool) error {
	line := fmt.Sprintf("%s: the %s of %d workers' %d elements", r.Output, r.Op, r.Workers, r.Elements)
	switch {
	case r.Quantized != nil:
		line += ", as int32 with " + r.Quantized.String()
	case r.Format != wire.FP32.String():
		line += ", " + formats(r.Format, r.Result)
	}
	if r.Verified {
		line += ", every bit of the sum as in the Go model"
	}
	if _, err := fmt.Fprintln(out, line); err != nil || !stats {
		return err
	}
	return r.Stats.print(out, r.Card, r.Workers, r.Elements)
}
