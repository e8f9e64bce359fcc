// Package inart spreads a model over several parameter servers, and chooses which switch sums the
// gradients of which workers on the way to each, in the manner of InArt (WWW 2024).
//
// Phase 1 splits the model: for given routes, the shares are a linear program, and its prices are the
// Lagrange multipliers of the capacities at their optimum. The paper moves multipliers and split towards
// that optimum in steps; this package computes it, exactly. Phase 2 chooses the routes to one server
// after the other by these prices, and by what the others leave of the capacities. The phases alternate
// as long as the total grows.
package inart

import (
	"context"
	"math/big"

	"tributary/driver/planner/columns"
	"tributary/driver/planner/grid"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/network"
)

// Options are those of a search.
type Options struct {
	Seed   uint64
	Trees  int           // to a server, at most
	Solver *highs.Solver // nil: no bound
	Limit  highs.Options
}

// Plan spreads the model over all servers.
func Plan(ctx context.Context, n *network.Network, o Options) (*columns.Found, error) {
	first, err := alone(ctx, n, n.Servers, o.Seed)
	if err != nil {
		return nil, err
	}
	return columns.Search(ctx, n, first, columns.Options{Servers: n.Servers, Most: o.Trees, Solver: o.Solver, Limit: o.Limit})
}

// alone returns the fastest tree to each server, as if there were no other. A server may occur twice.
func alone(ctx context.Context, n *network.Network, servers []int, seed uint64) (trees []*network.Tree, err error) {
	known := map[int]*network.Tree{}
	for _, server := range servers {
		if known[server] == nil {
			found, err := grid.One(ctx, n, server, grid.Options{Seed: seed})
			if err != nil {
				return nil, err
			}
			known[server] = found.Tree
		}
		trees = append(trees, known[server])
	}
	return trees, nil
}

// Reroute is phase 2 alone: the share of each tree stays, and its routes change as long as the total
// grows. It begins with the fastest tree to the server of each.
func Reroute(ctx context.Context, n *network.Network, servers []int, shares []*big.Rat, seed uint64) ([]*network.Tree, *big.Rat, error) {
	trees, err := alone(ctx, n, servers, seed)
	if err != nil {
		return nil, nil, err
	}
	r := &rerouter{net: n, trees: trees, shares: shares, seed: seed}
	rate := r.rate()
	for improved := true; improved; {
		improved = false
		for i := range trees {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			if now := r.reroute(ctx, i, rate); now.Cmp(rate) > 0 {
				rate, improved = now, true
			}
		}
	}
	return r.trees, rate, nil
}
