// Package sim simulates packets in a folded Clos: output queues that mark and drop, routes by
// hashes, TCP flows with DCTCP, cards that sum, their workers, and a ring of workers.
//
// Time is an integer number of picoseconds. Events of the same time take place in the order in
// which they were scheduled, so a simulation depends on its seed alone.
package sim

import (
	"container/heap"
	"context"
)

// Time is a time or a duration in picoseconds.
type Time int64

// Units of Time.
const (
	Nanosecond  Time = 1000
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Seconds converts a duration to seconds.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// event is a call that is due, or the next arrival of a pipe.
type event struct {
	at    Time
	order uint64 // decides among events of one time
	pipe  *pipe
	call  func()
}

// eventQueue is a heap by time and order. It never needs Push and Pop, which would put each event
// on the heap of Go: push and drop repair the order with heap.Fix.
type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q eventQueue) Push(any)      { panic("unused") }
func (q eventQueue) Pop() any      { panic("unused") }

// Engine runs events in order.
type Engine struct {
	now    Time
	orders uint64
	queue  eventQueue
	free   []*Packet
	Events uint64 // that took place
}

// Now returns the time of the current event.
func (e *Engine) Now() Time { return e.now }

func (e *Engine) order() uint64 { e.orders++; return e.orders }

func (e *Engine) push(ev event) {
	e.queue = append(e.queue, ev)
	heap.Fix(e.queue, len(e.queue)-1)
}

// drop removes the first event.
func (e *Engine) drop() {
	last := len(e.queue) - 1
	e.queue[0] = e.queue[last]
	e.queue[last] = event{}
	e.queue = e.queue[:last]
	if last > 0 {
		heap.Fix(e.queue, 0)
	}
}

// After calls f once, when d has passed.
func (e *Engine) After(d Time, f func()) { e.push(event{at: e.now + d, order: e.order(), call: f}) }

// eventsAtOnce is the number of events between two looks at the context.
const eventsAtOnce = 1 << 16

// Run runs all events up to the time until. It ends early with the error of a cancelled context.
func (e *Engine) Run(ctx context.Context, until Time) error {
	for n := 0; len(e.queue) > 0 && e.queue[0].at <= until; n++ {
		if n%eventsAtOnce == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e.step()
	}
	e.now = max(e.now, until)
	return nil
}

func (e *Engine) step() {
	first := e.queue[0]
	e.now = first.at
	e.Events++
	if first.pipe == nil {
		e.drop()
		first.call()
		return
	}
	p := first.pipe
	packet := p.take()
	if next, more := p.first(); more {
		e.queue[0].at, e.queue[0].order = next.at, next.order
		heap.Fix(e.queue, 0)
	} else {
		e.drop()
	}
	p.to.receive(packet)
}
