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
	return "no card at " + strings.TrimSuffix(e.Name, ":") + ": " + e.rest(e.place())
}

func (e *NoCardError) place() place            { return place{card: e.Name} }
func (e *NoCardError) rest(named place) string { return named.sentence(e.Reason, e.Err) }

func (e *NoCardError) Unwrap() error { return e.Err }

// BusyError is answered by Open when another host has the card.
type BusyError struct {
	Name   string
	Reason string
}

func (e *BusyError) Error() string     { return e.text("card " + e.Name) }
func (e *BusyError) place() place      { return place{card: e.Name} }
func (e *BusyError) rest(place) string { return e.text("it") }

func (e *BusyError) text(card string) string {
	return card + " is busy: " + e.Reason + "; try again when the other host has closed it"
}

// VersionError is answered by Open when the card speaks another version of the
// protocol.
type VersionError struct {
	Name      string
	Got, Want int
}

func (e *VersionError) Error() string     { return e.text("card " + e.Name) }
func (e *VersionError) place() place      { return place{card: e.Name} }
func (e *VersionError) rest(place) string { return e.text("it") }

func (e *VersionError) text(card string) string {
	return fmt.Sprintf("%s speaks protocol version %d, this driver version %d; generate the card again with the hwgen of this driver",
		card, e.Got, e.Want)
}

// HashError is answered by Open when the card's configuration hash is not the
// expected one.
type HashError struct {
	Name      string
	Got, Want uint64
	From      string // where Want comes from
}

func (e *HashError) Error() string     { return e.text("card " + e.Name) }
func (e *HashError) place() place      { return place{card: e.Name} }
func (e *HashError) rest(place) string { return e.text("it") }

func (e *HashError) text(card string) string {
	return fmt.Sprintf("%s has configuration hash %016x, but %s gives %016x; build the card again from its folder",
		card, e.Got, e.From, e.Want)
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

	job string // the label of the job whose packet it was, if it was one
}

func (e *RefusedError) Error() string     { return e.text("card "+e.Card, e.job) }
func (e *RefusedError) place() place      { return place{e.Card, e.job} }
func (e *RefusedError) rest(place) string { return e.text("it", "") }

func (e *RefusedError) text(card, job string) string {
	what := e.What
	if e.Value != 0 {
		what += fmt.Sprintf(" (0x%x)", e.Value)
	}
	return fmt.Sprintf("%s refused %s%s: %s: %s", card, what, job, e.Code, codeDoc(e.Code))
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

func (e *FullError) Error() string     { return e.text("card " + e.Card) }
func (e *FullError) place() place      { return place{card: e.Card} }
func (e *FullError) rest(place) string { return e.text("it") }

func (e *FullError) text(card string) string {
	var taken []string
	for _, s := range e.Jobs {
		taken = append(taken, fmt.Sprintf("job %d has slots %d to %d", s.Number, s.FirstSlot, s.FirstSlot+s.Slots-1))
	}
	has := strings.Join(taken, ", ")
	if e.Err == nil {
		return fmt.Sprintf("%s holds %d jobs at once, and all are in use: %s; close or abort one, or use a card generated with more -jobs", card, e.Numbers, has)
	}
	do := "close or abort one"
	if window := e.Fits(); window > 0 {
		do = fmt.Sprintf("ask for a window of %d, the largest that fits, or close or abort one", window)
	}
	return fmt.Sprintf("%s has no slots left for a window of %d, which takes %d of its %d in a row: %s; %s", card, e.Window, 2*e.Window, e.Slots, has, do)
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

func (e *MissingError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *MissingError) place() place  { return place{e.Card, e.job} }

func (e *MissingError) rest(place) string {
	s := make([]string, len(e.Ranks))
	for i, r := range e.Ranks {
		s[i] = strconv.Itoa(r)
	}
	word := "rank "
	if len(s) > 1 {
		word = "ranks "
	}
	msg := fmt.Sprintf("chunk %d waited %s for %s%s; see whether they run and send arrays of the same length",
		e.VID, round(e.Waited), word, strings.Join(s, ", "))
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

func (e *TimeoutError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *TimeoutError) place() place  { return place{e.Card, e.job} }

func (e *TimeoutError) rest(place) string {
	msg := fmt.Sprintf("no answer for %s to %s; see whether the card runs, or allow it more time", round(e.Waited), e.What)
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

func (e *EndedError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *EndedError) place() place  { return place{e.Card, e.job} }

func (e *EndedError) rest(named place) string {
	msg := fmt.Sprintf("the job of epoch %d has ended", e.Epoch)
	if e.Err != nil {
		msg += ": " + named.within(e.Err)
	}
	return msg + "; configure a new one to go on"
}

func (e *EndedError) Unwrap() error { return e.Err }

// StoppedError is answered by a call whose own context ended. It wraps the context's
// error.
type StoppedError struct {
	Card string
	What string // "read LANES", "reduction stopped after 16 of 40 elements"
	Err  error  // the context's error

	job string // the label of the job, if the call was one of a job's
}

func (e *StoppedError) Error() string     { return e.place().String() + ": " + e.rest(e.place()) }
func (e *StoppedError) place() place      { return place{e.Card, e.job} }
func (e *StoppedError) rest(place) string { return e.What + ": " + e.Err.Error() }
func (e *StoppedError) Unwrap() error     { return e.Err }

// GivenUpError is why a job has ended after the context of one of its calls did.
// Later calls, and those under way of other members, answer an EndedError with it.
// It does not wrap the error of that call: errors.Is finds a context's error only
// in what the call with that context answers.
type GivenUpError struct {
	Card string
	Call string // "call of rank 2"
	Err  error  // what that call answered

	job string // its label
}

func (e *GivenUpError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *GivenUpError) place() place  { return place{e.Card, e.job} }
func (e *GivenUpError) rest(named place) string {
	return "the " + e.Call + " was given up: " + named.within(e.Err)
}

// EvictedError is answered by the calls of a member that takes no part in the job
// any more, while the others go on (JobConfig.Partial).
type EvictedError struct {
	Card string
	Rank int
	VID  uint32 // of the chunk for which it was waited in vain
	Err  error  // the error of the context whose end made it leave, not wrapped; nil when the card evicted it

	job string // its label
}

func (e *EvictedError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *EvictedError) place() place  { return place{e.Card, e.job} }

func (e *EvictedError) rest(place) string {
	why := "the card has evicted it, as it came too late"
	if e.Err != nil {
		why = "its call was given up (" + e.Err.Error() + ")"
	}
	return fmt.Sprintf("rank %d is out of the job since chunk %d: %s; the others go on; close the job and configure a new one to have it back",
		e.Rank, e.VID, why)
}

// DiedError is answered when the link to the card broke.
type DiedError struct {
	Card string
	Err  error // what the link said
}

func (e *DiedError) Error() string           { return e.text("card "+e.Card, e.place()) }
func (e *DiedError) place() place            { return place{card: e.Card} }
func (e *DiedError) rest(named place) string { return e.text("it", named) }

func (e *DiedError) text(card string, named place) string {
	return fmt.Sprintf("%s is gone: %s; start it and open it again", card, named.within(e.Err))
}

// Reason returns what the link said, without its addresses.
func (e *DiedError) Reason() string { return e.place().within(e.Err) }

func (e *DiedError) Unwrap() error { return e.Err }

// LostError is answered by a job that was to carry on and cannot: its card went
// away, and was not back in time or is another.
type LostError struct {
	Card   string
	Cause  *DiedError    // why it went
	Waited time.Duration // since it went
	Err    error         // what came of the last attempt to open it, or the context's error when that ended the wait
}

func (e *LostError) Error() string           { return e.text("card "+e.Card, e.place()) }
func (e *LostError) place() place            { return place{card: e.Card} }
func (e *LostError) rest(named place) string { return e.text("it", named) }

func (e *LostError) text(card string, named place) string {
	cause, last := named.within(e.Cause.Err), named.within(e.Err)
	if isOtherCard(e.Err) {
		return fmt.Sprintf("%s went away (%s) and the job cannot go on: %s", card, cause, last)
	}
	return fmt.Sprintf("%s went away (%s) and was not back after %s: %s; start it and begin again, or allow it more time", card, cause, round(e.Waited), last)
}

// Unwrap returns both: to programs that know DiedError it is one.
func (e *LostError) Unwrap() []error { return []error{e.Cause, e.Err} }

// OtherCardError says that a card which was looked for has come back as another.
type OtherCardError struct {
	Name      string
	Got, Want uint64 // configuration hashes
}

func (e *OtherCardError) Error() string     { return e.text("another card answers at " + e.Name) }
func (e *OtherCardError) place() place      { return place{card: e.Name} }
func (e *OtherCardError) rest(place) string { return e.text("another card answers") }

func (e *OtherCardError) text(what string) string {
	return fmt.Sprintf("%s: its configuration hash is %016x, that of the card which the job began on %016x; bring that one back and begin again", what, e.Got, e.Want)
}

// failure is an error of a place for which there is no type.
type failure struct {
	at   place
	what string
	err  error // cause; may be nil
}

func (e *failure) Error() string           { return e.at.String() + ": " + e.rest(e.place()) }
func (e *failure) place() place            { return e.at }
func (e *failure) rest(named place) string { return named.sentence(e.what, e.err) }
func (e *failure) Unwrap() error           { return e.err }

// place is the card and the job of an error.
type place struct {
	card string
	job  string // its label, Job.label; empty where the error is no job's
}

// placed is an error that names its place. Inside another error of the same place
// only the rest of its text is printed.
type placed interface {
	error
	place() place
	rest(named place) string // the text without the place that is named already
}

// String returns the words with which an error names its place.
func (p place) String() string { return "card " + p.card + p.job }

// within returns the text of err inside an error that has named p.
func (p place) within(err error) string {
	e, ok := err.(placed)
	if !ok || e.place().card != p.card {
		return linkWords(err)
	}
	if job := e.place().job; job != p.job && job != "" {
		return strings.TrimPrefix(job, ", ") + ": " + e.rest(e.place())
	}
	return e.rest(p)
}

// sentence joins a reason and a cause, of which either may be missing.
func (p place) sentence(reason string, err error) string {
	switch {
	case err == nil:
		return reason
	case reason == "":
		return p.within(err)
	}
	return reason + ": " + p.within(err)
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
