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
// A card with Ethernet ports has a faulty cable and a host in user space at each port. The cables also make
// frames that a card must drop, and strangers write registers and send data. At the end of a round, the
// card's counters must be what the faults make them. In half of the rounds each member has an address of its
// own, and a daemon owns the card.
//
// With -trees, a round has several such cards with up ports, and trees of them, one after another and side by
// side. One-armed, they are at a switch; in path, one is behind the other. Packets of earlier trees come again.
//
// With -damage, frames also get random, missing and extra bytes. The table then counts the damage
// that a 16-bit CRC does not detect.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir := flag.String("card", "build/soak/card", "the card's `DIR`, built")
	c := &campaign{report: func(int64) {}}
	flag.Int64Var(&c.faults, "faults", 100_000, "go on until `N` faults have happened")
	flag.Int64Var(&c.rounds, "rounds", 0, "stop after `N` rounds in any case; 0 for no such end")
	flag.Uint64Var(&c.seed, "seed", 1, "the `SEED` of the first round; each round has the next")
	flag.IntVar(&c.parallel, "parallel", 0, "`N` rounds at once, as they wait more than they work; 0 for 12 for each processor, or 3 with Ethernet ports")
	flag.BoolVar(&c.trees, "trees", false, "make trees of cards with Ethernet ports and an up port")
	flag.BoolVar(&c.damage, "damage", false, "damage frames beyond what the CRC must catch, and count what it lets through")
	flag.Parse()
	if err := c.choose(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
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

// choose sets the campaign up for the card in a folder: at a byte stream, or behind faulty Ethernet cables.
func (c *campaign) choose(dir string) error {
	m, err := transport.ReadManifest(dir)
	if err != nil {
		return err
	}
	c.program, c.device, c.clock = filepath.Join(dir, "sim", "build", "card"), c.gateware, 1
	each := 12
	if m.Shell == wire.ShellUDP.String() {
		c.ethernet, c.link, c.clock, each = m.Ethernet, int(m.Constant(wire.RegLink)), networkClock, 3
	}
	if c.ethernet > 0 && c.damage {
		return errors.New("-damage is for cards with a byte stream; CRC-32C and the FCS catch all damage that Ethernet cables do here")
	}
	if c.trees && m.Constant(wire.RegShell)&wire.ShellParentFlag == 0 {
		return errors.New("-trees is for cards with an up port on Ethernet: hwgen -shell udp -parent")
	}
	if c.parallel == 0 {
		c.parallel = each * runtime.NumCPU()
	}
	return nil
}
