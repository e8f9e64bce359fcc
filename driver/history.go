package driver

// Results that only some members of a job with partial sums hold. A late member may be two
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
}

// keptResult is a sum and the ranks in it.
type keptResult struct {
	sum   []byte
	ranks uint64
}

// newHistory returns the history of a new job.
func newHistory(cfg JobConfig) *resultHistory {
	if !cfg.Partial || cfg.CarryOn == 0 {
		return nil
	}
	return &resultHistory{results: map[uint32]keptResult{}, low: cfg.FirstVID}
}

// keep stores a result at its first arrival.
func (h *resultHistory) keep(f *frame.Frame) {
	if h == nil {
		return
	}
	if _, ok := h.results[f.VID]; !ok {
		h.results[f.VID] = keptResult{slices.Clone(f.Payload), f.Mask}
	}
}

// forget drops the results below vid.
func (h *resultHistory) forget(vid uint32) {
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
		if m.out == nil {
			note(m.next + uint32(j.heldBy(m)))
		}
	}
	return behind, ahead
}

// heldBy returns how many chunks of its call a member holds without a gap.
func (j *Job) heldBy(m *Member) int {
	for _, k := range j.calls {
		if k.ranks>>m.rank&1 != 0 {
			return k.low
		}
	}
	return 0
}

// catchUp copies the other members' results into a call that has sent nothing. It copies all up
// to the first chunk that nobody holds, and those in the window above it. It may complete the
// call.
func (k *call) catchUp() {
	h := k.job.history
	for k.low < k.chunks && (k.state(k.low).kept || k.receive(h, k.low)) {
		k.setKept(k.low, false)
		k.low++
	}
	k.next, k.held = k.low, k.low
	if k.low == k.chunks {
		k.complete(nil)
		return
	}
	for i := k.low; i < min(k.low+len(k.ring), k.chunks); i++ {
		if !k.state(i).kept && k.receive(h, i) {
			k.setKept(i, true)
		}
	}
}

// receive copies the result of chunk i if another member holds it.
func (k *call) receive(h *resultHistory, i int) bool {
	r, ok := h.results[k.first+uint32(i)]
	if ok {
		k.store(i, r.sum, r.ranks)
	}
	return ok
}

// setKept records whether the result of the unsent chunk i is there from an earlier epoch.
func (k *call) setKept(i int, kept bool) {
	s := k.state(i)
	if s.kept {
		k.kept--
	}
	if *s = (chunkState{kept: kept}); kept {
		k.kept++
	}
}

// store copies the sum of chunk i into the caller's array.
func (k *call) store(i int, sum []byte, ranks uint64) {
	k.count(k.ranks, func(s *MemberStats) { s.Results++ })
	copy(k.part(k.dst, i, k.job.outBytes), sum)
	if ranks != k.job.ranks {
		k.lacking = append(k.lacking, contributors{i, ranks})
	}
}
