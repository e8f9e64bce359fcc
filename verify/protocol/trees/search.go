package main

import "tributary/verify/protocol/explorer"

// search visits all reachable states of a configuration, up to the exchange of equal workers and leaves.
type search = explorer.Search[state, step, *world]

func newSearch(c config, rules ruleSet, only string) *search {
	first := newWorld(&c, rules, only)
	first.symmetry = newSymmetry(first)
	return &search{Name: c.name, Progresses: c.asksProgress() && (only == "" || only == progress), New: first.another,
		States: orbits{explorer.NewEncodings(), first.symmetry}}
}

// orbits keep one state of each set of states that differ only in the numbers of workers and leaves.
type orbits struct {
	*explorer.Encodings
	symmetry *symmetry
}

func (o orbits) Has(s *state) bool {
	_, key := o.symmetry.canonical(s)
	return o.Encodings.Has(key)
}

func (o orbits) Add(s *state) bool {
	own, key := o.symmetry.canonical(s)
	return o.Encodings.Add(key, own)
}

func (o orbits) Load(number int, s *state) { *s = o.symmetry.world.config.decode(o.All()[number]) }

func (o orbits) Is(number int, s *state) bool {
	return string(o.symmetry.world.config.encode(nil, s)) == o.All()[number]
}
