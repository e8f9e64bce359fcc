package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"tributary/driver"
	"tributary/driver/wire"
)

// Neighbours of a one-armed card under RoCEv2 (SPEC.md, section 14): the hosts for which it relays frames.

// setNeighbours tells a one-armed card the hosts of a job, before its connections are registered. Hosts of
// earlier jobs stay while there is room. If there is none, it waits for jobs that are over. The caller holds
// card.connecting.
func (j *job) setNeighbours(ctx context.Context) error {
	c := j.card
	_, err := c.single.ReadRegister(ctx, wire.NeighbourAddr(wire.RegNeighbourAddress, 0))
	if refused := (*driver.RefusedError)(nil); errors.As(err, &refused) && refused.Code == wire.CodeBadAddress {
		return nil // in path
	}
	if err != nil {
		return err
	}
	most := c.driver.Info().Ports
	hosts, ok := placeNeighbours(c.neighbours, j.hosts(), c.hostsOfOthers(j), most)
	if !ok && c.awaitParting() {
		hosts, ok = placeNeighbours(c.neighbours, j.hosts(), c.hostsOfOthers(j), most)
	}
	if !ok {
		return fmt.Errorf("a one-armed card relays for %d hosts, and this job and those that run have more; wait for their end, or use a card generated with more -workers", most)
	}
	if err := c.single.SetNeighbours(ctx, hosts); err != nil {
		return err
	}
	c.neighbours = hosts
	return nil
}

// hosts returns those of the job's connections. They do not change after gathering.
func (j *job) hosts() (hosts []driver.Neighbour) {
	for _, s := range j.seats {
		r := connectedRank(s.end)
		hosts = append(hosts, driver.Neighbour{Address: r.Address, MAC: r.MAC})
	}
	return hosts
}

// hostsOfOthers returns the hosts of the card's other jobs that have connections.
func (c *card) hostsOfOthers(than *job) (hosts []driver.Neighbour) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range []map[uint64]*job{c.jobs, c.parting} {
		for _, j := range all {
			if j != than && j.rdma != nil && j.state != gathering && j.allConnected() {
				hosts = append(hosts, j.hosts()...)
			}
		}
	}
	return hosts
}

// awaitParting waits until the queue pairs of jobs that are over now have gone, or nobody waits for them any
// more. It reports whether there were such jobs.
func (c *card) awaitParting() bool {
	c.mu.Lock()
	parting := slices.Collect(maps.Values(c.parting))
	c.mu.Unlock()
	for _, j := range parting {
		j.awaitQueuePairs()
	}
	return len(parting) > 0
}

// placeNeighbours returns a card's neighbours after the start of a job, of which the card takes most. A host
// keeps its place, so that its frames go on meanwhile. Those of no running job give theirs to new ones. ok is
// false if there is no place.
func placeNeighbours(before, job, running []driver.Neighbour, most int) (after []driver.Neighbour, ok bool) {
	after = slices.Clone(before)
	needed := map[netip.Addr]bool{}
	for _, h := range slices.Concat(running, job) {
		needed[h.Address] = true
	}
	for _, h := range slices.Concat(running, job) { // the job knows best
		at := slices.IndexFunc(after, func(n driver.Neighbour) bool { return n.Address == h.Address })
		if at < 0 && len(after) < most {
			after = append(after, h)
			continue
		}
		if at < 0 {
			at = slices.IndexFunc(after, func(n driver.Neighbour) bool { return !needed[n.Address] })
		}
		if at < 0 {
			return nil, false
		}
		after[at] = h
	}
	return after, true
}
