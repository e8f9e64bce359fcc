package collective

import (
	"context"
	"fmt"
	"net"
	"time"

	"tributary/driver/element"
	"tributary/driver/wire"
)

// Collective runs the operations of one member of a group. Arrays are encoded elements of a format,
// little-endian, one after another; see the functions of the same names for arrays of Go types.
//
// All members make the same calls in the same order. Calls of a member queue in the order of their
// starts and run one at a time. ctx is that of the whole call: when it ends first, the group ends on
// all members. So does any failure; Open a group of a new generation to continue. After an error,
// outputs are undefined. Methods may be called from several goroutines.
//
// The errors are InputError, which leaves the group as it is, and LostError, DifferError,
// ProtocolError, GivenUpError, RefusedError, CardError, StoppedError, EndedError and ErrClosed.
type Collective interface {
	// AllReduce computes in dst the sums of all members' src. dst may be src; otherwise they must
	// not overlap. It has at least one element.
	AllReduce(ctx context.Context, f wire.Format, dst, src []byte) error
	// ReduceScatter computes in dst the sums of this member's piece (see Piece) of all src.
	// dst must not overlap src.
	ReduceScatter(ctx context.Context, f wire.Format, dst, src []byte) error
	// AllGather copies the pieces of all members into dst. src is this member's piece (see Piece)
	// of an array as long as dst. It may be that part of dst; otherwise they must not overlap.
	AllGather(ctx context.Context, f wire.Format, dst, src []byte) error
	// Broadcast copies buf of rank root into buf of all others.
	Broadcast(ctx context.Context, f wire.Format, buf []byte, root int) error

	// The methods below do the same, and return as soon as the call is queued. The arrays are in
	// use until it is over. Errors: InputError, EndedError, ErrClosed; others come from Pending.
	StartAllReduce(ctx context.Context, f wire.Format, dst, src []byte) (*Pending, error)
	StartReduceScatter(ctx context.Context, f wire.Format, dst, src []byte) (*Pending, error)
	StartAllGather(ctx context.Context, f wire.Format, dst, src []byte) (*Pending, error)
	StartBroadcast(ctx context.Context, f wire.Format, buf []byte, root int) (*Pending, error)

	// Group returns the group.
	Group() Group
	// Algorithm returns the algorithm.
	Algorithm() Algorithm
	// Stats returns the member's counters since Open.
	Stats() Stats
	// Err returns why the group has ended, or nil.
	Err() error
	// Done returns a channel that is closed when the group has ended, or Close has.
	Done() <-chan struct{}
	// Close waits for the queued calls and leaves the group in order: it waits until the other
	// members have taken what was sent to them. When ctx ends first, it leaves anyway, at most two
	// seconds later, and returns a StoppedError. A second Close waits for the first, and returns nil
	// then.
	Close(ctx context.Context) error
}

// Stats counts what a member did. Bytes are those of elements, without headers.
type Stats struct {
	Calls    uint64 // that are over
	Steps    uint64 // pieces and arrays received from one other member each
	Chunks   uint64 // messages with or without elements received
	Sent     uint64 // bytes sent
	Received uint64 // bytes received
}

// The default times.
const (
	DefaultSilence = 10 * time.Second
	DefaultConnect = 10 * time.Second
)

// Option changes how a collective is opened.
type Option func(*options)

type options struct {
	silence time.Duration
	connect time.Duration
	warn    func(text string)
	network network
}

func newOptions(opts []Option) options {
	o := options{silence: DefaultSilence, connect: DefaultConnect, warn: func(string) {}, network: sockets}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// check returns an InputError for a time that no group has.
func (o *options) check() error {
	switch {
	case o.silence <= 0:
		return &InputError{"silence time", fmt.Sprintf("it is %s; it must be more than zero", o.silence)}
	case o.connect < 0:
		return &InputError{"connect time", fmt.Sprintf("it is %s; it must not be negative", o.connect)}
	}
	return nil
}

// WithSilence sets how long a member may be silent before it is lost. Members send signs of life by
// themselves, five in this time.
func WithSilence(d time.Duration) Option {
	return func(o *options) { o.silence = d }
}

// WithConnectTime sets how long a member that does not listen yet is waited for.
func WithConnectTime(d time.Duration) Option {
	return func(o *options) { o.connect = d }
}

// WithWarnings makes the member call warn, from any goroutine, when it refuses a connection or does not
// use a card.
func WithWarnings(warn func(text string)) Option {
	return func(o *options) { o.warn = warn }
}

// WithDialer replaces how the member connects to the addresses of others, as through a proxy or at a
// limited rate. The dialer of a connection sends all data on it; the acceptor sends control messages alone.
// If the connection has CloseWrite, the member ends its direction by that.
func WithDialer(dial func(ctx context.Context, address string) (net.Conn, error)) Option {
	return func(o *options) { o.network.dial = dial }
}

// algorithm is one way to run the operations.
type algorithm interface {
	allReduce(c *call) error
	reduceScatter(c *call) error
	allGather(c *call) error
	broadcast(c *call) error
}

// member implements Collective for every algorithm.
type member struct {
	*endpoint
	number Algorithm
	how    algorithm
	plan   uint32 // its check with Rina and in parallel; else 0
}

// Open joins a group under one of the algorithms Ring, Tree and PS. It returns as soon as this member
// listens; connections are made by the first calls. OpenCard, OpenRina and OpenParallel are for the
// algorithms with cards.
func Open(ctx context.Context, a Algorithm, g Group, opts ...Option) (Collective, error) {
	how := map[Algorithm]algorithm{Ring: hostRing{}, Tree: tree{}, PS: server{}}[a]
	if how == nil {
		return nil, &InputError{"algorithm", fmt.Sprintf("%s is not one of ring, tree and ps", a)}
	}
	return open(ctx, a, how, g, newOptions(opts))
}

func open(ctx context.Context, a Algorithm, how algorithm, g Group, o options) (*member, error) {
	e, err := openEndpoint(ctx, g, o)
	if err != nil {
		return nil, err
	}
	return &member{endpoint: e, number: a, how: how}, nil
}

func (m *member) Group() Group                    { return m.group }
func (m *member) Algorithm() Algorithm            { return m.number }
func (m *member) Done() <-chan struct{}           { return m.life.Done() }
func (m *member) Close(ctx context.Context) error { return m.close(ctx) }

func (m *member) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

func (m *member) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause
}

func (m *member) AllReduce(ctx context.Context, f wire.Format, dst, src []byte) error {
	return wait(m.StartAllReduce(ctx, f, dst, src))
}

func (m *member) ReduceScatter(ctx context.Context, f wire.Format, dst, src []byte) error {
	return wait(m.StartReduceScatter(ctx, f, dst, src))
}

func (m *member) AllGather(ctx context.Context, f wire.Format, dst, src []byte) error {
	return wait(m.StartAllGather(ctx, f, dst, src))
}

func (m *member) Broadcast(ctx context.Context, f wire.Format, buf []byte, root int) error {
	return wait(m.StartBroadcast(ctx, f, buf, root))
}

// wait waits for a call that ends with its own context.
func wait(p *Pending, err error) error {
	if err != nil {
		return err
	}
	<-p.done
	return p.err
}

func (m *member) StartAllReduce(ctx context.Context, f wire.Format, dst, src []byte) (*Pending, error) {
	if err := CheckAllReduce(f, dst, src); err != nil {
		return nil, err
	}
	n := len(src) / element.Size(f)
	return m.start(ctx, description{AllReduceOp, f, m.number, m.plan, uint64(n)}, dst, src, m.how.allReduce)
}

func (m *member) StartReduceScatter(ctx context.Context, f wire.Format, dst, src []byte) (*Pending, error) {
	n, err := elements("src", f, src)
	if err == nil {
		err = m.checkPiece("dst", f, dst, n)
	}
	switch {
	case err != nil:
		return nil, err
	case overlap(dst, src):
		return nil, &InputError{"dst", "it overlaps src"}
	}
	return m.start(ctx, description{ReduceScatterOp, f, m.number, 0, uint64(n)}, dst, src, m.how.reduceScatter)
}

func (m *member) StartAllGather(ctx context.Context, f wire.Format, dst, src []byte) (*Pending, error) {
	n, err := elements("dst", f, dst)
	if err == nil {
		err = m.checkPiece("src", f, src, n)
	}
	from, _ := Piece(m.group.Rank, m.group.Size(), n)
	switch {
	case err != nil:
		return nil, err
	case overlap(dst, src) && &src[0] != &dst[from*element.Size(f)]:
		return nil, &InputError{"src", "it overlaps dst; it must be this member's piece of dst, or apart"}
	}
	return m.start(ctx, description{AllGatherOp, f, m.number, 0, uint64(n)}, dst, src, m.how.allGather)
}

func (m *member) StartBroadcast(ctx context.Context, f wire.Format, buf []byte, root int) (*Pending, error) {
	n, err := elements("array", f, buf)
	switch {
	case err != nil:
		return nil, err
	case root < 0 || root >= m.group.Size():
		return nil, &InputError{"root", fmt.Sprintf("the group has no rank %d: its %d members are ranks 0 to %d", root, m.group.Size(), m.group.Size()-1)}
	}
	return m.start(ctx, description{BroadcastOp, f, m.number, uint32(root), uint64(n)}, buf, buf, m.how.broadcast)
}

// CheckAllReduce returns an InputError if no all-reduce takes the arrays.
func CheckAllReduce(f wire.Format, dst, src []byte) error {
	_, err := elements("array", f, src)
	switch {
	case err != nil:
		return err
	case len(dst) != len(src):
		return &InputError{"dst", fmt.Sprintf("it has %d bytes, src has %d", len(dst), len(src))}
	case overlap(dst, src) && &dst[0] != &src[0]:
		return &InputError{"dst", "it overlaps src; they must be the same array, or apart"}
	}
	return nil
}

// elements returns the length of an array.
func elements(what string, f wire.Format, array []byte) (int, error) {
	size := element.Size(f)
	switch {
	case size == 0:
		return 0, &InputError{"format", fmt.Sprintf("%s is unknown", f)}
	case len(array) == 0:
		return 0, &InputError{what, "it is empty"}
	case len(array)%size != 0:
		return 0, &InputError{what, fmt.Sprintf("its %d bytes are not whole elements of %s, %d bytes each", len(array), f, size)}
	}
	return len(array) / size, nil
}

// checkPiece refuses an array that is not as long as this member's piece of n elements.
func (m *member) checkPiece(what string, f wire.Format, array []byte, n int) error {
	from, to := Piece(m.group.Rank, m.group.Size(), n)
	if want := (to - from) * element.Size(f); len(array) != want {
		return &InputError{what, fmt.Sprintf("it has %d bytes; the piece of %s, elements %d to %d of %d, has %d",
			len(array), m.group.name(m.group.Rank), from, to, n, want)}
	}
	return nil
}
