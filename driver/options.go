package driver

// The options of Open.

import (
	"crypto/rand"
	"io"
	"time"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

// DefaultTimeout is how long a call waits without progress when WithTimeout is not given.
const DefaultTimeout = 10 * time.Second

// Option changes how Open opens a card.
type Option func(*options)

type options struct {
	timeout time.Duration
	record  io.Writer
	needs   transport.Needs
	random  io.Reader
	reads   bool
	reopens bool
	tell    func(away *DiedError) // of reopens; may be nil
	warn    func(text string)     // may be nil

	fixedWindow bool

	expected JobConfig // of a job to join
}

func newOptions(opts []Option) options {
	o := options{timeout: DefaultTimeout, random: rand.Reader}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// WithTimeout sets how long a call waits without progress. Progress is a result, bytes that the
// link takes, or the contribution of a missing rank. A context limits the whole call.
func WithTimeout(d time.Duration) Option {
	return func(o *options) { o.timeout = d }
}

// WithRecord writes every byte of the link to w as a link log (see package record). `tributary
// decode` prints a log, and record.Playback plays it. The caller closes w after the card.
func WithRecord(w io.Writer) Option {
	return func(o *options) { o.record = w }
}

// WithWarnings makes the driver call warn when the host is set up such that the card works, but slowly.
// Without it, nothing is said.
func WithWarnings(warn func(text string)) Option {
	return func(o *options) { o.warn = warn }
}

// WithWorkers sets the number of workers that the caller needs. The cards "cpu:" and "model:"
// then have that many ports. Other cards have a fixed number; Configure returns an error when
// there are too few.
func WithWorkers(n int) Option {
	return func(o *options) { o.needs.Workers = n }
}

// WithFormat sets the format of the caller's arrays. The cards "cpu:" and "model:" have this
// format unless their name gives a folder or another format. Other cards have a fixed format,
// Card.Info().Format.
func WithFormat(f wire.Format) Option {
	return func(o *options) { o.needs.Format = f }
}

// WithRandom sets the source of the owner's token (8 bytes) and of the first epoch (2 bytes).
// The default is crypto/rand. Playback of a recording needs the values in the recording.
func WithRandom(r io.Reader) Option {
	return func(o *options) { o.random = r }
}

// WithReadOnly opens the card without ownership and writes nothing to it. Operations that would
// write return ErrReadOnly. A card that accepts one host at a time is still occupied until
// Close. Use Card.ServeReads to share such a card with other programs.
func WithReadOnly() Option {
	return func(o *options) { o.reads = true }
}

// WithAdmin asks the daemon of a shared card ("serve:") to pass on register writes, so that Reset works. A
// daemon does so if it was started with -admin. All frames go through the daemon then. Other cards ignore the
// option.
func WithAdmin() Option {
	return func(o *options) { o.needs.Admin = true }
}

// WithReopen makes the driver open the card again whenever it goes, until Close, also while no job
// waits for it. Jobs without CarryOn end as usual, and new ones wait for the card. The driver calls tell
// with the reason when the card goes, and with nil when it is back; tell may be nil. The card is gone for
// good, as without this option, when another card answers. OpenConn ignores the option.
func WithReopen(tell func(away *DiedError)) Option {
	return func(o *options) { o.reopens, o.tell = true, tell }
}

// WithJob sets the parameters that a member expects of the job that it joins (Join). Fields of 0 are
// not compared.
func WithJob(cfg JobConfig) Option {
	return func(o *options) { o.expected = cfg }
}

// WithFixedWindow keeps as many chunks in flight as the job's window allows, whatever the network marks or
// loses. Without it, a job on a network shrinks its windows where queues grow (NETWORK.md, section 8). It
// has no effect on other cards.
func WithFixedWindow() Option {
	return func(o *options) { o.fixedWindow = true }
}

// ReduceOption changes one call of Reduce, AllReduce or Start.
type ReduceOption func(*reduceOptions)

type reduceOptions struct {
	progress func(done, total int)
	detach   bool
	mean     bool
	timeout  time.Duration
}

// optionsOf returns the options of a call. A call without options allocates nothing for them.
func optionsOf(opts []ReduceOption) reduceOptions {
	if len(opts) == 0 {
		return reduceOptions{}
	}
	var o reduceOptions
	for _, f := range opts {
		f(&o)
	}
	return o
}

// WithProgress calls f with the number of elements summed so far and the total: at the start,
// as results come, and at the end. It runs in the goroutine of the call, and a slow f delays the
// call's return, not the link.
func WithProgress(f func(done, total int)) ReduceOption {
	return func(o *reduceOptions) { o.progress = f }
}

// WithCallTimeout sets how long the call waits without progress, instead of the card's WithTimeout.
func WithCallTimeout(d time.Duration) ReduceOption {
	return func(o *reduceOptions) { o.timeout = d }
}

// WithMean divides every sum by the number of its contributors, as element.Mean does. All members of
// the call ask for the mean, or none does: a daemon ends the job of members that differ, with a
// CallsDifferError. Without a daemon, nobody compares the members of a program.
//
// It is an InputError on a card that does not add (Info.CheckAdds).
func WithMean() ReduceOption {
	return func(o *reduceOptions) { o.mean = true }
}

// WithDetach lets a call whose context ends leave without ending the job. The driver copies the
// inputs that the card still needs and keeps contributing, so that the other members get their
// sums. The member's next call follows as usual. Without it, a call whose context ends ends the
// job, or leaves it (JobConfig.Partial).
func WithDetach() ReduceOption {
	return func(o *reduceOptions) { o.detach = true }
}
