package driver

// A tree that died: its chunks without a sum move to the other trees, in a new epoch of the whole
// forest (TREES.md, section 7). All members are in this process, so they agree without messages.
//
// Every tree stops first: the jobs end, and all calls let go of their arrays. Only then is it known
// which chunks have a sum. These keep it; their inputs may be overwritten. All other chunks have their
// inputs still, and the members send them again, on new jobs.

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// errMoves is the cause in the EndedError of jobs that end because chunks of another tree move.
var errMoves = errors.New("the chunks of another tree move")

// errAllDead is the cause when no tree is left.
var errAllDead = errors.New("no tree is left")

// errSumLost is the cause when a member lacks sums that another member has taken away.
var errSumLost = errors.New("some members have sums that others lack, and nobody keeps them")

// stop ends the jobs of all trees, because the job of one has ended with cause. The caller holds mu.
func (f *Forest) stop(cause error) {
	if f.err != nil {
		return
	}
	f.stopping, f.cause = true, cause
	for t, job := range f.jobs {
		if ended, why := job.over(); ended && f.alive[t] && !errors.Is(why, errMoves) {
			f.alive[t] = false
			continue
		}
		job.endHere(errMoves)
	}
	f.changed.Broadcast()
}

// moveIfIdle moves the chunks of dead trees if no call uses its arrays and nobody else moves them. It
// reports whether it did. It releases mu meanwhile.
func (f *Forest) moveIfIdle() bool {
	if !f.stopping || f.moving || f.running > 0 || f.err != nil {
		return false
	}
	f.moving = true
	jobs, alive := slices.Clone(f.jobs), slices.Clone(f.alive)
	f.mu.Unlock()
	f.setUpAgain(jobs, alive)
	f.mu.Lock()
	f.moving = false
	if f.err == nil {
		f.carryOn(jobs, alive)
	} else {
		for _, job := range jobs {
			job.endHere(f.err) // the next set-up ends it on the card
		}
	}
	f.changed.Broadcast()
	return true
}

// setUpAgain sets up new jobs on the trees that are alive. One that dies meanwhile is not.
func (f *Forest) setUpAgain(jobs []*Job, alive []bool) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for t, job := range jobs {
		if alive[t] {
			_ = job.drop(ctx) // else the set-up ends it
		}
	}
	for t, tree := range f.trees {
		if !alive[t] {
			continue
		}
		job, err := tree.setUpTree(context.Background(), f.cfg.Job)
		if err != nil {
			alive[t] = false
			f.mu.Lock()
			f.cause = err
			f.mu.Unlock()
			continue
		}
		jobs[t] = job
	}
}

// carryOn continues the calls on the new jobs.
func (f *Forest) carryOn(jobs []*Job, alive []bool) {
	f.jobs, f.alive = jobs, alive
	if !slices.Contains(alive, true) {
		f.endLocked(fmt.Errorf("%w: %w", errAllDead, f.cause))
		return
	}
	f.schedule = f.cfg.Schedule.Only(alive)
	f.generation++
	f.stopping = false
	for _, m := range f.members {
		m.at = 0
	}
	f.shareSums()
	for _, c := range f.live {
		if c.left() > 0 && f.complete[c.number] > 0 {
			f.endLocked(errSumLost)
			return
		}
	}
	moved := Moved{Cause: f.cause, Schedule: slices.Clone(f.schedule)}
	for t, lives := range alive {
		if !lives {
			moved.Trees = append(moved.Trees, t)
		}
	}
	for _, c := range f.live {
		if c.member == nil || c.member == f.members[0] {
			moved.Chunks += c.left()
		}
		c.progress.newEpoch(c.summed())
		f.layOut(c)
		f.begin(c)
	}
	if f.cfg.OnMove != nil {
		f.mu.Unlock()
		f.cfg.OnMove(moved)
		f.mu.Lock()
	}
}

// summed returns the number of elements with a sum.
func (c *forestCall) summed() int {
	n, chunk := 0, c.forest.cfg.Job.Chunk
	for i, held := range c.held {
		if held {
			n += min(chunk, c.elements-i*chunk)
		}
	}
	return n
}

// shareSums gives every member the sums that another member has. Such a chunk has no sum a second
// time: the array of the member that has it no longer holds its input.
func (f *Forest) shareSums() {
	chunk := f.cfg.Job.Chunk * f.jobs[0].outBytes
	for _, to := range f.live {
		for _, from := range f.live {
			if from == to || from.number != to.number {
				continue
			}
			for i, held := range from.held {
				if held && !to.held[i] {
					copy(to.dst[i*chunk:min((i+1)*chunk, len(to.dst))], from.dst[i*chunk:])
					to.held[i] = true
				}
			}
		}
	}
}
