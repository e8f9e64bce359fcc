package elastic

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrClosed is the error of calls after Close.
var ErrClosed = errors.New("this member has left by Close")

// Reason is why a group does not take a member.
type Reason string

// The reasons.
const (
	ReasonToken    Reason = "token"    // it differs from the group's
	ReasonSettings Reason = "settings" // Expect or OnFailure differ from the group's
	ReasonID       Reason = "ID"       // another living member has it
	ReasonAddress  Reason = "address"  // another living member has it
)

// RefusedError means that this member cannot be in the group.
type RefusedError struct {
	Group  string
	ID     string
	Reason Reason
	Text   string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("group %q does not take %s (%s): %s", e.Group, e.ID, e.Reason, e.Text)
}

// WaitError means that the context of a call ended while it waited for the next generation. The call then
// fails on all members that have not completed it. It wraps the context's error, and the last failure if there was one.
type WaitError struct {
	Group string
	For   string // what was waited for
	Err   error
	Cause error // the failure before, or the engine's error; may be nil
}

func (e *WaitError) Error() string {
	text := fmt.Sprintf("group %q, waiting for %s: %v", e.Group, e.For, e.Err)
	if e.Cause != nil {
		text += fmt.Sprintf(" (%v)", e.Cause)
	}
	return text
}

func (e *WaitError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// Timeout reports whether the context's deadline has passed.
func (e *WaitError) Timeout() bool { return errors.Is(e.Err, context.DeadlineExceeded) }

// LostError means that members were lost, and that this call failed on all others because its sum would lack
// them. Later calls go on without them.
type LostError struct {
	Call uint64
	IDs  []string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("call %d lacks %s, lost; later calls go on without", e.Call, strings.Join(e.IDs, ", "))
}

// FailedError means that a call failed on all members because of one.
type FailedError struct {
	Call uint64
	ID   string // of the member whose failure it is
	Text string
	Err  error // this member's own error, if it has one
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("call %d failed on all members because of %s: %s", e.Call, e.ID, e.Text)
}

func (e *FailedError) Unwrap() error { return e.Err }

// EvictedError means that the group has gone on without this member, because the engine had not heard of it
// for its lease's time. It is a newcomer from now on.
type EvictedError struct {
	Group      string
	Generation uint64 // the first one without it
}

func (e *EvictedError) Error() string {
	return fmt.Sprintf("generation %d of group %q went on without this member, whose lease had ended; it is a newcomer from the next call on", e.Generation, e.Group)
}
