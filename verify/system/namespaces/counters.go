//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
)

// counters are the card's counters, by name.
type counters map[string]uint64

// counters reads the card's counters, from host 0 beside the card's owner.
func (s *site) counters(ctx context.Context) (counters, error) {
	words := []string{s.tributary, "info", "-json", "-card", "udp:" + cardIP}
	out, err := command(ctx, within(s.pids()[0], words)).Output()
	if err != nil {
		return nil, fmt.Errorf("tributary info: %w", err)
	}
	return readCounters(out)
}

// readCounters reads the output of `tributary info -json`.
func readCounters(out []byte) (counters, error) {
	var info struct {
		Counters []struct {
			Name  string
			Value uint64
		}
	}
	if err := json.Unmarshal(out, &info); err != nil {
		return nil, fmt.Errorf("tributary info: %w", err)
	}
	all := counters{}
	for _, c := range info.Counters {
		all[c.Name] = c.Value
	}
	return all, nil
}

// check refuses a card in path through which the pings have not passed, and frames with a wrong checksum:
// a host must not leave checksums to a device that does not compute them.
func (c counters) check(ports int, p *pings) error {
	if least := uint64(2 * p.highest); ports > 1 && c["passed"] < least {
		return fmt.Errorf("the card has passed %d frames; the pings and their replies are %d", c["passed"], least)
	}
	if c["checksum"] > 0 {
		return fmt.Errorf("%d datagrams had a wrong checksum", c["checksum"])
	}
	return nil
}

func (c counters) String() string {
	return fmt.Sprintf("%d contributions stored, %d frames passed between hosts, %d dropped", c["stored"], c["passed"], c["dropped"])
}
