package driver

// The errors of this package. Each names what failed, where, and the remedy.

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/driver/daemon/protocol"
	"tributary/driver/wire"
)

// ErrClosed is the error of a Card and its jobs after Close.
var ErrClosed = errors.New("this program has closed the card; open it again to continue")

// ErrReadOnly is the error of writes to a Card that was opened WithReadOnly.
var ErrReadOnly = errors.New("the card is open for reading only; open it without WithReadOnly to use it")

// NoCardError is the error of Open when there is no card under that name, or when the other end
// does not reply like a card.
type NoCardError struct {
	Name   string // as given to Open
	Reason string // what was tried and the remedy; may be empty when Err has it
	Err    error  // cause; may be nil
}

func (e *NoCardError) Error() string {
	return "no card at " + strings.TrimSuffix(e.Name, ":") + ": " + e.rest(e.place())
}

func (e *NoCardError) place() place            { return place{card: e.Name} }
func (e *NoCardError) rest(named place) string { return named.sentence(e.Reason, e.Err) }

func (e *NoCardError) Unwrap() error { return e.Err }

// BusyError is the error of Open when another host has the card.
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

// VersionError is the error of Open when the card uses another protocol version.
type VersionError struct {
	Name      string
	Got, Want int
}

func (e *VersionError) Error() string     { return e.text("card " + e.Name) }
func (e *VersionError) place() place      { return place{card: e.Name} }
func (e *VersionError) rest(place) string { return e.text("it") }

func (e *VersionError) text(card string) string {
	remedy := "generate the card again with the hwgen of this driver"
	if e.Got > e.Want {
		remedy = "use a newer driver"
	}
	return fmt.Sprintf("%s speaks protocol version %d, this driver version %d; %s", card, e.Got, e.Want, remedy)
}

// HashError is the error of Open when the card's configuration hash is not the expected one.
type HashError struct {
	Name      string
	Got, Want uint64
	From      string // the source of Want
}

func (e *HashError) Error() string     { return e.text("card " + e.Name) }
func (e *HashError) place() place      { return place{card: e.Name} }
func (e *HashError) rest(place) string { return e.text("it") }

func (e *HashError) text(card string) string {
	return fmt.Sprintf("%s has configuration hash %016x, but %s gives %016x; build the card again from its folder",
		card, e.Got, e.From, e.Want)
}

// InputError means that an argument is wrong. The card has not been touched.
type InputError struct {
	What string // the argument
	Why  string // what is wrong and what would be right
}

func (e *InputError) Error() string { return e.What + ": " + e.Why }

// RefusedError means that the card refused a register access or a packet.
type RefusedError struct {
	Card  string
	What  string // "write JOB_COMMIT", "chunk 7 of rank 2"
	Value uint64 // the value of the write; else 0
	Code  wire.Code

	job string // the label of the packet's job, if it has one
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

// FullError is the error of Configure when the card has no room for another job.
type FullError struct {
	Card    string
	Numbers int        // most jobs the card holds at once
	Slots   int        // slots they share
	Window  int        // window of the new job, which takes twice as many slots
	Jobs    []JobState // the jobs that are set up
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
		if has != "" { // else no job that has room is set up yet
			has = ": " + has
		}
		return fmt.Sprintf("%s holds %d jobs at once, and all are in use%s; close or abort a job, or use a card generated with more -jobs", card, e.Numbers, has)
	}
	do := "close or abort a job"
	if window := e.Fits(); window > 0 {
		do = fmt.Sprintf("use a window of %d, the largest that fits, or close or abort a job", window)
	}
	return fmt.Sprintf("%s has no free slots for a window of %d, which needs %d consecutive slots of its %d: %s; %s", card, e.Window, 2*e.Window, e.Slots, has, do)
}

func (e *FullError) Unwrap() error { return e.Err }

// Fits returns the largest window, in chunks, for which there are free slots, or 0.
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

// MissingError means that a chunk waited too long for the contributions of some ranks.
type MissingError struct {
	Card   string
	VID    uint32        // number of the chunk in the job's stream
	Ranks  []int         // ranks whose contribution the card lacks
	Waited time.Duration // since the last sign of progress
	Up     []UpRefusal   // of the cards of a tree; usually none
	Err    error         // the context's error when it ended the wait; else nil

	job string // the job's label
}

func (e *MissingError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *MissingError) place() place  { return place{e.Card, e.job} }

func (e *MissingError) rest(place) string {
	msg := fmt.Sprintf("chunk %d waited %s for %s", e.VID, round(e.Waited), ranksText(e.Ranks)) +
		cmp.Or(upText(e.Up), "; check that they run and send arrays of the same length")
	if e.Err != nil {
		msg += " (" + e.Err.Error() + ")"
	}
	return msg
}

func (e *MissingError) Unwrap() error { return e.Err }

// Timeout reports true: a MissingError is a timeout.
func (e *MissingError) Timeout() bool { return true }

// TimeoutError means that the card has not replied for too long, and that no missing rank is
// known.
type TimeoutError struct {
	Card   string
	What   string // what the driver waited for
	Waited time.Duration
	Up     []UpRefusal // of the cards of a tree; usually none
	Err    error       // the context's error when it ended the wait; else nil

	job string // the label of the waiting job, if any
}

func (e *TimeoutError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *TimeoutError) place() place  { return place{e.Card, e.job} }

func (e *TimeoutError) rest(place) string {
	msg := fmt.Sprintf("no reply for %s to %s", round(e.Waited), e.What) +
		cmp.Or(upText(e.Up), "; check that the card runs, or set a longer timeout")
	if e.Err != nil {
		msg += " (" + e.Err.Error() + ")"
	}
	return msg
}

func (e *TimeoutError) Unwrap() error { return e.Err }

// Timeout reports true.
func (e *TimeoutError) Timeout() bool { return true }

// EndedError is the error of a job that is over. Configure sets up the next one.
type EndedError struct {
	Card  string
	Epoch uint16
	Err   error // why the job ended; nil when it was finished

	job string // the job's label
}

func (e *EndedError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *EndedError) place() place  { return place{e.Card, e.job} }

func (e *EndedError) rest(named place) string {
	msg := fmt.Sprintf("the job of epoch %d has ended", e.Epoch)
	if e.Err != nil {
		msg += ": " + named.within(e.Err)
	}
	return msg + "; configure a new job to continue"
}

func (e *EndedError) Unwrap() error { return e.Err }

// JoinError means that a daemon refused a job or a seat.
type JoinError struct {
	Card   string
	Reason protocol.Reason // NO_JOB, STARTED, TAKEN, LIMIT, STOPPING, FULL
	Text   string          // what is wrong and the remedy
}

func (e *JoinError) Error() string     { return e.place().String() + ": " + e.Text }
func (e *JoinError) place() place      { return place{card: e.Card} }
func (e *JoinError) rest(place) string { return e.Text }

// NotStartedError means that members were missing when the time to wait for them was over
// (JobConfig.Wait).
type NotStartedError struct {
	Card    string
	Missing []int // ranks
	Text    string
}

func (e *NotStartedError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *NotStartedError) place() place  { return place{card: e.Card} }
func (e *NotStartedError) rest(place) string {
	return "the job has not started: " + e.Text + "; check that all members run"
}

// Timeout reports true: a NotStartedError is a timeout.
func (e *NotStartedError) Timeout() bool { return true }

// MemberLostError is the cause in the EndedError of a job that lost members: their connections ended,
// or they left.
type MemberLostError struct {
	Card  string
	Ranks []int
}

func (e *MemberLostError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *MemberLostError) place() place  { return place{card: e.Card} }

func (e *MemberLostError) rest(place) string {
	return "the connection of " + ranksText(e.Ranks) + " has ended; check its process"
}

// MemberFailedError is the cause in the EndedError of a job of RDMA connections, on all ranks, when a queue
// pair of a rank failed, or ranks came too late.
type MemberFailedError struct {
	Card  string
	Ranks []int  // that failed first, or did not come
	Text  string // what happened
}

func (e *MemberFailedError) Error() string     { return e.place().String() + ": " + e.rest(e.place()) }
func (e *MemberFailedError) place() place      { return place{card: e.Card} }
func (e *MemberFailedError) rest(place) string { return e.Text + "; check its process and its network" }

// CallsDifferError is the cause in the EndedError of a job whose members called for different
// reductions. Nothing of these calls was summed.
type CallsDifferError struct {
	Card  string
	Ranks []int  // the two that differ
	Text  string // both calls
}

func (e *CallsDifferError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *CallsDifferError) place() place  { return place{card: e.Card} }
func (e *CallsDifferError) rest(place) string {
	return e.Text + "; all members make the same calls in the same order"
}

// ResultLostError is the cause in the EndedError of a job that could not continue: some members have a
// result that others lack, and nobody keeps it.
type ResultLostError struct {
	Card string
	VID  uint32 // the chunk; arrays hold the sums before it
}

func (e *ResultLostError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *ResultLostError) place() place  { return place{card: e.Card} }
func (e *ResultLostError) rest(place) string {
	return fmt.Sprintf("nobody has kept the result of chunk %d, which some members have and others lack", e.VID)
}

// StoppedError is the error of a call whose own context ended. It wraps the context's error.
type StoppedError struct {
	Card string
	What string // "read LANES", "reduction stopped after 16 of 40 elements"
	Err  error  // the context's error

	job string // the job's label; empty for a call of the card
}

func (e *StoppedError) Error() string     { return e.place().String() + ": " + e.rest(e.place()) }
func (e *StoppedError) place() place      { return place{e.Card, e.job} }
func (e *StoppedError) rest(place) string { return e.What + ": " + e.Err.Error() }
func (e *StoppedError) Unwrap() error     { return e.Err }

// GivenUpError is the cause of an EndedError when the context of one call ended the job. The
// other members' calls and later calls return that EndedError. GivenUpError does not wrap the
// error of the first call: errors.Is finds the context's error only in that call's own error.
type GivenUpError struct {
	Card string
	Call string // "call of rank 2"
	Err  error  // the error that call returned

	job string // the job's label
}

func (e *GivenUpError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *GivenUpError) place() place  { return place{e.Card, e.job} }
func (e *GivenUpError) rest(named place) string {
	return "the " + e.Call + " was canceled: " + named.within(e.Err)
}

// EvictedError is the error of calls by a member that has left the job while the others
// continue (JobConfig.Partial).
type EvictedError struct {
	Card string
	Rank int
	VID  uint32 // the chunk that lacked the member
	Err  error  // the error of the context that made the member leave, not wrapped; else nil

	job string // the job's label
}

func (e *EvictedError) Error() string { return e.place().String() + ": " + e.rest(e.place()) }
func (e *EvictedError) place() place  { return place{e.Card, e.job} }

func (e *EvictedError) rest(place) string {
	why := "its data came too late"
	if e.Err != nil {
		why = "its call was canceled (" + e.Err.Error() + ")"
	}
	return fmt.Sprintf("rank %d was evicted at chunk %d: %s; the other ranks continue; close the job and configure a new one to readmit it",
		e.Rank, e.VID, why)
}

// DiedError means that the link to the card broke, or that the card was lost (LeaseLostError).
type DiedError struct {
	Card string
	Err  error // the error of the link
}

func (e *DiedError) Error() string           { return e.text("card "+e.Card, e.place()) }
func (e *DiedError) place() place            { return place{card: e.Card} }
func (e *DiedError) rest(named place) string { return e.text("it", named) }

func (e *DiedError) text(card string, named place) string {
	if lost := (*LeaseLostError)(nil); errors.As(e.Err, &lost) {
		return fmt.Sprintf("%s is lost: %s; open it again", card, lost)
	}
	return fmt.Sprintf("%s disconnected: %s; start it and open it again", card, named.within(e.Err))
}

// Reason returns the text of the link's error, without addresses.
func (e *DiedError) Reason() string { return e.place().within(e.Err) }

func (e *DiedError) Unwrap() error { return e.Err }

// LostError is the error of a job with CarryOn whose card did not come back in time, or came back
// as another card.
type LostError struct {
	Card   string
	Cause  *DiedError    // why the card went
	Waited time.Duration // since the card went
	Err    error         // the error of the last attempt to open the card, or the context's error
}

func (e *LostError) Error() string           { return e.text("card "+e.Card, e.place()) }
func (e *LostError) place() place            { return place{card: e.Card} }
func (e *LostError) rest(named place) string { return e.text("it", named) }

func (e *LostError) text(card string, named place) string {
	cause, last := named.within(e.Cause.Err), named.within(e.Err)
	if isOtherCard(e.Err) {
		return fmt.Sprintf("%s disconnected (%s), and the job cannot continue: %s", card, cause, last)
	}
	return fmt.Sprintf("%s disconnected (%s) and did not return within %s: %s; start it and begin again, or wait longer", card, cause, round(e.Waited), last)
}

// Unwrap returns both errors, so that errors.As finds the DiedError.
func (e *LostError) Unwrap() []error { return []error{e.Cause, e.Err} }

// OtherCardError means that another card answers under the name of a lost one.
type OtherCardError struct {
	Name      string
	Got, Want uint64 // configuration hashes
}

func (e *OtherCardError) Error() string     { return e.text("another card replies at " + e.Name) }
func (e *OtherCardError) place() place      { return place{card: e.Name} }
func (e *OtherCardError) rest(place) string { return e.text("another card replies") }

func (e *OtherCardError) text(what string) string {
	return fmt.Sprintf("%s: its configuration hash is %016x, not %016x, which the job began with; reconnect the job's card and begin again", what, e.Got, e.Want)
}

// failure is an error with a place and without a type of its own.
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
	job  string // the job's label; empty when the error belongs to no job
}

// placed is an error that names its place. Inside another error of the same place, only rest is
// printed.
type placed interface {
	error
	place() place
	rest(named place) string // the text without the place that is already named
}

// String returns the text that names the place.
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

// sentence joins a reason and a cause. Either may be missing.
func (p place) sentence(reason string, err error) string {
	switch {
	case err == nil:
		return reason
	case reason == "":
		return p.within(err)
	}
	return reason + ": " + p.within(err)
}

// linkWords returns the text of a link's error without the addresses and the system call that
// package net adds ("read unix @->card.sock: read: "). The card's name already gives the place.
func linkWords(err error) string {
	if op, ok := err.(*net.OpError); ok {
		err = op.Err
	}
	if call, ok := err.(*os.SyscallError); ok {
		err = call.Err
	}
	return err.Error()
}

// codeDoc returns the sentence for a code from the table.
func codeDoc(c wire.Code) string {
	if i, ok := c.Info(); ok {
		return i.Doc
	}
	return "a code that is unknown to this driver"
}

// ranksText lists ranks as in "rank 2" and "ranks 0, 3".
func ranksText(ranks []int) string {
	s := make([]string, len(ranks))
	for i, r := range ranks {
		s[i] = strconv.Itoa(r)
	}
	if len(s) == 1 {
		return "rank " + s[0]
	}
	return "ranks " + strings.Join(s, ", ")
}

// round rounds a duration for printing.
func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
