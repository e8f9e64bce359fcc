package main

import "tributary/verify/protocol/explorer"

// search visits all reachable states of a configuration.
type search = explorer.Search[state, step, *world]

func newSearch(c config, rules ruleSet, only string) *search {
	return &search{Name: c.name, Progresses: only == "" || only == progress, States: explorer.NewSet[state](),
		New: newWorld(&c, rules, only).another}
}
