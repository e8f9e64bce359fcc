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
	also          []string // further cards
	schedule      []int
	move          bool
	tree          string
}

func newReduce() *cobra.Command {
	f := &reduceFlags{}
	cmd := &cobra.Command{
		Use:   "reduce -o SUM.npy { W0.npy W1.npy ... | -tree FILE }",
		Short: "Sum one array from each worker through a card",
		Long: `Sums arrays element by element through a card, one file from each worker, and
writes the sum as a file that NumPy opens. All arrays must have the same shape
and type; the sum has the shape too. With .npz archives, which hold many arrays
under names, all of them are summed in one reduction, in the order of their
names.

Formats. float32, float16 and int32 files go to cards of fp32, fp16 and int32.
Files of bf16 hold their encodings as uint16, files of fp8 as uint8; name the
format with -format.
The sum is of the card's result format, which may be wider; tributary info
shows both. The card cpu: takes the files' format.

The sum is the card's, bit for bit: tributary info names it.
  tree   IEEE 754 additions, each rounded to nearest even, neighbours first:
         ((w0+w1)+(w2+w3))
  fused  all workers at once in a fixed window, rounded once; the same bits in
         any order of the workers
  exact  the real sum, rounded once; the same bits in any order of the workers
  max    the largest element; the same bits in any order of the workers
Sums of int32 wrap around, or stop at the ends of the range on a card that
saturates.

-op mean divides every element of the card's sum by the number of workers, and
rounds once more to the same format, to nearest, ties to even; int32 to the
nearest integer, ties to even.

-quantize sends float32 files as int32 through a card that sums integers. It
scales all workers' elements of a block (-block) by one power of two, so that no
sum overflows, and rounds them to integers. With n workers and a largest
magnitude M in a block, the error of a sum is below n^2 * M * 2^-30, plus half a
place for its rounding to float32. -op mean divides that sum and rounds once.

NaNs, infinities and overflows cause a warning with their number and the place of
the first. With -fail-nonfinite they cause a failure, and reduce writes nothing.

A card that goes away ends the reduction, unless -carry-on sets a time to wait.
Then reduce opens the card again by its name, and restarts a card of sim:. If
the configuration hash is the same, the reduction continues with the first
missing chunk. Every bit of the sum is as without the outage. The card's counts
are lost: NaNs, infinities and overflows are counted from that chunk on, and
-stats omits the card's figures.

With -deadline the card reports the workers that a chunk waits for. The card
counts cycles; reduce first compares the card's clock with real time. With
-partial the card sums such a chunk without the late workers. A worker that
blocks the others for a second deadline is evicted from the rest. The exit
status stays 0, and a warning names the missing arrays and the number of
elements; -json lists the elements. A mean divides by the contributors.

Several cards share the chunks of a reduction: name -card once for each. -schedule
names the card of each chunk, from 0, and repeats; 0,0,1 gives two thirds of the
chunks to the first card. Without it the cards take turns. The cards must have
the same formats and sum. With -move the chunks of a card that dies move to the
others. Every bit of the sum is as on one card.

With -tree the workers are at several cards on a network, which sum in levels. FILE
is JSON: it names each card, its parent, and the input files of the workers at
the card. The root has no parent. Each card rounds once. -verify compares every
bit with the models of the same tree. A NaN counts on each level that it passes.
-stats has a row for each card. For cards in path, "up" and "down" are
the Ethernet ports of the card towards its parent, and of the parent towards it.
  {"cards": [
    {"card": "udp:127.0.0.1", "inputs": ["w0.npy"]},
    {"card": "udp:127.0.0.2", "parent": "udp:127.0.0.1", "inputs": ["w1.npy", "w2.npy"]}
  ]}

The output file appears whole or not at all.`,
		Example: `  tributary reduce -o sum.npy w0.npy w1.npy w2.npy w3.npy
  tributary reduce -card sim:tributary_l16_w4_fp32_tree -op mean -o mean.npz w0.npz w1.npz
  tributary reduce -card unix:card.sock -verify -stats -o sum.npy w*.npy
  tributary reduce -card tcp:lab:7000 -carry-on 30s -o sum.npy w*.npy
  tributary reduce -card cpu:sum=exact,result=fp32 -format bf16 -o sum.npy b0.npy b1.npy
  tributary reduce -card sim:tributary_l16_w4_int32_tree -quantize -o sum.npy w*.npy
  tributary reduce -card udp:10.0.0.7 -card udp:10.0.0.8 -move -o sum.npy w*.npy
  tributary reduce -card udp:10.0.0.7 -card cpu: -schedule 0,0,1 -o sum.npy w*.npy
  tributary reduce -tree tree.json -verify -o sum.npy`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.tree != "" {
				return f.runTree(cmd, args)
			}
			return f.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.cardFlags.add(cmd)
	card := cmd.Flags().Lookup("card")
	card.Value, card.Usage = &cardNames{first: &f.card, also: &f.also}, "use this `CARD`, see tributary -h; name several to share the work"
	f.jobFlags.add(cmd)
	cmd.Flags().IntSliceVar(&f.schedule, "schedule", nil, "send chunks in turn to these `CARDS`, from 0, as in 0,0,1 (default each in turn)")
	cmd.Flags().BoolVar(&f.move, "move", false, "move the chunks of a card that dies to the other cards")
	f.addFixedWindow(cmd)
	cmd.Flags().StringVar(&f.op, "op", "sum", "apply this `OPERATION`: sum or mean")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write the result to `FILE`")
	cmd.Flags().Var(&f.format, "format", "read files of this `FORMAT`: bf16 (uint16), fp8e4m3 or fp8e5m2 (uint8) (default their type)")
	cmd.Flags().BoolVar(&f.quantize, "quantize", false, "send float32 files as int32")
	cmd.Flags().Var(&f.block, "block", "share an exponent among `ELEMENTS`, with -quantize (default the job's chunk)")
	cmd.Flags().BoolVar(&f.verify, "verify", false, "compare every bit with the Go model before writing")
	cmd.Flags().BoolVar(&f.failNonfinite, "fail-nonfinite", false, "fail, and write nothing, on a NaN, an infinity or an overflow")
	cmd.Flags().DurationVar(&f.carryOn, "carry-on", 0, "wait this `TIME` for a card that went away, then carry on (default: fail)")
	cmd.Flags().DurationVar(&f.deadline, "deadline", 0, "report the workers that a chunk waits for after this `TIME`")
	cmd.Flags().BoolVar(&f.partial, "partial", false, "sum chunks without the workers that miss -deadline")
	cmd.Flags().StringVar(&f.tree, "tree", "", "sum through the tree of cards in `FILE`, which names the inputs")
	cmd.Flags().BoolVar(&f.stats, "stats", false, "print statistics of card and link")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the outcome as JSON")
	return cmd
}

// options returns the reduction's options, as set by the flags.
func (f *reduceFlags) options() reduction.Options {
	return reduction.Options{
		Op: reduction.Op(f.op), Format: wire.Format(f.format), Quantize: f.quantize, Block: int(f.block),
		Verify: f.verify, FailNonfinite: f.failNonfinite, Stats: f.stats, Timeout: f.timeout,
		Ports: f.ports, Chunk: int(f.chunk), Window: int(f.window),
		CarryOn: f.carryOn, Deadline: f.deadline, Partial: f.partial,
	}
}

// check refuses a command line that is invalid for all files and cards.
func (f *reduceFlags) check(inputs []string) error {
	if f.op == "" {
		return usagef("-op : it must be sum or mean")
	}
	if err := f.options().Check(len(inputs)); err != nil {
		return asFlags(err)
	}
	if f.out == "" {
		return usagef("-o is missing; name the file for the result")
	}
	if len(inputs) == 0 {
		return usagef("no input files; name one for each worker")
	}
	if err := f.cardFlags.check(); err != nil {
		return err
	}
	if err := f.checkCards(); err != nil {
		return err
	}
	if err := checkRecord(f.record, f.out, inputs); err != nil {
		return err
	}
	return asFlags(reduction.CheckOutput(f.out, inputs))
}

func (f *reduceFlags) run(ctx context.Context, paths []string, out, errs io.Writer) error {
	return f.runThrough(ctx, paths, out, errs, (*carriedOut).reduce)
}

// runThrough reduces files by a function.
func (f *reduceFlags) runThrough(ctx context.Context, paths []string, out, errs io.Writer, reduce func(*carriedOut, context.Context, []reduction.Arrays, reduction.Options) (*reduction.Outcome, error)) error {
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
	c := &carriedOut{cardFlags: &f.cardFlags, command: "tributary reduce", errs: errs, also: f.also}
	c.forest = reduction.Forest{Schedule: f.schedule, Move: f.move, OnMove: c.showMove}
	outcome, err := reduce(c, ctx, files, f.options())
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

// carriedOut is a finished reduction of a command.
type carriedOut struct {
	*cardFlags
	command  string
	errs     io.Writer
	progress *progress
	also     []string // further cards
	forest   reduction.Forest
	moved    bool // chunks of a dead card have moved
	tree     bool // the cards are several
}

// reduce reduces the arrays through the flags' card, and shows progress, notices and warnings.
func (c *carriedOut) reduce(ctx context.Context, arrays []reduction.Arrays, o reduction.Options) (*reduction.Outcome, error) {
	return c.reduceThrough(ctx, arrays, o, func(r *reduction.Reduction) error {
		summed := false
		err := c.withCard(ctx, r.Needs(), func(card *driver.Card) error {
			defer showCard(ctx, card, c.command, c.errs)()
			return c.withOthers(ctx, r.Needs(), []*driver.Card{card}, func(cards []*driver.Card) error {
				c.progress = newProgress(c.errs, r.Elements())
				defer c.progress.close()
				var err error
				if len(cards) > 1 {
					err = r.SumForest(ctx, cards, c.forest)
				} else {
					err = r.Sum(ctx, card)
				}
				summed = err == nil
				return asFlags(err)
			})
		})
		if summed && c.moved { // the close of a dead card may fail
			return nil
		}
		return err
	})
}

// reduceThrough is reduce through what sum uses.
func (c *carriedOut) reduceThrough(ctx context.Context, arrays []reduction.Arrays, o reduction.Options, sum func(*reduction.Reduction) error) (*reduction.Outcome, error) {
	o.OnOutage, o.OnOverdue = c.showOutage, c.showOverdue
	o.OnProgress = func(done, total int) { c.progress.set(done, total) }
	r, err := reduction.New(arrays, o)
	if err != nil {
		return nil, asFlags(err)
	}
	if err := sum(r); err != nil {
		return nil, err
	}
	for _, w := range r.Warnings() {
		fmt.Fprintf(c.errs, "%s: warning: %s\n", c.command, w)
	}
	outcome, err := r.Finish(ctx)
	return outcome, asFlags(err)
}

// showOutage prints that the card has disconnected, or is back.
func (c *carriedOut) showOutage(o driver.Outage) {
	card := "the card"
	if c.tree {
		card = "card " + o.Card
	}
	if o.Away == 0 {
		c.progress.say("%s: %s disconnected: %s; waiting for it, %s at most", c.command, card, o.Cause.Reason(), o.Patience.Round(time.Millisecond))
		return
	}
	c.progress.say("%s: %s is back after %s; continuing with chunk %d", c.command, card, o.Away.Round(time.Millisecond), o.VID)
}

// showOverdue prints the workers for which the card waits.
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
