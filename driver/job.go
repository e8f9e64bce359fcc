package driver

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"tributary/driver/element"
	"tributary/driver/wire"
)

// JobConfig says how a job is set up. The zero value of a field means the
// default given there.
type JobConfig struct {
	Workers  int    // members of the job; default: as many as Ports, or all ports of the card
	Ports    []int  // their ports, ascending, rank r on Ports[r]; default: 0..Workers-1
	Chunk    int    // elements in a chunk, a multiple of the card's lanes; default: the card's
	Window   int    // chunks in flight, a power of two up to the card's; default: the card's divided by Info.Jobs
	FirstVID uint32 // number of the first chunk; it only matters to tests of the wrap-around

	// CarryOn is how long the job waits for its card to come back when that has
	// gone away. 0: the job ends at once with a DiedError. Else the card is opened
	// again by its name, until the same one answers, and the job goes on with it
	// in a new epoch, from the first chunk whose result is not there; its calls
	// see nothing of it. A card that is not back in that time ends the job with a
	// LostError, one that comes back as another card at once; coming back for a
	// moment in which nothing is summed gains no time. The inputs must stay as they are until a call returns,
	// also where it fails. It is for cards opened by Open.
	CarryOn time.Duration
	// OnOutage, with CarryOn, is told when the card has gone, and again when the
	// job goes on, which waits for it to return the first time, and not the second
	// time: a call may have ended by then, and Card.Close alone waits for it. It must
	// not call the job's or the card's methods.
	OnOutage func(Outage)

	// Deadline is how long the card gives a chunk from its first contribution to
	// its last, and how long members who want to go on are kept from it by others
	// who have not taken its result; 0: as long as it takes. The card counts cycles:
	// at set-up its clock is compared with the time that passes, which takes 50 ms or
	// more. A board's clock is even; that of a simulation is not: it may make 200 k
	// cycles a second, or none while its machine is busy, and it stands some thousand
	// cycles after anything has moved last, so that only asks bring it on. There
	// DeadlineCycles, which says the same in cycles, is the better measure. One
	// of the two can be given. Calls must be allowed more time than that
	// (WithTimeout), or they give up before.
	//
	// What comes of a chunk that is overdue: without Partial the card says whom it
	// waits for, again and again, and goes on waiting. OnOverdue is told, and a call
	// that is given up meanwhile names them (MissingError).
	Deadline       time.Duration
	DeadlineCycles uint32

	// Partial, with a deadline, has the card sum a chunk that is overdue without
	// the contributions that it lacks; they are not added later. Who comes late gets
	// the same results as the others, and Partials tells which sums lack whom. A
	// member that is so far behind that others cannot go on, for the deadline once
	// more, is evicted: its calls answer EvictedError, the others go on without it,
	// and it takes part again in the next job. A member whose context ends in a call
	// of its own is out as well, and ends nothing for the others. In a
	// job that carries on, results that some members have and others have not are kept
	// for these; who was evicted before its card went stays out, for which the card
	// waits anew.
	Partial bool

	// OnOverdue is told, in a job with a deadline and without Partial, whom the card
	// waits for; again each time that the deadline passes. It runs while the link
	// is not read: it must return soon, and not call the job's or the card's methods.
	OnOverdue func(Overdue)
}

// Outage is what OnOutage is told.
type Outage struct {
	Card     string
	Cause    *DiedError    // why the card is gone
	Patience time.Duration // how long it will be waited for from now on; 0 when it is back
	Away     time.Duration // how long it was away; 0 when it has just gone
	VID      uint32        // the chunk from which the job goes on, the first that is not held
	Epoch    uint16        // in which it goes on; 0 when the card has just gone
}

// Job is a reduction that is set up on a card: n members who add up arrays
// together, chunk by chunk. Several reductions can follow one another on it, and
// several jobs run side by side on a card that holds as many (Info.Jobs): what
// happens to one is nothing to another, but that they share the link.
//
// A call that fails, and one whose context ends, ends the job: the members no
// longer agree on where they are in its stream. Its calls then answer
// EndedError, and Configure sets up the next job at once. Where sums may be
// partial a member can be evicted instead (JobConfig.Partial).
type Job struct {
	card    *Card
	cfg     JobConfig
	number  uint8
	epoch   uint16 // guarded by card.mu
	ranks   uint64 // bit r for every rank r
	members []*Member
	whole   *call // of Reduce

	inBytes, outBytes int // of an element of the contributions, and of the results

	// Guarded by card.mu.
	timing   timing
	calls    []*call   // under way
	turn     int       // whose data goes next
	fresh    bool      // the writer has gathered data that was not sent before
	sentData time.Time // when the link last took such data
	finish   finish
	outage   outage
	evicted  uint64 // ranks that take no part any more
	history  *resultHistory
	ended    bool
	err      error // why it ended; nil when it was finished
}

// Configure sets up a job, after validating cfg against the card: a further one,
// beside those that run, under the lowest number that none of them has. A job
// that asks for no window gets its share of the card's slots, so that there is
// room for as many as the card holds (where its window has as many chunks). When
// all numbers, or too many slots, are in use it is refused (FullError).
//
// On a card that holds one job (Info.Jobs is 1) the job that this Card had set up
// before is ended instead, and the new one takes its place. It waits for a
// Configure or a Reset that is under way, and for a card that is away and looked
// for.
//
// Errors: InputError when cfg cannot be right; FullError; RefusedError,
// TimeoutError, DiedError, ErrClosed, or one that wraps ctx's.
func (c *Card) Configure(ctx context.Context, cfg JobConfig) (*Job, error) {
	cfg, err := c.info.complete(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Partial && cfg.Deadline >= c.opts.timeout {
		return nil, &InputError{"deadline", fmt.Sprintf("%s, but calls give up when nothing moves for %s, before a sum would be partial; allow them more time, or set a shorter deadline", cfg.Deadline, c.opts.timeout)}
	}
	if cfg.CarryOn > 0 && c.reopen == nil {
		return nil, &InputError{"carry on", "card " + c.name + " was opened on a stream of the caller's, which this package cannot open again; open it by its name"}
	}
	if err := c.takeTurn(ctx, c.configuring, "set-up of a job"); err != nil {
		return nil, err
	}
	defer func() { <-c.configuring }()
	if c.info.Jobs == 1 {
		c.endJobs(errReplaced)
	}
	for {
		l, err := c.present(ctx, "set-up of a job")
		if err != nil {
			return nil, err
		}
		j, err := c.configureOn(ctx, l, cfg)
		if err == nil || !c.lost(l) {
			return j, err
		}
	}
}

// configureOn sets up a job by the link l.
func (c *Card) configureOn(ctx context.Context, l *link, cfg JobConfig) (*Job, error) {
	number, ok := c.freeNumber()
	if !ok {
		return nil, c.fullError(ctx, l, cfg.Window, nil)
	}
	if c.info.Jobs > 1 { // else this set-up takes the place of what lingers
		if err := c.dismiss(ctx, l); err != nil {
			return nil, err
		}
	}
	epoch, err := c.nextEpoch(ctx, l, number)
	if err != nil {
		return nil, err
	}
	j := newJob(c, cfg, number, epoch)
	j.epoch, err = j.setUp(ctx, l, epoch, cfg.FirstVID)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused) && refused.Code == wire.CodeNoSlots:
		return nil, c.fullError(ctx, l, cfg.Window, err)
	case errors.As(err, &refused):
		return nil, err
	case err != nil:
		c.linger(l, number, j.epoch) // the commit may have reached the card
		c.dismissLate(l)
		return nil, err
	case !c.enterJob(l, j):
		return nil, c.whyOver(l)
	}
	return j, nil
}

// errReplaced is why a job has ended when Configure was called again.
var errReplaced = errors.New("another job was configured")

// complete fills in the defaults of cfg and checks it against the card.
func (i Info) complete(cfg JobConfig) (JobConfig, error) {
	if cfg.Workers == 0 {
		cfg.Workers = len(cfg.Ports)
	}
	if cfg.Workers == 0 {
		cfg.Workers = i.Ports
	}
	if cfg.Chunk == 0 {
		cfg.Chunk = i.Chunk
	}
	if cfg.Window == 0 {
		cfg.Window = i.Window / i.Jobs
	}
	if err := cfg.checkDeadline(); err != nil {
		return cfg, err
	}
	switch {
	case cfg.CarryOn < 0:
		return cfg, &InputError{"carry on", fmt.Sprintf("%s is no time to wait", cfg.CarryOn)}
	case cfg.Workers < 0:
		return cfg, &InputError{"workers", fmt.Sprintf("%d is no number of workers", cfg.Workers)}
	case cfg.Workers > i.Ports:
		return cfg, &InputError{"workers", fmt.Sprintf("%d workers, but card %s has %d ports; use fewer, or a card generated with -workers %d", cfg.Workers, i.Name, i.Ports, cfg.Workers)}
	case cfg.Chunk < 0 || cfg.Chunk > i.Chunk || cfg.Chunk%i.Lanes != 0:
		return cfg, &InputError{"chunk", fmt.Sprintf("%d elements; card %s takes multiples of %d up to %d", cfg.Chunk, i.Name, i.Lanes, i.Chunk)}
	case cfg.Window < 0 || cfg.Window > i.Window || bits.OnesCount(uint(cfg.Window)) != 1:
		return cfg, &InputError{"window", fmt.Sprintf("%d chunks; card %s takes powers of two up to %d", cfg.Window, i.Name, i.Window)}
	}
	if cfg.Ports == nil {
		cfg.Ports = make([]int, cfg.Workers)
		for p := range cfg.Ports {
			cfg.Ports[p] = p
		}
		return cfg, nil
	}
	cfg.Ports = slices.Clone(cfg.Ports)
	if len(cfg.Ports) != cfg.Workers {
		return cfg, &InputError{"ports", fmt.Sprintf("%d ports for %d workers; every worker needs one", len(cfg.Ports), cfg.Workers)}
	}
	for r, p := range cfg.Ports {
		if p < 0 || p >= i.Ports {
			return cfg, &InputError{"ports", fmt.Sprintf("card %s has no port %d, its ports are 0 to %d", i.Name, p, i.Ports-1)}
		}
		if r > 0 && p <= cfg.Ports[r-1] {
			return cfg, &InputError{"ports", fmt.Sprintf("port %d stands behind port %d; ports ascend, as ranks follow them", p, cfg.Ports[r-1])}
		}
	}
	return cfg, nil
}

func newJob(c *Card, cfg JobConfig, number uint8, epoch uint16) *Job {
	j := &Job{card: c, cfg: cfg, number: number, epoch: epoch, inBytes: element.Size(c.info.Format), outBytes: element.Size(c.info.Result)}
	j.history = newHistory(cfg)
	j.ranks = ^uint64(0) >> (64 - cfg.Workers)
	j.members = make([]*Member, cfg.Workers)
	for r := range j.members {
		m := &Member{job: j, rank: r, next: cfg.FirstVID}
		m.call = newCall(j, []*Member{m})
		j.members[r] = m
	}
	j.whole = newCall(j, j.members)
	j.finish.done = make(chan error, 1)
	j.calls = make([]*call, 0, cfg.Workers)
	j.timing = newTiming(c.shortestTrip())
	return j
}

// Config returns the job's parameters with every default filled in.
func (j *Job) Config() JobConfig {
	cfg := j.cfg
	cfg.Ports = slices.Clone(cfg.Ports)
	return cfg
}

// Number returns the job's number among those that the card holds, from 0. Once
// the job has ended another may have it.
func (j *Job) Number() int { return int(j.number) }

// label names the job in messages, behind the name of its card: not at all on a
// card that holds one.
func (j *Job) label() string {
	if j.card.info.Jobs == 1 {
		return ""
	}
	return fmt.Sprintf(", job %d", j.number)
}

// Epoch returns the epoch that tells this job from those before and after it,
// and from what it was before its card came back.
func (j *Job) Epoch() uint16 {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	return j.epoch
}

// Member returns the member of that rank, 0..Workers-1. It panics when there
// is none, like an index out of range.
func (j *Job) Member(rank int) *Member { return j.members[rank] }

// Stats returns the sum of the counters of all members.
func (j *Job) Stats() MemberStats {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	var sum MemberStats
	for _, m := range j.members {
		sum.add(&m.stats)
	}
	return sum
}

// Abort ends the job at once, whatever its members are doing: their calls
// answer EndedError. It does nothing when the job has ended.
func (j *Job) Abort(ctx context.Context) error {
	if !j.end(errAborted) {
		return nil
	}
	return j.abortOnCard(ctx)
}

// errAborted is why a job has ended after Abort.
var errAborted = errors.New("the job was aborted")

// abortOnCard has the card drop the job, which has ended here, unless that has
// happened.
func (j *Job) abortOnCard(ctx context.Context) error {
	name, lingers := j.card.lingering(j.number)
	if !lingers || name != jobName(j.number, j.Epoch()) || j.card.isAway() {
		return nil
	}
	if _, err := j.card.WriteRegister(ctx, wire.RegJobAbort, name); err != nil && !isGone(err) {
		return err
	}
	j.card.noteAborted(name)
	return nil
}

// endJobs ends the card's jobs because of err.
func (c *Card) endJobs(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endJobsLocked(err)
}

func (c *Card) endJobsLocked(err error) {
	for j := range c.jobs() {
		j.endLocked(err)
	}
}

// end ends the job here, not on the card, and says whether it was still set up.
func (j *Job) end(err error) bool {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	return j.endLocked(err)
}

func (j *Job) endLocked(err error) bool {
	if j.ended {
		return false
	}
	j.ended, j.err = true, err
	j.leave(err != nil || j.evicted != 0) // the card may wait for who has left by itself
	for len(j.calls) > 0 {
		j.calls[0].complete(j.endedError())
	}
	if j.finish.left != 0 {
		j.finish.left = 0
		j.finish.done <- j.endedError()
	}
	return true
}

// leave frees the job's number. lingers says that the card has it still, unless it
// has dropped it with its link.
func (j *Job) leave(lingers bool) {
	c := j.card
	c.table[j.number] = jobEntry{lingers: lingers && c.link.err == nil, epoch: j.epoch}
	if j.outage.patience != nil {
		j.outage.patience.Stop()
	}
	if c.away != nil && c.idle() {
		c.away.giveUp(j.err)
	}
}

// endedError is what calls of a job that has ended answer. The death of the
// card, and its being closed, need no more words.
func (j *Job) endedError() error {
	var died *DiedError
	if errors.As(j.err, &died) || errors.Is(j.err, ErrClosed) {
		return j.err
	}
	return &EndedError{Card: j.card.name, Epoch: j.epoch, Err: j.err, job: j.label()}
}

// givenUp is why the job ends when a call gives up, with err, because its context
// ended.
func (j *Job) givenUp(call string, err error) error {
	return &GivenUpError{Card: j.card.name, Call: call, Err: err, job: j.label()}
}

// endIf ends the job because of err if under holds by then, and has the card
// drop it. It says whether it did.
func (j *Job) endIf(under func() bool, err error) bool {
	j.card.mu.Lock()
	ends := under() && j.endLocked(err)
	j.card.mu.Unlock()
	if !ends {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if j.abortOnCard(ctx) != nil {
		// The next set-up, or the end of the link, ends it there.
		j.card.noteGaveUp()
	}
	return true
}
