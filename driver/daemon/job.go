package daemon

import (
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
	card   *card
	nonce  uint64
	config driver.JobConfig
	wait   *time.Timer // ends a job that does not start

	state      state
	parameters driver.JobConfig // with every default filled in, once it has started
	relay      *driver.Relay
	number     uint8
	epoch      uint16
	seats      []*seat // by rank; those without a session are free, or lost
	kept       keptResults
	calls      []announced
	firstCall  uint64 // of calls
	finished   uint64 // ranks that the card has confirmed
	stop       *stop  // the change of epochs under way
}

// seat is a rank of a job.
type seat struct {
	rank    int
	session *session // nil: free, or lost
	calls   uint64   // announced so far
	next    uint32   // the first VID after those calls
	sent    uint32   // the VID after the latest data frame of the epoch
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
func (j *job) sessions(ranks uint64) (all []*session) {
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
	relay, err := j.card.driver.ConfigureRelay(ctx, j.config, j)
	c := j.card
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		j.end(&protocol.Ended{Cause: protocol.Cause_CARD_LOST, Text: err.Error()})
		return
	case j.state == over: // a member left meanwhile
		go relay.Job().Abort(context.WithoutCancel(ctx))
		return
	}
	j.relay, j.parameters = relay, relay.Job().Config()
	j.number, j.epoch = uint8(relay.Job().Number()), relay.Job().Epoch()
	depth := j.parameters.Window
	if j.parameters.Partial {
		depth *= 2
	}
	j.kept = make(keptResults, depth)
	for _, s := range j.seats {
		s.next = j.parameters.FirstVID
	}
	if j.stop == nil { // else the card has gone meanwhile, and Begin follows
		j.begin(j.parameters.FirstVID)
	}
}

// begin tells the seats that an epoch begins.
func (j *job) begin(first uint32) {
	j.state = running
	j.noteEpoch(first)
	for _, s := range j.sessions(everyone) {
		s.tell(&protocol.ToClient{Message: &protocol.ToClient_Begin{Begin: &protocol.Begin{
			Nonce: j.nonce, Ranks: j.ranksOf(s), Number: uint32(j.number), Epoch: uint32(j.epoch), FirstVid: first,
			Parameters: protocolOf(j.parameters),
		}}})
	}
}

// end ends the job for its members, because of what ended says. The card drops it.
func (j *job) end(ended *protocol.Ended) {
	if j.state == over {
		return
	}
	j.state = over
	j.wait.Stop()
	j.noteEnded(ended)
	ended.Nonce = j.nonce
	j.tell(everyone, &protocol.ToClient{Message: &protocol.ToClient_Ended{Ended: ended}})
	delete(j.card.jobs, j.nonce)
	if j.stop != nil {
		j.stop.fail(errors.New(ended.Text))
	}
	if j.relay == nil {
		j.card.admit()
		return
	}
	go j.drop(ended.Cause)
}

// dropTimeout bounds how long the daemon waits for the card to drop a job.
const dropTimeout = 2 * time.Second

// drop ends the job on the card, and gives its room to one that waits.
func (j *job) drop(cause protocol.Cause) {
	if cause == protocol.Cause_FINISHED {
		j.relay.Finish()
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
		defer cancel()
		_ = j.relay.Job().Abort(ctx) // the next set-up drops what the card still has
	}
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	j.card.admit()
}

// leave takes a seat from its session. The job goes on without it only if its sums may be partial, or
// if it has finished.
func (j *job) leave(s *seat, lost bool) {
	j.noteLeft(s, lost)
	s.session = nil
	switch {
	case j.state == over:
	case j.finished&s.bit() != 0:
	case j.state == gathering && !lost:
		j.report()
	case j.state == gathering || j.state == starting || !j.parameters.Partial || len(j.sessions(everyone)) == 0:
		j.end(&protocol.Ended{Cause: protocol.Cause_MEMBER_LOST, Ranks: []uint32{uint32(s.rank)},
			Text: fmt.Sprintf("the connection of rank %d has ended", s.rank)})
	default:
		j.tell(everyone, &protocol.ToClient{Message: &protocol.ToClient_Lost{Lost: &protocol.Lost{Nonce: j.nonce, Ranks: []uint32{uint32(s.rank)}}}})
		if j.stop != nil {
			j.stop.left(s)
		}
	}
}

// report tells the members of a job that has not started what it waits for.
func (j *job) report() {
	m := &protocol.Waiting{Nonce: j.nonce, Missing: j.missing(), Place: uint32(slices.Index(j.card.queue, j) + 1)}
	j.tell(everyone, &protocol.ToClient{Message: &protocol.ToClient_Waiting{Waiting: m}})
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
		if f.Code == wire.CodeDone {
			j.noteFinished(int(f.Rank))
		}
	} else {
		j.kept.keep(f)
	}
	raw := slices.Clone(f.Raw)
	for _, s := range j.sessions(ranks) {
		s.forward(raw)
		c.counts.out += uint64(len(f.Payload))
	}
}

// noteFinished notes that the card has confirmed a rank's finish. With the last one the job is over.
func (j *job) noteFinished(rank int) {
	if rank >= len(j.seats) {
		return
	}
	j.finished |= j.seats[rank].bit()
	if all := uint64(1)<<len(j.seats) - 1; j.finished == all {
		j.end(&protocol.Ended{Cause: protocol.Cause_FINISHED})
	}
}

// Ended ends the job for its members when the card, or the driver, has ended it.
func (j *job) Ended(err error) {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	ended := &protocol.Ended{Cause: protocol.Cause_CARD_LOST, Text: "the job has ended on the card"}
	if err != nil {
		ended.Text = err.Error()
	}
	j.end(ended)
}
