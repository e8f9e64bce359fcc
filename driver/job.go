package driver

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"tributary/driver/element"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// JobConfig holds the parameters of a job. The zero value of a field means its default.
type JobConfig struct {
	Workers  int    // members of the job; default: len(Ports), or all ports of the card
	Ports    []int  // their ports, ascending, rank r on Ports[r]; default: 0..Workers-1
	Chunk    int    // elements in a chunk, a multiple of the card's lanes; default: the card's
	Window   int    // chunks in flight, a power of two; default: Info.Window/Info.Jobs
	FirstVID uint32 // number of the first chunk; only tests of its wrap-around need it

	// Here lists the ranks of the members in this process, on a shared card (`tributary serve`).
	// Other processes take the other ranks (Join, Job.Ticket). nil means all. Configure does not
	// wait for members elsewhere; their calls and those of the members here do.
	Here []int
	// Wait is how long members elsewhere may take to join, before the job fails. 0 means the
	// daemon's default. The daemon limits it, by default to an hour.
	Wait time.Duration
	// Queue makes a job wait until the shared card has room for it. Otherwise Configure returns a
	// FullError.
	Queue bool
	// OnWaiting runs when what the start of a job waits for has changed: the ranks that are missing,
	// and the job's place among those that wait for room, from 1; 0 means that it has room.
	OnWaiting func(missing []int, place int)
	// OnLost runs when members elsewhere have gone and the job goes on without them (Partial).
	OnLost func(ranks []int)

	// CarryOn is how long the job waits for its card when the card has gone away. With 0 the
	// job ends at once with a DiedError.
	//
	// Otherwise the driver opens the card again by its name until the same card answers. The
	// job continues in a new epoch, from the first missing result; its calls do not notice. The
	// job ends with a LostError when the card is not back in time, or at once when another card
	// answers. An outage ends only when the card has done something for the job: a short return
	// without a result gains no time.
	//
	// The inputs must not change until a call returns, also when it fails. Cards of OpenConn
	// cannot carry on.
	CarryOn time.Duration
	// OnOutage runs when a job with CarryOn loses its card, and again when the job continues.
	// The driver waits for the first call to return before the job continues. It does not wait
	// for the second: a reduction may have returned by then. Only Card.Close waits for it.
	// OnOutage must not call methods of the job or the card.
	OnOutage func(Outage)

	// Deadline limits the time between the first and the last contribution to a chunk. It also
	// limits how long members that have not taken a result may block the others. 0 means no
	// limit. Give either Deadline or DeadlineCycles. The timeout of calls (WithTimeout) must be
	// longer, or they give up first.
	//
	// The card counts cycles. Configure measures the card's clock to convert the Deadline,
	// which takes 50 ms or more. The clock of a board is even; the clock of a simulation is
	// not. It may make 200,000 cycles a second, or none while its machine is busy. It also
	// stops some thousand cycles after the last activity, and only asks advance it. Prefer
	// DeadlineCycles there.
	//
	// Of RDMA connections (scheme roce), it limits how much later than another a rank may come to a
	// call or to Close. 0 means a minute there. The daemon keeps it, and DeadlineCycles is refused.
	//
	// Without Partial, the card repeatedly reports the ranks that an overdue chunk waits for,
	// and keeps waiting. The driver calls OnOverdue. A call that gives up meanwhile names the
	// ranks (MissingError).
	Deadline       time.Duration
	DeadlineCycles uint32

	// Partial makes the card sum an overdue chunk without the missing contributions. It needs a
	// deadline. The card does not add late contributions. A late member gets the same results
	// as the others. Partials returns which sums lack which ranks.
	//
	// A member that blocks the others for a second deadline is evicted. Its calls return
	// EvictedError, the others continue without it, and it can take part in the next job. A
	// member also leaves the job when the context of its own call ends; the job continues for
	// the others.
	//
	// A job that carries on keeps the results that only some members have, for the other
	// members. Members that were evicted before an outage stay out; the card waits for them
	// again, for the deadline.
	Partial bool

	// OnOverdue runs, in a job with a deadline and without Partial, when a chunk is overdue,
	// and again each time the deadline passes. The link is not read meanwhile: OnOverdue must
	// return soon and must not call methods of the job or the card.
	OnOverdue func(Overdue)
}

// Outage is the argument of OnOutage.
type Outage struct {
	Card     string
	Cause    *DiedError    // why the card is gone
	Patience time.Duration // how long the job will wait from now on; 0 when the card is back
	Away     time.Duration // how long the card was away; 0 when it has just gone
	VID      uint32        // the chunk from which the job continues: the first missing result
	Epoch    uint16        // the epoch in which the job continues; 0 when the card has just gone

	went time.Time // when the card went
}

// Job is a reduction set up on a card: its members add up arrays together, chunk by chunk.
// Reductions can follow one another on it. Several jobs run side by side on a card with
// Info.Jobs above 1. They share the link, but do not affect each other's results.
//
// A failed call, or one whose context ends, ends the job, because its members no longer agree
// on their position in the stream. Other calls then return EndedError, and Configure can set up
// the next job at once. In a job with partial sums, a member can leave instead
// (JobConfig.Partial).
type Job struct {
	card    *Card
	cfg     JobConfig
	name    string // after the card's in messages; empty on a card that holds one job
	number  uint8  // constant, unless the card is shared
	epoch   uint16 // guarded by card.mu
	ranks   uint64 // bit r for every rank r
	here    uint64 // the ranks in this process
	members []*Member
	seats   *seats  // on a shared card; else nil
	whole   *flow   // of Reduce
	relay   *Relay  // to the members; nil when they are in this process
	branch  *branch // of a job on a tree of cards; nil for other jobs

	connected []connectedMember // of Connections, by rank; nil for other jobs
	gone      chan struct{}     // of Connections: closed when the job ends

	inBytes, outBytes int // bytes of an element of the contributions and of the results

	// Guarded by card.mu.
	timing   timing
	entries  []frame.Header // of the address table, as they were found after the set-up; nil elsewhere
	flows    []*flow        // with calls in progress
	turn     int            // index of the flow that sends next
	fresh    bool           // the writer has gathered data that was never sent before
	sentData time.Time      // when the link last took such data
	finish   finish
	outage   outage
	evicted  uint64 // ranks that have left the job
	history  *resultHistory
	stopped  bool    // no epoch is under way: sends nothing, takes nothing
	pause    *uint32 // sends no data from this VID on; nil: sends all
	ended    bool
	err      error // why the job ended; nil when it was finished
}

// Configure checks cfg against the card and sets up one more job, under the lowest free number.
// The default window is an equal share of the card's slots. It leaves room for Info.Jobs jobs,
// if the card's window has that many chunks. Configure returns a FullError when all numbers or
// too many slots are in use.
//
// On a card that holds one job (Info.Jobs is 1), Configure ends the job that this Card set up
// before, and replaces it. Configure waits for a Configure or Reset in progress, and for an
// absent card that the driver is looking for.
//
// Errors: InputError when cfg cannot be right; FullError; RefusedError, TimeoutError,
// DiedError, ErrClosed, or one that wraps ctx's.
func (c *Card) Configure(ctx context.Context, cfg JobConfig) (*Job, error) {
	return c.configure(ctx, cfg, nil)
}

// configure is Configure, for members in this process or behind a relay.
func (c *Card) configure(ctx context.Context, cfg JobConfig, relay *Relay) (*Job, error) {
	cfg, err := c.Complete(c.withMTU(cfg))
	if err != nil {
		return nil, err
	}
	if cfg.Partial && cfg.Deadline >= c.opts.timeout {
		return nil, &InputError{"deadline", fmt.Sprintf("%s is not shorter than the timeout of %s, so calls would fail before a sum is partial; set a longer timeout or a shorter deadline", cfg.Deadline, c.opts.timeout)}
	}
	if cfg.CarryOn > 0 && c.reopen == nil {
		return nil, &InputError{"carry on", "card " + c.name + " was opened on the caller's stream, which the driver cannot open again; open the card by its name"}
	}
	if relay != nil {
		if err := c.info.checkFrames(cfg.Chunk); err != nil {
			return nil, err
		}
	}
	if c.shared {
		return c.configureShared(ctx, cfg)
	}
	if c.info.Shell == wire.ShellRoCE {
		return nil, &InputError{"job", "card " + c.name + " sums what its ranks' RDMA connections carry; use Connect"}
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
		j, err := c.configureOn(ctx, l, cfg, relay, nil)
		if err == nil || !c.lost(l) {
			return j, err
		}
	}
}

// configureOn sets up a job over the link l, for members in this process, behind a relay, or with
// connections.
func (c *Card) configureOn(ctx context.Context, l *link, cfg JobConfig, relay *Relay, connected []connectedMember) (*Job, error) {
	number, ok := c.freeNumber()
	if !ok {
		return nil, c.fullError(ctx, l, cfg.Window, nil)
	}
	if c.info.Jobs > 1 { // with one number, this set-up replaces a lingering job
		if err := c.dismiss(ctx, l); err != nil {
			return nil, err
		}
	}
	epoch, err := c.nextEpoch(ctx, l, number)
	if err != nil {
		return nil, err
	}
	if relay != nil {
		epoch = relay.laterThan(epoch)
	}
	j := newJob(c, cfg, number, epoch, c.shortestTrip())
	if connected != nil {
		j.connected, j.gone = connected, make(chan struct{})
	}
	if relay != nil {
		j.relay, relay.job = relay, j
	}
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
	c.warnOfRoom(l, cfg)
	return j, nil
}

// errReplaced is the cause in the EndedError of a job that Configure replaced.
var errReplaced = errors.New("another job was configured")

// Complete fills in the defaults of a job's parameters and checks them against the card. Configure
// does the same.
func (i Info) Complete(cfg JobConfig) (JobConfig, error) {
	if cfg.Workers == 0 {
		cfg.Workers = len(cfg.Ports)
	}
	if cfg.Workers == 0 {
		cfg.Workers = i.Ports
	}
	if cfg.Chunk == 0 {
		cfg.Chunk = i.mostChunk()
	}
	if cfg.Window == 0 {
		cfg.Window = i.Window / i.Jobs
	}
	if err := cfg.checkDeadline(); err != nil {
		return cfg, err
	}
	switch {
	case cfg.CarryOn < 0:
		return cfg, &InputError{"carry on", fmt.Sprintf("%s is negative", cfg.CarryOn)}
	case cfg.Workers < 0:
		return cfg, &InputError{"workers", fmt.Sprintf("%d is negative", cfg.Workers)}
	case cfg.Workers > i.Ports:
		return cfg, &InputError{"workers", fmt.Sprintf("%d workers, but card %s has %d ports; use fewer, or a card generated with -workers %d", cfg.Workers, i.Name, i.Ports, cfg.Workers)}
	case cfg.Chunk < 0 || cfg.Chunk > i.Chunk || cfg.Chunk%i.Lanes != 0:
		return cfg, &InputError{"chunk", fmt.Sprintf("%d elements; card %s takes multiples of %d up to %d", cfg.Chunk, i.Name, i.Lanes, i.Chunk)}
	case cfg.Chunk > i.mostChunk():
		return cfg, &InputError{"chunk", fmt.Sprintf("%d elements; the way to card %s carries packets of %d bytes, which have up to %d; use fewer, or a network with larger frames (MTU)", cfg.Chunk, i.Name, i.Packet, i.mostChunk())}
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
			return cfg, &InputError{"ports", fmt.Sprintf("port %d follows port %d; list ports in ascending order", p, cfg.Ports[r-1])}
		}
	}
	return cfg, nil
}

// Complete is Info.Complete for this card.
func (c *Card) Complete(cfg JobConfig) (JobConfig, error) {
	if c.info.Shell == wire.ShellRoCE {
		return c.info.completeConnected(cfg)
	}
	return c.info.Complete(cfg)
}

// newJob returns a job whose results take trip or longer.
func newJob(c *Card, cfg JobConfig, number uint8, epoch uint16, trip time.Duration) *Job {
	return newJobOf(c, cfg, number, epoch, trip, nil)
}

// newJobOf is newJob for a job on one card, or for the part on this card of a job on a tree.
func newJobOf(c *Card, cfg JobConfig, number uint8, epoch uint16, trip time.Duration, b *branch) *Job {
	j := &Job{card: c, cfg: cfg, number: number, epoch: epoch, branch: b, inBytes: element.Size(c.info.Format), outBytes: element.Size(c.info.Result)}
	j.history = newHistory(cfg, c.shared || b != nil)
	j.ranks = ^uint64(0) >> (64 - cfg.Workers)
	j.here = j.ranks
	if b != nil {
		j.here = ^uint64(0) >> (64 - b.of.tree.cards[b.card].Workers) // 0 for none: the shift is 64
	}
	if c.info.Jobs > 1 {
		j.name = fmt.Sprintf(", job %d", number)
	}
	j.members = make([]*Member, cfg.Workers)
	for r := range j.members {
		m := &Member{job: j, rank: r, global: r, next: cfg.FirstVID}
		m.own = newFlow(j, []*Member{m})
		j.members[r] = m
	}
	j.whole = newFlow(j, j.members[:bits.OnesCount64(j.here)])
	j.finish.done = make(chan error, 1)
	j.flows = make([]*flow, 0, cfg.Workers)
	j.timing = newTiming(trip, c.packets)
	return j
}

// Config returns the job's parameters with every default filled in.
func (j *Job) Config() JobConfig {
	cfg := j.cfg
	if w := j.tree(); w != nil {
		cfg = w.cfg
	}
	cfg.Ports = slices.Clone(cfg.Ports)
	return cfg
}

// Card returns the job's card, of a job on a tree the root. The card of a member of the function Join is
// open for this member alone, and Member.Close closes it.
func (j *Job) Card() *Card { return j.front().card }

// Number returns the job's number on the card, from 0. After the job has ended, another job may
// have this number. On a shared card the number may change when the job continues after an outage.
func (j *Job) Number() int {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	return int(j.number)
}

// Epoch returns the epoch, which distinguishes this job from those before and after it. It
// changes when the job continues after an outage.
func (j *Job) Epoch() uint16 {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	return j.epoch
}

// Member returns the member of that rank, 0..Workers-1. Another rank panics like an index out
// of range. A job on a tree has the members of the whole tree, by global rank; it is nil for a rank below
// the highest that nobody has.
func (j *Job) Member(rank int) *Member {
	if w := j.tree(); w != nil {
		return w.members[rank]
	}
	return j.members[rank]
}

// Stats returns the sum of the counters of all members.
func (j *Job) Stats() MemberStats {
	if w := j.tree(); w != nil {
		return w.stats()
	}
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	var sum MemberStats
	for _, m := range j.members {
		sum.add(&m.stats)
	}
	return sum
}

// Abort ends the job at once. Calls in progress return EndedError. It does nothing when the job
// has ended.
func (j *Job) Abort(ctx context.Context) error {
	if w := j.tree(); w != nil {
		return w.abandon(ctx)
	}
	if !j.end(errAborted) {
		return nil
	}
	return j.abortOnCard(ctx)
}

// errAborted is the cause in the EndedError of a job that Abort ended.
var errAborted = errors.New("the job was aborted")

// abortOnCard makes the card drop the job, which has ended on this host, unless the card has
// dropped it already. A card that dies meanwhile has dropped it with the link.
func (j *Job) abortOnCard(ctx context.Context) error {
	if j.seats != nil {
		return nil // the daemon does that
	}
	name, lingers := j.card.lingering(j.number)
	if !lingers || name != jobName(j.number, j.Epoch()) || j.card.Away() {
		return nil
	}
	_, err := j.card.WriteRegister(ctx, wire.RegJobAbort, name)
	var died *DiedError
	if err != nil && !isGone(err) && !errors.As(err, &died) {
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

// end ends the job on this host but not on the card. It reports whether the job was still set
// up.
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
	if j.gone != nil {
		close(j.gone)
	}
	if j.branch != nil {
		j.branch.partEnded(j, err)
	}
	j.leave(err != nil || j.evicted != 0) // the card may still wait for a member that left
	for len(j.flows) > 0 {
		j.flows[0].fail(j.endedError())
	}
	if j.finish.left != 0 {
		j.finish.left = 0
		j.finish.done <- j.endedError()
	}
	if j.relay != nil {
		j.relay.drop()
		go j.relay.remote.Ended(err)
	}
	return true
}

// leave frees the job's number. lingers means that the card still has the job, unless the link
// has ended too.
func (j *Job) leave(lingers bool) {
	c := j.card
	if j.seats != nil {
		j.leaveSeats()
	} else {
		c.table[j.number] = jobEntry{lingers: lingers && c.link.err == nil, epoch: j.epoch}
	}
	if j.outage.patience != nil {
		j.outage.patience.Stop()
	}
	if c.away != nil && c.idle() && !c.reopens() {
		c.away.giveUp(j.err)
	}
}

// endedError returns the error of calls to an ended job. DiedError, NotStartedError and ErrClosed
// need no wrapper.
func (j *Job) endedError() error {
	var died *DiedError
	var never *NotStartedError
	if errors.As(j.err, &died) || errors.As(j.err, &never) || errors.Is(j.err, ErrClosed) {
		return j.err
	}
	return &EndedError{Card: j.card.name, Epoch: j.epoch, Err: j.err, job: j.name}
}

// givenUp returns the cause that ends the job when a call gives up with err because its context
// ended.
func (j *Job) givenUp(call string, err error) error {
	return &GivenUpError{Card: j.card.name, Call: call, Err: err, job: j.name}
}

// endIf ends the job because of err if under still holds, and makes the card drop it. It
// reports whether it did.
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
		// The next set-up, or the end of the link, ends the job on the card.
		j.card.noteGaveUp()
	}
	return true
}
