package run_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/element"
	"tributary/driver/model"
	"tributary/driver/planner"
	"tributary/driver/planner/plan"
	"tributary/driver/planner/run"
	"tributary/driver/planner/topology"
	"tributary/driver/wire"
)

// patience is how long a test waits: longer than any machine is busy.
const patience = 5 * time.Minute

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// network returns a topology of a seed: a leaf-spine or fat-tree, some of whose switches only forward.
func network(t testing.TB, seed uint64) *topology.Topology {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 22))
	name := fmt.Sprintf("leaf-spine:leaves=%d,spines=2,hosts=%d,ports=%d,over=%d,rate=%d", 2+r.IntN(3), 2+r.IntN(3), 2+r.IntN(4), 1+r.IntN(3), 100*(1+r.IntN(4)))
	switch seed % 4 {
	case 1:
		name = fmt.Sprintf("fat-tree:k=4,hosts=1,ports=%d,over=%d,rate=%d", 2+r.IntN(3), 1+r.IntN(3), 100*(1+r.IntN(3)))
	case 3:
		name += ",servers=2"
	}
	topo, err := topology.Generate(name)
	require.NoError(t, err)
	for i := range topo.Nodes {
		if n := &topo.Nodes[i]; n.Kind == topology.Switch && r.IntN(4) == 0 {
			n.Ports = 0
		}
	}
	return topo
}

// planFor plans for a topology by one of the planners, chosen by the seed.
func planFor(t testing.TB, topo *topology.Topology, seed uint64) *plan.Plan {
	t.Helper()
	names := []string{"grid", "grid", "inart", "atp", "nearest", "none"}
	name := names[seed%uint64(len(names))]
	if name == "grid" && len(topo.Of(topology.Server)) > 1 {
		name = "inart"
	}
	p, err := planner.Make(context.Background(), topo, planner.Options{Planner: name, Trees: 1 + int(seed/2%3), Seed: seed})
	require.NoError(t, err)
	return p
}

// arithmetics are the sums of the tests.
var arithmetics = []struct {
	format wire.Format
	sum    wire.Sum
}{{wire.Int32, wire.SumTree}, {wire.FP32, wire.SumTree}, {wire.FP32, wire.SumFused}, {wire.FP32, wire.SumExact}}

// arrays returns random arrays by rank.
func arrays(seed uint64, format wire.Format, workers, n int) [][]byte {
	r := rand.New(rand.NewPCG(seed, 7))
	all := make([][]byte, workers)
	for w := range all {
		for range n {
			bits := r.Uint32()
			if format == wire.FP32 { // of either sign, and of other exponents
				bits = bits&0x83ffffff | 0x3c000000
			}
			all[w] = binary.LittleEndian.AppendUint32(all[w], bits)
		}
	}
	return all
}

// shape returns the tree of a plan as the model has it, from the plan alone: on each card workers come first,
// in the order of the topology, and then the cards below, in the order of the plan.
func shape(topo *topology.Topology, tree *plan.Tree, at plan.ID, ranks map[plan.ID]int) *model.Shape {
	s := &model.Shape{Ports: []*model.Shape{}}
	for _, w := range topo.Of(topology.Worker) {
		for _, m := range tree.Members {
			if m.Worker == plan.ID(topo.Nodes[w].ID) && m.To == at {
				s.Ports = append(s.Ports, &model.Shape{Worker: ranks[m.Worker]})
			}
		}
	}
	for _, sum := range tree.Sums {
		if sum.To == at {
			s.Ports = append(s.Ports, shape(topo, tree, sum.Switch, ranks))
		}
	}
	return s
}

// instance is a plan in progress.
type instance struct {
	topo  *topology.Topology
	plan  *plan.Plan
	ranks map[plan.ID]int // of all workers that were ever there
}

// want returns the sum of inputs by rank: int32 flat, other formats nested, by the trees of the plan.
func (x *instance) want(t testing.TB, sums *run.Sums, format wire.Format, sum wire.Sum, inputs [][]byte) []byte {
	t.Helper()
	a, err := model.NewArithmetic(sum, format, format, false)
	require.NoError(t, err)
	var shapes []*model.Shape
	for i := range x.plan.Trees {
		shapes = append(shapes, shape(x.topo, &x.plan.Trees[i], x.plan.Trees[i].Server, x.ranks))
	}
	var here []int
	for _, w := range x.topo.Of(topology.Worker) {
		here = append(here, x.ranks[plan.ID(x.topo.Nodes[w].ID)])
	}
	contributions := make([]uint32, len(inputs))
	want := make([]byte, len(inputs[0]))
	for i := range len(want) / 4 {
		flat := uint32(0)
		for _, rank := range here {
			contributions[rank] = element.At(format, inputs[rank], i)
			flat += contributions[rank]
		}
		if format == wire.Int32 {
			element.Put(format, want, i, flat)
			continue
		}
		s := sums.Epoch.Layout.Schedule
		tree := s[(sums.Place+i/sums.Epoch.Layout.Chunk)%len(s)]
		element.Put(format, want, i, a.Nested(shapes[tree], contributions))
	}
	return want
}

// sumUp makes a reduction, and compares what each worker gets.
func (x *instance) sumUp(t testing.TB, s *run.Session, seed uint64, format wire.Format, sum wire.Sum, n int, before func(ctx context.Context, rank int)) *run.Sums {
	t.Helper()
	inputs := arrays(seed, format, len(x.ranks), n)
	kept := make([][]byte, len(inputs))
	for i := range inputs {
		kept[i] = slices.Clone(inputs[i])
	}
	sums, err := s.Sum(testContext(t), inputs, before)
	require.NoError(t, err)
	x.compare(t, sums, format, sum, kept)
	return sums
}

func (x *instance) compare(t testing.TB, sums *run.Sums, format wire.Format, sum wire.Sum, inputs [][]byte) {
	t.Helper()
	want := x.want(t, sums, format, sum, inputs)
	assert.Equal(t, len(x.topo.Of(topology.Worker)), len(sums.Bytes), "workers with sums")
	for rank, got := range sums.Bytes {
		if !bytes.Equal(got, want) {
			t.Errorf("rank %d: other bits than those of the model", rank)
		}
	}
	models, err := sums.Want(inputs)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, models), "Want has other bits")
}

// options are those of small cards, whose windows are smaller than the arrays of tests.
func options(seed uint64) run.Options {
	a := arithmetics[seed%4]
	return run.Options{Format: a.format, Sum: a.sum, Lanes: 4, Chunk: 64, RoundTrip: time.Microsecond / 10, Timeout: patience, Loss: 0.01, Seed: seed}
}

// TestTwentyPlans: sums by plans of twenty seeds, with a worker that comes after the others and packets that
// are lost.
func TestTwentyPlans(t *testing.T) {
	most := map[string]int{} // of what the plans have
	var lost atomic.Uint64
	t.Cleanup(func() { assert.Greater(t, lost.Load(), uint64(10)) })
	for seed := range uint64(20) {
		topo := network(t, seed)
		x := &instance{topo, planFor(t, topo, seed), run.Ranks(topo)}
		for _, tree := range x.plan.Trees {
			most["sums"] = max(most["sums"], len(tree.Sums))
			for _, s := range tree.Sums {
				if s.To != tree.Server {
					most["levels"] = 2
				}
			}
		}
		most["trees"] = max(most["trees"], len(x.plan.Trees))
		most["workers"] = max(most["workers"], len(x.ranks))
		t.Run(fmt.Sprint(seed, x.plan.Planner), func(t *testing.T) {
			t.Parallel()
			o := options(seed)
			if seed%5 == 0 {
				o.Scheme = "model"
			}
			s, err := run.New(testContext(t), topo, x.plan, o)
			require.NoError(t, err)
			for i, n := range []int{600, 1, 331} {
				h := newHeld(len(x.ranks) - 1)
				h.release()
				x.sumUp(t, s, seed+uint64(i), o.Format, o.Sum, n, h.before(i%len(x.ranks)))
			}
			lost.Add(s.Lost())
			cards := s.Cards()
			require.NoError(t, s.Close(testContext(t)))
			for _, c := range cards {
				assert.Error(t, c.Err(), "card %s is open", c.Info().Name)
			}
		})
	}
	assert.GreaterOrEqual(t, most["sums"], 3)
	assert.GreaterOrEqual(t, most["trees"], 2)
	assert.GreaterOrEqual(t, most["levels"], 2)
	assert.GreaterOrEqual(t, most["workers"], 10)
}
