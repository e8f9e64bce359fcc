package main

import (
	"fmt"
	"strings"

	"tributary/verify/protocol/explorer"
)

// The properties, by their names in counterexamples.
const (
	rightSum        = "right sum"
	alwaysSummed    = "always summed"
	ownHeader       = "own header"
	noEarlyTurnover = "no early turnover"
	neverTurnedAway = "never turned away"
	noNeedlessNAK   = "no needless NAK"
	quickRepair     = "quick repair"
	progress        = "progress"
)

// properties lists them all, for help and documentation.
var properties = []explorer.Property{
	{Name: rightSum, Holds: "a payload that a rank takes is the sum of each rank's contribution of exactly this VID, undamaged, once"},
	{Name: alwaysSummed, Holds: "no data packet leaves on a connection with its own payload"},
	{Name: ownHeader, Holds: "a sum of VID v leaves on a connection in the header that the connection's sender gave v, undamaged"},
	{Name: noEarlyTurnover, Holds: "no slot turns over while a rank that keeps the rules lacks its sum, or has not completed its send"},
	{Name: neverTurnedAway, Holds: "the card stores data of a rank that keeps the rules, or knows it as a repeat"},
	{Name: noNeedlessNAK, Holds: "a connection whose packets were neither lost nor overtaken sees no NAK"},
	{Name: quickRepair, Holds: "after one lost packet, no timer has to expire if the sender's next packet was summed"},
	{Name: progress, Holds: "once faults cease, every rank receives and completes everything"},
}

// set formats a set of ranks or connections.
func (w *world) set(members uint8) string {
	if !w.Telling() {
		return ""
	}
	var names []string
	for i := range w.config.ranks {
		if members&bit(i) != 0 {
			names = append(names, fmt.Sprint(i))
		}
	}
	return "{" + strings.Join(names, ",") + "}"
}

// judgeTaken checks a payload that a rank takes.
func (w *world) judgeTaken(me int, p packet) {
	want := int(w.ranks[me].expected)
	for i := range w.config.ranks {
		t := p.load[i]
		switch right := tagOf(i, want); {
		case t == right:
		case t == 0:
			w.Violate(rightSum, "v=%d, which rank %d takes, lacks rank %d", want, me, i)
		case t == right|tagDamaged:
			w.Violate(rightSum, "v=%d, which rank %d takes, has damage of rank %d", want, me, i)
		case t&tagSum != 0:
			w.Violate(rightSum, "v=%d, which rank %d takes, has the sum v=%d of rank %d", want, me, t.vid(), i)
		default:
			w.Violate(rightSum, "v=%d, which rank %d takes, has v=%d of rank %d in place of rank %d", want, me, t.vid(), t.rank(), i)
		}
	}
}

// judgeHeader checks the header of a sum that leaves.
func (w *world) judgeHeader(conn int, s *slot) {
	if t := s.header[conn] &^ tagAsk; t != tagOf(conn, int(s.vid)) {
		w.Violate(ownHeader, "the sum v=%d leaves on connection %d in the header v=%d of rank %d", s.vid, conn, t.vid(), t.rank())
	}
}

// judgeTurnover checks a slot before its reuse.
func (w *world) judgeTurnover(s *slot) {
	u := int(s.vid)
	for i := range w.config.ranks {
		switch r := &w.ranks[i]; {
		case !w.config.honest(i):
		case int(r.expected) <= u:
			w.Violate(noEarlyTurnover, "the slot of v=%d turns over, and rank %d has not received it", u, i)
		case int(r.oldest) <= u:
			w.Violate(noEarlyTurnover, "the slot of v=%d turns over, and rank %d has not completed its send", u, i)
		}
	}
}

// judgeVerdict checks what the card makes of undamaged data.
func (w *world) judgeVerdict(p packet, v verdict) {
	if !w.config.reckless && (v == early || v == notReady) {
		w.Violate(neverTurnedAway, "rank %d was allowed to send v=%d, and the card did not store it", p.conn, p.vid)
	}
}

// judgeNAK checks that a NAK has a cause.
func (w *world) judgeNAK(conn int) {
	if !w.calm && w.conns[conn].lost == 0 {
		w.Violate(noNeedlessNAK, "connection %d has lost nothing, and sees a NAK", conn)
	}
}

// judgeRest checks what an ordered network leaves to timers.
func (w *world) judgeRest() {
	all := uint8(0)
	for _, k := range w.conns {
		all += k.lost
	}
	if all != 1 || w.harmed || w.config.oldest {
		return
	}
	for conn := range w.config.ranks {
		lacks := int(w.ranks[w.config.receiver(conn)].expected)
		if w.conns[conn].lost == 1 && w.summed(lacks+1) {
			w.Violate(quickRepair, "connection %d lacks v=%d until a timer expires, and v=%d is summed", conn, lacks, lacks+1)
		}
	}
}
