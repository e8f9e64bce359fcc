package driver

// Cards that a daemon shares among processes (scheme serve). The daemon owns the card and sets up its
// jobs; daemon/SPEC.md defines what this process and the daemon send each other. This file has what a
// Card asks of the daemon and hears from it. seats.go has the jobs.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/driver/daemon/protocol"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// session is a transport.Conn to a card that several processes use: transport/serve has one.
type session interface {
	transport.Link
	networked
	// Listen calls f with the daemon's messages, one after another.
	Listen(f func(*protocol.ToClient))
	// Tell queues a message to the daemon. It does not wait.
	Tell(m *protocol.ToDaemon)
	// Name returns the name under which other processes open the card.
	Name() string
	// Block returns the most bytes of a block, if the card takes arrays; 0 if it takes frames.
	Block() int
	// Tree returns the cards, if the card is a tree of cards; else nil.
	Tree() []*protocol.TreeCard
	// Memory returns memory that the daemon shares; nil without. Release frees it, after Close. Kept reports
	// whether what was copied from it before is what the daemon wrote.
	Memory() []byte
	Kept() bool
	Release()
}

// AnyRank is the rank of a member that takes any free one.
const AnyRank = -1

// Join takes a seat in the job of a ticket, which Job.Ticket has returned in this process or another
// one. rank is the member's rank, or AnyRank. The member has a session of its own with the daemon;
// Member.Close ends it. With WithJob, Join compares the job's parameters with those that this member
// expects, and with WithFormat the card's format.
//
// Join returns when the seat is taken. The member's calls wait until all seats are.
//
// Errors: those of Open; InputError for a ticket that cannot be read, or with the parameter that
// differs; JoinError.
func Join(ctx context.Context, ticket string, rank int, opts ...Option) (*Member, error) {
	name, _, err := parseTicket(ticket)
	if err != nil {
		return nil, err
	}
	c, err := Open(ctx, name, opts...)
	if err != nil {
		return nil, err
	}
	if has, want := c.info.Format, c.opts.needs.Format; want != 0 && has != want {
		c.Close()
		return nil, &InputError{"format", fmt.Sprintf("this member expects %s, the card of the job has %s", want, has)}
	}
	m, err := c.Join(ctx, ticket, rank)
	if err != nil {
		c.Close()
		return nil, err
	}
	m.closes = c
	return m, nil
}

// Join is the function Join through this Card's session: Job.Close finishes the member, and the end of
// this Card ends it.
func (c *Card) Join(ctx context.Context, ticket string, rank int) (*Member, error) {
	_, nonce, err := parseTicket(ticket)
	switch {
	case err != nil:
		return nil, err
	case !c.shared:
		return nil, &InputError{"ticket", fmt.Sprintf("card %s is not shared; tickets are for cards of `tributary serve`", c.name)}
	}
	return c.join(ctx, nonce, rank, c.opts.expected.expectation(), nil)
}

// parseTicket returns the name of a ticket's card, and the nonce of its job.
func parseTicket(ticket string) (card string, nonce uint64, err error) {
	card, number, ok := strings.Cut(ticket, ticketMark)
	nonce, err = strconv.ParseUint(number, 16, 64)
	if !ok || err != nil {
		return "", 0, &InputError{"ticket", fmt.Sprintf("%q is not one; Job.Ticket returns them, as in serve:unix:/run/tributary.sock#card%s0123456789abcdef", ticket, ticketMark)}
	}
	return card, nonce, nil
}

// ticketMark is between a card's name and a job's nonce in a ticket.
const ticketMark = "?job="

// Ticket returns a text with which other processes join the job (Join). It is empty if the card is not
// shared: all members are then in this process.
func (j *Job) Ticket() string {
	if j.seats == nil {
		return ""
	}
	return fmt.Sprintf("%s%s%016x", j.card.currentLink().session.Name(), ticketMark, j.seats.nonce)
}

// request is a request without an answer; guarded by Card.mu.
type request struct {
	link   *link
	taken  func(*protocol.Waiting) // runs when a Join is granted, before the next message is read
	answer chan *protocol.ToClient // capacity 1
}

// ask sends a request to the daemon and returns its answer. what names it in errors.
func (c *Card) ask(ctx context.Context, l *link, what string, taken func(*protocol.Waiting), message func(number uint64) *protocol.ToDaemon) (*protocol.ToClient, error) {
	r := &request{link: l, taken: taken, answer: make(chan *protocol.ToClient, 1)}
	c.mu.Lock()
	c.requested++
	number := c.requested
	c.requests[number] = r
	c.mu.Unlock()
	l.session.Tell(message(number))
	timer := time.NewTimer(c.opts.timeout)
	defer timer.Stop()
	var m *protocol.ToClient
	var err error
	select {
	case m = <-r.answer:
	case <-ctx.Done():
		err = c.stopped(ctx, what)
	case <-l.over:
		err = c.whyOver(l)
	case <-timer.C:
		err = &TimeoutError{Card: c.name, What: what, Waited: c.opts.timeout}
	}
	c.mu.Lock()
	delete(c.requests, number)
	c.mu.Unlock()
	if m == nil { // the answer may have come with the reason to wait no longer; it counts
		select {
		case m = <-r.answer:
		default:
			return nil, err
		}
	}
	if refused := m.GetRefused(); refused != nil {
		return nil, c.refusal(refused)
	}
	return m, nil
}

// refusal returns the error for a refused request.
func (c *Card) refusal(r *protocol.Refused) error {
	if r.Reason == protocol.Reason_PARAMETERS {
		if r.Field == "" {
			return &InputError{"job", r.Text}
		}
		return &InputError{r.Field, strings.TrimPrefix(r.Text, r.Field+": ")}
	}
	return &JoinError{Card: c.name, Reason: r.Reason, Text: r.Text}
}

// configureShared is Configure on a card that a daemon shares.
func (c *Card) configureShared(ctx context.Context, cfg JobConfig) (*Job, error) {
	here, err := cfg.seats()
	if err != nil {
		return nil, err
	}
	if c.info.Jobs == 1 {
		c.endJobs(errReplaced)
	}
	l, err := c.present(ctx, "set-up of a job")
	if err != nil {
		return nil, err
	}
	if err := c.checkQueues(l); err != nil {
		return nil, err
	}
	created, err := c.ask(ctx, l, "set-up of a job", nil, func(number uint64) *protocol.ToDaemon {
		return &protocol.ToDaemon{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{
			Request: number, Parameters: cfg.Parameters(), WaitNs: uint64(cfg.Wait), Queue: cfg.Queue}}}
	})
	if refused := (*JoinError)(nil); errors.As(err, &refused) && refused.Reason == protocol.Reason_FULL {
		return nil, c.fullError(ctx, l, cfg.Window, nil)
	}
	if err != nil {
		return nil, err
	}
	nonce := created.GetCreated().GetNonce()
	var j *Job
	for _, rank := range here {
		m, err := c.join(ctx, nonce, rank, nil, &cfg)
		switch {
		case err == nil:
			j = m.job
		case j == nil:
			l.session.Tell(abortOf(nonce))
			return nil, err
		default:
			_ = j.Abort(context.WithoutCancel(ctx))
			return nil, err
		}
	}
	if len(here) < cfg.Workers {
		return j, nil
	}
	if err := j.AwaitMembers(ctx); err != nil {
		if errors.Is(err, errNoSlots) {
			return nil, c.fullError(ctx, l, cfg.Window, &RefusedError{Card: c.name, What: "set-up of a job", Code: wire.CodeNoSlots})
		}
		_ = j.Abort(context.WithoutCancel(ctx))
		return nil, err
	}
	return j, nil
}

// abortOf is the message that ends a job.
func abortOf(nonce uint64) *protocol.ToDaemon {
	return &protocol.ToDaemon{Message: &protocol.ToDaemon_Abort{Abort: &protocol.Abort{Nonce: nonce}}}
}

// leaveOf is the message that gives a seat back.
func leaveOf(nonce uint64, rank uint32) *protocol.ToDaemon {
	return &protocol.ToDaemon{Message: &protocol.ToDaemon_Leave{Leave: &protocol.Leave{Nonce: nonce, Rank: rank}}}
}

// errNoSlots ends a job for which the card had no slots.
var errNoSlots = errors.New("the daemon found no free slots for the job")

// seats returns the ranks that this process takes.
func (cfg *JobConfig) seats() ([]int, error) {
	if cfg.Here == nil {
		all := make([]int, cfg.Workers)
		for rank := range all {
			all[rank] = rank
		}
		return all, nil
	}
	if len(cfg.Here) == 0 {
		return nil, &InputError{"ranks here", "there are none; a process takes at least one seat of the job that it makes"}
	}
	for i, rank := range cfg.Here {
		if rank < 0 || rank >= cfg.Workers || slices.Contains(cfg.Here[:i], rank) {
			return nil, &InputError{"ranks here", fmt.Sprintf("%v; list ranks from 0 to %d, each once", cfg.Here, cfg.Workers-1)}
		}
	}
	return cfg.Here, nil
}

// join takes a seat of a job. cfg has the callbacks of a job that this process made; nil for others.
func (c *Card) join(ctx context.Context, nonce uint64, rank int, expected *protocol.Parameters, cfg *JobConfig) (*Member, error) {
	l, err := c.present(ctx, "join of a job")
	if err != nil {
		return nil, err
	}
	if err := c.checkQueues(l); err != nil {
		return nil, err
	}
	from, err := c.joinFrom(ctx, l)
	if err != nil {
		return nil, err
	}
	var m *Member
	_, err = c.ask(ctx, l, "join of a job", func(w *protocol.Waiting) { m = c.sit(nonce, w, cfg) }, func(number uint64) *protocol.ToDaemon {
		p := from.join(nonce)
		p.Request, p.Parameters = number, expected
		if rank != AnyRank {
			p.Rank = new(uint32(min(max(rank, 0), math.MaxUint32)))
		}
		return &protocol.ToDaemon{Message: &protocol.ToDaemon_Join{Join: p}}
	})
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, &failure{at: place{card: c.name}, what: "the daemon's answer to a join has no seat"}
	}
	if l.rdma != nil {
		if err := c.connectMember(ctx, l, m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// IsShared reports whether a daemon shares the card among processes ("serve:").
func (c *Card) IsShared() bool { return c.shared }

// IsTree reports whether a daemon offers a tree of cards as this card.
func (c *Card) IsTree() bool { return c.shared && c.currentLink().session.Tree() != nil }

// hear handles a message of the daemon, in the goroutine that reads them.
func (c *Card) hear(l *link, m *protocol.ToClient) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.err != nil {
		return
	}
	switch m := m.Message.(type) {
	case *protocol.ToClient_Refused:
		c.answered(m.Refused.Request, l, &protocol.ToClient{Message: m})
	case *protocol.ToClient_Created:
		c.answered(m.Created.Request, l, &protocol.ToClient{Message: m})
	case *protocol.ToClient_Connected:
		c.answered(m.Connected.Request, l, &protocol.ToClient{Message: m})
	case *protocol.ToClient_Waiting:
		c.hearWaiting(l, m.Waiting)
	case *protocol.ToClient_Begin:
		c.forJob(m.Begin.Nonce, func(j *Job) { j.beginEpoch(m.Begin) })
	case *protocol.ToClient_Stop:
		c.forJob(m.Stop.Nonce, func(j *Job) { j.stopEpoch(m.Stop) })
	case *protocol.ToClient_Fetch:
		c.forJob(m.Fetch.Nonce, func(j *Job) { j.fetch(m.Fetch) })
	case *protocol.ToClient_Hand:
		c.forJob(m.Hand.Nonce, func(j *Job) { j.takeHanded(m.Hand) })
	case *protocol.ToClient_Pause:
		c.forJob(m.Pause.Nonce, func(j *Job) { j.pause = &m.Pause.Vid })
	case *protocol.ToClient_Summed:
		c.hearSummed(m.Summed)
	case *protocol.ToClient_Finished:
		c.forJob(m.Finished.Nonce, func(j *Job) { j.finished(uint64(1) << m.Finished.Rank & j.finish.left) })
	case *protocol.ToClient_Missing:
		c.forJob(m.Missing.Nonce, func(j *Job) { j.takeMissingBlocks(m.Missing) })
	case *protocol.ToClient_Lost:
		c.forJob(m.Lost.Nonce, func(j *Job) { j.noteLost(m.Lost) })
	case *protocol.ToClient_Agreed:
		c.forJob(m.Agreed.Nonce, func(j *Job) { j.noteAgreed(m.Agreed.Vid) })
	case *protocol.ToClient_Evicted:
		c.forJob(m.Evicted.Nonce, func(j *Job) { j.noteEvicted(m.Evicted) })
	case *protocol.ToClient_Ended:
		c.forJob(m.Ended.Nonce, func(j *Job) { j.endedByDaemon(m.Ended) })
	}
}

// answered gives a request its answer. If nobody waits for it any more, it gives back what was granted.
func (c *Card) answered(number uint64, l *link, m *protocol.ToClient) {
	r := c.requests[number]
	if r == nil || r.link != l {
		if created := m.GetCreated(); created != nil {
			l.session.Tell(abortOf(created.Nonce))
		} else if w := m.GetWaiting(); w != nil {
			l.session.Tell(leaveOf(w.Nonce, w.GetRank()))
		}
		return
	}
	delete(c.requests, number)
	if r.taken != nil && m.GetWaiting() != nil {
		r.taken(m.GetWaiting())
	}
	r.answer <- m
}

func (c *Card) hearWaiting(l *link, w *protocol.Waiting) {
	if w.Request != 0 {
		c.answered(w.Request, l, &protocol.ToClient{Message: &protocol.ToClient_Waiting{Waiting: w}})
	}
	if j := c.seatedJob(w.Nonce); j != nil && j.cfg.OnWaiting != nil {
		c.unlocked(func() { j.cfg.OnWaiting(ints(w.Missing), int(w.Place)) })
	}
}

// forJob handles a message about a job, unless the job has ended here.
func (c *Card) forJob(nonce uint64, handle func(*Job)) {
	if j := c.seatedJob(nonce); j != nil {
		handle(j)
	}
}

// rejoin takes the seats anew over the link, after the daemon has died.
func (c *Card) rejoin(ctx context.Context, l *link) error {
	c.mu.Lock()
	c.seen = nil // the new link has a UDP port of its own
	c.mu.Unlock()
	from, err := c.joinFrom(ctx, l)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range slices.Clone(c.seated) {
		if j.cfg.Partial && !j.seats.begun {
			// Its calls would begin in the middle of the others', if some chunks were summed without it.
			died := &DiedError{Card: c.name, Err: errors.New("the daemon has gone")}
			j.endLocked(&LostError{Card: c.name, Cause: died, Err: errors.New("this member had not begun; join again")})
			continue
		}
		var epoch *uint32
		if j.seats.begun {
			epoch = new(uint32(j.epoch))
		}
		for _, rank := range bitSlice(j.here) {
			m, join := j.members[rank], from.join(j.seats.nonce)
			join.Rank, join.Parameters = new(uint32(rank)), j.cfg.Parameters()
			j.tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Rejoin{Rejoin: &protocol.Rejoin{
				Join: join, Report: j.report(rank), Epoch: epoch, Calls: m.calls, NextVid: m.next,
			}}})
		}
		j.announceAll()
	}
	return nil
}

// seatedJob returns the job of a nonce, or nil. The caller holds mu.
func (c *Card) seatedJob(nonce uint64) *Job {
	for _, j := range c.seated {
		if j.seats.nonce == nonce {
			return j
		}
	}
	return nil
}

// unlocked runs a callback of the program without the mutex.
func (c *Card) unlocked(f func()) {
	c.mu.Unlock()
	defer c.mu.Lock()
	f()
}
