package pack

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRates checks the proof that the prices are, on random capacities and streams: no row is
// overloaded, each tree pays at least 1, and the prices of the capacities together are the sum of the
// rates.
func TestRates(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		trees, rows := 1+random.IntN(6), make([]Row, 1+random.IntN(30))
		for i := range rows {
			rows[i] = Row{big.NewRat(1+random.Int64N(20), 1+random.Int64N(3)), make([]int64, trees)}
			for j := range rows[i].Streams {
				rows[i].Streams[j] = max(0, random.Int64N(8)-2)
				if i == 0 {
					rows[i].Streams[j]++
				}
			}
		}
		rates, prices := Rates(trees, rows)
		sum, worth, paid := new(big.Rat), new(big.Rat), zeros(trees)
		for i, r := range rows {
			load := new(big.Rat)
			for j, s := range r.Streams {
				load.Add(load, new(big.Rat).Mul(big.NewRat(s, 1), rates[j]))
				paid[j].Add(paid[j], new(big.Rat).Mul(big.NewRat(s, 1), prices[i]))
			}
			require.LessOrEqual(t, load.Cmp(r.Capacity), 0)
			require.GreaterOrEqual(t, prices[i].Sign(), 0)
			worth.Add(worth, new(big.Rat).Mul(r.Capacity, prices[i]))
		}
		for j := range trees {
			require.GreaterOrEqual(t, rates[j].Sign(), 0)
			require.GreaterOrEqual(t, paid[j].Cmp(big.NewRat(1, 1)), 0)
			sum.Add(sum, rates[j])
		}
		assert.Zero(t, sum.Cmp(worth), "%v %v", sum, worth)
	}
}
