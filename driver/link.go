package driver

// The two goroutines of a card: the reader and the writer of its link. The reader holds the
// mutex for at most one frame and never writes. It therefore keeps reading while the writer
// waits.

import (
	"math"
	"slices"
	"sync"
	"time"

	"tributary/driver/daemon/protocol"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/transport/rdma"
	"tributary/driver/wire"
)

// link is one connection to the card. A card with jobs that carry on may have several, one
// after another.
type link struct {
	way      way
	packets  bool                   // the way is that of datagrams
	limits   transport.PacketLimits // of such a way
	expected expecter               // nil when any configuration hash is accepted
	session  session                // nil when this program owns the card
	rdma     rdma.Stack             // of the machine, for jobs of RDMA connections; nil without
	network  string                 // the card's name for members elsewhere; empty if it is not on a network
	blocks   *blocks                // of a shared card that takes arrays
	relayed  *batch                 // what a relay's sender writes by itself; the holder of writing uses it
	over     chan struct{}          // closed when err is set
	running  sync.WaitGroup         // the reader and the writer
	ending   sync.Once
	ended    error // the result of end

	// Guarded by Card.mu.
	err     error // why the link has ended
	opened  bool  // the card is identified and owned
	stats   LinkStats
	writing bool // somebody writes to conn, or gathers what to write
	turned  bool // the writer waits for the end of a write that is not its own
	lease   lease
}

// attach makes conn the card's link.
func (c *Card) attach(conn transport.Link) *link {
	l := &link{over: make(chan struct{}), lease: lease{soon: make(chan struct{}, 1)}}
	l.expected, _ = conn.(expecter)
	if n, ok := conn.(networked); ok {
		l.network = n.Network()
	}
	if l.session, _ = conn.(session); l.session != nil {
		l.blocks = newBlocks(l.session)
	}
	if r, ok := conn.(interface{ RDMA() rdma.Stack }); ok {
		l.rdma = r.RDMA()
	}
	l.way, l.packets = c.wayOf(conn)
	if l.packets {
		l.limits, l.relayed = conn.(transport.PacketConn).Limits(), newBatch(true)
	}
	c.mu.Lock()
	if c.link != nil {
		c.past = c.past.plus(c.link.stats)
	}
	c.link = l
	c.noteDroppedLocked()
	if c.err != nil {
		l.overLocked(c.err) // the card was closed meanwhile
	}
	c.mu.Unlock()
	l.running.Add(2)
	go c.read(l)
	go c.write(l)
	if l.session != nil {
		l.session.Listen(func(m *protocol.ToClient) { c.hear(l, m) })
	}
	return l
}

// end closes the link and waits until nobody uses it. It returns the error of closing it, also
// when it is called again.
func (l *link) end() error {
	l.ending.Do(func() {
		l.ended = l.way.Close()
		l.running.Wait()
		if l.session != nil {
			l.session.Release()
		}
	})
	return l.ended
}

func (l *link) overLocked(err error) {
	if l.err == nil {
		l.err = err
		close(l.over)
	}
}

// lose ends a link because the card died. The card is gone too, unless a job has CarryOn, or the driver
// looks for the card in any case. Jobs without CarryOn end.
func (c *Card) lose(l *link, died *DiedError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loseLocked(l, died)
}

func (c *Card) loseLocked(l *link, died *DiedError) {
	if l.err != nil {
		return
	}
	l.overLocked(died)
	switch {
	case c.away != nil: // the link is tryAgain's, which handles its end
	case c.anyCarriesOn() || c.reopens():
		c.away = newAway(died)
		for j := range c.jobs() {
			if j.relay != nil {
				j.relay.drop()
			}
			if j.cfg.CarryOn > 0 {
				j.outage.begin(c.away.went, j.cfg.CarryOn)
			} else {
				j.endLocked(died)
			}
		}
		c.carrying.Add(1)
		go c.carryOn(l, c.away)
	default:
		c.failLocked(died)
	}
}

// refuse ends a link to a card that this driver cannot use.
func (c *Card) refuse(l *link, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.overLocked(err)
	if c.away == nil {
		c.failLocked(err)
	}
}

func (c *Card) currentLink() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// read receives frames and passes them on until the link ends.
func (c *Card) read(l *link) {
	defer l.running.Done()
	var f frame.Frame
	var bytes uint64
	var relays []*Relay // that have got frames of this read
	for {
		n, err := l.way.fill()
		bytes += uint64(n)
		now := time.Now()
		for l.way.next(&f) {
			if r := c.take(l, &f, now); r != nil && !slices.Contains(relays, r) {
				relays = append(relays, r)
			}
		}
		c.noteLink(l, bytes)
		for _, r := range relays {
			r.remote.Flush()
		}
		clear(relays)
		relays = relays[:0]
		if err != nil {
			c.lose(l, &DiedError{Card: c.name, Err: err})
			return
		}
	}
}

// noteLink publishes the reader's counters, and wakes the writer once for all frames of a read that
// gave it work. During Open the counters reveal a card of another protocol version.
func (c *Card) noteLink(l *link, bytes uint64) {
	s := l.way.stats()
	s.BytesIn = bytes
	c.mu.Lock()
	s.BytesOut = l.stats.BytesOut
	l.stats = s
	opened, due := l.opened, c.due
	c.due = false
	c.mu.Unlock()
	if due {
		c.kick()
	}
	if version, ok := l.way.foreign(); ok && !opened {
		c.refuse(l, &VersionError{Name: c.name, Got: version, Want: wire.Version})
	}
}

// take passes one frame to its receiver, and then calls back into the program if the frame
// requires it. It returns the relay that has got the frame, if one has.
func (c *Card) take(l *link, f *frame.Frame, now time.Time) *Relay {
	c.mu.Lock()
	relay := c.takeLocked(f, now)
	tell := c.tell
	c.tell = nil
	c.mu.Unlock()
	if tell != nil {
		c.kick() // the program may take its time
		tell()
	}
	if relay != nil {
		if l.packets {
			relay.reframe(f)
		}
		relay.remote.Receive(f)
	}
	return relay
}

// takeLocked is take under the lock. It returns the relay to the frame's receivers, if they are in
// other processes.
func (c *Card) takeLocked(f *frame.Frame, now time.Time) *Relay {
	c.heard = now
	if f.Kind == wire.KindReply {
		if c.accesses.takeReply(&f.Header, now) {
			c.due = true
		}
		return nil
	}
	if int(f.Job) >= len(c.table) {
		return nil
	}
	j := c.table[f.Job].job
	if j == nil || f.Epoch != j.epoch || j.stopped || j.finish.confirmed {
		return nil // of a job or an epoch that has ended, for this card's members at least
	}
	if j.relay != nil {
		j.heardOf()
		return j.relay
	}
	switch f.Kind {
	case wire.KindResult, wire.KindReplay:
		j.takeResult(f, now)
	case wire.KindStatus:
		j.takeStatus(&f.Header, now)
	}
	return nil
}

// write sends due frames until the link has ended.
func (c *Card) write(l *link) {
	defer l.running.Done()
	out := newBatch(l.packets)
	timer := time.NewTimer(math.MaxInt64)
	for {
		out.clear()
		wait := c.gather(l, out)
		if !out.empty() {
			n, err := l.way.send(out)
			c.noteWrite(l, n)
			if err != nil {
				c.writeFailed(l, err)
				return
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-c.wake:
		case <-timer.C:
		case <-l.over:
			return
		}
	}
}

// writeGrace is how long a failed writer lets the reader report the error first. Only the
// reader sees what the other side sent last.
const writeGrace = 500 * time.Millisecond

func (c *Card) writeFailed(l *link, err error) {
	select {
	case <-l.over:
	case <-time.After(writeGrace):
		c.lose(l, &DiedError{Card: c.name, Err: err})
	}
}

// writeNow writes a batch of a relay, whose sender has found the link free. It reports whether the link
// has taken it.
func (c *Card) writeNow(l *link, out *batch) bool {
	defer l.running.Done()
	n, err := l.way.send(out)
	c.noteWrite(l, n)
	if err != nil {
		c.writeFailed(l, err)
		return false
	}
	return true
}

// noteWrite records that the link has taken bytes, and lets others write.
func (c *Card) noteWrite(l *link, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.stats.BytesOut += uint64(n)
	l.writing = false
	if l.turned {
		l.turned = false
		c.kick()
	}
	for j := range c.jobs() {
		if j.fresh {
			j.fresh, j.sentData = false, time.Now()
		}
	}
}

// gather adds what is due to a batch until it is full. Register accesses, finishes and asks go first,
// then data, a packet of each job in turn. wait is how long nothing else is due. The link is the
// writer's from then on, if there is something to write.
func (c *Card) gather(l *link, out *batch) (wait time.Duration) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.writing {
		l.turned = true
		return longestWait
	}
	l.writing = true
	wait = c.gatherLocked(l, out, now)
	l.writing = !out.empty()
	return wait
}

// gatherLocked is gather under the lock. It releases the mutex as addData does.
func (c *Card) gatherLocked(l *link, out *batch, now time.Time) (wait time.Duration) {
	wait = c.accesses.addDue(out, l, now, c.opts.timeout/asksInTimeout)
	if l.err != nil || c.away != nil {
		return wait
	}
	for j := range c.jobs() {
		if !j.stopped {
			wait = min(wait, j.addControl(out, now))
		}
	}
	for !out.full() && l.err == nil && c.addTurn(out, now) {
	}
	return wait
}

// addTurn adds a packet of the next job that has one to send, and reports whether there is one. It
// releases the mutex as addData does.
func (c *Card) addTurn(out *batch, now time.Time) bool {
	for n := range c.table {
		number := (c.turn + n) % len(c.table)
		j := c.table[number].job
		if j != nil && !j.stopped && j.addPacket(out, now) {
			c.turn = (number + 1) % len(c.table)
			return true
		}
	}
	return false
}
