package driver

// A job whose members are in other processes. The program between them and the card, such as
// `tributary serve`, forwards their frames as they are; package daemon does that. The card's set-up,
// its search after an outage and the end of the job are those of every job.

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// Remote reaches the members of a Relay. It must not call methods of the Relay or the Card from
// Receive, Flush, Begin and Ended.
type Remote interface {
	// Receive gets a result, a replay or a status from the card. It runs in the goroutine that reads
	// the link: it must return soon. The frame is valid until then.
	Receive(f *frame.Frame)

	// Flush follows the last of the frames that came together: Receive may gather them until then. It runs
	// in the same goroutine, and must return soon.
	Flush()

	// Stop stops the members after the card has gone, and hands them the results that some of them
	// lack. It returns the first VID whose result a member lacks, from which the job continues. An
	// error ends the job.
	Stop(ctx context.Context) (first uint32, err error)

	// Begin reports the epoch in which the job continues, from the VID that Stop returned.
	Begin(epoch uint16)

	// Ended reports, once and in a goroutine of its own, that the job has ended: why, or nil when all members have finished.
	Ended(err error)
}

// Relay is a job whose members are in other processes.
type Relay struct {
	job     *Job
	remote  Remote
	seen    []uint16       // epochs
	avoid   []uint16       // epochs
	members []wire.Address // by rank; nil if all are behind the card's link
	framed  []byte         // the last datagram as a frame; the reader's

	// Guarded by Card.mu.
	queue []*relayed
	first uint32 // where the next epoch begins
}

// relayed is a batch of frames on its way to the card.
type relayed struct {
	frames []byte
	taken  chan bool // capacity 1: whether the link has taken them
}

// RelayConfig are the parameters of a job whose members are in other processes.
type RelayConfig struct {
	JobConfig
	Seen []uint16 // epochs that members have seen: that of the job is later

	// Avoid are epochs of which members may have packets under way: that of the job is another.
	Avoid []uint16

	// Members are the addresses of the members by rank, if they exchange datagrams with a card on a
	// network themselves. Remote then gets no frames of theirs.
	Members []wire.Address
}

// ConfigureRelay is Configure for a job whose members are in other processes, which remote reaches.
// OnOverdue is not called: the members get the card's notices.
func (c *Card) ConfigureRelay(ctx context.Context, cfg RelayConfig, remote Remote) (*Relay, error) {
	if c.arrays != nil {
		return nil, &InputError{"relay", "card " + c.name + " takes arrays, not frames"}
	}
	r := &Relay{remote: remote, first: cfg.FirstVID, seen: cfg.Seen, avoid: cfg.Avoid, members: cfg.Members}
	if _, err := c.configure(ctx, cfg.JobConfig, r); err != nil { // it sets r.job
		return nil, err
	}
	return r, nil
}

// Job returns the job, with its number, epoch and parameters. Calls of its members fail.
func (r *Relay) Job() *Job { return r.job }

// Send sends whole frames of members to the card, and returns when the link has taken them. frames
// should be at most 64 KiB: jobs, and the senders of a job, take turns by batches. A sender that finds
// the link free writes by itself, without the writer's goroutine. Send reports false when the job has
// ended or waits for its card: the frames are dropped.
func (r *Relay) Send(frames []byte) bool {
	c := r.job.card
	c.mu.Lock()
	l := c.link
	if r.job.ended || r.job.stopped || c.away != nil || l.err != nil {
		c.mu.Unlock()
		return false
	}
	if !l.writing && c.relayed == 0 {
		l.writing = true
		l.running.Add(1) // the reader runs, because the link has not ended
		c.mu.Unlock()
		if l.packets {
			l.relayed.clear()
			l.relayed.addFrames(frames)
			return c.writeNow(l, l.relayed)
		}
		return c.writeNow(l, &batch{buf: frames})
	}
	s := &relayed{frames: frames, taken: make(chan bool, 1)}
	r.queue = append(r.queue, s)
	c.relayed++
	c.mu.Unlock()
	c.kick()
	return <-s.taken
}

// Renew ends the epoch of that number and begins the next one, from chunk first on. It returns the
// epoch that has begun. With a DiedError the card has gone, or has come back in another epoch
// meanwhile: Remote hears of that.
func (r *Relay) Renew(ctx context.Context, epoch uint16, first uint32) (uint16, error) {
	j, c := r.job, r.job.card
	if err := c.takeTurn(ctx, c.configuring, "next epoch of a job"); err != nil {
		return 0, err
	}
	defer func() { <-c.configuring }()
	l, err := r.rest(epoch)
	if err != nil {
		return 0, err
	}
	if _, err := c.writeOn(ctx, l, wire.RegJobAbort, jobName(j.number, epoch)); err != nil && !isGone(err) {
		return 0, err
	}
	next, err := j.setUp(ctx, l, epoch+1, first)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if j.ended {
		return 0, j.endedError()
	}
	if l.err != nil {
		return 0, &DiedError{Card: c.name, Err: l.err}
	}
	j.epoch, j.stopped, r.first = next, false, first
	return next, nil
}

// rest stops the job in an epoch that is to end, and returns the link.
func (r *Relay) rest(epoch uint16) (*link, error) {
	j, c := r.job, r.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case j.ended:
		return nil, j.endedError()
	case c.away != nil:
		return nil, c.away.cause
	case j.epoch != epoch:
		return nil, &DiedError{Card: c.name, Err: fmt.Errorf("it has gone and come back in epoch %d", j.epoch)}
	}
	j.stopped = true
	r.drop()
	return c.link, nil
}

// laterThan returns an epoch after all that members have seen, from epoch on, and none to avoid.
func (r *Relay) laterThan(epoch uint16) uint16 {
	for _, seen := range r.seen {
		if int16(seen-epoch) >= 0 {
			epoch = seen + 1
		}
	}
	for slices.Contains(r.avoid, epoch) {
		epoch++
	}
	return epoch
}

// Finish ends the job on this host: the card has confirmed that all members have finished.
func (r *Relay) Finish() {
	r.job.end(nil)
}

// addQueued adds the next batch, and reports whether there is one.
func (r *Relay) addQueued(out *batch) bool {
	if len(r.queue) == 0 {
		return false
	}
	s := r.queue[0]
	r.queue = r.queue[1:]
	r.job.card.relayed--
	out.addFrames(s.frames)
	s.taken <- true
	return true
}

// reframe makes the packet of a datagram a frame, as Remote gets it.
func (r *Relay) reframe(f *frame.Frame) {
	r.framed = frame.Append(r.framed[:0], &f.Header, f.Payload)
	f.Raw = r.framed
	if f.Payload != nil {
		end := len(f.Raw) - wire.CRCBytes
		f.Payload = f.Raw[end-len(f.Payload) : end]
	}
}

// drop drops the batches that the link has not taken.
func (r *Relay) drop() {
	for _, s := range r.queue {
		s.taken <- false
	}
	r.job.card.relayed -= len(r.queue)
	r.queue = nil
}

// stopRelays stops the members behind relays, and waits for them.
func (c *Card) stopRelays(a *away) {
	c.mu.Lock()
	var stops sync.WaitGroup
	for j := range c.jobs() {
		if j.relay != nil {
			stops.Go(func() { j.relay.stop(a) })
		}
	}
	c.mu.Unlock()
	stops.Wait()
}

func (r *Relay) stop(a *away) {
	first, err := r.remote.Stop(a.search)
	r.job.card.mu.Lock()
	defer r.job.card.mu.Unlock()
	if err != nil {
		r.job.endLocked(err)
		return
	}
	r.first = first
}
