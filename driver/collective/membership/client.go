package membership

import (
	"context"
	"net"
	"net/rpc"
	"sync"
	"time"
)

// client is an engine behind a Unix socket. It connects when it is used, also again.
type client struct {
	path string

	mu     sync.Mutex
	link   *rpc.Client // nil: not connected
	closed bool
	wg     sync.WaitGroup
	over   chan struct{} // closed by Close
}

func openUnix(ctx context.Context, path string, _ Options) (Engine, error) {
	c := &client{path: path, over: make(chan struct{})}
	if _, err := c.connected(ctx); err != nil {
		return nil, c.unavailable(err)
	}
	return c, nil
}

func (c *client) Name() string { return "unix:" + c.path }

func (c *client) unavailable(err error) error { return &UnavailableError{c.Name(), err} }

// connected returns the connection, and makes one if there is none.
func (c *client) connected(ctx context.Context) (*rpc.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.link == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", c.path)
		if err != nil {
			return nil, err
		}
		c.link = rpc.NewClient(conn)
	}
	return c.link, nil
}

// retryPause is between attempts to reach a daemon.
const retryPause = 50 * time.Millisecond

// ask sends a request until the daemon has answered.
func (c *client) ask(ctx context.Context, method string, args, reply any) error {
	for {
		link, err := c.connected(ctx)
		if err == nil {
			err = c.askOn(ctx, link, method, args, reply)
		}
		if err == nil {
			return nil
		}
		if err == errClosed || ctx.Err() != nil {
			return c.unavailable(err)
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return c.unavailable(err)
		}
	}
}

// askOn sends a request once. A connection that fails is not used again.
func (c *client) askOn(ctx context.Context, link *rpc.Client, method string, args, reply any) error {
	call := link.Go("Session."+method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if call.Error != nil {
		c.drop(link)
	}
	return call.Error
}

func (c *client) drop(link *rpc.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == link {
		c.link = nil
	}
	_ = link.Close() // again, perhaps
}

func (c *client) Get(ctx context.Context, prefix string) (Snapshot, error) {
	s := new(Snapshot) // of its own: an abandoned answer may still come
	if err := c.ask(ctx, "Get", prefix, s); err != nil {
		return Snapshot{}, err
	}
	return *s, nil
}

func (c *client) Commit(ctx context.Context, t Txn) (bool, error) {
	// Not asked again on another connection: it may have been applied.
	link, err := c.connected(ctx)
	reply := new(TxnReply)
	if err == nil {
		err = c.askOn(ctx, link, "Commit", t, reply)
	}
	switch {
	case err != nil:
		return false, c.unavailable(err)
	case reply.Gone != 0:
		return false, &LeaseError{c.Name(), reply.Gone}
	}
	return reply.Done, nil
}

func (c *client) Await(ctx context.Context, prefix string, after int64) error {
	for changed := new(bool); !*changed; {
		link, err := c.connected(ctx)
		if err == nil {
			err = c.askOn(ctx, link, "Await", AwaitCall{prefix, after}, changed)
		}
		if err != nil {
			return c.unavailable(err)
		}
	}
	return nil
}

func (c *client) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.over)
	}
	if c.link != nil {
		_ = c.link.Close() // the daemon ends the leases
	}
	c.mu.Unlock()
	c.wg.Wait()
	return nil
}

// clientLease is a lease of a daemon. It ends with the connection that it was granted on.
type clientLease struct {
	*client
	link *rpc.Client
	id   int64
	lost chan struct{}
	once sync.Once
}

func (c *client) Grant(ctx context.Context, ttl time.Duration) (Lease, error) {
	link, err := c.connected(ctx)
	id := new(int64)
	if err == nil {
		err = c.askOn(ctx, link, "Grant", ttl, id)
	}
	if err != nil {
		return nil, c.unavailable(err)
	}
	l := &clientLease{client: c, link: link, id: *id, lost: make(chan struct{})}
	c.wg.Go(func() { l.keep(ttl) })
	return l, nil
}

// keep keeps the lease alive.
func (l *clientLease) keep(ttl time.Duration) {
	defer l.end()
	for {
		select {
		case <-time.After(ttl / 3):
		case <-l.lost:
			return
		case <-l.over:
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), ttl)
		alive := new(bool)
		err := l.askOn(ctx, l.link, "Keep", l.id, alive)
		cancel()
		if err != nil || !*alive {
			return
		}
	}
}

func (l *clientLease) end() { l.once.Do(func() { close(l.lost) }) }

func (l *clientLease) ID() int64             { return l.id }
func (l *clientLease) Lost() <-chan struct{} { return l.lost }

func (l *clientLease) Revoke(ctx context.Context) error {
	defer l.end()
	if err := l.askOn(ctx, l.link, "Revoke", l.id, new(bool)); err != nil {
		return l.unavailable(err)
	}
	return nil
}
