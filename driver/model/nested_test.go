// The sums of trees of cards: by hand, against the oracle level by level, and against the flat sum.

package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
	"tributary/verify/reference/operands"
	"tributary/verify/reference/oracle"
)

// leaf returns a card whose ports have these workers; -1 is no member.
func leaf(workers ...int) *Shape {
	card := &Shape{}
	for _, worker := range workers {
		if worker < 0 {
			card.Ports = append(card.Ports, nil)
			continue
		}
		card.Ports = append(card.Ports, &Shape{Worker: worker})
	}
	return card
}

// over returns a card whose ports have these members.
func over(members ...*Shape) *Shape { return &Shape{Ports: members} }

// deep is a tree of three levels, with ports that are no members, and a worker at the root.
func deep() *Shape {
	return over(over(leaf(0, 1, -1), leaf(2)), nil, &Shape{Worker: 3}, over(leaf(4, -1, 5), nil, leaf(6, 7, 8)))
}

func TestNestedSumsByHand(t *testing.T) {
	fp32 := card{wire.SumExact, wire.FP32, wire.FP32, false}
	integers := card{wire.SumTree, wire.Int32, wire.Int32, true}
	for _, c := range []struct {
		card
		tree    *Shape
		workers []uint32
		want    uint32
	}{
		{fp32, leaf(0, 1, 2), []uint32{f(1 << 24), f(1), f(1)}, f(1<<24 + 2)},
		{fp32, over(leaf(0, 1), leaf(2)), []uint32{f(1 << 24), f(1), f(1)}, f(1 << 24)}, // a tie to even at each card
		{fp32, over(leaf(0), leaf(2, 1)), []uint32{f(1 << 24), f(1), f(1)}, f(1<<24 + 2)},
		{fp32, leaf(-1, 0, -1), []uint32{minus0}, minus0},
		{fp32, over(leaf(0, -1), nil), []uint32{minus0}, minus0},
		{fp32, over(leaf(0, 1), leaf(2, 3)), []uint32{maximum, maximum, maximum | minus0, maximum | minus0}, quietNaN}, // inf - inf
		{integers, leaf(0, 1, 2), []uint32{1 << 30, 1 << 30, ^uint32(0)}, 1<<31 - 1},
		{integers, over(leaf(0, 1), leaf(2)), []uint32{1 << 30, 1 << 30, ^uint32(0)}, 1<<31 - 2}, // saturated on the way
		{integers, over(&Shape{Worker: 1}, leaf(0)), []uint32{5, 7}, 12},
	} {
		assert.Equal(t, c.want, c.card.arithmetic(t).Nested(c.tree, c.workers), "%v of %x", c.card, c.workers)
	}
}

func TestRanksOfATree(t *testing.T) {
	assert.EqualValues(t, 0x1ff, deep().Ranks())
	assert.EqualValues(t, 0x1f0, deep().Ports[3].Ranks())
	assert.EqualValues(t, 1<<9|1<<40, over(leaf(-1, 40), nil, &Shape{Worker: 9}).Ranks())
}

func TestNestedSumsOfOtherFormatsPanic(t *testing.T) {
	c := card{wire.SumTree, wire.BF16, wire.FP32, false}
	assert.Panics(t, func() { c.arithmetic(t).Nested(leaf(0), []uint32{0}) })
}

// nestedByOracle sums level by level as Nested does, with the oracle's sums.
func nestedByOracle(o *oracle.Oracle, tree *Shape, identity uint32, workers []uint32) uint32 {
	if tree.Ports == nil {
		return workers[tree.Worker]
	}
	var x []uint32
	for _, member := range tree.Ports {
		if member == nil {
			x = append(x, identity)
		} else {
			x = append(x, nestedByOracle(o, member, identity, workers))
		}
	}
	y, _ := o.Sum(x)
	return y
}

// TestNestedSumsAgreeWithTheOracle: for every sum and format of a card in a tree; int32 that wraps around
// and max have the flat sum's bits.
func TestNestedSumsAgreeWithTheOracle(t *testing.T) {
	differ := map[string]bool{}
	for _, c := range arithmetics() {
		if c.format != c.result {
			continue
		}
		a, o := c.arithmetic(t), oracle.New(c.which, c.format, c.result, c.saturate)
		flat := c.which == wire.SumMax || c.format == wire.Int32 && !c.saturate
		source := operands.New(c.format, c.result, 77)
		workers := make([]uint32, 9)
		for range 2000 {
			kind := source.Next(workers)
			got := a.Nested(deep(), workers)
			if want := nestedByOracle(o, deep(), c.which.Identity(c.format), workers); got != want {
				require.Failf(t, "another sum", "%v of %s %#x: %#x, not %#x", c, kind, workers, got, want)
			}
			if all, _ := a.Element(workers); got != all {
				require.False(t, flat, "%v of %s %#x: %#x, but the flat sum is %#x", c, kind, workers, got, all)
				differ[c.String()] = true
			}
		}
		assert.Equal(t, !flat, differ[c.String()], "%v: only one card promises the flat sum", c)
	}
}
