package main

import (
	"slices"

	"tributary/verify/protocol/explorer"
)

// config is a small job, and how often its parts may fail.
type config struct {
	name, about string

	members int
	window  int
	chunks  int
	calls   []int // the first chunk after each call; none: each chunk is a call
	partial bool  // deadlines: sums may lack members
	early   bool  // a member may finish after some calls while others go on
	large   bool  // explored by the command alone, with -large
	left    failures
	states  int // reachable states
}

// after returns the first chunk after the call of chunk v.
func (c *config) after(v int) int {
	for _, end := range c.calls {
		if v < end {
			return end
		}
	}
	return v + 1
}

// boundary reports whether a call begins with chunk v, or the last call ends before it.
func (c *config) boundary(v int) bool {
	return v == 0 || len(c.calls) == 0 || slices.Contains(c.calls, v)
}

// configs are explored with their exact numbers of states: by the tests, unless they are large.
var configs = []config{
	{name: "small", about: "2 members, W = 1, 2 chunks; the card dies", members: 2, window: 1, chunks: 2, left: failures{cards: 1}, states: 181},
	{name: "card", about: "2 members, W = 1; the card dies twice", members: 2, window: 1, chunks: 4, left: failures{cards: 2}, states: 1099},
	{name: "daemon", about: "2 members, W = 1; the daemon dies twice", members: 2, window: 1, chunks: 4, left: failures{daemons: 2}, states: 1926},
	{name: "both", about: "2 members, W = 1; card and daemon die, in any order", members: 2, window: 1, chunks: 4, left: failures{cards: 1, daemons: 1}, states: 2904},
	{name: "window", about: "2 members, W = 2: results in any order; card and daemon die", members: 2, window: 2, chunks: 3, left: failures{cards: 1, daemons: 1}, states: 7520},
	{name: "three", about: "3 members, W = 1; card and daemon die", members: 3, window: 1, chunks: 3, left: failures{cards: 1, daemons: 1}, states: 11258},
	{name: "partial", about: "2 members, W = 1, partial sums; card and daemon die", members: 2, window: 1, chunks: 3, partial: true, left: failures{cards: 1, daemons: 1}, states: 6104},
	{name: "leave-card", about: "3 members, W = 1, partial sums; a member dies, and so does the card", members: 3, window: 1, chunks: 2, partial: true, left: failures{cards: 1, leaves: 1}, states: 34100},
	{name: "leave-daemon", about: "3 members, W = 1, partial sums; a member dies, and so does the daemon", members: 3, window: 1, chunks: 2, partial: true, left: failures{daemons: 1, leaves: 1}, states: 24743},
	{name: "evict", about: "2 members, W = 1, partial sums; the card evicts one, and dies", members: 2, window: 1, chunks: 4, partial: true, left: failures{cards: 1, evictions: 1}, states: 3065},
	{name: "evict-window", about: "as evict, W = 2", members: 2, window: 2, chunks: 5, partial: true, left: failures{cards: 1, evictions: 1}, states: 34226},
	{name: "evict-three", about: "as evict, 3 members", members: 3, window: 1, chunks: 4, partial: true, left: failures{cards: 1, evictions: 1}, states: 235195},
	{name: "early", about: "2 members, W = 1, partial sums; one has fewer calls or is evicted; card and daemon die", members: 2, window: 1, chunks: 5, partial: true, early: true, left: failures{cards: 1, daemons: 1, evictions: 1}, states: 87283},
	{name: "return", about: "2 members, W = 1, calls of 1, 2 and 1 chunks; a member dies and returns", members: 2, window: 1, chunks: 4, calls: []int{1, 3, 4}, partial: true, left: failures{leaves: 1, returns: 1}, states: 1820},
	{name: "return-card", about: "2 members, W = 1, calls of 2 and 1 chunks; a member dies and returns, and the card dies", members: 2, window: 1, chunks: 3, calls: []int{2, 3}, partial: true, left: failures{cards: 1, leaves: 1, returns: 1}, states: 7013},
	{name: "return-daemon", about: "2 members, W = 1, calls of 2, 1 and 1 chunks; a member dies and returns, and the daemon dies", members: 2, window: 1, chunks: 4, calls: []int{2, 3, 4}, partial: true, left: failures{daemons: 1, leaves: 1, returns: 1}, states: 11180},
	{name: "return-twice", about: "2 members, W = 1, calls of 2 and 1 chunks; members die twice, and return twice", members: 2, window: 1, chunks: 3, calls: []int{2, 3}, partial: true, left: failures{leaves: 2, returns: 2}, states: 7225},
	{name: "return-evicted", about: "as return; the card evicts a member, which returns", members: 2, window: 1, chunks: 4, calls: []int{1, 3, 4}, partial: true, left: failures{leaves: 1, returns: 1, evictions: 1}, states: 4296},
	{name: "return-early", about: "3 members, W = 1; one has fewer calls, one dies and returns", members: 3, window: 1, chunks: 2, partial: true, early: true, left: failures{leaves: 1, returns: 1}, states: 27365},
	{name: "return-early-card", about: "2 members, W = 1, calls of 2, 1 and 1 chunks; as return-evicted, one has fewer calls, and the card dies", members: 2, window: 1, chunks: 4, calls: []int{2, 3, 4}, partial: true, early: true, left: failures{cards: 1, leaves: 1, returns: 1, evictions: 1}, states: 38012},
	{name: "return-three", about: "3 members, W = 1; two die and return", members: 3, window: 1, chunks: 2, partial: true, left: failures{leaves: 2, returns: 2}, states: 104708},
	{name: "return-window", about: "2 members, W = 2, calls of 1, 2 and 1 chunks; a member dies and returns, and the card dies", members: 2, window: 2, chunks: 4, calls: []int{1, 3, 4}, partial: true, left: failures{cards: 1, leaves: 1, returns: 1}, states: 95220},
	{name: "return-three-card", about: "as return-three, and the card dies", members: 3, window: 1, chunks: 2, partial: true, large: true, left: failures{cards: 1, leaves: 2, returns: 2}, states: 578588},
	{name: "return-three-both", about: "3 members, W = 1; one dies and returns, card and daemon die", members: 3, window: 1, chunks: 2, partial: true, large: true, left: failures{cards: 1, daemons: 1, leaves: 1, returns: 1}, states: 622740},
	{name: "return-three-evicted", about: "3 members, W = 1; as return-evicted, and the card dies", members: 3, window: 1, chunks: 3, partial: true, large: true, left: failures{cards: 1, leaves: 1, returns: 1, evictions: 1}, states: 699180},
	{name: "return-three-window", about: "3 members, W = 2; one dies and returns", members: 3, window: 2, chunks: 3, partial: true, large: true, left: failures{leaves: 1, returns: 1}, states: 590090},
	{name: "return-all", about: "2 members, W = 1, calls of 1, 2 and 1 chunks; each dies and returns, one is evicted, card and daemon die", members: 2, window: 1, chunks: 4, calls: []int{1, 3, 4}, partial: true, large: true, left: failures{cards: 1, daemons: 1, leaves: 2, returns: 2, evictions: 1}, states: 709920},
	{name: "return-all-early", about: "2 members, W = 1, calls of 2, 1 and 1 chunks; as return-early-card, and the daemon dies", members: 2, window: 1, chunks: 4, calls: []int{2, 3, 4}, partial: true, early: true, left: failures{cards: 1, daemons: 1, leaves: 1, returns: 1, evictions: 1}, states: 294609},
	{name: "return-window-all", about: "2 members, W = 2, calls of 2, 2 and 1 chunks; one dies and returns, one is evicted, card and daemon die", members: 2, window: 2, chunks: 5, calls: []int{2, 4, 5}, partial: true, large: true, left: failures{cards: 1, daemons: 1, leaves: 1, returns: 1, evictions: 1}, states: 1597308},
}

// Heading returns what all explorers' configurations have.
func (c config) Heading() explorer.Heading {
	return explorer.Heading{Name: c.name, About: c.about, Large: c.large, States: c.states}
}

// ruleSet is a set of rules that are left out.
type ruleSet = explorer.Rules

// The comment gives the behaviour without the rule.
const (
	noDaemonKeep        ruleSet = 1 << iota // the daemon keeps no results
	noLibraryKeep                           // the libraries keep none
	keepUntilReturn                         // a library drops a call's results when the call returns
	keepOneWindow                           // a library keeps W results though sums may be partial
	noStop                                  // a member takes results of the old epoch after its report
	firstOfSlowest                          // the next epoch begins with the first chunk, though all hold its result
	firstOfFastest                          // it begins with what the fastest member lacks, and nobody gets what was kept
	keptNotHanded                           // members do not get the kept results that they lack
	noZeros                                 // a member sends its array for a chunk whose result it holds
	replaceKept                             // a result of a later epoch replaces the one held
	staleEpoch                              // a member takes results of any epoch
	noBarrier                               // the next epoch begins before all members have reported
	handWithStart                           // members get the kept results that they lack with the start of the epoch
	sumLost                                 // a result that nobody has kept is summed anew from arrays that hold it
	sumAgain                                // a result that the daemon alone keeps is summed again
	noPause                                 // a returned member gets in at once, wherever the others are
	pauseDropsNothing                       // the daemon forwards data from the pause on
	pauseAfterAnnounced                     // a new daemon pauses after calls in progress, whatever was reported
	pauseAfterLiving                        // the daemon pauses after the calls of seats that are not lost
	pauseNeedsReturned                      // a pause never ends when the returned member is lost again
	renewBeforeDrained                      // an epoch lets members in while results before the pause are missing
	onlyFirstEnters                         // a member that returns during a pause stays out
	waitForTheDead                          // the pause ends when results are there that nobody is left to complete
	summedFromOldEpoch                      // after an epoch that skipped chunks the daemon waits for their results
	evictedMarkStays                        // a returned member stays marked as evicted
	lateNotice                              // the notice of an old epoch's eviction marks a member that has returned
	evictedByNotice                         // a seat is evicted only when the daemon has seen the notice
	waitForFinished                         // the change waits for seats that have finished
	waitForEvicted                          // it waits for seats that the card has evicted
	waitForLost                             // it waits for seats that were lost meanwhile
	finishOfEpoch                           // a finish counts in its epoch alone
	endWaitsForLost                         // the job's end waits for lost seats

	lastRule = endWaitsForLost
)

// The properties, by their names in counterexamples.
const (
	rightSum    = "right sum"
	sameBits    = "same bits"
	nothingLost = "nothing lost"
	progress    = "progress"
)

var properties = []explorer.Property{
	{Name: rightSum, Holds: "a result that a member takes has the input of each member that it names, once, and nothing else"},
	{Name: sameBits, Holds: "whoever takes the result of a chunk takes the same one, whatever epoch it came from"},
	{Name: nothingLost, Holds: "while a member lives, each result that any living member holds is there for those that lack it"},
	{Name: progress, Holds: "once nothing fails any more, every living member that is not evicted gets every result from its first call on, and finishes; then the job is over"},
}

var weakenings = []explorer.Weakening[config]{
	{Name: "no-library-keep", Means: "libraries keep no results", Config: "daemon", Breaks: nothingLost, Rules: noLibraryKeep},
	{Name: "keep-until-return", Means: "a library drops a call's results when the call returns", Config: "daemon", Breaks: nothingLost, Rules: keepUntilReturn},
	{Name: "keep-one-window", Means: "with partial sums a library keeps the last W results", Config: "partial", Breaks: nothingLost, Rules: keepOneWindow},
	{Name: "no-keep", Means: "neither the daemon nor the libraries keep results", Config: "card", Breaks: nothingLost, Rules: noDaemonKeep | noLibraryKeep},
	{Name: "no-daemon-keep", Means: "the daemon keeps no results", Config: "leave-card", Breaks: sameBits, Rules: noDaemonKeep},
	{Name: "no-stop", Means: "a member takes results of the old epoch after its report", Config: "daemon", Breaks: rightSum, Rules: noStop},
	{Name: "no-barrier", Means: "the next epoch begins before all members have reported", Config: "both", Breaks: nothingLost, Rules: noBarrier},
	{Name: "first-of-slowest", Means: "the next epoch begins with the first chunk, though all members hold its result", Config: "small", Rules: firstOfSlowest,
		Harmless: "chunks with a result pass as zeros, and their sums are dropped: the job is only slower"},
	{Name: "first-of-fastest", Means: "the next epoch begins with what the fastest member lacks, and the others do not get what was kept", Config: "card", Breaks: progress, Rules: firstOfFastest},
	{Name: "kept-not-handed", Means: "members do not get the kept results that they lack", Config: "card", Breaks: rightSum, Rules: keptNotHanded},
	{Name: "hand-with-start", Means: "members get the kept results that they lack with the start of the epoch, which the others do not wait for", Config: "partial", Breaks: progress, Rules: handWithStart},
	{Name: "no-zeros", Means: "a member sends its array for a chunk whose result it holds", Config: "window", Rules: noZeros,
		Harmless: "every member holds the result and drops the new sum; the card's counts of exceptions would be wrong"},
	{Name: "replace-kept", Means: "a result of a later epoch replaces the one that a member holds", Config: "window", Breaks: rightSum, Rules: replaceKept},
	{Name: "stale-epoch", Means: "a member takes results of any epoch", Config: "both", Breaks: rightSum, Rules: staleEpoch},
	{Name: "stale-epoch-partial", Means: "as stale-epoch, where sums may lack members", Config: "partial", Breaks: sameBits, Rules: staleEpoch},
	{Name: "sum-lost", Means: "a result that nobody has kept is summed anew", Config: "daemon", Breaks: rightSum, Rules: sumLost | noLibraryKeep},
	{Name: "sum-again", Means: "a result that the daemon alone keeps is summed again", Config: "leave-card", Breaks: sameBits, Rules: sumAgain},
	{Name: "no-pause", Means: "a returned member gets in at once, in the middle of a call", Config: "return", Breaks: rightSum, Rules: noPause},
	{Name: "pause-drops-nothing", Means: "the daemon forwards data from the pause on", Config: "return-card", Breaks: nothingLost, Rules: pauseDropsNothing},
	{Name: "pause-after-announced", Means: "a daemon that has replaced another one pauses after calls in progress, whatever was reported", Config: "return-daemon", Breaks: nothingLost, Rules: pauseAfterAnnounced},
	{Name: "pause-after-living", Means: "the daemon pauses after the calls of seats that are not lost", Config: "return", Breaks: rightSum, Rules: pauseAfterLiving},
	{Name: "pause-needs-returned", Means: "a pause never ends when the returned member is lost again", Config: "return-twice", Breaks: progress, Rules: pauseNeedsReturned},
	{Name: "renew-before-drained", Means: "an epoch lets members in while results before the pause are missing", Config: "return", Breaks: progress, Rules: renewBeforeDrained},
	{Name: "only-first-enters", Means: "a member that returns during a pause stays out", Config: "return-three", Breaks: progress, Rules: onlyFirstEnters},
	{Name: "wait-for-the-dead", Means: "a pause waits for results that nobody is left to complete", Config: "return-twice", Breaks: progress, Rules: waitForTheDead},
	{Name: "summed-from-old-epoch", Means: "after an epoch that skipped chunks the daemon waits for their results", Config: "return-twice", Breaks: progress, Rules: summedFromOldEpoch},
	{Name: "evicted-mark-stays", Means: "a returned member stays marked as evicted", Config: "return", Breaks: progress, Rules: evictedMarkStays},
	{Name: "late-notice", Means: "the notice of an old epoch's eviction marks a member that has returned", Config: "return", Breaks: progress, Rules: lateNotice},
	{Name: "evicted-by-notice", Means: "the daemon takes a seat for evicted only when it has seen the card's notice", Config: "evict", Breaks: nothingLost, Rules: evictedByNotice},
	{Name: "evicted-by-notice-return", Means: "as evicted-by-notice, where the member that holds the result is lost", Config: "return-evicted", Breaks: sameBits, Rules: evictedByNotice},
	{Name: "wait-for-finished", Means: "the change of epochs waits for seats that have finished", Config: "card", Breaks: progress, Rules: waitForFinished},
	{Name: "wait-for-evicted", Means: "the change of epochs waits for seats that the card has evicted", Config: "evict", Breaks: progress, Rules: waitForEvicted},
	{Name: "wait-for-lost", Means: "the change of epochs waits for seats that were lost meanwhile", Config: "leave-card", Breaks: progress, Rules: waitForLost},
	{Name: "finish-of-epoch", Means: "a finish counts in its epoch alone", Config: "card", Breaks: progress, Rules: finishOfEpoch},
	{Name: "end-waits-for-lost", Means: "the job's end waits for lost seats", Config: "leave-card", Breaks: progress, Rules: endWaitsForLost},
}
