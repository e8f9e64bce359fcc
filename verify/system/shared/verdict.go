package main

import (
	"fmt"
	"slices"
)

// ending is how a life ended.
type ending struct {
	rank    int
	killed  bool
	failed  bool // with the error of that kind, at that stage
	stage   string
	kind    string
	ranks   []int // that the error names
	text    string
	returns bool
}

// damage is what may be the reason for a failure.
type damage struct {
	card, daemon bool  // was killed, during the job or shortly before
	dead         []int // ranks that were killed
	left         []int // ranks that ended in another way
}

// explains reports whether a rank may have been lost. After the death of a daemon, nobody knows who had
// finished, or had left.
func (d *damage) explains(rank int) bool {
	return slices.Contains(d.dead, rank) || d.daemon && slices.Contains(d.left, rank)
}

// explain returns nil if the damage is a reason for the end of a life.
func (j *jobPlan) explain(e ending, d damage) error {
	if e.killed || !e.failed {
		return nil
	}
	outage, dead := d.card || d.daemon, len(d.dead) > 0
	survives := j.Carry // outages
	ok := false
	switch e.kind {
	case "MemberLostError":
		ok = !slices.ContainsFunc(e.ranks, func(rank int) bool { return !d.explains(rank) })
	case "ResultLostError":
		// A member that was evicted, and does not know it, lacks more results than anybody keeps.
		ok = survives && outage && (dead || d.daemon && j.Partial)
	case "EvictedError":
		ok = j.Partial
	case "DiedError":
		ok = outage && !survives || e.stage == "open" || e.stage == "join"
	case "LostError": // some members did not come to the next epoch
		ok = survives && outage && (dead || d.daemon && len(d.left) > 0)
	case "NO_JOB":
		ok = outage || dead || e.returns // the others may have finished meanwhile
	case "STARTED": // the job waits, at another daemon, for the members that it had
		ok = survives && d.daemon
	}
	if e.stage == "start" && survives && d.daemon && (e.kind == "LostError" || e.kind == "MemberLostError") {
		ok = true // a job whose members had not all joined cannot go on at another daemon
	}
	if ok {
		return nil
	}
	return fmt.Errorf("rank %d failed at %s without a reason (card killed: %t, daemon killed: %t, members killed: %d): %s: %s",
		e.rank, e.stage, d.card, d.daemon, d.dead, e.kind, e.text)
}
