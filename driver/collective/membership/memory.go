package membership

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a store in memory. Its keys end with the process.
type Memory struct {
	name string

	mu       sync.Mutex
	revision int64
	keys     map[string]stored
	leases   map[int64]*memoryLease
	granted  int64
	changes  []change      // the last ones, by revision
	forgot   int64         // the highest revision that changes may lack
	changed  chan struct{} // closed and replaced at each change
}

type stored struct {
	Key
	lease int64
}

type change struct {
	revision int64
	key      string
}

// maxChanges is how many changes the store remembers for Await. Await returns early for older ones.
const maxChanges = 1024

// NewMemory returns an empty store. Name is for messages. Revisions and leases count from the time, so that a
// client does not take those of a store before it for this one's.
func NewMemory(name string) *Memory {
	now := time.Now().UnixNano()
	return &Memory{name: name, revision: now, forgot: now, granted: now,
		keys: map[string]stored{}, leases: map[int64]*memoryLease{}, changed: make(chan struct{})}
}

// stores are those of the scheme memory.
var stores = struct {
	sync.Mutex
	byName map[string]*Memory
}{byName: map[string]*Memory{}}

func openMemory(_ context.Context, address string, _ Options) (Engine, error) {
	stores.Lock()
	defer stores.Unlock()
	m := stores.byName[address]
	if m == nil {
		m = NewMemory("memory:" + address)
		stores.byName[address] = m
	}
	return m.Open(), nil
}

// Open returns an engine on the store. Its leases end when it is closed; ttl means nothing.
func (m *Memory) Open() Engine { return &memoryEngine{store: m} }

// memoryEngine is one user of a store.
type memoryEngine struct {
	store *Memory

	mu     sync.Mutex
	leases []*memoryLease
	closed bool
}

var errClosed = errors.New("it is closed")

func (e *memoryEngine) Name() string { return e.store.name }

func (e *memoryEngine) Grant(context.Context, time.Duration) (Lease, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, &UnavailableError{e.store.name, errClosed}
	}
	l := e.store.grant()
	e.leases = append(slices.DeleteFunc(e.leases, (*memoryLease).ended), l)
	return l, nil
}

func (e *memoryEngine) Get(ctx context.Context, prefix string) (Snapshot, error) {
	if err := e.usable(ctx); err != nil {
		return Snapshot{}, err
	}
	return e.store.get(prefix), nil
}

func (e *memoryEngine) Commit(ctx context.Context, t Txn) (bool, error) {
	if err := e.usable(ctx); err != nil {
		return false, err
	}
	return e.store.commit(t)
}

func (e *memoryEngine) Await(ctx context.Context, prefix string, after int64) error {
	if err := e.usable(ctx); err != nil {
		return err
	}
	if err := e.store.await(ctx, prefix, after); err != nil {
		return &UnavailableError{e.store.name, err}
	}
	return nil
}

func (e *memoryEngine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, l := range e.leases {
		l.end()
	}
	return nil
}

// usable returns an error after Close, or the end of ctx.
func (e *memoryEngine) usable(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := ctx.Err()
	if e.closed {
		err = errClosed
	}
	if err != nil {
		return &UnavailableError{e.store.name, err}
	}
	return nil
}

// memoryLease is a lease of a store.
type memoryLease struct {
	store *Memory
	id    int64
	lost  chan struct{}
}

func (l *memoryLease) ID() int64                    { return l.id }
func (l *memoryLease) Lost() <-chan struct{}        { return l.lost }
func (l *memoryLease) Revoke(context.Context) error { l.end(); return nil }

func (l *memoryLease) ended() bool {
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}

// end ends the lease and deletes its keys.
func (l *memoryLease) end() {
	m := l.store
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leases[l.id] == nil {
		return
	}
	delete(m.leases, l.id)
	close(l.lost)
	var gone []string
	for name, k := range m.keys {
		if k.lease == l.id {
			gone = append(gone, name)
		}
	}
	m.applyLocked(nil, gone)
}

func (m *Memory) grant() *memoryLease {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.granted++
	l := &memoryLease{m, m.granted, make(chan struct{})}
	m.leases[l.id] = l
	return l
}

func (m *Memory) get(prefix string) Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Snapshot{Revision: m.revision}
	for name, k := range m.keys {
		if strings.HasPrefix(name, prefix) {
			s.Keys = append(s.Keys, k.Key)
		}
	}
	slices.SortFunc(s.Keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func (m *Memory) commit(t Txn) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range t.If {
		if m.keys[c.Key].Modified != c.Modified {
			return false, nil
		}
	}
	for _, p := range t.Put {
		if p.Lease != 0 && m.leases[p.Lease] == nil {
			return false, &LeaseError{m.name, p.Lease}
		}
	}
	m.applyLocked(t.Put, t.Delete)
	return true, nil
}

// applyLocked makes one change.
func (m *Memory) applyLocked(puts []Put, deletes []string) {
	if len(puts)+len(deletes) == 0 {
		return
	}
	m.revision++
	for _, p := range puts {
		m.keys[p.Key] = stored{Key{p.Key, p.Value, m.revision}, p.Lease}
		m.changes = append(m.changes, change{m.revision, p.Key})
	}
	for _, name := range deletes {
		if _, found := m.keys[name]; found {
			delete(m.keys, name)
			m.changes = append(m.changes, change{m.revision, name})
		}
	}
	if n := len(m.changes) - maxChanges; n > 0 {
		m.forgot = m.changes[n-1].revision
		m.changes = append([]change(nil), m.changes[n:]...)
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *Memory) await(ctx context.Context, prefix string, after int64) error {
	for {
		m.mu.Lock()
		changed := m.changed
		came := after < m.forgot || slices.ContainsFunc(m.changes, func(c change) bool {
			return c.revision > after && strings.HasPrefix(c.key, prefix)
		})
		m.mu.Unlock()
		if came {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
