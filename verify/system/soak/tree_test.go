package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"

	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
)

// The size of each campaign of TestTrees, and its first round; `make soak-trees` sets them.
var (
	treeFaults = flag.Int64("tree-faults", 1000, "faults in each campaign on trees of cards in software")
	treeSeed   = flag.Uint64("tree-seed", 1, "the seed of its first round")
)

// treeCampaign returns a campaign on trees of cards in software with so many Ethernet ports. Rounds take the
// kinds of cards in turn, behind a defect if there is one.
func treeCampaign(n int, defect func(*ethernet.Card) ethernet.Device, kinds ...string) *campaign {
	var made atomic.Int64
	device := func(context.Context, bool) (ethernet.Device, frameport.Timekeeper, error) {
		card, err := software(kinds[int(made.Add(1))%len(kinds)], n, true)
		if err != nil {
			return nil, nil, err
		}
		if defect == nil {
			return card, clock.Start(card), nil
		}
		return defect(card), clock.Start(card), nil
	}
	return &campaign{seed: *treeSeed, faults: *treeFaults, parallel: 3, trees: true, ethernet: n, clock: modelClock, device: device, report: func(int64) {}}
}

// TestTrees runs trees of cards in software, alike and mixed, one-armed and in path. Among all, everything has
// happened at an up port that can.
func TestTrees(t *testing.T) {
	happened := map[string]int64{}
	for _, kinds := range [][]string{{"model"}, {"cpu"}, {"model", "cpu"}} {
		for _, n := range []int{1, inPath} {
			t.Run(fmt.Sprint(kinds, n), func(t *testing.T) {
				c := treeCampaign(n, nil, kinds...)
				if err := c.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				logTable(t, c)
				if c.total() < c.faults || c.arrays.Load() == 0 {
					t.Errorf("%d faults, %d arrays compared", c.total(), c.arrays.Load())
				}
				e := &c.effects
				for name, n := range e.card {
					happened[name] += n
				}
				happened["cards killed"] += c.events[cardKilled].Load()
				happened["packets of earlier set-ups"] += c.events[packetOfBefore].Load()
				happened["outages"] += e.carry
				happened["results marked CE"] += e.marked
				happened["passed, in path"] += e.passed
			})
		}
	}
	for _, name := range []string{
		"up_sent", "up_repeats", "up_taken", "up_dropped", "up_refused", "udp_port", "stranger", "datagram_crc",
		"cards killed", "packets of earlier set-ups", "outages", "results marked CE", "passed, in path",
	} {
		if happened[name] == 0 {
			t.Errorf("%s: 0, the faults do nothing", name)
		}
	}
}

// TestTreeWithoutACheckIsFoundOut: cards that take results of strangers end the campaign.
func TestTreeWithoutACheckIsFoundOut(t *testing.T) {
	c := treeCampaign(1, func(card *ethernet.Card) ethernet.Device {
		b := &blind{Card: card, members: map[uint16][]byte{}}
		b.repair = b.renameParent
		return b
	}, "model")
	c.faults = 20_000
	err := c.run(t.Context())
	var wrong *wrongSum
	if !errors.As(err, &wrong) {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
}
