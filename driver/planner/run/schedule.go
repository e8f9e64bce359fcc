package run

import (
	"math/big"
	"slices"

	"tributary/driver/planner/plan"
	"tributary/driver/schedule"
)

// spread returns the schedule of a plan's trees: each has entries in proportion to its rate, evenly spread.
// The list is as short as the rates allow. If it needs more than schedule.Most entries, it has as many, and
// each tree at least one; exact is then false.
func spread(p *plan.Plan) (s schedule.Schedule, exact bool) {
	shares := make([]*big.Rat, len(p.Trees))
	length := big.NewInt(1)
	for i, t := range p.Trees {
		shares[i] = new(big.Rat).Quo(t.Rate.Rat, p.Rate.Rat)
		gcd := new(big.Int).GCD(nil, nil, length, shares[i].Denom())
		length.Mul(length, new(big.Int).Quo(shares[i].Denom(), gcd))
	}
	if exact = length.Cmp(big.NewInt(schedule.Most)) <= 0; !exact {
		length.SetInt64(schedule.Most)
	}
	return even(apportion(shares, length.Int64())), exact
}

// apportion divides n entries by shares that add up to 1: the largest remainders are rounded up
// (Hamilton's method), and each share has an entry at least.
func apportion(shares []*big.Rat, n int64) []int64 {
	entries, rests := make([]int64, len(shares)), make([]*big.Rat, len(shares))
	order := make([]int, len(shares))
	left := n
	for i, share := range shares {
		exact := new(big.Rat).Mul(share, big.NewRat(n, 1))
		whole := new(big.Int).Quo(exact.Num(), exact.Denom())
		entries[i], order[i] = whole.Int64(), i
		rests[i] = exact.Sub(exact, new(big.Rat).SetInt(whole))
		left -= entries[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return rests[b].Cmp(rests[a]) })
	for _, i := range order[:left] {
		entries[i]++
	}
	for i := range entries {
		if entries[i] == 0 {
			entries[i]++
			entries[slices.Index(entries, slices.Max(entries))]--
		}
	}
	return entries
}

// even spreads entries: at each place, the tree that is furthest behind its share is next.
func even(entries []int64) (s schedule.Schedule) {
	total := int64(0)
	for _, n := range entries {
		total += n
	}
	behind := make([]int64, len(entries))
	for range total {
		next := 0
		for i, n := range entries {
			if behind[i] += n; behind[i] > behind[next] {
				next = i
			}
		}
		behind[next] -= total
		s = append(s, next)
	}
	return s
}
