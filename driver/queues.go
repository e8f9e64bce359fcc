package driver

// Jobs of RDMA connections, on a card under RoCEv2 that a daemon shares (daemon/SPEC.md, section 14). The
// data of a member's calls goes over its queue pairs, whole arrays at a time. Card.mu guards everything.

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tributary/driver/daemon/protocol"
	"tributary/driver/element"
	"tributary/driver/transport/rdma"
	"tributary/driver/wire"
)

// pair is a member's queue pairs, from its Join to the end of its job.
type pair struct {
	queues  rdma.QueuePairs
	life    context.Context // ends with the job
	end     context.CancelFunc
	agreed  chan struct{} // capacity 1: calls may go on
	running sync.WaitGroup
}

// overQueues reports whether the job's data goes over queue pairs.
func (j *Job) overQueues() bool { return j.seats != nil && j.seats.queues }

// checkQueues rejects a job on a card under RoCEv2 without an RDMA stack, and the reverse.
func (c *Card) checkQueues(l *link) error {
	switch under := c.info.Shell == wire.ShellRoCE; {
	case under && l.rdma == nil:
		return &InputError{"job", fmt.Sprintf("card %s sums what RDMA connections carry; open it as roce:, in a program with package tributary/driver/roce", c.name)}
	case !under && l.rdma != nil:
		return &InputError{"job", fmt.Sprintf("card %s has shell %s, not roce; open it as serve:", c.name, c.info.Shell)}
	}
	return nil
}

// withMTU returns cfg with chunks of the RDMA stack's MTU, if it has no size and there is a stack.
func (c *Card) withMTU(cfg JobConfig) JobConfig {
	if l := c.currentLink(); l.rdma != nil && cfg.Chunk == 0 {
		cfg.Chunk = min(l.rdma.MTU()/element.Size(c.info.Format), c.info.Chunk)
	}
	return cfg
}

// connectMember makes the queue pairs of a member that has got its seat, and tells the daemon. If that fails,
// the member gives its seat back.
func (c *Card) connectMember(ctx context.Context, l *link, m *Member) error {
	j := m.job
	queues, err := l.rdma.Open(ctx, rdma.Job{Ranks: j.cfg.Workers, MTU: j.cfg.Chunk * element.Size(c.info.Format), Window: j.cfg.Window})
	if err == nil {
		if err = m.takePair(queues); err == nil {
			_, err = c.ask(ctx, l, "connection of a rank", nil, func(number uint64) *protocol.ToDaemon {
				return &protocol.ToDaemon{Message: &protocol.ToDaemon_Connect{Connect: &protocol.Connect{
					Request: number, Nonce: j.seats.nonce, Rank: uint32(m.rank), Connection: queues.Connection()}}}
			})
		}
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		m.giveBack(err)
	}
	return err
}

// takePair gives a member its queue pairs, unless its job has ended.
func (m *Member) takePair(queues rdma.QueuePairs) error {
	j := m.job
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if j.ended {
		_ = queues.Close() // the job's error counts
		return j.endedError()
	}
	m.pair = &pair{queues: queues, agreed: make(chan struct{}, 1)}
	m.pair.life, m.pair.end = context.WithCancel(context.Background())
	return nil
}

// giveBack gives back the seat of a member that could not connect. Its job ends here if it has no other one.
func (m *Member) giveBack(err error) {
	j := m.job
	if j.ended {
		return
	}
	m.part()
	j.tell(leaveOf(j.seats.nonce, uint32(m.rank)))
	if j.here &^= 1 << m.rank; j.here == 0 {
		j.seats.over = true // for this process; others wait for the rank
		j.endLocked(err)
	}
}

// part removes a member's queue pairs, in the background, and tells the daemon.
func (m *Member) part() {
	p, j := m.pair, m.job
	if p == nil {
		return
	}
	m.pair = nil
	p.end()
	session := j.card.link.session
	j.card.parting.Go(func() {
		p.running.Wait()
		if p.queues.Close() == nil { // else they may live
			session.Tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Disconnected{Disconnected: &protocol.Disconnected{Nonce: j.seats.nonce, Rank: uint32(m.rank)}}})
		}
	})
}

// connectPairs connects the queue pairs of the members here, and lets their calls begin.
func (j *Job) connectPairs(ends []*protocol.Connection) {
	if !j.overQueues() {
		return
	}
	ranks := len(j.members)
	if len(ends) != ranks {
		j.endLocked(fmt.Errorf("the daemon began the job with %d connections for %d ranks", len(ends), ranks))
		return
	}
	for _, m := range j.members {
		if p := m.pair; p != nil {
			p.running.Go(func() { m.carry(p, ends[(m.rank+ranks-1)%ranks], ends[(m.rank+1)%ranks]) })
		}
	}
}

// wakePairs lets members look for calls that may go on.
func (j *Job) wakePairs() {
	for _, m := range j.members {
		if m.pair != nil {
			select {
			case m.pair.agreed <- struct{}{}:
			default:
			}
		}
	}
}

// carry carries the arrays of a member's calls over its queue pairs, until its job ends.
func (m *Member) carry(p *pair, previous, next *protocol.Connection) {
	err := p.queues.Connect(previous, next)
	var in, out []byte
	for err == nil && p.life.Err() == nil {
		var ok bool
		if in, ok = m.nextArray(in); !ok {
			select {
			case <-p.agreed:
			case <-p.life.Done():
			}
			continue
		}
		if cap(out) < len(in) {
			out = make([]byte, len(in))
		}
		if err = p.queues.Reduce(p.life, in, out[:len(in)]); err == nil {
			m.takeSums(out[:len(in)])
		}
	}
	if err != nil && p.life.Err() == nil {
		m.reportFailure(err)
	}
}

// reportFailure tells the daemon that the member's queue pairs have failed. The daemon ends the job for all
// ranks, with the same error.
func (m *Member) reportFailure(err error) {
	j := m.job
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	j.tell(&protocol.ToDaemon{Message: &protocol.ToDaemon_Failed{Failed: &protocol.Failed{Nonce: j.seats.nonce, Rank: uint32(m.rank), Text: err.Error()}}})
}

// nextArray copies the array of the member's next call into buffer, if all ranks have come to that call;
// else ok is false.
func (m *Member) nextArray(buffer []byte) (array []byte, ok bool) {
	j, f := m.job, m.own
	c := j.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(f.calls) == 0 || j.stopped || j.awaitsAgreedEnd(f.calls[0]) {
		return buffer, false
	}
	k := f.calls[0]
	j.sentData = time.Now()
	m.stats.Sent += uint64(k.chunks)
	f.handing = true
	c.mu.Unlock()
	buffer = k.gather(buffer[:0], k.inputs[0], k.from, k.chunks, j.inBytes)
	c.mu.Lock()
	f.handing = false
	c.unpinned.Broadcast()
	return buffer, true
}

// awaitsAgreedEnd reports whether not all ranks have announced a call.
func (j *Job) awaitsAgreedEnd(k *call) bool {
	agreed := j.seats.agreed
	return agreed == nil || int32(*agreed-k.flow.vid(k.end())) < 0
}

// takeSums completes the call of the array that nextArray has returned, unless the job has ended meanwhile. The
// call may be another object by now, if its caller has detached it. takeSums releases the mutex while it copies.
func (m *Member) takeSums(sums []byte) {
	j, f := m.job, m.own
	c := j.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(f.calls) == 0 {
		return
	}
	k := f.calls[0]
	if k.dst != nil {
		f.handing = true
		c.mu.Unlock()
		k.scatter(k.from, k.chunks, sums)
		c.mu.Lock()
		f.handing = false
		c.unpinned.Broadcast()
		k.mark(0, k.chunks)
	}
	if !k.active {
		return
	}
	m.stats.Results += uint64(k.chunks)
	f.held += k.chunks
	f.low, f.next, f.moved = f.held, f.held, time.Now()
	f.settle()
	f.noteProgress()
}
