package elastic

// Plans (SPEC.md, section 4).

import (
	"cmp"
	"slices"
	"strings"

	"tributary/driver"
	"tributary/driver/collective"
)

// Member is a member of a plan.
type Member struct {
	collective.Member
	Incarnation string // another one for each process that joins
}

// Loss is a member that went and had not left in order.
type Loss struct {
	Generation  uint64 // the first one without it
	ID          string
	Incarnation string
}

// Plan is one generation.
type Plan struct {
	Generation uint64
	Members    []Member              // in the order of ranks
	Cards      []collective.RackCard // in the order of racks; Info has no name
	Losses     []Loss                // the latest ones, in the order of generations
}

// maxLosses is how many losses a plan keeps.
const maxLosses = 256

// rank returns the rank of an incarnation, or -1.
func (p *Plan) rank(incarnation string) int {
	return slices.IndexFunc(p.Members, func(m Member) bool { return m.Incarnation == incarnation })
}

// Rack returns the ranks of a rack, ascending. The first is its agent.
func (p *Plan) Rack(name string) (ranks []int) {
	for rank, m := range p.Members {
		if m.Rack == name {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Card returns the card of a rack, or nil.
func (p *Plan) Card(rack string) *driver.Info {
	i := slices.IndexFunc(p.Cards, func(c collective.RackCard) bool { return rack != "" && c.Rack == rack })
	if i < 0 {
		return nil
	}
	return &p.Cards[i].Info
}

// lostSince returns the IDs of members that were lost in generations above one.
func (p *Plan) lostSince(generation uint64) (ids []string) {
	for _, l := range p.Losses {
		if l.Generation > generation {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

// registration is what a member writes into the engine about itself.
type registration struct {
	Member
	Proof  string
	Card   *driver.Info `json:",omitempty"` // that it reaches, without a name
	Needs  uint64       // the lowest generation that it accepts
	Ready  uint64       // the generation that it listens in
	Job    uint64       // the generation of Ticket
	Ticket string       `json:",omitempty"` // of its rack's job, from an agent
}

// nextPlan returns the plan after prev (generation 0: none), and false if none is needed or possible. The
// first plan needs a number of members, as does one after a plan whose members are all gone.
func nextPlan(prev *Plan, roster []registration, left map[string]bool, expect int) (*Plan, bool) {
	living := livingMembers(prev, roster)
	known := slices.ContainsFunc(living, func(r registration) bool { return prev.rank(r.Incarnation) >= 0 })
	if len(living) == 0 || !known && len(living) < expect {
		return nil, false
	}
	p := &Plan{Generation: prev.Generation + 1, Losses: slices.Clone(prev.Losses)}
	asked := false
	for _, r := range living {
		p.Members = append(p.Members, r.Member)
		asked = asked || r.Needs > prev.Generation
		p.Generation = max(p.Generation, r.Needs)
	}
	p.Cards = cardsOf(living)
	if !asked && slices.Equal(p.Members, prev.Members) && slices.Equal(p.Cards, prev.Cards) {
		return nil, false
	}
	for _, m := range prev.Members {
		if p.rank(m.Incarnation) < 0 && !left[m.Incarnation] {
			p.Losses = append(p.Losses, Loss{p.Generation, m.ID, m.Incarnation})
		}
	}
	p.Losses = p.Losses[max(0, len(p.Losses)-maxLosses):]
	return p, true
}

// livingMembers returns the registrations that can be in the next plan, in the order of its ranks.
func livingMembers(prev *Plan, roster []registration) []registration {
	living := slices.DeleteFunc(slices.Clone(roster), func(r registration) bool {
		return slices.ContainsFunc(prev.Losses, func(l Loss) bool { return l.Incarnation == r.Incarnation })
	})
	slices.SortFunc(living, func(a, b registration) int {
		ra, rb := prev.rank(a.Incarnation), prev.rank(b.Incarnation)
		if ra < 0 || rb < 0 { // newcomers come last
			return cmp.Or(cmp.Compare(min(rb, 0), min(ra, 0)), strings.Compare(a.ID, b.ID))
		}
		return cmp.Compare(ra, rb)
	})
	return living
}

// cardsOf returns the cards of racks whose members all reach the same.
func cardsOf(living []registration) (cards []collective.RackCard) {
	cardOf := map[string]*driver.Info{}
	var racks []string
	for _, r := range living {
		if r.Rack == "" {
			continue
		}
		card, seen := cardOf[r.Rack]
		switch {
		case !seen:
			racks = append(racks, r.Rack)
			cardOf[r.Rack] = r.Card
		case card == nil || r.Card == nil || *card != *r.Card:
			cardOf[r.Rack] = nil
		}
	}
	slices.Sort(racks)
	for _, rack := range racks {
		if card := cardOf[rack]; card != nil {
			cards = append(cards, collective.RackCard{Rack: rack, Info: *card})
		}
	}
	return cards
}
