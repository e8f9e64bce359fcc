package main

import "tributary/verify/protocol/explorer"

// config is a few lives of owners and members, and how often they may fail.
type config struct {
	name, about string

	serial   bool // an owner begins when the one before is gone
	owners   int  // lives
	jobs     int  // jobs that an owner sets up, one after another
	setups   int  // attempts of each owner
	lives    []life
	left     failures
	returns  bool // members join at any time, and return
	stranger bool // a stranger writes registers and sends data
	settings bool // consecutive jobs have chunks of different sizes
	large    bool // explored by the command alone, with -large
	states   int  // reachable states
}

// life is a member's life. Its ticket is for a job of an owner.
type life struct{ rank, owner, job int }

// pair returns a member for each rank of an owner's job.
func pair(owner, job int) []life { return []life{{0, owner, job}, {1, owner, job}} }

func lives(groups ...[]life) []life {
	var all []life
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// back is a member's return: another life of rank 0.
func back(owner, job int) []life { return []life{{0, owner, job}} }

// configs are explored with their exact numbers of states: by the tests, unless they are large.
var configs = []config{
	{name: "owner", about: "an owner sets a job up twice at most; it may die, and so may a member", owners: 1, jobs: 1, setups: 2, lives: pair(0, 0), left: failures{owners: 1, members: 1}, states: 6991},
	{name: "return", about: "a member returns, and the owner sets its job up again", owners: 1, jobs: 1, setups: 3, lives: lives(pair(0, 0), back(0, 0)), returns: true, states: 27347},
	{name: "return-power", about: "as return, and the card loses its power", owners: 1, jobs: 1, setups: 3, lives: lives(pair(0, 0), back(0, 0)), returns: true, left: failures{power: 1}, states: 105834},
	{name: "jobs", about: "an owner sets up two jobs with chunks of different sizes", owners: 1, jobs: 2, setups: 3, lives: lives(pair(0, 0), pair(0, 1)), settings: true, states: 50319},
	{name: "ticket", about: "an owner sets up two jobs; members of the first come late", owners: 1, jobs: 2, setups: 3, lives: lives(pair(0, 0), back(0, 0), pair(0, 1)), returns: true, states: 68403},
	{name: "power", about: "an owner sets a job up three times at most; the card loses its power", owners: 1, jobs: 1, setups: 3, lives: pair(0, 0), left: failures{power: 1}, states: 18911},
	{name: "owners", about: "two owners at a time", owners: 2, jobs: 1, setups: 1, lives: lives(pair(0, 0), pair(1, 0)), states: 25563},
	{name: "owners-power", about: "two owners at a time; the card loses its power", owners: 2, jobs: 1, setups: 1, lives: lives(pair(0, 0), pair(1, 0)), left: failures{power: 1}, states: 76446},
	{name: "restart", about: "an owner is followed by another one; each sets a job up twice at most", owners: 2, serial: true, jobs: 1, setups: 2, lives: lives(pair(0, 0), pair(1, 0)), states: 113777},
	{name: "restart-twice", about: "three owners, one after another", owners: 3, serial: true, jobs: 1, setups: 1, lives: lives(pair(0, 0), pair(1, 0), pair(2, 0)), states: 110983},
	{name: "stranger", about: "an owner, and a stranger that writes registers and sends data", owners: 1, jobs: 1, setups: 2, lives: pair(0, 0), stranger: true, states: 1479},
	{name: "owners-power-twice", about: "as owners-power; the card loses its power twice", owners: 2, jobs: 1, setups: 1, lives: lives(pair(0, 0), pair(1, 0)), left: failures{power: 2}, states: 129226},
	{name: "jobs-power", about: "as jobs; the card loses its power", owners: 1, jobs: 2, setups: 3, lives: lives(pair(0, 0), pair(0, 1)), settings: true, left: failures{power: 1}, large: true, states: 226647},
	{name: "owners-twice", about: "two owners at a time; each sets a job up twice at most", owners: 2, jobs: 1, setups: 2, lives: lives(pair(0, 0), pair(1, 0)), large: true, states: 1149128},
	{name: "restart-power", about: "as restart; the card loses its power", owners: 2, serial: true, jobs: 1, setups: 2, lives: lives(pair(0, 0), pair(1, 0)), left: failures{power: 1}, large: true, states: 642086},
}

// Heading returns what all explorers' configurations have.
func (c config) Heading() explorer.Heading {
	return explorer.Heading{Name: c.name, About: c.about, Large: c.large, States: c.states}
}

// reserve returns the owner and the first member that come when faults have stopped.
func (c *config) reserve() (owner, member int) { return c.owners, len(c.lives) }

// life returns a member's rank and ticket.
func (c *config) life(m int) life {
	if owner, first := c.reserve(); m >= first {
		return life{rank: m - first, owner: owner}
	}
	return c.lives[m]
}

func (c *config) people() (owners, members int) { return c.owners + 1, len(c.lives) + ranks }

// setting returns the size of the chunks of an owner's job; 0 where it makes no difference.
func (c *config) setting(owner, job int8) int8 {
	if c.settings {
		return 1 + (owner+job)%2
	}
	return 0
}
