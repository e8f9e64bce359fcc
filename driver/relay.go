package driver

// A job whose members are in other processes. The program between them and the card, such as
// `tributary serve`, forwards their frames as they are; package daemon does that. The card's set-up,
// its search after an outage and the end of the job are those of every job.

import (
	"context"
	"sync"

	"tributary/driver/frame"
)

// Remote reaches the members of a Relay. It must not call methods of the Relay or the Card from
// Receive, Begin and Ended.
type Remote interface {
	// Receive gets a result, a replay or a status from the card. It runs in the goroutine that reads
	// the link: it must return soon. The frame is valid until then.
	Receive(f *frame.Frame)

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
	job    *Job
	remote Remote

	// Guarded by Card.mu.
	queue []*relayed
	first uint32 // where the next epoch begins
}

// relayed is a batch of frames on its way to the card.
type relayed struct {
	frames []byte
	taken  chan bool // capacity 1: whether the link has taken them
}

// ConfigureRelay is Configure for a job whose members are in other processes, which remote reaches.
// OnOverdue is not called: the members get the card's notices.
func (c *Card) ConfigureRelay(ctx context.Context, cfg JobConfig, remote Remote) (*Relay, error) {
	if c.arrays != nil {
		return nil, &InputError{"relay", "card " + c.name + " takes arrays, not frames"}
	}
	r := &Relay{remote: remote, first: cfg.FirstVID}
	job, err := c.configure(ctx, cfg, r)
	if err != nil {
		return nil, err
	}
	r.job = job
	return r, nil
}

// Job returns the job, with its number, epoch and parameters. Calls of its members fail.
func (r *Relay) Job() *Job { return r.job }

// Send sends whole frames of members to the card, and returns when the link has taken them. frames
// should be at most 64 KiB: jobs, and the senders of a job, take turns by batches. Send reports
// false when the job has ended or waits for its card: the frames are dropped.
func (r *Relay) Send(frames []byte) bool {
	c := r.job.card
	s := &relayed{frames: frames, taken: make(chan bool, 1)}
	c.mu.Lock()
	if r.job.ended || c.away != nil || c.link.err != nil {
		c.mu.Unlock()
		return false
	}
	r.queue = append(r.queue, s)
	c.mu.Unlock()
	c.kick()
	return <-s.taken
}

// Finish ends the job on this host: the card has confirmed that all members have finished.
func (r *Relay) Finish() {
	r.job.end(nil)
}

// appendQueued appends the next batch, if there is one.
func (r *Relay) appendQueued(buf []byte) []byte {
	if len(r.queue) == 0 {
		return buf
	}
	s := r.queue[0]
	r.queue = r.queue[1:]
	buf = append(buf, s.frames...)
	s.taken <- true
	return buf
}

// drop drops the batches that the link has not taken.
func (r *Relay) drop() {
	for _, s := range r.queue {
		s.taken <- false
	}
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
