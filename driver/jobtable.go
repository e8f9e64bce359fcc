package driver

// The jobs of a card: under which of its numbers one runs, under which one has
// ended that the card may still have, and what the card itself says of them.

import (
	"context"
	"errors"
	"iter"
	"math/bits"

	"tributary/driver/wire"
)

// jobEntry is what this host knows of one of the card's job numbers; guarded by
// Card.mu.
type jobEntry struct {
	job     *Job   // that runs under it; nil when none does
	lingers bool   // none does, but the card has not confirmed the end of the last one
	epoch   uint16 // of the one that lingers
}

// jobs yields the jobs that run, in the order of their numbers; with mu held.
func (c *Card) jobs() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for i := range c.table {
			if j := c.table[i].job; j != nil && !yield(j) {
				return
			}
		}
	}
}

// idle says whether no job runs; with mu held.
func (c *Card) idle() bool {
	for range c.jobs() {
		return false
	}
	return true
}

// freeNumber returns the lowest number under which no job runs, and whether there
// is one.
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

// enterJob makes j, which was set up by the link l, the job that runs under its
// number. It says whether the link still stands.
func (c *Card) enterJob(l *link, j *Job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.err != nil {
		return false
	}
	c.table[j.number] = jobEntry{job: j}
	return true
}

// linger notes that the card may have set up, by the link l, a job that nobody
// has here.
func (c *Card) linger(l *link, number uint8, epoch uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.err == nil {
		c.table[number] = jobEntry{lingers: true, epoch: epoch}
	}
}

// noteDropped notes that the card has no job any more.
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

// lingering returns the job that lingers under a number, as JOB_ABORT names it.
func (c *Card) lingering(number uint8) (name uint64, lingers bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.table[number]
	return jobName(number, s.epoch), s.lingers
}

// noteAborted notes that the card does not have a job any more, named as for
// JOB_ABORT.
func (c *Card) noteAborted(name uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.table[uint8(name>>commitJobShift)]
	if s.lingers && s.epoch == uint16(name>>commitEpochShift) {
		s.lingers = false
	}
}

// dismiss has the card drop the jobs that linger: those whose abort is under way,
// or was not answered.
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

// dismissLate is dismiss behind a call that has failed, or after an outage: without
// its context, and for as long as Close waits.
func (c *Card) dismissLate(l *link) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if c.dismiss(ctx, l) != nil {
		// The next set-up, or the end of the link, ends them there.
		c.noteGaveUp()
	}
}

// isGone tells the refusals of an abort that say that the card has the job no
// longer: another was set up under its number, or the card was reset.
func isGone(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && (refused.Code == wire.CodeBadEpoch || refused.Code == wire.CodeBusy)
}

// JobState is what a card says of one of its job numbers: of the job that is set
// up under it, else of the last one that was.
type JobState struct {
	Number     int
	SetUp      bool
	EverSetUp  bool   // Epoch is one
	Epoch      uint16 // of the job
	Ports      []int  // of its members, rank r on Ports[r]; all of the card's before the first job
	Finished   []int  // ranks that have finished; none of a job that is over
	Evicted    []int  // ranks that were evicted
	FirstSlot  int    // the first of its slots among the card's, of which there are twice the card's window
	Slots      int    // how many they are, twice the job's window; 0 while it is not set up
	Exceptions Exceptions
}

// The parts of JOB_STATE and JOB_SLOTS.
const (
	stateSetUp      = 1 << 0
	stateEpochSet   = 1 << 1 // an epoch was ever set
	stateEpochShift = 16     // last epoch

	slotsFirstMask  = 0xffff
	slotsCountShift = 16
)

// Jobs reads the state of each job number below Info.Jobs, whoever has set the jobs
// up. It reads one register after another, and jobs may
// come and go meanwhile. Errors are those of ReadRegister.
func (c *Card) Jobs(ctx context.Context) ([]JobState, error) {
	return c.readJobs(func(addr uint32) (uint64, error) { return c.ReadRegister(ctx, addr) })
}

// readJobs is Jobs by a way to read registers.
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

// fullError returns the error of a job for which the card has no room: it asks
// the card what has it.
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

// bitSlice lists the places of the bits of a mask: ranks, or ports.
func bitSlice(mask uint64) []int {
	places := make([]int, 0, bits.OnesCount64(mask))
	for ; mask != 0; mask &= mask - 1 {
		places = append(places, bits.TrailingZeros64(mask))
	}
	return places
}
