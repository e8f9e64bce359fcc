package daemon

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
	"tributary/driver/element"
)

// Card is what a Server shares: a card, or a tree of cards. It is a *driver.Card or a *driver.SharedTree.
type Card interface {
	Info() driver.Info
	Complete(driver.JobConfig) (driver.JobConfig, error)
	Configure(context.Context, driver.JobConfig) (*driver.Job, error)
	ReadRegister(ctx context.Context, addr uint32) (uint64, error)
	Reset(context.Context) error
	TakesArrays() bool
	Network() string
	Away() bool
	Done() <-chan struct{} // closed when the card has gone for good
	Err() error            // why; nil before
	Close() error
}

// card is a card that sessions share.
type card struct {
	name   string
	driver Card
	single *driver.Card       // driver, if it is one card; else nil
	tree   *driver.SharedTree // driver, if it is a tree; else nil
	server *Server

	mu         sync.Mutex
	changed    sync.Cond // a call was announced, or a session has ended
	sessions   map[*session]bool
	counts     counts
	jobs       map[uint64]*job    // by nonce
	numbered   [256]*job          // those that have started, by their number on the card
	connecting sync.Mutex         // held while connections are registered, or removed
	neighbours []driver.Neighbour // of a one-armed card; guarded by connecting
	parting    map[uint64]*job    // those that are over, and whose queue pairs may live, by nonce
	queue      []*job             // that wait for room on the card
	dropping   int                // jobs that are over, and keep their room until the card has dropped them
}

// refusal is the answer to a request that the daemon refuses.
type refusal struct {
	reason protocol.Reason
	text   string
	field  string
}

func refuse(reason protocol.Reason, format string, args ...any) *refusal {
	return &refusal{reason: reason, text: fmt.Sprintf(format, args...)}
}

// wrongParameter refuses a parameter that the card does not take, by its name.
func wrongParameter(err error) *refusal {
	r := refuse(protocol.Reason_PARAMETERS, "%s", err)
	var wrong *driver.InputError
	if errors.As(err, &wrong) {
		r.field = wrong.What
	}
	return r
}

// create makes a job for the members that will join it.
func (c *card) create(s *session, p *protocol.Create) (*job, *refusal) {
	cfg, err := c.driver.Complete(driver.ConfigOf(p.Parameters))
	if err != nil {
		return nil, wrongParameter(err)
	}
	if c.underRoCE() && cfg.Workers < 2 {
		return nil, &refusal{reason: protocol.Reason_PARAMETERS, field: "workers", text: "workers: a ring of RDMA connections has 2 or more"}
	}
	if cfg.Partial && s.direct {
		return nil, &refusal{reason: protocol.Reason_PARAMETERS, field: "partial sums",
			text: "partial sums: the daemon must see the results; start it with -relay, or do without"}
	}
	if cfg.CarryOn > 0 && c.driver.TakesArrays() && c.tree == nil {
		return nil, &refusal{reason: protocol.Reason_PARAMETERS, field: "carry on", text: "carry on: the card is in the daemon's process, and would be lost with it"}
	}
	wait, refused := c.server.waitFor(p)
	if refused != nil {
		return nil, refused
	}
	j := c.newJob(newNonce(), cfg)
	j.creator, j.direct = s, s.direct
	if c.underRoCE() {
		j.rdma = new(rdma)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.stopping() {
		return nil, refuse(protocol.Reason_STOPPING, "the daemon is being stopped; try another one")
	}
	if c.full() {
		if !p.Queue {
			return nil, refuse(protocol.Reason_FULL, "the card holds %d jobs at once, and all are in use; close one, or ask to wait for room", c.driver.Info().Jobs)
		}
		if len(c.queue) >= c.server.limits.Queue {
			return nil, c.server.limited(limitQueue, "%d jobs wait for room on card %s, the daemon's limit", len(c.queue), c.name)
		}
	}
	c.enter(j)
	j.wait = time.AfterFunc(wait, func() { j.giveUp(wait) })
	return j, nil
}

// full reports whether a new job has to wait for the end of another one.
func (c *card) full() bool { return len(c.jobs) >= c.driver.Info().Jobs }

// enter enters a job. If the card has no room for it yet, the job waits for that.
func (c *card) enter(j *job) {
	if !c.hasRoom() {
		c.queue = append(c.queue, j)
	}
	c.jobs[j.nonce] = j
}

// hasRoom reports whether the card has a number for one more job. It has none while jobs wait for room.
func (c *card) hasRoom() bool { return len(c.jobs)-len(c.queue)+c.dropping < c.driver.Info().Jobs }

// admit gives free room to the jobs that wait for it.
func (c *card) admit() {
	for len(c.queue) > 0 && c.hasRoom() {
		j := c.queue[0]
		j.leaveQueue()
		j.report()
		j.startIfComplete()
	}
}

// leaveQueue takes a job out of the queue, if it is there, and reports the places of those after it.
func (j *job) leaveQueue() {
	c := j.card
	i := slices.Index(c.queue, j)
	if i < 0 {
		return
	}
	c.queue = slices.Delete(c.queue, i, i+1)
	for _, later := range c.queue[i:] {
		later.report()
	}
}

// startIfComplete starts a job whose seats are all taken, if the card has room for it.
func (j *job) startIfComplete() {
	if j.state == gathering && len(j.missing()) == 0 && j.allConnected() && !slices.Contains(j.card.queue, j) {
		j.state, j.settingUp = starting, true
		ctx, cancel := context.WithCancel(j.card.server.running)
		j.cancelStart = cancel
		go func() {
			defer cancel()
			j.start(ctx)
		}()
	}
}

// leastRetry is the least time until giveUp looks again at a job that the card sets up.
const leastRetry = time.Second

// giveUp ends a job whose members were not all there in time, or whose card is away.
func (j *job) giveUp(waited time.Duration) {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	switch {
	case j.state == over || j.isOnCard():
		return
	case j.state != gathering && j.card.driver.Away():
		j.end(&protocol.Ended{Cause: protocol.Cause_CARD_LOST, Text: fmt.Sprintf("%s did not return within the job's time to wait, %s", j.card.absent(), waited)})
		return
	case j.state != gathering: // the card may go meanwhile
		j.wait.Reset(max(waited, leastRetry))
		return
	}
	ended := &protocol.Ended{Cause: protocol.Cause_NEVER_STARTED, Ranks: j.missing()}
	ended.Text = fmt.Sprintf("ranks %d had not joined after %s", ended.Ranks, waited)
	if j.again {
		ended.Cause = protocol.Cause_MEMBER_LOST
		ended.Text = fmt.Sprintf("ranks %d had not returned %s after the daemon", ended.Ranks, waited)
	}
	j.end(ended)
}

// absent names what is away: the card, or cards of the tree.
func (c *card) absent() string {
	if c.tree == nil {
		return "it"
	}
	return "card " + strings.Join(c.tree.AwayCards(), ", card ")
}

// join gives a session a seat of a job.
func (c *card) join(s *session, p *protocol.Join) (*job, *seat, *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[p.Nonce]
	switch {
	case j == nil:
		return nil, nil, refuse(protocol.Reason_NO_JOB, "the daemon has no job %016x on this card; it has ended, or the ticket is of another daemon", p.Nonce)
	case c.seatsOf(s) >= c.server.limits.Seats:
		return nil, nil, c.seatsLimited()
	case j.again:
		return nil, nil, refuse(protocol.Reason_STARTED, "job %016x waits for the members that it had", p.Nonce)
	case j.state != gathering && (!j.parameters.Partial || j.arrays != nil):
		return nil, nil, refuse(protocol.Reason_STARTED, "job %016x has started; only one with partial sums takes a member again, on a card that takes frames", p.Nonce)
	case j.relay == nil && j.state != gathering: // never of connections: these have no partial sums
		return nil, nil, refuse(protocol.Reason_STARTED, "job %016x starts just now; join again", p.Nonce)
	}
	if r := differing(p.Parameters, j.parameters); r != nil {
		return nil, nil, r
	}
	if r := j.differingWay(s, p); r != nil {
		return nil, nil, r
	}
	free := slices.DeleteFunc(j.missing(), func(rank uint32) bool { return j.finished>>rank&1 != 0 })
	if p.Rank != nil {
		switch {
		case int(*p.Rank) >= len(j.seats):
			return nil, nil, refuse(protocol.Reason_TAKEN, "rank %d is beyond the job's %d members", *p.Rank, len(j.seats))
		case j.finished>>*p.Rank&1 != 0:
			return nil, nil, refuse(protocol.Reason_TAKEN, "rank %d has finished", *p.Rank)
		case !slices.Contains(free, *p.Rank):
			return nil, nil, refuse(protocol.Reason_TAKEN, "rank %d is taken", *p.Rank)
		}
		free = []uint32{*p.Rank}
	}
	if len(free) == 0 {
		return nil, nil, refuse(protocol.Reason_TAKEN, "all %d ranks are taken", len(j.seats))
	}
	seat := j.seats[free[0]]
	seat.session, seat.returns, seat.end = s, j.state != gathering, nil
	seat.noteAddress(p)
	return j, seat, nil
}

// seatOf returns a seat that the session holds, or nil.
func (c *card) seatOf(s *session, nonce uint64, rank uint32) (*job, *seat) {
	j := c.jobs[nonce]
	if j == nil || int(rank) >= len(j.seats) || j.seats[rank].session != s {
		return nil, nil
	}
	return j, j.seats[rank]
}

// jobOf returns the job that has a number on the card, if it has started.
func (c *card) jobOf(number uint8) *job { return c.numbered[number] }

// chunkBytes returns the size of a result.
func (j *job) chunkBytes() int { return j.parameters.Chunk * element.Size(j.card.driver.Info().Result) }

// newNonce returns 64 random bits.
func newNonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:])
}

// close ends all jobs, and the card.
func (c *card) close(text string) error {
	c.mu.Lock()
	for _, j := range c.jobs {
		j.end(&protocol.Ended{Cause: protocol.Cause_ABORTED, Text: text})
	}
	c.mu.Unlock()
	return c.driver.Close()
}

// await waits until a condition holds, or ctx ends. The condition is checked with the mutex held.
func (c *card) await(ctx context.Context, condition func() bool) {
	holds := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return condition()
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
