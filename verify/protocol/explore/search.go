package main

import "tributary/verify/protocol/explorer"

// search visits all reachable states of a configuration, up to the exchange of equal workers.
type search = explorer.Search[state, step, *world]

// newSearch stops after limit states, unless limit is 0.
func newSearch(c config, rules ruleSet, only string, limit int) *search {
	first := &world{config: &c, rules: rules, packets: explorer.NewNumbers[packet](maxPackets)}
	first.symmetry = newSymmetry(first)
	return &search{Name: c.Name, Progresses: c.asksProgress(), Limit: limit, States: orbits{explorer.NewEncodings(), first.symmetry},
		New: func() *world {
			return &world{Story: explorer.Story{Only: only}, config: &c, rules: rules, packets: first.packets, symmetry: first.symmetry,
				turns: [maxMembers]int{0, 1, 2}, good: map[string]bool{}}
		}}
}

// orbits keep a representative of each set of states that differ only in the numbers of workers.
type orbits struct {
	*explorer.Encodings
	symmetry *symmetry
}

func (o orbits) Has(s *state) bool { return o.Encodings.Has(o.symmetry.canonical(s)) }

func (o orbits) Add(s *state) bool {
	key := o.symmetry.canonical(s)
	return o.Encodings.Add(key, key)
}

func (o orbits) Load(number int, s *state) { o.symmetry.world.decode(o.All()[number], s) }

func (o orbits) Is(number int, s *state) bool {
	return string(o.symmetry.canonical(s)) == o.All()[number]
}
