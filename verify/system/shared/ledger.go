package main

import "fmt"

// ledger checks the sums of a job's members against each other.
type ledger struct {
	of    map[stamp]*entry // by the arrays that belong to a call
	calls map[int]int      // by life: the calls that have returned
}

// entry is a call of a job: the arrays of all members, and their sum.
type entry struct {
	sum    summed
	stamps []stamp // by rank
}

func newLedger() *ledger { return &ledger{of: map[stamp]*entry{}, calls: map[int]int{}} }

// take enters the sum that a call of a life has returned.
func (l *ledger) take(life, rank, call int, sum *summed) error {
	if next := l.calls[life]; call != next {
		return fmt.Errorf("rank %d returned from call %d instead of call %d", rank, call, next)
	}
	l.calls[life]++
	own := newStamp(life, call)
	if in := sum.Stamps[rank]; in != 0 && in != own {
		return fmt.Errorf("call %d of rank %d returned a sum with its array %d instead of %d", call, rank, in, own)
	}
	var e *entry
	stamps := append([]stamp(nil), sum.Stamps...)
	stamps[rank] = own
	for _, s := range stamps {
		if s == 0 || l.of[s] == nil {
			continue
		}
		if e != nil && e != l.of[s] {
			return fmt.Errorf("call %d of rank %d has arrays %d, which belong to two calls", call, rank, stamps)
		}
		e = l.of[s]
	}
	if e == nil {
		e = &entry{sum: *sum, stamps: make([]stamp, len(stamps))}
	}
	if e.sum.Sum != sum.Sum || e.sum.Ranks != sum.Ranks || e.sum.Chunks != sum.Chunks {
		return fmt.Errorf("call %d of rank %d returned another sum than other ranks have: %+v, %+v", call, rank, *sum, e.sum)
	}
	for r, s := range stamps {
		if s == 0 {
			continue
		}
		if e.stamps[r] != 0 && e.stamps[r] != s {
			return fmt.Errorf("call %d of rank %d: a sum has arrays %d and %d of rank %d", call, rank, e.stamps[r], s, r)
		}
		e.stamps[r], l.of[s] = s, e
	}
	return nil
}
