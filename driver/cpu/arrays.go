package cpu

import (
	"math/bits"
	"slices"

	"tributary/driver/schedule"
	"tributary/driver/wire"
)

// This file is the front of a card for members in this process: they hand over whole arrays. No
// frame is built, no CRC is computed, and no contribution is copied.
//
// A call of members is an Exchange. The card cuts its arrays into chunks, and commits them to the
// slots by the same rules as data from a link (offer.go). Where all members of a job have handed
// over their arrays and no slot waits, the chunks need no slots: several goroutines sum them
// straight from array to array, and the slots are then set as if the chunks had passed them
// (rounds.go). A contribution enters at the clock of its hand-over; arrays take no beats.
//
// The chunks of a tree job pass the slots. Nothing repeats an own sum that was lost on the way to the
// parent: repeats of data and asks do that, and arrays have none.

// Observer receives what becomes of an Exchange. The card calls it without holding its lock, from
// several goroutines.
type Observer interface {
	// Summed reports that the chunks first to first+chunks-1 of the arrays have their sums, with
	// the contributions of ranks. Every chunk is reported once, in any order, also those that were
	// being summed when the exchange was refused or withdrawn. The job has evicted the ranks in
	// evicted by then; the last of them blocked the slot of vid.
	Summed(first, chunks int, ranks, evicted uint64, vid uint32)
	// Refused reports that the card does not take the contribution of a rank for a chunk. The
	// card begins nothing more for the exchange.
	Refused(rank int, vid uint32, code wire.Code)
}

// Exchange is one reduction by members of a job. The caller sets the exported fields, and leaves
// them and the arrays alone from Begin until Withdraw returns. It may be used again then.
type Exchange struct {
	Job      uint8
	Epoch    uint16
	Ranks    uint64        // the members, by rank
	Inputs   [][]byte      // their arrays in the card's format, in the order of ranks
	Sum      []byte        // in the result format; it is an array of the inputs, or overlaps none
	Elements int           // of each array that take part
	View     schedule.View // the chunks of the arrays that take part; they have Elements elements
	Chunk    int           // elements in a chunk of the job
	First    uint32        // VID of chunk 0
	Observer Observer

	// Guarded by Card.mu.
	active  bool
	users   int    // rounds and reports that use it
	chunks  int    // of each array
	low     int    // first chunk without a sum
	next    int    // first chunk that some member has not offered
	turn    int    // index of the member that offers it next
	got     []bool // chunk i has its sum: at i mod window, for low <= i < low+window
	reports []report
}

// report is a call of Observer that is due.
type report struct {
	first, chunks int
	ranks         uint64
	evicted       uint64
	refused       bool
	rank          int
	vid           uint32
	code          wire.Code
}

// Begin hands over the arrays of an exchange. Its observer may be called before Begin returns.
func (c *Card) Begin(x *Exchange) {
	c.lock()
	defer c.unlock()
	c.catchUp()
	x.active = true
	x.chunks = (x.Elements + x.Chunk - 1) / x.Chunk
	x.low, x.next, x.turn = 0, 0, 0
	x.reports = x.reports[:0]
	window := int(c.engine.jobOf(x.Job).setup.window)
	if len(x.got) != window {
		x.got = make([]bool, window)
	}
	clear(x.got)
	c.exchanges = append(c.exchanges, x)
}

// catchUp advances the clock of a served card to real time.
func (c *Card) catchUp() {
	if c.session != nil {
		c.session.clock.sync(c.engine)
	}
}

// Withdraw ends an exchange, whether it is complete or not. When it returns, the card does not use
// its arrays any more, nor call its observer. Contributions that were committed stay committed.
func (c *Card) Withdraw(x *Exchange) {
	c.lock()
	defer c.unlock()
	c.drop(x)
	for x.users > 0 {
		c.unused.Wait()
	}
}

// Detach makes an exchange independent of its caller's arrays. It copies the inputs that the card
// still needs, drops the sums, and reports to another observer from then on. When it returns, the
// card does not use the caller's arrays, nor call the observer before.
func (c *Card) Detach(x *Exchange, observer Observer) {
	c.lock()
	defer c.unlock()
	for x.users > 0 {
		if r := c.engine.jobOf(x.Job).round; r != nil && slices.Contains(r.exchanges, x) {
			r.stop()
		}
		c.unused.Wait()
	}
	x.Observer = observer
	if !x.active {
		return
	}
	c.keepParts(x)
	inputs := make([][]byte, len(x.Inputs))
	for i, in := range x.Inputs {
		inputs[i] = make([]byte, len(in))
		if from := x.View.Chunk(x.low) * x.Chunk * c.engine.elementBytes; from < len(in) {
			copy(inputs[i][from:], in[from:])
		}
	}
	x.Inputs, x.Sum = inputs, make([]byte, len(x.Sum))
}

// Missing returns the ranks whose contributions the first chunk without a sum waits for.
func (c *Card) Missing(x *Exchange) (ranks uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobOf(x)
	if !x.active || j == nil {
		return 0
	}
	s, vid := j.slot(x.vid(x.low)), x.vid(x.low)
	switch {
	case s.vid == vid && s.state == collecting:
		return j.members &^ s.held
	case s.vid == vid-2*j.window() && s.state == reduced:
		return j.members &^ s.done
	}
	return 0
}

// jobOf returns the job of an exchange, or nil if that is not set up any more.
func (c *Card) jobOf(x *Exchange) *job {
	j := c.engine.jobOf(x.Job)
	if int(x.Job) >= len(c.engine.jobs) || !j.running || j.epoch != x.Epoch {
		return nil
	}
	return j
}

// drop removes an exchange from those of the card.
func (c *Card) drop(x *Exchange) {
	if !x.active {
		return
	}
	x.active = false
	i := slices.Index(c.exchanges, x)
	c.exchanges = slices.Delete(c.exchanges, i, i+1)
	if r := c.engine.jobOf(x.Job).round; r != nil && slices.Contains(r.exchanges, x) {
		r.stop()
	}
	c.keepParts(x)
}

// keepParts gives the slots copies of what they hold of an exchange.
func (c *Card) keepParts(x *Exchange) {
	j := c.jobOf(x)
	if j == nil {
		return
	}
	for i := x.low; i <= x.next && i < x.chunks; i++ {
		if s := j.slot(x.vid(i)); s.vid == x.vid(i) && s.state == collecting {
			c.engine.keepAll(s, x.Ranks)
		}
	}
}

// keepAll copies the contributions of ranks that a slot holds by reference.
func (e *engine) keepAll(s *slot, ranks uint64) {
	for held := s.held & ranks; held != 0; held &= held - 1 {
		port := int(s.job.portOf[bits.TrailingZeros64(held)])
		s.rows[port] = e.keep(place{slot: s, port: port}, s.rows[port])
	}
}

// unlockAndReport releases the lock of the card and makes the calls of observers that are due.
func (c *Card) unlockAndReport() {
	for len(c.reporting) > 0 {
		x := c.reporting[len(c.reporting)-1]
		c.reporting = c.reporting[:len(c.reporting)-1]
		r := x.reports[0]
		x.reports = x.reports[:copy(x.reports, x.reports[1:])]
		c.mu.Unlock()
		if r.refused {
			x.Observer.Refused(r.rank, r.vid, r.code)
		} else {
			x.Observer.Summed(r.first, r.chunks, r.ranks, r.evicted, r.vid)
		}
		c.mu.Lock()
		c.release(x)
	}
	c.mu.Unlock()
}

// report notes a call of the exchange's observer that is due.
func (c *Card) report(x *Exchange, r report) {
	if n := len(x.reports); n > 0 && !r.refused && !x.reports[n-1].refused &&
		x.reports[n-1].ranks == r.ranks && x.reports[n-1].evicted == r.evicted && x.reports[n-1].first+x.reports[n-1].chunks == r.first {
		x.reports[n-1].chunks += r.chunks
		return
	}
	x.users++
	x.reports = append(x.reports, r)
	c.reporting = append(c.reporting, x)
}

// release ends one use of an exchange.
func (c *Card) release(x *Exchange) {
	if x.users--; x.users == 0 {
		c.unused.Broadcast()
	}
}

// vid returns the VID of chunk i.
func (x *Exchange) vid(i int) uint32 { return x.First + uint32(i) }

// part returns chunk i of an array with elements of size bytes. The last chunk may be shorter.
func (x *Exchange) part(array []byte, i, size int) []byte { return x.run(array, i, 1, size) }

// run returns n chunks from chunk i on, which adjoin in the array.
func (x *Exchange) run(array []byte, i, n, size int) []byte {
	at := x.View.Chunk(i) * x.Chunk
	return array[at*size : (at+min(n*x.Chunk, x.Elements-i*x.Chunk))*size]
}
