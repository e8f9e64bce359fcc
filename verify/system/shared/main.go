// Shared shares a card among processes and kills them. A site has a daemon, a card and eight members,
// each a process of its own. The members form four jobs, which sum arrays of random numbers again and
// again. Members, daemon and card die by SIGKILL: while jobs are set up, in the middle of a frame,
// between two frames, while jobs finish, and at any time. Some are stopped for a while (SIGSTOP).
//
// Each member compares every bit of every sum with package oracle. Arrays name their contributors, so
// the sum itself shows whose array of which call is in it. The campaign checks the rest: all members
// of a call have the same sum, no array is in two sums, calls return in time and fail only for a
// reason, and a daemon that lives on needs neither more memory nor more descriptors.
//
// A failed round ends the campaign. It prints the round's log and the command that repeats it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := campaign{report: func(int) {}}
	flag.IntVar(&c.kills, "kills", 500, "go on until `N` processes have been killed")
	flag.IntVar(&c.rounds, "rounds", 0, "stop after `N` rounds in any case; 0 for no such end")
	flag.Uint64Var(&c.seed, "seed", 1, "the `SEED` of the first round; each round has the next")
	inJSON := flag.Bool("json", false, "print the table as JSON")
	flag.Parse()
	if term.IsTerminal(int(os.Stderr.Fd())) {
		bar := progressbar.NewOptions(c.kills, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription("kills"),
			progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		c.report = func(done int) { _ = bar.Set(min(done, c.kills)) } // a closed terminal must not end the campaign
	}
	err := c.run(ctx)
	if *inJSON {
		_ = json.NewEncoder(os.Stdout).Encode(&c.table) // a closed pipe must not hide err
	} else {
		c.table.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shared:", err)
		os.Exit(1)
	}
}
