package sim

// Worker sends its chunks within the job's window and each tree's congestion window. Results are
// the acknowledgements. VIDs go on from one array to the next.
type Worker struct {
	job  *Job
	host *Host
	leaf int32

	iteration int
	end       int64 // VIDs of this array are below
	base      int64 // the first VID whose result is missing
	got       []bool
	sentAt    []Time // by VID modulo the window; 0 if it was sent again or asked for
	trees     []tree
	rtt       roundTrip
	deadline  Time
	ticking   bool

	Asks, Resent int64
}

// tree is a worker's view of one tree. Its chunk k has VID k·trees + number.
type tree struct {
	Window
	first, next int64 // chunks: the first without a result, the first that was not sent
	askedTo     int64 // chunks below were asked for, or have their results
	flight      int64 // chunks sent and without a result
}

// gap is the number of later results of a tree that show a loss. A tree keeps its order, except
// where a repeat overtakes.
const gap = 3

func newWorker(j *Job, h *Host) *Worker {
	n := j.network
	w := &Worker{
		job: j, host: h, leaf: n.Leaves[n.rackOf(h.id)].id, got: make([]bool, j.Window), sentAt: make([]Time, j.Window),
		rtt: roundTrip{least: j.Timeout},
	}
	for range j.Trees {
		w.trees = append(w.trees, tree{Window: NewWindow(j.Tree)})
	}
	return w
}

// Tree returns a tree's congestion window.
func (w *Worker) Tree(t int) *Window { return &w.trees[t].Window }

func (w *Worker) begin() {
	w.end += w.job.chunks
	w.pump()
}

// vid returns the VID of chunk k of tree t.
func (w *Worker) vid(t int, k int64) int64 { return k*int64(len(w.trees)) + int64(t) }

// pump sends what the windows allow, in the order of VIDs among trees that may send.
func (w *Worker) pump() {
	limit := min(w.end, w.base+int64(w.job.Window))
	for again := true; again; {
		again = false
		for t := range w.trees {
			tree := &w.trees[t]
			if v := w.vid(t, tree.next); v < limit && tree.flight < int64(tree.Size) {
				w.got[v%int64(len(w.got))] = false
				w.sentAt[v%int64(len(w.got))] = w.job.network.now
				w.send(contribution, v)
				tree.next++
				tree.flight++
				again = true
			}
		}
	}
	w.watch()
}

func (w *Worker) send(k kind, vid int64) {
	p := w.job.network.packet()
	p.kind, p.seq, p.job, p.from, p.dst = k, vid, w.job, w.host.id, w.leaf
	p.wire = w.job.payload + dataOver
	if k == ask {
		p.wire = askWire
	}
	w.host.nic.send(p)
}

func (w *Worker) receive(p *Packet) {
	t := int(p.seq % int64(len(w.trees)))
	tree := &w.trees[t]
	k := p.seq / int64(len(w.trees))
	at := p.seq % int64(len(w.got))
	if k < tree.first || k >= tree.next || p.seq < w.base || w.got[at] {
		return
	}
	if p.kind == statusSend {
		w.Resent++
		w.send(contribution, p.seq)
		return
	}
	w.got[at] = true
	w.rtt.backOff = 0
	tree.flight--
	if w.sentAt[at] != 0 {
		w.rtt.sample(w.job.network.now - w.sentAt[at])
	}
	tree.Acknowledge(k, tree.next, p.ce)
	w.advance(t)
	w.searchGap(t, k)
	w.deadline = 0 // restarts the timer
	if w.base == w.end {
		w.finish()
		return
	}
	w.pump()
}

// advance moves the first missing results.
func (w *Worker) advance(t int) {
	tree := &w.trees[t]
	size := int64(len(w.got))
	for tree.first < tree.next && w.got[w.vid(t, tree.first)%size] {
		tree.first++
	}
	w.base = w.end
	for t := range w.trees {
		w.base = min(w.base, w.vid(t, w.trees[t].first))
	}
}

// searchGap asks for chunks whose results later ones have overtaken.
func (w *Worker) searchGap(t int, k int64) {
	tree := &w.trees[t]
	for lost := max(tree.first, tree.askedTo); lost+gap <= k; lost++ {
		if !w.got[w.vid(t, lost)%int64(len(w.got))] {
			w.lose(t, lost)
		}
		tree.askedTo = lost + 1
	}
}

func (w *Worker) lose(t int, k int64) {
	tree := &w.trees[t]
	tree.Lose(k, tree.next)
	w.Asks++
	v := w.vid(t, k)
	w.sentAt[v%int64(len(w.got))] = 0 // no sample (SPEC, section 8, Retries)
	w.send(ask, v)
}

func (w *Worker) finish() {
	w.job.finished(w.iteration)
	w.iteration++
	w.job.network.After(w.job.Compute, w.begin)
}

// watch keeps one timer for the oldest results.
func (w *Worker) watch() {
	if w.base == w.end {
		w.deadline = 0
		return
	}
	if w.deadline == 0 {
		w.deadline = w.job.network.now + w.rtt.timeout()
	}
	if !w.ticking {
		w.ticking = true
		w.job.network.After(w.deadline-w.job.network.now, w.expire)
	}
}

// expire asks for the first missing result of each tree when none has come for a while.
func (w *Worker) expire() {
	w.ticking = false
	now := w.job.network.now
	if w.deadline != 0 && now >= w.deadline {
		w.rtt.backOff++
		for t := range w.trees {
			if tree := &w.trees[t]; tree.first < tree.next {
				w.lose(t, tree.first)
			}
		}
		w.deadline = 0
	}
	w.watch()
}
