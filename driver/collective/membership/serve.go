package membership

// A store behind a Unix socket: net/rpc, with one session for each connection.

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"sync"
	"time"
)

// pollTime is how long the daemon lets a client wait for a change before it answers without one.
const pollTime = 5 * time.Second

// Serve lets the processes of this machine use a store, as engine unix:PATH, until ctx ends. It closes the
// listener. A lease ends with its client's connection, or when the client has been silent for its time. Who
// can connect can read and write all keys.
func Serve(ctx context.Context, l net.Listener, m *Memory) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	serving, stop := context.WithCancel(ctx)
	defer stop()
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // as when this process has too many open files
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		sessions.Go(func() { serveConn(serving, conn, m) })
	}
}

// serveConn serves one client.
func serveConn(ctx context.Context, conn net.Conn, m *Memory) {
	ctx, stop := context.WithCancel(ctx)
	s := &Session{store: m, ctx: ctx, leases: map[int64]*timedLease{}}
	server := rpc.NewServer()
	if err := server.Register(s); err != nil {
		panic("membership: " + err.Error()) // its methods are not those of net/rpc
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	gone := make(chan struct{})
	go func() { // ServeConn waits for calls under way, and these for the end of ctx
		server.ServeConn(&noticed{conn, gone, sync.Once{}})
		stop()
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	}
	stop()
	s.end()
}

// noticed reports the end of a connection when it is read.
type noticed struct {
	net.Conn
	gone chan struct{}
	once sync.Once
}

func (c *noticed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.once.Do(func() { close(c.gone) })
	}
	return n, err
}

// Session is the daemon's side of a connection. It is exported for net/rpc alone.
type Session struct {
	store *Memory
	ctx   context.Context

	mu     sync.Mutex
	leases map[int64]*timedLease
	over   bool
}

// timedLease ends when nobody keeps it alive.
type timedLease struct {
	*memoryLease
	ttl   time.Duration
	timer *time.Timer
}

// Messages of the daemon. They are exported for net/rpc alone.
type (
	// TxnReply is the answer to a transaction.
	TxnReply struct {
		Done bool
		Gone int64 // a lease that has ended; 0: none
	}
	// AwaitCall waits for a change.
	AwaitCall struct {
		Prefix string
		After  int64
	}
)

// Get is Engine.Get.
func (s *Session) Get(prefix string, reply *Snapshot) error {
	*reply = s.store.get(prefix)
	return nil
}

// Commit is Engine.Commit.
func (s *Session) Commit(t Txn, reply *TxnReply) error {
	done, err := s.store.commit(t)
	var gone *LeaseError
	if errors.As(err, &gone) {
		*reply = TxnReply{Gone: gone.Lease}
		return nil
	}
	*reply = TxnReply{Done: done}
	return err
}

// Await is Engine.Await. It replies after pollTime in any case.
func (s *Session) Await(a AwaitCall, changed *bool) error {
	ctx, cancel := context.WithTimeout(s.ctx, pollTime)
	defer cancel()
	*changed = s.store.await(ctx, a.Prefix, a.After) == nil
	return nil
}

// Grant makes a lease.
func (s *Session) Grant(ttl time.Duration, id *int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errClosed
	}
	l := &timedLease{memoryLease: s.store.grant(), ttl: ttl}
	l.timer = time.AfterFunc(ttl, l.end)
	s.leases[l.id] = l
	*id = l.id
	return nil
}

// Keep keeps a lease alive, and reports whether it is.
func (s *Session) Keep(id int64, alive *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[id]
	*alive = l != nil && l.timer.Reset(l.ttl)
	if l != nil && !*alive {
		l.timer.Stop()
	}
	return nil
}

// Revoke ends a lease.
func (s *Session) Revoke(id int64, _ *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[id]; l != nil {
		l.timer.Stop()
		l.end()
		delete(s.leases, id)
	}
	return nil
}

// end ends the leases of the connection.
func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, l := range s.leases {
		l.timer.Stop()
		l.end()
	}
}
