package rc

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Barrier is where the workers of a job meet at its end. Until then their queue pairs live, so that each can
// acknowledge and repeat what another rank's sum needs. A rank that fails, or comes too late, fails all. In
// a job of several machines this goes through the daemon; here it takes no time and loses nothing. It is for
// calls from any goroutine.
type Barrier struct {
	over chan struct{} // closed when it is

	mu      sync.Mutex
	missing map[int]bool
	err     error
}

// RankError is the error of every rank after one of them has failed.
type RankError struct {
	Rank  int // failed first
	Cause error
}

func (e *RankError) Error() string { return fmt.Sprintf("rank %d: %v", e.Rank, e.Cause) }

// Unwrap returns the cause.
func (e *RankError) Unwrap() error { return e.Cause }

// ErrDeadline is the cause if a job's deadline has ended before all ranks were there.
var ErrDeadline = errors.New("rc: the job's deadline has ended")

// StatusError is the cause if a work request failed.
type StatusError struct {
	Message int
	Receive bool // of a message, otherwise its sending
	Status  Status
}

func (e *StatusError) Error() string {
	verb := "sent"
	if e.Receive {
		verb = "received"
	}
	return fmt.Sprintf("rc: message %d was not %s: %v", e.Message, verb, e.Status)
}

// MessageError is the cause if a message arrived that does not fit the job.
type MessageError struct {
	Message     int
	Bytes, Want int
	Imm         uint32
}

func (e *MessageError) Error() string {
	return fmt.Sprintf("rc: message %d has %d bytes and immediate %d, want %d bytes", e.Message, e.Bytes, e.Imm, e.Want)
}

// NewBarrier returns the barrier of a job.
func NewBarrier(ranks int) *Barrier {
	b := &Barrier{over: make(chan struct{}), missing: map[int]bool{}}
	for rank := range ranks {
		b.missing[rank] = true
	}
	return b
}

// Arrive takes note that a rank has received and sent everything.
func (b *Barrier) Arrive(rank int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Done() {
		return
	}
	delete(b.missing, rank)
	if len(b.missing) == 0 {
		close(b.over)
	}
}

// Fail takes note that a rank has failed. The first failure counts, unless all ranks have arrived before.
func (b *Barrier) Fail(rank int, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Done() {
		return
	}
	b.err = &RankError{rank, cause}
	close(b.over)
}

// Over returns a channel that is closed when all ranks have arrived, or one has failed.
func (b *Barrier) Over() <-chan struct{} { return b.over }

// Done reports whether all ranks have arrived, or one has failed.
func (b *Barrier) Done() bool {
	select {
	case <-b.over:
		return true
	default:
		return false
	}
}

// Err returns a *RankError if a rank has failed, or nil.
func (b *Barrier) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Longest returns the longest time from a packet's first sending to the error of its queue pair:
// (retries + 1) · 4.096 µs · 2^timeout. Hardware may take four times as long (InfiniBand, 9.7.6.1.3).
func Longest(timeout uint8, retries int) time.Duration {
	return time.Duration(retries+1) * timerUnit << timeout
}
