package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// state is where a job is in its life.
type state uint8

const (
	gathering state = iota // seats are free, or the card has no room
	starting               // the card sets it up
	running                // an epoch is under way
	stopped                // between two epochs
	over
)

// job is a job whose members are clients' seats. The card's mutex guards it, except for constants.
type job struct {
	card        *card
	nonce       uint64
	parameters  driver.JobConfig   // with every default filled in
	direct      bool               // its members exchange datagrams with the card themselves
	wait        *time.Timer        // ends a job that does not start
	cancelStart context.CancelFunc // gives up the set-up on the card
	creator     *session           // nil: its session has ended

	state     state
	settingUp bool          // start is under way; it drops a job that ends meanwhile
	dropped   chan struct{} // of a job that is over: closed when the card has dropped it
	again     bool          // the job of an earlier daemon, whose members return (rejoin.go)
	relay     *driver.Relay // on a card that takes frames, once it is set up
	arrays    *arrays       // on a card that takes arrays, likewise
	rdma      *rdma         // on a card under RoCEv2; nil on others
	away      int           // cards of its tree for which it waits
	lost      error         // why the last of them has gone
	number    uint8
	epoch     uint16
	first     uint32  // the VID with which the epoch begins
	seats     []*seat // by rank; those without a session are free, or lost
	kept      keptResults
	summed    uint32 // the first VID of whose result nothing has been seen
	calls     map[uint64]announced
	agreed    uint32 // the first VID after the calls that direct seats may send
	hasAgreed bool
	finished  uint64 // ranks that the card has confirmed, in any epoch
	confirmed uint64 // the same, in this epoch
	evicted   uint64 // ranks that the card has evicted
	stop      *stop  // the change of epochs under way
	paused    *gap   // what members that return wait for
	renewing  bool   // the epoch for that member is under way

	unflushed []*session // that have got frames since the last Flush
}

// seat is a rank of a job.
type seat struct {
	rank    int
	session *session // nil: free, or lost
	calls   uint64   // announced so far
	next    uint32   // the first VID after those calls
	sent    uint32   // the VID after the latest data frame of the epoch
	address wire.Address
	seen    []uint16             // epochs of packets that the member may have under way
	end     *protocol.Connection // of its queue pairs; nil on cards of other shells, and before Connect
	rejoin  *protocol.Rejoin     // of a job of an earlier daemon, until it goes on
	returns bool                 // taken again: takes part from the next epoch on
}

// newJob returns a job with free seats.
func (c *card) newJob(nonce uint64, cfg driver.JobConfig) *job {
	depth := cfg.Window
	if cfg.Partial {
		depth *= 2
	}
	j := &job{card: c, nonce: nonce, parameters: cfg, first: cfg.FirstVID, summed: cfg.FirstVID, kept: make(keptResults, depth), calls: map[uint64]announced{}}
	for rank := range cfg.Workers {
		j.seats = append(j.seats, &seat{rank: rank, next: cfg.FirstVID})
	}
	return j
}

// takesPart reports whether a change of epochs waits for the seat: a session holds it, and it has
// neither finished nor been evicted.
func (j *job) takesPart(s *seat) bool {
	return s.session != nil && !s.returns && (j.finished|j.evicted)&s.bit() == 0
}

// bit returns the seat's bit in masks of ranks.
func (s *seat) bit() uint64 { return 1 << s.rank }

// missing returns the ranks without a session.
func (j *job) missing() (ranks []uint32) {
	for _, s := range j.seats {
		if s.session == nil {
			ranks = append(ranks, uint32(s.rank))
		}
	}
	return ranks
}

// sessions returns the sessions that hold a seat of some ranks, each once.
func (j *job) sessions(ranks uint64) []*session { return j.addSessions(nil, ranks) }

// addSessions appends the sessions that hold a seat of some ranks, unless they are there.
func (j *job) addSessions(all []*session, ranks uint64) []*session {
	for _, s := range j.seats {
		if s.session != nil && ranks&s.bit() != 0 && !slices.Contains(all, s.session) {
			all = append(all, s.session)
		}
	}
	return all
}

// everyone is the mask of all ranks.
const everyone = ^uint64(0)

// tell sends a message to the sessions of some ranks.
func (j *job) tell(ranks uint64, m *protocol.ToClient) {
	for _, s := range j.sessions(ranks) {
		s.tell(m)
	}
}

// ranksOf lists the ranks of a job that a session holds.
func (j *job) ranksOf(s *session) (ranks []uint32) {
	for _, seat := range j.seats {
		if seat.session == s {
			ranks = append(ranks, uint32(seat.rank))
		}
	}
	return ranks
}

// start sets the job up on the card when all seats are taken.
func (j *job) start(ctx context.Context) {
	c := j.card
	switch {
	case c.driver.TakesArrays():
		j.startArrays(ctx)
		return
	case j.rdma != nil:
		j.startConnections(ctx)
		return
	}
	cfg := driver.RelayConfig{JobConfig: j.parameters}
	var relay *driver.Relay
	var err error
	if j.again {
		cfg.FirstVID, cfg.Seen, err = j.meet(ctx)
	}
	if err == nil {
		relay, err = c.single.ConfigureRelay(ctx, j.directed(cfg), j)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j.relay = relay
	if !j.isSetUp(err) {
		return
	}
	j.first = cfg.FirstVID
	j.number, j.epoch = uint8(relay.Job().Number()), relay.Job().Epoch()
	c.numbered[j.number] = j
	if j.stop == nil { // else the card has gone meanwhile, and Begin follows
		j.begin()
	}
}

// isSetUp notes the end of the set-up on the card, and reports whether the job can begin.
func (j *job) isSetUp(err error) bool {
	j.settingUp = false
	switch {
	case j.state == over: // a member left meanwhile
		go j.drop(false)
		return false
	case err != nil:
		j.end(notSetUp(err))
		return false
	}
	return true
}

// notSetUp returns why a job ends that the card did not set up.
func notSetUp(err error) *protocol.Ended {
	ended := &protocol.Ended{Cause: protocol.Cause_ABORTED, Text: err.Error()}
	var full *driver.FullError
	var died *driver.DiedError
	switch {
	case errors.As(err, &full):
		ended.Cause = protocol.Cause_NO_SLOTS
	case errors.As(err, &died):
		ended.Cause = protocol.Cause_CARD_LOST
	}
	return ended
}

// begin tells the seats that an epoch begins.
func (j *job) begin() {
	j.admitReturned()
	j.state, j.confirmed, j.paused, j.renewing = running, 0, nil, false
	if int32(j.first-j.summed) > 0 {
		j.summed = j.first // nothing before is summed any more
	}
	j.noteEpoch()
	for _, s := range j.sessions(everyone) {
		b := &protocol.Begin{Nonce: j.nonce, Number: uint32(j.number), Epoch: uint32(j.epoch), FirstVid: j.first, Parameters: j.parameters.Parameters()}
		for _, seat := range j.seats {
			if seat.session == s && !seat.returns {
				b.Ranks, b.Calls = append(b.Ranks, uint32(seat.rank)), seat.calls
			}
		}
		b.Connections = j.connections()
		if len(b.Ranks) > 0 {
			s.tell(&protocol.ToClient{Message: &protocol.ToClient_Begin{Begin: b}})
		}
	}
	j.readmit()
	j.agree()
}

// end ends the job for its members, because of what ended says. The card drops it.
func (j *job) end(ended *protocol.Ended) {
	if j.state == over {
		return
	}
	j.state = over
	j.wait.Stop()
	j.leaveQueue()
	j.stopExpecting()
	j.noteEnded(ended)
	ended.Nonce = j.nonce
	j.tell(everyone, &protocol.ToClient{Message: &protocol.ToClient_Ended{Ended: ended}})
	delete(j.card.jobs, j.nonce)
	if j.isOnCard() && j.card.numbered[j.number] == j {
		j.card.numbered[j.number] = nil
	}
	if j.stop != nil {
		j.stop.fail(errors.New(ended.Text))
	}
	onCard := j.isOnCard()
	if !onCard && !j.settingUp {
		j.card.admit()
		return
	}
	j.card.dropping++
	if j.rdma != nil {
		j.part()
	}
	j.dropped = make(chan struct{})
	for _, s := range j.sessions(everyone) {
		s.noteDrop(j.dropped)
	}
	switch {
	case onCard:
		go j.drop(j.confirmed == j.allRanks()) // else the card waits for members that finished in an earlier epoch
	case j.card.driver.Away():
		j.cancelStart() // it waits for the card; then it drops the job
	}
}

// isOnCard reports whether the job is, or was, set up on the card.
func (j *job) isOnCard() bool {
	return j.relay != nil || j.arrays != nil || j.rdma != nil && j.rdma.registered != nil
}

// dropTimeout bounds how long the daemon waits for the card to drop a job.
const dropTimeout = 2 * time.Second

// drop ends the job on the card, if it was set up, and gives its room to one that waits.
func (j *job) drop(finished bool) {
	defer close(j.dropped)
	switch {
	case j.rdma != nil:
		j.disconnect()
	case j.arrays != nil:
		j.arrays.close(j.finished == j.allRanks())
	case j.relay != nil && finished:
		j.relay.Finish()
	case j.relay != nil:
		ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
		defer cancel()
		_ = j.relay.Job().Abort(ctx) // the next set-up drops what the card still has
	}
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	j.card.dropping--
	j.card.admit()
}

// leave takes a seat from its session. The job goes on without it only if its sums may be partial, or
// if it has finished.
func (j *job) leave(s *seat, lost bool) {
	j.noteLeft(s, lost)
	s.session = nil
	switch {
	case j.state == over:
	case j.finished&s.bit() != 0 && j.rdma == nil: // else others may need its queue pairs
	case j.state == gathering && !lost && !j.again:
		j.report()
	case j.state == gathering || j.state == starting || !j.parameters.Partial || len(j.sessions(everyone)) == 0:
		why := "the connection of rank %d has ended"
		if !lost {
			why = "rank %d has left"
		}
		j.end(&protocol.Ended{Cause: protocol.Cause_MEMBER_LOST, Ranks: []uint32{uint32(s.rank)}, Text: fmt.Sprintf(why, s.rank)})
	default:
		j.tell(everyone, &protocol.ToClient{Message: &protocol.ToClient_Lost{Lost: &protocol.Lost{Nonce: j.nonce, Ranks: []uint32{uint32(s.rank)}}}})
		if j.stop != nil {
			j.stop.left(s)
		}
		if j.finished != 0 {
			j.endIfFinished()
		}
		j.renewIfDrained()
	}
}

// endIfForsaken ends a job that has not started if nobody is there any more who has made it or joined it:
// nobody else knows of it.
func (j *job) endIfForsaken(why string) {
	if j.state == gathering && j.creator == nil && len(j.sessions(everyone)) == 0 {
		j.end(&protocol.Ended{Cause: protocol.Cause_NEVER_STARTED, Ranks: j.missing(), Text: why})
	}
}

// report tells the members of a job that has not started what it waits for.
func (j *job) report() { j.reportExcept(nil) }

// reportExcept is report for all but one session, which knows.
func (j *job) reportExcept(one *session) {
	for _, s := range j.sessions(everyone) {
		if s != one {
			s.tell(&protocol.ToClient{Message: &protocol.ToClient_Waiting{Waiting: j.waiting()}})
		}
	}
}

// waiting is what a job that has not started waits for.
func (j *job) waiting() *protocol.Waiting {
	return &protocol.Waiting{Nonce: j.nonce, Missing: j.missing(), Place: uint32(slices.Index(j.card.queue, j) + 1)}
}

// Receive sends a frame from the card to the sessions that it is for.
func (j *job) Receive(f *frame.Frame) {
	c := j.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if j.state != running || f.Epoch != j.epoch {
		return
	}
	ranks := f.Receivers
	if f.Kind == wire.KindStatus {
		ranks = 1 << f.Rank
		switch f.Code {
		case wire.CodeDone:
			j.noteFinished(int(f.Rank))
		case wire.CodeEvicted:
			j.noteEvicted(cmp.Or(f.Mask, ranks), f.VID)
		}
		j.renewIfDrained()
	} else {
		j.kept.put(result{f.VID, f.Mask, f.Payload})
		j.noteSummed()
	}
	out := &outgoing{raw: f.Raw}
	var few [8]*session
	for _, s := range j.addSessions(few[:0], ranks&^j.returning()) {
		s.forward(out)
		c.counts.out += uint64(len(f.Payload))
		if !slices.Contains(j.unflushed, s) {
			j.unflushed = append(j.unflushed, s)
		}
	}
}

// flushedNow is the most sessions whose frames the card's reader sends itself. The writers of more
// sessions work at once, on several processors.
const flushedNow = 4

// Flush sends the frames since the last Flush.
func (j *job) Flush() {
	var few [flushedNow]*session
	j.card.mu.Lock()
	all := append(few[:0], j.unflushed...)
	clear(j.unflushed)
	j.unflushed = j.unflushed[:0]
	j.card.mu.Unlock()
	for _, s := range all {
		if len(all) > flushedNow {
			s.flush()
		} else {
			s.flushNow()
		}
	}
}

// noteEvicted notes that the card has evicted ranks, and tells all members: these must know it before
// they hear of the epoch's end.
func (j *job) noteEvicted(ranks uint64, vid uint32) {
	ranks &= j.allRanks() &^ j.evicted
	if ranks == 0 {
		return
	}
	j.evicted |= ranks
	e := &protocol.Evicted{Nonce: j.nonce, Vid: vid}
	for _, s := range j.seats {
		if ranks&s.bit() != 0 {
			e.Ranks = append(e.Ranks, uint32(s.rank))
		}
	}
	j.tell(everyone&^j.returning(), &protocol.ToClient{Message: &protocol.ToClient_Evicted{Evicted: e}})
}

// confirmFinish confirms the finish of a seat that told the daemon of it, and notes it.
func (j *job) confirmFinish(seat *seat) {
	seat.session.tell(&protocol.ToClient{Message: &protocol.ToClient_Finished{Finished: &protocol.Finished{Nonce: j.nonce, Rank: uint32(seat.rank)}}})
	j.noteFinished(seat.rank)
}

// noteFinished notes that the card has confirmed a rank's finish. With the last one the job is over.
func (j *job) noteFinished(rank int) {
	if rank >= len(j.seats) {
		return
	}
	j.finished |= j.seats[rank].bit()
	j.confirmed |= j.seats[rank].bit()
	j.endIfFinished()
}

// endIfFinished ends the job if all members have finished that have not gone.
func (j *job) endIfFinished() {
	for _, s := range j.seats {
		if j.finished&s.bit() == 0 && (s.returns || j.takesPart(s)) {
			return
		}
	}
	j.end(&protocol.Ended{Cause: protocol.Cause_FINISHED})
}

// allRanks is the mask of the job's ranks.
func (j *job) allRanks() uint64 { return everyone >> (64 - len(j.seats)) }

// Ended ends the job for its members when the card, or the driver, has ended it.
func (j *job) Ended(err error) {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	ended := &protocol.Ended{Cause: protocol.Cause_CARD_LOST, Text: "the job has ended on the card"}
	switch died, ok := err.(*driver.DiedError); {
	case ok:
		ended.Text = died.Reason() // the members' library adds the rest
	case err != nil:
		ended.Text = err.Error()
	}
	j.end(ended)
}
