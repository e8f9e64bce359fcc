package main

// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"tributary/driver"
	"tributary/driver/element"
)

// pending is a started reduction.
type pending struct {
	*driver.Pending
	job    *driver.Job
	cancel context.CancelFunc
	done   chan struct{} // closed when err is set
	err    error
}

// reductions are the running reductions of a card.
type reductions struct {
	mu  sync.Mutex
	all map[*pending]bool
}

func (r *reductions) add(p *pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[*pending]bool{}
	}
	r.all[p] = true
}

func (r *reductions) remove(p *pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, p)
}

// await waits for the reductions of a job, or for all if j is nil.
func (r *reductions) await(j *driver.Job) {
	r.mu.Lock()
	var all []*pending
	for p := range r.all {
		if j == nil || p.job == j {
			all = append(all, p)
		}
	}
	r.mu.Unlock()
	for _, p := range all {
		<-p.done
	}
}

// request is what the caller asks of a reduction.
type request struct {
	card  *card
	job   *driver.Job
	dst   []byte
	opts  []driver.ReduceOption
	start func(ctx context.Context, opts ...driver.ReduceOption) (*driver.Pending, error)
}

// newRequest checks the arguments that both kinds of reductions have.
func newRequest(c *card, j *driver.Job, dst unsafe.Pointer, elements C.size_t, op C.tributary_op, flags C.uint32_t) (*request, error) {
	r := &request{card: c, job: j}
	switch {
	case op != C.TRIBUTARY_SUM && op != C.TRIBUTARY_MEAN:
		return nil, &driver.InputError{What: "op", Why: fmt.Sprintf("%d is not a tributary_op", op)}
	case flags&^C.TRIBUTARY_DETACH != 0:
		return nil, &driver.InputError{What: "flags", Why: fmt.Sprintf("0x%x has unknown bits", flags)}
	case flags&C.TRIBUTARY_DETACH != 0:
		r.opts = append(r.opts, driver.WithDetach())
	}
	if op == C.TRIBUTARY_MEAN {
		r.opts = append(r.opts, driver.WithMean())
	}
	var err error
	r.dst, err = memory("result", dst, elements, element.Size(c.Info().Result))
	return r, err
}

// begin starts the reduction.
func (r *request) begin(handle *C.uintptr_t) error {
	ctx, cancel := context.WithCancel(background)
	p := &pending{job: r.job, cancel: cancel, done: make(chan struct{})}
	r.card.running.add(p)
	var err error
	if p.Pending, err = r.start(ctx, r.opts...); err != nil {
		p.end(r.card, err)
		return err
	}
	go func() {
		p.end(r.card, p.Wait(background))
	}()
	publish(p, handle)
	return nil
}

// end sets the outcome.
func (p *pending) end(c *card, err error) {
	p.err = err
	close(p.done)
	p.cancel()
	c.running.remove(p)
}

//export goStart
func goStart(to *C.struct_failure, handle C.uint64_t, dst, src unsafe.Pointer, elements C.size_t, op C.tributary_op, flags C.uint32_t, made *C.uintptr_t) C.int {
	return with(to, handle, func(m *member) error {
		r, err := newRequest(m.card, m.Job(), dst, elements, op, flags)
		if err != nil {
			return err
		}
		in, err := memory("array", src, elements, element.Size(m.card.Info().Format))
		if err != nil {
			return err
		}
		r.start = func(ctx context.Context, opts ...driver.ReduceOption) (*driver.Pending, error) {
			return m.StartAllReduceBytes(ctx, r.dst, in, opts...)
		}
		return r.begin(made)
	})
}

//export goStartReduce
func goStartReduce(to *C.struct_failure, handle C.uint64_t, dst unsafe.Pointer, inputs *unsafe.Pointer, count, elements C.size_t, op C.tributary_op, flags C.uint32_t, made *C.uintptr_t) C.int {
	return with(to, handle, func(j *job) error {
		r, err := newRequest(j.card, j.Job, dst, elements, op, flags)
		if err != nil {
			return err
		}
		workers := j.Config().Workers
		if uint64(count) != uint64(workers) {
			return &driver.InputError{What: "inputs", Why: fmt.Sprintf("%d arrays for a job of %d workers; every worker has one", count, workers)}
		}
		in := make([][]byte, workers)
		for rank, array := range unsafe.Slice(inputs, workers) {
			what := fmt.Sprintf("array of worker %d", rank)
			if array == nil {
				return &driver.InputError{What: what, Why: "it is NULL"}
			}
			if in[rank], err = memory(what, array, elements, element.Size(j.card.Info().Format)); err != nil {
				return err
			}
		}
		r.start = func(ctx context.Context, opts ...driver.ReduceOption) (*driver.Pending, error) {
			return j.StartReduceBytes(ctx, r.dst, in, opts...)
		}
		return r.begin(made)
	})
}

//export goWait
func goWait(to *C.struct_failure, handle C.uint64_t, timeout C.int64_t) C.int {
	return with(to, handle, func(p *pending) error { return p.await(time.Duration(timeout)) })
}

// await waits for the outcome: a time, or without a limit if that is negative.
func (p *pending) await(timeout time.Duration) error {
	select {
	case <-p.done: // also when the time is 0
		return p.err
	default:
	}
	if timeout == 0 {
		return errRunning
	}
	var over <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-p.done:
		return p.err
	case <-over:
		return errRunning
	}
}

//export goOutcome
func goOutcome(to *C.struct_failure, handle C.uint64_t) C.int {
	return with(to, handle, func(p *pending) error {
		defer forget(handle)
		return p.await(-1)
	})
}

//export goCancel
func goCancel(to *C.struct_failure, handle C.uint64_t) C.int {
	return with(to, handle, func(p *pending) error {
		p.cancel()
		return p.await(-1)
	})
}

//export goPartials
func goPartials(to *C.struct_failure, handle C.uint64_t, list *C.tributary_partial, capacity C.size_t, count *C.size_t) C.int {
	return with(to, handle, func(p *pending) error {
		all := p.Partials()
		*count = C.size_t(len(all))
		if uint64(capacity) < uint64(len(all)) {
			all = all[:capacity]
		}
		for i, entry := range unsafe.Slice(list, len(all)) {
			entry = C.tributary_partial{from: C.uint64_t(all[i].From), to: C.uint64_t(all[i].To)}
			for _, rank := range all[i].Ranks {
				entry.ranks |= 1 << rank
			}
			unsafe.Slice(list, len(all))[i] = entry
		}
		return nil
	})
}

//export goPendingClose
func goPendingClose(to *C.struct_failure, handle C.uint64_t) C.int {
	return with(to, handle, func(p *pending) error {
		forget(handle)
		p.cancel()
		_ = p.await(-1)
		return nil
	})
}
