package driver

// New epochs of jobs on trees. When a card has gone, setting it up again alone would be wrong: the others
// hold own sums and results of the old epoch. So all members stop, and share the results that some of them
// hold: a chunk may pass as zeros again only if all have its result. Then the job continues on all cards,
// from the first result that a worker lacks.

import (
	"errors"
	"maps"
	"time"
)

// noteGone records that a card has gone. Its part has stopped.
func (w *treeJob) noteGone(o Outage) {
	w.mu.Lock()
	w.lost = append(w.lost, o)
	w.mu.Unlock()
	w.again()
}

// again makes the job continue in a new epoch.
func (w *treeJob) again() {
	select {
	case w.goes <- struct{}{}:
	default:
	}
}

// keep continues the job after each outage, until it ends.
func (w *treeJob) keep() {
	told := 0 // outages in lost that the program knows
	for wait := firstReopen; ; {
		select {
		case <-w.over.Done():
			return
		case <-w.goes:
		}
		if w.isClosing() {
			w.finish()
			return
		}
		if !w.stop() {
			continue // all outages are over
		}
		first := w.share()
		told = w.report(told, first)
		links, err := w.tree.present(w.over)
		if err == nil {
			err = w.renew(links, first, told)
		}
		if err == nil {
			told, wait = 0, firstReopen
			continue
		}
		select { // the patience of a part limits the attempts
		case <-w.over.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, longestReopen)
		w.again()
	}
}

func (w *treeJob) isClosing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closing
}

// finish ends a job that is being closed when a card has gone. All workers hold all results, so there is
// nothing to continue with; close aborts it on all cards.
func (w *treeJob) finish() {
	for _, j := range w.parts {
		j.card.mu.Lock()
		if j.finish.left != 0 {
			j.finished(j.finish.left)
		} else {
			j.endLocked(nil)
		}
		j.card.mu.Unlock()
	}
}

// stop stops all parts that have not stopped with their own cards, if a card has gone.
func (w *treeJob) stop() bool {
	w.mu.Lock()
	lost := w.lost
	w.mu.Unlock()
	if len(lost) == 0 {
		return false
	}
	cause := lost[len(lost)-1].Cause
	for _, j := range w.parts {
		c := j.card
		c.mu.Lock()
		if !j.ended && !j.stopped {
			j.stopped = true
			for c.pinned != nil && c.pinned.flow.job == j {
				c.unpinned.Wait()
			}
			j.rest(cause, time.Now())
		}
		c.mu.Unlock()
	}
	return true
}

// share gives all members the results that some of them hold, and returns the first VID whose result any
// worker lacks.
func (w *treeJob) share() (first uint32) {
	all := map[uint32]keptResult{}
	for _, j := range w.parts {
		j.card.mu.Lock()
		maps.Copy(all, j.history.results)
		j.card.mu.Unlock()
	}
	known := false
	for _, j := range w.parts {
		j.card.mu.Lock()
		for vid, r := range all {
			if int32(vid-j.history.low) >= 0 {
				j.history.put(vid, r)
			}
		}
		j.catchUp()
		if behind, _ := j.firstMissing(); j.here != 0 && (!known || int32(behind-first) < 0) {
			first, known = behind, true
		}
		j.card.mu.Unlock()
	}
	return first
}

// report tells the program of the outages that it does not know, and returns how many it knows.
func (w *treeJob) report(told int, first uint32) int {
	w.mu.Lock()
	fresh := append([]Outage(nil), w.lost[told:]...)
	told = len(w.lost)
	w.mu.Unlock()
	if w.cfg.OnOutage != nil {
		for _, o := range fresh {
			o.VID = first
			w.cfg.OnOutage(o)
		}
	}
	return told
}

// errStillAway is the error of an attempt to continue during which a card went.
var errStillAway = errors.New("a card of the tree has gone again")

// renew sets the job up on all cards in a new epoch, and lets all parts continue. That ends the first
// outages in lost. A card of a later one may have come back since, or be away.
func (w *treeJob) renew(links []*link, first uint32, outages int) error {
	release, err := w.tree.takeTurns(w.over)
	if err != nil {
		return err
	}
	defer release()
	own := w.root().Epoch()
	epoch, err := w.setUp(w.over, links, &own, first)
	if err != nil {
		return err
	}
	now := time.Now()
	for i, j := range w.parts {
		if !j.resumeOn(links[i], epoch, now) {
			return errStillAway
		}
	}
	w.mu.Lock()
	back := w.lost[:outages]
	w.lost = w.lost[outages:]
	more := len(w.lost) > 0
	w.mu.Unlock()
	if more {
		w.again()
	}
	if w.cfg.OnOutage != nil {
		for _, o := range back {
			o.Away, o.Patience, o.VID, o.Epoch = now.Sub(o.went), 0, first, epoch
			w.cfg.OnOutage(o)
		}
	}
	return nil
}

// resumeOn continues the part in an epoch that was set up over a link, and reports whether that is up.
func (j *Job) resumeOn(l *link, epoch uint16, now time.Time) bool {
	c := j.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil || l.err != nil {
		return false
	}
	if j.ended {
		c.table[j.number] = jobEntry{lingers: true, epoch: epoch}
		return true
	}
	j.resume(epoch, now)
	c.kick()
	return true
}
