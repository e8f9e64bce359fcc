// The sums of trees of cards (TREES.md, section 6, Arithmetic).

package model

import (
	"fmt"
	"math/rand/v2"
)

// Shape is a tree of cards, or a worker of one. A card has what is at each of its ports, nil for a port
// that is no member; a worker has no ports.
type Shape struct {
	Ports  []*Shape
	Worker int // its global rank
}

// Nested returns the sum of one element over a tree of cards, as an encoding of their format: each card
// rounds the sum of what its members bring. workers[r] is the contribution of global rank r, as an
// encoding. The formats of contributions and results must be the same.
func (a *Arithmetic) Nested(tree *Shape, workers []uint32) uint32 {
	if a.format.Format != a.result.Format {
		panic("model: cards of a tree have one format")
	}
	if tree.Ports == nil {
		return workers[tree.Worker]
	}
	ports := make([]uint32, len(tree.Ports))
	for port, member := range tree.Ports {
		ports[port] = a.identity
		if member != nil {
			ports[port] = a.Nested(member, workers)
		}
	}
	sum, _ := a.Element(ports)
	return sum
}

// Ranks returns the global ranks of the workers of a tree.
func (s *Shape) Ranks() (ranks uint64) {
	if s.Ports == nil {
		return 1 << s.Worker
	}
	for _, member := range s.Ports {
		if member != nil {
			ranks |= member.Ranks()
		}
	}
	return ranks
}

// String returns the tree as nested lists of the members by port: a worker is its rank, and "-" is a port
// that is no member.
func (s *Shape) String() string {
	switch {
	case s == nil:
		return "-"
	case s.Ports == nil:
		return fmt.Sprint(s.Worker)
	}
	return fmt.Sprint(s.Ports)
}

// RandomShape returns a tree for tests: at most so many levels of cards with as many ports. next is the
// rank of its first worker, and moves on.
func RandomShape(r *rand.Rand, levels, ports int, next *int) *Shape {
	if levels == 0 || *next > 0 && r.IntN(5) == 0 {
		*next++
		return &Shape{Worker: *next - 1}
	}
	card := &Shape{Ports: make([]*Shape, ports)}
	for _, port := range r.Perm(ports)[:1+r.IntN(ports)] {
		card.Ports[port] = RandomShape(r, levels-1, ports, next)
	}
	return card
}
