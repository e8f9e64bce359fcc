package main

import "slices"

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
	{name: "small", about: "2 members, W = 1, 2 chunks; the card dies", members: 2, window: 1, chunks: 2, left: failures{cards: 1}},
	{name: "card", about: "2 members, W = 1; the card dies twice", members: 2, window: 1, chunks: 4, left: failures{cards: 2}},
	{name: "daemon", about: "2 members, W = 1; the daemon dies twice", members: 2, window: 1, chunks: 4, left: failures{daemons: 2}},
	{name: "both", about: "2 members, W = 1; card and daemon die, in any order", members: 2, window: 1, chunks: 4, left: failures{cards: 1, daemons: 1}},
	{name: "window", about: "2 members, W = 2: results in any order; card and daemon die", members: 2, window: 2, chunks: 3, left: failures{cards: 1, daemons: 1}},
	{name: "three", about: "3 members, W = 1; card and daemon die", members: 3, window: 1, chunks: 3, left: failures{cards: 1, daemons: 1}},
	{name: "partial", about: "2 members, W = 1, partial sums; card and daemon die", members: 2, window: 1, chunks: 3, partial: true, left: failures{cards: 1, daemons: 1}},
	{name: "leave-card", about: "3 members, W = 1, partial sums; a member dies, and so does the card", members: 3, window: 1, chunks: 2, partial: true, left: failures{cards: 1, leaves: 1}},
	{name: "leave-daemon", about: "3 members, W = 1, partial sums; a member dies, and so does the daemon", members: 3, window: 1, chunks: 2, partial: true, left: failures{daemons: 1, leaves: 1}},
	{name: "evict", about: "2 members, W = 1, partial sums; the card evicts one, and dies", members: 2, window: 1, chunks: 4, partial: true, left: failures{cards: 1, evictions: 1}},
	{name: "evict-window", about: "as evict, W = 2", members: 2, window: 2, chunks: 5, partial: true, left: failures{cards: 1, evictions: 1}},
	{name: "evict-three", about: "as evict, 3 members", members: 3, window: 1, chunks: 4, partial: true, left: failures{cards: 1, evictions: 1}},
	{name: "early", about: "2 members, W = 1, partial sums; one has fewer calls or is evicted; card and daemon die", members: 2, window: 1, chunks: 5, partial: true, early: true, left: failures{cards: 1, daemons: 1, evictions: 1}},
	{name: "return", about: "2 members, W = 1, calls of 1, 2 and 1 chunks; a member dies and returns", members: 2, window: 1, chunks: 4, calls: []int{1, 3, 4}, partial: true, left: failures{leaves: 1, returns: 1}},
	{name: "return-card", about: "2 members, W = 1, calls of 2 and 1 chunks; a member dies and returns, and the card dies", members: 2, window: 1, chunks: 3, calls: []int{2, 3}, partial: true, left: failures{cards: 1, leaves: 1, returns: 1}},
	{name: "return-daemon", about: "2 members, W = 1, calls of 2, 1 and 1 chunks; a member dies and returns, and the daemon dies", members: 2, window: 1, chunks: 4, calls: []int{2, 3, 4}, partial: true, left: failures{daemons: 1, leaves: 1, returns: 1}},
	{name: "return-twice", about: "2 members, W = 1, calls of 2 and 1 chunks; members die twice, and return twice", members: 2, window: 1, chunks: 3, calls: []int{2, 3}, partial: true, left: failures{leaves: 2, returns: 2}},
	{name: "return-evicted", about: "as return; the card evicts a member, which returns", members: 2, window: 1, chunks: 4, calls: []int{1, 3, 4}, partial: true, left: failures{leaves: 1, returns: 1, evictions: 1}},
	{name: "return-early", about: "3 members, W = 1; one has fewer calls, one dies and returns", members: 3, window: 1, chunks: 2, partial: true, early: true, left: failures{leaves: 1, returns: 1}},
	{name: "return-early-card", about: "2 members, W = 1, calls of 2, 1 and 1 chunks; as return-evicted, one has fewer calls, and the card dies", members: 2, window: 1, chunks: 4, calls: []int{2, 3, 4}, partial: true, early: true, left: failures{cards: 1, leaves: 1, returns: 1, evictions: 1}},
	{name: "return-three", about: "3 members, W = 1; two die and return", members: 3, window: 1, chunks: 2, partial: true, left: failures{leaves: 2, returns: 2}},
	{name: "return-window", about: "2 members, W = 2, calls of 1, 2 and 1 chunks; a member dies and returns, and the card dies", members: 2, window: 2, chunks: 4, calls: []int{1, 3, 4}, partial: true, left: failures{cards: 1, leaves: 1, returns: 1}},
	{name: "return-three-card", about: "as return-three, and the card dies", members: 3, window: 1, chunks: 2, partial: true, large: true, left: failures{cards: 1, leaves: 2, returns: 2}},
	{name: "return-three-both", about: "3 members, W = 1; one dies and returns, card and daemon die", members: 3, window: 1, chunks: 2, partial: true, large: true, left: failures{cards: 1, daemons: 1, leaves: 1, returns: 1}},
	{name: "return-three-evicted", about: "3 members, W = 1; as return-evicted, and the card dies", members: 3, window: 1, chunks: 3, partial: true, large: true, left: failures{cards: 1, leaves: 1, returns: 1, evictions: 1}},
	{name: "return-three-window", about: "3 members, W = 2; one dies and returns", members: 3, window: 2, chunks: 3, partial: true, large: true, left: failures{leaves: 1, returns: 1}},
	{name: "return-all", about: "2 members, W = 1, calls of 1, 2 and 1 chunks; each dies and returns, one is evicted, card and daemon die", members: 2, window: 1, chunks: 4, calls: []int{1, 3, 4}, partial: true, large: true, left: failures{cards: 1, daemons: 1, leaves: 2, returns: 2, evictions: 1}},
	{name: "return-all-early", about: "2 members, W = 1, calls of 2, 1 and 1 chunks; as return-early-card, and the daemon dies", members: 2, window: 1, chunks: 4, calls: []int{2, 3, 4}, partial: true, early: true, left: failures{cards: 1, daemons: 1, leaves: 1, returns: 1, evictions: 1}},
	{name: "return-window-all", about: "2 members, W = 2, calls of 2, 2 and 1 chunks; one dies and returns, one is evicted, card and daemon die", members: 2, window: 2, chunks: 5, calls: []int{2, 4, 5}, partial: true, large: true, left: failures{cards: 1, daemons: 1, leaves: 1, returns: 1, evictions: 1}},
}

func configOf(name string) config {
	for _, c := range configs {
		if c.name == name {
			return c
		}
	}
	panic("carry: no configuration " + name)
}

// ruleSet is a set of rules that are left out. The empty set is the protocol.
type ruleSet uint32

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
)

// property is what must hold.
type property struct{ name, holds string }

var properties = []property{
	{"right sum", "a result that a member takes has the input of each member that it names, once, and nothing else"},
	{"same bits", "whoever takes the result of a chunk takes the same one, whatever epoch it came from"},
	{"nothing lost", "while a member lives, each result that any living member holds is there for those that lack it"},
	{"progress", "once nothing fails any more, every living member that is not evicted gets every result from its first call on, and finishes; then the job is over"},
}

// weakening is a rule left out, and the property that this breaks.
type weakening struct {
	name, means, config string
	breaks              string
	harmless            string // why nothing breaks; empty if a property does
	rules               ruleSet
}

var weakenings = []weakening{
	{name: "no-library-keep", means: "libraries keep no results", config: "daemon", breaks: "nothing lost", rules: noLibraryKeep},
	{name: "keep-until-return", means: "a library drops a call's results when the call returns", config: "daemon", breaks: "nothing lost", rules: keepUntilReturn},
	{name: "keep-one-window", means: "with partial sums a library keeps the last W results", config: "partial", breaks: "nothing lost", rules: keepOneWindow},
	{name: "no-keep", means: "neither the daemon nor the libraries keep results", config: "card", breaks: "nothing lost", rules: noDaemonKeep | noLibraryKeep},
	{name: "no-daemon-keep", means: "the daemon keeps no results", config: "leave-card", breaks: "same bits", rules: noDaemonKeep},
	{name: "no-stop", means: "a member takes results of the old epoch after its report", config: "daemon", breaks: "right sum", rules: noStop},
	{name: "no-barrier", means: "the next epoch begins before all members have reported", config: "both", breaks: "nothing lost", rules: noBarrier},
	{name: "first-of-slowest", means: "the next epoch begins with the first chunk, though all members hold its result", config: "small", rules: firstOfSlowest,
		harmless: "chunks with a result pass as zeros, and their sums are dropped: the job is only slower"},
	{name: "first-of-fastest", means: "the next epoch begins with what the fastest member lacks, and the others do not get what was kept", config: "card", breaks: "progress", rules: firstOfFastest},
	{name: "kept-not-handed", means: "members do not get the kept results that they lack", config: "card", breaks: "right sum", rules: keptNotHanded},
	{name: "hand-with-start", means: "members get the kept results that they lack with the start of the epoch, which the others do not wait for", config: "partial", breaks: "progress", rules: handWithStart},
	{name: "no-zeros", means: "a member sends its array for a chunk whose result it holds", config: "window", rules: noZeros,
		harmless: "every member holds the result and drops the new sum; the card's counts of exceptions would be wrong"},
	{name: "replace-kept", means: "a result of a later epoch replaces the one that a member holds", config: "window", breaks: "right sum", rules: replaceKept},
	{name: "stale-epoch", means: "a member takes results of any epoch", config: "both", breaks: "right sum", rules: staleEpoch},
	{name: "stale-epoch-partial", means: "as stale-epoch, where sums may lack members", config: "partial", breaks: "same bits", rules: staleEpoch},
	{name: "sum-lost", means: "a result that nobody has kept is summed anew", config: "daemon", breaks: "right sum", rules: sumLost | noLibraryKeep},
	{name: "sum-again", means: "a result that the daemon alone keeps is summed again", config: "leave-card", breaks: "same bits", rules: sumAgain},
	{name: "no-pause", means: "a returned member gets in at once, in the middle of a call", config: "return", breaks: "right sum", rules: noPause},
	{name: "pause-drops-nothing", means: "the daemon forwards data from the pause on", config: "return-card", breaks: "nothing lost", rules: pauseDropsNothing},
	{name: "pause-after-announced", means: "a daemon that has replaced another one pauses after calls in progress, whatever was reported", config: "return-daemon", breaks: "nothing lost", rules: pauseAfterAnnounced},
	{name: "pause-after-living", means: "the daemon pauses after the calls of seats that are not lost", config: "return", breaks: "right sum", rules: pauseAfterLiving},
	{name: "pause-needs-returned", means: "a pause never ends when the returned member is lost again", config: "return-twice", breaks: "progress", rules: pauseNeedsReturned},
	{name: "renew-before-drained", means: "an epoch lets members in while results before the pause are missing", config: "return", breaks: "progress", rules: renewBeforeDrained},
	{name: "only-first-enters", means: "a member that returns during a pause stays out", config: "return-three", breaks: "progress", rules: onlyFirstEnters},
	{name: "wait-for-the-dead", means: "a pause waits for results that nobody is left to complete", config: "return-twice", breaks: "progress", rules: waitForTheDead},
	{name: "summed-from-old-epoch", means: "after an epoch that skipped chunks the daemon waits for their results", config: "return-twice", breaks: "progress", rules: summedFromOldEpoch},
	{name: "evicted-mark-stays", means: "a returned member stays marked as evicted", config: "return", breaks: "progress", rules: evictedMarkStays},
	{name: "late-notice", means: "the notice of an old epoch's eviction marks a member that has returned", config: "return", breaks: "progress", rules: lateNotice},
	{name: "evicted-by-notice", means: "the daemon takes a seat for evicted only when it has seen the card's notice", config: "evict", breaks: "nothing lost", rules: evictedByNotice},
	{name: "evicted-by-notice-return", means: "as evicted-by-notice, where the member that holds the result is lost", config: "return-evicted", breaks: "same bits", rules: evictedByNotice},
	{name: "wait-for-finished", means: "the change of epochs waits for seats that have finished", config: "card", breaks: "progress", rules: waitForFinished},
	{name: "wait-for-evicted", means: "the change of epochs waits for seats that the card has evicted", config: "evict", breaks: "progress", rules: waitForEvicted},
	{name: "wait-for-lost", means: "the change of epochs waits for seats that were lost meanwhile", config: "leave-card", breaks: "progress", rules: waitForLost},
	{name: "finish-of-epoch", means: "a finish counts in its epoch alone", config: "card", breaks: "progress", rules: finishOfEpoch},
	{name: "end-waits-for-lost", means: "the job's end waits for lost seats", config: "leave-card", breaks: "progress", rules: endWaitsForLost},
}
