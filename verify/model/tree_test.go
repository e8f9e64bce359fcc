// The tree's shape by hand, and whole chunks by the processor against the
// integer definition.

package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// f returns the encoding of x.
func f(x float32) uint32 { return math.Float32bits(x) }

func TestTreeByHand(t *testing.T) {
	const big = 1 << 24 // its last place is 2: adding 1 is a tie and gives big back
	for name, c := range map[string]struct {
		ports []uint32
		sum   uint32
	}{
		"one port passes":                      {[]uint32{f(1.5)}, f(1.5)},
		"one port, NaN":                        {[]uint32{0xffc00001}, canonicalNaN},
		"one port, -0":                         {[]uint32{negativeZero}, negativeZero},
		"two":                                  {[]uint32{f(1), f(2)}, f(3)},
		"three: (p0+p1)+p2":                    {[]uint32{f(big), f(1), f(1)}, f(big)},
		"three: p1+p2 is not first":            {[]uint32{f(1), f(1), f(big)}, f(big + 2)},
		"four: (p0+p1)+(p2+p3)":                {[]uint32{f(big), f(0), f(1), f(1)}, f(big + 2)},
		"four: not a chain":                    {[]uint32{f(big), f(1), f(1), f(-big)}, f(1)},
		"five: ((p0+p1)+(p2+p3))+p4":           {[]uint32{f(1), f(1), f(1), f(1), f(big)}, f(big + 4)},
		"five: p4 passes up twice":             {[]uint32{f(big), f(0), f(0), f(1), f(1)}, f(big)},
		"six: ((01)(23))(45)":                  {[]uint32{f(big), f(0), f(0), f(0), f(1), f(1)}, f(big + 2)},
		"seven: ((01)(23))((45)6)":             {[]uint32{f(big), f(0), f(0), f(0), f(0), f(1), f(1)}, f(big + 2)},
		"absent ports leave -0":                {[]uint32{negativeZero, negativeZero, negativeZero, negativeZero}, negativeZero},
		"an absent port beside 0":              {[]uint32{negativeZero, 0, negativeZero}, 0},
		"NaN through an odd one out":           {[]uint32{f(1), f(2), 0x7f800001}, canonicalNaN},
		"infinities of both signs meet on top": {[]uint32{0x7f800000, f(1), 0xff800000, f(1)}, canonicalNaN},
	} {
		before := append([]uint32(nil), c.ports...)
		assert.Equalf(t, c.sum, Tree(c.ports), "%s: %#x", name, c.ports)
		assert.Equal(t, before, c.ports, "the argument is left alone")
	}
}

func TestReduceTreeByHand(t *testing.T) {
	sum := ReduceTree([][]uint32{{f(1), f(-0.5)}, nil, {f(2), f(0.5)}})
	assert.Equal(t, []uint32{f(3), 0}, sum)
	assert.Nil(t, ReduceTree([][]uint32{nil, nil}))
}

// randomChunk is a chunk of any encodings, corners among them.
func randomChunk(r *rand.Rand, length int) []uint32 {
	chunk := make([]uint32, length)
	for i := range chunk {
		chunk[i], _ = operands(r)
	}
	return chunk
}

// TestChunksAgreeWithTheDefinition holds that adding with the processor, and
// passing over absent ports, gives the bits of the definition.
func TestChunksAgreeWithTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var tree treeFP32 // one for all sizes: scratch is used again
	for ports := 1; ports <= 33; ports++ {
		for round := range 6 {
			length := 1 + r.IntN(200)
			contributions, payloads := make([][]uint32, ports), make([][]byte, ports)
			members := 0
			for p := range contributions {
				if round == 0 || r.IntN(3) > 0 || p == ports-1 && members == 0 {
					contributions[p] = randomChunk(r, length)
					payloads[p] = words(contributions[p]...)
					members++
				}
			}
			result := make([]byte, 4*length)
			tree.reduce(result, payloads)
			require.Equal(t, ReduceTree(contributions), elements(result), "%d members of %d ports", members, ports)
		}
	}
}

// TestMorePortsChangeNothing holds that members 0..n-1 give the same bits
// on every card with n ports or more.
func TestMorePortsChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for members := 1; members <= 9; members++ {
		contributions := make([][]uint32, members)
		for p := range contributions {
			contributions[p] = randomChunk(r, 300)
		}
		want := ReduceTree(contributions)
		for ports := members + 1; ports <= 17; ports++ {
			contributions = append(contributions, nil)
			require.Equal(t, want, ReduceTree(contributions), "%d members of %d ports", members, ports)
		}
	}
}

func TestNonfiniteElements(t *testing.T) {
	payload := words(f(1), 0x7f800000, 0xff800000, 0x7fc00000, 0xff800001, 0x7f7fffff, 1)
	assert.Equal(t, 4, nonfiniteFP32(payload))
}

func BenchmarkReduceChunk(b *testing.B) {
	for _, ports := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("ports=%d", ports), func(b *testing.B) {
			r := rand.New(rand.NewPCG(9, 9))
			payloads := make([][]byte, ports)
			for p := range payloads {
				chunk := make([]uint32, 1008)
				for i := range chunk {
					chunk[i] = f(r.Float32())
				}
				payloads[p] = words(chunk...)
			}
			var tree treeFP32
			result := make([]byte, len(payloads[0]))
			b.SetBytes(int64(ports * len(result)))
			b.ReportAllocs()
			for b.Loop() {
				tree.reduce(result, payloads)
			}
		})
	}
}
