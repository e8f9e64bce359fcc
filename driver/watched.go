package driver

// An owner on a network looks at its jobs when it renews its lease (NETWORK.md, section 4). Its token in
// OWNER does not show that the card still has them: late copies of packets may have taken the card again,
// and, after a loss of power, have set up an earlier job.

import (
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// watched is a job in an epoch, as its owner has set it up.
type watched struct {
	job     *Job
	epoch   uint16
	entries []frame.Header // of the address table, as if they had been written
}

// watch notes the members' addresses with which the job was set up.
func (j *Job) watch(staged []frame.Header) {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	j.entries = j.boundMembers(staged)
}

// addReads adds the reads of the job's epoch and entries.
func (w *watched) addReads(reads []frame.Header) []frame.Header {
	reads = append(reads, readHeader(wire.JobAddr(wire.RegJobState, int(w.job.number))))
	for _, h := range w.entries {
		reads = append(reads, readHeader(h.VID))
	}
	return reads
}

// changed reports whether the card's answers to the reads of some jobs show another job in the place of
// one. A job that all have finished, or that ended with the lease, is no other one. The caller holds
// Card.mu.
func changed(jobs []watched, values []uint64) bool {
	for _, w := range jobs {
		epoch := uint16(values[0] >> stateEpochShift)
		same := epoch == w.epoch && hold(values[1:], w.entries)
		current := !w.job.ended && !w.job.stopped && w.job.epoch == w.epoch // else a later epoch has begun meanwhile
		if !same && current {
			return true
		}
		values = values[1+len(w.entries):]
	}
	return false
}
