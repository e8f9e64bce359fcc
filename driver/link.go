package driver

// The two goroutines of a card: one reads its link, one writes it. The reader
// takes the mutex for no longer than a frame and never writes, so the link is
// always read, whatever the writer waits for.

import (
	"math"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// batchBytes is how much the writer gathers before it writes: enough to be
// worth a system call, little enough that asks and register accesses, which go
// first, need not wait long.
const batchBytes = 64 << 10

// read receives frames and hands them out until the link ends.
func (c *Card) read() {
	defer c.running.Done()
	scan := frame.NewScanner(frame.FromCard, 0)
	var f frame.Frame
	var bytes uint64
	for {
		n, err := scan.Fill(c.conn)
		bytes += uint64(n)
		now := time.Now()
		for scan.Next(&f) {
			c.take(&f, now)
		}
		c.noteLink(scan, bytes)
		if err != nil {
			c.fail(&DiedError{Card: c.name, Err: err})
			return
		}
	}
}

// noteLink publishes the reader's counters. A card of another version is found
// out by them while it is opened.
func (c *Card) noteLink(scan *frame.Scanner, bytes uint64) {
	s := scan.Stats()
	c.mu.Lock()
	c.link = LinkStats{
		Frames:     s.Frames,
		Hunted:     s.Hunted,
		HeaderCRC:  s.HeaderCRC,
		PayloadCRC: s.PayloadCRC,
		Refused:    s.BadVersion + s.BadKind + s.BadLength,
		BytesIn:    bytes,
		BytesOut:   c.link.BytesOut,
	}
	opened := c.opened
	c.mu.Unlock()
	if !opened && s.BadVersion > 0 {
		c.fail(&VersionError{Name: c.name, Got: int(scan.Version()), Want: wire.Version})
	}
}

// take hands one frame to whom it is for.
func (c *Card) take(f *frame.Frame, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = now
	if f.Kind == wire.KindReply {
		c.access.takeReply(&f.Header)
		return
	}
	j := c.job
	if j == nil || f.Job != j.number || f.Epoch != j.epoch {
		return // of a job that has ended
	}
	switch f.Kind {
	case wire.KindResult, wire.KindReplay:
		j.takeResult(f, now)
	case wire.KindStatus:
		j.takeStatus(&f.Header, now)
	}
}

// write sends what there is to send until the card is gone.
func (c *Card) write() {
	defer c.running.Done()
	buf := make([]byte, 0, batchBytes+wire.MaxFrameBytes)
	timer := time.NewTimer(math.MaxInt64)
	for {
		var fresh bool
		var wait time.Duration
		buf, fresh, wait = c.gather(buf[:0])
		if len(buf) > 0 {
			n, err := c.conn.Write(buf)
			c.noteWrite(n, fresh)
			if err != nil {
				c.writeFailed(err)
				return
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-c.wake:
		case <-timer.C:
		case <-c.done:
			return
		}
	}
}

// writeGrace is how long the writer, when the link takes no more bytes, leaves
// it to the reader to say why: only it learns what the other side said last.
const writeGrace = 500 * time.Millisecond

func (c *Card) writeFailed(err error) {
	select {
	case <-c.done:
	case <-time.After(writeGrace):
		c.fail(&DiedError{Card: c.name, Err: err})
	}
}

func (c *Card) noteWrite(n int, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link.BytesOut += uint64(n)
	if fresh {
		c.sentData = time.Now()
	}
}

// gather appends the frames that are due to buf: register accesses, finishes
// and asks, then data until the batch is full. fresh says whether there is data
// among them that was never sent before. wait is how long nothing else is due.
func (c *Card) gather(buf []byte) (_ []byte, fresh bool, wait time.Duration) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.access.due {
		c.access.due = false
		buf = frame.Append(buf, &c.access.header, nil)
	}
	j := c.job
	if j == nil {
		return buf, false, math.MaxInt64
	}
	buf, wait = j.appendControl(buf, now)
	for len(buf) < batchBytes && c.job == j {
		n := len(buf)
		if buf = j.appendResend(buf); len(buf) > n {
			continue
		}
		if buf = j.appendData(buf, now); len(buf) == n {
			break
		}
		fresh = true
	}
	return buf, fresh, wait
}
