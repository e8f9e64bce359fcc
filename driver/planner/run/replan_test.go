package run_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/planner/plan"
	"tributary/driver/planner/run"
	"tributary/driver/planner/topology"
)

// event is what happens to a plan in progress.
type event struct {
	what  string
	lost  topology.Removed
	cause func(t testing.TB, s *run.Session) // nil: nothing breaks
	rank  int                                // of the worker that leaves, and does not call any more; -1: none
}

// eventOf chooses what happens: a link fails, a switch leaves, or a worker leaves.
func (x *instance) eventOf(t testing.TB, seed uint64) event {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	switch seed % 3 {
	case 0:
		for _, i := range r.Perm(len(x.plan.Loads.Links)) {
			l := x.plan.Loads.Links[i]
			e := event{what: fmt.Sprintf("link %s to %s fails", l.From.Text, l.To.Text), lost: topology.Removed{Links: [][2]topology.ID{{topology.ID(l.From), topology.ID(l.To)}}}, rank: -1,
				cause: func(_ testing.TB, s *run.Session) { s.FailLink(l.From, l.To) }}
			if _, err := x.topo.Without(e.lost); err == nil {
				return e
			}
		}
	case 1:
		var sums []plan.ID
		for _, tree := range x.plan.Trees {
			for _, s := range tree.Sums {
				sums = append(sums, s.Switch)
			}
		}
		if len(sums) > 0 {
			id := sums[r.IntN(len(sums))]
			e := event{what: "switch " + id.Text + " leaves", lost: topology.Removed{Nodes: []topology.ID{topology.ID(id)}}, rank: -1,
				cause: func(t testing.TB, s *run.Session) { require.NoError(t, s.FailCard(id)) }}
			if _, err := x.topo.Without(e.lost); err != nil { // workers need it, so it forwards
				e.lost = topology.Removed{Cards: e.lost.Nodes}
			}
			return e
		}
	}
	workers := x.topo.Of(topology.Worker)
	id := x.topo.Nodes[workers[r.IntN(len(workers))]].ID
	return event{what: "worker " + id.Text + " leaves", lost: topology.Removed{Nodes: []topology.ID{id}}, rank: x.ranks[plan.ID(id)]}
}

// after is the instance after an event.
func (x *instance) after(t testing.TB, e event, seed uint64) *instance {
	t.Helper()
	rest, err := x.topo.Without(e.lost)
	require.NoError(t, err)
	return &instance{rest, planFor(t, rest, seed), x.ranks}
}

// held is a reduction in which ranks wait before they begin.
type held struct {
	mu     sync.Mutex
	left   int           // ranks that have not come
	others chan struct{} // closed when all but the late ones have come
	late   chan struct{} // closed when the late ones may begin
}

// before lets a rank begin, a late one when it may or the reduction has failed.
func (h *held) before(late ...int) func(ctx context.Context, rank int) {
	return func(ctx context.Context, rank int) {
		if slices.Contains(late, rank) {
			select {
			case <-h.late:
			case <-ctx.Done():
			}
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.left--; h.left == 0 {
			close(h.others)
		}
	}
}

func newHeld(others int) *held {
	h := &held{left: others, others: make(chan struct{}), late: make(chan struct{})}
	if others == 0 {
		close(h.others)
	}
	return h
}

// release lets the late ranks begin when the others have come.
func (h *held) release() {
	go func() {
		<-h.others
		close(h.late)
	}()
}

// jobs are the jobs that are set up on a card, with their epochs, by number.
func jobs(t testing.TB, c *driver.Card) map[int]uint16 {
	t.Helper()
	states, err := c.Jobs(testContext(t))
	require.NoError(t, err)
	epochs := map[int]uint16{}
	for _, s := range states {
		if s.SetUp {
			epochs[s.Number] = s.Epoch
		}
	}
	return epochs
}

// allJobs are those of all cards. It checks that each card has those of the plan, and no others.
func allJobs(t testing.TB, s *run.Session) map[*driver.Card]map[int]uint16 {
	t.Helper()
	trees := map[plan.ID]int{}
	for _, n := range s.Epoch().Layout.Nodes {
		trees[n.ID] = n.Jobs
	}
	all := map[*driver.Card]map[int]uint16{}
	for id, c := range s.Cards() {
		all[c] = jobs(t, c)
		assert.Len(t, all[c], trees[id], "jobs of node %s in epoch %d", id.Text, s.Epoch().Number)
	}
	return all
}

// laterJobs checks that jobs have later epochs than before. It returns how many it has compared.
func laterJobs(t testing.TB, before, after map[*driver.Card]map[int]uint16) (compared int) {
	t.Helper()
	for c, epochs := range after {
		for number, epoch := range epochs {
			if old, was := before[c][number]; was {
				compared++
				assert.Positive(t, int16(epoch-old), "epoch %d after %d", epoch, old)
			}
		}
	}
	return compared
}

// TestReplan: in twenty plans a link fails, a switch leaves, or a worker leaves, during a reduction. The
// reduction goes on by the next plan. While this happens, workers come late and packets are lost.
func TestReplan(t *testing.T) {
	happened := map[string]int{}
	var compared atomic.Int64
	var lost atomic.Uint64
	t.Cleanup(func() {
		assert.Greater(t, compared.Load(), int64(10))
		assert.Greater(t, lost.Load(), uint64(10))
	})
	for seed := range uint64(20) {
		topo := network(t, seed)
		x := &instance{topo, planFor(t, topo, seed), run.Ranks(topo)}
		if len(x.ranks) < 2 {
			continue
		}
		e := x.eventOf(t, seed)
		t.Run(fmt.Sprintf("%d, %s", seed, e.what), func(t *testing.T) {
			t.Parallel()
			o := options(seed)
			s, err := run.New(testContext(t), topo, x.plan, o)
			require.NoError(t, err)
			const n = 600
			first := x.sumUp(t, s, seed, o.Format, o.Sum, n, nil)
			assert.Equal(t, 1, first.Epoch.Number)
			before := allJobs(t, s)

			next := x.after(t, e, seed)
			late := int(seed) % len(x.ranks)
			if e.rank >= 0 {
				late = e.rank
			}
			h := newHeld(len(x.ranks) - 1)
			inputs := arrays(seed+100, o.Format, len(x.ranks), n)
			var sums *run.Sums
			var work sync.WaitGroup
			work.Go(func() {
				var err error
				sums, err = s.Sum(testContext(t), inputs, h.before(late))
				assert.NoError(t, err)
			})
			<-h.others
			if e.cause != nil {
				e.cause(t, s)
			}
			if e.rank < 0 { // others come late
				close(h.late)
			}
			require.NoError(t, s.Replan(testContext(t), next.topo, next.plan, false))
			work.Wait()
			if t.Failed() {
				return
			}
			assert.Equal(t, 1, sums.Again)
			assert.Equal(t, 2, sums.Epoch.Number)
			next.compare(t, sums, o.Format, o.Sum, inputs)
			next.sumUp(t, s, seed+200, o.Format, o.Sum, n, nil)
			compared.Add(int64(laterJobs(t, before, allJobs(t, s))))
			lost.Add(s.Lost())
			require.NoError(t, s.Close(testContext(t)))
		})
		happened[e.what[:4]]++
	}
	for what, n := range happened {
		assert.Greater(t, n, 3, what)
	}
}

// TestDrain: a reduction in progress ends by the plan with which it began. The next one has the other plan.
func TestDrain(t *testing.T) {
	for _, seed := range []uint64{2, 7, 9} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			topo := network(t, seed)
			x, o := &instance{topo, planFor(t, topo, seed), run.Ranks(topo)}, options(seed)
			next := &instance{topo, planFor(t, topo, seed+1), x.ranks}
			s, err := run.New(testContext(t), topo, x.plan, o)
			require.NoError(t, err)
			before := allJobs(t, s)
			const n = 600
			first, second := arrays(1, o.Format, len(x.ranks), n), arrays(2, o.Format, len(x.ranks), n)
			h := newHeld(len(x.ranks) - 1)
			var work sync.WaitGroup
			work.Go(func() {
				sums, err := s.Sum(testContext(t), first, h.before(0))
				if assert.NoError(t, err) {
					assert.Equal(t, 1, sums.Epoch.Number)
					assert.Zero(t, sums.Again)
					x.compare(t, sums, o.Format, o.Sum, first)
				}
			})
			<-h.others
			work.Go(func() { assert.NoError(t, s.Replan(testContext(t), topo, next.plan, true)) })
			for !s.Moving() {
				runtime.Gosched()
			}
			assert.ErrorContains(t, s.Replan(testContext(t), topo, next.plan, true), "another plan is being set up")
			work.Go(func() {
				sums, err := s.Sum(testContext(t), second, nil)
				if assert.NoError(t, err) {
					assert.Equal(t, 2, sums.Epoch.Number)
					next.compare(t, sums, o.Format, o.Sum, second)
				}
			})
			close(h.late)
			work.Wait()
			laterJobs(t, before, allJobs(t, s))
			require.NoError(t, s.Close(testContext(t)))
		})
	}
}

// TestFailLink: a link that has failed, on the way of a card's sums or of workers' streams, lets no reduction
// end. The next plan does.
func TestFailLink(t *testing.T) {
	for _, by := range []string{"nearest", "none"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			topo := generated(t, "leaf-spine:leaves=2,spines=2,hosts=3,over=2")
			x, o := &instance{topo, planned(t, topo, by), run.Ranks(topo)}, options(1)
			o.Loss = 0
			tree := x.plan.Trees[0]
			var ways [][]plan.ID // from spines to the server's leaf
			for _, s := range tree.Sums {
				ways = append(ways, s.Path)
			}
			for _, m := range tree.Members {
				ways = append(ways, m.Path)
			}
			way := ways[slices.IndexFunc(ways, func(path []plan.ID) bool { return len(path) > 3 })]
			a, b := way[len(way)-3], way[len(way)-2]
			rest, err := topo.Without(topology.Removed{Links: [][2]topology.ID{{topology.ID(a), topology.ID(b)}}})
			require.NoError(t, err)
			s, err := run.New(testContext(t), topo, x.plan, o)
			require.NoError(t, err)
			x.sumUp(t, s, 1, o.Format, o.Sum, 600, nil)
			assert.Zero(t, s.Lost())
			s.FailLink(a, b)
			next := &instance{rest, planned(t, rest, by), x.ranks}
			var work sync.WaitGroup
			work.Go(func() { assert.Equal(t, 1, next.sumUp(t, s, 2, o.Format, o.Sum, 600, nil).Again) })
			for s.Lost() == 0 {
				runtime.Gosched()
			}
			require.NoError(t, s.Replan(testContext(t), rest, next.plan, false))
			work.Wait()
			require.NoError(t, s.Close(testContext(t)))
		})
	}
}

// TestACardGoesWithoutAnotherPlan: the reduction fails by the name of the card, and so do later ones.
func TestACardGoesWithoutAnotherPlan(t *testing.T) {
	topo := network(t, 2)
	x, o := &instance{topo, planFor(t, topo, 2), run.Ranks(topo)}, options(2)
	s, err := run.New(testContext(t), topo, x.plan, o)
	require.NoError(t, err)
	name := s.Cards()[x.plan.Trees[0].Server].Info().Name
	require.NoError(t, s.FailCard(x.plan.Trees[0].Server))
	inputs := arrays(1, o.Format, len(x.ranks), 100)
	for range 2 {
		ctx, cancel := context.WithCancel(testContext(t))
		_, err = s.Sum(ctx, inputs, func(failed context.Context, rank int) {
			if rank == 0 { // waits for the others, and then nobody waits for another plan
				<-failed.Done()
				cancel()
			}
		})
		assert.ErrorContains(t, err, name)
	}
	_ = s.Close(testContext(t)) // the card is gone
}

// TestReplanInputs: a plan that cards cannot carry out changes nothing.
func TestReplanInputs(t *testing.T) {
	topo := generated(t, "leaf-spine:leaves=2,spines=1,hosts=3,ports=8,over=2")
	x, o := &instance{topo, planned(t, topo, "nearest"), run.Ranks(topo)}, options(1)
	s, err := run.New(testContext(t), topo, x.plan, o)
	require.NoError(t, err)
	var input *run.InputError
	assert.ErrorAs(t, s.Replan(testContext(t), topo, copies(x.plan, 17), true), &input)
	more := generated(t, "leaf-spine:leaves=2,spines=1,hosts=4,ports=8,over=2")
	assert.ErrorAs(t, s.Replan(testContext(t), more, planned(t, more, "nearest"), true), &input, "a worker that is new")
	assert.ErrorAs(t, s.FailCard(id("spine-0")), &input)
	assert.Equal(t, 1, x.sumUp(t, s, 1, o.Format, o.Sum, 100, nil).Epoch.Number)

	// One that needs larger cards gets them.
	before := s.Cards()[id("leaf-1")]
	require.NoError(t, s.Replan(testContext(t), topo, copies(x.plan, 5), true))
	assert.NotSame(t, before, s.Cards()[id("leaf-1")])
	allJobs(t, s)
	(&instance{topo, copies(x.plan, 5), x.ranks}).sumUp(t, s, 2, o.Format, o.Sum, 1000, nil)
	require.NoError(t, s.Close(testContext(t)))
}
