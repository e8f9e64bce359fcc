package elastic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective"
	"tributary/driver/collective/elastic"
	"tributary/driver/collective/membership"
	"tributary/driver/wire"
)

// The members of these tests are real ones on a network that the test controls: each operation of a group
// completes on the members that the test chooses and fails on the others, members die in it or give it up.

// fate is what happens in one operation, by rank.
type fate struct {
	fails  []bool // it does not complete
	dies   int    // after it has completed or failed; -1: nobody
	before bool   // the one that dies does so before it sends anything
	stops  int    // its context ends before it completes; -1: nobody's
}

// trial is one run.
type trial struct {
	*testing.T
	ctx    context.Context
	store  *membership.Memory
	cfg    elastic.Config
	calls  uint64
	random *rand.Rand
	faults int                                         // that are left
	plan   func(generation uint64, op, size int) *fate // nil: random

	mu        sync.Mutex
	rooms     map[uint64]*room
	actors    map[string]*actor
	wrong     []string
	losses    map[string]uint64 // by ID: the call that failed for it
	calm      bool              // there are no faults
	newcomers int               // that start when the first members run
	running   int
	ending    context.Context // of all programs
	end       context.CancelFunc
	over      chan struct{} // closed at the first wrong
	wg        sync.WaitGroup
}

// actor is a member with its program.
type actor struct {
	*elastic.Group
	trial    *trial
	id       string
	engine   membership.Engine
	life     context.Context
	die      context.CancelFunc
	stopCall context.CancelFunc // of the call under way
	dead     bool
	numbered bool // it is no newcomer
	log      []entry
	pending  *entry // the call in which it died
}

// entry is one call of a program.
type entry struct {
	call   uint64 // its number in the group; 0: that before the next entry's
	input  []byte
	result []byte // nil: it failed
	err    error
}

func (t *trial) fail(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failLocked(format, args...)
}

func (t *trial) failLocked(format string, args ...any) {
	t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
	if len(t.wrong) == 1 {
		close(t.over)
	}
}

// room is the network of one generation.
type room struct {
	trial   *trial
	group   collective.Group
	ops     []*op
	next    []int
	left    []bool
	opened  []bool
	dead    error
	changed chan struct{}
}

type op struct {
	kind string
	size int
	root int
	src  [][]byte // by rank; nil: not there yet
	fate *fate
}

// seat is one member's end.
type seat struct {
	collective.Collective // nil: nothing else is called
	room                  *room
	rank                  int
	id                    string
}

// maxGenerations ends runs that never come to an end.
const maxGenerations = 200

func (t *trial) open(_ context.Context, g collective.Group, _ collective.RinaConfig, _ ...collective.Option) (collective.Collective, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rooms[g.Generation]
	if r == nil {
		r = &room{trial: t, group: g, next: make([]int, g.Size()), left: make([]bool, g.Size()), opened: make([]bool, g.Size()), changed: make(chan struct{})}
		t.rooms[g.Generation] = r
		if len(t.rooms) > maxGenerations {
			t.failLocked("%d generations", len(t.rooms))
		}
	}
	if r.opened[g.Rank] {
		t.failLocked("%s opens generation %d twice", g.Members[g.Rank].ID, g.Generation)
	}
	r.opened[g.Rank] = true
	return &seat{room: r, rank: g.Rank, id: g.Members[g.Rank].ID}, nil
}

func (s *seat) Group() collective.Group {
	g := s.room.group
	g.Rank = s.rank
	return g
}

func (s *seat) Err() error {
	s.room.trial.mu.Lock()
	defer s.room.trial.mu.Unlock()
	return s.room.dead
}

func (s *seat) Close(context.Context) error {
	s.room.trial.mu.Lock()
	defer s.room.trial.mu.Unlock()
	s.room.left[s.rank] = true
	s.room.tell()
	return nil
}

func (s *seat) AllReduce(ctx context.Context, f wire.Format, dst, src []byte) error {
	return s.do(ctx, "all-reduce", -1, dst, src, func(o *op) []byte { return sum(o.src...) })
}

func (s *seat) AllGather(ctx context.Context, f wire.Format, dst, src []byte) error {
	return s.do(ctx, "all-gather", -1, dst, src, func(o *op) []byte { return bytes.Join(o.src, nil) })
}

func (s *seat) Broadcast(ctx context.Context, f wire.Format, buf []byte, root int) error {
	return s.do(ctx, "broadcast", root, buf, buf, func(o *op) []byte { return o.src[root] })
}

func (r *room) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *room) kill(err error) {
	if r.dead == nil {
		r.dead = err
		r.tell()
	}
}

// arrive joins the member's next operation.
func (s *seat) arrive(kind string, root int, src []byte) *op {
	r, i := s.room, s.room.next[s.rank]
	if slices.Contains(r.opened, false) {
		r.trial.failLocked("generation %d: an operation begins before all members listen", r.group.Generation)
	}
	s.room.next[s.rank]++
	if i == len(r.ops) {
		r.ops = append(r.ops, &op{kind: kind, size: len(src), root: root, src: make([][]byte, r.group.Size()),
			fate: r.trial.fateOf(r.group.Generation, i, r.group.Size())})
	}
	o := r.ops[i]
	if o.kind != kind || o.size != len(src) || o.root != root {
		r.trial.failLocked("generation %d, operation %d: %s of %d bytes by %d, and %s of %d by %d", r.group.Generation, i, o.kind, o.size, o.root, kind, len(src), root)
	}
	o.src[s.rank] = bytes.Clone(src)
	r.tell()
	if o.there() && o.fate != nil && slices.Contains(o.fate.fails, true) {
		r.kill(errTest)
	}
	return o
}

// errTest is the failure of an operation.
var errTest = &collective.LostError{Text: "the test"}

// there reports whether what a member needs has come.
func (o *op) there() bool {
	if o.root >= 0 {
		return o.src[o.root] != nil
	}
	return !slices.ContainsFunc(o.src, func(b []byte) bool { return b == nil })
}

// do is one operation of one member.
func (s *seat) do(ctx context.Context, kind string, root int, dst, src []byte, result func(o *op) []byte) error {
	t, r := s.room.trial, s.room
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := r.fateOf(s); f != nil && f.dies == s.rank && f.before {
		t.actors[s.id].kill()
		r.kill(errTest)
	}
	if r.dead != nil {
		return r.dead
	}
	o := s.arrive(kind, root, src)
	if o.fate != nil && o.fate.stops == s.rank {
		t.actors[s.id].stopCall()
	}
	for !o.there() && r.dead == nil && ctx.Err() == nil && !slices.Contains(r.left, true) {
		changed := r.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		case <-t.over:
			t.mu.Lock()
			return errTest
		}
		t.mu.Lock()
	}
	err := error(nil)
	switch {
	case ctx.Err() != nil:
		r.kill(&collective.GivenUpError{Text: "the test"})
		err = &collective.StoppedError{Err: ctx.Err()}
	case o.there() && (o.fate == nil || !o.fate.fails[s.rank]):
		copy(dst, result(o))
	case o.there():
		err = errTest
	case r.dead != nil:
		err = r.dead
	default:
		err = &collective.LostError{Text: "it has left the group"}
	}
	if o.fate != nil && o.fate.dies == s.rank {
		t.actors[s.id].kill()
		r.kill(errTest)
	}
	if err != nil && kind != "broadcast" { // outputs of a failed call are undefined
		for i := range dst {
			dst[i] = 0xee
		}
	}
	return err
}

// fateOf returns the fate of the operation that a member makes next, if it is known.
func (r *room) fateOf(s *seat) *fate {
	if i := r.next[s.rank]; i < len(r.ops) {
		return r.ops[i].fate
	}
	return nil
}

// fateOf draws what happens in an operation.
func (t *trial) fateOf(generation uint64, i, size int) *fate {
	if t.plan != nil {
		return t.plan(generation, i, size)
	}
	if t.faults == 0 || t.random.IntN(3) > 0 {
		return nil
	}
	t.faults--
	f := &fate{fails: make([]bool, size), dies: -1, stops: -1, before: t.random.IntN(2) == 0}
	for r := range f.fails {
		f.fails[r] = t.random.IntN(2) == 0
	}
	switch t.random.IntN(4) {
	case 0, 1:
		if size > 1 {
			f.dies = t.random.IntN(size)
		}
	case 2:
		f.stops = t.random.IntN(size)
	}
	return f
}

// kill ends a member: nothing that it writes reaches the engine, and its program stops.
func (a *actor) kill() {
	a.dead = true
	a.die()
	go a.engine.Close()
}

// start makes a member, whose program runs. The caller holds mu.
func (t *trial) start(id string) {
	a := &actor{trial: t, id: id, engine: t.store.Open(), stopCall: func() {}}
	a.life, a.die = context.WithCancel(t.ctx)
	t.actors[id] = a
	t.wg.Go(func() {
		var err error
		joining, stop := context.WithCancel(a.life) // until the others have ended
		defer stop()
		defer context.AfterFunc(t.ending, stop)()
		a.Group, err = elastic.Join(joining, a.engine, elastic.Self{ID: id, Address: "unix:/" + id}, t.cfg)
		if err != nil {
			if joining.Err() == nil {
				t.fail("%s: %v", id, err)
			}
			return
		}
		t.mu.Lock()
		t.running++
		if t.running == t.cfg.Expect {
			for i := range t.newcomers {
				t.start(fmt.Sprint("n", i))
			}
			t.newcomers = 0
		}
		t.mu.Unlock()
		a.run()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.running--; t.running == 0 { // the newcomers are too few for another group
			t.end()
		}
	})
}

// run is the program of a member: calls in place, until the group has made enough.
func (a *actor) run() {
	t := a.trial
	for n := 0; a.life.Err() == nil; n++ {
		before := a.Standing()
		// Who leaves takes the outcome of the last call along, if members die later: it is one more than is checked.
		if (before.Number > t.calls || before.Number == t.calls && t.plan != nil) && t.allNumbered() {
			break
		}
		e := entry{input: inputOf(a.id, n)}
		array := bytes.Clone(e.input)
		ctx, stop := context.WithCancel(a.life)
		t.mu.Lock()
		a.stopCall = stop
		t.mu.Unlock()
		e.err = a.AllReduce(ctx, wire.Int32, array, array)
		given := ctx.Err() != nil
		stop()
		if e.err == nil {
			e.result = bytes.Clone(array)
		}
		after := a.Standing()
		t.mu.Lock()
		a.numbered = !after.Newcomer
		t.mu.Unlock()
		failed := errors.As(e.err, new(*elastic.LostError)) || errors.As(e.err, new(*elastic.FailedError))
		switch {
		case failed && t.calm:
			t.fail("%s: %v, without a fault", a.id, e.err)
			return
		case e.err != nil && !failed && !given:
			t.fail("%s: %v", a.id, e.err)
			return
		case after.Made == before.Made:
			continue // no call of the group
		case !after.Newcomer:
			e.call = after.Number
		}
		if a.life.Err() != nil {
			if e.call > 0 {
				a.pending = &e
			}
			return
		}
		a.log = append(a.log, e)
		for i := range array { // the program goes on with its array
			array[i] = 0xdd
		}
	}
	if a.Standing().Failed { // it does not leave in order
		t.mu.Lock()
		a.dead = true
		t.mu.Unlock()
	}
	if err := a.Close(a.life); err != nil && a.life.Err() == nil {
		t.fail("%s: %v", a.id, err)
	}
}

// allNumbered reports whether no newcomer is left, who would begin to count anew without the others.
func (t *trial) allNumbered() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.actors {
		if !a.numbered && !a.dead {
			return false
		}
	}
	return true
}

// counted reports whether one of the first members lives, so that nobody counted anew.
func (t *trial) counted() bool {
	for id, a := range t.actors {
		if id[0] == 'm' && !a.dead {
			return true
		}
	}
	return false
}

// inputOf returns an array that no other call has.
func inputOf(id string, n int) []byte {
	h := fnv.New64()
	fmt.Fprint(h, id, n)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// begun is a call that a dead member had begun.
type begun struct {
	id    string
	input []byte
}

// check compares the logs of the members that live.
func (t *trial) check() {
	inputs := map[uint64][][]byte{} // of living members, by call
	dead := map[uint64][]begun{}    // of dead ones
	t.losses = map[string]uint64{}
	results := map[uint64]*entry{}
	var ids []string
	for id := range t.actors {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		a := t.actors[id]
		lost := map[string]int{}
		for i := len(a.log) - 2; i >= 0; i-- {
			if a.log[i].call == 0 {
				a.log[i].call = a.log[i+1].call - 1
			}
		}
		for i, e := range a.log {
			if i == 0 && id[0] == 'm' && e.call > 1 {
				t.fail("%s: its first call is call %d of a group that it began", id, e.call)
			}
			if e.call > t.calls {
				break
			}
			if i > 0 && e.call != a.log[i-1].call+1 {
				t.fail("%s: call %d follows call %d", id, e.call, a.log[i-1].call)
			}
			if a.dead {
				dead[e.call] = append(dead[e.call], begun{id, e.input})
				continue
			}
			inputs[e.call] = append(inputs[e.call], e.input)
			if errors.As(e.err, new(*elastic.WaitError)) || errors.As(e.err, new(*collective.StoppedError)) {
				continue // given up here
			}
			var l *elastic.LostError
			if errors.As(e.err, &l) {
				for _, id := range l.IDs {
					t.losses[id] = e.call
					if lost[id]++; lost[id] > 1 {
						t.fail("%s: %s is lost twice", a.id, id)
					}
				}
			}
			first := results[e.call]
			if first == nil {
				results[e.call] = &e
			} else if !bytes.Equal(first.result, e.result) {
				t.fail("%s: call %d gave %x (%v), another member %x (%v)", id, e.call, e.result, e.err, first.result, first.err)
			}
		}
		if a.pending != nil {
			dead[a.pending.call] = append(dead[a.pending.call], begun{id, a.pending.input})
		}
	}
	untold := uint64(math.MaxUint64) // the first call that all living members gave up: nobody knows whom it lacked
	for call := range inputs {
		if results[call] == nil {
			untold = min(untold, call)
		}
	}
	for call, e := range results {
		switch {
		case e.result == nil:
		case t.cfg.OnFailure == elastic.Rest || untold <= call:
			if !someSum(inputs[call], dead[call], e.result) {
				t.fail("call %d gave %x, which is no sum of all living members' inputs and some dead ones'", call, e.result)
			}
		default: // it lacks nobody who has not been named
			all := inputs[call]
			for _, d := range dead[call] {
				if at, named := t.losses[d.id]; !named || at > call {
					all = append(all, d.input)
				}
			}
			if want := sum(all...); !bytes.Equal(want, e.result) {
				t.fail("call %d gave %x; the members' inputs have the sum %x", call, e.result, want)
			}
		}
	}
}

// someSum reports whether result is the sum of all arrays of one list and some of another.
func someSum(all [][]byte, some []begun, result []byte) bool {
	for set := range 1 << len(some) {
		arrays := slices.Clone(all)
		for i, b := range some {
			if set>>i&1 != 0 {
				arrays = append(arrays, b.input)
			}
		}
		if bytes.Equal(sum(arrays...), result) {
			return true
		}
	}
	return false
}

var last *trial

// trialTime is a hundred times what a run takes.
const trialTime = 15 * time.Second

// try runs members until all that live have made enough calls, and returns what was wrong.
func try(t *testing.T, cfg elastic.Config, seed uint64, newcomers int, plan func(generation uint64, op, size int) *fate) []string {
	ctx, cancel := context.WithTimeout(t.Context(), trialTime)
	defer cancel()
	tr := &trial{T: t, ctx: ctx, store: membership.NewMemory("memory"), calls: 4, random: rand.New(rand.NewPCG(seed, 2)), faults: 3, plan: plan, newcomers: newcomers, calm: plan != nil && newcomers > 0,
		rooms: map[uint64]*room{}, actors: map[string]*actor{}, over: make(chan struct{})}
	last = tr
	tr.ending, tr.end = context.WithCancel(ctx)
	defer tr.end()
	const size = 3
	cfg.Name, cfg.Token, cfg.Expect, cfg.TTL = "group", "secret", size, time.Minute
	tr.cfg = cfg.Over(tr.open)
	tr.mu.Lock()
	for i := range size {
		tr.start(fmt.Sprint("m", i))
	}
	tr.mu.Unlock()
	ended := make(chan struct{})
	go func() { tr.wg.Wait(); close(ended) }()
	select {
	case <-ended:
		if tr.counted() {
			tr.check()
		}
	case <-tr.over:
	case <-ctx.Done():
		tr.fail("it does not end")
	}
	cancel() // of programs that still run
	<-ended
	for _, a := range tr.actors {
		if a.Group != nil {
			_ = a.Close(ctx)
		}
		a.engine.Close()
	}
	return tr.wrong
}

// TestRules: members die, give up and switch at random, and others come. All that live have the same
// outcome of every call, a sum lacks nobody, and each loss fails one call at most.
func TestRules(t *testing.T) {
	for _, policy := range []elastic.Policy{elastic.Rerun, elastic.Rest, elastic.Fail} {
		t.Run(policy.String(), func(t *testing.T) {
			for seed := range uint64(60) {
				require.Empty(t, try(t, elastic.Config{OnFailure: policy}, seed, int(seed%3), nil), "seed %d", seed)
			}
		})
	}
}

// TestEveryFault: one fault in each operation of the first generation, with every set of members that it
// completes on, and everyone who may die of it.
func TestEveryFault(t *testing.T) {
	const size = 3
	for at := range 5 { // up to the last call, after which all leave
		for set := range 1 << size {
			for dies := -1; dies < size; dies++ {
				f := &fate{fails: make([]bool, size), dies: dies, stops: -1}
				for r := range f.fails {
					f.fails[r] = set>>r&1 != 0
				}
				wrong := try(t, elastic.Config{}, 1, 0, func(generation uint64, op, size int) *fate {
					if generation == 1 && op == at {
						return f
					}
					return nil
				})
				require.Empty(t, wrong, "operation %d, %+v", at, f)
			}
		}
	}
}

// TestSwitch: newcomers fail no call, under any policy.
func TestSwitch(t *testing.T) {
	for policy := range elastic.Fail + 1 {
		for seed := range uint64(20) {
			require.Empty(t, try(t, elastic.Config{OnFailure: policy}, seed, 2, func(uint64, int, int) *fate { return nil }), "%s, seed %d", policy, seed)
		}
	}
}

// TestWeakRules: without a part of a rule, something goes wrong in one of the runs of TestRules.
func TestWeakRules(t *testing.T) {
	for name, weak := range elastic.Weak {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(1000) {
				if wrong := try(t, elastic.Config{}.By(weak), seed, int(seed%3), nil); len(wrong) > 0 {
					t.Logf("seed %d: %s", seed, wrong[0])
					return
				}
			}
			t.Error("nothing notices it")
		})
	}
}
