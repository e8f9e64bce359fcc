package driver_test

// Forests whose trees have several cards (TREES.md, section 7). The expected sum of a chunk is the nested
// sum of its tree, which the schedule of the test names.

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/model"
	"tributary/driver/schedule"
	"tributary/driver/wire"
)

// Two trees of three cards with the ranks 0, 1, 2, 3 and 5, which sum in another order. The second has its
// root at the end of the list.
var (
	firstGrove  = branches{[]int{2}, []branches{{[]int{0, 5}, nil}, {[]int{1, 3}, nil}}}
	secondGrove = branches{[]int{1, 5}, []branches{{[]int{0, 2, 3}, nil}}}
	groveRanks  = []int{0, 1, 2, 3, 5}
)

// growBranches makes a tree of cards that open opens, the root last.
func growBranches(t testing.TB, b branches, open func() *driver.Card) *grove {
	t.Helper()
	g := &grove{}
	add := func(parent int, ranks []int) {
		g.cards = append(g.cards, driver.TreeCard{Card: open(), Parent: parent, Ranks: ranks})
	}
	for _, leaf := range b.below {
		add(len(b.below), leaf.workers)
	}
	add(-1, b.workers)
	g.tree = newTree(t, g.cards)
	return g
}

// plantBranches starts the cards of a tree, the root last.
func plantBranches(t testing.TB, b branches) *grove {
	t.Helper()
	var plants []*plant
	g := growBranches(t, b, func() *driver.Card {
		p := newPlant(t, smallTree)
		card := openForever(t, p.name)
		plants = append(plants, p)
		return card
	})
	g.plants = plants
	return g
}

// twoGroves are the trees of the tests.
func twoGroves(t testing.TB) (groves []*grove, trees []driver.ForestTree, shapes []branches) {
	t.Helper()
	shapes = []branches{firstGrove, secondGrove}
	for _, b := range shapes {
		g := plantBranches(t, b)
		groves, trees = append(groves, g), append(trees, g.tree)
	}
	return groves, trees, shapes
}

// groveSum returns the sum of inputs, by rank, whose first chunk has a place in the schedule.
func groveSum(inputs [][]float32, shapes []branches, s schedule.Schedule, place, chunk int) (sum []float32) {
	nested := make([][]float32, len(shapes))
	for t, b := range shapes {
		nested[t] = nestedSum(inputs, b, smallTree.Ports)
	}
	for at := 0; at < len(inputs[0]); at, place = at+chunk, place+1 {
		sum = append(sum, nested[s[place%len(s)]][at:min(at+chunk, len(inputs[0]))]...)
	}
	return sum
}

// ranks returns the ranks of all workers, ascending.
func (b branches) ranks() []int {
	all := slices.Clone(b.workers)
	for _, below := range b.below {
		all = append(all, below.ranks()...)
	}
	slices.Sort(all)
	return all
}

// those returns the arrays of some ranks.
func those(ranks []int, byRank [][]float32) (all [][]float32) {
	for _, rank := range ranks {
		all = append(all, byRank[rank])
	}
	return all
}

// groveSums makes the same reductions of many lengths by all ranks, and by each. place is that of the first
// chunk in the schedule; groveSums returns the next one.
func groveSums(t testing.TB, f *driver.Forest, shapes []branches, seed uint64, place int) int {
	t.Helper()
	s, chunk, ranks := f.Config().Schedule, f.Config().Job.Chunk, shapes[0].ranks()
	lengths := []int{1, chunk, chunk + 1, 5*chunk - 1, 20 * chunk}
	var bufs, want [][][]float32
	for i, n := range lengths {
		in := arrays(seed+uint64(i), 6, n)
		sum := groveSum(in, shapes, s, place, chunk)
		place += (n + chunk - 1) / chunk
		dst := in[ranks[(int(seed)+i)%len(ranks)]] // in place
		if err := f.Reduce(testContext(t), dst, those(ranks, in)); err != nil {
			t.Error(err)
			return 0
		}
		sameBits(t, fmt.Sprint("sum of ", n), dst, sum)
	}
	for i, n := range lengths {
		in := arrays(seed+100+uint64(i), 6, n)
		bufs, want = append(bufs, in), append(want, [][]float32{groveSum(in, shapes, s, place, chunk)})
		place += (n + chunk - 1) / chunk
	}
	var members sync.WaitGroup
	for _, rank := range ranks {
		members.Go(func() {
			var queue []*driver.Pending
			for i := range lengths {
				p, err := f.Member(rank).StartAllReduce(testContext(t), bufs[i][rank])
				if err != nil {
					t.Errorf("rank %d: %v", rank, err)
					return
				}
				queue = append(queue, p)
			}
			for i, p := range queue {
				if err := p.Wait(testContext(t)); err != nil {
					t.Errorf("rank %d: %v", rank, err)
					return
				}
				sameBits(t, fmt.Sprintf("rank %d, call %d", rank, i), bufs[i][rank], want[i][0])
			}
		})
	}
	members.Wait()
	return place
}

// TestForestOfTrees: each chunk has the bits of its tree, whose leaves have mixed ranks.
func TestForestOfTrees(t *testing.T) {
	for _, s := range []schedule.Schedule{{0, 1}, {0, 0, 1}, {1}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			groves, trees, shapes := twoGroves(t)
			f := configureForest(t, trees, driver.ForestConfig{Schedule: s, Job: driver.JobConfig{Chunk: 8}})
			if f.Member(4) != nil || f.Member(5).Rank() != 5 || f.Config().Job.Workers != 5 {
				t.Errorf("members are %v, %v of %d", f.Member(4), f.Member(5).Rank(), f.Config().Job.Workers)
			}
			groveSums(t, f, shapes, 1, groveSums(t, f, shapes, 0, 0))
			if err := f.Close(testContext(t)); err != nil {
				t.Fatal(err)
			}
			for _, g := range groves {
				for _, c := range g.cards {
					wantNoJob(t, name(c.Card), c.Card)
				}
			}
		})
	}
}

// TestForestOfTreesInOneArray: the sum may be the input of workers at several cards. Their inputs last until
// all cards have them. Progress counts each element once, and a mean divides by the workers.
func TestForestOfTreesInOneArray(t *testing.T) {
	t.Parallel()
	_, trees, shapes := twoGroves(t)
	f := configureForest(t, trees, driver.ForestConfig{})
	n := 50 * f.Config().Job.Chunk
	one := make([]float32, n)
	in := make([][]float32, 6)
	for r := range in {
		in[r] = one
	}
	for i := range one {
		one[i] = float32(i)
	}
	var last atomic.Int64
	last.Store(-1)
	progress := driver.WithProgress(func(done, total int) {
		if before := last.Swap(int64(done)); int64(done) <= before || done > total || total != n {
			t.Errorf("%d of %d after %d", done, total, before)
		}
		if done < total && (one[1] != 1 || one[n-1] != float32(n-1)) {
			t.Errorf("the inputs change after %d elements", done)
		}
	})
	if err := f.Reduce(testContext(t), one, those(groveRanks, in), progress); err != nil {
		t.Fatal(err)
	}
	for i, x := range one {
		if x != float32(i)*5 { // sums of integers are exact
			t.Fatalf("element %d is %v", i, x)
		}
	}
	if last.Load() != int64(n) {
		t.Errorf("progress ended at %d", last.Load())
	}
	if err := f.Reduce(testContext(t), one, those(groveRanks, in), driver.WithMean()); err != nil {
		t.Fatal(err)
	}
	for i, x := range one {
		if x != float32(i)*5 {
			t.Fatalf("element %d of the mean is %v", i, x)
		}
	}
	groveSums(t, f, shapes, 3, 100)
}

// TestForestOfATreeAndACard: a card is a tree, with the ranks from 0 on.
func TestForestOfATreeAndACard(t *testing.T) {
	shapes := []branches{{[]int{2}, []branches{{[]int{0, 1}, nil}}}, {[]int{0, 1, 2}, nil}}
	g := plantBranches(t, shapes[0])
	card := openTrees(t, "model:lanes=4,workers=4,chunk=16,window=2")[0]
	f := configureForest(t, []driver.ForestTree{g.tree, card}, driver.ForestConfig{})
	if cfg := f.Config(); cfg.Job.Workers != 3 || cfg.Job.Chunk != 16 || !slices.Equal(cfg.Job.Ports, []int{0, 1, 2}) {
		t.Errorf("%+v", cfg)
	}
	in := arrays(1, 3, 1000)
	want := groveSum(in, shapes, schedule.Schedule{0, 1}, 0, 16)
	if err := f.Reduce(testContext(t), in[1], in); err != nil {
		t.Fatal(err)
	}
	sameBits(t, "sum", in[1], want)
	if err := f.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestForestOfTreesFails: when any card of any tree dies, all calls of all members end with an error that
// names it, and the other cards of all trees keep nothing.
func TestForestOfTreesFails(t *testing.T) {
	for _, victim := range [][2]int{{0, 0}, {0, 2}, {1, 0}, {1, 1}} {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			t.Parallel()
			groves, trees, shapes := twoGroves(t)
			f := configureForest(t, trees, driver.ForestConfig{})
			groveSums(t, f, shapes, 0, 0)
			dead := groves[victim[0]].plants[victim[1]]
			var calls []*driver.Pending
			for _, rank := range groveRanks[:4] { // the last one never calls
				for range 2 {
					p, err := f.Member(rank).StartAllReduce(testContext(t), make([]float32, 1000), driver.WithCallTimeout(time.Hour))
					if err != nil {
						t.Fatal(err)
					}
					calls = append(calls, p)
				}
			}
			dead.stop()
			for i, p := range calls {
				if died := wantError[*driver.DiedError](t, p.Wait(testContext(t)), dead.name); died.Card != dead.name {
					t.Errorf("call %d: %v", i, died)
				}
			}
			wantError[*driver.DiedError](t, f.Member(5).AllReduce(testContext(t), make([]float32, 1000)), dead.name)
			in := arrays(1, 6, 100)
			wantError[*driver.DiedError](t, f.Reduce(testContext(t), in[0], those(groveRanks, in)), dead.name)
			wantError[*driver.DiedError](t, f.Close(testContext(t)), dead.name)
			for _, g := range groves {
				for i, c := range g.cards {
					if g.plants[i] != dead {
						awaitNoJob(t, c.Card)
					}
				}
			}
		})
	}
}

// muteLeaf is a card that sends nothing to its workers any more. What it sends up leaves.
type muteLeaf struct {
	*model.Endpoint
	on *atomic.Bool
}

func (m *muteLeaf) Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool) {
	for {
		datagram, to, mark, ok = m.Endpoint.Send(dst)
		if !ok || !m.on.Load() || wire.Kind(datagram[0]>>4) < wire.KindResult {
			return datagram, to, mark, ok
		}
	}
}

// TestForestOfTreesWithAMuteCard: a leaf says nothing any more, when it has passed its workers' inputs up. Its
// workers wait for their sums. The others have theirs, and wait on the other tree for these workers in their
// next call. All calls end by the leaf's name: no worker is missed, because none is late.
func TestForestOfTreesWithAMuteCard(t *testing.T) {
	bubble(func(t *testing.T) {
		var on atomic.Bool
		first := true
		wrap := func(e *model.Endpoint) lanCard {
			if !first {
				return e
			}
			first = false
			return &muteLeaf{e, &on} // of the ranks 0 and 5
		}
		n, shapes := newLAN(t), []branches{firstGrove, secondGrove}
		var trees []driver.ForestTree
		for _, b := range shapes {
			g := growBranches(t, b, func() *driver.Card { return n.open(smallTree, wrap, driver.WithTimeout(2*time.Second)) })
			trees = append(trees, g.tree)
		}
		f := configureForest(t, trees, driver.ForestConfig{Schedule: schedule.Schedule{0, 1}})
		chunk := f.Config().Job.Chunk
		if place := groveSums(t, f, shapes, 0, 0); place%2 != 0 {
			t.Fatalf("the next chunk has place %d", place)
		}
		on.Store(true)
		var members sync.WaitGroup
		for _, rank := range groveRanks {
			members.Go(func() {
				err := f.Member(rank).AllReduce(testContext(t), make([]float32, chunk)) // on the tree of the leaf
				if rank != 0 && rank != 5 {
					if err != nil {
						t.Errorf("rank %d: %v", rank, err)
					}
					err = f.Member(rank).AllReduce(testContext(t), make([]float32, chunk)) // on the other tree
				}
				var died *driver.DiedError
				if !errors.As(err, &died) || died.Card != "card 0" {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
		}
		members.Wait()
	})(t)
}

// TestForestOfTreesCarriesOn: a card of one tree dies and comes back as a new one, again and again, while
// members reduce. Every bit is as without.
func TestForestOfTreesCarriesOn(t *testing.T) {
	t.Parallel()
	groves, trees, shapes := twoGroves(t)
	back := make(chan string, 100)
	f := configureForest(t, trees, driver.ForestConfig{Job: driver.JobConfig{CarryOn: patience, OnOutage: func(o driver.Outage) {
		if o.Epoch != 0 {
			back <- o.Card
		}
	}}})
	var over atomic.Bool
	var work sync.WaitGroup
	work.Go(func() {
		for seed, place := uint64(1), 0; !over.Load() && !t.Failed(); seed++ {
			place = groveSums(t, f, shapes, seed, place)
		}
	})
	for _, victim := range [][2]int{{0, 0}, {1, 1}, {1, 0}, {0, 2}} {
		p := groves[victim[0]].plants[victim[1]]
		p.stop()
		p.start()
		if card := <-back; card != p.name {
			t.Errorf("card %s came back, not %s", card, p.name)
		}
	}
	over.Store(true)
	work.Wait()
	if err := f.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestForestOfOneAndSeveralCardsCarriesOn: one tree is a single card, as such or with ranks of its own, and
// one has three cards. Each card of both dies in turn while members reduce, and then two at once: of both
// trees, and of one. Every bit is as without.
func TestForestOfOneAndSeveralCardsCarriesOn(t *testing.T) {
	for name, shapes := range map[string][]branches{
		"a card":             {{[]int{0, 1, 2, 3}, nil}, {[]int{2}, []branches{{[]int{0, 3}, nil}, {[]int{1}, nil}}}},
		"a tree of one card": {{[]int{1, 2, 4, 5}, nil}, {[]int{2}, []branches{{[]int{1, 5}, nil}, {[]int{4}, nil}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, several := plantBranches(t, shapes[0]), plantBranches(t, shapes[1])
			trees := []driver.ForestTree{one.tree, several.tree}
			if name == "a card" {
				trees[0] = one.cards[0].Card
			}
			plants := append(one.plants, several.plants...)
			back := make(chan string, 100)
			f := configureForest(t, trees, driver.ForestConfig{
				Job: driver.JobConfig{Workers: 4, CarryOn: patience, OnOutage: func(o driver.Outage) {
					if o.Epoch != 0 {
						back <- o.Card
					}
				}},
				Schedule: schedule.Schedule{0, 1, 1},
			})
			place := 0
			var over atomic.Bool
			var work sync.WaitGroup
			work.Go(func() {
				for seed := uint64(1); !over.Load() && !t.Failed(); seed++ {
					place = groveSums(t, f, shapes, seed, place)
				}
			})
			for _, victims := range [][]int{{0}, {1}, {2}, {3}, {0}, {0, 2}, {1, 3}} {
				for _, v := range victims {
					plants[v].stop()
				}
				var want, got []string
				for _, v := range victims {
					plants[v].start()
					want = append(want, plants[v].name)
				}
				for range victims {
					got = append(got, <-back)
				}
				slices.Sort(want)
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%v came back, not %v", got, want)
				}
			}
			over.Store(true)
			work.Wait()
			groveSums(t, f, shapes, 1000, place)
			if err := f.Close(testContext(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestForestOfOneCardTreesMoves: a tree of one card dies, and its chunks move. Its workers have ranks that a
// card alone cannot give them.
func TestForestOfOneCardTreesMoves(t *testing.T) {
	b := branches{[]int{1, 3}, nil}
	dying, living := plantBranches(t, b), plantBranches(t, b)
	moved := make(chan driver.Moved, 1)
	f := configureForest(t, []driver.ForestTree{dying.tree, living.tree}, driver.ForestConfig{Move: true, OnMove: func(m driver.Moved) { moved <- m }})
	in := arrays(1, 4, 1000)
	want := nestedSum(in, b, smallTree.Ports)
	first, err := f.Member(1).StartAllReduce(testContext(t), in[1])
	if err != nil {
		t.Fatal(err)
	}
	dying.plants[0].stop() // nothing is summed yet
	second, err := f.Member(3).StartAllReduce(testContext(t), in[3])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Wait(testContext(t)), second.Wait(testContext(t))); err != nil {
		t.Fatal(err)
	}
	sameBits(t, "rank 1", in[1], want)
	sameBits(t, "rank 3", in[3], want)
	if m := <-moved; !slices.Equal(m.Trees, []int{0}) || m.Chunks == 0 {
		t.Errorf("%+v", m)
	}
	if err := f.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestTreeInfo: a tree takes what all its cards take.
func TestTreeInfo(t *testing.T) {
	low := smallTree
	low.Lanes, low.Chunk, low.Window = 8, 8, 2
	root, leaf := openName(t, newPlant(t, smallTree).name), openName(t, newPlant(t, low).name)
	want := root.Info()
	want.Ports, want.Lanes, want.Chunk, want.Window = 3, 8, 8, 2
	tree := newTree(t, []driver.TreeCard{{Card: leaf, Parent: 1, Workers: 2}, {Card: root, Parent: -1, Workers: 1}})
	if got := tree.Info(); got != want {
		t.Errorf("%+v instead of %+v", got, want)
	}
	f := configureForest(t, []driver.ForestTree{tree}, driver.ForestConfig{})
	if chunk := f.Config().Job.Chunk; chunk != 8 {
		t.Errorf("chunks of %d", chunk)
	}
}

// TestForestOfTreesRefuses: trees that do not fit together, by the names of their roots.
func TestForestOfTreesRefuses(t *testing.T) {
	card := func() *driver.Card { return openName(t, newPlant(t, smallTree).name) }
	tree := func(c *driver.Card, ranks ...int) driver.ForestTree {
		return newTree(t, []driver.TreeCard{{Card: c, Parent: -1, Ranks: ranks}})
	}
	a, b, leaf := card(), card(), card()
	both := newTree(t, []driver.TreeCard{{Card: a, Parent: -1, Workers: 1}, {Card: leaf, Workers: 2}})
	for what, x := range map[string]struct {
		trees []driver.ForestTree
		cfg   driver.ForestConfig
		words []string
	}{
		"ranks":        {[]driver.ForestTree{both, tree(b, 0, 1, 3)}, driver.ForestConfig{}, []string{"trees", "tree 0", name(a), "0, 1, 2", "tree 1", name(b), "0, 1, 3"}},
		"fewer ranks":  {[]driver.ForestTree{both, tree(b, 0, 1)}, driver.ForestConfig{}, []string{"trees", name(a), name(b)}},
		"card's ranks": {[]driver.ForestTree{b, tree(a, 0, 3)}, driver.ForestConfig{}, []string{"trees", "card " + name(b), name(a), "0, 3", "NewTree"}},
		"workers":      {[]driver.ForestTree{both, b}, driver.ForestConfig{Job: driver.JobConfig{Workers: 2}}, []string{"2 workers", "has 3"}},
		"ports":        {[]driver.ForestTree{both, b}, driver.ForestConfig{Job: driver.JobConfig{Ports: []int{0, 1, 2}}}, []string{"ports"}},
		"a card twice": {[]driver.ForestTree{both, tree(leaf, 0, 1, 2)}, driver.ForestConfig{}, []string{"trees 0 and 1", name(leaf)}},
		"move":         {[]driver.ForestTree{b, both}, driver.ForestConfig{Move: true}, []string{"move", "tree 1", name(a), "2 cards"}},
		"partial sums": {[]driver.ForestTree{both}, driver.ForestConfig{Job: driver.JobConfig{Partial: true, DeadlineCycles: 1000}}, []string{"partial sums"}},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := driver.ConfigureForest(testContext(t), x.trees, x.cfg)
			wantError[*driver.InputError](t, err, x.words...)
		})
	}
	for _, c := range []*driver.Card{a, b, leaf} {
		wantNoJob(t, name(c), c)
	}
}
