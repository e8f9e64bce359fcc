package driver

// The errors of this package. Each says what failed, where, and what to do.

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/driver/wire"
)

// ErrClosed is answered by a Card, and by its jobs, after Close.
var ErrClosed = errors.New("the card was closed by this program; open it again to go on")

// ErrReadOnly is answered by a Card that was opened WithReadOnly.
var ErrReadOnly = errors.New("the card was opened to be looked at; open it without WithReadOnly to use it")

// NoCardError is answered by Open when there is no card under that name, or
// what is there does not answer as a card does.
type NoCardError struct {
	Name   string // as given to Open
	Reason string // what was tried and what to do; may be empty when Err says it
	Err    error  // cause; may be nil
}

func (e *NoCardError) Error() string {
	return "no card at " + strings.TrimSuffix(e.Name, ":") + ": " + sentence(e.Reason, e.Err)
}

func (e *NoCardError) Unwrap() error { return e.Err }

// BusyError is answered by Open when another host has the card.
type BusyError struct {
	Name   string
	Reason string
}

func (e *BusyError) Error() string {
	return "card " + e.Name + " is busy: " + e.Reason + "; try again when the other host has closed it"
}

// VersionError is answered by Open when the card speaks another version of the
// protocol.
type VersionError struct {
	Name      string
	Got, Want int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("card %s speaks protocol version %d, this driver version %d; generate the card again with the hwgen of this driver",
		e.Name, e.Got, e.Want)
}

// HashError is answered by Open when the card's configuration hash is not the
// expected one.
type HashError struct {
	Name      string
	Got, Want uint64
	From      string // where Want comes from
}

func (e *HashError) Error() string {
	return fmt.Sprintf("card %s has configuration hash %016x, but %s gives %016x; build the card again from its folder",
		e.Name, e.Got, e.From, e.Want)
}

// InputError is answered for arguments that cannot be right. The card has not
// been touched.
type InputError struct {
	What string // the argument
	Why  string // what is wrong with it and what would be right
}

func (e *InputError) Error() string { return e.What + ": " + e.Why }

// RefusedError is answered when the card refuses a register access, or a packet.
type RefusedError struct {
	Card  string
	What  string // "write JOB_COMMIT", "chunk 7 of rank 2"
	Value uint64 // what was to be written; else 0
	Code  wire.Code
}

func (e *RefusedError) Error() string {
	what := e.What
	if e.Value != 0 {
		what += fmt.Sprintf(" (0x%x)", e.Value)
	}
	return fmt.Sprintf("card %s refused %s: %s: %s", e.Card, what, e.Code, codeDoc(e.Code))
}

// FullError is answered by Configure when the card has no room for another job.
type FullError struct {
	Card    string
	Numbers int        // jobs that the card holds at once
	Slots   int        // that they share
	Window  int        // of the job that was to be set up; it takes twice as many slots
	Jobs    []JobState // those that are set up
	Err     error      // the card's refusal; nil when all numbers are in use
}

func (e *FullError) Error() string {
	var taken []string
	for _, s := range e.Jobs {
		taken = append(taken, fmt.Sprintf("job %d has slots %d to %d", s.Number, s.FirstSlot, s.FirstSlot+s.Slots-1))
	}
	has := strings.Join(taken, ", ")
	if e.Err == nil {
		return fmt.Sprintf("card %s holds %d jobs at once, and all are in use: %s; close or abort one, or use a card generated with more -jobs", e.Card, e.Numbers, has)
	}
	do := "close or abort one"
	if window := e.Fits(); window > 0 {
		do = fmt.Sprintf("ask for a window of %d, the largest that fits, or close or abort one", window)
	}
	return fmt.Sprintf("card %s has no slots left for a window of %d, which takes %d of its %d in a row: %s; %s", e.Card, e.Window, 2*e.Window, e.Slots, has, do)
}

func (e *FullError) Unwrap() error { return e.Err }

// Fits returns the largest window, in chunks, for which the jobs that are set up
// leave slots; 0 when they leave none.
func (e *FullError) Fits() int {
	for window := e.Slots / 2; window > 0; window /= 2 {
		for first := 0; first < e.Slots; first += 2 * window {
			if !slices.ContainsFunc(e.Jobs, func(s JobState) bool {
				return s.FirstSlot < first+2*window && first < s.FirstSlot+s.Slots
			}) {
				return window
			}
		}
	}
	return 0
}

// MissingError is answered when a chunk waited too long for the contributions
// of some ranks.
type MissingError struct {
	Card   string
	VID    uint32        // number of the chunk in the job's stream
	Ranks  []int         // those whose contribution the card does not hold
	Waited time.Duration // since the last sign of progress
	Err    error         // the context's error when that ended the wait; else nil

	job string // its label
}

func (e *MissingError) Error() string {
	s := make([]string, len(e.Ranks))
	for i, r := range e.Ranks {
		s[i] = strconv.Itoa(r)
	}
	word := "rank "
	if len(s) > 1 {
		word = "ranks "
	}
	msg := fmt.Sprintf("card %s%s: chunk %d waited %s for %s%s; see whether they run and send arrays of the same length",
		e.Card, e.job, e.VID, round(e.Waited), word, strings.Join(s, ", "))
	if e.Err != nil {
		msg += " (" + e.Err.Error() + ")"
	}
	return msg
}

func (e *MissingError) Unwrap() error { return e.Err }

// Timeout reports true: a MissingError is a time-out.
func (e *MissingError) Timeout() bool { return true }

// TimeoutError is answered when the card has not answered for too long and
// nothing tells who is to blame.
type TimeoutError struct {
	Card   string
	What   string // what was waited for
	Waited time.Duration
	Err    error // the context's error when that ended the wait; else nil

	job string // the label of the job that waited, if one did
}

func (e *TimeoutError) Error() string {
	msg := fmt.Sprintf("card %s%s: no answer for %s to %s; see whether the card runs, or allow it more time",
		e.Card, e.job, round(e.Waited), e.What)
	if e.Err != nil {
		msg += " (" + e.Err.Error() + ")"
	}
	return msg
}

func (e *TimeoutError) Unwrap() error { return e.Err }

// Timeout reports true.
func (e *TimeoutError) Timeout() bool { return true }

// EndedError is answered by a job that is over. Configure sets up the next one.
type EndedError struct {
	Card  string
	Epoch uint16
	Err   error // why it ended; nil when it was finished

	job string // its label
}

func (e *EndedError) Error() string {
	msg := fmt.Sprintf("card %s%s: the job of epoch %d has ended", e.Card, e.job, e.Epoch)
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg + "; configure a new one to go on"
}

func (e *EndedError) Unwrap() error { return e.Err }

// EvictedError is answered by the calls of a member that takes no part in the job
// any more, while the others go on (JobConfig.Partial).
type EvictedError struct {
	Card string
	Rank int
	VID  uint32 // of the chunk for which it was waited in vain
	Err  error  // the error of the context with which it left by itself; nil when the card evicted it

	job string // its label
}

func (e *EvictedError) Error() string {
	why := "the card has evicted it, as it came too late"
	if e.Err != nil {
		why = "its call was given up (" + e.Err.Error() + ")"
	}
	return fmt.Sprintf("card %s%s: rank %d is out of the job since chunk %d: %s; the others go on; close the job and configure a new one to have it back",
		e.Card, e.job, e.Rank, e.VID, why)
}

func (e *EvictedError) Unwrap() error { return e.Err }

// DiedError is answered when the link to the card broke.
type DiedError struct {
	Card string
	Err  error // what the link said
}

func (e *DiedError) Error() string {
	return fmt.Sprintf("card %s is gone: %s; start it and open it again", e.Card, e.Reason())
}

// Reason returns what the link said, without its addresses.
func (e *DiedError) Reason() string { return linkWords(e.Err) }

func (e *DiedError) Unwrap() error { return e.Err }

// LostError is answered by a job that was to carry on and cannot: its card went
// away, and was not back in time or is another.
type LostError struct {
	Card   string
	Cause  *DiedError    // why it went
	Waited time.Duration // since it went
	Err    error         // what came of the last attempt to open it, or the context's error when that ended the wait
}

func (e *LostError) Error() string {
	cause := e.Cause.Reason()
	if isOtherCard(e.Err) {
		return fmt.Sprintf("card %s went away (%s) and the job cannot go on: %s", e.Card, cause, e.Err)
	}
	return fmt.Sprintf("card %s went away (%s) and was not back after %s: %s; start it and begin again, or allow it more time", e.Card, cause, round(e.Waited), e.Err)
}

// Unwrap returns both: to programs that know DiedError it is one.
func (e *LostError) Unwrap() []error { return []error{e.Cause, e.Err} }

// OtherCardError says that a card which was looked for has come back as another.
type OtherCardError struct {
	Name      string
	Got, Want uint64 // configuration hashes
}

func (e *OtherCardError) Error() string {
	return fmt.Sprintf("another card answers at %s: its configuration hash is %016x, that of the card which the job began on %016x; bring that one back and begin again", e.Name, e.Got, e.Want)
}

// sentence joins a reason and a cause, of which either may be missing.
func sentence(reason string, err error) string {
	switch {
	case err == nil:
		return reason
	case reason == "":
		return linkWords(err)
	}
	return reason + ": " + linkWords(err)
}

// linkWords returns what a link said when it broke, without the addresses and
// the system call ("read unix @->card.sock: read: ") that package net puts
// before it: the card's name says where.
func linkWords(err error) string {
	if op, ok := err.(*net.OpError); ok {
		err = op.Err
	}
	if call, ok := err.(*os.SyscallError); ok {
		err = call.Err
	}
	return err.Error()
}

// codeDoc returns the table's sentence on a code.
func codeDoc(c wire.Code) string {
	if i, ok := c.Info(); ok {
		return i.Doc
	}
	return "a code that this driver does not know"
}

// round cuts a duration to what is worth printing.
func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
