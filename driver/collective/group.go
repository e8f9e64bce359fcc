package collective

import (
	"fmt"
	"strings"
)

// Member is one member of a group.
type Member struct {
	ID      string // its name in messages; unique in the group
	Address string // where it listens: tcp:HOST:PORT or unix:PATH; unique in the group
	Machine string // where it runs; members of one machine have the same text; empty: one of its own
	Rack    string // which members can share a card; may be empty
}

// Group is one list of members, as one of them sees it.
type Group struct {
	Name       string   // the same on all members
	Generation uint64   // of the list of members: another list has another generation
	Rank       int      // of this member, its place in Members
	Members    []Member // in the order of ranks; 1 to MaxMembers
	Token      string   // secret that proves membership; the same on all members
}

// MaxMembers is the largest size of a group.
const MaxMembers = 1 << 16

// maxName is the most bytes of a group's name and of an ID.
const maxName = 255

// Size returns the number of members.
func (g *Group) Size() int { return len(g.Members) }

// Check returns an InputError when the list of members is invalid.
func (g *Group) Check() error {
	wrong := func(format string, args ...any) error {
		return &InputError{What: fmt.Sprintf("group %q", g.Name), Why: fmt.Sprintf(format, args...)}
	}
	switch n := len(g.Members); {
	case n < 1 || n > MaxMembers:
		return wrong("it has %d members; a group has 1 to %d", n, MaxMembers)
	case g.Rank < 0 || g.Rank >= n:
		return wrong("it has no rank %d: its %d members are ranks 0 to %d", g.Rank, n, n-1)
	case len(g.Name) > maxName:
		return wrong("its name has %d bytes; the most are %d", len(g.Name), maxName)
	}
	ids, addresses := map[string]int{}, map[string]int{}
	for r, m := range g.Members {
		switch {
		case m.ID == "" || len(m.ID) > maxName:
			return wrong("the ID of rank %d has %d bytes; it must have 1 to %d", r, len(m.ID), maxName)
		case len(g.Members) > 1 && !ValidAddress(m.Address):
			return wrong("the address of rank %d is %q; it must be tcp:HOST:PORT or unix:PATH", r, m.Address)
		}
		if first, twice := ids[m.ID]; twice {
			return wrong("ranks %d and %d have the same ID %s", first, r, m.ID)
		}
		if first, twice := addresses[m.Address]; twice {
			return wrong("ranks %d and %d have the same address %s", first, r, m.Address)
		}
		ids[m.ID], addresses[m.Address] = r, r
	}
	return nil
}

// ValidAddress reports whether an address is tcp:HOST:PORT or unix:PATH.
func ValidAddress(address string) bool {
	scheme, at, _ := strings.Cut(address, ":")
	return at != "" && (scheme == "unix" || scheme == "tcp" && strings.Contains(at, ":"))
}

// name returns a rank with its ID, for messages.
func (g *Group) name(rank int) string {
	if rank < 0 || rank >= len(g.Members) {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d (%s)", rank, g.Members[rank].ID)
}

// together returns the ranks of members with the same text, in the order of their lowest ranks. A member
// without a text is alone.
func (g *Group) together(text func(Member) string) (all [][]int) {
	places := map[string]int{}
	for rank, m := range g.Members {
		name := text(m)
		place, known := places[name]
		if !known || name == "" {
			place = len(all)
			places[name] = place
			all = append(all, nil)
		}
		all[place] = append(all[place], rank)
	}
	return all
}

// Piece returns the elements [from, to) of piece p when an array of length elements is cut into as
// many pieces: floor(p·length/pieces) to floor((p+1)·length/pieces). A piece may be empty.
func Piece(p, pieces, length int) (from, to int) {
	// Without the product p·length, which may overflow: length = q·pieces + r.
	q, r := length/pieces, length%pieces
	return p*q + p*r/pieces, (p+1)*q + (p+1)*r/pieces
}
