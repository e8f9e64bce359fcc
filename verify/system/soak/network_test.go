package main

import (
	"context"
	"errors"
	"flag"
	"testing"

	"tributary/driver/cpu"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
	"tributary/verify/system/frames"
)

var (
	oneArmedDir = flag.String("one-armed", "../../../build/soak/ethernet1/card", "the virtual card with one Ethernet port, as `make faults` builds it")
	inPathDir   = flag.String("in-path", "../../../build/soak/ethernet3/card", "the virtual card with three Ethernet ports")
)

// inPath is the number of Ethernet ports of a card in path.
const inPath = 3

// TestEthernet runs the gateware of shell udp through six thousand faults of Ethernet frames. Every kind must
// occur often enough.
func TestEthernet(t *testing.T) {
	oneArmed, path := gatewareCampaign(t, *oneArmedDir, 3000), gatewareCampaign(t, *inPathDir, 3000)
	for _, c := range []*campaign{oneArmed, path} {
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		logTable(t, c)
		everyKind(t, c, 20)
		if c.total() < c.faults || c.arrays.Load() < 50 || c.effects.apart == 0 || c.effects.apart == c.effects.jobs {
			t.Errorf("%d faults, %d arrays compared, members of %d of %d jobs apart", c.total(), c.arrays.Load(), c.effects.apart, c.effects.jobs)
		}
	}
	// The counts of a card that was killed are lost, and a cable may repeat frames.
	if e := &path.effects; e.passed == 0 || e.card["passed"] == 0 {
		t.Errorf("%d frames passed the card in path, and it counted %d", e.passed, e.card["passed"])
	}
}

// gatewareCampaign returns a campaign on the card in a folder. The first five rounds from this seed draw no
// kind of fault rarely.
func gatewareCampaign(t *testing.T, dir string, most int64) *campaign {
	c := &campaign{seed: 12, faults: most, parallel: 4, report: func(int64) {}}
	if err := c.choose(dir); err != nil {
		t.Fatal(err)
	}
	return c
}

// everyKind checks that each kind of fault has occurred, in each direction that has it.
func everyKind(t *testing.T, c *campaign, least int64) {
	t.Helper()
	for kind, name := range faults.FrameKinds {
		for d := range c.frames.Faults {
			strange := faults.FrameKind(kind) == faults.OthersWrite || faults.FrameKind(kind) == faults.OthersData
			least := least
			if faults.FrameKind(kind) == faults.Oversized {
				least = 1
			}
			if n := c.frames.Faults[d][kind].Load(); n < least && !(strange && frame.Direction(d) == frame.FromCard) {
				t.Errorf("%s, direction %d: %d times, less than %d", name, d, n, least)
			}
		}
	}
}

// endpoints are the cards in software.
var endpoints = map[string]func(cfg model.Config) (ethernet.Endpoint, error){
	"model": func(cfg model.Config) (ethernet.Endpoint, error) { return model.NewEndpoint(cfg, frames.CardAddress) },
	"cpu": func(cfg model.Config) (ethernet.Endpoint, error) {
		return cpu.NewEndpoint(cpu.Config(cfg), frames.CardAddress)
	},
}

// software makes a card in software with Ethernet ports.
func software(name string, n int, parent bool) (*ethernet.Card, error) {
	endpoint, err := endpoints[name](model.Config{
		Lanes: 2, Ports: portsOnNetwork, Chunk: 8, Window: 32, Jobs: 4, Shell: wire.ShellUDP, Link: 64, Ethernet: n, Parent: parent,
	})
	if err != nil {
		return nil, err
	}
	return ethernet.New(endpoint, n)
}

// softwareCampaign returns a campaign on a card in software, behind a defect if there is one.
func softwareCampaign(name string, n int, defect func(*blind) ethernet.Device) *campaign {
	device := func(context.Context, bool) (ethernet.Device, frameport.Timekeeper, error) {
		card, err := software(name, n, false)
		if err != nil {
			return nil, nil, err
		}
		if defect == nil {
			return card, clock.Start(card), nil
		}
		return defect(&blind{Card: card, members: map[uint16][]byte{}}), clock.Start(card), nil
	}
	return &campaign{seed: 1, faults: 2000, parallel: 6, ethernet: n, clock: modelClock, device: device, report: func(int64) {}}
}

// TestSoftwareOnEthernet runs the cards in software through two thousand faults each, one-armed and in path.
func TestSoftwareOnEthernet(t *testing.T) {
	for name := range endpoints {
		for _, n := range []int{1, inPath} {
			c := softwareCampaign(name, n, nil)
			if err := c.run(t.Context()); err != nil {
				t.Fatalf("%s with %d ports: %v", name, n, err)
			}
			if c.total() < c.faults || c.arrays.Load() == 0 {
				t.Errorf("%d faults, %d arrays compared", c.total(), c.arrays.Load())
			}
		}
	}
}

// TestLackOfACheckIsFoundOut: a card without one of its checks ends the campaign.
func TestLackOfACheckIsFoundOut(t *testing.T) {
	for name, defect := range defects {
		t.Run(name, func(t *testing.T) {
			c := softwareCampaign("model", 1, defect)
			c.faults = 20_000
			err := c.run(t.Context())
			var wrong *wrongSum
			var count *wrongCount
			if !errors.As(err, &wrong) && !errors.As(err, &count) {
				t.Fatalf("got %v", err)
			}
			t.Log(err)
		})
	}
}
