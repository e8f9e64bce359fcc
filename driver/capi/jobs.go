package main

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"tributary/driver"
)

// job is a job that this process has set up.
type job struct {
	*driver.Job
	card *card
}

//export goConfigure
func goConfigure(to *C.struct_failure, handle C.uint64_t, o *C.tributary_job_options, made *C.uintptr_t) C.int {
	return with(to, handle, func(c *card) error {
		cfg := driver.JobConfig{
			Workers: int(o.workers), Chunk: int(o.chunk), Window: int(o.window),
			Wait: time.Duration(o.wait_ns), CarryOn: time.Duration(o.carry_on_ns),
			Deadline: time.Duration(o.deadline_ns), DeadlineCycles: uint32(o.deadline_cycles),
			Partial: o.partial != 0, Queue: o.queue != 0,
		}
		switch {
		case o.wait_ns < 0:
			return &driver.InputError{What: "wait", Why: fmt.Sprintf("%d ns is negative", o.wait_ns)}
		case o.here_count < 0 || o.here_count > 0 && o.here == nil:
			return &driver.InputError{What: "ranks here", Why: fmt.Sprintf("there are %d, at %p", o.here_count, o.here)}
		case o.here_count > 0:
			for _, rank := range unsafe.Slice(o.here, o.here_count) {
				cfg.Here = append(cfg.Here, int(rank))
			}
		}
		j, err := c.Configure(background, cfg)
		if err != nil {
			return err
		}
		if cfg.Here != nil && j.Ticket() == "" {
			_ = j.Abort(background)
			return &driver.InputError{What: "ranks here", Why: "the card is not shared, so all members are in this process; leave them out, or open the card of a daemon (serve:)"}
		}
		publish(&job{j, c}, made)
		return nil
	})
}

//export goJobTicket
func goJobTicket(to *C.struct_failure, handle C.uint64_t, buffer *C.char, capacity C.size_t, length *C.size_t) C.int {
	return with(to, handle, func(j *job) error {
		return giveText("ticket", j.Ticket(), buffer, capacity, length)
	})
}

//export goJobMember
func goJobMember(to *C.struct_failure, handle C.uint64_t, rank C.int32_t, made *C.uintptr_t) C.int {
	return with(to, handle, func(j *job) error {
		if workers := j.Config().Workers; rank < 0 || int(rank) >= workers {
			return &driver.InputError{What: "rank", Why: fmt.Sprintf("%d; the job has ranks 0 to %d", rank, workers-1)}
		}
		publish(&member{Member: j.Member(int(rank)), card: j.card}, made)
		return nil
	})
}

//export goJobClose
func goJobClose(to *C.struct_failure, handle C.uint64_t) C.int {
	return with(to, handle, func(j *job) error {
		err := j.Close(background)
		if !isBusy(err) {
			forget(handle)
		}
		return err
	})
}

// isBusy reports whether a job was not closed because it is in use.
func isBusy(err error) bool {
	_, busy := errors.AsType[*driver.InputError](err)
	return busy
}

//export goJobAbort
func goJobAbort(to *C.struct_failure, handle C.uint64_t) C.int {
	return with(to, handle, func(j *job) error {
		forget(handle)
		err := j.Abort(background)
		j.card.running.await(j.Job)
		return err
	})
}
