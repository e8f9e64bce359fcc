package driver_test

// What a tree refuses, before anything is written to a card.

import (
	"fmt"
	"testing"

	"tributary/driver"
	"tributary/driver/model"
	"tributary/driver/wire"
)

// TestTreeRefuses: a tree that cannot be is refused by the name of a card that is wrong.
func TestTreeRefuses(t *testing.T) {
	other := func(change func(*model.Config)) *driver.Card {
		cfg := smallTree
		change(&cfg)
		return openName(t, newPlant(t, cfg).name)
	}
	same := func(*model.Config) {}
	a, b, c := other(same), other(same), other(same)
	int32s := other(func(cfg *model.Config) { cfg.Format, cfg.Result = wire.Int32, wire.Int32 })
	exact := other(func(cfg *model.Config) { cfg.Sum = wire.SumExact })
	plain := other(func(cfg *model.Config) { cfg.Parent = false })
	reader := openName(t, newPlant(t, smallTree).name, driver.WithReadOnly())
	root := driver.TreeCard{Card: a, Parent: -1}
	for what, x := range map[string]struct {
		cards []driver.TreeCard
		words []string
	}{
		"nothing":          {nil, []string{"no cards"}},
		"no card":          {[]driver.TreeCard{{Parent: -1}}, []string{"entry 0 has no card"}},
		"twice":            {[]driver.TreeCard{root, {Card: b}, {Card: b, Parent: 1}}, []string{name(b), "there twice", "one parent"}},
		"own parent":       {[]driver.TreeCard{root, {Card: b, Parent: 1}}, []string{name(b), "its own parent"}},
		"own grandparent":  {[]driver.TreeCard{root, {Card: b, Parent: 2}, {Card: c, Parent: 1}}, []string{name(c), "its own parent, through others"}},
		"no such parent":   {[]driver.TreeCard{root, {Card: b, Parent: 7}}, []string{name(b), "parent 7", "0 to 1"}},
		"two roots":        {[]driver.TreeCard{root, {Card: b, Parent: -1}}, []string{name(a), name(b), "one card is the root"}},
		"no up port below": {[]driver.TreeCard{root, {Card: plain}}, []string{name(plain), "no up port", "-parent"}},
		"no up port above": {[]driver.TreeCard{{Card: plain, Parent: -1}, {Card: a}}, []string{name(plain), "no up port"}},
		"format":           {[]driver.TreeCard{root, {Card: int32s}}, []string{name(int32s), "int32", name(a), "fp32"}},
		"sum":              {[]driver.TreeCard{root, {Card: exact}}, []string{name(exact), "exact", name(a), "tree"}},
		"reader":           {[]driver.TreeCard{root, {Card: reader}}, []string{name(reader), "reading only"}},
		"crowd":            {[]driver.TreeCard{{Card: a, Parent: -1, Workers: 4}, {Card: b}}, []string{name(a), "4 workers and 1 cards", "4 ports"}},
		"fewer than none":  {[]driver.TreeCard{{Card: a, Parent: -1, Workers: -1}}, []string{name(a), "-1 workers"}},
		"overlap":          {[]driver.TreeCard{{Card: a, Parent: -1, Ranks: []int{0, 3}}, {Card: b, Ranks: []int{3}}}, []string{name(a), name(b), "rank 3"}},
		"rank 64":          {[]driver.TreeCard{{Card: a, Parent: -1, Ranks: []int{64}}}, []string{name(a), "rank 64", "0 to 63"}},
		"rank -1":          {[]driver.TreeCard{{Card: a, Parent: -1, Ranks: []int{-1}}}, []string{name(a), "rank -1"}},
		"order":            {[]driver.TreeCard{{Card: a, Parent: -1, Ranks: []int{5, 2}}}, []string{name(a), "rank 2 after rank 5"}},
		"some ranks":       {[]driver.TreeCard{{Card: a, Parent: -1, Ranks: []int{0}}, {Card: b}}, []string{name(b), "no ranks"}},
		"ranks or workers": {[]driver.TreeCard{{Card: a, Parent: -1, Ranks: []int{0}, Workers: 2}}, []string{name(a), "2 workers with 1 ranks"}},
		"nobody":           {[]driver.TreeCard{{Card: a, Parent: -1, Ranks: []int{}}}, []string{name(a), "neither workers nor cards"}},
		"Ethernet port":    {[]driver.TreeCard{root, {Card: b, Up: 256}}, []string{name(b), "256", "0 to 255"}},
		"local ranks":      {[]driver.TreeCard{{Card: plain, Parent: -1, Ranks: []int{1, 2}}}, []string{name(plain), "no up port", "0 to 1"}},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := driver.NewTree(x.cards)
			wantError[*driver.InputError](t, err, x.words...)
		})
	}
}

func name(c *driver.Card) string { return c.Info().Name }

// TestTreeRefusesManyRanks: 64 workers are the most.
func TestTreeRefusesManyRanks(t *testing.T) {
	wide := smallTree
	wide.Ports = 64
	root, leaf := openName(t, newPlant(t, wide).name), openName(t, newPlant(t, wide).name)
	newTree(t, []driver.TreeCard{{Card: root, Parent: -1}})
	_, err := driver.NewTree([]driver.TreeCard{{Card: root, Parent: -1, Workers: 1}, {Card: leaf}})
	wantError[*driver.InputError](t, err, name(leaf), "rank 64")
}

// TestTreeRefusesJobs: a job that a card cannot have is refused by the card's name, and no card gets
// anything of it.
func TestTreeRefusesJobs(t *testing.T) {
	low := smallTree
	low.Lanes, low.Chunk, low.Window = 8, 8, 2
	root, leaf := openName(t, newPlant(t, smallTree).name), openName(t, newPlant(t, low).name)
	tree := newTree(t, []driver.TreeCard{{Card: root, Parent: -1, Workers: 1}, {Card: leaf, Workers: 2}})
	for what, x := range map[string]struct {
		cfg   driver.JobConfig
		words []string
	}{
		"partial sums": {driver.JobConfig{Partial: true, DeadlineCycles: 1000}, []string{"partial sums", "tree"}},
		"workers":      {driver.JobConfig{Workers: 4}, []string{"4 workers", "has 3"}},
		"ports":        {driver.JobConfig{Ports: []int{0, 1, 2}}, []string{"ports"}},
		"here":         {driver.JobConfig{Here: []int{0}}, []string{"ranks here"}},
		"chunk":        {driver.JobConfig{Chunk: 16}, []string{"16 elements", name(leaf)}},
		"lanes":        {driver.JobConfig{Chunk: 4}, []string{"4 elements", name(leaf), "multiples of 8"}},
		"window":       {driver.JobConfig{Window: 4}, []string{"4 chunks", name(leaf)}},
		"carry on":     {driver.JobConfig{CarryOn: -1}, []string{"carry on"}},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := tree.Configure(testContext(t), x.cfg)
			wantError[*driver.InputError](t, err, x.words...)
		})
	}
	for _, card := range []*driver.Card{root, leaf} {
		for _, addr := range []uint32{wire.RegJobToken, wire.RegJobPorts, wire.RegJobParent, wire.RegTreeRanks} {
			if value, err := card.ReadRegister(testContext(t), addr); err != nil || value != 0 {
				t.Errorf("%s: register %#x is %#x, %v", name(card), addr, value, err)
			}
		}
	}
	job, err := tree.Configure(testContext(t), driver.JobConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if cfg := job.Config(); cfg.Chunk != 8 || cfg.Window != 2 || cfg.Workers != 3 {
		t.Errorf("%+v", cfg)
	}
	treeSums(t, job, branches{[]int{0}, []branches{{[]int{1, 2}, nil}}}, 1, 100)
}

// TestTreeWithoutACommonChunk: the beats of one card are longer than the chunks of another.
func TestTreeWithoutACommonChunk(t *testing.T) {
	narrow, broad := smallTree, smallTree
	narrow.Chunk, broad.Lanes = 4, 8
	root, leaf := openName(t, newPlant(t, narrow).name), openName(t, newPlant(t, broad).name)
	_, err := newTree(t, []driver.TreeCard{{Card: root, Parent: -1}, {Card: leaf}}).Configure(testContext(t), driver.JobConfig{})
	wantError[*driver.InputError](t, err, "chunk", "the lanes of one card")
}

// TestTreeCalls: members of a tree are refused what those of a card are, by their ranks in the tree.
func TestTreeCalls(t *testing.T) {
	g := grow(t, smallTree, twoParents, twoWorkers)
	job := g.configure(t, driver.JobConfig{})
	err := job.Reduce(testContext(t), make([]float32, 3), make([][]float32, 4))
	wantError[*driver.InputError](t, err, "4 arrays", "7 workers")
	err = job.Member(6).AllReduce(testContext(t), nil)
	wantError[*driver.InputError](t, err, "rank 6")
	one, err := job.Member(5).StartAllReduce(testContext(t), make([]float32, 50))
	if err != nil {
		t.Fatal(err)
	}
	wantError[*driver.InputError](t, job.Close(testContext(t)), "rank 5 is in a call")
	in := arrays(1, 7, 50)
	wantError[*driver.InputError](t, job.Reduce(testContext(t), in[0], in), "rank 5 is in a call")
	if m := job.Member(5); m.Rank() != 5 || m.Job() != job || job.Card() != g.cards[0].Card {
		t.Errorf("member %d of job %p, not %p", m.Rank(), m.Job(), job)
	}
	if err := job.Abort(testContext(t)); err != nil {
		t.Fatal(err)
	}
	wantError[*driver.EndedError](t, one.Wait(testContext(t)), "aborted")
	wantError[*driver.EndedError](t, job.Close(testContext(t)), "aborted")
	for i, c := range g.cards {
		wantNoJob(t, fmt.Sprint("card ", i), c.Card)
	}
}
