package main

import (
	"fmt"
	"io"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
)

// effects are the counts of card and driver.
type effects struct {
	card   map[string]int64
	link   driver.LinkStats
	member driver.MemberStats
	carry  int64 // outages that a job survived
	marked int64 // results with the mark CE

	jobs    int64
	beside  int64 // those with others on their card
	apart   int64 // those whose members have an address each
	unsound int64 // frames that hosts have dropped
	passed  int64 // frames of another protocol that came through a card in path
	overdue int64 // notices
	partial int64 // chunks whose sums lack a member
	evicted int64 // members
	back    int64 // evicted members that are in sums of the next job
}

// refusals are a card's counters of refused packets.
var refusals = []string{"late", "early", "not_ready", "bad_epoch", "bad_job", "bad_rank", "bad_format", "bad_length", "bad_kind", "bad_version"}

func (e *effects) addCounters(counters []driver.Counter) {
	if e.card == nil {
		e.card = map[string]int64{}
	}
	for _, c := range counters {
		e.card[c.Name] += int64(c.Value)
	}
}

func (e *effects) addLink(s driver.LinkStats) {
	e.link.Hunted += s.Hunted
	e.link.HeaderCRC += s.HeaderCRC
	e.link.PayloadCRC += s.PayloadCRC
	e.link.DatagramCRC += s.DatagramCRC
	e.link.Refused += s.Refused
}

func (e *effects) addJob(j *driver.Job) {
	s := j.Stats()
	e.member.Resent += s.Resent
	e.member.Asked += s.Asked
	e.member.Duplicates += s.Duplicates
	e.member.Refused += s.Refused
	e.carry += int64(j.Outages())
	e.marked += int64(j.Congestion().Marked)
}

// dropped returns how many frames the card has dropped because of a fault.
func (e *effects) dropped() (n int64) {
	for _, name := range exact {
		if name != "datagram_crc" {
			n += e.card[name]
		}
	}
	return n
}

// print writes the table of the faults and their effects.
func (c *campaign) print(out io.Writer) {
	fmt.Fprintf(out, "%d faults in %d rounds from seed %d, %.0f s; %d arrays compared, every bit\n\n",
		c.total(), c.ended, c.seed, c.took.Seconds(), c.arrays.Load())
	row := func(name string, card, host any) { fmt.Fprintf(out, "%-34s %12v %12v\n", name, card, host) }
	row("injected", "to the card", "to the host")
	for kind, name := range faults.Kinds {
		if toCard, toHost := c.counts.Faults[frame.ToCard][kind].Load(), c.counts.Faults[frame.FromCard][kind].Load(); toCard+toHost > 0 {
			row(name, toCard, toHost)
		}
	}
	for kind, name := range faults.FrameKinds {
		if toCard, toHost := c.frames.Faults[frame.ToCard][kind].Load(), c.frames.Faults[frame.FromCard][kind].Load(); toCard+toHost > 0 {
			row(name, toCard, toHost)
		}
	}
	row("of frames", c.counts.Frames[frame.ToCard].Load()+c.frames.Frames[frame.ToCard].Load(),
		c.counts.Frames[frame.FromCard].Load()+c.frames.Frames[frame.FromCard].Load())
	if c.ethernet == 0 {
		row("let through by the CRCs", c.counts.LetThrough[frame.ToCard].Load(), c.counts.LetThrough[frame.FromCard].Load())
	}
	for i, name := range events {
		if n := c.events[i].Load(); n > 0 {
			row(name, n, "")
		}
	}
	fmt.Fprintln(out)
	row("what came of them", "at the card", "at the host")
	e := &c.effects
	if c.ethernet == 0 {
		row("bytes hunted through", e.card["hunted"], e.link.Hunted)
		row("wrong header CRCs", e.card["header_crc"], e.link.HeaderCRC)
		row("wrong payload CRCs", e.card["payload_crc"], e.link.PayloadCRC)
	} else {
		row("frames and packets dropped", e.dropped(), e.unsound)
		row("wrong CRC-32Cs", e.card["datagram_crc"], e.link.DatagramCRC)
	}
	var refused int64
	for _, name := range refusals {
		refused += e.card[name]
	}
	row("packets refused", refused, e.link.Refused)
	row("duplicates", e.card["duplicate"], e.member.Duplicates)
	row("results asked for", e.card["asks"], e.member.Asked)
	row("results replayed", e.card["replays"], "")
	row("chunks sent again", "", e.member.Resent)
	row("outages a job was carried over", "", e.carry)
	row("jobs", "", e.jobs)
	row("jobs beside others", "", e.beside)
	if c.ethernet > 0 {
		row("jobs of members apart", "", e.apart)
		row("other frames passed on", e.card["passed"], e.passed)
		row("data of strangers", e.card["stranger"], "")
		row("results marked CE", "", e.marked)
	}
	if c.trees {
		row("datagrams to unused UDP ports", e.card["udp_port"], "")
		for _, counter := range wire.UpCounters {
			row(counter.Name, e.card[counter.Name], "")
		}
	}
	row("notices of overdue chunks", "", e.overdue)
	row("chunks summed without a member", "", e.partial)
	row("members evicted", "", e.evicted)
	row("evicted, and in the next job", "", e.back)
	if c.damage {
		fmt.Fprintf(out, "\nRounds with a wrong sum: %d; given up: %d.\n", c.wrong, c.failed)
		for _, reason := range c.reasons {
			fmt.Fprintf(out, "  %v\n", reason)
		}
	}
}
