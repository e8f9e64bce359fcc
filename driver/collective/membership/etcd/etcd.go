// Package etcd is the engine etcd:URL,URL,... of package membership: an etcd that runs elsewhere, or one in
// this process (Start). Programs import it for its scheme.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tributary/driver/collective/membership"
)

func init() { membership.Register("etcd", open) }

// Times of the client: it notices a dead server and dials again, well before leases end.
const (
	dialTime  = 5 * time.Second
	aliveTime = 5 * time.Second
	redialMin = 50 * time.Millisecond
	redialMax = 500 * time.Millisecond
)

// engine is a client of etcd.
type engine struct {
	name   string
	client *clientv3.Client
	life   context.Context
	die    context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	leases map[*lease]bool
}

// open makes a client. It does not wait for the server.
func open(_ context.Context, address string, o membership.Options) (membership.Engine, error) {
	urls := strings.Split(address, ",")
	for _, u := range urls {
		scheme, host, _ := strings.Cut(u, "://")
		if scheme != "http" && scheme != "https" || host == "" {
			return nil, &membership.NameError{Name: "etcd:" + address, Why: fmt.Sprintf("%q must be http://HOST:PORT or https://HOST:PORT", u), Known: []string{"etcd:URL,URL,..."}}
		}
		if scheme == "http" && o.TLS != nil {
			return nil, &membership.NameError{Name: "etcd:" + address, Why: fmt.Sprintf("%s has no TLS, but certificates are given; use https", u), Known: []string{"etcd:URL,URL,..."}}
		}
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: urls, TLS: o.TLS, Logger: zap.NewNop(),
		DialTimeout: dialTime, DialKeepAliveTime: aliveTime, DialKeepAliveTimeout: aliveTime,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: redialMin, Multiplier: backoff.DefaultConfig.Multiplier, Jitter: backoff.DefaultConfig.Jitter, MaxDelay: redialMax},
			MinConnectTimeout: dialTime,
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("engine etcd:%s: %w", address, err)
	}
	e := &engine{name: "etcd:" + address, client: client, leases: map[*lease]bool{}}
	e.life, e.die = context.WithCancel(context.Background())
	return e, nil
}

func (e *engine) Name() string { return e.name }

// retryPause is between attempts to reach a server.
const retryPause = 50 * time.Millisecond

// ask repeats a request without effects while no server answers.
func (e *engine) ask(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, stop := e.bounded(ctx)
	defer stop()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if !away(err) || ctx.Err() != nil {
			return e.unavailable(ctx, err)
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return e.unavailable(ctx, err)
		}
	}
}

// bounded returns a context that also ends with Close.
func (e *engine) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(e.life, cancel)
	return ctx, func() { release(); cancel() }
}

// away reports whether an error means that no server, or no quorum, answers.
func away(err error) bool {
	var etcd rpctypes.EtcdError
	if errors.As(err, &etcd) {
		return etcd.Code() == codes.Unavailable
	}
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}

func (e *engine) unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w (%v)", ctx.Err(), err)
	}
	return &membership.UnavailableError{Engine: e.name, Err: err}
}

func (e *engine) Get(ctx context.Context, prefix string) (s membership.Snapshot, err error) {
	err = e.ask(ctx, func(ctx context.Context) error {
		r, err := e.client.Get(ctx, prefix, all(prefix)...)
		if err != nil {
			return err
		}
		s = membership.Snapshot{Revision: r.Header.Revision}
		for _, k := range r.Kvs {
			s.Keys = append(s.Keys, membership.Key{Name: string(k.Key), Value: string(k.Value), Modified: k.ModRevision})
		}
		return nil
	})
	return s, err
}

// all selects the keys with a prefix. etcd has no empty key.
func all(prefix string) []clientv3.OpOption {
	if prefix == "" {
		return []clientv3.OpOption{clientv3.WithFromKey()}
	}
	return []clientv3.OpOption{clientv3.WithPrefix()}
}

func (e *engine) Commit(ctx context.Context, t membership.Txn) (bool, error) {
	var conditions []clientv3.Cmp
	var ops []clientv3.Op
	for _, c := range t.If {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(c.Key), "=", c.Modified))
	}
	for _, p := range t.Put {
		ops = append(ops, clientv3.OpPut(p.Key, p.Value, clientv3.WithLease(clientv3.LeaseID(p.Lease))))
	}
	for _, k := range t.Delete {
		ops = append(ops, clientv3.OpDelete(k))
	}
	ctx, stop := e.bounded(ctx)
	defer stop()
	r, err := e.client.Txn(ctx).If(conditions...).Then(ops...).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		gone := &membership.LeaseError{Engine: e.name}
		for _, p := range t.Put {
			gone.Lease = p.Lease
		}
		return false, gone
	case err != nil:
		return false, e.unavailable(ctx, err)
	}
	return r.Succeeded, nil
}

func (e *engine) Await(ctx context.Context, prefix string, after int64) error {
	ctx, stop := e.bounded(ctx)
	defer stop()
	options := append(all(prefix), clientv3.WithRev(after+1))
	for r := range e.client.Watch(clientv3.WithRequireLeader(ctx), prefix, options...) {
		switch err := r.Err(); {
		case errors.Is(err, rpctypes.ErrCompacted): // too old to know
			return nil
		case err != nil:
			return e.unavailable(ctx, err)
		case len(r.Events) > 0:
			return nil
		}
	}
	return e.unavailable(ctx, errors.New("the watch has ended"))
}

// revokeTime is how long Close tries to end leases. They end by their time otherwise.
const revokeTime = 2 * time.Second

func (e *engine) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), revokeTime)
	defer cancel()
	e.mu.Lock()
	leases := e.leases
	e.leases = nil
	e.mu.Unlock()
	if e.life.Err() != nil {
		return nil
	}
	for l := range leases {
		_ = l.Revoke(ctx) // the server may be away
	}
	e.die()
	err := e.client.Close()
	e.wg.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil // of its own end
	}
	return err
}

// lease is a lease that the client keeps alive.
type lease struct {
	*engine
	id   clientv3.LeaseID
	stop context.CancelFunc // keeping it alive
	lost chan struct{}
	once sync.Once
}

func (e *engine) Grant(ctx context.Context, ttl time.Duration) (membership.Lease, error) {
	ctx, stop := e.bounded(ctx)
	defer stop()
	r, err := e.client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return nil, e.unavailable(ctx, err)
	}
	life, die := context.WithCancel(e.life)
	alive, err := e.client.KeepAlive(life, r.ID)
	if err != nil {
		die()
		return nil, e.unavailable(ctx, err)
	}
	l := &lease{engine: e, id: r.ID, stop: die, lost: make(chan struct{})}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leases == nil {
		die()
		return nil, e.unavailable(ctx, errors.New("it is closed"))
	}
	e.leases[l] = true
	e.wg.Go(func() {
		for range alive { // closed when the lease has ended, or has not been confirmed for its time
		}
		if life.Err() == nil { // nobody has stopped it, so nothing is left to revoke
			e.mu.Lock()
			delete(e.leases, l)
			e.mu.Unlock()
		}
		l.end()
	})
	return l, nil
}

func (l *lease) end() {
	l.stop()
	l.once.Do(func() { close(l.lost) })
}

func (l *lease) ID() int64             { return int64(l.id) }
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Revoke ends the lease. Without an answer of the server, the lease ends with Close or after its time.
func (l *lease) Revoke(ctx context.Context) error {
	defer l.end()
	ctx, stop := l.bounded(ctx)
	defer stop()
	_, err := l.client.Revoke(ctx, l.id)
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return l.unavailable(ctx, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leases, l)
	return nil
}
