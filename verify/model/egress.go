// The card's core: packets out.

package model

import (
	"math/bits"

	"tributary/driver/wire"
)

// AllPorts says to Next that every port can take a packet.
const AllPorts = ^uint64(0)

// Next completes the reductions that have begun and writes the next packet
// that leaves into out, whose payload's memory is used again. ready names the
// ports that can take a packet, a bit each; ports are those that the packet is
// for. It returns ok = false, and leaves out alone, when there is none.
//
// Statuses go first, those of lower ports before others; then replays, then
// fresh results. A result is one packet for all its receivers (the shells give
// it to each, or send it once with the receivers' mask).
func (c *Card) Next(ready uint64, out *Packet) (ports uint64, ok bool) {
	c.Reduce()
	if waiting := c.statusPorts & ready; waiting != 0 {
		return c.beginStatus(bits.TrailingZeros64(waiting), out), true
	}
	number, receivers, replay, ok := c.table.due(c.ranksOf(ready))
	if !ok {
		return 0, false
	}
	return c.beginResult(number, receivers, replay, out), true
}

// Pending reports whether Next has a packet for a port that can take it.
func (c *Card) Pending() bool {
	return c.statusPorts != 0 || len(c.table.owing) != 0 || len(c.table.reducing) != 0
}

// ranksOf returns the ranks of the ports in a set.
func (c *Card) ranksOf(ports uint64) (ranks uint64) {
	if ports == AllPorts {
		return c.job.all
	}
	for rank, port := range c.job.portOf {
		ranks |= ports >> port & 1 << rank
	}
	return ranks
}

// beginStatus sends the pending status of a port.
func (c *Card) beginStatus(port int, out *Packet) (ports uint64) {
	c.statusPorts &^= 1 << port
	c.counters.add(countStatuses, 1)
	c.cycles++
	*out = Packet{Header: c.statuses[port], Payload: out.Payload[:0]}
	return 1 << port
}

// beginResult sends a slot's cache entry to receivers.
func (c *Card) beginResult(number int, receivers uint64, replay bool, out *Packet) (ports uint64) {
	kind, count := wire.KindResult, countResults
	if replay {
		kind, count = wire.KindReplay, countReplays
	}
	s := &c.table.slots[number]
	*out = Packet{
		Header: Header{
			Version:   wire.Version,
			Kind:      kind,
			Flags:     uint8(wire.ECNOrder[s.congestion]),
			Epoch:     c.job.epoch,
			Format:    c.cfg.Result,
			VID:       s.vid,
			Length:    uint16(c.job.setup.chunk),
			Mask:      c.job.all,
			Receivers: receivers,
		},
		Payload: append(out.Payload[:0], s.result...),
	}
	if s.nonfinite {
		out.Flags |= wire.FlagNonfinite
	}
	c.table.pay(number, receivers)
	c.counters.add(count, 1)
	c.cycles += uint64(c.job.setup.chunk) / uint64(c.cfg.Lanes)
	for rank, port := range c.job.portOf {
		ports |= receivers >> rank & 1 << port
	}
	return ports
}
