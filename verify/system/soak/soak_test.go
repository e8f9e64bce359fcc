package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tributary/verify/system/faults"
)

var cardDir = flag.String("card", "../../../build/soak/card", "the virtual card, as `make faults` builds it")

// modelClock is the ratio of the clock of the cards in software, 100 MHz, to a simulation's on a busy machine,
// some 200 kHz.
const modelClock = 500

// modelCampaign returns a campaign on a card in software, small enough for a test.
func modelCampaign(t *testing.T, how string) *campaign {
	return &campaign{program: self(t, how), seed: 1, faults: 2000, parallel: 6, clock: modelClock, report: func(int64) {}}
}

// TestVirtualCard runs the gateware through ten thousand faults. Every kind must occur often
// enough.
func TestVirtualCard(t *testing.T) {
	c := &campaign{program: filepath.Join(*cardDir, "sim", "build", "card"), seed: 1, faults: 10_000, parallel: 6, clock: 1, report: func(int64) {}}
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	logTable(t, c)
	if c.total() < 10_000 || c.arrays.Load() < 100 {
		t.Errorf("%d faults, %d arrays compared", c.total(), c.arrays.Load())
	}
	for kind := faults.Drop; kind <= faults.Stall; kind++ {
		for direction := range c.counts.Faults {
			if n, least := c.counts.Faults[direction][kind].Load(), int64(100); n < least {
				t.Errorf("%s, direction %d: %d times, less than %d", faults.Kinds[kind], direction, n, least)
			}
		}
	}
	for e, least := range map[event]int64{linkCut: 4, cardKilled: 2, rankLate: 4, rankKilled: 2, rankAway: 2} {
		if n := c.events[e].Load(); n < least {
			t.Errorf("%s: %d times, less than %d", events[e], n, least)
		}
	}
	e := &c.effects
	for name, of := range map[string]struct{ n, least int64 }{
		"bytes hunted through by the card": {e.card["hunted"], 1}, "replays": {e.card["replays"], 1},
		"chunks sent again": {int64(e.member.Resent), 1}, "outages carried over": {e.carry, 1},
		"jobs": {e.jobs, 10}, "jobs beside others": {e.beside, 10}, "notices": {e.overdue, 10},
		"chunks summed without a member": {e.partial, 10}, "members evicted": {e.evicted, 2}, "evicted, and back": {e.back, 1},
	} {
		if of.n < of.least {
			t.Errorf("%s: %d, less than %d: the faults do nothing", name, of.n, of.least)
		}
	}
}

func logTable(t *testing.T, c *campaign) {
	var out bytes.Buffer
	c.print(&out)
	t.Log(out.String())
}

// TestSoftware runs the model, and the card in software, through two thousand faults each.
func TestSoftware(t *testing.T) {
	for how := range cards {
		t.Run(how, func(t *testing.T) { inSoftware(t, how) })
	}
}

func inSoftware(t *testing.T, how string) {
	c := modelCampaign(t, how)
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.total() < c.faults || c.arrays.Load() == 0 {
		t.Errorf("%d faults, %d arrays compared", c.total(), c.arrays.Load())
	}
	var out bytes.Buffer
	c.print(&out)
	for _, row := range append(slices.Clone(faults.Kinds[:faults.Garbage]), "of frames", "let through", "wrong header CRCs", "chunks sent again", "chunks summed without a member") {
		if !strings.Contains(out.String(), row) {
			t.Errorf("the table has no row %q:\n%s", row, &out)
		}
	}
}

// TestWrongCardIsFoundOut: a card with rare wrong bits or wrong masks ends the campaign, with the
// command that repeats the round alone.
func TestWrongCardIsFoundOut(t *testing.T) {
	for how := range lies {
		t.Run(how, func(t *testing.T) {
			c := modelCampaign(t, how)
			c.faults = 20_000
			err := c.run(t.Context())
			var wrong *wrongSum
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v", err)
			}
			var seed uint64
			if _, command, _ := strings.Cut(err.Error(), "alone: "); command == "" {
				t.Fatalf("%v: it says no command", err)
			} else if _, err := fmt.Sscanf(command, "make soak SEED=%d ROUNDS=1", &seed); err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			for range 100 { // the seed does not decide which chunks are overdue
				alone := modelCampaign(t, how)
				alone.seed, alone.rounds = seed, 1
				if again := alone.run(t.Context()); alone.began != 1 {
					t.Errorf("%d rounds in the place of one", alone.began)
				} else if again != nil {
					return
				}
			}
			t.Errorf("%v, and then never again", err)
		})
	}
}

// TestDamage: damage beyond what the CRC must detect is counted, and does not end the campaign.
func TestDamage(t *testing.T) {
	c := modelCampaign(t, "model")
	c.damage, c.faults = true, 1000
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for kind := range faults.Kinds {
		if n := c.counts.Of(faults.Kind(kind)); (n > 0) != (faults.Kind(kind) >= faults.Garbage) {
			t.Errorf("%s: %d times", faults.Kinds[kind], n)
		}
	}
	logTable(t, c)
}

// TestRoundIsItsSeeds: the same seed gives the same plan, other seeds other plans.
func TestRoundIsItsSeeds(t *testing.T) {
	whole := size{ports: ports, chunks: mostChunks}
	if a, b := newPlan(5, whole), newPlan(5, whole); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, and then %+v", a, b)
	}
	if a, b := newPlan(5, whole), newPlan(6, whole); reflect.DeepEqual(a, b) {
		t.Errorf("two seeds, and one plan: %+v", a)
	}
	for seed := range uint64(1000) {
		p := newPlan(seed, whole)
		r := p.rates
		if sum := r.Drop + r.Repeat + r.Reorder + r.Delay + r.Flip + r.Burst + r.Stall; sum < leastFaulty || sum > mostFaulty {
			t.Errorf("seed %d: %.3f of the frames are faulty", seed, sum)
		}
		for _, tenant := range p.tenants {
			for _, job := range tenant.jobs {
				for i, r := range job {
					dies := r.victim >= 0 && !tenant.partial && i < len(job)-1
					if dies || max(r.late, r.victim, r.away) >= len(tenant.ports) || r.away >= 0 && !tenant.partial {
						t.Errorf("seed %d: reduction %d of %d on ports %v: %+v", seed, i, len(job), tenant.ports, r)
					}
				}
			}
		}
	}
}
