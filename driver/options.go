package driver

// The options of Open.

import (
	"crypto/rand"
	"io"
	"time"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

// DefaultTimeout is how long a card may show no progress before a call gives
// up, unless WithTimeout says otherwise.
const DefaultTimeout = 10 * time.Second

// Option changes how Open opens a card.
type Option func(*options)

type options struct {
	timeout time.Duration
	record  io.Writer
	needs   transport.Needs
	random  io.Reader
	reads   bool
}

func newOptions(opts []Option) options {
	o := options{timeout: DefaultTimeout, random: rand.Reader}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// WithTimeout sets how long a call waits while nothing moves: no result comes,
// the link takes no bytes, and no missing rank turns up. It does not bound a
// call that makes progress; a context does.
func WithTimeout(d time.Duration) Option {
	return func(o *options) { o.timeout = d }
}

// WithRecord writes every byte of the link to w as a link log (see package
// record), which `tributary decode` prints and record.Playback plays. The
// caller closes w, after the card.
func WithRecord(w io.Writer) Option {
	return func(o *options) { o.record = w }
}

// WithWorkers says how many workers the caller will have. The card "model:",
// which no folder describes, is made with that many ports; other cards have the
// ports they have, and Configure says when they are too few.
func WithWorkers(n int) Option {
	return func(o *options) { o.needs.Workers = n }
}

// WithFormat says of which format the caller's arrays will be. The card "model:",
// when neither a folder nor its name says otherwise, is made for it; other cards
// have the format they have, which Card.Info tells.
func WithFormat(f wire.Format) Option {
	return func(o *options) { o.needs.Format = f }
}

// WithRandom sets the source of the owner's token (8 bytes) and of the first
// epoch (2 bytes), crypto/rand by default. It is there for playing back a
// recording, which holds both.
func WithRandom(r io.Reader) Option {
	return func(o *options) { o.random = r }
}

// WithReadOnly opens the card to look at it: it is not owned, nothing is written
// to it, and what would write answers ErrReadOnly. A card that takes one host at
// a time is taken all the same until Close; Card.ServeReads lets others look at a
// card through the program that has it.
func WithReadOnly() Option {
	return func(o *options) { o.reads = true }
}

// ReduceOption changes one call of Job.Reduce.
type ReduceOption func(*reduceOptions)

type reduceOptions struct {
	progress func(done, total int)
}

// WithProgress has f called with the number of elements summed so far and of
// all elements: at the start, as results come (no more often than f returns),
// and at the end. It runs in the goroutine of Reduce: a slow f delays the return
// of Reduce, not the link.
func WithProgress(f func(done, total int)) ReduceOption {
	return func(o *reduceOptions) { o.progress = f }
}
