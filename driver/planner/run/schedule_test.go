package run

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"tributary/driver/planner/plan"
	"tributary/driver/schedule"
)

// ofRates returns a plan of trees with these rates.
func ofRates(rates ...*big.Rat) *plan.Plan {
	p := &plan.Plan{Rate: plan.Quantity{Rat: new(big.Rat)}}
	for _, r := range rates {
		p.Trees = append(p.Trees, plan.Tree{Rate: plan.Quantity{Rat: r}})
		p.Rate.Add(p.Rate.Rat, r)
	}
	return p
}

// TestSpread has schedules by hand.
func TestSpread(t *testing.T) {
	rat := big.NewRat
	for _, c := range []struct {
		rates []*big.Rat
		want  schedule.Schedule
	}{
		{[]*big.Rat{rat(7, 3)}, schedule.Schedule{0}},
		{[]*big.Rat{rat(1, 1), rat(1, 1)}, schedule.Schedule{0, 1}},
		{[]*big.Rat{rat(2, 1), rat(1, 1)}, schedule.Schedule{0, 1, 0}},
		{[]*big.Rat{rat(1, 2), rat(1, 3)}, schedule.Schedule{0, 1, 0, 1, 0}},
		{[]*big.Rat{rat(1, 4), rat(1, 2), rat(1, 4)}, schedule.Schedule{1, 0, 2, 1}},
	} {
		s, exact := spread(ofRates(c.rates...))
		assert.True(t, exact)
		assert.Equal(t, c.want, s)
	}
}

// TestSpreadIsEven: shares are exact where they fit, and at any place no tree is two chunks off its share.
func TestSpreadIsEven(t *testing.T) {
	long := 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		var rates []*big.Rat
		for range 1 + r.IntN(8) {
			rates = append(rates, big.NewRat(1+r.Int64N(400), 1+r.Int64N(30)))
		}
		p := ofRates(rates...)
		s, exact := spread(p)
		assert.LessOrEqual(t, len(s), schedule.Most)
		if !exact {
			long++
			assert.Len(t, s, schedule.Most)
		}
		counts := make([]int, len(rates))
		shares := make([]float64, len(rates))
		for i, rate := range rates {
			shares[i], _ = new(big.Rat).Quo(rate, p.Rate.Rat).Float64()
		}
		worst := 0.0
		for at, tree := range s {
			counts[tree]++
			for i, share := range shares {
				worst = max(worst, math.Abs(float64(counts[i])-share*float64(at+1)))
			}
		}
		assert.Less(t, worst, 2.0, "seed %d", seed)
		for i, rate := range rates {
			share := new(big.Rat).Quo(rate, p.Rate.Rat)
			if exact {
				assert.Zero(t, share.Cmp(big.NewRat(int64(counts[i]), int64(len(s)))), "seed %d, tree %d", seed, i)
			}
		}
	}
	assert.Positive(t, long, "no schedule was too long")
}

// TestTinyShares: a tree with next to no rate has an entry, and one tree's is not another's.
func TestTinyShares(t *testing.T) {
	s, exact := spread(ofRates(big.NewRat(1, 1), big.NewRat(1, 1e9), big.NewRat(1, 1e12)))
	assert.False(t, exact)
	counts := map[int]int{}
	for _, tree := range s {
		counts[tree]++
	}
	assert.Equal(t, map[int]int{0: schedule.Most - 2, 1: 1, 2: 1}, counts)
	assert.NoError(t, s.Check(3))
}
