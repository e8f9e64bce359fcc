// The card's core: packets out.

package model

import (
	"math/bits"

	"tributary/driver/wire"
)

// AllPorts as Next's ready means that every port can take a packet.
const AllPorts = ^uint64(0)

// Next completes the reductions that have begun, and writes the next packet to out, whose payload
// memory it reuses. ready is the mask of the ports that can take a packet; ports is the mask of the
// packet's ports. If there is none, it returns ok = false and leaves out unchanged.
//
// Answers and refusals come first, lower ports before higher ones, then the notice, one port at a
// time. Then the jobs take turns, each with one result at a time: replays, then fresh results. A
// result is one packet for all its receivers; the shells deliver it to each, or send it once with
// the receivers' mask.
func (c *Card) Next(ready uint64, out *Packet) (ports uint64, ok bool) {
	c.Reduce()
	if waiting := c.statusPorts & ready; waiting != 0 {
		return c.beginStatus(bits.TrailingZeros64(waiting), out), true
	}
	if ranks := c.notice.ranksAmong(ready); ranks != 0 {
		return c.beginNotice(bits.TrailingZeros64(ranks), out), true
	}
	var d delivery
	number, ok := c.sending.take(func(number int) (due bool) {
		j := &c.jobs[number]
		d, due = j.table.due(j.ranksOf(ready))
		return due
	})
	if !ok {
		return 0, false
	}
	return c.beginResult(&c.jobs[number], d, out), true
}

// Pending reports whether Next has a packet for a port that can take it.
func (c *Card) Pending() bool {
	if c.statusPorts != 0 || c.notice.ranks != 0 {
		return true
	}
	for number := range c.jobs {
		if t := &c.jobs[number].table; len(t.owing) != 0 || len(t.reducing) != 0 {
			return true
		}
	}
	return false
}

// beginStatus sends the pending status of a port.
func (c *Card) beginStatus(port int, out *Packet) (ports uint64) {
	c.statusPorts &^= 1 << port
	c.counters.add(countStatuses, 1)
	*out = Packet{Header: c.statuses[port], Payload: out.Payload[:0]}
	c.Advance(1)
	return 1 << port
}

// beginNotice sends the notice to a rank.
func (c *Card) beginNotice(rank int, out *Packet) (ports uint64) {
	ports = 1 << c.notice.job.portOf[rank]
	*out = Packet{Header: c.notice.header, Payload: out.Payload[:0]}
	out.Rank = uint8(rank)
	c.notice.ranks &^= 1 << rank
	c.counters.add(countStatuses, 1)
	c.Advance(1)
	return ports
}

// beginResult sends the cache entry of a job's slot to its receivers.
func (c *Card) beginResult(j *job, d delivery, out *Packet) (ports uint64) {
	kind, count := wire.KindResult, countResults
	if d.replay {
		kind, count = wire.KindReplay, countReplays
	}
	s := &j.table.slots[d.slot]
	*out = Packet{
		Header: Header{
			Version:   wire.Version,
			Kind:      kind,
			Flags:     uint8(wire.ECNOrder[s.congestion]),
			Job:       uint8(j.number),
			Epoch:     j.epoch,
			Format:    c.cfg.Result,
			VID:       s.vid,
			Length:    uint16(j.setup.chunk),
			Mask:      j.summed(s),
			Receivers: d.receivers,
		},
		Payload: append(out.Payload[:0], s.result...),
	}
	if s.held != j.all {
		out.Flags |= wire.FlagPartial
	}
	if s.nonfinite {
		out.Flags |= wire.FlagNonfinite
	}
	j.table.pay(d.slot, d.receivers)
	c.counters.add(count, 1)
	for rank, port := range j.portOf {
		ports |= d.receivers >> rank & 1 << port
	}
	c.Advance(j.setup.chunk / uint64(c.cfg.Lanes))
	return ports
}
