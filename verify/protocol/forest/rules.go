package main

import "tributary/verify/protocol/explorer"

// config is a small configuration.
type config struct {
	name, about string
	members     int
	schedule    []int // the trees are 0 to its maximum
	reductions  []int // chunks of each
	window      int   // of each tree
	deaths      int   // most trees that die
	inPlace     bool  // sums overwrite inputs
	together    bool  // a sum reaches all members at once, as in one process
	states      int   // reachable states
}

var configs = []config{
	{"pair", "two trees in turn, in place; a sum reaches all members at once", 2, []int{0, 1}, []int{2, 2}, 1, 1, true, true, 2644},
	{"apart", "the same; a sum reaches each member at its own time", 2, []int{0, 1}, []int{2, 2}, 1, 1, true, false, 8360},
	{"kept", "sums go to other arrays than inputs", 2, []int{0, 1}, []int{1, 2}, 1, 1, false, false, 4372},
	{"weights", "two of three chunks to one tree, a window of two, odd lengths", 2, []int{0, 0, 1}, []int{3, 1}, 2, 1, true, false, 17680},
	{"three", "three trees, of which two die", 2, []int{0, 1, 2}, []int{1, 2}, 1, 2, true, false, 38110},
	{"members", "three members", 3, []int{0, 1}, []int{1, 1}, 1, 1, true, false, 26864},
}

// Heading returns what all explorers' configurations have.
func (c config) Heading() explorer.Heading {
	return explorer.Heading{Name: c.name, About: c.about, States: c.states}
}

// The properties, by their names in counterexamples.
const (
	rightSum    = "right sum"
	sameBits    = "same bits"
	nothingLost = "nothing lost"
	progress    = "progress"
)

var properties = []explorer.Property{
	{Name: rightSum, Holds: "a tree sums inputs, all of the same chunk, once of each member"},
	{Name: sameBits, Holds: "all sums of a chunk that members take are of one tree and epoch"},
	{Name: nothingLost, Holds: "where a sum reaches all members at once, no tree's death loses sums"},
	{Name: progress, Holds: "while a tree lives, every member gets every sum, or learns that some are lost"},
}

// ruleSet is a set of rules that are left out or changed.
type ruleSet = explorer.Rules

// The comment gives the behaviour without the rule.
const (
	remake    ruleSet = 1 << iota // a chunk is done only if all members hold its sum
	noShare                       // members that lack a done chunk get no copy, and map their own chunks
	noStop                        // members take sums after they have reported what they hold
	placesOn                      // places go on from each member's own count after a death
	allChunks                     // done chunks take places too, for members that hold their sums themselves
	restart                       // each reduction starts at the schedule's beginning on the first member alone
	lostWaits                     // sums that a caller took away are not noticed as lost
	earlyBack                     // a member gives a reduction back when one tree has its sums
	oneByOne                      // a sum reaches the members of one process one by one

	lastRule = oneByOne
)

// without reports whether a rule is left out.
func (w *world) without(rule ruleSet) bool { return w.rules&rule != 0 }

var weakenings = []explorer.Weakening[config]{
	{Name: "remake", Means: "a chunk is done only if all members hold its sum",
		Config: "apart", Breaks: rightSum, Rules: remake},
	{Name: "remake-kept", Means: "the same, where inputs last: the chunk is summed again",
		Config: "kept", Breaks: sameBits, Rules: remake},
	{Name: "no-share", Means: "members that lack a done chunk get no copy, and map their own chunks",
		Config: "apart", Breaks: rightSum, Rules: noShare},
	{Name: "no-stop", Means: "members take sums after they have reported what they hold",
		Config: "apart", Breaks: rightSum, Rules: noStop},
	{Name: "places-on", Means: "places go on from each member's own count after a death",
		Config: "three", Breaks: rightSum, Rules: placesOn},
	{Name: "all-chunks", Means: "done chunks take places too, for members that hold their sums themselves",
		Config: "three", Breaks: rightSum, Rules: allChunks},
	{Name: "restart", Means: "each reduction starts at the schedule's beginning on the first member alone",
		Config: "three", Breaks: rightSum, Rules: restart},
	{Name: "lost-waits", Means: "sums that a caller took away are not noticed as lost",
		Config: "apart", Breaks: progress, Rules: lostWaits},
	{Name: "early-back", Means: "a member gives a reduction back when one tree has its sums",
		Config: "pair", Breaks: rightSum, Rules: earlyBack},
	{Name: "one-by-one", Means: "a sum reaches the members of one process one by one",
		Config: "pair", Breaks: nothingLost, Rules: oneByOne},
}
