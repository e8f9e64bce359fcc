package simulate

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFillIsMaxMinFair: each flow has its most, or passes a full resource where no flow is faster. That is
// the definition of max-min fair rates. No resource has more than its capacity.
func TestFillIsMaxMinFair(t *testing.T) {
	capped, bounded := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		capacity := make([]*big.Rat, 1+r.IntN(8))
		for i := range capacity {
			capacity[i] = big.NewRat(1+r.Int64N(20), 1+r.Int64N(3))
		}
		flows := make([]flow, 1+r.IntN(12))
		for i := range flows {
			for _, at := range r.Perm(len(capacity))[:1+r.IntN(len(capacity))] {
				flows[i].uses = append(flows[i].uses, use{at, 1 + r.Int64N(3)})
			}
			if r.IntN(3) == 0 {
				flows[i].most = big.NewRat(1+r.Int64N(5), 4)
			}
		}
		rates := fill(capacity, flows)
		load, fastest := make([]*big.Rat, len(capacity)), make([]*big.Rat, len(capacity))
		for at := range capacity {
			load[at], fastest[at] = new(big.Rat), new(big.Rat)
		}
		for i, f := range flows {
			for _, u := range f.uses {
				load[u.resource].Add(load[u.resource], new(big.Rat).Mul(rates[i], big.NewRat(u.streams, 1)))
				if rates[i].Cmp(fastest[u.resource]) > 0 {
					fastest[u.resource] = rates[i]
				}
			}
		}
		for at := range capacity {
			assert.LessOrEqual(t, load[at].Cmp(capacity[at]), 0, "seed %d, resource %d", seed, at)
		}
		for i, f := range flows {
			if f.most != nil && rates[i].Cmp(f.most) == 0 {
				capped++
				continue
			}
			if f.most != nil {
				assert.Negative(t, rates[i].Cmp(f.most), "seed %d, flow %d", seed, i)
			}
			bottleneck := false
			for _, u := range f.uses {
				bottleneck = bottleneck || load[u.resource].Cmp(capacity[u.resource]) == 0 && fastest[u.resource].Cmp(rates[i]) == 0
			}
			assert.True(t, bottleneck, "seed %d, flow %d could be faster", seed, i)
			bounded++
		}
	}
	require.Greater(t, capped, 100)
	require.Greater(t, bounded, 100)
}

// TestRound: rates with large denominators are rounded down, the others stay.
func TestRound(t *testing.T) {
	exact := big.NewRat(69, 22)
	assert.Zero(t, round(exact).Cmp(exact))
	fine := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(3), big.NewInt(50), nil))
	rounded := round(fine)
	assert.Negative(t, rounded.Cmp(fine))
	assert.LessOrEqual(t, rounded.Denom().BitLen(), finest+1)
	assert.Negative(t, new(big.Rat).Sub(fine, rounded).Cmp(big.NewRat(1, 1<<finest)))
}

// TestFineLimits: a flow whose limit has a large denominator gets that limit, rounded down. Once the
// filling never ended, because the rounded limit did not stop the flow.
func TestFineLimits(t *testing.T) {
	fine := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(3), big.NewInt(50), nil))
	fine.Add(fine, big.NewRat(1, 1))
	rates := fill([]*big.Rat{big.NewRat(5, 1)}, []flow{{uses: []use{{0, 1}}, most: fine}, {uses: []use{{0, 2}}}})
	assert.Zero(t, rates[0].Cmp(round(fine)))
	left := new(big.Rat).Sub(big.NewRat(5, 1), rates[0])
	assert.Zero(t, rates[1].Cmp(round(left.Quo(left, big.NewRat(2, 1)))))
}
