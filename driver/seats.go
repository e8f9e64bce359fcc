package driver

// Jobs with members in other processes. The daemon starts their epochs and ends them (shared.go); this
// file follows it: what a seat reports, keeps and hands on (daemon/SPEC.md, sections 4 to 8).

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"tributary/driver/daemon/protocol"
)

// seats are the seats that this process holds in a job; guarded by Card.mu, except for constants.
type seats struct {
	nonce     uint64
	started   chan struct{} // closed when the job starts, or ends without
	begun     bool          // started is closed
	announces bool          // the daemon knows the job and takes calls
	over      bool          // the daemon has ended the job
	queues    bool          // its data goes over queue pairs
	direct    bool          // its data goes to a card on a network, not through the daemon
	agreed    *uint32       // direct seats send no data from this VID on; nil: none at all
}

// sit takes a seat that the daemon has granted, and returns its member. The caller holds mu.
func (c *Card) sit(nonce uint64, w *protocol.Waiting, made *JobConfig) *Member {
	j := c.seatedJob(nonce)
	if j == nil {
		cfg := ConfigOf(w.Parameters)
		if made != nil {
			cfg.Here, cfg.Wait, cfg.Queue = made.Here, made.Wait, made.Queue
			cfg.OnOutage, cfg.OnOverdue, cfg.OnWaiting, cfg.OnLost = made.OnOutage, made.OnOverdue, made.OnWaiting, made.OnLost
		}
		complete, err := c.Complete(cfg)
		if err != nil || int(w.GetRank()) >= complete.Workers {
			return nil
		}
		j = newJob(c, complete, 0, 0, c.accesses.trip)
		j.name = fmt.Sprintf(", job %016x", nonce)
		j.seats = &seats{nonce: nonce, started: make(chan struct{}), direct: c.direct(), queues: c.link.rdma != nil}
		j.here, j.stopped = 0, true
		c.seated = append(c.seated, j)
	}
	j.here |= 1 << w.GetRank()
	return j.members[w.GetRank()]
}

// AwaitMembers waits until all members of the job are there. A job whose card is not shared has all
// its members in this process. Errors: EndedError, with a NotStartedError, or one that wraps ctx's.
func (j *Job) AwaitMembers(ctx context.Context) error {
	if j.seats == nil {
		return nil
	}
	select {
	case <-j.seats.started:
	case <-ctx.Done():
		return &StoppedError{Card: j.card.name, What: "wait for the members of the job", Err: ctx.Err(), job: j.name}
	}
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if j.ended {
		return j.endedError()
	}
	return nil
}

// noteStarted wakes those who wait for the job's start.
func (s *seats) noteStarted() {
	if !s.begun {
		s.begun = true
		close(s.started)
	}
}

// beginEpoch begins the job, or continues it.
func (j *Job) beginEpoch(b *protocol.Begin) {
	c := j.card
	if want := j.cfg.Parameters(); int(b.Number) >= len(c.table) || b.Parameters == nil || !reflect.DeepEqual(j.cfg.shape(), ConfigOf(b.Parameters).shape()) {
		j.endLocked(fmt.Errorf("the daemon began the job with %v, not with %v", b.Parameters, want))
		return
	}
	if c.table[j.number].job == j {
		c.table[j.number] = jobEntry{}
	}
	j.number = uint8(b.Number)
	c.table[j.number] = jobEntry{job: j}
	again, now := j.seats.begun, time.Now()
	if again {
		j.resume(uint16(b.Epoch), now)
		if j.cfg.OnOutage != nil {
			o := Outage{Card: c.name, Cause: j.outage.cause, Away: now.Sub(j.outage.went), VID: b.FirstVid, Epoch: uint16(b.Epoch)}
			defer c.unlocked(func() { j.cfg.OnOutage(o) })
		}
	} else {
		j.beginAt(b)
		for _, f := range j.flows {
			f.moved = now
		}
		j.seats.noteStarted()
		j.connectPairs(b.Connections)
	}
	j.stopped, j.pause = false, nil
	c.noteSeen(uint16(b.Epoch))
	if !j.seats.announces {
		j.announceAll()
	}
	c.kick()
}

// beginAt lets the members begin with the chunk where the job stands: the first one, unless they return
// to it.
func (j *Job) beginAt(b *protocol.Begin) {
	j.epoch = uint16(b.Epoch)
	for _, m := range j.members {
		m.next, m.calls = b.FirstVid, b.Calls
	}
	for _, f := range j.flows {
		f.first = b.FirstVid
		for _, k := range f.calls {
			k.vid = f.vid(k.from)
		}
	}
	if j.history != nil {
		j.history.low, j.history.next = b.FirstVid, b.FirstVid
	}
}

// shape returns the parameters that all members share.
func (cfg JobConfig) shape() JobConfig {
	return JobConfig{Workers: cfg.Workers, Ports: cfg.Ports, Chunk: cfg.Chunk, Window: cfg.Window, FirstVID: cfg.FirstVID,
		CarryOn: cfg.CarryOn, Deadline: cfg.Deadline, DeadlineCycles: cfg.DeadlineCycles, Partial: cfg.Partial}
}

// announceAll announces the calls in progress to a daemon that knows none of them, and from then on
// each new one.
func (j *Job) announceAll() {
	j.seats.announces = true
	for _, f := range j.flows {
		for i := range f.calls {
			f.announce(i)
		}
	}
}

// announce announces the call at an index of the flow, for each member that takes part.
func (f *flow) announce(i int) {
	j, k := f.job, f.calls[i]
	if j.seats == nil || !j.seats.announces {
		return
	}
	operation := protocol.Operation_SUM
	if k.mean {
		operation = protocol.Operation_MEAN
	}
	for _, m := range f.members {
		if m.out != nil {
			continue
		}
		j.tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Call{Call: &protocol.Call{
			Nonce: j.seats.nonce, Rank: uint32(m.rank), Sequence: m.calls + uint64(i), Elements: uint64(k.elements),
			Format: uint32(j.card.info.Format), Operation: operation, FirstVid: k.vid,
		}}})
	}
}

// tell sends a message about the job to the daemon.
func (j *Job) tell(m *protocol.ToDaemon) {
	if l := j.card.link; l.err == nil && l.session != nil {
		l.session.Tell(m)
	}
}

// stopEpoch stops the job: the card, or a member, has gone. Each seat here reports what it holds, unless its
// blocks stay with the daemon, which continues by itself.
func (j *Job) stopEpoch(s *protocol.Stop) {
	c := j.card
	j.stopped = true
	for c.pinned != nil && c.pinned.flow.job == j {
		c.unpinned.Wait()
	}
	died := &DiedError{Card: c.name, Err: errors.New(s.Cause)}
	blocks := c.link.blocks != nil
	if blocks {
		j.outage.note(died, time.Now())
	} else {
		j.rest(died, time.Now())
	}
	j.outage.patience = time.AfterFunc(j.cfg.CarryOn+c.opts.timeout, func() { j.endStop(died) })
	if j.cfg.OnOutage != nil && j.seats.begun {
		o := Outage{Card: c.name, Cause: died, Patience: j.cfg.CarryOn, VID: j.firstLacking()}
		c.unlocked(func() { j.cfg.OnOutage(o) })
	}
	if blocks {
		return
	}
	for _, rank := range bitSlice(j.here) {
		j.tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Report{Report: j.report(rank)}})
	}
}

// endStop ends a job that the daemon has stopped and never continued.
func (j *Job) endStop(cause *DiedError) {
	c := j.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if j.stopped && j.outage.cause == cause && c.away == nil {
		j.endLocked(&LostError{Card: c.name, Cause: cause, Waited: time.Since(j.outage.went), Err: errors.New("the daemon has not continued the job")})
	}
}

// rest rewinds the flows after an epoch has ended.
func (j *Job) rest(cause *DiedError, now time.Time) {
	for _, f := range j.flows {
		f.rewind()
	}
	j.catchUp()
	j.outage.note(cause, now)
}

// note records what ended the epoch.
func (o *outage) note(cause *DiedError, now time.Time) { o.cause, o.went = cause, now }

// catchUp gives all flows the results that other members hold.
func (j *Job) catchUp() {
	for n := len(j.flows) - 1; j.history != nil && n >= 0; n-- { // a flow that ends reorders j.flows
		j.flows[n].catchUp()
	}
}

// report returns which results a seat has.
func (j *Job) report(rank int) *protocol.Report {
	m := j.members[rank]
	r := &protocol.Report{Nonce: j.seats.nonce, Rank: uint32(rank), Low: m.next}
	for _, f := range j.flows {
		if f.ranks>>rank&1 == 0 {
			continue
		}
		r.Low = f.vid(f.low)
		for i := f.low; i < min(f.low+len(f.ring), f.chunks); i++ {
			if f.state(i).kept {
				r.Held = append(r.Held, f.vid(i))
			}
		}
	}
	if r.KeptFrom = r.Low; j.history != nil {
		r.KeptFrom = j.history.low
	}
	return r
}

// fetch sends the daemon a result that this process keeps.
func (j *Job) fetch(f *protocol.Fetch) {
	k := &protocol.Kept{Nonce: f.Nonce, Rank: f.Rank, Vid: f.Vid}
	if j.history != nil {
		r := j.history.results[f.Vid]
		k.Mask, k.Payload = r.ranks, r.sum
	}
	j.tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Kept{Kept: k}})
}

// takeHanded stores a result that a seat here lacks. After the last one it confirms that all are there.
func (j *Job) takeHanded(h *protocol.Hand) {
	if !j.stopped {
		return // of a change of epochs that is over
	}
	if h.Done {
		j.catchUp()
		j.tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Held{Held: &protocol.Held{Nonce: h.Nonce, Rank: h.Rank}}})
		return
	}
	if j.history != nil && len(h.Payload) == j.cfg.Chunk*j.outBytes && h.Mask != 0 && h.Mask&^j.ranks == 0 {
		j.history.put(h.Vid, keptResult{h.Payload, h.Mask})
	}
}

// tellLeft tells the daemon that ranks have left the job, which goes on without them.
func (j *Job) tellLeft(ranks uint64) {
	if j.seats == nil {
		return
	}
	for _, rank := range bitSlice(ranks) {
		j.tell(leaveOf(j.seats.nonce, uint32(rank)))
	}
}

// noteLost reports members that have gone to the program. The job goes on without them.
func (j *Job) noteLost(l *protocol.Lost) {
	if j.cfg.OnLost != nil {
		j.card.unlocked(func() { j.cfg.OnLost(ints(l.Ranks)) })
	}
}

// noteEvicted notes members that the card has evicted.
func (j *Job) noteEvicted(e *protocol.Evicted) {
	var ranks uint64
	for _, rank := range e.Ranks {
		ranks |= 1 << rank
	}
	j.evict(ranks&j.ranks, e.Vid, nil)
}

// endedByDaemon ends the job.
func (j *Job) endedByDaemon(e *protocol.Ended) {
	j.seats.over = true
	err := error(errors.New(e.Text))
	switch e.Cause {
	case protocol.Cause_FINISHED:
		err = nil
		if j.finish.left != 0 {
			j.finish.left = 0
			j.finish.done <- nil
		}
	case protocol.Cause_NEVER_STARTED:
		err = &NotStartedError{Card: j.card.name, Missing: ints(e.Ranks), Text: e.Text}
	case protocol.Cause_MEMBER_LOST:
		err = &MemberLostError{Card: j.card.name, Ranks: ints(e.Ranks)}
	case protocol.Cause_MEMBER_FAILED:
		err = &MemberFailedError{Card: j.card.name, Ranks: ints(e.Ranks), Text: e.Text}
	case protocol.Cause_CALLS_DIFFER:
		err = &CallsDifferError{Card: j.card.name, Ranks: ints(e.Ranks), Text: e.Text}
	case protocol.Cause_NO_SLOTS:
		err = errNoSlots
	case protocol.Cause_RESULT_LOST:
		err = &ResultLostError{Card: j.card.name, VID: e.Vid}
	case protocol.Cause_CARD_LOST:
		err = j.cardLost(err)
	}
	j.endLocked(err)
}

// cardLost returns why a job has ended with the daemon's card.
func (j *Job) cardLost(why error) error {
	o := &j.outage
	if j.cfg.CarryOn > 0 && j.stopped && o.cause != nil {
		return &LostError{Card: j.card.name, Cause: o.cause, Waited: time.Since(o.went), Err: why}
	}
	return &DiedError{Card: j.card.name, Err: why}
}

// leaveSeats removes an ended job from those of the card. The daemon ends it for the other members,
// unless it did that itself, or sees the session end.
func (j *Job) leaveSeats() {
	c := j.card
	for _, m := range j.members {
		m.part()
	}
	lost := (*LostError)(nil)
	switch {
	case j.err == nil, j.seats.over, errors.Is(j.err, ErrClosed):
	case errors.As(j.err, &lost): // the others may go on, or hear whom they lack
		j.tellLeft(j.here)
	default:
		j.tell(abortOf(j.seats.nonce))
	}
	if c.table[j.number].job == j {
		c.table[j.number] = jobEntry{}
	}
	c.seated = slices.DeleteFunc(c.seated, func(other *Job) bool { return other == j })
	j.seats.noteStarted()
}

// ints converts ranks of a message.
func ints(ranks []uint32) []int {
	all := make([]int, len(ranks))
	for i, rank := range ranks {
		all[i] = int(rank)
	}
	return all
}
