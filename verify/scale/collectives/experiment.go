package main

import (
	"fmt"
	"slices"
)

// The algorithms.
const (
	rina      = "rina"       // without cards it is the ring
	rinaAgent = "rina agent" // every partial sum passes its agent's link
	atp       = "atp"        // one server; without cards it is a plain parameter server
	atpRacks  = "atp racks"  // a server in each rack
	tree      = "tree"       // of cards alone
)

var algorithms = []string{rina, rinaAgent, atp, atpRacks, tree}

// experiment is one all-reduce. The first racks have the cards.
type experiment struct {
	cluster   cluster
	array     array
	algorithm string
	percent   int // of racks that have a card
}

func (x experiment) String() string {
	return fmt.Sprintf("%d workers, %s, %s, %d %%", x.cluster.workers(), x.array.Name, x.algorithm, x.percent)
}

func (x experiment) equipped() int { return x.cluster.Racks * x.percent / 100 }

// simulated reports whether the simulator runs it. The 33,000 streams of 128 racks to 128 servers take it a minute.
func (x experiment) simulated() bool { return x.algorithm != atpRacks || x.cluster.Racks <= 32 }

// members returns G, the members of the ring.
func (x experiment) members() int {
	e := x.equipped()
	return e + (x.cluster.Racks-e)*x.cluster.PerRack
}

func (x experiment) servers() int {
	if x.algorithm == atpRacks {
		return x.cluster.Racks
	}
	return 1
}

// experiments lists what the tables show.
func (c *configuration) experiments() (list []experiment) {
	for _, a := range c.Arrays {
		for _, k := range c.Clusters {
			for _, algorithm := range algorithms {
				for _, percent := range c.Percent {
					switch {
					case percent != 100 && (algorithm == tree || algorithm == rinaAgent):
						continue
					case algorithm == atpRacks && a.Bytes <= 256*float64(c.ChunkBytes):
						continue // parts of a few chunks have no closed form
					}
					list = append(list, experiment{k, a, algorithm, percent})
				}
			}
		}
	}
	return list
}

// closed returns the time of an experiment in closed form, in seconds. README.md derives it.
func (c *configuration) closed(x experiment, alpha float64) float64 {
	b, delay, card := c.rate(), c.delay(), c.cardSeconds(x.cluster)
	switch x.algorithm {
	case rina, rinaAgent:
		g := float64(x.members())
		piece := x.array.Bytes / g / b
		scatter := piece + alpha + 2*delay
		gather := scatter
		if x.equipped() > 0 {
			scatter += card
		}
		if x.algorithm == rinaAgent {
			scatter = max(3*piece+alpha+delay, piece+2*alpha+3*delay+c.headSeconds(x.array.Bytes/g)) + card
			gather = 2*piece + alpha + 2*delay
		}
		return (g - 1) * (scatter + gather)
	case tree:
		levels := x.levels()
		chunk := c.headSeconds(x.array.Bytes)
		// The way of the first chunk up and down. A leaf's card is beside its switch.
		way := float64(2*levels-1)*card + float64(2*levels-1)*chunk + (2+4*float64(levels-1))*delay
		return alpha + way + x.array.Bytes/b
	}
	return c.closedServers(x, alpha)
}

// headSeconds returns the time of a stream's first chunk, which has half the link beside the rest.
func (c *configuration) headSeconds(bytes float64) float64 {
	return 2 * min(float64(c.ChunkBytes), bytes/2) / c.rate()
}

// levels returns the levels of a tree of cards.
func (x experiment) levels() (levels int) {
	for cards := x.cluster.Racks; ; cards = (cards + x.cluster.PerRack - 1) / x.cluster.PerRack {
		levels++
		if cards == 1 {
			return levels
		}
	}
}

// closedServers is the closed form of parameter servers.
func (c *configuration) closedServers(x experiment, alpha float64) float64 {
	b, delay, card := c.rate(), c.delay(), c.cardSeconds(x.cluster)
	n, servers, equipped := float64(x.cluster.PerRack), float64(x.servers()), float64(x.equipped())
	part := x.array.Bytes / servers
	alone := (float64(x.cluster.Racks) - equipped) * n // workers in racks without a card
	var busiest []float64                              // streams of a part's length that pass one link
	switch {
	case equipped == 0:
		busiest = []float64{alone}
	case servers > equipped: // its rack has none
		busiest = []float64{alone + equipped}
	default:
		busiest = []float64{alone + 1, (equipped - 1) / n}
	}
	busiest = append(busiest, servers) // a worker's link
	streams := slices.Max(busiest)
	first := c.headSeconds(part)
	// The first chunks come in together, or by two cards one after the other; so do the sums go out.
	up, down := streams*first+2*delay, streams*part/b+2*delay
	if equipped > 0 {
		cards := min(equipped, 2)
		up = max(up, cards*(card+first)+first+2*cards*delay)
		down = max(down, streams*first+(cards-1)*first+cards*card+part*servers/b+2*cards*delay)
	}
	return alpha + up + alpha + down
}
