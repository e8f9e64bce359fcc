package driver

// Deadlines, partial sums, eviction and lateness (SPEC.md, section 5, deadlines and lags).

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// deadlinePartial is the bit of JOB_DEADLINE that asks for partial sums.
const deadlinePartial = 1 << 32

// checkDeadline rejects impossible deadlines.
func (cfg *JobConfig) checkDeadline() error {
	given := cfg.Deadline != 0 || cfg.DeadlineCycles != 0
	switch {
	case cfg.Deadline < 0:
		return &InputError{"deadline", fmt.Sprintf("%s is negative", cfg.Deadline)}
	case cfg.Deadline != 0 && cfg.DeadlineCycles != 0:
		return &InputError{"deadline", fmt.Sprintf("it is set to %s and to %d cycles; set only one", cfg.Deadline, cfg.DeadlineCycles)}
	case cfg.Partial && !given:
		return &InputError{"partial sums", "they need a deadline; set one"}
	}
	return nil
}

// deadline returns the value for JOB_DEADLINE.
func (j *Job) deadline(ctx context.Context, l *link) (uint64, error) {
	value := uint64(j.cfg.DeadlineCycles)
	if j.cfg.Deadline > 0 {
		var err error
		if value, err = j.card.cyclesIn(ctx, l, j.cfg.Deadline); err != nil {
			return 0, err
		}
	}
	if j.cfg.Partial {
		value |= deadlinePartial
	}
	return value, nil
}

// To measure the card's clock, the driver waits for the longer of clockWatch and
// clockWatchTrips register accesses. The error is then a few percent.
const (
	clockWatch      = 50 * time.Millisecond
	clockWatchTrips = 20
)

// cyclesIn returns the number of cycles in d at the current speed of the card's clock.
func (c *Card) cyclesIn(ctx context.Context, l *link, d time.Duration) (uint64, error) {
	from, began, trip, err := c.clock(ctx, l)
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(max(clockWatch, clockWatchTrips*trip)):
	case <-ctx.Done():
		return 0, c.stopped(ctx, "set-up of a job")
	case <-l.over:
		return 0, c.whyOver(l)
	}
	to, ended, _, err := c.clock(ctx, l)
	if err != nil {
		return 0, err
	}
	cycles := math.Ceil(float64(to-from) * d.Seconds() / ended.Sub(began).Seconds())
	switch {
	case to == from:
		return 0, &InputError{"deadline", "the clock of card " + c.name + " does not advance; set the deadline in cycles"}
	case cycles > math.MaxUint32:
		return 0, &InputError{"deadline", fmt.Sprintf("%s is %.0f cycles of the clock of card %s, whose maximum is %d; set a shorter deadline", d, cycles, c.name, uint32(math.MaxUint32))}
	}
	return uint64(cycles), nil
}

// clock reads the card's clock. It also returns the time of the reading and how long the access
// took.
func (c *Card) clock(ctx context.Context, l *link) (cycles uint64, at time.Time, trip time.Duration, err error) {
	start := time.Now()
	cycles, err = c.readOn(ctx, l, wire.RegCycles)
	trip = time.Since(start)
	return cycles, start.Add(trip / 2), trip, err
}

// Overdue is the argument of OnOverdue.
type Overdue struct {
	Card  string
	Job   int    // the job's number
	VID   uint32 // the chunk
	Ranks []int  // ranks that must contribute or take the result
}

// takeOverdue handles a notice that a chunk waits for ranks. The card sends a notice to many
// ranks; only the one to the lowest rank reaches the program.
func (j *Job) takeOverdue(h *frame.Header) {
	missing := h.Mask & j.everyone()
	for _, f := range j.flows {
		if s := f.awaited(h.VID); s != nil {
			s.lacks(missing, j.everyone())
		}
	}
	if told := j.here &^ j.local(missing); j.cfg.OnOverdue == nil || int(h.Rank) != bits.TrailingZeros64(told) {
		return
	}
	overdue := Overdue{Card: j.card.name, Job: int(j.number), VID: h.VID, Ranks: bitSlice(missing)}
	j.card.tell = func() { j.cfg.OnOverdue(overdue) }
}

// takeEvicted handles an eviction. A notice names all evicted ranks; a refusal is for one rank.
func (j *Job) takeEvicted(h *frame.Header) {
	evicted := j.local(h.Mask)
	if h.Mask == 0 {
		j.members[h.Rank].stats.Refused++
		evicted = 1 << h.Rank
	}
	j.evict(evicted, h.VID, nil)
}

// evict removes ranks from the job, from the chunk vid on. err is the cause when this host
// evicts them, nil when the card did.
func (j *Job) evict(ranks uint64, vid uint32, err error) {
	ranks &^= j.evicted
	j.evicted |= ranks
	for _, rank := range bitSlice(ranks) {
		m := j.members[rank]
		m.out = &EvictedError{Card: j.card.name, Rank: m.Rank(), VID: vid, Err: err, job: j.name}
	}
	for n := len(j.flows) - 1; n >= 0; n-- { // a flow that ends moves the last one to this index
		f := j.flows[n]
		for i := f.low; i < f.next; i++ {
			s := f.state(i)
			f.setResend(s, s.resend&^ranks)
		}
		if f.ranks&^j.evicted == 0 {
			f.fail(f.members[0].out)
		}
	}
	j.finished(ranks)
	j.card.kick()
}

// withdraw removes the only member of a call from the job, if the others can continue without
// it. The call fails with err because of cause, and the member's other calls with EvictedError.
func (k *call) withdraw(err, cause error) bool {
	f, j := k.flow, k.flow.job
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if !k.active || !j.cfg.Partial || f == j.whole || j.ranks&^j.evicted&^f.ranks == 0 {
		return false
	}
	vid := f.vid(f.low)
	f.remove(k)
	k.complete(err)
	j.evict(f.ranks, vid, cause)
	j.tellLeft(f.ranks)
	return true
}

// Evicted returns the ranks that have left the job, as far as this host knows
// (JobConfig.Partial).
func (j *Job) Evicted() []int {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	return bitSlice(j.global(j.evicted))
}

// Partial is a range of elements whose sums lack members.
type Partial struct {
	VID      uint32 // of the first chunk in the range
	From, To int    // the elements From to To-1
	Ranks    []int  // ranks whose contributions are in the sums; a mean divides by their number
}

// Partials returns which sums of the last Reduce lack members, in the order of the elements. It
// returns none when all sums are complete (JobConfig.Partial). Reduce continues without evicted
// members, and returns EvictedError when none is left.
func (j *Job) Partials() []Partial { return j.whole.own.partials() }

// Partials returns which sums of the member's last AllReduce lack members, in the order of the
// elements. It returns none when all sums are complete (JobConfig.Partial).
func (m *Member) Partials() []Partial { return m.own.own.partials() }

// contributors is a chunk of a call with a partial sum.
type contributors struct {
	chunk int
	ranks uint64
}

// partials joins adjacent chunks that have the same contributors.
func (k *call) partials() []Partial {
	j := k.flow.job
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	chunks := slices.Clone(k.lacking)
	slices.SortFunc(chunks, func(a, b contributors) int { return cmp.Compare(a.chunk, b.chunk) })
	var all []Partial
	for i, c := range chunks {
		from := k.view.Chunk(c.chunk) * j.cfg.Chunk
		to := from + min(j.cfg.Chunk, k.elements-c.chunk*j.cfg.Chunk)
		if i > 0 && c.ranks == chunks[i-1].ranks && from == all[len(all)-1].To {
			all[len(all)-1].To = to
			continue
		}
		all = append(all, Partial{VID: k.vid + uint32(c.chunk), From: from, To: to, Ranks: bitSlice(c.ranks)})
	}
	return all
}

// Lags counts one rank's contributions by lateness: the cycles of the card's clock after the
// first contribution to the chunk. Lags[0] counts the contributions that were first. Lags[k]
// counts a lateness from 4^(k-1) to 4^k - 1 cycles, and the last element everything later. The
// counts wrap around.
type Lags [wire.LagBuckets]uint32

// Lags reads the lateness of each rank, by rank, for the job with that number. Without a
// running job it reads the last one's. The set-up of a job clears the counts. Errors are those
// of ReadRegister.
func (c *Card) Lags(ctx context.Context, number int) ([]Lags, error) {
	members, err := c.ReadRegister(ctx, wire.JobAddr(wire.RegJobMembers, number))
	if err != nil {
		return nil, err
	}
	all := make([]Lags, bits.OnesCount64(members))
	for rank := range all {
		for bucket := range all[rank] {
			count, err := c.ReadRegister(ctx, wire.LagAddr(number, rank, bucket))
			if err != nil {
				return nil, err
			}
			all[rank][bucket] = uint32(count)
		}
	}
	return all, nil
}

// Total returns the number of counted contributions.
func (l *Lags) Total() uint64 {
	var n uint64
	for _, count := range l {
		n += uint64(count)
	}
	return n
}

// Within returns the number of cycles, after the first contribution, within which the given
// part (0 to 1) of the contributions came. The result is 0 or a power of four. ok is false when
// these contributions are later than the counts can resolve, or when there are none.
func (l *Lags) Within(part float64) (cycles uint64, ok bool) {
	least := uint64(math.Ceil(part * float64(l.Total())))
	if least == 0 {
		return 0, false
	}
	var n uint64
	for bucket, count := range l[:wire.LagBuckets-1] {
		if n += uint64(count); n >= least && bucket == 0 {
			return 0, true
		}
		if n >= least {
			return 1 << (2 * bucket), true
		}
	}
	return 0, false
}
