package driver

// Several trees: a forest spreads the chunks of each reduction over several cards, or trees of cards,
// each with a job of its own (TREES.md, section 7). This file sets forests up and ends them,
// foresttree.go has what differs between cards and trees, forestcall.go has the calls, and forestmove.go
// moves the chunks of a tree that died.

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"tributary/driver/schedule"
)

// ForestTree is what a forest sets a job up on: a Card, which is a tree of one, or a Tree of cards.
type ForestTree interface {
	Info() Info
	setUpTree(ctx context.Context, cfg JobConfig) (*Job, error)
	completeJob(cfg JobConfig) (JobConfig, error) // defaults and checks
	allCards() []*Card                            // the root first
	treeRanks() uint64                            // of the workers; 0: 0 to Workers-1
}

// ForestConfig holds the parameters of a forest.
type ForestConfig struct {
	// Job is set up on each tree. Its Chunk is by default the largest that all trees take, its Window
	// that of each tree.
	Job JobConfig

	// Schedule names the tree of each chunk, from 0, and repeats: chunk g of all reductions together
	// belongs to tree Schedule[g mod len(Schedule)]. nil takes the trees in turn. A tree that it does
	// not name gets chunks only when others have died (Move).
	Schedule schedule.Schedule

	// Move lets reductions go on when a tree dies: the chunks without a sum move to the other trees,
	// in a new epoch. A tree dies when its card goes away, or is silent for the timeout; with
	// Job.CarryOn, when the card has not come back. Without Move its calls fail, and the forest ends.
	//
	// The inputs must not change until a call returns, also when it fails. Move excludes Job.Partial
	// and WithDetach. A tree of several cards has no Move: its workers get their sums at different
	// times.
	Move bool
	// OnMove runs after the chunks of a dead tree have moved. It must not call methods of the forest.
	OnMove func(Moved)
}

// Moved is the argument of OnMove.
type Moved struct {
	Trees    []int             // the dead trees, all so far
	Cause    error             // why the last one died
	Schedule schedule.Schedule // from now on
	Chunks   int               // of the reductions in progress that had no sum, per member
}

// Forest is a reduction set up on several trees: each chunk goes to one of them, as a schedule says.
// Its methods are like those of Job.
//
// The members start the same reductions in the same order, as those of a Job do. A failed call ends
// the forest, and the jobs of all trees with it, unless its chunks move (ForestConfig.Move).
type Forest struct {
	cfg     ForestConfig
	trees   []ForestTree
	info    Info // of the first tree; formats and sum are those of all
	workers int
	members []*ForestMember // in the order of their ranks
	byRank  []*ForestMember // nil for ranks that nobody has

	mu       sync.Mutex
	changed  sync.Cond // signals changes of running, generation, moving and err
	jobs     []*Job    // by tree; that of a dead tree has ended
	alive    []bool
	schedule schedule.Schedule
	live     []*forestCall        // in the order of their starts
	running  int                  // live calls that wait for their parts
	rounds   map[int]*forestRound // by their numbers
	complete map[int]int          // how many members have all sums of a reduction, until all have, by its number
	whole    forestWaiter         // of Reduce

	generation int   // epochs of the whole forest so far
	stopping   bool  // a tree has died: no call starts
	moving     bool  // a goroutine moves chunks
	cause      error // why the last tree died
	err        error // why the forest ended
	closed     bool
}

// ForestMember is one worker's view of a forest.
type ForestMember struct {
	forest *Forest
	rank   int

	// Guarded by Forest.mu.
	at     int // chunks of the member's reductions in this generation, which place the next one
	calls  int // reductions that the member has started
	waiter forestWaiter
}

// ConfigureForest sets up a job on each tree. The trees must have the same formats and sum, and ports
// for all workers. Each Tree places its workers itself; all have the same global ranks. The bits of a
// chunk are those of its tree, so they depend on the schedule if the trees have different shapes.
//
// Errors: InputError when the trees or cfg cannot be right; else those of Card.Configure and
// Tree.Configure. The jobs that are set up by then are ended.
func ConfigureForest(ctx context.Context, trees []ForestTree, cfg ForestConfig) (*Forest, error) {
	if err := cfg.complete(trees); err != nil {
		return nil, err
	}
	f := &Forest{
		cfg: cfg, trees: slices.Clone(trees), info: trees[0].Info(), workers: cfg.Job.Workers, schedule: cfg.Schedule,
		jobs: make([]*Job, len(trees)), alive: make([]bool, len(trees)), rounds: map[int]*forestRound{}, complete: map[int]int{},
	}
	f.changed.L = &f.mu
	for t, tree := range trees {
		job, err := tree.setUpTree(ctx, cfg.Job)
		if err != nil {
			f.end(errNotSetUp)
			f.drop()
			return nil, err
		}
		f.jobs[t], f.alive[t] = job, true
	}
	ranks := bitSlice(ranksOf(trees, f.workers))
	f.byRank = make([]*ForestMember, ranks[len(ranks)-1]+1)
	for _, r := range ranks {
		f.byRank[r] = &ForestMember{forest: f, rank: r}
		f.members = append(f.members, f.byRank[r])
	}
	return f, nil
}

// errNotSetUp is the cause in the EndedError of jobs of a forest whose set-up failed.
var errNotSetUp = errors.New("another tree could not be set up")

// complete fills in the defaults, and checks the parameters against the trees.
func (cfg *ForestConfig) complete(trees []ForestTree) error {
	if len(trees) == 0 {
		return &InputError{"trees", "there are none; name at least one card"}
	}
	if cfg.Schedule == nil {
		cfg.Schedule = schedule.RoundRobin(len(trees))
	}
	if err := cfg.Schedule.Check(len(trees)); err != nil {
		return &InputError{"schedule", err.Error()}
	}
	cfg.Schedule = slices.Clone(cfg.Schedule)
	for _, check := range []func([]ForestTree) error{sameTrees, separateCards, sameRanks} {
		if err := check(trees); err != nil {
			return err
		}
	}
	if err := cfg.checkMove(trees); err != nil {
		return err
	}
	if cfg.Job.Here != nil {
		return &InputError{"here", "all members of several trees are in one process; leave it out"}
	}
	if err := cfg.countWorkers(trees); err != nil {
		return err
	}
	var infos []Info
	for _, tree := range trees {
		infos = append(infos, tree.Info())
	}
	if err := cfg.Job.fillChunk(infos); err != nil {
		return err
	}
	job := cfg.Job
	for _, tree := range trees {
		complete, err := tree.completeJob(job)
		if err != nil {
			return err
		}
		if complete.Ports != nil { // a tree of cards has none
			cfg.Job.Ports = complete.Ports
		}
	}
	return nil
}

// checkMove rejects jobs whose chunks cannot move.
func (cfg *ForestConfig) checkMove(trees []ForestTree) error {
	if !cfg.Move {
		return nil
	}
	if cfg.Job.Partial {
		return &InputError{"move", "it excludes partial sums; set only one"}
	}
	for t, tree := range trees {
		if n := len(tree.allCards()); n > 1 {
			return &InputError{"move", fmt.Sprintf("tree %d, with the root %s, has %d cards, whose workers get their sums at different times; use single cards, or leave it out", t, tree.Info().Name, n)}
		}
	}
	return nil
}

// countWorkers fills in the number of workers, which all trees have.
func (cfg *ForestConfig) countWorkers(trees []ForestTree) error {
	if cfg.Job.Workers == 0 {
		cfg.Job.Workers = len(cfg.Job.Ports)
	}
	if cfg.Job.Workers == 0 {
		cfg.Job.Workers = bits.OnesCount64(ranksOf(trees, 0))
	}
	if cfg.Job.Workers != 0 {
		return nil // each tree checks it
	}
	for _, tree := range trees[1:] {
		if a, b := trees[0].Info(), tree.Info(); a.Ports != b.Ports {
			return &InputError{"workers", fmt.Sprintf("card %s has %d ports, card %s %d; set the number of workers", a.Name, a.Ports, b.Name, b.Ports)}
		}
	}
	cfg.Job.Workers = trees[0].Info().Ports
	return nil
}

// ranksOf returns the ranks of a forest's workers, at most 64: those of its trees of cards, if it has one.
func ranksOf(trees []ForestTree, workers int) uint64 {
	for _, tree := range trees {
		if ranks := tree.treeRanks(); ranks != 0 {
			return ranks
		}
	}
	return ^uint64(0) >> (64 - workers)
}

// sameRanks rejects trees of cards whose workers have different ranks.
func sameRanks(trees []ForestTree) error {
	ranks, of := uint64(0), 0
	for t, tree := range trees {
		switch got := tree.treeRanks(); {
		case got == 0 || got == ranks:
		case ranks == 0:
			ranks, of = got, t
		default:
			return &InputError{"trees", fmt.Sprintf("tree %d, with the root %s, has workers of the ranks %s, tree %d, with the root %s, of %s; give workers the same ranks on all trees",
				of, trees[of].Info().Name, rankList(ranks), t, tree.Info().Name, rankList(got))}
		}
	}
	if ranks&(ranks+1) == 0 { // 0 to some rank
		return nil
	}
	for t, tree := range trees {
		if tree.treeRanks() == 0 {
			return &InputError{"trees", fmt.Sprintf("the workers of card %s, tree %d, have the ranks from 0 on, but those of tree %d, with the root %s, have %s; make the card a tree (NewTree) with these ranks",
				tree.Info().Name, t, of, trees[of].Info().Name, rankList(ranks))}
		}
	}
	return nil
}

// separateCards rejects a card that cannot hold the jobs of all trees with it.
func separateCards(trees []ForestTree) error {
	with := map[*Card][]int{}
	for t, tree := range trees {
		for _, c := range tree.allCards() {
			with[c] = append(with[c], t)
			if used := with[c]; len(used) > c.info.Jobs {
				return &InputError{"trees", fmt.Sprintf("trees %d and %d have the same card %s, whose number of jobs is %d; use another card", used[0], t, c.name, c.info.Jobs)}
			}
		}
	}
	return nil
}

// sameTrees rejects trees whose cards do not compute the same sum.
func sameTrees(trees []ForestTree) error {
	a := trees[0].Info()
	for _, tree := range trees {
		b := tree.Info()
		differ := func(what string, of, other any) error {
			return &InputError{"trees", fmt.Sprintf("card %s has %s %v, card %s %v; use cards that sum alike", a.Name, what, of, b.Name, other)}
		}
		switch {
		case b.Format != a.Format:
			return differ("format", a.Format, b.Format)
		case b.Result != a.Result:
			return differ("result format", a.Result, b.Result)
		case b.Sum != a.Sum:
			return differ("sum", a.Sum, b.Sum)
		case b.Saturate != a.Saturate:
			return differ("saturation", a.Saturate, b.Saturate)
		}
	}
	return nil
}

// Config returns the forest's parameters with every default filled in but the windows (Info).
func (f *Forest) Config() ForestConfig {
	cfg := f.cfg
	cfg.Job.Ports = slices.Clone(cfg.Job.Ports)
	cfg.Schedule = slices.Clone(cfg.Schedule)
	return cfg
}

// Schedule returns the schedule of this epoch: that of the set-up, until chunks of a tree move.
func (f *Forest) Schedule() schedule.Schedule {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.schedule)
}

// Alive reports which trees have not died, by tree.
func (f *Forest) Alive() []bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.alive)
}

// Member returns the member of that rank, 0..Workers-1; with trees of cards, of that global rank. Another
// rank panics like an index out of range. It is nil for a rank below the highest that nobody has.
func (f *Forest) Member(rank int) *ForestMember { return f.byRank[rank] }

// Rank returns the member's rank.
func (m *ForestMember) Rank() int { return m.rank }

// Stats returns the counters of all members, by tree, since the tree was last set up.
func (f *Forest) Stats() []MemberStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]MemberStats, len(f.jobs))
	for t, job := range f.jobs {
		all[t] = job.Stats()
	}
	return all
}

// Evicted returns the ranks that have left the job of a tree, as Job.Evicted does, ascending.
func (f *Forest) Evicted() []int {
	var all []int
	for _, job := range f.jobsNow() {
		all = append(all, job.Evicted()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Close finishes the job of each tree, as Job.Close does. Dead trees have none. No member may be in a
// call. It returns the errors of all trees, joined.
func (f *Forest) Close(ctx context.Context) error {
	f.mu.Lock()
	switch {
	case f.err == nil && len(f.live) > 0:
		f.mu.Unlock()
		return &InputError{"close of the forest", f.live[0].name() + " is in progress; wait for it, or abort the forest"}
	case f.err != nil:
		defer f.mu.Unlock()
		return f.err
	}
	f.closed = true
	jobs, alive := slices.Clone(f.jobs), slices.Clone(f.alive)
	f.mu.Unlock()
	var all []error
	for t, job := range jobs {
		if !alive[t] {
			continue
		}
		if err := job.Close(ctx); err != nil && !(f.cfg.Move && isDeath(err)) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// Abort ends the forest at once, with the jobs of all trees. Calls in progress return EndedError. It
// does nothing when the forest has ended.
func (f *Forest) Abort(ctx context.Context) error {
	if !f.end(errAborted) {
		return nil
	}
	var all []error
	alive := f.Alive()
	for t, job := range f.jobsNow() {
		if alive[t] {
			all = append(all, job.drop(ctx))
		}
	}
	return errors.Join(all...)
}

func (f *Forest) jobsNow() []*Job {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.jobs)
}

// end ends the forest and all jobs on this host because of err. It reports whether it had not ended.
func (f *Forest) end(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.endLocked(err)
}

func (f *Forest) endLocked(err error) bool {
	if f.err != nil {
		return false
	}
	f.err = err
	for _, job := range f.jobs {
		if job != nil {
			job.endHere(err)
		}
	}
	f.changed.Broadcast()
	return true
}

// drop makes the cards drop the jobs, which have ended on this host, except those that are dead.
func (f *Forest) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, job := range f.jobsNow() {
		if job != nil {
			_ = job.drop(ctx) // else the next set-up or the end of the link ends it
		}
	}
}

// endedError is the error of calls after the forest has ended. The caller holds mu.
func (f *Forest) endedError() error {
	for _, job := range f.jobs {
		if ended, _ := job.over(); ended {
			return job.endedErrorNow()
		}
	}
	return f.err
}

func (j *Job) endedErrorNow() error {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	return j.endedError()
}

// names returns the names of the forest's cards.
func (f *Forest) names() string {
	var all []string
	for _, tree := range f.trees {
		for _, c := range tree.allCards() {
			all = append(all, c.name)
		}
	}
	return strings.Join(all, ", ")
}

// TreeExceptions are the counts of one tree.
type TreeExceptions struct {
	Tree int
	Exceptions
}

// Exceptions reads the counts of each tree that is alive, as Job.Exceptions does. Each counts the
// elements of its own chunks.
func (f *Forest) Exceptions(ctx context.Context) ([]TreeExceptions, error) {
	var all []TreeExceptions
	alive := f.Alive()
	for t, job := range f.jobsNow() {
		if !alive[t] {
			continue
		}
		e, err := job.Exceptions(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, TreeExceptions{t, e})
	}
	return all, nil
}

// Locate finds the elements of one tree's counts in the arrays of one reduction, as Job.Locate does.
// first is the number of chunks in the forest's earlier reductions. After chunks have moved, it finds
// none.
func (f *Forest) Locate(e TreeExceptions, first int, sums []byte, inputs [][]byte) Places {
	f.mu.Lock()
	job, moved := f.jobs[e.Tree], f.generation > 0
	f.mu.Unlock()
	if moved {
		return Places{}
	}
	_, before := f.cfg.Schedule.Share(e.Tree, 0, first)
	chunks := (len(sums)/job.outBytes + job.cfg.Chunk - 1) / job.cfg.Chunk
	view, n := f.cfg.Schedule.Share(e.Tree, first, chunks)
	return job.locateIn(e.Exceptions, sums, inputs, func(vid uint32) int {
		if k := int(vid-job.cfg.FirstVID) - before; k >= 0 && k < n {
			return view.Chunk(k)
		}
		return -1
	})
}
