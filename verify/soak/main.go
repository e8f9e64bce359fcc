// Soak drives a virtual card for 8 ranks, by default, through faults of every
// kind drawn from a seed, and compares every sum with the processor's own, bit for
// bit: frames that are lost, repeated, reordered, delayed, and damaged within what
// the CRC must catch; links that stall and are cut in the middle of a frame; ranks
// that stall and die; a card that is killed and started again.
//
// With -damage frames are damaged beyond that, by random bytes before them and
// bytes cut out of them, and what a CRC of 16 bits lets through is counted.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"time"

	"tributary/verify/faults"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir := flag.String("card", "build/soak/card", "the card's `DIR`, built")
	target := flag.Int64("faults", 10000, "go on until `N` faults have happened")
	seed := flag.Uint64("seed", 1, "the `SEED` of the first round; each round has the next")
	damage := flag.Bool("damage", false, "damage frames beyond what the CRC must catch, and count what it lets through")
	asJSON := flag.Bool("json", false, "print the summary as JSON")
	flag.Parse()
	s, err := soak(ctx, filepath.Join(*dir, "sim", "build", "card"), *seed, *target, *damage)
	if err == nil {
		err = s.print(os.Stdout, *asJSON)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// campaign is a number of rounds on one card.
type campaign struct {
	card   *card
	damage bool
	counts faults.Counts
	first  *faults.Link // of a round

	results  atomic.Int64 // arrays compared
	happened struct{ Cut, Kill, StallRank, KillRank atomic.Int64 }
}

func (c *campaign) total() int64 {
	h := &c.happened
	return c.counts.Total() + h.Cut.Load() + h.Kill.Load() + h.StallRank.Load() + h.KillRank.Load()
}

// soak goes on until that many faults have happened, or, without -damage, one sum
// is wrong or missing.
func soak(ctx context.Context, program string, seed uint64, target int64, damage bool) (*summary, error) {
	folder, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	c := &campaign{card: &card{program: program, socket: filepath.Join(folder, "card")}, damage: damage}
	if err := c.card.start(); err != nil {
		return nil, fmt.Errorf("%w; `make soak` builds one", err)
	}
	defer c.card.stop()
	s := &summary{Seed: seed, Faults: map[string]int64{}}
	began := time.Now()
	for ; c.total() < target; s.Rounds++ {
		if err := s.count(newRound(c, seed+uint64(s.Rounds)).run(ctx), damage); err != nil {
			return nil, fmt.Errorf("%w\n  again: go run ./verify/soak -seed %d -faults 1", err, seed+uint64(s.Rounds))
		}
	}
	s.Seconds = time.Since(began).Seconds()
	s.note(c)
	return s, nil
}

// summary is what a campaign comes to.
type summary struct {
	Seed    uint64           `json:"seed"`
	Rounds  int              `json:"rounds"`
	Results int64            `json:"results"` // arrays, each compared bit for bit
	Total   int64            `json:"total"`   // faults
	Faults  map[string]int64 `json:"faults"`
	Wrong   int              `json:"wrong"`  // rounds with a wrong sum: with -damage alone
	Failed  int              `json:"failed"` // rounds that ended with another error: with -damage alone
	Seconds float64          `json:"seconds"`
}

// count takes in how a round ended.
func (s *summary) count(err error, damage bool) error {
	var wrong *wrongSum
	switch {
	case err == nil || errors.Is(err, errGone):
	case !damage || errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &wrong):
		s.Wrong++
	default:
		s.Failed++
	}
	return nil
}

func (s *summary) note(c *campaign) {
	for i, name := range faults.Kinds {
		s.Faults[name] = c.counts[i].Load()
	}
	s.Faults["link cut"] = c.happened.Cut.Load()
	s.Faults["card killed"] = c.happened.Kill.Load()
	s.Faults["rank stalled"] = c.happened.StallRank.Load()
	s.Faults["rank killed"] = c.happened.KillRank.Load()
	s.Total, s.Results = c.total(), c.results.Load()
}

func (s *summary) print(out io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}
	fmt.Fprintf(out, "%d faults in %d rounds from seed %d, %.0f s; %d arrays compared, every bit\n", s.Total, s.Rounds, s.Seed, s.Seconds, s.Results)
	for _, name := range append(faults.Kinds[:], "link cut", "card killed", "rank stalled", "rank killed") {
		if n := s.Faults[name]; n > 0 {
			fmt.Fprintf(out, "  %-13s %d\n", name, n)
		}
	}
	if s.Wrong+s.Failed > 0 {
		fmt.Fprintf(out, "  let through by the CRC: wrong sums in %d rounds, %d rounds given up\n", s.Wrong, s.Failed)
	}
	return nil
}
