package cpu

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"tributary/driver/cpu/arithmetic"
	"tributary/driver/wire"
)

// A round is cut into tiles of about tileElements elements, which goroutines take in turn. It has
// at most roundTiles tiles for each goroutine, so that progress shows and a call can be stopped.
const (
	tileElements = 16 << 10
	roundTiles   = 16
)

// round is a run of chunks that all members of a job have handed over: goroutines sum them from
// the members' arrays into their sums.
type round struct {
	card      *Card
	job       *job
	epoch     uint16
	members   uint64
	first     uint32 // VID
	chunks    int
	chunk     int // elements
	perTile   int // chunks
	tiles     int
	exchanges []*Exchange
	lows      []int               // by exchange: the round's first chunk
	rows      [wire.MaxPorts]part // the members' arrays by port
	workers   []*worker

	next    atomic.Int64 // first tile that nobody has taken
	stopped atomic.Int64 // tiles from there on are not summed
	left    atomic.Int64 // goroutines that may still sum a tile of it

	mu     sync.Mutex
	events []event // of chunks with exceptions, in no order
}

// part is a member's array in a round.
type part struct {
	array    []byte
	exchange int // index of its exchange
}

// event is what a chunk of a round has to report.
type event struct {
	chunk int
	arithmetic.Exceptions
}

// aligned reports whether all members of a job have handed over their next chunks, at the same VID,
// and no slot waits. Chunks then need no slots.
func (c *Card) aligned(j *job) bool {
	var ranks uint64
	var vid uint32
	for _, x := range c.exchanges {
		if c.jobOf(x) != j {
			continue
		}
		if x.low != x.next || x.turn != 0 || ranks != 0 && x.vid(x.low) != vid {
			return false
		}
		ranks |= x.Ranks
		vid = x.vid(x.low)
	}
	return ranks != 0 && j.members&^ranks == 0 && j.turnable(vid)
}

// turnable reports whether the job's slots hold the VIDs before vid, and none waits for a
// contribution or a sum.
func (j *job) turnable(vid uint32) bool {
	count := uint32(len(j.slots))
	for i := range count {
		v := vid + i
		if s := j.slot(v); s.vid != v-count || s.state == collecting || s.state == reducing {
			return false
		}
	}
	return true
}

// beginRound begins a round of a job if its members' arrays are aligned. The sums of a tree job need
// slots, because they wait for the parent.
func (c *Card) beginRound(j *job) {
	if !j.running || j.round != nil || j.isTree() || !c.aligned(j) {
		return
	}
	workers := runtime.GOMAXPROCS(0)
	r := &j.rounds
	r.card, r.job, r.epoch, r.members, r.chunk = c, j, j.epoch, j.members, int(j.setup.chunk)
	r.perTile = max(1, tileElements/r.chunk)
	r.chunks = r.perTile * roundTiles * workers
	r.exchanges = r.exchanges[:0]
	for _, x := range c.exchanges {
		if c.jobOf(x) == j {
			r.exchanges = append(r.exchanges, x)
			r.chunks = min(r.chunks, x.chunks-x.low)
		}
	}
	if !r.lastsFit() {
		r.chunks-- // the slots pad the last chunk of the shorter arrays
	}
	if r.chunks == 0 {
		return
	}
	r.takeArrays()
	r.tiles = (r.chunks + r.perTile - 1) / r.perTile
	workers = min(workers, r.tiles)
	r.next.Store(0)
	r.stopped.Store(int64(r.tiles))
	r.left.Store(int64(workers))
	r.events = r.events[:0]
	j.round = r
	for len(r.workers) < workers {
		r.workers = append(r.workers, newWorker(r))
	}
	for _, w := range r.workers[:workers] {
		go w.run()
	}
}

// takeArrays notes the arrays of the round's exchanges.
func (r *round) takeArrays() {
	r.first = r.exchanges[0].vid(r.exchanges[0].low)
	r.lows = r.lows[:0]
	for n, x := range r.exchanges {
		x.users++
		r.lows = append(r.lows, x.low)
		for at, ranks := 0, x.Ranks; ranks != 0; at, ranks = at+1, ranks&(ranks-1) {
			if rank := bits.TrailingZeros64(ranks); r.members&bit(uint8(rank)) != 0 {
				r.rows[r.job.portOf[rank]] = part{x.Inputs[at], n}
			}
		}
	}
}

// lastsFit reports whether the round's last chunk has the same length in all arrays.
func (r *round) lastsFit() bool {
	length := func(x *Exchange) int { return min(r.chunk, x.Elements-(x.low+r.chunks-1)*r.chunk) }
	for _, x := range r.exchanges {
		if length(x) != length(r.exchanges[0]) {
			return false
		}
	}
	return true
}

// stop ends the round early: the tiles that are taken are summed, and no others.
func (r *round) stop() {
	taken := r.next.Swap(int64(r.tiles))
	if taken < r.stopped.Load() {
		r.stopped.Store(taken)
	}
}

// worker is a goroutine that sums tiles of its round, and its memory.
type worker struct {
	round *round
	run   func() // work
	space arithmetic.Workspace
	rows  [wire.MaxPorts][]byte
	tile  int
	from  int                                      // the round's chunk from which the goroutine sums a run
	each  func(chunk int, e arithmetic.Exceptions) // note
}

func newWorker(r *round) *worker {
	w := &worker{round: r}
	w.run, w.each = w.work, w.note
	return w
}

// work sums tiles until none is left. The last goroutine ends the round.
func (w *worker) work() {
	r := w.round
	for {
		w.tile = int(r.next.Add(1)) - 1
		if w.tile >= r.tiles {
			break
		}
		w.sum()
	}
	if r.left.Add(-1) == 0 {
		r.card.endRound(r)
	}
}

// note notes the exceptions of a chunk of the tile.
func (w *worker) note(chunk int, e arithmetic.Exceptions) {
	r := w.round
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event{w.from + chunk, e})
}

// sum sums the tile, in runs of chunks that adjoin in all arrays.
func (w *worker) sum() {
	r := w.round
	w.from = w.tile * r.perTile
	for to := min((w.tile+1)*r.perTile, r.chunks); w.from < to; {
		n := to - w.from
		for i, x := range r.exchanges {
			n = x.View.Run(r.lows[i]+w.from, n)
		}
		w.sumRun(n)
		w.from += n
	}
	clear(w.rows[:r.card.engine.cfg.Ports])
}

// sumRun sums n chunks into the first exchange's sum, and copies it into those of the others.
func (w *worker) sumRun(n int) {
	r, e := w.round, w.round.card.engine
	elements := func(exchange int, array []byte, size int) []byte {
		return r.exchanges[exchange].run(array, r.lows[exchange]+w.from, n, size)
	}
	for port, row := range r.rows[:e.cfg.Ports] {
		w.rows[port] = nil
		if row.array != nil {
			w.rows[port] = elements(row.exchange, row.array, e.elementBytes)
		}
	}
	sum := elements(0, r.exchanges[0].Sum, e.resultBytes)
	e.arithmetic.Sum(sum, w.rows[:e.cfg.Ports], r.chunk, &w.space, w.each)
	for i, x := range r.exchanges[1:] {
		copy(elements(i+1, x.Sum, e.resultBytes), sum)
	}
}

// endRound sets the slots as if the chunks of a round had passed them, and reports the sums.
func (c *Card) endRound(r *round) {
	c.lock()
	defer c.unlock()
	c.catchUp()
	r.chunks = min(r.chunks, int(r.stopped.Load())*r.perTile)
	if j := r.job; j.running && j.epoch == r.epoch {
		c.engine.pass(r)
	}
	for _, x := range r.exchanges {
		if r.chunks > 0 { // also of an exchange that was dropped meanwhile: its array has the sums
			c.report(x, report{first: x.low, chunks: r.chunks, ranks: r.members, evicted: r.job.evicted, vid: r.job.evictedAt})
			x.low += r.chunks
			x.next = x.low
		}
		c.release(x)
	}
	r.job.round = nil
	for _, x := range r.exchanges {
		if x.low == x.chunks {
			c.drop(x)
		}
	}
	clear(r.exchanges)
	clear(r.rows[:])
}

// pass records a round in the engine: its job's counts, and the slots of the last chunks, whose
// sums can be asked for again.
func (e *engine) pass(r *round) {
	j, n := r.job, uint32(r.chunks)
	e.counters[countStored] += n * uint32(bits.OnesCount64(r.members))
	e.counters[countChunks] += n
	e.counters[countBeats] += n * uint32(r.chunk/e.cfg.Lanes)
	e.counters[countResults] += n
	if r.members != j.all {
		e.counters[countPartial] += n
	}
	for ranks := r.members; ranks != 0; ranks &= ranks - 1 {
		j.lags[bits.TrailingZeros64(ranks)][lagBucket(ranks == r.members, 0)] += n
	}
	for i := max(0, r.chunks-len(j.slots)); i < r.chunks; i++ {
		e.passSlot(j.slot(r.first+uint32(i)), r, i)
	}
	slices.SortFunc(r.events, func(a, b event) int { return a.chunk - b.chunk })
	for i := range r.events {
		e.passEvent(&r.events[i], r)
	}
}

// passSlot sets the slot of chunk i of a round: all members have its result.
func (e *engine) passSlot(s *slot, r *round, i int) {
	s.queue.leave()
	s.timer.leave()
	s.vid, s.state, s.opened = r.first+uint32(i), reduced, e.now
	s.held, s.done, s.sent, s.owed = r.members, r.members, r.members, 0
	s.ecn, s.nonfinite = wire.ECT0, false
	s.cache = sized(s.cache, r.chunk*e.resultBytes)
	x := r.exchanges[0]
	clear(s.cache[copy(s.cache, x.part(x.Sum, r.lows[0]+i, e.resultBytes)):])
}

// passEvent counts the exceptions of a chunk of a round.
func (e *engine) passEvent(v *event, r *round) {
	j, vid := r.job, r.first+uint32(v.chunk)
	for ports := v.In; ports != 0; ports &= ports - 1 {
		rank := bits.TrailingZeros64(j.ranksOf(ports & -ports))
		e.counters[countNonfiniteIn]++
		j.in.add(1, uint64(rank)<<32|uint64(vid))
	}
	e.countSum(j, vid, v.Exceptions)
	if s := j.slot(vid); s.vid == vid && v.In != 0 {
		s.nonfinite = true
	}
}
