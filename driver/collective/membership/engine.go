package membership

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Engine keeps keys. Its methods may be called from several goroutines. An engine that cannot be reached
// makes them wait, until ctx ends at the latest; they return an UnavailableError then.
type Engine interface {
	// Name returns the engine's name for messages.
	Name() string
	// Grant makes a lease. It is kept alive until Revoke, Close or its loss. It ends when this process
	// is silent for ttl; an engine may raise a short ttl.
	Grant(ctx context.Context, ttl time.Duration) (Lease, error)
	// Get returns the keys with a prefix.
	Get(ctx context.Context, prefix string) (Snapshot, error)
	// Commit applies a transaction if its conditions hold, and reports whether they did. After an error,
	// the transaction may have been applied. Errors: LeaseError, UnavailableError.
	Commit(ctx context.Context, t Txn) (done bool, err error)
	// Await returns when a key with the prefix has changed after a revision. It may return earlier.
	Await(ctx context.Context, prefix string, after int64) error
	// Close ends the leases of this engine.
	Close() error
}

// Lease is the right to keys: the engine deletes them when it ends.
type Lease interface {
	// ID returns its number, which is not 0.
	ID() int64
	// Lost returns a channel that is closed when the lease has ended.
	Lost() <-chan struct{}
	// Revoke ends the lease. After an error, it is no longer kept alive, and ends after its time.
	Revoke(ctx context.Context) error
}

// Snapshot is the state of the keys with a prefix at a revision.
type Snapshot struct {
	Revision int64
	Keys     []Key // in the order of names
}

// Key is one key.
type Key struct {
	Name     string
	Value    string
	Modified int64 // revision of its last change
}

// Find returns a key of the snapshot. Its Modified is 0 if it does not exist.
func (s *Snapshot) Find(name string) Key {
	i, found := slices.BinarySearchFunc(s.Keys, name, func(k Key, name string) int { return strings.Compare(k.Name, name) })
	if !found {
		return Key{Name: name}
	}
	return s.Keys[i]
}

// Txn is a transaction: if all conditions hold, all puts and deletes are one change. It names no key twice
// in Put and Delete.
type Txn struct {
	If     []Condition
	Put    []Put
	Delete []string
}

// Condition holds if the last change of a key was at a revision. 0 means that the key does not exist.
type Condition struct {
	Key      string
	Modified int64
}

// Put sets a key.
type Put struct {
	Key   string
	Value string
	Lease int64 // Lease.ID, or 0: the key stays until it is deleted
}

// Lead makes a key under a lease, unless it exists, and reports whether it did: an election of one of those
// who try. The winner leads until its lease ends or it deletes the key. Its transactions have the key as a
// condition.
func Lead(ctx context.Context, e Engine, l Lease, key, value string) (bool, error) {
	return e.Commit(ctx, Txn{If: []Condition{{Key: key}}, Put: []Put{{key, value, l.ID()}}})
}

// UnavailableError means that an engine does not answer.
type UnavailableError struct {
	Engine string
	Err    error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("engine %s does not answer: %v; check that it runs and, for etcd, has a quorum", e.Engine, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// LeaseError means that a transaction puts a key under a lease that has ended.
type LeaseError struct {
	Engine string
	Lease  int64
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("lease %x of engine %s has ended; grant another one", e.Lease, e.Engine)
}

// NameError is the error for an invalid name of an engine.
type NameError struct {
	Name  string
	Why   string
	Known []string // schemes
}

func (e *NameError) Error() string {
	return fmt.Sprintf("engine %q: %s; known are %s", e.Name, e.Why, strings.Join(e.Known, ", "))
}

// Options are those of Open, for openers.
type Options struct {
	TLS *tls.Config // nil: the default of the scheme
}

// Option changes how an engine is opened.
type Option func(*Options)

// WithTLS sets the trusted CA and the client's certificate for an engine that is reached by TLS.
func WithTLS(c *tls.Config) Option { return func(o *Options) { o.TLS = c } }

// Opener opens an engine by its address, the part of the name after the scheme.
type Opener func(ctx context.Context, address string, o Options) (Engine, error)

var (
	mu      sync.Mutex
	schemes = map[string]Opener{"memory": openMemory, "unix": openUnix}
)

// Register adds a scheme. It panics if the scheme is registered already, which is a bug in the program.
func Register(scheme string, open Opener) {
	mu.Lock()
	defer mu.Unlock()
	if schemes[scheme] != nil {
		panic("membership: scheme " + scheme + " registered twice")
	}
	schemes[scheme] = open
}

// Open opens an engine by its name: memory:NAME, for members in one process; unix:PATH, for those of one
// machine (Serve); or etcd:URL,URL,... if the program imports package etcd. The error for another name is a
// NameError.
func Open(ctx context.Context, name string, opts ...Option) (Engine, error) {
	scheme, address, ok := strings.Cut(name, ":")
	mu.Lock()
	open := schemes[scheme]
	known := slices.Sorted(maps.Keys(schemes))
	mu.Unlock()
	switch {
	case !ok:
		return nil, &NameError{name, "it must be SCHEME:ADDRESS", known}
	case open == nil:
		return nil, &NameError{name, fmt.Sprintf("scheme %q is not in this program; etcd needs the import of driver/collective/membership/etcd", scheme), known}
	}
	var o Options
	for _, f := range opts {
		f(&o)
	}
	return open(ctx, address, o)
}
