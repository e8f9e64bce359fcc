package driver

// Results that only some members of a job hold. A late member may be two
// windows behind the others, whose inputs may be overwritten by then. After an outage it could
// get these results only from the other members. A job that carries on therefore keeps them
// until all members have them.

import (
	"slices"

	"tributary/driver/frame"
)

// resultHistory holds the results that not all members have, by VID; guarded by Card.mu. It is
// nil when the job does not need it.
type resultHistory struct {
	results map[uint32]keptResult
	low     uint32 // all VIDs are at or above low
	least   uint32 // how many of the last results are kept in any case, for members elsewhere
	next    uint32 // the VID after the last result
}

// keptResult is a sum and the ranks in it.
type keptResult struct {
	sum   []byte
	ranks uint64
}

// newHistory returns the history of a new job.
func newHistory(cfg JobConfig, shared bool) *resultHistory {
	h := &resultHistory{results: map[uint32]keptResult{}, low: cfg.FirstVID, next: cfg.FirstVID}
	switch {
	case shared && cfg.Partial:
		h.least = 2 * uint32(cfg.Window)
	case shared && cfg.CarryOn > 0:
		h.least = uint32(cfg.Window)
	case !cfg.Partial || cfg.CarryOn == 0:
		return nil
	}
	return h
}

// keep stores a result at its first arrival.
func (h *resultHistory) keep(f *frame.Frame) {
	if h == nil {
		return
	}
	if _, ok := h.results[f.VID]; !ok {
		h.put(f.VID, keptResult{slices.Clone(f.Payload), f.Mask})
	}
}

// put stores a result.
func (h *resultHistory) put(vid uint32, r keptResult) {
	h.results[vid] = r
	if int32(vid+1-h.next) > 0 {
		h.next = vid + 1
	}
}

// forget drops the results below vid, but for the last ones that members elsewhere may lack.
func (h *resultHistory) forget(vid uint32) {
	if last := h.next - h.least; h.least > 0 && int32(last-vid) < 0 {
		vid = last
	}
	for ; int32(h.low-vid) < 0; h.low++ {
		delete(h.results, h.low)
	}
}

// firstMissing returns the VIDs of the first missing chunks of the slowest and the fastest member.
// Members that have left do not count.
func (j *Job) firstMissing() (behind, ahead uint32) {
	first := true
	note := func(vid uint32) {
		if first || int32(vid-behind) < 0 {
			behind = vid
		}
		if first || int32(vid-ahead) > 0 {
			ahead = vid
		}
		first = false
	}
	for _, m := range j.members {
		if m.out == nil && j.here>>m.rank&1 != 0 {
			note(m.next + uint32(j.heldBy(m)))
		}
	}
	return behind, ahead
}

// heldBy returns how many chunks a member holds without a gap, of its first call in progress and
// those after it.
func (j *Job) heldBy(m *Member) int {
	for _, f := range j.flows {
		if f.ranks>>m.rank&1 != 0 {
			return f.low - f.calls[0].from
		}
	}
	return 0
}

// joinLate gives a new call, in a flow that was idle or not, the results that the other members
// hold.
func (f *flow) joinLate(k *call, idle bool) {
	if idle {
		clear(f.ring) // left by earlier calls
		f.catchUp()
		return
	}
	f.keepWindow(k.from) // the flow has caught up before
}

// catchUp copies the other members' results into a flow that has sent nothing in this epoch. It
// copies all up to the first chunk that nobody holds, and those in the window above it. It may
// complete calls.
func (f *flow) catchUp() {
	h := f.job.history
	for f.low < f.chunks && (f.state(f.low).kept || f.receive(h, f.low)) {
		f.setKept(f.low, false)
		f.low++
	}
	f.next, f.held = f.low, f.low
	f.keepWindow(f.low)
	f.settle()
}

// keepWindow copies the other members' results of the window's chunks from i on.
func (f *flow) keepWindow(i int) {
	for ; i < min(f.low+len(f.ring), f.chunks); i++ {
		if !f.state(i).kept && f.receive(f.job.history, i) {
			f.setKept(i, true)
		}
	}
}

// receive copies the result of chunk i if another member holds it.
func (f *flow) receive(h *resultHistory, i int) bool {
	r, ok := h.results[f.vid(i)]
	if ok {
		f.store(i, r.sum, r.ranks)
	}
	return ok
}

// setKept records whether the result of the unsent chunk i is there from an earlier epoch.
func (f *flow) setKept(i int, kept bool) {
	s := f.state(i)
	if s.kept {
		f.kept--
	}
	if *s = (chunkState{kept: kept}); kept {
		f.kept++
	}
}
