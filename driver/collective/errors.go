package collective

// The errors of this package. Each names the member at fault.

import (
	"context"
	"errors"
	"fmt"
)

// ErrClosed is the error of calls after Close.
var ErrClosed = errors.New("this member has left the group by Close")

// InputError means that an argument is invalid. Nothing was sent, and the group goes on.
type InputError struct {
	What string // the argument
	Why  string
}

func (e *InputError) Error() string { return e.What + ": " + e.Why }

// LostError means that a member is gone: its process has ended, it is silent, it cannot be reached,
// or it has left.
type LostError struct {
	Rank int
	ID   string
	Text string // what happened
	By   int    // the rank that noticed
	Late bool   // it could not be reached within the connect time of By
}

// Timeout reports whether the connect time has passed.
func (e *LostError) Timeout() bool { return e.Late }

func (e *LostError) Error() string {
	return fmt.Sprintf("rank %d (%s) is lost: %s; check its process and its network", e.Rank, e.ID, e.Text)
}

// Left reports whether the member has left in order: it took no part in the call, and will take none.
func (e *LostError) Left() bool { return e.Text == textLeft }

// textLeft is the Text of a member that has left. Aborts bring it to others.
const textLeft = "it has left the group"

// DifferError means that two members made different calls. Nothing of these calls is a sum.
type DifferError struct {
	Ranks [2]int // that differ
	Text  string // both calls
}

func (e *DifferError) Error() string {
	return e.Text + "; all members make the same calls in the same order"
}

// ProtocolError means that a member sent what no member sends, or that the network changed its bytes.
type ProtocolError struct {
	Rank int
	ID   string
	Text string
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("rank %d (%s) violates the protocol: %s; check its version and its network", e.Rank, e.ID, e.Text)
}

// GivenUpError means that another member ended the group: the context of its call ended, its card
// failed, or its program closed it in a call.
type GivenUpError struct {
	Rank int
	ID   string
	Text string // the error there
}

func (e *GivenUpError) Error() string {
	return fmt.Sprintf("rank %d (%s) has given up: %s", e.Rank, e.ID, e.Text)
}

// RefusedError means that a member refused this one's connection.
type RefusedError struct {
	Rank   int // that refused
	ID     string
	Reason Reason
	Text   string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("rank %d (%s) refused this member (%s): %s", e.Rank, e.ID, e.Reason, e.Text)
}

// Reason is why a member refuses a connection (SPEC.md, section 8).
type Reason uint8

// The reasons.
const (
	welcome          Reason = 0
	ReasonStranger   Reason = 1 // the token differs
	ReasonInvalid    Reason = 2 // another group, another address, or not a member at all
	ReasonGeneration Reason = 3
	ReasonMember     Reason = 4 // no such rank, or another ID
	ReasonTwice      Reason = 5 // the rank is connected already
	reasonEnded      Reason = 6 // the cause follows, which is the error then
)

func (r Reason) String() string {
	names := [...]string{"welcome", "stranger", "invalid", "generation", "member", "twice", "ended"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// StoppedError is the error of a call whose own context ended. It wraps the context's error. The
// group has then ended on all members.
type StoppedError struct {
	What string // the call, as in "all-reduce 3"
	Rank int    // that the call was waiting for; -1 if none
	ID   string
	Err  error
}

func (e *StoppedError) Error() string {
	if e.Rank < 0 {
		return fmt.Sprintf("%s: %v", e.What, e.Err)
	}
	return fmt.Sprintf("%s, waiting for rank %d (%s): %v", e.What, e.Rank, e.ID, e.Err)
}

func (e *StoppedError) Unwrap() error { return e.Err }

// Timeout reports whether the context's deadline has passed.
func (e *StoppedError) Timeout() bool { return errors.Is(e.Err, context.DeadlineExceeded) }

// EndedError is the error of calls that start after the group has ended. A group of a new generation
// continues.
type EndedError struct {
	Name       string
	Generation uint64
	Err        error // why the group ended
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("generation %d of group %q has ended: %v; open a new generation to continue", e.Generation, e.Name, e.Err)
}

func (e *EndedError) Unwrap() error { return e.Err }

// CardError means that a call failed on the member's card. It wraps the driver's error.
type CardError struct {
	Rank int // of this member
	Err  error
}

func (e *CardError) Error() string { return e.Err.Error() }
func (e *CardError) Unwrap() error { return e.Err }

// Timeout reports whether the driver's error is a timeout.
func (e *CardError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}
