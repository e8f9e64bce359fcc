package driver

// The jobs of a card by number: running jobs, and ended jobs that the card may still have. Also
// the card's own report on its jobs.

import (
	"context"
	"errors"
	"iter"
	"math/bits"
	"slices"

	"tributary/driver/wire"
)

// jobEntry is this host's record of one of the card's job numbers; guarded by Card.mu.
type jobEntry struct {
	job     *Job   // the running job; nil if none
	lingers bool   // no job runs, but the card has not confirmed the end of the last one
	epoch   uint16 // of the lingering job
}

// jobs yields the running jobs in the order of their numbers; of a shared card, all jobs with a seat
// here. The caller holds mu.
func (c *Card) jobs() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		if c.shared {
			c.seatedJobs(yield)
			return
		}
		for i := range c.table {
			if j := c.table[i].job; j != nil && !yield(j) {
				return
			}
		}
	}
}

// seatedJobs yields the jobs of a shared card. They may end meanwhile.
func (c *Card) seatedJobs(yield func(*Job) bool) {
	for _, j := range slices.Clone(c.seated) {
		if !yield(j) {
			return
		}
	}
}

// idle reports whether no job runs. The caller holds mu.
func (c *Card) idle() bool {
	for range c.jobs() {
		return false
	}
	return true
}

// freeNumber returns the lowest number without a running job, and whether there is one.
func (c *Card) freeNumber() (number uint8, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.table {
		if c.table[i].job == nil {
			return uint8(i), true
		}
	}
	return 0, false
}

// enterJob enters j, which was set up over the link l, as the running job of its number. It
// reports whether the link is still up.
func (c *Card) enterJob(l *link, j *Job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.err != nil {
		return false
	}
	c.table[j.number] = jobEntry{job: j}
	return true
}

// linger records that the card may have set up, over the link l, a job that this host has given
// up.
func (c *Card) linger(l *link, number uint8, epoch uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.err == nil {
		c.table[number] = jobEntry{lingers: true, epoch: epoch}
	}
}

// noteDropped records that the card has dropped all lingering jobs.
func (c *Card) noteDropped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteDroppedLocked()
}

func (c *Card) noteDroppedLocked() {
	for i := range c.table {
		c.table[i].lingers = false
	}
}

// lingering returns the value of JOB_ABORT for the number's last job, and whether that job
// lingers.
func (c *Card) lingering(number uint8) (name uint64, lingers bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.table[number]
	return jobName(number, s.epoch), s.lingers
}

// noteAborted records that the card has dropped the job with that JOB_ABORT value.
func (c *Card) noteAborted(name uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.table[uint8(name>>commitJobShift)]
	if s.lingers && s.epoch == uint16(name>>commitEpochShift) {
		s.lingers = false
	}
}

// dismiss makes the card drop the lingering jobs: those whose abort is in progress or had no
// reply.
func (c *Card) dismiss(ctx context.Context, l *link) error {
	for number := range c.info.Jobs {
		name, lingers := c.lingering(uint8(number))
		if !lingers {
			continue
		}
		if _, err := c.writeOn(ctx, l, wire.RegJobAbort, name); err != nil && !isGone(err) {
			return err
		}
		c.noteAborted(name)
	}
	return nil
}

// dismissLate is dismiss after a failed call or an outage: with its own context, which ends
// after closeTimeout.
func (c *Card) dismissLate(l *link) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if c.dismiss(ctx, l) != nil {
		// The next set-up, or the end of the link, ends the jobs on the card.
		c.noteGaveUp()
	}
}

// isGone reports whether a refused abort shows that the card no longer has the job. Either
// another job was set up under its number, or the card was reset.
func isGone(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && (refused.Code == wire.CodeBadEpoch || refused.Code == wire.CodeBusy)
}

// JobState is the card's report on one of its job numbers: on its running job, else on its last
// one.
type JobState struct {
	Number     int
	SetUp      bool
	EverSetUp  bool   // Epoch is valid
	Epoch      uint16 // of the job
	Ports      []int  // of the members, rank r on Ports[r]; before the first job all of the card's
	Finished   []int  // ranks that have finished; none when the job is over
	Evicted    []int  // ranks that were evicted
	FirstSlot  int    // number of the job's first slot; the card has 2*Info.Window slots
	Slots      int    // the job's slots, twice its window; 0 while it is not set up
	Exceptions Exceptions
}

// Bit positions in JOB_STATE and JOB_SLOTS.
const (
	stateSetUp      = 1 << 0
	stateEpochSet   = 1 << 1 // an epoch was set at least once
	stateEpochShift = 16     // the last epoch
	stateJobShift   = 32     // the job's number

	slotsFirstMask  = 0xffff
	slotsCountShift = 16
)

// Jobs reads the state of each job number below Info.Jobs, for jobs of any host. It reads the
// registers one after another, so jobs may start or end meanwhile. Errors are those of
// ReadRegister.
func (c *Card) Jobs(ctx context.Context) ([]JobState, error) {
	return c.readJobs(func(addr uint32) (uint64, error) { return c.ReadRegister(ctx, addr) })
}

// readJobs is Jobs through read.
func (c *Card) readJobs(read func(addr uint32) (uint64, error)) ([]JobState, error) {
	states := make([]JobState, c.info.Jobs)
	for number := range states {
		var err error
		if states[number], err = readJob(number, read); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func readJob(number int, read func(addr uint32) (uint64, error)) (JobState, error) {
	s := JobState{Number: number}
	var values [5]uint64
	for i, r := range []uint32{wire.RegJobState, wire.RegJobFinished, wire.RegJobMembers, wire.RegJobSlots, wire.RegJobEvicted} {
		var err error
		if values[i], err = read(wire.JobAddr(r, number)); err != nil {
			return s, err
		}
	}
	state, slots := values[0], values[3]
	s.SetUp, s.EverSetUp, s.Epoch = state&stateSetUp != 0, state&stateEpochSet != 0, uint16(state>>stateEpochShift)
	s.Finished, s.Ports, s.Evicted = bitSlice(values[1]), bitSlice(values[2]), bitSlice(values[4])
	s.FirstSlot, s.Slots = int(slots&slotsFirstMask), int(slots>>slotsCountShift)
	var err error
	s.Exceptions, err = readExceptions(number, read)
	return s, err
}

// fullError returns the error for a job without room, with the jobs that the card reports.
func (c *Card) fullError(ctx context.Context, l *link, window int, refused error) error {
	states, err := c.readJobs(func(addr uint32) (uint64, error) { return c.readOn(ctx, l, addr) })
	if err != nil {
		return err
	}
	full := &FullError{Card: c.name, Numbers: c.info.Jobs, Slots: 2 * c.info.Window, Window: window, Err: refused}
	for _, s := range states {
		if s.SetUp {
			full.Jobs = append(full.Jobs, s)
		}
	}
	return full
}

// bitSlice lists the set bits of a mask: ranks or ports.
func bitSlice(mask uint64) []int {
	places := make([]int, 0, bits.OnesCount64(mask))
	for ; mask != 0; mask &= mask - 1 {
		places = append(places, bits.TrailingZeros64(mask))
	}
	return places
}
