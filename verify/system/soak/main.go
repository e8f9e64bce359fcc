// Soak drives virtual cards, by default of 8 ports and 4 jobs, through faults of
// every kind, drawn from a seed, and compares every sum with the processor's own,
// bit for bit: frames that are lost, repeated, reordered, delayed, and damaged within
// what the CRC must catch; links that stall and are cut in the middle of a frame;
// ranks that come late, die and stay away; cards that are killed and started again.
// Up to four jobs share a card and its link. Some have deadlines; where these make
// partial sums, each is compared with the sum of the ranks that are said to be in
// it. A round that fails ends the campaign with the command that does that round
// again, alone.
//
// With -damage frames are damaged beyond that, by random bytes, bytes that are
// missing and bytes too many, and what a CRC of 16 bits lets through is counted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir := flag.String("card", "build/soak/card", "the card's `DIR`, built")
	c := campaign{clock: 1, report: func(int64) {}}
	flag.Int64Var(&c.faults, "faults", 100_000, "go on until `N` faults have happened")
	flag.Int64Var(&c.rounds, "rounds", 0, "stop after `N` rounds in any case; 0 for no such end")
	flag.Uint64Var(&c.seed, "seed", 1, "the `SEED` of the first round; each round has the next")
	flag.IntVar(&c.parallel, "parallel", 12*runtime.NumCPU(), "`N` rounds at once, as they wait more than they work")
	flag.BoolVar(&c.damage, "damage", false, "damage frames beyond what the CRC must catch, and count what it lets through")
	flag.Parse()
	c.program = filepath.Join(*dir, "sim", "build", "card")
	if term.IsTerminal(int(os.Stderr.Fd())) {
		bar := progressbar.NewOptions64(c.faults, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription("faults"),
			progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		c.report = func(done int64) { _ = bar.Set64(min(done, c.faults)) } // a terminal that is gone is no reason to stop
	}
	err := c.run(ctx)
	c.print(os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}
