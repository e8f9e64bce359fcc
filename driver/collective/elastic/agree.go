package elastic

// What members agree on at the start of a generation (SPEC.md, section 6).

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"tributary/driver/collective"
	"tributary/driver/wire"
)

// record is what members tell each other about themselves.
type record struct {
	newcomer bool   // it has no number of calls yet
	fresh    bool   // it has concluded no generation
	since    uint64 // last generation that it has concluded; if it is fresh, the first that had it
	start    uint64 // done of all members when it concluded that generation
	done     uint64 // last call of which it has the outcome, or the last before its first
	failed   bool   // call done+1 failed here, for good
	outcome  uint64 // bytes of its last outcome
	cause    uint64 // bytes of the cause of failed
}

const recordBytes = 6 * 8

func (r *record) append(b []byte) []byte {
	var flags uint64
	if r.newcomer {
		flags |= 1
	}
	if r.failed {
		flags |= 2
	}
	if r.fresh {
		flags |= 4
	}
	for _, v := range []uint64{flags, r.since, r.start, r.done, r.outcome, r.cause} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func readRecord(b []byte) record {
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return record{newcomer: at(0)&1 != 0, failed: at(0)&2 != 0, fresh: at(0)&4 != 0,
		since: at(1), start: at(2), done: at(3), outcome: at(4), cause: at(5)}
}

// step is what follows from records.
type step struct {
	numbers []uint64 // done of each rank, also of newcomers
	done    uint64   // the highest of them: M
	spread  int      // the rank that broadcasts the outcome of call M, which some lack; -1: none
	again   bool     // then gather again
	next    next
	root    int      // of next, if it is nextFails
	lost    []string // IDs of next, if it is nextLost
}

// next is how call M+1 begins.
type next string

const (
	nextLost  next = "lost"  // it fails: members were lost
	nextFails next = "fails" // it fails: root broadcasts why
	nextGo    next = "go"
)

// decide returns the first rule that applies. All members have the same records, and decide alike.
func decide(rs []record, plan *Plan, policy Policy) step {
	s := step{numbers: numbersOf(rs), spread: -1, next: nextGo}
	s.done = slices.Max(s.numbers)
	if slices.Min(s.numbers) < s.done {
		s.spread = slices.IndexFunc(rs, func(r record) bool { return !r.newcomer && r.done == s.done })
		s.again = true
		return s
	}
	s.lost = plan.lostSince(sinceOf(rs))
	s.root = slices.IndexFunc(rs, func(r record) bool { return r.failed })
	switch {
	case policy != Rest && len(s.lost) > 0:
		s.next = nextLost
	case s.root >= 0:
		s.next = nextFails
	}
	return s
}

// possible returns an error if no members that follow SPEC.md, section 6, have these records.
func possible(rs []record, s step) error {
	if lowest := slices.Min(s.numbers); s.done-lowest > 1 {
		return fmt.Errorf("rank %d says that it has the outcome of call %d, and rank %d says that call %d is its last: no two members are further apart than one call",
			slices.Index(s.numbers, s.done), s.done, slices.Index(s.numbers, lowest), lowest)
	}
	if s.spread >= 0 && rs[s.spread].outcome < outcomeHead {
		return fmt.Errorf("rank %d says that its outcome of call %d has %d bytes: it has at least %d", s.spread, s.done, rs[s.spread].outcome, outcomeHead)
	}
	return nil
}

// numbersOf returns done of each member. A newcomer has the highest of the others, or 0. Or others have
// concluded a generation that it did not: then it has what all had there, for its program may have begun
// the call that followed.
func numbersOf(rs []record) []uint64 {
	var highest uint64
	for _, r := range rs {
		if !r.newcomer {
			highest = max(highest, r.done)
		}
	}
	numbers := make([]uint64, len(rs))
	for i, r := range rs {
		if !r.newcomer {
			numbers[i] = r.done
			continue
		}
		numbers[i] = highest
		for _, other := range rs {
			if !other.fresh && other.since >= r.since {
				numbers[i] = min(numbers[i], other.start)
			}
		}
	}
	return numbers
}

// sinceOf returns the generation above which losses have failed no call yet.
func sinceOf(rs []record) uint64 {
	var highest uint64
	lowest := ^uint64(0)
	old := false
	for _, r := range rs {
		if r.fresh {
			lowest = min(lowest, r.since)
		} else {
			old = true
			highest = max(highest, r.since)
		}
	}
	if old {
		return highest
	}
	return lowest
}

// outcome is what a call left, as members keep and spread it: one byte of the kind, one of the format, and
// the sums, or the failure in JSON.
type outcome []byte

const (
	outcomeSum  byte = 1
	outcomeFail byte = 2

	outcomeHead = 2 // bytes before the sums or the failure
)

// failure is why a call failed on all members.
type failure struct {
	Lost []string `json:",omitempty"` // IDs of lost members; else
	ID   string   `json:",omitempty"` // the member whose failure it is, and
	Text string   `json:",omitempty"` // why
}

func (f failure) encode() []byte {
	b, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("elastic: %v", err)) // it has texts alone
	}
	return b
}

// failedOutcome makes the outcome of a failure.
func failedOutcome(f []byte) outcome { return append(outcome{outcomeFail, 0}, f...) }

// take ends a call with an outcome: it copies the sums to dst, or returns the failure. own is this member's
// own error in that call, if it had one.
func (o outcome) take(call uint64, f wire.Format, dst []byte, own error) error {
	if o[0] != outcomeSum {
		var why failure
		if err := json.Unmarshal(o[outcomeHead:], &why); err != nil {
			return &FailedError{Call: call, ID: "a member", Text: fmt.Sprintf("its reason cannot be read: %v", err), Err: own}
		}
		if len(why.Lost) > 0 {
			return &LostError{call, why.Lost}
		}
		return &FailedError{call, why.ID, why.Text, own}
	}
	sums := o[outcomeHead:]
	if wire.Format(o[1]) != f || len(sums) != len(dst) {
		return &FailedError{Call: call, ID: "this member", Err: own,
			Text: fmt.Sprintf("it has %d bytes of %s, the others %d bytes of %s", len(dst), f, len(sums), wire.Format(o[1]))}
	}
	copy(dst, sums)
	return nil
}

// standing is where this member is in the sequence of calls.
type standing struct {
	newcomer bool
	fresh    bool
	since    uint64
	start    uint64
	done     uint64    // calls of which it has the outcome, and those before its first
	before   uint64    // calls of the group before its first one
	made     uint64    // calls that its program has made and that have returned
	last     outcome   // of call done; nil before the first
	owed     []outcome // of calls number()+1 to done, which the program has not got
	failed   error     // why call done+1 failed here for good, or nil
	cause    []byte    // the same for others
}

// beginning is the standing of a member that has begun no call.
func beginning() standing { return standing{newcomer: true, fresh: true} }

// number returns the number of the last call that has returned.
func (s *standing) number() uint64 { return s.before + s.made }

func (s *standing) record() record {
	return record{newcomer: s.newcomer, fresh: s.fresh, since: s.since, start: s.start, done: s.done,
		failed: s.failed != nil, outcome: uint64(len(s.last)), cause: uint64(len(s.cause))}
}

// conclude is the end of call done+1 for this member.
func (s *standing) conclude(o outcome) {
	s.done++
	s.last = o
	if s.done > s.number() { // else the program has given it up
		s.owed = append(s.owed, o)
	}
	s.failed, s.cause = nil, nil
}

// give returns the outcome of call number()+1.
func (s *standing) give() outcome {
	o := s.owed[0]
	s.owed = s.owed[1:]
	s.made++
	return o
}

// adopt takes the number of the last call before a newcomer's first.
func (s *standing) adopt(before uint64) { s.before, s.done = before, before }

// decider is decide, or a weaker one in tests.
type decider func(rs []record, plan *Plan, policy Policy) step

// agree brings all members of a generation to the same call, and concludes the generation.
func (s *standing) agree(ctx context.Context, c collective.Collective, plan *Plan, policy Policy, decide decider) error {
	for {
		rs, err := s.gather(ctx, c)
		if err != nil {
			return err
		}
		step := decide(rs, plan, policy)
		if err := possible(rs, step); err != nil {
			return err
		}
		if s.newcomer {
			s.adopt(step.numbers[c.Group().Rank])
		}
		if step.spread >= 0 {
			o, err := broadcast(ctx, c, s.last, step.spread, rs[step.spread].outcome)
			if err != nil {
				return err
			}
			if s.done < step.done {
				s.conclude(o)
				s.newcomer = false
			}
		}
		if step.again {
			continue
		}
		s.newcomer = false
		switch step.next {
		case nextLost:
			s.conclude(failedOutcome(failure{Lost: step.lost}.encode()))
		case nextFails:
			why, err := broadcast(ctx, c, s.cause, step.root, rs[step.root].cause)
			if err != nil {
				return err
			}
			s.conclude(failedOutcome(why))
		}
		s.fresh, s.since, s.start = false, plan.Generation, step.done
		return nil
	}
}

// gather returns the records of all members.
func (s *standing) gather(ctx context.Context, c collective.Collective) ([]record, error) {
	g := c.Group()
	all := make([]byte, g.Size()*recordBytes)
	own := s.record()
	if err := c.AllGather(ctx, wire.Int32, all, own.append(nil)); err != nil {
		return nil, err
	}
	var rs []record
	for b := range slices.Chunk(all, recordBytes) {
		rs = append(rs, readRecord(b))
	}
	return rs, nil
}

// bytesFormat is a format whose elements are bytes. A broadcast changes no bits.
const bytesFormat = wire.FP8E4M3

// piece is the number of bytes of one broadcast. What a member says that it has takes no more memory
// than what it sends.
const piece = 64 << 20

// broadcast returns n bytes that root has.
func broadcast(ctx context.Context, c collective.Collective, own []byte, root int, n uint64) ([]byte, error) {
	if c.Group().Rank == root {
		for part := range slices.Chunk(own, piece) {
			if err := c.Broadcast(ctx, bytesFormat, part, root); err != nil {
				return nil, err
			}
		}
		return own, nil
	}
	var all []byte
	for at := uint64(0); at < n; at = uint64(len(all)) {
		all = append(all, make([]byte, min(n-at, piece))...)
		if err := c.Broadcast(ctx, bytesFormat, all[at:], root); err != nil {
			return nil, err
		}
	}
	return all, nil
}
