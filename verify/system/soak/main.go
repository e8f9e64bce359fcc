// Soak runs virtual cards, by default of 8 ports and 4 jobs, under faults of every kind, drawn
// from a seed. It compares every bit of every sum with the processor's own sum. Frames are lost,
// repeated, reordered, delayed, and damaged as far as the CRC must detect it. Links stall, and
// are cut in the middle of a frame. Ranks are late, die and stay away. Cards are killed and
// restarted.
//
// Up to four jobs share a card and its link. Some have deadlines; a partial sum is compared with
// the sum of the ranks that it names. A failed round ends the campaign and prints the command
// that repeats this round alone.
//
// With -damage, frames also get random, missing and extra bytes. The table then counts the damage
// that a 16-bit CRC does not detect.
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
		c.report = func(done int64) { _ = bar.Set64(min(done, c.faults)) } // a closed terminal must not end the campaign
	}
	err := c.run(ctx)
	c.print(os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}
