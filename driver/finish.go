package driver

// The end of a job. The driver tells the card that every member holds its results, until the
// card confirms it (SPEC.md, section 5, finish).

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// finish is the state of Job.Close; guarded by Card.mu.
type finish struct {
	left    uint64 // ranks whose finish is not confirmed
	sent    time.Time
	moved   time.Time // when left last shrank
	backOff backOff
	done    chan error // capacity 1

	// All finishes of a part of a tree are confirmed. The part keeps its number, as the card has the job until
	// the workers at all cards have finished.
	confirmed bool
}

// Close finishes the job: it tells the card that every member holds its results, and waits for
// the confirmation. Evicted members do not count. No member may be in a call. Close returns nil
// for a job that was finished before, and EndedError for one that ended in another way.
//
// On a tree of cards, all workers finish on their cards, and then the driver aborts what is left of the
// job on any card.
func (j *Job) Close(ctx context.Context) error {
	if w := j.tree(); w != nil {
		return w.close(ctx)
	}
	if err := j.finishAll(ctx); err != nil {
		return err
	}
	return j.abortOnCard(ctx) // the card would wait forever for a member that left
}

// finishAll finishes the members that take part.
func (j *Job) finishAll(ctx context.Context) error {
	if ended, err := j.startFinish(); ended || err != nil {
		return err
	}
	j.card.kick()
	timer := time.NewTimer(j.card.opts.timeout)
	defer timer.Stop()
	for {
		var err, reason error
		select {
		case err := <-j.finish.done:
			return err
		case <-ctx.Done():
			if err = j.card.awayError(ctx.Err()); err == nil {
				err = &StoppedError{Card: j.card.name, What: "finish of the job", Err: ctx.Err(), job: j.name}
			}
			reason = j.givenUp("close of the job", err)
		case <-timer.C:
			silent, left := j.finishSilent()
			if wait := j.card.opts.timeout - silent; wait > 0 || j.card.missed(j) {
				timer.Reset(max(wait, shortestWait))
				continue
			}
			err = &TimeoutError{Card: j.card.name, What: "finish of ranks " + rankList(j.global(left)), Waited: silent, Up: j.upRefusals(), job: j.name}
			reason = err
		}
		if !j.endIf(func() bool { return j.finish.left != 0 }, reason) {
			return <-j.finish.done
		}
		<-j.finish.done
		return err
	}
}

// begin starts the finish of ranks.
func (f *finish) begin(ranks uint64) {
	f.left, f.moved, f.sent, f.backOff = ranks, time.Now(), time.Time{}, 0
}

// inCall is the error of closing a job with calls in progress. The caller holds the card's mutex.
func (j *Job) inCall() error {
	return &InputError{"close of the job", fmt.Sprintf("rank %d is in a call; wait for it, or abort the job", j.flows[0].members[0].Rank())}
}

// checkNoCalls rejects the end of a job with calls in progress.
func (j *Job) checkNoCalls() error {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if len(j.flows) > 0 && !j.ended {
		return j.inCall()
	}
	return nil
}

func (j *Job) startFinish() (ended bool, err error) {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	switch {
	case j.ended && j.err == nil:
		return true, nil
	case j.ended:
		return true, j.endedError()
	case len(j.flows) > 0:
		return false, j.inCall()
	case j.finish.left != 0 || j.finish.confirmed:
		return false, &InputError{"close of the job", "another call is closing it"}
	}
	if j.seats != nil && !j.seats.begun {
		j.tellLeft(j.here)
		j.endLocked(nil)
		return true, nil
	}
	if j.here&^j.evicted == 0 {
		j.endLocked(nil)
		return true, nil
	}
	j.finish.begin(j.here &^ j.evicted)
	return false, nil
}

// finishSilent returns the time since the last confirmation, and the ranks without one.
func (j *Job) finishSilent() (time.Duration, uint64) {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if j.waits() || j.overQueues() {
		return 0, j.finish.left
	}
	return time.Since(j.finish.moved), j.finish.left
}

// addFinishes adds the finishes of all unconfirmed ranks when they are due, and returns how long no
// other is.
func (j *Job) addFinishes(out *batch, now time.Time) (wait time.Duration) {
	f := &j.finish
	if f.left == 0 {
		return longestWait
	}
	if j.card.link.blocks != nil || j.overQueues() {
		if f.sent.IsZero() {
			f.sent = now
			j.finishBlocks()
		}
		return longestWait
	}
	if !f.sent.IsZero() {
		if wait := f.sent.Add(f.backOff.wait(&j.timing)).Sub(now); wait > 0 {
			return wait
		}
		f.backOff++
	}
	f.sent = now
	for left := f.left; left != 0; left &= left - 1 {
		m := j.members[bits.TrailingZeros64(left)]
		h := frame.Header{
			Kind:  wire.KindFinish,
			Job:   j.number,
			Epoch: j.epoch,
			Rank:  uint8(m.rank),
			VID:   m.next,
		}
		out.add(&h, nil)
	}
	return f.backOff.wait(&j.timing)
}

// takeFinished records that the card has confirmed the finish of m. With the last confirmation
// the job ends.
func (j *Job) takeFinished(m *Member, h *frame.Header, now time.Time) {
	f := &j.finish
	if h.VID != m.next || f.left>>m.rank&1 == 0 {
		return
	}
	f.moved = now
	j.heardOf()
	if j.seats != nil && j.seats.direct {
		j.tellFinished(m) // the daemon confirms it
		return
	}
	j.finished(1 << m.rank)
}

// finished stops the wait for the finishes of ranks.
func (j *Job) finished(ranks uint64) {
	f := &j.finish
	if f.left == 0 {
		return
	}
	if f.left &^= ranks; f.left != 0 {
		return
	}
	if j.branch != nil {
		f.confirmed = true
	} else {
		j.endLocked(nil)
	}
	f.done <- nil
}
