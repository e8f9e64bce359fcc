package main

// config is a small job, and how often its parts may fail.
type config struct {
	name, about string

	members int
	window  int
	chunks  int
	partial bool // deadlines: sums may lack members
	cards   int  // how often the card may die
	daemons int  // how often the daemon may die
	leaves  int  // how many members may die; needs partial
}

// configs are explored by the tests, with their exact numbers of states.
var configs = []config{
	{name: "small", about: "2 members, W = 1, 2 chunks; the card dies", members: 2, window: 1, chunks: 2, cards: 1},
	{name: "card", about: "2 members, W = 1; the card dies twice", members: 2, window: 1, chunks: 4, cards: 2},
	{name: "daemon", about: "2 members, W = 1; the daemon dies twice", members: 2, window: 1, chunks: 4, daemons: 2},
	{name: "both", about: "2 members, W = 1; card and daemon die, in any order", members: 2, window: 1, chunks: 4, cards: 1, daemons: 1},
	{name: "window", about: "2 members, W = 2: results in any order; card and daemon die", members: 2, window: 2, chunks: 3, cards: 1, daemons: 1},
	{name: "three", about: "3 members, W = 1; card and daemon die", members: 3, window: 1, chunks: 3, cards: 1, daemons: 1},
	{name: "partial", about: "2 members, W = 1, partial sums; card and daemon die", members: 2, window: 1, chunks: 3, partial: true, cards: 1, daemons: 1},
	{name: "leave-card", about: "3 members, W = 1, partial sums; a member dies, and so does the card", members: 3, window: 1, chunks: 2, partial: true, cards: 1, leaves: 1},
	{name: "leave-daemon", about: "3 members, W = 1, partial sums; a member dies, and so does the daemon", members: 3, window: 1, chunks: 2, partial: true, daemons: 1, leaves: 1},
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
	noDaemonKeep    ruleSet = 1 << iota // the daemon keeps no results
	noLibraryKeep                       // the libraries keep none
	keepUntilReturn                     // a library drops a call's results when the call returns
	keepOneWindow                       // a library keeps W results though sums may be partial
	noStop                              // a member takes results of the old epoch after its report
	firstOfSlowest                      // the next epoch begins with the first chunk, though all hold its result
	firstOfFastest                      // it begins with what the fastest member lacks, and nobody gets what was kept
	keptNotHanded                       // members do not get the kept results that they lack
	noZeros                             // a member sends its array for a chunk whose result it holds
	replaceKept                         // a result of a later epoch replaces the one held
	staleEpoch                          // a member takes results of any epoch
	noBarrier                           // the next epoch begins before all members have reported
	handWithStart                       // members get the kept results that they lack with the start of the epoch
	sumLost                             // a result that nobody has kept is summed anew from arrays that hold it
)

// property is what must hold.
type property struct{ name, holds string }

var properties = []property{
	{"right sum", "a result that a member takes has the input of each member that it names, once, and nothing else"},
	{"same bits", "all members hold the same result of a chunk, whatever epoch it came from"},
	{"nothing lost", "while a member lives, each result that any living member holds is there for those that lack it"},
	{"progress", "once nothing fails any more, every living member gets every result"},
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
	{name: "no-daemon-keep", means: "the daemon keeps no results", config: "leave-card", rules: noDaemonKeep,
		harmless: "the libraries keep them too; the daemon's copies let a member finish its call when the only other member that held a result dies"},
	{name: "no-stop", means: "a member takes results of the old epoch after its report", config: "daemon", breaks: "right sum", rules: noStop},
	{name: "no-barrier", means: "the next epoch begins before all members have reported", config: "both", breaks: "nothing lost", rules: noBarrier},
	{name: "first-of-slowest", means: "the next epoch begins with the first chunk, though all members hold its result", config: "small", rules: firstOfSlowest,
		harmless: "chunks with a result pass as zeros, and their sums are dropped: the job is only slower"},
	{name: "first-of-fastest", means: "the next epoch begins with what the fastest member lacks, and the others do not get what was kept", config: "card", breaks: "progress", rules: firstOfFastest},
	{name: "kept-not-handed", means: "members do not get the kept results that they lack", config: "card", breaks: "right sum", rules: keptNotHanded},
	{name: "hand-with-start", means: "members get the kept results that they lack with the start of the epoch, which the others do not wait for", config: "partial", breaks: "nothing lost", rules: handWithStart},
	{name: "no-zeros", means: "a member sends its array for a chunk whose result it holds", config: "window", rules: noZeros,
		harmless: "every member holds the result and drops the new sum; the card's counts of exceptions would be wrong"},
	{name: "replace-kept", means: "a result of a later epoch replaces the one that a member holds", config: "window", breaks: "right sum", rules: replaceKept},
	{name: "stale-epoch", means: "a member takes results of any epoch", config: "both", breaks: "right sum", rules: staleEpoch},
	{name: "stale-epoch-partial", means: "as stale-epoch, where sums may lack members", config: "partial", breaks: "same bits", rules: staleEpoch},
	{name: "sum-lost", means: "a result that nobody has kept is summed anew", config: "daemon", breaks: "right sum", rules: sumLost | noLibraryKeep},
}
