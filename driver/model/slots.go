// The slot table: which contributions are stored, which slot may turn over, and which ranks are
// owed which result (section 5 of the specification).

package model

import (
	"slices"

	"tributary/driver/wire"
)

// slotState is the state of a slot.
type slotState uint8

const (
	empty slotState = iota
	collecting
	reducing
	waiting // of tree jobs: with the own sum, for the final one
	closing // of tree jobs: the final sum is on its way through the lanes
	reduced
)

// slot is one slot of a running job. The sets have one bit per rank.
type slot struct {
	vid   uint32 // u; in an empty slot, 2W before the first VID that it takes
	state slotState
	held  uint64 // the contribution is stored
	done  uint64 // holds the result u
	owed  uint64 // the result must be sent to it
	sent  uint64 // a transmission of the result to it has begun

	turned uint64 // time of turnover: the first contribution was stored
	waits  bool   // it is collecting, or it is reduced and has refused to turn over
	since  uint64 // start of the current deadline

	congestion int  // merged ECN, as an index into wire.ECNOrder
	nonfinite  bool // a contribution held a NaN or an infinity

	contributions [][]byte // by rank; complete if held
	result        []byte   // the cache entry

	up    debt   // of tree jobs: the own sum to the parent
	final []byte // of tree jobs: the final sum that was taken
}

// slotTable holds the slots of one job.
type slotTable struct {
	ports   int    // of the card: the most ranks
	slots   []slot // at least count, kept from job to job for their memory
	count   uint32 // 2W of the running job
	window  uint32 // W
	members uint64 // M: a bit for each rank that was not evicted
	silent  bool   // owes nobody a result: with shell roce, sums are released (release.go)

	reducing []int // reducing and closing slots, in the order in which they became that
	owing    []int // slots that owe a result, fresh ones in the order of reduction
	rising   []int // waiting slots whose own sum is owed to the parent, in the order of the debts
}

// accepted is the code if no rule refuses.
const accepted = wire.CodeDone

// setUp empties the slots for a job with the given ranks and first VID.
func (t *slotTable) setUp(window, first uint32, all uint64) {
	t.clear()
	t.window, t.count, t.members = window, 2*window, all
	for uint32(len(t.slots)) < t.count {
		t.slots = append(t.slots, slot{contributions: make([][]byte, t.ports)})
	}
	for s := range t.count {
		slot := &t.slots[s]
		slot.vid = first + (s-first)%t.count - t.count
		slot.state, slot.waits = empty, false
		slot.held, slot.done, slot.owed, slot.sent = 0, all, 0, 0
	}
}

// of returns the slot of vid, and its number.
func (t *slotTable) of(vid uint32) (*slot, int) {
	number := int(vid % t.count)
	return &t.slots[number], number
}

// outOfWindow returns the refusal of a VID that is neither u nor u + 2W.
func outOfWindow(vid, u uint32) wire.Code {
	if vid-u >= 1<<31 {
		return wire.CodeLate
	}
	return wire.CodeEarly
}

// offer applies the rules for data: rank's contribution to vid. If code is accepted, the caller
// stores it in s and calls hold; otherwise code is the refusal. owed means that the slot's result
// answers the refusal. now is the card's clock.
func (t *slotTable) offer(rank uint8, vid uint32, now uint64) (s *slot, code wire.Code, owed bool) {
	bit := uint64(1) << rank
	if before, _ := t.of(vid - t.window); before.vid == vid-t.window && before.state == reduced {
		before.done |= bit
	}
	s, number := t.of(vid)
	switch vid {
	case s.vid:
		switch {
		case s.state == empty:
			return nil, wire.CodeLate, false
		case s.state == collecting && s.held&bit == 0:
			return s, accepted, false
		case s.state == reduced:
			t.owe(number, bit)
		}
		return nil, wire.CodeDuplicate, s.state == reduced
	case s.vid + t.count:
		s.done |= bit
		switch {
		case s.state == reduced && t.members&^s.done != 0:
			s.wait(now)
			return nil, wire.CodeNotReady, false
		case s.state != reduced && s.state != empty:
			return nil, wire.CodeNotReady, false
		}
		t.turnOver(number, vid, now)
		return s, accepted, false
	}
	return nil, outOfWindow(vid, s.vid), false
}

// clear drops begun reductions, and owed results and sums.
func (t *slotTable) clear() {
	for _, number := range t.rising {
		t.slots[number].up.owed = false
	}
	t.rising = t.rising[:0]
	for _, number := range t.owing {
		t.slots[number].owed = 0
	}
	t.reducing, t.owing = t.reducing[:0], t.owing[:0]
}

// turnOver makes the slot collect vid.
func (t *slotTable) turnOver(number int, vid uint32, now uint64) {
	s := &t.slots[number]
	t.forgive(number)
	s.vid, s.state, s.turned = vid, collecting, now
	s.waits, s.since = true, now
	s.held, s.done, s.owed, s.sent = 0, 0, 0, 0
	s.congestion, s.nonfinite = 0, false
}

// wait starts the slot's deadline if it is not running.
func (s *slot) wait(now uint64) {
	if !s.waits {
		s.waits, s.since = true, now
	}
}

// hold records that rank's contribution is stored; the last member's closes the slot.
func (t *slotTable) hold(s *slot, rank uint8) {
	s.held |= 1 << rank
	if t.members&^s.held == 0 {
		t.close(s)
	}
}

// close queues the slot for reduction with its stored contributions.
func (t *slotTable) close(s *slot) {
	s.state, s.waits = reducing, false
	t.reducing = append(t.reducing, int(s.vid%t.count))
}

// missing returns the members that a collecting or reduced slot waits for.
func (t *slotTable) missing(s *slot) uint64 {
	if s.state == collecting {
		return t.members &^ s.held
	}
	return t.members &^ s.done
}

// summed records that the sum of the first closed slot is in the cache. An own sum of a tree job is
// owed to the parent; all members are owed any other one.
func (t *slotTable) summed(tree bool) {
	number := t.reducing[0]
	t.reducing = slices.Delete(t.reducing, 0, 1)
	s := &t.slots[number]
	if tree && s.state == reducing {
		s.state = waiting
		t.rise(number)
		return
	}
	s.state = reduced
	t.owe(number, t.members)
}

// owe records that the slot's result must be sent to ranks.
func (t *slotTable) owe(number int, ranks uint64) {
	if t.silent {
		return
	}
	if t.slots[number].owed == 0 {
		t.owing = append(t.owing, number)
	}
	t.slots[number].owed |= ranks
}

// pay records that a transmission to ranks begins.
func (t *slotTable) pay(number int, ranks uint64) {
	s := &t.slots[number]
	s.owed &^= ranks
	s.sent |= ranks
	if s.owed == 0 {
		t.drop(number)
	}
}

// forgive drops the slot's owed results.
func (t *slotTable) forgive(number int) {
	if t.slots[number].owed != 0 {
		t.slots[number].owed = 0
		t.drop(number)
	}
}

// drop removes the slot from the list of those that owe.
func (t *slotTable) drop(number int) {
	i := slices.Index(t.owing, number)
	t.owing = slices.Delete(t.owing, i, i+1)
}

// delivery is a result that may leave.
type delivery struct {
	slot      int
	receivers uint64 // ranks
	replay    bool   // one of them was sent it before
}

// due returns the next result to send to ranks that can take a packet. Replays go first; fresh
// results go in the order of reduction.
func (t *slotTable) due(ready uint64) (d delivery, ok bool) {
	for _, number := range t.owing {
		s := &t.slots[number]
		if receivers := s.owed & ready; receivers&s.sent != 0 {
			return delivery{number, receivers, true}, true
		}
	}
	for _, number := range t.owing {
		if receivers := t.slots[number].owed & ready; receivers != 0 {
			return delivery{number, receivers, false}, true
		}
	}
	return delivery{}, false
}

// ask applies the rules for an ask. status is the immediate answer, with the missing ranks. answer
// is false if a result is coming instead, or if refusal names the reason of a refusal.
func (t *slotTable) ask(rank uint8, vid uint32) (status wire.Code, missing uint64, answer bool, refusal wire.Code) {
	bit := uint64(1) << rank
	s, number := t.of(vid)
	switch vid {
	case s.vid:
		switch s.state {
		case empty:
			return 0, 0, false, wire.CodeLate
		case reduced:
			t.owe(number, bit)
		case waiting:
			return wire.CodeWait, 0, true, accepted
		case collecting:
			status = wire.CodeSend
			if s.held&bit != 0 {
				status = wire.CodeWait
			}
			return status, t.members &^ s.held, true, accepted
		}
		return 0, 0, false, accepted
	case s.vid + t.count:
		return wire.CodeSend, t.members, true, accepted
	}
	return 0, 0, false, outOfWindow(vid, s.vid)
}

// congestionOf returns the index of the ECN mark in the merge's order.
func congestionOf(flags uint8) int {
	return slices.Index(wire.ECNOrder[:], wire.ECN(flags&wire.FlagECN))
}
