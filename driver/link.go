package driver

// The two goroutines of a card: one reads its link, one writes it. The reader
// takes the mutex for no longer than a frame and never writes, so the link is
// always read, whatever the writer waits for.

import (
	"math"
	"sync"
	"time"

	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// link is one connection to the card. A card whose job carries on has several,
// one after another.
type link struct {
	conn     transport.Conn
	expected expecter       // nil when any configuration hash will do
	over     chan struct{}  // closed when err is set
	running  sync.WaitGroup // its reader and its writer
	ending   sync.Once
	ended    error // what end answers

	// Guarded by Card.mu.
	err    error // why it is over
	opened bool  // the card that it leads to is identified and owned
	stats  LinkStats
}

// attach makes conn the link to the card.
func (c *Card) attach(conn transport.Conn) *link {
	l := &link{conn: conn, over: make(chan struct{})}
	l.expected, _ = conn.(expecter)
	if c.record != nil {
		l.conn = c.record(conn)
	}
	c.mu.Lock()
	if c.link != nil {
		c.past = c.past.plus(c.link.stats)
	}
	c.link = l
	c.noteDroppedLocked()
	if c.err != nil {
		l.overLocked(c.err) // closed meanwhile
	}
	c.mu.Unlock()
	l.running.Add(2)
	go c.read(l)
	go c.write(l)
	return l
}

// end closes the link, waits until nobody uses it any more, and returns what
// closing it said, also when it is called again.
func (l *link) end() error {
	l.ending.Do(func() {
		l.ended = l.conn.Close()
		l.running.Wait()
	})
	return l.ended
}

func (l *link) overLocked(err error) {
	if l.err == nil {
		l.err = err
		close(l.over)
	}
}

// lose notes that a link is over because the card behind it died. Unless a job is
// to carry on, that is the card's end; the jobs that are not end in any case.
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
	case c.away != nil: // tryAgain has opened it, and sees to it
	case c.anyCarriesOn():
		c.away = newAway(died)
		for j := range c.jobs() {
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

// refuse notes that a link leads to a card with which this driver cannot talk.
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

// batchBytes is how much the writer gathers before it writes: enough to be
// worth a system call, little enough that asks and register accesses, which go
// first, need not wait long.
const batchBytes = 64 << 10

// read receives frames and hands them out until the link ends.
func (c *Card) read(l *link) {
	defer l.running.Done()
	scan := frame.NewScanner(frame.FromCard, 0)
	var f frame.Frame
	var bytes uint64
	for {
		n, err := scan.Fill(l.conn)
		bytes += uint64(n)
		now := time.Now()
		for scan.Next(&f) {
			c.take(&f, now)
		}
		c.noteLink(l, scan, bytes)
		if err != nil {
			c.lose(l, &DiedError{Card: c.name, Err: err})
			return
		}
	}
}

// noteLink publishes the reader's counters. A card of another version is found
// out by them while it is opened.
func (c *Card) noteLink(l *link, scan *frame.Scanner, bytes uint64) {
	s := scan.Stats()
	c.mu.Lock()
	l.stats = LinkStats{
		Frames:     s.Frames,
		Hunted:     s.Hunted,
		HeaderCRC:  s.HeaderCRC,
		PayloadCRC: s.PayloadCRC,
		Refused:    s.BadVersion + s.BadKind + s.BadLength,
		BytesIn:    bytes,
		BytesOut:   l.stats.BytesOut,
	}
	opened := l.opened
	c.mu.Unlock()
	if !opened && s.BadVersion > 0 {
		c.refuse(l, &VersionError{Name: c.name, Got: int(scan.Version()), Want: wire.Version})
	}
}

// take hands one frame to whom it is for, and tells the program what it asked to
// be told of.
func (c *Card) take(f *frame.Frame, now time.Time) {
	c.mu.Lock()
	c.takeLocked(f, now)
	tell := c.tell
	c.tell = nil
	c.mu.Unlock()
	if tell != nil {
		tell()
	}
}

func (c *Card) takeLocked(f *frame.Frame, now time.Time) {
	c.heard = now
	if f.Kind == wire.KindReply {
		if c.accesses.takeReply(&f.Header, now) {
			c.kick()
		}
		return
	}
	if int(f.Job) >= len(c.table) {
		return
	}
	j := c.table[f.Job].job
	if j == nil || f.Epoch != j.epoch {
		return // of a job that has ended
	}
	switch f.Kind {
	case wire.KindResult, wire.KindReplay:
		j.takeResult(f, now)
	case wire.KindStatus:
		j.takeStatus(&f.Header, now)
	}
}

// write sends what there is to send until the link is over.
func (c *Card) write(l *link) {
	defer l.running.Done()
	buf := make([]byte, 0, batchBytes+wire.MaxFrameBytes)
	timer := time.NewTimer(math.MaxInt64)
	for {
		var wait time.Duration
		buf, wait = c.gather(l, buf[:0])
		if len(buf) > 0 {
			n, err := l.conn.Write(buf)
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

// writeGrace is how long the writer, when the link takes no more bytes, leaves
// it to the reader to say why: only it learns what the other side said last.
const writeGrace = 500 * time.Millisecond

func (c *Card) writeFailed(l *link, err error) {
	select {
	case <-l.over:
	case <-time.After(writeGrace):
		c.lose(l, &DiedError{Card: c.name, Err: err})
	}
}

// noteWrite notes that the link has taken what was gathered.
func (c *Card) noteWrite(l *link, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.stats.BytesOut += uint64(n)
	for j := range c.jobs() {
		if j.fresh {
			j.fresh, j.sentData = false, time.Now()
		}
	}
}

// gather appends the frames that are due to buf: register accesses, finishes
// and asks, then data, a frame of each job in turn, until the batch is full. wait
// is how long nothing else is due.
func (c *Card) gather(l *link, buf []byte) (_ []byte, wait time.Duration) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	buf, wait = c.accesses.appendDue(buf, l, now, c.opts.timeout/asksInTimeout)
	if l.err != nil || c.away != nil {
		return buf, wait
	}
	for j := range c.jobs() {
		var w time.Duration
		buf, w = j.appendControl(buf, now)
		wait = min(wait, w)
	}
	for len(buf) < batchBytes && l.err == nil {
		n := len(buf)
		if buf = c.appendTurn(buf, now); len(buf) == n {
			break
		}
	}
	return buf, wait
}

// appendTurn appends a frame of the job whose turn it is, of those that have one
// to send, and nothing when there is none. It gives up the mutex as appendData
// does.
func (c *Card) appendTurn(buf []byte, now time.Time) []byte {
	for n := range c.table {
		number := (c.turn + n) % len(c.table)
		j := c.table[number].job
		if j == nil {
			continue
		}
		size := len(buf)
		if buf = j.appendFrame(buf, now); len(buf) > size {
			c.turn = (number + 1) % len(c.table)
			break
		}
	}
	return buf
}
